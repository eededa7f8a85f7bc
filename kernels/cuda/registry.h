// CUDA kernels by name, as kernels/kernel.h has the host's.
//
// A launch of a plan names the same kernel on every backend, with the same operands, results and
// attributes: the contract headers (kernels/<op>/<op>.h) hold for both. In a factory, everything
// that depends on shapes is decided: which __global__ function, its grid, library descriptors,
// scratch memory. The function it returns puts launches on args.stream and returns; it may be
// recorded into a CUDA graph, so it allocates nothing, copies nothing from the host and waits for
// nothing.
//
//   ORIEL_REGISTER_CUDA_KERNEL("exp", 0, MakeExp);
#ifndef ORIEL_KERNELS_CUDA_REGISTRY_H_
#define ORIEL_KERNELS_CUDA_REGISTRY_H_

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/kernel.h"

namespace oriel::kernels::cuda {

// As KernelFactory, for a device. Unimplemented, with the reason, where this implementation does
// not take the launch: the next one is asked, and ORIEL_LOG=dispatch tells the reason.
using Factory = absl::StatusOr<KernelFn> (*)(const KernelSpec&, Device&);

class Registry {
 public:
  static Registry& Get();

  void Register(const char* kernel, int priority, Factory factory, const char* name);
  // As KernelRegistry::Prepare: what no implementation takes in f16 or bf16 is widened (widened.h).
  absl::StatusOr<KernelFn> Prepare(const KernelSpec& spec, Device& device) const;
  std::vector<std::string> Names() const;

 private:
  Implementations<Factory> implementations_;
};

struct Registrar {
  Registrar(const char* kernel, int priority, Factory factory, const char* name) {
    Registry::Get().Register(kernel, priority, factory, name);
  }
};

#define ORIEL_REGISTER_CUDA_KERNEL(name, priority, factory)           \
  static const ::oriel::kernels::cuda::Registrar ORIEL_KERNEL_CONCAT( \
      oriel_cuda_registrar_, __COUNTER__)(name, priority, factory, #factory)

// The stream of a launch, in the function that a factory returns.
inline CUstream StreamOf(const KernelArgs& args) { return static_cast<CUstream>(args.stream); }

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_REGISTRY_H_
