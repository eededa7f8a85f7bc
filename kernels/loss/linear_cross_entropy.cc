#include "kernels/loss/linear_cross_entropy.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/common/checks.h"
#include "kernels/linear/linear.h"

namespace oriel::kernels {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kChunkRows = 64;  // so that all that begins with a chunk is aligned
constexpr int64_t kAlignment = 256;

// Operands of a launch: input, weight and labels stand one behind the other, a bias and where a
// piece begins at the end.
struct LossShape {
  int64_t rows, depth, classes, ignore_index, chunk;
  bool transposed;
  TensorSpec input, weight, labels;
  int first_operand;  // the input's index
  int bias = -1, first = -1;
  DType dtype, wide;

  static absl::StatusOr<LossShape> Make(const KernelSpec& spec, int first_operand, int rest,
                                        int64_t logits);

  int64_t chunks() const { return std::max<int64_t>(1, (rows + chunk - 1) / chunk); }
  int64_t RowsOf(int64_t index) const { return std::min(chunk, rows - index * chunk); }
  TensorSpec Labels(int64_t n) const { return {labels.dtype, {n}}; }
  TensorSpec Logits(int64_t n) const { return {dtype, {n, classes}}; }
  TensorSpec Input(int64_t n) const { return {dtype, {n, depth}}; }
  TensorSpec Wide(Shape shape) const { return {wide, std::move(shape)}; }
};

absl::StatusOr<LossShape> LossShape::Make(const KernelSpec& spec, int first_operand, int rest,
                                          int64_t logits) {
  const int count = static_cast<int>(spec.operands.size());
  if (count < rest || count > rest + 2) return Malformed(spec, "has a wrong number of operands");
  LossShape shape;
  shape.first_operand = first_operand;
  for (int i = rest; i < count; ++i) {
    int& slot = spec.operands[i].dtype == DType::kI64 ? shape.first : shape.bias;
    if (slot >= 0) return Malformed(spec, "has two biases, or two beginnings of a piece");
    slot = i;
  }
  shape.input = spec.operands[first_operand];
  shape.weight = spec.operands[first_operand + 1];
  shape.labels = spec.operands[first_operand + 2];
  shape.dtype = shape.input.dtype;
  if (shape.dtype != DType::kF32 && shape.dtype != DType::kF64 && shape.dtype != DType::kBF16) {
    return Unsupported(spec, "takes f32, f64 and bf16");
  }
  shape.wide = ComputeDType(shape.dtype);
  if (shape.input.rank() < 1 || shape.weight.rank() != 2) {
    return Malformed(spec, "the input has rank 0, or the weight another rank than 2");
  }
  ORIEL_ASSIGN_OR_RETURN(shape.transposed, FlagOr(spec, "transpose_weight", false));
  ORIEL_ASSIGN_OR_RETURN(shape.ignore_index, IntOr(spec, "ignore_index", -100));
  shape.depth = shape.input.shape.back();
  shape.classes = shape.weight.shape[shape.transposed ? 0 : 1];
  const Shape weight =
      shape.transposed ? Shape{shape.classes, shape.depth} : Shape{shape.depth, shape.classes};
  const Shape outer(shape.input.shape.begin(), shape.input.shape.end() - 1);
  shape.rows = runtime::NumElements(outer);
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, first_operand + 1, shape.dtype, weight));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, first_operand + 2, shape.labels.dtype, outer));
  if (shape.labels.dtype != DType::kI64 && shape.labels.dtype != DType::kI32) {
    return Unsupported(spec, "takes labels of i64 and i32");
  }
  if (shape.bias >= 0) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, shape.bias, shape.dtype, {shape.classes}));
  }
  if (shape.first >= 0) ORIEL_RETURN_IF_ERROR(CheckOperand(spec, shape.first, DType::kI64, {}));
  const int64_t fitting = logits / std::max<int64_t>(1, shape.classes);
  ORIEL_ASSIGN_OR_RETURN(const int64_t chunk, IntOr(spec, "chunk", fitting));
  shape.chunk = std::max(kChunkRows, chunk / kChunkRows * kChunkRows);
  return shape;
}

