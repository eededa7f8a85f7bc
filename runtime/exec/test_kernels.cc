// Kernels of the plans by hand, in f32, and one that refuses its data.
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "kernels/kernel.h"

namespace oriel::runtime {
namespace {

using kernels::KernelArgs;
using kernels::KernelFn;
using kernels::KernelSpec;

// result = a * b; b repeats over the rows of a.
absl::StatusOr<KernelFn> MakeMultiply(const KernelSpec& spec) {
  const int64_t n = spec.operands[0].num_elements();
  const int64_t columns = spec.operands[1].num_elements();
  return KernelFn([=](const KernelArgs& args) {
    for (int64_t i = 0; i < n; ++i) {
      args.result<float>(0)[i] = args.operand<float>(0)[i] * args.operand<float>(1)[i % columns];
    }
    return absl::OkStatus();
  });
}

// result = b[0] * sum of a
absl::StatusOr<KernelFn> MakeSum(const KernelSpec& spec) {
  const int64_t n = spec.operands[0].num_elements();
  return KernelFn([=](const KernelArgs& args) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += args.operand<float>(0)[i];
    *args.result<float>(0) = args.operand<float>(1)[0] * sum;
    return absl::OkStatus();
  });
}

// result = sum of the rows of a
absl::StatusOr<KernelFn> MakeSumRows(const KernelSpec& spec) {
  const int64_t rows = spec.operands[0].shape[0];
  const int64_t columns = spec.operands[0].shape[1];
  return KernelFn([=](const KernelArgs& args) {
    for (int64_t i = 0; i < columns; ++i) {
      float sum = 0;
      for (int64_t row = 0; row < rows; ++row) sum += args.operand<float>(0)[row * columns + i];
      args.result<float>(0)[i] = sum;
    }
    return absl::OkStatus();
  });
}

// result = a + b
absl::StatusOr<KernelFn> MakeAdd(const KernelSpec& spec) {
  const int64_t n = spec.operands[0].num_elements();
  return KernelFn([=](const KernelArgs& args) {
    for (int64_t i = 0; i < n; ++i) {
      args.result<float>(0)[i] = args.operand<float>(0)[i] + args.operand<float>(1)[i];
    }
    return absl::OkStatus();
  });
}

// result = a - c * b
absl::StatusOr<KernelFn> MakeDescend(const KernelSpec& spec) {
  const int64_t n = spec.operands[0].num_elements();
  return KernelFn([=](const KernelArgs& args) {
    for (int64_t i = 0; i < n; ++i) {
      args.result<float>(0)[i] =
          args.operand<float>(0)[i] - args.operand<float>(2)[0] * args.operand<float>(1)[i];
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeZero(const KernelSpec& spec) {
  const int64_t bytes = spec.results[0].bytes();
  return KernelFn([=](const KernelArgs& args) {
    std::memset(args.results[0], 0, bytes);
    return absl::OkStatus();
  });
}

// Takes `milliseconds`, without the core.
absl::StatusOr<KernelFn> MakeSleep(const KernelSpec& spec) {
  absl::StatusOr<int64_t> time = spec.Int("milliseconds");
  if (!time.ok()) return time.status();
  return KernelFn([time = std::chrono::milliseconds(*time)](const KernelArgs&) {
    std::this_thread::sleep_for(time);
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeFail(const KernelSpec& spec) {
  absl::StatusOr<int64_t> index = spec.Int("index");
  if (!index.ok()) return index.status();
  return KernelFn([index = *index](const KernelArgs&) {
    return absl::OutOfRangeError("index " + std::to_string(index) + " is not in [0, 7)");
  });
}

ORIEL_REGISTER_HOST_KERNEL("test_multiply", 0, MakeMultiply);
ORIEL_REGISTER_HOST_KERNEL("test_add", 0, MakeAdd);
ORIEL_REGISTER_HOST_KERNEL("test_sum", 0, MakeSum);
ORIEL_REGISTER_HOST_KERNEL("test_sum_rows", 0, MakeSumRows);
ORIEL_REGISTER_HOST_KERNEL("test_descend", 0, MakeDescend);
ORIEL_REGISTER_HOST_KERNEL("fill", 0, MakeZero);
ORIEL_REGISTER_HOST_KERNEL("test_sleep", 0, MakeSleep);
ORIEL_REGISTER_HOST_KERNEL("test_fail", 0, MakeFail);

}  // namespace
}  // namespace oriel::runtime
