// Convolution (cross-correlation) and its derivatives (ir/oriel/linear.td).
//
//   conv              input [b, c, d..], weight [o, c/group, k..], bias [o]? -> [b, o, e..]
//   conv_input_grad   cotangent [b, o, e..], weight -> [b, c, d..]
//   conv_weight_grad  cotangent, input -> [o, c/group, k..]
//   ints strides, pads (all lows, then all highs), dilations; int group
//
// Dense row-major, one to three spatial dimensions, results are assigned. Each
// sample and group is unfolded into patches (im2col) in scratch memory, so that
// the rest is a matrix product: by oneDNN for f32 and bf16, by loops for f64. The
// gradient of the weight is summed over samples in order. Where each channel has weights
// of its own (depthwise), rows are added instead. Sums of bf16 products are
// taken in f32, and rounded once where the result is bf16.
#ifndef ORIEL_KERNELS_CONV_CONV_H_
#define ORIEL_KERNELS_CONV_CONV_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

struct ConvShape {
  static constexpr int kSpatial = 3;  // lower ranks have leading extents of 1
  using Extents = std::array<int64_t, kSpatial>;

  int64_t batch, channels, outputs, group;
  Extents input, kernel, output;
  Extents strides, lows, dilations;

  // InvalidArgument if shapes and attributes don't fit together.
  static absl::StatusOr<ConvShape> Make(const KernelSpec& spec, const TensorSpec& input,
                                        const TensorSpec& weight, const TensorSpec& output);

  static int64_t Product(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }
  int64_t group_channels() const { return channels / group; }
  int64_t group_outputs() const { return outputs / group; }
  int64_t positions() const { return Product(output); }
  // Elements of one patch: of one group's channels under the kernel.
  int64_t patch() const { return group_channels() * Product(kernel); }
};

// The types of a launch, which its result may have in f32 if it sums products of bf16.
absl::Status CheckConvTypes(const KernelSpec& spec);
// The same of one in which each channel has weights of its own; Unimplemented for others.
absl::Status CheckDepthwise(const KernelSpec& spec, const ConvShape& shape);

// Unfolds one group of one sample, [channels / group, d..], into patches [positions, patch];
// what lies outside the input is 0.
template <typename T>
void Unfold(const ConvShape& shape, const T* input, T* patches, int num_threads);
// The transpose: assigns to each input element the sum of what it became in the patches.
template <typename T>
void Fold(const ConvShape& shape, const T* patches, T* input, int num_threads);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_CONV_CONV_H_
