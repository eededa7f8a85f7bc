#include "kernels/linear/linear.h"

#include <algorithm>

#include "kernels/common/checks.h"

namespace oriel::kernels {
namespace {

// The type of the result, a product of operand 0; InvalidArgument if it does not fit.
absl::StatusOr<DType> CheckProduct(const KernelSpec& spec, const Shape& shape) {
  const DType type = SumType(spec.operands[0].dtype, spec.results[0].dtype);
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, type, shape));
  return type;
}

// The product of sizes from a file, which may be too large where the tensor has another one of 0.
absl::StatusOr<int64_t> CheckedSize(const KernelSpec& spec, const Shape& sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) {
    if (__builtin_mul_overflow(product, size, &product)) return Malformed(spec, "sizes don't fit");
  }
  return product;
}

// The last operand is added to result 0.
absl::Status CheckAddend(const KernelSpec& spec) {
  const TensorSpec& result = spec.results[0];
  return CheckOperand(spec, spec.operands.size() - 1, result.dtype, result.shape);
}

}  // namespace

absl::StatusOr<GemmShape> MatmulShape(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  const Shape& lhs = spec.operands[0].shape;
  const Shape& rhs = spec.operands[1].shape;
  const int64_t left = spec.operands[0].rank(), right = spec.operands[1].rank();
  GemmShape shape;
  ORIEL_ASSIGN_OR_RETURN(shape.transpose_a, FlagOr(spec, "transpose_lhs", false));
  ORIEL_ASSIGN_OR_RETURN(shape.transpose_b, FlagOr(spec, "transpose_rhs", false));
  ORIEL_ASSIGN_OR_RETURN(const int64_t rows, IntOr(spec, "row_dims", 1));
  ORIEL_ASSIGN_OR_RETURN(const int64_t sum, IntOr(spec, "sum_dims", 1));
  ORIEL_ASSIGN_OR_RETURN(const int64_t columns, IntOr(spec, "column_dims", 1));
  // Each alone first: counts from a file may be too large to add up.
  const bool fit = rows >= 1 && rows <= left && sum >= 1 && sum <= left && columns >= 1 &&
                   columns <= right && rows + sum <= left &&
                   left - rows - sum == right - sum - columns;
  if (!fit) return Malformed(spec, "ranks don't fit");
  const int64_t batch = left - rows - sum;
  // Where each begins in its operand.
  const int64_t m = batch + (shape.transpose_a ? sum : 0);
  const int64_t k = batch + (shape.transpose_a ? 0 : rows);
  const int64_t n = batch + (shape.transpose_b ? 0 : sum);
  const auto part = [](const Shape& from, int64_t begin, int64_t count) {
    return Shape(from.begin() + begin, from.begin() + begin + count);
  };
  const auto join = [&](const Shape& first, const Shape& second) {
    Shape joined = part(lhs, 0, batch);
    joined.insert(joined.end(), first.begin(), first.end());
    joined.insert(joined.end(), second.begin(), second.end());
    return joined;
  };
  const Shape m_sizes = part(lhs, m, rows), k_sizes = part(lhs, k, sum);
  const Shape n_sizes = part(rhs, n, columns);
  ORIEL_ASSIGN_OR_RETURN(shape.batch, CheckedSize(spec, part(lhs, 0, batch)));
  ORIEL_ASSIGN_OR_RETURN(shape.m, CheckedSize(spec, m_sizes));
  ORIEL_ASSIGN_OR_RETURN(shape.k, CheckedSize(spec, k_sizes));
  ORIEL_ASSIGN_OR_RETURN(shape.n, CheckedSize(spec, n_sizes));
  shape.factors = spec.operands[0].dtype;
  ORIEL_RETURN_IF_ERROR(CheckOperand(
      spec, 1, shape.factors, shape.transpose_b ? join(n_sizes, k_sizes) : join(k_sizes, n_sizes)));
  ORIEL_ASSIGN_OR_RETURN(shape.result, CheckProduct(spec, join(m_sizes, n_sizes)));
  return shape;
}

absl::StatusOr<GemmShape> LinearShape(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  const TensorSpec& input = spec.operands[0];
  const TensorSpec& weight = spec.operands[1];
  if (input.rank() < 1 || weight.rank() != 2) return Malformed(spec, "ranks don't fit");
  GemmShape shape;
  ORIEL_ASSIGN_OR_RETURN(shape.transpose_b, FlagOr(spec, "transpose_weight", false));
  shape.m = SizeOf(input.shape, 0, input.rank() - 1);
  shape.k = input.shape.back();
  shape.n = weight.shape[shape.transpose_b ? 0 : 1];
  shape.bias = spec.operands.size() == 3;
  shape.factors = input.dtype;
  const Shape stored = shape.transpose_b ? Shape{shape.n, shape.k} : Shape{shape.k, shape.n};
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, input.dtype, stored));
  if (shape.bias) {
    shape.added = SumType(input.dtype, spec.operands[2].dtype);
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, shape.added, {shape.n}));
  }
  Shape result = input.shape;
  result.back() = shape.n;
  ORIEL_ASSIGN_OR_RETURN(shape.result, CheckProduct(spec, result));
  return shape;
}

absl::StatusOr<GemmShape> LinearAddShape(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 4, 1));
  KernelSpec product = spec;
  product.operands.pop_back();
  ORIEL_ASSIGN_OR_RETURN(GemmShape shape, LinearShape(product));
  ORIEL_RETURN_IF_ERROR(CheckAddend(spec));
  shape.accumulate = true;
  return shape;
}

absl::StatusOr<GemmShape> LinearWeightGradShape(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  const TensorSpec& input = spec.operands[0];
  const TensorSpec& cotangent = spec.operands[1];
  if (input.rank() < 1 || cotangent.rank() != input.rank())
    return Malformed(spec, "ranks don't fit");
  ORIEL_ASSIGN_OR_RETURN(const bool transposed, FlagOr(spec, "transpose_weight", false));
  GemmShape shape;
  shape.transpose_a = true;
  shape.m = input.shape.back();
  shape.n = cotangent.shape.back();
  shape.k = SizeOf(input.shape, 0, input.rank() - 1);
  shape.factors = input.dtype;
  Shape expected = input.shape;
  expected.back() = shape.n;
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, input.dtype, expected));
  if (transposed) std::swap(shape.m, shape.n);
  ORIEL_ASSIGN_OR_RETURN(shape.result, CheckProduct(spec, {shape.m, shape.n}));
  shape.accumulate = spec.operands.size() == 3;
  if (shape.accumulate) ORIEL_RETURN_IF_ERROR(CheckAddend(spec));
  return shape;
}

}  // namespace oriel::kernels
