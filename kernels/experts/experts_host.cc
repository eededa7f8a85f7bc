// Products of an expert's rows, as many at a time as one of several prepared products takes:
// packed, multiplied, and put in their places.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/experts/experts.h"
#include "kernels/linear/gemm.h"

namespace oriel::kernels {
namespace {

// Choices by expert, those of one in order; behind all, those of other pieces' experts.
struct SortedChoices {
  std::vector<int64_t> order;
  std::vector<int64_t> begin;  // of each expert, of other pieces', and the end
};

template <typename I>
absl::Status Sort(const std::string& kernel, const I* choices, const ExpertShape& shape,
                  int64_t first, SortedChoices& sorted) {
  const int64_t all = shape.piece.whole;
  // The expert of each, `experts` for those of other pieces.
  std::vector<int64_t> of(static_cast<size_t>(shape.choices));
  sorted.begin.assign(static_cast<size_t>(shape.experts) + 2, 0);
  for (int64_t i = 0; i < shape.choices; ++i) {
    const int64_t choice = choices[i];
    if (choice < -all || choice >= all) {
      return absl::InvalidArgumentError(absl::StrCat(kernel, ": choice ", choice, " at position ",
                                                     i, " is outside [", -all, ", ", all, ")"));
    }
    const int64_t expert = (choice < 0 ? choice + all : choice) - first;
    of[i] = expert >= 0 && expert < shape.experts ? expert : shape.experts;
    ++sorted.begin[of[i] + 1];
  }
  for (int64_t e = 0; e <= shape.experts; ++e) sorted.begin[e + 1] += sorted.begin[e];
  std::vector<int64_t> next(sorted.begin.begin(), sorted.begin.end() - 1);
  sorted.order.resize(static_cast<size_t>(shape.choices));
  for (int64_t i = 0; i < shape.choices; ++i) sorted.order[next[of[i]]++] = i;
  return absl::OkStatus();
}

absl::Status SortChoices(const std::string& kernel, const void* choices, const ExpertShape& shape,
                         const KernelArgs& args, SortedChoices& sorted) {
  ORIEL_ASSIGN_OR_RETURN(const int64_t first, shape.piece.First(args));
  if (shape.index == DType::kI64) {
    return Sort(kernel, static_cast<const int64_t*>(choices), shape, first, sorted);
  }
  return Sort(kernel, static_cast<const int32_t*>(choices), shape, first, sorted);
}

// Rows `order[0..count)` of a matrix, each of which serves `per_row` choices, one behind the other;
// zeros up to `rows`.
void Pack(const char* from, const int64_t* order, int64_t count, int64_t rows, int64_t per_row,
          int64_t row_bytes, int threads, char* to) {
  ParallelFor(threads, rows, row_bytes / 4, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      char* row = to + i * row_bytes;
      if (i < count) {
        std::memcpy(row, from + order[i] / per_row * row_bytes, static_cast<size_t>(row_bytes));
      } else {
        std::memset(row, 0, static_cast<size_t>(row_bytes));
      }
    }
  });
}

void Unpack(const char* from, const int64_t* order, int64_t count, int64_t row_bytes, int threads,
            char* to) {
  ParallelFor(threads, count, row_bytes / 4, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + order[i] * row_bytes, from + i * row_bytes, static_cast<size_t>(row_bytes));
    }
  });
}

// Buffers one behind the other, each aligned to 64 bytes.
int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Products of 8, 16, .. rows. An expert's rows are taken in parts of these sizes, the last one
// filled up with zeros, by a quarter at most unless it is the smallest.
template <typename Gemm>
class TileGemms {
 public:
  static constexpr int64_t kMin = 8, kMax = 512;

  // `rows` is the member of the shape that says how many there are.
  static absl::StatusOr<TileGemms> Create(GemmShape shape, int64_t GemmShape::*rows,
                                          int64_t choices, int num_threads) {
    TileGemms gemms;
    int64_t size = kMin / 2;
    do {
      size *= 2;
      shape.*rows = size;
      ORIEL_ASSIGN_OR_RETURN(std::shared_ptr<Gemm> gemm, Gemm::Create(shape, num_threads));
      gemms.gemms_.push_back(std::move(gemm));
    } while (size < kMax && size < choices);
    return gemms;
  }

