#include "kernels/cuda/kernels_bench.h"

namespace oriel::kernels::cuda {
namespace {

using Ints = std::vector<int64_t>;

struct Sizes {
  int64_t batch, length, hidden, heads, wide, vocabulary;
  int64_t parameters;  // that are stepped at a time
};

TensorSpec F32(const Shape& shape) { return {DType::kF32, shape}; }
TensorSpec BF16(const Shape& shape) { return {DType::kBF16, shape}; }

void Add(std::vector<BenchLaunch>& launches, BenchLaunch launch) {
  launches.push_back(std::move(launch));
}

// Products and attention: operations.
void AddProducts(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t rows = s.batch * s.length;
  const std::map<std::string, Attribute> stored = {{"transpose_weight", int64_t{1}}};
  const TensorSpec x = BF16({rows, s.hidden});
  for (const int64_t wide : {s.hidden, s.wide}) {
    const double flops = 2.0 * static_cast<double>(rows * s.hidden * wide);
    const TensorSpec y = BF16({rows, wide}), w = BF16({wide, s.hidden});
    Add(launches, {"linear", {x, w}, {y}, stored, flops});
    Add(launches, {"linear", {y, w}, {x}, {}, flops});
    Add(launches, {"linear_weight_grad", {x, y}, {w}, stored, flops});
    Add(launches, {"linear_weight_grad", {x, y}, {F32(w.shape)}, stored, flops});
  }
  const TensorSpec q = BF16({s.batch, s.heads, s.length, s.hidden / s.heads});
  const TensorSpec lse = F32({s.batch, s.heads, s.length});
  const std::map<std::string, Attribute> causal = {{"scale", 0.088}, {"causal", int64_t{1}}};
  // Two products of a row with half of the others, on average; five in the backward.
  const double scores = 2.0 * static_cast<double>(rows * s.length * s.hidden);
  Add(launches, {"attention", {q, q, q}, {q, lse}, causal, scores});
  Add(launches, {"attention_grad", {q, q, q, q, q, lse}, {q, q, q}, causal, 2.5 * scores});
}

void AddRows(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t rows = s.batch * s.length;
  const TensorSpec x = BF16({rows, s.hidden}), w = F32({s.hidden}), row = F32({rows});
  const TensorSpec logits = BF16({rows, s.vocabulary}), labels{DType::kI64, {rows}},
                   scalar = F32({});
  const std::map<std::string, Attribute> epsilon = {{"epsilon", 1e-5}};
  Add(launches, {"rms_norm", {x, w}, {x, row}, epsilon});
  Add(launches, {"rms_norm_grad", {x, x, w, row}, {x, w}, {}});
  Add(launches, {"layer_norm", {x, w, w}, {x, row, row}, epsilon});
  Add(launches, {"layer_norm_grad", {x, x, w, row, row}, {x, w, w}, {}});
  Add(launches, {"softmax", {x}, {x}, {{"dim", int64_t{1}}}});
  Add(launches, {"reduce_sum", {x}, {w}, {{"dims", Ints{0}}}});
  Add(launches, {"cross_entropy", {logits, labels}, {scalar, scalar, row}, {}, 0, 0, s.vocabulary});
  Add(launches,
      {"cross_entropy_grad", {scalar, logits, labels, row}, {logits}, {}, 0, 0, s.vocabulary});
}

void AddElements(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t rows = s.batch * s.length, head = s.hidden / s.heads;
  const TensorSpec x = BF16({rows, s.hidden}), y = BF16({rows, s.wide});
  const TensorSpec q = BF16({s.batch, s.heads, s.length, head}),
                   angles = F32({1, 1, s.length, head});
  const std::map<std::string, Attribute> silu = {{"kind", "silu"}};
  const std::map<std::string, Attribute> gelu = {{"kind", "gelu_tanh"}};
  Add(launches, {"add", {x, x}, {x}, {}});
  Add(launches, {"cast", {F32(x.shape)}, {x}, {}});
  Add(launches, {"activation", {y}, {y}, gelu});
  Add(launches, {"activation_grad", {y, y}, {y}, gelu});
  Add(launches, {"gated_activation", {y, y}, {y}, silu});
  Add(launches, {"gated_activation_grad", {y, y, y}, {y, y}, silu});
  Add(launches, {"rope", {q, angles, angles}, {q}, {}});
}

// What picks and moves.
void AddMoves(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t rows = s.batch * s.length, head = s.hidden / s.heads;
  const TensorSpec x = BF16({rows, s.hidden}), half = BF16({rows, s.hidden / 2});
  const TensorSpec table = BF16({s.vocabulary, s.hidden}), ids{DType::kI64, {rows}};
  const std::map<std::string, Attribute> first = {{"dim", int64_t{0}}},
                                         second = {{"dim", int64_t{1}}};
  const auto moved = static_cast<double>(x.bytes());
  Add(launches, {"gather", {table, ids}, {x}, first, 0, 2 * moved, s.vocabulary});
  // Every row of the table is written, for most have no gradient.
  Add(launches, {"scatter_add",
                 {ids, x},
                 {table},
                 first,
                 0,
                 moved + static_cast<double>(table.bytes()),
                 s.vocabulary});
  Add(launches, {"transpose",
                 {BF16({s.batch, s.length, s.heads, head})},
                 {BF16({s.batch, s.heads, s.length, head})},
                 {{"permutation", Ints{0, 2, 1, 3}}}});
  Add(launches,
      {"slice",
       {x},
       {half},
       {{"starts", Ints{0, 0}}, {"limits", Ints{rows, s.hidden / 2}}, {"strides", Ints{1, 1}}},
       0,
       moved});
  Add(launches, {"concat", {half, half}, {x}, second});
  Add(launches, {"pad",
                 {half},
                 {x},
                 {{"low", Ints{0, s.hidden / 2}},
                  {"high", Ints{0, 0}},
                  {"interior", Ints{0, 0}},
                  {"value", 0.0}}});
}

void AddOptimizer(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const TensorSpec p = F32({s.parameters}), scalar = F32({});
  const std::map<std::string, Attribute> settings = {
      {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}};
  for (const DType gradient : {DType::kF32, DType::kBF16}) {
    const TensorSpec g{gradient, {s.parameters}};
    Add(launches, {"sum_squares", {g}, {scalar}, {}});
    // State, f32, read and written: 24 bytes and the gradient.
    Add(launches, {"adamw",
                   {p, g, p, p, scalar, scalar, scalar},
                   {p, p, p},
                   settings,
                   0,
                   24.0 * static_cast<double>(s.parameters) + static_cast<double>(g.bytes()),
                   0,
                   {0, 2, 3}});
  }
}

std::vector<BenchLaunch> Launches(const Sizes& sizes) {
  std::vector<BenchLaunch> launches;
  AddProducts(sizes, launches);
  AddRows(sizes, launches);
  AddElements(sizes, launches);
  AddMoves(sizes, launches);
  AddOptimizer(sizes, launches);
  return launches;
}

}  // namespace

double BenchLaunch::AllBytes() const {
  double all = 0;
  for (const TensorSpec& operand : operands) all += static_cast<double>(operand.bytes());
  for (const TensorSpec& result : results) all += static_cast<double>(result.bytes());
  return all;
}

BenchLaunch SquareProduct(int64_t size) {
  const TensorSpec x = BF16({size, size});
  const auto n = static_cast<double>(size);
  return {"linear", {x, x}, {x}, {{"transpose_weight", int64_t{1}}}, 2 * n * n * n};
}

std::vector<BenchLaunch> DecoderLaunches() {
  return Launches({8, 1024, 4096, 32, 11008, 32000, 1 << 28});
}

std::vector<BenchLaunch> TinyLaunches() { return Launches({2, 16, 64, 4, 96, 80, 1000}); }

}  // namespace oriel::kernels::cuda
