#include "kernels/experts/experts.h"

#include "gmock/gmock.h"
#include "kernels/testing.h"
#include "runtime/base/status_testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

// Rows that choose `choices` of `experts` each.
struct Case {
  int64_t rows, choices, experts, depth, columns;
};
// Few rows and many; sizes that tiles of tensor cores take, and odd ones.
const Case kCases[] = {{1, 1, 1, 1, 1},    {5, 2, 3, 7, 5},      {3, 2, 64, 16, 24},
                       {70, 2, 4, 40, 72}, {300, 4, 5, 64, 136}, {9, 0, 3, 8, 8}};

Tensor Choices(DType dtype, const Shape& shape, int64_t experts) {
  return Tensor::Random(dtype, shape, 3, 0, static_cast<double>(experts));
}

// Where the element of a matrix of the weight is.
int64_t WeightAt(const Case& c, bool transposed, int64_t expert, int64_t k, int64_t n) {
  return expert * c.depth * c.columns + (transposed ? n * c.depth + k : k * c.columns + n);
}

Shape WeightShape(const Case& c, bool transposed) {
  return transposed ? Shape{c.experts, c.columns, c.depth} : Shape{c.experts, c.depth, c.columns};
}

// Calls f(element of the input, of the weight, of the result or its cotangent) for each product of
// the piece [first, first + experts) of them.
template <typename F>
void ForEachProduct(const Case& c, bool shared, bool transposed, const Tensor& choice,
                    int64_t first, const F& f) {
  const std::vector<double> of = choice.values();
  for (int64_t i = 0; i < c.rows * c.choices; ++i) {
    const int64_t row = shared ? i / c.choices : i;
    const int64_t expert = static_cast<int64_t>(of[i]) - first;
    if (expert < 0 || expert >= c.experts) continue;
    for (int64_t n = 0; n < c.columns; ++n) {
      for (int64_t k = 0; k < c.depth; ++k) {
        f(row * c.depth + k, WeightAt(c, transposed, expert, k, n), i * c.columns + n);
      }
    }
  }
}

std::vector<double> Linear(const Case& c, bool shared, bool transposed, const Tensor& input,
                           const Tensor& weight, const Tensor& choice, int64_t first = 0) {
  const std::vector<double> x = input.values(), w = weight.values();
  std::vector<double> result(c.rows * c.choices * c.columns);
  ForEachProduct(c, shared, transposed, choice, first,
                 [&](int64_t i, int64_t j, int64_t k) { result[k] += x[i] * w[j]; });
  return result;
}

std::vector<double> WeightGrad(const Case& c, bool shared, bool transposed, const Tensor& input,
                               const Tensor& cotangent, const Tensor& choice, int64_t first = 0) {
  const std::vector<double> x = input.values(), dy = cotangent.values();
  std::vector<double> result(c.experts * c.depth * c.columns);
  ForEachProduct(c, shared, transposed, choice, first,
                 [&](int64_t i, int64_t j, int64_t k) { result[j] += x[i] * dy[k]; });
  return result;
}

Shape InputShape(const Case& c, bool shared) {
  return shared ? Shape{c.rows, c.depth} : Shape{c.rows, c.choices, c.depth};
}

TEST(ExpertsTest, LinearInAllLayouts) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Case& c : kCases) {
      for (int flags = 0; flags < 4; ++flags) {
        const bool shared = flags & 1, transposed = flags & 2;
        SCOPED_TRACE(::testing::Message() << c.rows << "x" << c.experts << shared << transposed);
        const Tensor x = Tensor::Random(dtype, InputShape(c, shared), 1);
        const Tensor w = Tensor::Random(dtype, WeightShape(c, transposed), 2);
        const Tensor of = Choices(DType::kI64, {c.rows, c.choices}, c.experts);
        ExpectClose(
            RunKernel("expert_linear", {x, w, of}, {{dtype, {c.rows, c.choices, c.columns}}},
                      {{"transpose_weight", int64_t{transposed}}})[0],
            Linear(c, shared, transposed, x, w, of), 5);
      }
    }
  }
}