  int64_t max_rows() const { return kMin << (gemms_.size() - 1); }

  struct Part {
    Gemm* gemm;
    int64_t rows;  // of the product
  };
  // The part that begins `left` rows.
  Part Next(int64_t left) const {
    size_t i = 0;
    while (i + 1 < gemms_.size() && (kMin << i) < left) ++i;
    const int64_t rows = kMin << i;
    if (i > 0 && 4 * left < 3 * rows) --i;
    return {gemms_[i].get(), kMin << i};
  }

 private:
  std::vector<std::shared_ptr<Gemm>> gemms_;
};

template <typename Gemm>
absl::StatusOr<KernelFn> MakeLinear(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const ExpertShape shape, ExpertShape::OfLinear(spec));
  GemmShape product;
  product.n = shape.columns;
  product.k = shape.depth;
  product.transpose_b = shape.transposed;
  product.factors = product.added = product.result = shape.factors;
  ORIEL_ASSIGN_OR_RETURN(
      const auto gemms,
      TileGemms<Gemm>::Create(product, &GemmShape::m, shape.choices, spec.num_threads));
  const int64_t most = gemms.max_rows();
  const int64_t element = runtime::DTypeBytes(shape.factors);
  const int64_t input_bytes = shape.depth * element, result_bytes = shape.columns * element;
  const int64_t weight_bytes = shape.depth * shape.columns * element;
  return KernelFn([=, threads = spec.num_threads,
                   kernel = spec.kernel](const KernelArgs& args) -> absl::Status {
    const char *input = args.operand<char>(0), *weight = args.operand<char>(1);
    char* result = args.result<char>(0);
    SortedChoices sorted;
    ORIEL_RETURN_IF_ERROR(SortChoices(kernel, args.operands[2], shape, args, sorted));
    for (int64_t i = sorted.begin[shape.experts]; i < shape.choices; ++i) {
      std::memset(result + sorted.order[i] * result_bytes, 0, static_cast<size_t>(result_bytes));
    }
    char* const packed = static_cast<char*>(ThreadScratch<ScratchUse::kAroundProducts>(
        static_cast<size_t>(Aligned(most * input_bytes) + most * result_bytes)));
    char* const products = packed + Aligned(most * input_bytes);
    for (int64_t expert = 0; expert < shape.experts; ++expert) {
      const int64_t end = sorted.begin[expert + 1];
      for (int64_t begin = sorted.begin[expert]; begin < end;) {
        const auto [gemm, rows] = gemms.Next(end - begin);
        const int64_t* order = sorted.order.data() + begin;
        const int64_t count = std::min(rows, end - begin);
        begin += count;
        Pack(input, order, count, rows, shape.per_row, input_bytes, threads, packed);
        ORIEL_RETURN_IF_ERROR(
            gemm->Run(packed, weight + expert * weight_bytes, /*bias=*/nullptr, products));
        Unpack(products, order, count, result_bytes, threads, result);
      }
    }
    return absl::OkStatus();
  });
}

using ShapeOf = absl::StatusOr<ExpertShape> (*)(const KernelSpec&);
constexpr ShapeOf kGrad = ExpertShape::OfWeightGrad, kSum = ExpertShape::OfWeightGradAdd;

