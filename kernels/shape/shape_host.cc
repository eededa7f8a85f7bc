#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/shape/shape.h"
#include "kernels/shape/strided_copy.h"
#include "runtime/base/float16.h"

namespace oriel::kernels {

uint64_t ElementBits(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return __builtin_bit_cast(uint64_t, value);
    case DType::kF32:
      return __builtin_bit_cast(uint32_t, static_cast<float>(value));
    case DType::kF16:
      return runtime::FloatToHalf(static_cast<float>(value));
    case DType::kBF16:
      return runtime::FloatToBFloat16(static_cast<float>(value));
    case DType::kBool:
      return value != 0;
    default:
      // Two's complement: the low bytes are right for every width.
      return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

namespace {

template <typename T>
void FillSized(void* target, int64_t count, uint64_t bits, int num_threads) {
  T* to = static_cast<T*>(target);
  const T value = static_cast<T>(bits);
  ParallelForElements(num_threads, count, 1, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] = value;
  });
}

}  // namespace

void FillElements(void* target, int64_t count, int64_t element_bytes, uint64_t bits,
                  int num_threads) {
  switch (element_bytes) {
    case 8:
      return FillSized<uint64_t>(target, count, bits, num_threads);
    case 4:
      return FillSized<uint32_t>(target, count, bits, num_threads);
    case 2:
      return FillSized<uint16_t>(target, count, bits, num_threads);
    default:
      return FillSized<uint8_t>(target, count, bits, num_threads);
  }
}

namespace {

using Dims = std::vector<StridedCopy::Dim>;

KernelFn LaunchCopy(const StridedCopy& copy, int threads) {
  return [copy, threads](const KernelArgs& args) {
    copy.Run(args.operands[0], args.results[0], threads);
    return absl::OkStatus();
  };
}

template <typename T>
KernelFn LaunchIota(const KernelSpec& spec, int64_t dim) {
  const Shape& shape = spec.results[0].shape;
  const int64_t outer = SizeOf(shape, 0, dim);
  const int64_t n = shape[dim];
  const int64_t inner = SizeOf(shape, dim + 1, spec.results[0].rank());
  return [outer, n, inner](const KernelArgs& args) {
    T* to = args.result<T>(0);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < inner; ++j) *to++ = static_cast<T>(i);
      }
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<KernelFn> MakeIota(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 0, 1));
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", spec.results[0].rank()));
  switch (spec.results[0].dtype) {
    case DType::kI64:
      return LaunchIota<int64_t>(spec, dim);
    case DType::kI32:
      return LaunchIota<int32_t>(spec, dim);
    case DType::kF32:
      return LaunchIota<float>(spec, dim);
    case DType::kF64:
      return LaunchIota<double>(spec, dim);
    default:
      return Unsupported(spec, "gives i64, i32, f32 and f64");
  }
}

absl::StatusOr<KernelFn> MakeFill(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 0, 1));
  ORIEL_ASSIGN_OR_RETURN(const double value, spec.Float("value"));
  const uint64_t bits = ElementBits(spec.results[0].dtype, value);
  const int64_t count = spec.results[0].num_elements();
  const int64_t bytes = runtime::DTypeBytes(spec.results[0].dtype);
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    FillElements(args.results[0], count, bytes, bits, threads);
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeReshape(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const int64_t bytes = spec.results[0].bytes();
  if (spec.operands[0].dtype != spec.results[0].dtype || spec.operands[0].bytes() != bytes) {
    return Malformed(spec, "operand and result differ in type or number of elements");
  }
  return KernelFn([bytes](const KernelArgs& args) {
    if (args.operands[0] != args.results[0] && bytes > 0) {
      std::memcpy(args.results[0], args.operands[0], bytes);
    }
    return absl::OkStatus();
  });
}

// The checks that the copying kernels share: one result, the first operand's type, few dimensions.
absl::Status CheckCopy(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  if (spec.operands[0].dtype != spec.results[0].dtype) {
    return Malformed(spec, "operand and result differ in type");
  }
  if (spec.results[0].rank() > 16) return Unsupported(spec, "more than 16 dimensions");
  return absl::OkStatus();
}

absl::StatusOr<KernelFn> MakeTranspose(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckCopy(spec));
  const TensorSpec& input = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> permutation, spec.Ints("permutation"));
  std::vector<bool> seen(input.rank(), false);
  Shape expected;
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= input.rank() || seen[dim]) return Malformed(spec, "no permutation");
    seen[dim] = true;
    expected.push_back(input.shape[dim]);
  }
  if (static_cast<int64_t>(expected.size()) != input.rank())
    return Malformed(spec, "no permutation");
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, input.dtype, expected));
  const std::vector<int64_t> source = RowMajorStrides(input.shape);
  const std::vector<int64_t> target = RowMajorStrides(expected);
  Dims dims;
  for (size_t i = 0; i < permutation.size(); ++i) {
    dims.push_back({expected[i], source[permutation[i]], target[i]});
  }
  return LaunchCopy(StridedCopy(dims, 0, 0, runtime::DTypeBytes(input.dtype)), spec.num_threads);
}

absl::StatusOr<KernelFn> MakeBroadcast(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckCopy(spec));
  const TensorSpec& input = spec.operands[0];
  const TensorSpec& result = spec.results[0];
  const std::vector<int64_t> source = RowMajorStrides(input.shape);
  const std::vector<int64_t> target = RowMajorStrides(result.shape);
  const int64_t added = result.rank() - input.rank();
  if (added < 0) return Malformed(spec, "the result has a lower rank");
  Dims dims;
  for (int64_t i = 0; i < result.rank(); ++i) {
    const int64_t size = i < added ? 1 : input.shape[i - added];
    if (size != 1 && size != result.shape[i]) {
      return Malformed(
          spec, absl::StrCat(input.ToString(), " does not broadcast to ", result.ToString()));
    }
    dims.push_back({result.shape[i], size == 1 ? 0 : source[i - added], target[i]});
  }
  return LaunchCopy(StridedCopy(dims, 0, 0, runtime::DTypeBytes(input.dtype)), spec.num_threads);
}