const void* At(const void* base, DType dtype, int64_t elements) {
  return static_cast<const char*>(base) + elements * runtime::DTypeBytes(dtype);
}
void* At(void* base, DType dtype, int64_t elements) {
  return static_cast<char*>(base) + elements * runtime::DTypeBytes(dtype);
}

absl::Status Run(const KernelFn& launch, void* stream, std::initializer_list<const void*> operands,
                 std::initializer_list<void*> results) {
  return launch({operands.begin(), results.begin(), stream});
}

// With an operand more, if there is one.
absl::Status RunWith(const KernelFn& launch, void* stream,
                     std::initializer_list<const void*> operands, const void* last,
                     std::initializer_list<void*> results) {
  std::array<const void*, 8> all = {};
  *std::copy(operands.begin(), operands.end(), all.begin()) = last;
  return launch({all.data(), results.begin(), stream});
}

// Places in scratch memory.
class Places {
 public:
  int64_t Add(const TensorSpec& tensor) {
    const int64_t place = bytes_;
    const int64_t size = tensor.num_elements() * runtime::DTypeBytes(tensor.dtype);
    bytes_ += (size + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// Prepares launches of parts.
class Preparer {
 public:
  Preparer(const KernelSpec& spec, const LossShape& shape, LossParts& parts)
      : spec_(spec), shape_(shape), parts_(parts) {}

  absl::StatusOr<KernelFn> Prepare(const char* kernel, std::vector<TensorSpec> operands,
                                   std::vector<TensorSpec> results,
                                   std::map<std::string, Attribute> attributes = {}) const {
    return parts_.Prepare({kernel, std::move(operands), std::move(results), std::move(attributes),
                           spec_.num_threads});
  }

  // Of n rows: input, weight, bias? -> logits.
  absl::StatusOr<KernelFn> Logits(int64_t n) const {
    std::vector<TensorSpec> operands = {shape_.Input(n), shape_.weight};
    if (shape_.bias >= 0) operands.push_back(spec_.operands[shape_.bias]);
    return Prepare("linear", std::move(operands), {shape_.Logits(n)},
                   {{"transpose_weight", int64_t{shape_.transposed}}});
  }

  // The sum over dimension 0.
  absl::StatusOr<KernelFn> Sum(const TensorSpec& from, const TensorSpec& to) const {
    return Prepare("reduce_sum", {from}, {to}, {{"dims", Ints{0}}, {"keep_dims", int64_t{0}}});
  }

  // The attribute `whole` of a piece, and the index of its beginning, for launches of it.
  absl::Status AddPiece(const char* whole, std::vector<TensorSpec>* operands,
                        std::map<std::string, Attribute>* attributes) const {
    if (shape_.first < 0) return absl::OkStatus();
    ORIEL_ASSIGN_OR_RETURN(const int64_t size, spec_.Int(whole));
    operands->push_back({DType::kI64, {}});
    (*attributes)[whole] = size;
    return absl::OkStatus();
  }

  absl::StatusOr<KernelFn> LabelCheck(int64_t classes) const {
    return parts_.PrepareLabelCheck(spec_, shape_.labels, classes, shape_.ignore_index);
  }

 private:
  const KernelSpec& spec_;
  const LossShape& shape_;
  LossParts& parts_;
};

// What `make` gives for the size of each chunk: of all but the last, and of the last.
template <typename T>
struct BySize {
  T whole, last;
  const T& Of(const LossShape& shape, int64_t index) const {
    return index + 1 == shape.chunks() ? last : whole;
  }
};
template <typename T, typename Make>
absl::StatusOr<BySize<T>> MakeBySize(const LossShape& shape, Make make) {
  BySize<T> result;
  const int64_t last = shape.chunks() - 1;
  ORIEL_ASSIGN_OR_RETURN(result.last, make(shape.RowsOf(last)));
  if (last > 0) {
    ORIEL_ASSIGN_OR_RETURN(result.whole, make(shape.chunk));
  }
  return result;
}

// Runs the launch that gives the logits of a chunk.
absl::Status RunLogits(const KernelFn& launch, const LossShape& shape, int64_t index,
                       const KernelArgs& args, void* logits) {
  const int at = shape.first_operand;
  const void* input = At(args.operands[at], shape.dtype, index * shape.chunk * shape.depth);
  return RunWith(launch, args.stream, {input, args.operands[at + 1]},
                 shape.bias < 0 ? nullptr : args.operands[shape.bias], {logits});
}

const void* LabelsOf(const LossShape& shape, int64_t index, const KernelArgs& args) {
  return At(args.operands[shape.first_operand + 2], shape.labels.dtype, index * shape.chunk);
}
const void* FirstOf(const LossShape& shape, const KernelArgs& args) {
  return shape.first < 0 ? nullptr : args.operands[shape.first];
}

}  // namespace

absl::StatusOr<KernelFn> MakeLinearCrossEntropy(const KernelSpec& spec, LossParts& parts,
                                                int64_t logits) {
  ORIEL_ASSIGN_OR_RETURN(const LossShape shape, LossShape::Make(spec, 0, 3, logits));
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 4, 3));
  if (shape.first >= 0) return Malformed(spec, "is not for pieces of classes");
  for (size_t i = 0; i < 2; ++i) ORIEL_RETURN_IF_ERROR(CheckResult(spec, i, shape.wide, {}));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 2, shape.wide, shape.labels.shape));
  struct Chunk {
    KernelFn logits, loss;
  };
  const Preparer preparer(spec, shape, parts);
  ORIEL_ASSIGN_OR_RETURN(const KernelFn check, preparer.LabelCheck(shape.classes));
  ORIEL_ASSIGN_OR_RETURN(const BySize<Chunk> launches,
                         MakeBySize<Chunk>(shape, [&](int64_t n) -> absl::StatusOr<Chunk> {
                           Chunk chunk;
                           ORIEL_ASSIGN_OR_RETURN(chunk.logits, preparer.Logits(n));
                           ORIEL_ASSIGN_OR_RETURN(
                               chunk.loss,
                               preparer.Prepare("cross_entropy", {shape.Logits(n), shape.Labels(n)},
                                                {shape.Wide({}), shape.Wide({}), shape.Wide({n})},
                                                {{"ignore_index", shape.ignore_index}}));
                           return chunk;
                         }));
  // A number for each chunk, each aligned as a result of its own.
  const int64_t stride = 64 / runtime::DTypeBytes(shape.wide), count = shape.chunks();
  Places places;
  const int64_t at_logits = places.Add(shape.Logits(std::min(shape.chunk, shape.rows)));
  const TensorSpec sums = shape.Wide({count, stride});
  const std::array<int64_t, 2> at_parts = {places.Add(sums), places.Add(sums)};
  const std::array<int64_t, 2> at_totals = {places.Add(sums), places.Add(sums)};
  KernelFn total, first;  // of each row of parts, only the first number counts
  if (count > 1) {
    ORIEL_ASSIGN_OR_RETURN(total, preparer.Sum(sums, shape.Wide({stride})));
    ORIEL_ASSIGN_OR_RETURN(
        first, preparer.Prepare("slice", {shape.Wide({stride})}, {shape.Wide({1})},
                                {{"starts", Ints{0}}, {"limits", Ints{1}}, {"strides", Ints{1}}}));
  }
  ORIEL_ASSIGN_OR_RETURN(const std::function<char*()> scratch, parts.Reserve(places.bytes()));
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    ORIEL_RETURN_IF_ERROR(Run(check, args.stream, {args.operands[2]}, {}));
    char* const base = scratch();
    for (int64_t i = 0; i < count; ++i) {
      const Chunk& chunk = launches.Of(shape, i);
      ORIEL_RETURN_IF_ERROR(RunLogits(chunk.logits, shape, i, args, base + at_logits));
      std::array<void*, 2> sums = {args.results[0], args.results[1]};
      for (int j = 0; j < 2 && count > 1; ++j) {
        sums[j] = At(base + at_parts[j], shape.wide, i * stride);
      }
      ORIEL_RETURN_IF_ERROR(
          Run(chunk.loss, args.stream, {base + at_logits, LabelsOf(shape, i, args)},
              {sums[0], sums[1], At(args.results[2], shape.wide, i * shape.chunk)}));
    }
    for (int j = 0; j < 2 && count > 1; ++j) {
      ORIEL_RETURN_IF_ERROR(Run(total, args.stream, {base + at_parts[j]}, {base + at_totals[j]}));
      ORIEL_RETURN_IF_ERROR(Run(first, args.stream, {base + at_totals[j]}, {args.results[j]}));
    }
    return absl::OkStatus();
  });
}