template <typename Gemm, ShapeOf kShapeOf>
absl::StatusOr<KernelFn> MakeWeightGrad(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const ExpertShape shape, kShapeOf(spec));
  // Summed up in this type, and rounded once.
  const DType sum = ComputeDType(shape.factors);
  GemmShape product;
  product.m = shape.transposed ? shape.columns : shape.depth;
  product.n = shape.transposed ? shape.depth : shape.columns;
  product.transpose_a = true;
  product.factors = product.added = shape.factors;
  product.result = sum;
  ORIEL_ASSIGN_OR_RETURN(
      const auto first,
      TileGemms<Gemm>::Create(product, &GemmShape::k, shape.choices, spec.num_threads));
  product.accumulate = true;
  ORIEL_ASSIGN_OR_RETURN(
      const auto further,
      TileGemms<Gemm>::Create(product, &GemmShape::k, shape.choices, spec.num_threads));
  const int64_t most = first.max_rows();
  const int64_t element = runtime::DTypeBytes(shape.factors);
  const int64_t input_bytes = shape.depth * element, cotangent_bytes = shape.columns * element;
  const int64_t matrix = shape.depth * shape.columns;
  const int64_t sum_bytes = matrix * runtime::DTypeBytes(sum);
  const bool rounds = shape.result != sum;
  const size_t addend = spec.operands.size() - 1;
  return KernelFn([=, threads = spec.num_threads,
                   kernel = spec.kernel](const KernelArgs& args) -> absl::Status {
    const char *input = args.operand<char>(0), *cotangent = args.operand<char>(1);
    SortedChoices sorted;
    ORIEL_RETURN_IF_ERROR(SortChoices(kernel, args.operands[2], shape, args, sorted));
    const int64_t packed_bytes = Aligned(most * input_bytes) + Aligned(most * cotangent_bytes);
    char* const x = static_cast<char*>(ThreadScratch<ScratchUse::kAroundProducts>(
        static_cast<size_t>(packed_bytes + (rounds ? sum_bytes : 0))));
    char* const dy = x + Aligned(most * input_bytes);
    if (shape.accumulates && args.operands[addend] != args.results[0]) {
      std::memcpy(args.results[0], args.operands[addend],
                  static_cast<size_t>(shape.experts * sum_bytes));
    }
    for (int64_t expert = 0; expert < shape.experts; ++expert) {
      char* const result =
          args.result<char>(0) + expert * matrix * runtime::DTypeBytes(shape.result);
      char* const sums = rounds ? x + packed_bytes : result;
      const int64_t start = sorted.begin[expert], end = sorted.begin[expert + 1];
      if (start == end && !shape.accumulates) {
        std::memset(sums, 0, static_cast<size_t>(sum_bytes));
      }
      for (int64_t begin = start; begin < end;) {
        const auto [gemm, rows] =
            (begin == start && !shape.accumulates ? first : further).Next(end - begin);
        const int64_t* order = sorted.order.data() + begin;
        const int64_t count = std::min(rows, end - begin);
        Pack(input, order, count, rows, shape.per_row, input_bytes, threads, x);
        Pack(cotangent, order, count, rows, /*per_row=*/1, cotangent_bytes, threads, dy);
        begin += count;
        ORIEL_RETURN_IF_ERROR(gemm->Run(shape.transposed ? dy : x, shape.transposed ? x : dy,
                                        /*bias=*/nullptr, sums));
      }
      if (!rounds) continue;
      const float* from = reinterpret_cast<const float*>(sums);
      BFloat16* to = reinterpret_cast<BFloat16*>(result);
      ParallelForElements(threads, matrix, 1, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) Assign(to + i, from[i]);
      });
    }
    return absl::OkStatus();
  });
}

using Single = LoopGemm<float>;
using Double = LoopGemm<double>;
constexpr KernelFactory kLinearLoops = ByLoops<MakeLinear<Single>, MakeLinear<Double>>;
constexpr KernelFactory kWeightGradLoops =
    ByLoops<MakeWeightGrad<Single, kGrad>, MakeWeightGrad<Double, kGrad>>;
constexpr KernelFactory kWeightGradAddLoops =
    ByLoops<MakeWeightGrad<Single, kSum>, MakeWeightGrad<Double, kSum>>;
constexpr KernelFactory kFastWeightGrad = ByOneDnn<MakeWeightGrad<OneDnnGemm, kGrad>>;
constexpr KernelFactory kFastWeightGradAdd = ByOneDnn<MakeWeightGrad<OneDnnGemm, kSum>>;
ORIEL_REGISTER_HOST_KERNEL("expert_linear", 10, ByOneDnn<MakeLinear<OneDnnGemm>>);
ORIEL_REGISTER_HOST_KERNEL("expert_linear", 0, kLinearLoops);
ORIEL_REGISTER_HOST_KERNEL("expert_linear_weight_grad", 10, kFastWeightGrad);
ORIEL_REGISTER_HOST_KERNEL("expert_linear_weight_grad", 0, kWeightGradLoops);
ORIEL_REGISTER_HOST_KERNEL("expert_linear_weight_grad_add", 10, kFastWeightGradAdd);
ORIEL_REGISTER_HOST_KERNEL("expert_linear_weight_grad_add", 0, kWeightGradAddLoops);

}  // namespace
}  // namespace oriel::kernels
