// A launch of the plan as the kernel registry wants it.
#ifndef ORIEL_RUNTIME_EXEC_KERNEL_SPEC_H_
#define ORIEL_RUNTIME_EXEC_KERNEL_SPEC_H_

#include "kernels/kernel.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// `launch` is an instruction of `program`, which is one of the verified `plan`. One of generated
// code gets attributes of what it runs (kernels/generated/generated.h).
kernels::KernelSpec MakeKernelSpec(const plan::Plan& plan, const plan::Program& program,
                                   const plan::Launch& launch, int num_threads);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_KERNEL_SPEC_H_
