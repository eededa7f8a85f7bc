#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/registry.h"
#include "kernels/generated/generated.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// The PTX for the newest architecture that is no newer than the device: the driver makes code of
// it when it loads.
absl::StatusOr<std::string> PtxFor(const KernelSpec& spec, const DeviceProperties& properties) {
  constexpr char kPrefix[] = "image.sm_";
  const int own = properties.major * 10 + properties.minor;
  int best = 0;
  std::string image, known;
  for (const auto& [name, attribute] : spec.attributes) {
    int architecture = 0;
    if (!absl::StartsWith(name, kPrefix) ||
        !absl::SimpleAtoi(name.substr(sizeof kPrefix - 1), &architecture)) {
      continue;
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ", "sm_", architecture);
    if (architecture <= own && architecture > best) {
      best = architecture;
      image = name;
    }
  }
  if (best > 0) return spec.String(image);
  return absl::UnimplementedError(
      absl::StrCat("the plan has PTX for ", known.empty() ? "no architecture" : known, ", but ",
                   properties.name, " is of sm_", own, "; compile it with --device cuda:sm_", own));
}

absl::StatusOr<KernelFn> MakeGenerated(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const GeneratedUnits units, UnitsOf(spec));
  ORIEL_ASSIGN_OR_RETURN(const std::string ptx, PtxFor(spec, device.properties()));
  ORIEL_ASSIGN_OR_RETURN(const std::string name, spec.String("name"));
  ORIEL_ASSIGN_OR_RETURN(const Function function, device.Load(ptx, name));
  const bool rows = units.block_units > 0;
  const int64_t count = rows ? units.units : units.units * units.unit_elements;
  const int64_t of_block = rows ? units.block_units : kGeneratedThreads * units.thread_elements;
  const int64_t blocks = (count + of_block - 1) / of_block;
  if (blocks > 0x7fffffff) {
    return absl::UnimplementedError(
        absl::StrCat(count, rows ? " rows" : " elements", " are too many for a grid"));
  }
  return KernelFn([=, operands = spec.operands.size(),
                   results = spec.results.size()](const KernelArgs& args) {
    std::vector<void*> addresses;
    for (size_t i = 0; i < operands; ++i) {
      addresses.push_back(const_cast<void*>(static_cast<const void*>(&args.operands[i])));
    }
    for (size_t i = 0; i < results; ++i) {
      addresses.push_back(const_cast<void*>(static_cast<const void*>(&args.results[i])));
    }
    return function.LaunchArray({static_cast<unsigned>(blocks), 1, 1}, {kGeneratedThreads, 1, 1},
                                /*shared_bytes=*/0, StreamOf(args), addresses.data());
  });
}

ORIEL_REGISTER_CUDA_KERNEL("generated", 0, MakeGenerated);

}  // namespace
}  // namespace oriel::kernels::cuda