namespace {

// Two results of each row, of `widths` numbers, by a launch that `make` gives for so many rows: of
// their logits, labels and, if there is one, where the piece begins. Labels are below `classes`.
template <typename Make>
absl::StatusOr<KernelFn> MakeOfRows(const LossShape& shape, const Preparer& preparer,
                                    LossParts& parts, int64_t classes,
                                    std::array<int64_t, 2> widths, Make make) {
  struct Chunk {
    KernelFn logits, rows;
  };
  ORIEL_ASSIGN_OR_RETURN(const KernelFn check, preparer.LabelCheck(classes));
  ORIEL_ASSIGN_OR_RETURN(const BySize<Chunk> launches,
                         MakeBySize<Chunk>(shape, [&](int64_t n) -> absl::StatusOr<Chunk> {
                           Chunk chunk;
                           ORIEL_ASSIGN_OR_RETURN(chunk.logits, preparer.Logits(n));
                           ORIEL_ASSIGN_OR_RETURN(chunk.rows, make(n));
                           return chunk;
                         }));
  Places places;
  const int64_t at_logits = places.Add(shape.Logits(std::min(shape.chunk, shape.rows)));
  ORIEL_ASSIGN_OR_RETURN(const std::function<char*()> scratch, parts.Reserve(places.bytes()));
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    ORIEL_RETURN_IF_ERROR(Run(check, args.stream, {args.operands[2]}, {}));
    char* const base = scratch();
    for (int64_t i = 0; i < shape.chunks(); ++i) {
      const Chunk& chunk = launches.Of(shape, i);
      ORIEL_RETURN_IF_ERROR(RunLogits(chunk.logits, shape, i, args, base + at_logits));
      ORIEL_RETURN_IF_ERROR(
          RunWith(chunk.rows, args.stream, {base + at_logits, LabelsOf(shape, i, args)},
                  FirstOf(shape, args),
                  {At(args.results[0], shape.wide, i * shape.chunk * widths[0]),
                   At(args.results[1], shape.wide, i * shape.chunk * widths[1])}));
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<KernelFn> MakeLinearTokenLosses(const KernelSpec& spec, LossParts& parts,
                                               int64_t logits) {
  ORIEL_ASSIGN_OR_RETURN(const LossShape shape, LossShape::Make(spec, 0, 3, logits));
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 4, 2));
  if (shape.first >= 0) return Malformed(spec, "is not for pieces of classes");
  for (size_t i = 0; i < 2; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, i, shape.wide, shape.labels.shape));
  }
  const Preparer preparer(spec, shape, parts);
  return MakeOfRows(shape, preparer, parts, shape.classes, {1, 1}, [&](int64_t n) {
    return preparer.Prepare("token_losses", {shape.Logits(n), shape.Labels(n)},
                            {shape.Wide({n}), shape.Wide({n})},
                            {{"ignore_index", shape.ignore_index}});
  });
}

