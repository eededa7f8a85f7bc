// Runs single kernels on random tensors, for tests.
//
// Results are poisoned before each run, and a kernel is run twice, on the host with one and with
// three threads: the two must agree in every bit. Tests are linked with the device of their
// kernels: testing_host.cc, or cuda/testing.cc.
#ifndef ORIEL_KERNELS_TESTING_H_
#define ORIEL_KERNELS_TESTING_H_

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "kernels/kernel.h"

namespace oriel::kernels::testing {

// A tensor with memory of its own, aligned to 64 bytes.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorSpec spec);
  // Converts `values`, which are as many as `spec` has elements.
  Tensor(TensorSpec spec, const std::vector<double>& values);

  // Uniform in [low, high); whole numbers for the integer types.
  static Tensor Random(DType dtype, const Shape& shape, int seed, double low = -1, double high = 1);
  static Tensor Scalar(DType dtype, double value) { return Tensor({dtype, {}}, {value}); }

  const TensorSpec& spec() const { return spec_; }
  const Shape& shape() const { return spec_.shape; }
  int64_t size() const { return spec_.num_elements(); }
  void* data() { return storage_.data() + offset_; }
  const void* data() const { return storage_.data() + offset_; }
  // Every element; f16 and bf16 are widened.
  std::vector<double> values() const;
  // Fills the memory with a pattern that is NaN, or a wild integer.
  void Poison();

 private:
  friend Tensor Clone(const Tensor& tensor);
  TensorSpec spec_;
  std::vector<unsigned char> storage_;
  size_t offset_ = 0;
};

// Elements [first, first + size) of the last dimension.
Tensor ColumnsOf(const Tensor& x, int64_t first, int64_t size);

// std::vector may move on a copy, and the alignment with it.
Tensor Clone(const Tensor& tensor);

using Attributes = std::map<std::string, Attribute>;

// Prepares and runs `kernel`; gives its results, or the first error. If `in_place` is not -1,
// result 0 is the buffer of (a copy of) that operand.
absl::StatusOr<std::vector<Tensor>> TryKernel(const std::string& kernel,
                                              const std::vector<Tensor>& operands,
                                              const std::vector<TensorSpec>& results,
                                              const Attributes& attributes = {}, int in_place = -1);

// The same for a run that must succeed.
std::vector<Tensor> RunKernel(const std::string& kernel, const std::vector<Tensor>& operands,
                              const std::vector<TensorSpec>& results,
                              const Attributes& attributes = {}, int in_place = -1);

// Relative to max(1, |expected|) and the type: 2e-6 for f32 (times `slack`), 1e-13 for f64, for
// bf16 one rounding (2^-8) of what f32 may be; integers and booleans are equal.
void ExpectClose(const Tensor& actual, const std::vector<double>& expected, double slack = 1);

// The slack of gradients that are sums over many rows: 1 where the device's kernels add in double.
extern const double kRowSumSlack;

// The types that float kernels are tested in.
inline const DType kFloats[] = {DType::kF32, DType::kF64};
inline const DType kFloatsAndBF16[] = {DType::kF32, DType::kF64, DType::kBF16};

}  // namespace oriel::kernels::testing

#endif  // ORIEL_KERNELS_TESTING_H_