absl::StatusOr<KernelFn> MakeSlice(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckCopy(spec));
  const TensorSpec& input = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, spec.Ints("starts"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> limits, spec.Ints("limits"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, spec.Ints("strides"));
  const size_t rank = input.shape.size();
  if (starts.size() != rank || limits.size() != rank || strides.size() != rank) {
    return Malformed(spec, "starts, limits and strides need one entry per dimension");
  }
  Shape expected;
  for (size_t i = 0; i < rank; ++i) {
    if (starts[i] < 0 || starts[i] > limits[i] || limits[i] > input.shape[i] || strides[i] < 1) {
      return Malformed(spec, absl::StrCat("the box leaves the input in dimension ", i));
    }
    expected.push_back((limits[i] - starts[i] + strides[i] - 1) / strides[i]);
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, input.dtype, expected));
  const std::vector<int64_t> source = RowMajorStrides(input.shape);
  const std::vector<int64_t> target = RowMajorStrides(expected);
  Dims dims;
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    offset += starts[i] * source[i];
    dims.push_back({expected[i], source[i] * strides[i], target[i]});
  }
  return LaunchCopy(StridedCopy(dims, offset, 0, runtime::DTypeBytes(input.dtype)),
                    spec.num_threads);
}

absl::StatusOr<KernelFn> MakePad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckCopy(spec));
  const TensorSpec& input = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> low, spec.Ints("low"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> high, spec.Ints("high"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> interior, spec.Ints("interior"));
  double value = 0;
  if (spec.attributes.count("value") != 0) {
    ORIEL_ASSIGN_OR_RETURN(value, spec.Float("value"));
  }
  const size_t rank = input.shape.size();
  if (low.size() != rank || high.size() != rank || interior.size() != rank ||
      spec.results[0].shape.size() != rank) {
    return Malformed(spec, "low, high, interior and the result need one entry per dimension");
  }
  Shape expected;
  for (size_t i = 0; i < rank; ++i) {
    if (low[i] < 0 || high[i] < 0 || interior[i] < 0) return Malformed(spec, "negative padding");
    const int64_t gaps = input.shape[i] > 0 ? input.shape[i] - 1 : 0;
    // Before the sum below, which must not overflow.
    const int64_t limit = spec.results[0].shape[i];
    if (low[i] > limit || high[i] > limit || (gaps > 0 && interior[i] > limit / gaps)) {
      return Malformed(spec, absl::StrCat("dimension ", i, " of the result has no room"));
    }
    expected.push_back(low[i] + input.shape[i] + gaps * interior[i] + high[i]);
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, input.dtype, expected));
  const std::vector<int64_t> source = RowMajorStrides(input.shape);
  const std::vector<int64_t> target = RowMajorStrides(expected);
  Dims dims;
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    offset += low[i] * target[i];
    dims.push_back({input.shape[i], source[i], target[i] * (interior[i] + 1)});
  }
  const int64_t bytes = runtime::DTypeBytes(input.dtype);
  const StridedCopy copy(dims, 0, offset, bytes);
  const uint64_t bits = ElementBits(input.dtype, value);
  const int64_t count = spec.results[0].num_elements();
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    FillElements(args.results[0], count, bytes, bits, threads);
    copy.Run(args.operands[0], args.results[0], threads);
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeConcat(const KernelSpec& spec) {
  if (spec.operands.empty() || spec.results.size() != 1) {
    return Malformed(spec, "needs an operand and one result");
  }
  const TensorSpec& result = spec.results[0];
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", result.rank()));
  const int64_t inner = SizeOf(result.shape, dim + 1, result.rank());
  const int64_t outer = SizeOf(result.shape, 0, dim);
  std::vector<StridedCopy> copies;
  int64_t place = 0;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    if (spec.operands[i].rank() != result.rank()) return Malformed(spec, "operands differ in rank");
    const int64_t size = spec.operands[i].shape[dim];
    Shape expected = result.shape;
    expected[dim] = size;
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, result.dtype, expected));
    const Dims dims = {{outer, size * inner, result.shape[dim] * inner}, {size * inner, 1, 1}};
    copies.emplace_back(dims, 0, place * inner, runtime::DTypeBytes(result.dtype));
    place += size;
  }
  if (place != result.shape[dim]) return Malformed(spec, "sizes don't add up to the result's");
  const int threads = spec.num_threads;
  return KernelFn([copies, threads](const KernelArgs& args) {
    for (size_t i = 0; i < copies.size(); ++i) {
      copies[i].Run(args.operands[i], args.results[0], threads);
    }
    return absl::OkStatus();
  });
}

ORIEL_REGISTER_HOST_KERNEL("iota", 0, MakeIota);
ORIEL_REGISTER_HOST_KERNEL("fill", 0, MakeFill);
ORIEL_REGISTER_HOST_KERNEL("reshape", 0, MakeReshape);
ORIEL_REGISTER_HOST_KERNEL("transpose", 0, MakeTranspose);
ORIEL_REGISTER_HOST_KERNEL("broadcast", 0, MakeBroadcast);
ORIEL_REGISTER_HOST_KERNEL("slice", 0, MakeSlice);
ORIEL_REGISTER_HOST_KERNEL("pad", 0, MakePad);
ORIEL_REGISTER_HOST_KERNEL("concat", 0, MakeConcat);

}  // namespace
}  // namespace oriel::kernels
