// Algorithms of products that were timed, in a file that runs share.
//
// What a library's heuristics put first is seldom the fastest for every product of a model. Which
// one is shows in a run alone, and may change the last bits of a sum: so a choice is made once, and
// kept.
#ifndef ORIEL_KERNELS_LINEAR_PRODUCT_CHOICES_H_
#define ORIEL_KERNELS_LINEAR_PRODUCT_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel::kernels::cuda {

struct ProductChoice {
  std::string algorithm;   // the library's bytes
  uint64_t workspace = 0;  // bytes
  float waves = 0;         // how much of the device it fills
  double microseconds = 0;
};

// Of at least one time the least, but an earlier one where the difference may be noise.
size_t FastestOf(const std::vector<double>& times);

// The choice for `product` in the file, or, if it has none, what `choose` gives, which is added.
// The file is locked meanwhile: of several ranks one times a product, and all take what it found.
// `product` names all that the choice depends on: the device, the library's version, the shape. An
// algorithm has `algorithm_bytes`.
// InvalidArgument, naming the line, for a damaged file; Unavailable if it can't be read or written.
absl::StatusOr<ProductChoice> KeptChoice(
    const std::string& file, const std::string& product, size_t algorithm_bytes,
    const std::function<absl::StatusOr<ProductChoice>()>& choose);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_LINEAR_PRODUCT_CHOICES_H_