absl::StatusOr<KernelFn> MakeLinearLogsumexp(const KernelSpec& spec, LossParts& parts,
                                             int64_t logits) {
  ORIEL_ASSIGN_OR_RETURN(const LossShape shape, LossShape::Make(spec, 0, 3, logits));
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 5, 2));
  ORIEL_ASSIGN_OR_RETURN(const int64_t blocks, spec.Int("blocks"));
  if (blocks <= 0 || shape.classes % blocks != 0) {
    return Malformed(spec, "classes are not a multiple of blocks");
  }
  Shape by_block = shape.labels.shape;
  by_block.push_back(blocks);
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, shape.wide, by_block));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, shape.wide, shape.labels.shape));
  int64_t all_blocks = blocks;
  if (shape.first >= 0) {
    ORIEL_ASSIGN_OR_RETURN(all_blocks, spec.Int("all_blocks"));
  }
  const Preparer preparer(spec, shape, parts);
  const auto block_logsumexp = [&](int64_t n) -> absl::StatusOr<KernelFn> {
    std::vector<TensorSpec> operands = {shape.Logits(n), shape.Labels(n)};
    std::map<std::string, Attribute> attributes = {{"ignore_index", shape.ignore_index},
                                                   {"blocks", blocks}};
    ORIEL_RETURN_IF_ERROR(preparer.AddPiece("all_blocks", &operands, &attributes));
    return preparer.Prepare("block_logsumexp", std::move(operands),
                            {shape.Wide({n, blocks}), shape.Wide({n})}, attributes);
  };
  return MakeOfRows(shape, preparer, parts, shape.classes / blocks * all_blocks, {blocks, 1},
                    block_logsumexp);
}