TEST(ExpertsTest, WeightGradInAllLayouts) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Case& c : kCases) {
      for (int flags = 0; flags < 8; ++flags) {
        const bool shared = flags & 1, transposed = flags & 2, wide = flags & 4;
        if (wide && dtype != DType::kBF16) continue;
        SCOPED_TRACE(::testing::Message() << c.rows << "x" << c.experts << shared << transposed);
        const Tensor x = Tensor::Random(dtype, InputShape(c, shared), 1);
        const Tensor dy = Tensor::Random(dtype, {c.rows, c.choices, c.columns}, 2);
        const Tensor of = Choices(DType::kI64, {c.rows, c.choices}, c.experts);
        ExpectClose(RunKernel("expert_linear_weight_grad", {x, dy, of},
                              {{wide ? DType::kF32 : dtype, WeightShape(c, transposed)}},
                              {{"transpose_weight", int64_t{transposed}}})[0],
                    WeightGrad(c, shared, transposed, x, dy, of), 10);
      }
    }
  }
}

// In the addend's place and apart from it; one of the experts is chosen by no row.
TEST(ExpertsTest, WeightGradPlusAnAddend) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Case& c : {Case{70, 2, 4, 40, 72}, Case{5, 1, 3, 7, 5}, Case{9, 0, 3, 8, 8}}) {
      for (bool transposed : {false, true}) {
        const DType wide = dtype == DType::kBF16 ? DType::kF32 : dtype;
        const Tensor x = Tensor::Random(dtype, InputShape(c, true), 1);
        const Tensor dy = Tensor::Random(dtype, {c.rows, c.choices, c.columns}, 2);
        const Tensor of = Choices(DType::kI64, {c.rows, c.choices}, c.experts - 1);
        const Tensor addend = Tensor::Random(wide, WeightShape(c, transposed), 4);
        std::vector<double> expected = WeightGrad(c, true, transposed, x, dy, of);
        const std::vector<double> added = addend.values();
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += added[i];
        for (int in_place : {-1, 3}) {
          ExpectClose(
              RunKernel("expert_linear_weight_grad_add", {x, dy, of, addend}, {addend.spec()},
                        {{"transpose_weight", int64_t{transposed}}}, in_place)[0],
              expected, 10);
        }
      }
    }
  }
}

// All rows choose the last of many experts, by a negative index of 32 bits.
TEST(ExpertsTest, OneExpertForAll) {
  const Case c{150, 1, 9, 24, 40};
  const Tensor x = Tensor::Random(DType::kF32, {c.rows, c.depth}, 1);
  const Tensor w = Tensor::Random(DType::kF32, WeightShape(c, false), 2);
  const Tensor dy = Tensor::Random(DType::kF32, {c.rows, 1, c.columns}, 4);
  const Tensor of({DType::kI32, {c.rows, 1}}, std::vector<double>(c.rows, -1));
  const Tensor last({DType::kI32, {c.rows, 1}}, std::vector<double>(c.rows, c.experts - 1.0));
  ExpectClose(RunKernel("expert_linear", {x, w, of}, {dy.spec()})[0],
              Linear(c, true, false, x, w, last), 5);
  ExpectClose(RunKernel("expert_linear_weight_grad", {x, dy, of}, {w.spec()})[0],
              WeightGrad(c, true, false, x, dy, last), 10);
}

// A piece of the experts gives zeros for the others' choices, and counts nothing of them.
TEST(ExpertsTest, PieceOfTheExperts) {
  const Case c{70, 2, 3, 16, 24};
  for (DType dtype : kFloatsAndBF16) {
    for (int64_t first : {0, 3, 6}) {
      const Tensor x = Tensor::Random(dtype, {c.rows, c.depth}, 1);
      const Tensor w = Tensor::Random(dtype, WeightShape(c, true), 2);
      const Tensor dy = Tensor::Random(dtype, {c.rows, c.choices, c.columns}, 4);
      const Tensor of = Choices(DType::kI64, {c.rows, c.choices}, 9);
      const Tensor begin = Tensor::Scalar(DType::kI64, static_cast<double>(first));
      const Attributes piece = {{"experts", int64_t{9}}, {"transpose_weight", int64_t{1}}};
      ExpectClose(RunKernel("expert_linear", {x, w, of, begin}, {dy.spec()}, piece)[0],
                  Linear(c, true, true, x, w, of, first), 5);
      std::vector<double> grad = WeightGrad(c, true, true, x, dy, of, first);
      ExpectClose(RunKernel("expert_linear_weight_grad", {x, dy, of, begin}, {w.spec()}, piece)[0],
                  grad, 10);
      const Tensor ones({dtype == DType::kBF16 ? DType::kF32 : dtype, w.shape()},
                        std::vector<double>(grad.size(), 1));
      for (double& each : grad) each += 1;
      ExpectClose(RunKernel("expert_linear_weight_grad_add", {x, dy, of, begin, ones},
                            {ones.spec()}, piece)[0],
                  grad, 10);
    }
  }
}

