// initial_value on a device; see initial_value.h.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/random/initial_value.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// Where the box's elements are in the whole parameter. Dimensions that follow one another in both
// are one.
absl::Status Locate(const KernelSpec& spec, InitialValueLaunch& launch) {
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, spec.Ints("shape"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> start, spec.Ints("start"));
  const auto& size = spec.results[0].shape;
  const size_t rank = size.size();
  if (shape.size() != rank || start.size() != rank) {
    return Malformed(spec, "shape, start and the result differ in rank");
  }
  std::vector<int64_t> sizes, strides;  // innermost first
  int64_t stride = 1;
  for (size_t d = rank; d-- > 0;) {
    if (start[d] < 0 || start[d] + size[d] > shape[d]) {
      return Unsupported(spec, "the result has elements beyond the shape");
    }
    launch.first_index += start[d] * stride;
    if (!sizes.empty() && strides.back() * sizes.back() == stride) {
      sizes.back() *= size[d];
    } else {
      sizes.push_back(size[d]);
      strides.push_back(stride);
    }
    stride *= shape[d];
  }
  if (sizes.size() > InitialValueLaunch::kDims) return Unsupported(spec, "more than 8 dimensions");
  launch.dims = static_cast<int32_t>(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    launch.sizes[sizes.size() - 1 - d] = sizes[d];
    launch.strides[sizes.size() - 1 - d] = strides[d];
    launch.count *= sizes[d];
  }
  return absl::OkStatus();
}

absl::StatusOr<KernelFn> MakeInitialValue(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 0, 1));
  InitialValueLaunch launch;
  ORIEL_RETURN_IF_ERROR(Locate(spec, launch));
  ORIEL_ASSIGN_OR_RETURN(const std::string kind, spec.String("kind"));
  if (kind != "normal" && kind != "uniform") return Malformed(spec, "kind is normal or uniform");
  ORIEL_ASSIGN_OR_RETURN(const double first, spec.Float("first"));
  ORIEL_ASSIGN_OR_RETURN(const double second, spec.Float("second"));
  ORIEL_ASSIGN_OR_RETURN(const int64_t seed, spec.Int("seed"));
  ORIEL_ASSIGN_OR_RETURN(const int64_t name, spec.Int("name"));
  launch.first = static_cast<float>(first);
  launch.second = static_cast<float>(second);
  // Rounding must not reach the end of the range.
  launch.last = std::nextafter(launch.second, launch.first);
  launch.seed = static_cast<uint64_t>(seed);
  launch.name = static_cast<uint64_t>(name);
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device,
                                   absl::StrCat("oriel_initial_", kind,
                                                spec.attributes.count("away") > 0 ? "_away" : ""),
                                   {spec.results[0].dtype}));
  const Grid blocks = BlocksFor(device, launch.count, InitialValueLaunch::kThreads);
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (launch.count == 0) return absl::OkStatus();
    return function.Launch(blocks, {InitialValueLaunch::kThreads}, StreamOf(args), launch,
                           args.result<void>(0));
  });
}

ORIEL_REGISTER_CUDA_KERNEL("initial_value", 0, MakeInitialValue);

}  // namespace
}  // namespace oriel::kernels::cuda
