#include <algorithm>

#include "kernels/common/bfloat16.h"
#include "kernels/common/parallel.h"
#include "kernels/conv/conv.h"

namespace oriel::kernels {
namespace {

// Calls f(input offset, patch offset, count) for runs of one patch's elements of one channel that
// lie inside the input (count elements `dilation` apart), and outside(patch offset, count) for the
// others.
template <typename Inside, typename Outside>
void ForEachRun(const ConvShape& s, int64_t position, const Inside& inside,
                const Outside& outside) {
  ConvShape::Extents start;
  int64_t rest = position;
  for (int d = ConvShape::kSpatial - 1; d >= 0; --d) {
    start[d] = rest % s.output[d] * s.strides[d] - s.lows[d];
    rest /= s.output[d];
  }
  const int64_t width = s.kernel[2];
  // The part [from, to) of a kernel row that is inside.
  int64_t from = 0;
  while (from < width && start[2] + from * s.dilations[2] < 0) ++from;
  int64_t to = from;
  while (to < width && start[2] + to * s.dilations[2] < s.input[2]) ++to;
  for (int64_t k0 = 0; k0 < s.kernel[0]; ++k0) {
    const int64_t i0 = start[0] + k0 * s.dilations[0];
    for (int64_t k1 = 0; k1 < s.kernel[1]; ++k1) {
      const int64_t i1 = start[1] + k1 * s.dilations[1];
      const int64_t at = (k0 * s.kernel[1] + k1) * width;
      if (i0 < 0 || i0 >= s.input[0] || i1 < 0 || i1 >= s.input[1]) {
        outside(at, width);
        continue;
      }
      const int64_t row = (i0 * s.input[1] + i1) * s.input[2] + start[2];
      if (from > 0) outside(at, from);
      inside(row + from * s.dilations[2], at + from, to - from);
      if (to < width) outside(at + to, width - to);
    }
  }
}

}  // namespace

template <typename T>
void Unfold(const ConvShape& shape, const T* input, T* patches, int num_threads) {
  const int64_t channel = ConvShape::Product(shape.input);
  const int64_t kernel = ConvShape::Product(shape.kernel);
  const int64_t step = shape.dilations[2];
  ParallelFor(num_threads, shape.positions(), shape.patch(), [&](int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position) {
      for (int64_t c = 0; c < shape.group_channels(); ++c) {
        const T* from = input + c * channel;
        T* to = patches + position * shape.patch() + c * kernel;
        ForEachRun(
            shape, position,
            [=](int64_t source, int64_t target, int64_t count) {
              for (int64_t i = 0; i < count; ++i) to[target + i] = from[source + i * step];
            },
            [=](int64_t target, int64_t count) { std::fill_n(to + target, count, T{}); });
      }
    }
  });
}

template <typename T>
void Fold(const ConvShape& shape, const T* patches, T* input, int num_threads) {
  const int64_t channel = ConvShape::Product(shape.input);
  const int64_t kernel = ConvShape::Product(shape.kernel);
  const int64_t step = shape.dilations[2];
  // Patches overlap within a channel only.
  ParallelFor(num_threads, shape.group_channels(), shape.positions() * kernel,
              [&](int64_t begin, int64_t end) {
                for (int64_t c = begin; c < end; ++c) {
                  T* to = input + c * channel;
                  std::fill_n(to, channel, T(0));
                  for (int64_t position = 0; position < shape.positions(); ++position) {
                    const T* from = patches + position * shape.patch() + c * kernel;
                    ForEachRun(
                        shape, position,
                        [=](int64_t target, int64_t source, int64_t count) {
                          for (int64_t i = 0; i < count; ++i) {
                            to[target + i * step] += from[source + i];
                          }
                        },
                        [](int64_t, int64_t) {});
                  }
                }
              });
}

template void Unfold(const ConvShape&, const float*, float*, int);
template void Unfold(const ConvShape&, const double*, double*, int);
template void Unfold(const ConvShape&, const BFloat16*, BFloat16*, int);
template void Fold(const ConvShape&, const float*, float*, int);
template void Fold(const ConvShape&, const double*, double*, int);

}  // namespace oriel::kernels
