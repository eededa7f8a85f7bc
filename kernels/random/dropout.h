// dropout: zeros in random places (oriel.dropout; Srivastava et al. 2014).
//
//   operands    x         f32, f64 or bf16 [b r, ..]: r rows for each of b samples
//               bits      i64 [b]: of the samples
//               firsts    i64 [], one for each dimension of `cut`: where the piece begins in it
//   results     y         of x's type and shape, perhaps in its place: 0 where an element is
//                         dropped, else x / (1 - ratio), computed in x's type (f32 for bf16) and
//                         rounded once; x where the sample's bits are negative
//   attributes  ratio     f64 in [0, 1): the probability of a zero, in steps of 2^-24
//               site      i64: its bits
//               whole     i64s: x's shape before it was cut; none, or absent: its own
//               cut       i64s: dimensions but the first; may be absent
//
// Element i of a sample (row-major in its rows of the whole shape) is dropped if the upper 24 bits
// of word i % 4 of Philox(counter, key) are below ratio 2^24. The counter is i / 4 and the sample's
// bits, the key `site`, 64 bits each, low words first.
#ifndef ORIEL_KERNELS_RANDOM_DROPOUT_H_
#define ORIEL_KERNELS_RANDOM_DROPOUT_H_

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/random/dropout_args.h"

namespace oriel::kernels {

// Malformed if shapes, types or attributes do not fit each other.
absl::StatusOr<DropoutArgs> DropoutOf(const KernelSpec& spec);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_RANDOM_DROPOUT_H_
