// initial_value: random initial values of a parameter, on a device. The host makes them itself
// (runtime/train/random_values.h, which defines them), with the same bits.
//
//   operands    none
//   results     y, f32 or bf16: a box of the parameter; computed in f32 and rounded once. Or i16:
//               what bf16 lacks of that, where it is rounded away from zero (`away`)
//   attributes  kind            "normal" or "uniform"
//               first, second   f64: mean and deviation; low and high
//               seed            i64: its bits
//               name            i64: the bits of the hash of the parameter's name
//               shape           i64s: of the whole parameter
//               start           i64s: where in it y begins
//               away            i64, 1 if there: bf16 is RoundedAway (runtime/base/remainder.h)
//
// A box that reaches beyond the parameter (padding) is refused.
#ifndef ORIEL_KERNELS_RANDOM_INITIAL_VALUE_H_
#define ORIEL_KERNELS_RANDOM_INITIAL_VALUE_H_

#include <cstdint>

namespace oriel::kernels {

// What the device code is launched with.
struct InitialValueLaunch {
  static constexpr int kDims = 8;
  static constexpr int kThreads = 256;

  int64_t count = 1;        // elements of the box
  int64_t first_index = 0;  // row-major, in the whole parameter, of its first element
  int32_t dims = 0;         // that follow; the innermost is the last
  int64_t sizes[kDims] = {};
  int64_t strides[kDims] = {};  // in the whole parameter
  uint64_t seed = 0, name = 0;
  float first = 0, second = 0;
  float last = 0;  // the largest of uniform values
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_RANDOM_INITIAL_VALUE_H_
