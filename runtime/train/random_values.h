// Random initial values of parameters.
//
// A value depends on the seed, the parameter's name and the element's row-major index in the whole
// tensor, and on nothing else: a rank makes its shard by itself, and the values are the same for
// every strategy and number of ranks, and on every machine.
//
// Element 4b + j comes from word j of Philox(counter, key), where the key is the seed and the
// counter is b (64 bits) and the FNV-1a hash of the name (64 bits), low words first:
//
//   uniform  low + (high - low) u, u the upper 24 bits of the word over 2^24
//   normal   mean + deviation z; z by Box and Muller's method (1958) from words 0 and 1, and 2 and
//   3:
//            sqrt(-2 ln u) cos(2π v) and sqrt(-2 ln u) sin(2π v)
//
// Computed in f32, with basic operations and square roots only (those are exact by IEEE 754), then
// rounded to the nearest value of the parameter's type.
#ifndef ORIEL_RUNTIME_TRAIN_RANDOM_VALUES_H_
#define ORIEL_RUNTIME_TRAIN_RANDOM_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "kernels/kernel.h"
#include "runtime/base/box.h"
#include "runtime/base/tensor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// Writes a box of the initial value of a parameter with this type and shape to `target`.
// InvalidArgument if `initial` is not a constant or random one, or the type is no float.
absl::Status FillInitialValue(const plan::InitialValue& initial, const std::string& parameter,
                              const TensorSpec& spec, const Box& box, int num_threads,
                              void* target);

// The launch that makes the same box on a device, with the same bits (kernels/random), if there is
// one for this kind of value. Of a type that the device has no code for, its kernel is refused.
std::optional<kernels::KernelSpec> InitialValueOnDevice(const plan::InitialValue& initial,
                                                        const std::string& parameter,
                                                        const TensorSpec& spec, const Box& box);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_RANDOM_VALUES_H_
