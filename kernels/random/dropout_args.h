// What dropout's loops are launched with, and how they draw, on host and device.
#ifndef ORIEL_KERNELS_RANDOM_DROPOUT_ARGS_H_
#define ORIEL_KERNELS_RANDOM_DROPOUT_ARGS_H_

#include <cstdint>

#include "runtime/base/philox.h"

namespace oriel::kernels {

// Elements of a piece, fewer than 2^32 of a sample, in runs that follow one another in the whole
// sample, too.
struct DropoutArgs {
  static constexpr int kDims = 8;

  int64_t samples = 0;
  int64_t runs = 0;   // of a sample
  int64_t inner = 0;  // elements of a run
  int32_t dims = 0;   // of the runs; the innermost is the last
  int32_t cuts = 0;   // dimensions of which an operand says where the piece begins
  int64_t sizes[kDims] = {};
  int64_t strides[kDims] = {};      // in the whole sample
  int64_t cut_strides[kDims] = {};  // likewise
  uint64_t site = 0;
  uint32_t dropped_below = 0;  // that the upper 24 bits of an element's word are
  double scale = 1;            // of elements that stay
};

// On a device, where the operands are that say where the piece begins.
struct DropoutFirsts {
  const int64_t* at[DropoutArgs::kDims] = {};
};

// The words of the elements 4 block to 4 block + 3 of a sample with these bits.
constexpr runtime::PhiloxCounter DropoutWords(uint64_t block, uint64_t bits, uint64_t site) {
  return runtime::Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                          static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)},
                         {static_cast<uint32_t>(site), static_cast<uint32_t>(site >> 32)});
}

// Where in the whole sample a run begins, in a piece that begins at `first`. A device divides 32
// bits much faster than 64.
constexpr int64_t PlaceOfRun(const DropoutArgs& args, uint32_t run, int64_t first) {
  for (int d = args.dims - 1; d >= 0; --d) {
    const auto size = static_cast<uint32_t>(args.sizes[d]);
    first += run % size * args.strides[d];
    run /= size;
  }
  return first;
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_RANDOM_DROPOUT_ARGS_H_
