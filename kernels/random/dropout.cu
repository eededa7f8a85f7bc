// oriel_dropout_<width>_<type>, see dropout.h: by threads of `width` elements that follow one
// another in a run, the blocks of a column of the grid for one sample after the other. Bytes over
// the memory: x and y once. The words of four elements are, by counting, some 80 integer
// instructions.
#include "kernels/cuda/rows.cuh"
#include "kernels/random/dropout_args.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <int kWidth, typename S>
__device__ void Drop(const DropoutArgs& args, const DropoutFirsts& firsts, const S* x,
                     const int64_t* bits, S* y) {
  const auto scale = static_cast<Compute<S>>(args.scale);
  int64_t first = 0;
#pragma unroll  // so that the arguments stay where they are
  for (int c = 0; c < DropoutArgs::kDims; ++c) {
    if (c < args.cuts) first += *firsts.at[c] * args.cut_strides[c];
  }
  const int64_t each = args.runs * args.inner;
  for (int64_t sample = blockIdx.y; sample < args.samples; sample += gridDim.y) {
    const int64_t own = bits[sample];
    for (int64_t e = GlobalThread() * kWidth; e < each; e += GlobalThreads() * kWidth) {
      const int64_t at = sample * each + e;
      Compute<S> values[kWidth];
      LoadPack(x + at, values);
      if (own >= 0) {
        const uint32_t run = static_cast<uint32_t>(e) / static_cast<uint32_t>(args.inner);
        const auto place =
            static_cast<uint64_t>(PlaceOfRun(args, run, first) + (e - run * args.inner));
        runtime::PhiloxCounter words =
            DropoutWords(place / 4, static_cast<uint64_t>(own), args.site);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
          const uint64_t element = place + j;
          if (j > 0 && element % 4 == 0) {
            words = DropoutWords(element / 4, static_cast<uint64_t>(own), args.site);
          }
          const uint32_t low = (element & 1) != 0 ? words[1] : words[0];
          const uint32_t high = (element & 1) != 0 ? words[3] : words[2];
          const uint32_t word = (element & 2) != 0 ? high : low;
          values[j] = word >> 8 < args.dropped_below ? Compute<S>(0) : values[j] * scale;
        }
      }
      StorePack(y + at, values);
    }
  }
}

}  // namespace

#define ORIEL_DROPOUT(name, S)                                                           \
  ORIEL_CUDA_KERNEL(kThreads, oriel_dropout_1_##name, const DropoutArgs args,            \
                    const DropoutFirsts firsts, const S* x, const int64_t* bits, S* y) { \
    Drop<1>(args, firsts, x, bits, y);                                                   \
  }                                                                                      \
  ORIEL_CUDA_KERNEL(kThreads, oriel_dropout_4_##name, const DropoutArgs args,            \
                    const DropoutFirsts firsts, const S* x, const int64_t* bits, S* y) { \
    Drop<4>(args, firsts, x, bits, y);                                                   \
  }

ORIEL_DROPOUT(f32, float)
ORIEL_DROPOUT(f64, double)
ORIEL_DROPOUT(bf16, __nv_bfloat16)

}  // namespace oriel::kernels::cuda
