// Code of generated kernels, as the plan has it.
#ifndef ORIEL_PASSES_GENERATE_CODE_H_
#define ORIEL_PASSES_GENERATE_CODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/exec/exec.h"

namespace oriel {

// Of a launch on CUDA, one for each element of a result.
inline constexpr int kThreadsOfBlock = 256;

// Code for one target: plan::GeneratedKernel::Image.
struct Image {
  std::string target;
  std::string code;
  int64_t entry = 0;
};

// The targets for which this machine's compiler makes code of its own processor's kind, best last:
// "x86-64", "x86-64-v3". Empty where it makes none.
std::vector<std::string> hostTargets();

// The kernel's code for one of hostTargets(), or for a CUDA architecture ("sm_90": PTX). Its bits
// don't depend on the target's instructions: nothing is contracted. Fails with a diagnostic at the
// kernel.
mlir::FailureOr<Image> compileKernel(exec::KernelOp kernel, llvm::StringRef name,
                                     llvm::StringRef target);

// The dialects of the linalg form, for contexts that read it.
void registerGeneratedDialects(mlir::DialectRegistry& registry);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_CODE_H_