// Sizes that are no multiple of 8 rows or columns, and more than one tile of each.
TEST(ExpertsTest, TilesThatAreNotFull) {
  for (const Case& c : {Case{400, 2, 3, 152, 264}, Case{260, 1, 2, 30, 130}}) {
    const Tensor x = Tensor::Random(DType::kBF16, {c.rows, c.depth}, 1);
    const Tensor w = Tensor::Random(DType::kBF16, WeightShape(c, false), 2);
    const Tensor dy = Tensor::Random(DType::kBF16, {c.rows, c.choices, c.columns}, 4);
    const Tensor of = Choices(DType::kI64, {c.rows, c.choices}, c.experts);
    ExpectClose(RunKernel("expert_linear", {x, w, of}, {dy.spec()})[0],
                Linear(c, true, false, x, w, of), 10);
    ExpectClose(RunKernel("expert_linear_weight_grad", {x, dy, of}, {w.spec()})[0],
                WeightGrad(c, true, false, x, dy, of), 20);
  }
}

TEST(ExpertsTest, ChoiceOfNoExpertIsAnError) {
  const Tensor x = Tensor::Random(DType::kF32, {3, 8}, 1);
  const Tensor w = Tensor::Random(DType::kF32, {4, 8, 8}, 2);
  for (double wrong : {4.0, -5.0}) {
    const Tensor of({DType::kI64, {3, 1}}, {0, wrong, 1});
    EXPECT_THAT(TryKernel("expert_linear", {x, w, of}, {{DType::kF32, {3, 1, 8}}}).status(),
                runtime::StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("at position 1 is outside [-4, 4)")));
  }
}

TEST(ExpertsTest, ShapesThatDoNotFitAreInvalid) {
  const TensorSpec x{DType::kF32, {3, 8}}, w{DType::kF32, {4, 8, 6}}, of{DType::kI64, {3, 2}};
  const TensorSpec y{DType::kF32, {3, 2, 6}};
  const auto status = [](const char* kernel, std::vector<TensorSpec> operands, TensorSpec result) {
    KernelSpec spec;
    spec.kernel = kernel;
    spec.operands = std::move(operands);
    spec.results = {std::move(result)};
    return std::string(kernel) == "expert_linear" ? ExpertShape::OfLinear(spec).status()
                                                  : ExpertShape::OfWeightGrad(spec).status();
  };
  EXPECT_TRUE(status("expert_linear", {x, w, of}, y).ok());
  EXPECT_TRUE(status("expert_linear_weight_grad", {x, y, of}, w).ok());
  const TensorSpec other{DType::kF32, {5, 8}}, flat{DType::kF32, {32, 6}};
  const TensorSpec wide{DType::kF64, {4, 8, 6}}, scalar{DType::kI64, {}};
  for (const absl::Status& wrong :
       {status("expert_linear", {other, w, of}, y), status("expert_linear", {x, flat, of}, y),
        status("expert_linear", {x, wide, of}, y), status("expert_linear", {x, w, scalar}, y),
        status("expert_linear", {x, w, of}, x), status("expert_linear_weight_grad", {x, x, of}, w),
        status("expert_linear_weight_grad", {x, y, of}, flat),
        status("expert_linear_weight_grad", {x, y, of}, wide)}) {
    EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace oriel::kernels
