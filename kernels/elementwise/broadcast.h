// Loops over NumPy-style broadcast operands, planned once.
//
// Shapes are aligned at the last dimension and dimensions that all operands
// walk alike are merged. What is left is an inner loop, where each operand is
// contiguous or constant, inside an odometer over the outer dimensions. Same
// shapes and a scalar collapse to one flat loop, a bias to one loop per row.
#ifndef ORIEL_KERNELS_ELEMENTWISE_BROADCAST_H_
#define ORIEL_KERNELS_ELEMENTWISE_BROADCAST_H_

#include <array>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/common/parallel.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

inline constexpr int kMaxBroadcastOperands = 3;

struct BroadcastPlan {
  using Offsets = std::array<int64_t, kMaxBroadcastOperands>;

  int64_t inner = 1;                                 // elements of the inner loop
  std::array<bool, kMaxBroadcastOperands> varies{};  // contiguous (or constant) in it
  std::vector<int64_t> outer;                        // sizes of the outer dimensions
  std::vector<Offsets> strides;                      // of each operand in them
  int64_t rows = 1;                                  // product of `outer`

  // InvalidArgument if the operands don't broadcast to `result`.
  static absl::StatusOr<BroadcastPlan> Make(const KernelSpec& spec,
                                            const std::vector<Shape>& operands,
                                            const Shape& result);
};

// Calls f(offsets, result offset, count) for pieces that cover the result. `weight` is the work
// that one of the plan's elements stands for.
template <typename F>
void ForEachPiece(const BroadcastPlan& plan, int num_threads, const F& f, int64_t weight = 1) {
  if (plan.rows == 1) {
    ParallelForElements(num_threads, plan.inner, weight, [&](int64_t begin, int64_t end) {
      BroadcastPlan::Offsets offsets{};
      for (int i = 0; i < kMaxBroadcastOperands; ++i) offsets[i] = plan.varies[i] ? begin : 0;
      f(offsets, begin, end - begin);
    });
    return;
  }
  const int dims = static_cast<int>(plan.outer.size());
  ParallelFor(num_threads, plan.rows, plan.inner * weight, [&](int64_t begin, int64_t end) {
    BroadcastPlan::Offsets offsets{};
    std::array<int64_t, 16> index{};
    int64_t rest = begin;
    for (int d = dims - 1; d >= 0; --d) {
      index[d] = rest % plan.outer[d];
      rest /= plan.outer[d];
      for (int i = 0; i < kMaxBroadcastOperands; ++i) offsets[i] += index[d] * plan.strides[d][i];
    }
    for (int64_t row = begin; row < end; ++row) {
      f(offsets, row * plan.inner, plan.inner);
      for (int d = dims - 1; d >= 0; --d) {
        for (int i = 0; i < kMaxBroadcastOperands; ++i) offsets[i] += plan.strides[d][i];
        if (++index[d] < plan.outer[d]) break;
        for (int i = 0; i < kMaxBroadcastOperands; ++i) {
          offsets[i] -= plan.strides[d][i] * plan.outer[d];
        }
        index[d] = 0;
      }
    }
  });
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_ELEMENTWISE_BROADCAST_H_