namespace {

// The gradient of the weight, of chunk after chunk.
struct WeightSum {
  KernelFn only;                          // of a single chunk
  LossParts::Product first, whole, last;  // assigns; adds
  KernelFn round;                         // of the sum, if the result is narrower
  int64_t at_sum = -1;                    // in scratch memory, if it is rounded
};

absl::StatusOr<WeightSum> PrepareWeightSum(const KernelSpec& spec, const LossShape& shape,
                                           const Preparer& preparer, LossParts& parts,
                                           Places& places) {
  WeightSum sum;
  const TensorSpec& result = spec.results[1];
  const auto launch = [&](int64_t n, DType dtype) {
    return KernelSpec{"linear_weight_grad",
                      {shape.Input(n), shape.Logits(n)},
                      {{dtype, result.shape}},
                      {{"transpose_weight", int64_t{shape.transposed}}},
                      spec.num_threads};
  };
  if (shape.chunks() == 1) {
    ORIEL_ASSIGN_OR_RETURN(sum.only, parts.Prepare(launch(shape.rows, result.dtype)));
    return sum;
  }
  const auto product = [&](int64_t n, bool adds) -> absl::StatusOr<LossParts::Product> {
    ORIEL_ASSIGN_OR_RETURN(GemmShape gemm, LinearWeightGradShape(launch(n, shape.wide)));
    gemm.accumulate = adds;
    return parts.PrepareProduct(gemm, spec.num_threads);
  };
  ORIEL_ASSIGN_OR_RETURN(sum.first, product(shape.chunk, false));
  ORIEL_ASSIGN_OR_RETURN(sum.whole, product(shape.chunk, true));
  ORIEL_ASSIGN_OR_RETURN(sum.last, product(shape.RowsOf(shape.chunks() - 1), true));
  if (result.dtype != shape.wide) {
    const TensorSpec wide = shape.Wide(result.shape);
    sum.at_sum = places.Add(wide);
    ORIEL_ASSIGN_OR_RETURN(sum.round, preparer.Prepare("cast", {wide}, {result}));
  }
  return sum;
}

// The gradient of the bias: sums of chunks, and their sum.
struct BiasSum {
  BySize<KernelFn> parts;
  KernelFn total, round;
  int64_t at_parts = -1, at_sum = -1;
};

absl::StatusOr<BiasSum> PrepareBiasSum(const KernelSpec& spec, const LossShape& shape,
                                       const Preparer& preparer, Places& places) {
  BiasSum sum;
  const TensorSpec& result = spec.results[2];
  const TensorSpec wide = shape.Wide(result.shape);
  const bool single = shape.chunks() == 1;
  ORIEL_ASSIGN_OR_RETURN(sum.parts, MakeBySize<KernelFn>(shape, [&](int64_t n) {
                           return preparer.Sum(shape.Logits(n), single ? result : wide);
                         }));
  if (single) return sum;
  // A row for each chunk, which begins as a result of its own does.
  const int64_t row = (shape.classes + 15) / 16 * 16;
  const TensorSpec rows = shape.Wide({shape.chunks(), row}), padded = shape.Wide({row});
  sum.at_parts = places.Add(rows);
  sum.at_sum = places.Add(padded);
  ORIEL_ASSIGN_OR_RETURN(sum.total, preparer.Sum(rows, padded));
  ORIEL_ASSIGN_OR_RETURN(sum.round, preparer.Prepare("cast", {wide}, {result}));
  return sum;
}

}  // namespace

