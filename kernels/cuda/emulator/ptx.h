// Runs the PTX of generated kernels on the emulator's blocks and threads.
//
//   ORIEL_ASSIGN_OR_RETURN(const std::unique_ptr<PtxModule> module, PtxModule::Load(text));
//   const EmulatedKernel* kernel = module->Find("kernel_0");
//   kernel->run({{2, 1, 1}, {256, 1, 1}}, args);
//
// So what a GPU is given is what tests run: the launch, its arguments, which thread computes which
// element, barriers, shared memory and the arithmetic of each instruction. An address that is not a
// multiple of what is moved is an error, as on a GPU.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_PTX_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_PTX_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/emulator/emulated_kernel.h"

namespace oriel::kernels::cuda::emulator {

class PtxProgram;

class PtxModule {
 public:
  ~PtxModule();
  // InvalidArgument or Unimplemented, naming the line, for text that is not understood.
  static absl::StatusOr<std::unique_ptr<PtxModule>> Load(absl::string_view text);

  // Null if there is none of the name. Lives as long as the module.
  const EmulatedKernel* Find(const std::string& name) const;

 private:
  PtxModule();

  std::map<std::string, std::unique_ptr<PtxProgram>> programs_;  // by the entry's name
};

}  // namespace oriel::kernels::cuda::emulator

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_PTX_H_
