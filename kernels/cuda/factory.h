// What factories of CUDA kernels share: functions by type, and grids.
//
//   ORIEL_ASSIGN_OR_RETURN(Function exp, FindTyped(spec, device, "oriel_exp", {DType::kF32}));
//   ..
//   return exp.Launch(BlocksFor(device, count, kThreads), {kThreads}, stream, x, y, count);
#ifndef ORIEL_KERNELS_CUDA_FACTORY_H_
#define ORIEL_KERNELS_CUDA_FACTORY_H_

#include <algorithm>
#include <initializer_list>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/common/checks.h"
#include "kernels/cuda/device.h"

namespace oriel::kernels::cuda {

// The function <stem>_<type>_<type>..; Unsupported, with the types, if there is none: device code
// says what there is.
inline absl::StatusOr<Function> FindTyped(const KernelSpec& spec, const Device& device,
                                          std::string stem, std::initializer_list<DType> types) {
  std::string names;
  for (DType type : types) {
    stem += '_';
    stem += runtime::DTypeName(type);
    names += names.empty() ? "" : ", ";
    names += runtime::DTypeName(type);
  }
  absl::StatusOr<Function> function = device.Find(stem);
  if (function.ok() || !absl::IsNotFound(function.status())) return function;
  return Unsupported(spec, "no device code for " + names);
}

// Blocks of `threads` for loops over `count` that stride by the grid: a few for each
// multiprocessor, one at least.
inline Grid BlocksFor(const Device& device, int64_t count, int64_t threads) {
  const int64_t most = int64_t{16} * std::max(1, device.properties().multiprocessors);
  return {static_cast<unsigned>(std::clamp<int64_t>((count + threads - 1) / threads, 1, most))};
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_FACTORY_H_