absl::StatusOr<KernelFn> MakeLinearCrossEntropyGrad(const KernelSpec& spec, LossParts& parts,
                                                    int64_t logits) {
  ORIEL_ASSIGN_OR_RETURN(const LossShape shape, LossShape::Make(spec, 1, 5, logits));
  const size_t all = shape.bias >= 0 ? 3 : 2, results = spec.results.size();
  if (results != 1 && results != all) return Malformed(spec, "has a wrong number of results");
  const bool is_of_rows = spec.operands[0].rank() > 0;  // a cotangent for each
  ORIEL_RETURN_IF_ERROR(
      CheckOperand(spec, 0, shape.wide, is_of_rows ? shape.labels.shape : Shape{}));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 4, shape.wide, shape.labels.shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, shape.dtype, shape.input.shape));
  const TensorSpec bias = shape.bias >= 0 ? spec.operands[shape.bias] : TensorSpec();
  for (size_t i = 1; i < results; ++i) {
    const Shape& expected = i == 1 ? shape.weight.shape : bias.shape;
    ORIEL_RETURN_IF_ERROR(
        CheckResult(spec, i, SumType(shape.dtype, spec.results[i].dtype), expected));
  }
  int64_t classes = shape.classes;
  if (shape.first >= 0) {
    ORIEL_ASSIGN_OR_RETURN(classes, spec.Int("classes"));
  }
  struct Chunk {
    KernelFn logits, cotangent, input;
  };
  const Preparer preparer(spec, shape, parts);
  ORIEL_ASSIGN_OR_RETURN(const KernelFn check, preparer.LabelCheck(classes));
  ORIEL_ASSIGN_OR_RETURN(
      const BySize<Chunk> launches,
      MakeBySize<Chunk>(shape, [&](int64_t n) -> absl::StatusOr<Chunk> {
        Chunk chunk;
        ORIEL_ASSIGN_OR_RETURN(chunk.logits, preparer.Logits(n));
        std::vector<TensorSpec> operands = {shape.Wide(is_of_rows ? Shape{n} : Shape{}),
                                            shape.Logits(n), shape.Labels(n), shape.Wide({n})};
        std::map<std::string, Attribute> attributes = {{"ignore_index", shape.ignore_index}};
        ORIEL_RETURN_IF_ERROR(preparer.AddPiece("classes", &operands, &attributes));
        ORIEL_ASSIGN_OR_RETURN(chunk.cotangent,
                               preparer.Prepare("cross_entropy_grad", std::move(operands),
                                                {shape.Logits(n)}, attributes));
        ORIEL_ASSIGN_OR_RETURN(
            chunk.input,
            preparer.Prepare("linear", {shape.Logits(n), shape.weight}, {shape.Input(n)},
                             {{"transpose_weight", int64_t{!shape.transposed}}}));
        return chunk;
      }));
  Places places;
  const TensorSpec chunk_logits = shape.Logits(std::min(shape.chunk, shape.rows));
  const int64_t at_logits = places.Add(chunk_logits), at_cotangent = places.Add(chunk_logits);
  WeightSum weight;
  BiasSum biases;
  if (results > 1) {
    ORIEL_ASSIGN_OR_RETURN(weight, PrepareWeightSum(spec, shape, preparer, parts, places));
  }
  if (results > 2) {
    ORIEL_ASSIGN_OR_RETURN(biases, PrepareBiasSum(spec, shape, preparer, places));
  }
  ORIEL_ASSIGN_OR_RETURN(const std::function<char*()> scratch, parts.Reserve(places.bytes()));
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    ORIEL_RETURN_IF_ERROR(Run(check, args.stream, {args.operands[3]}, {}));
    char* const base = scratch();
    void* const g = base + at_cotangent;
    void* const weight_sum = results < 2         ? nullptr
                             : weight.at_sum < 0 ? args.results[1]
                                                 : base + weight.at_sum;
    const int64_t count = shape.chunks();
    const int64_t bias_row = (shape.classes + 15) / 16 * 16;
    for (int64_t i = 0; i < count; ++i) {
      const Chunk& chunk = launches.Of(shape, i);
      const int64_t row = i * shape.chunk;
      ORIEL_RETURN_IF_ERROR(RunLogits(chunk.logits, shape, i, args, base + at_logits));
      ORIEL_RETURN_IF_ERROR(
          RunWith(chunk.cotangent, args.stream,
                  {At(args.operands[0], shape.wide, is_of_rows ? row : 0), base + at_logits,
                   LabelsOf(shape, i, args), At(args.operands[4], shape.wide, row)},
                  FirstOf(shape, args), {g}));
      ORIEL_RETURN_IF_ERROR(Run(chunk.input, args.stream, {g, args.operands[2]},
                                {At(args.results[0], shape.dtype, row * shape.depth)}));
      if (results < 2) continue;
      const void* x = At(args.operands[1], shape.dtype, row * shape.depth);
      if (count == 1) {
        ORIEL_RETURN_IF_ERROR(Run(weight.only, args.stream, {x, g}, {weight_sum}));
      } else {
        const LossParts::Product& product = i == 0           ? weight.first
                                            : i + 1 == count ? weight.last
                                                             : weight.whole;
        ORIEL_RETURN_IF_ERROR(
            product(args.stream, shape.transposed ? g : x, shape.transposed ? x : g, weight_sum));
      }
      if (results < 3) continue;
      void* const part =
          count == 1 ? args.results[2] : At(base + biases.at_parts, shape.wide, i * bias_row);
      ORIEL_RETURN_IF_ERROR(Run(biases.parts.Of(shape, i), args.stream, {g}, {part}));
    }
    if (weight.round) {
      ORIEL_RETURN_IF_ERROR(Run(weight.round, args.stream, {weight_sum}, {args.results[1]}));
    }
    if (biases.total) {
      ORIEL_RETURN_IF_ERROR(
          Run(biases.total, args.stream, {base + biases.at_parts}, {base + biases.at_sum}));
      ORIEL_RETURN_IF_ERROR(
          Run(biases.round, args.stream, {base + biases.at_sum}, {args.results[2]}));
    }
    return absl::OkStatus();
  });
}

}  // namespace oriel::kernels
