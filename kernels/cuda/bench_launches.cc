#include "kernels/cuda/kernels_bench.h"

namespace oriel::kernels::cuda {
namespace {

using Ints = std::vector<int64_t>;

struct Sizes {
  int64_t batch, length, hidden, heads, key_heads, wide, vocabulary;
  int64_t side, patch, vision, vision_heads;  // of images: patches a side, pixels of a patch
  int64_t parameters;                         // that are stepped at a time
  int64_t narrow, narrow_rows;                // of a narrow product with many rows

  int64_t rows() const { return batch * length; }
  int64_t patches() const { return side * side; }
};

TensorSpec F32(const Shape& shape) { return {DType::kF32, shape}; }
TensorSpec BF16(const Shape& shape) { return {DType::kBF16, shape}; }

void Add(std::vector<BenchLaunch>& launches, BenchLaunch launch) {
  launches.push_back(std::move(launch));
}

using Attributes = std::map<std::string, Attribute>;

// Products: operations.
void AddProducts(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t rows = s.rows(), head = s.hidden / s.heads;
  const Attributes stored = {{"transpose_weight", int64_t{1}}};
  const TensorSpec x = BF16({rows, s.hidden});
  for (const int64_t wide : {s.hidden, s.wide}) {
    const double flops = 2.0 * static_cast<double>(rows * s.hidden * wide);
    const TensorSpec y = BF16({rows, wide}), w = BF16({wide, s.hidden}), sum = F32(w.shape);
    Add(launches, {"linear", {x, w}, {y}, stored, flops});
    Add(launches, {"linear", {y, w}, {x}, {}, flops});
    Add(launches, {"linear", {x, w, BF16({wide})}, {y}, stored, flops});
    Add(launches, {"linear_add", {y, w, x}, {x}, {}, flops});
    Add(launches, {"linear_weight_grad", {x, y}, {w}, stored, flops});
    Add(launches, {"linear_weight_grad", {x, y}, {sum}, stored, flops});
    Add(launches, {"linear_weight_grad", {x, y, sum}, {sum}, stored, flops, 0, 0, {2}});
    Add(launches, {"linear_grads", {x, y, sum}, {sum, F32({wide})}, stored, flops, 0, 0, {2}});
  }
  // GPT-2's 64 x 1024 tokens: the sums of so few columns have little to share out.
  const TensorSpec narrow = BF16({s.narrow_rows, s.narrow}), square = BF16({s.narrow, s.narrow});
  const double of_narrow = 2.0 * static_cast<double>(s.narrow_rows * s.narrow * s.narrow);
  Add(launches, {"linear_grads", {narrow, narrow}, {square, BF16({s.narrow})}, stored, of_narrow});
  Add(launches, {"linear_weight_grad", {narrow, narrow}, {square}, stored, of_narrow});
  const double flops = 2.0 * static_cast<double>(rows * s.hidden * s.wide);
  const TensorSpec y = BF16({rows, s.wide}), w = BF16({s.wide, s.hidden}), bias = BF16({s.wide});
  const Attributes gelu = {{"kind", "gelu_tanh"}, {"transpose_weight", int64_t{1}}};
  Add(launches, {"linear_activation", {x, w, bias}, {y, y}, gelu, flops});
  Add(launches,
      {"linear_activation_grad", {x, BF16({s.hidden, s.wide}), y}, {y}, {*gelu.begin()}, flops});
  const TensorSpec q = BF16({s.batch, s.heads, s.length, head});
  Add(launches, {"matmul",
                 {q, q},
                 {BF16({s.batch, s.heads, s.length, s.length})},
                 {{"transpose_rhs", int64_t{1}}},
                 2.0 * static_cast<double>(rows * s.length * s.hidden)});
}

// 8 experts, of which each row chooses 2.
void AddExperts(const Sizes& s, std::vector<BenchLaunch>& launches) {
  constexpr int64_t kExperts = 8, kChoices = 2;
  const int64_t rows = s.rows();
  const TensorSpec x = BF16({rows, s.hidden}), w = BF16({kExperts, s.wide, s.hidden});
  const TensorSpec y = BF16({rows, kChoices, s.wide}), choice{DType::kI64, {rows, kChoices}};
  const Attributes stored = {{"transpose_weight", int64_t{1}}};
  const double flops = 2.0 * static_cast<double>(rows * kChoices * s.hidden * s.wide);
  Add(launches, {"expert_linear", {x, w, choice}, {y}, stored, flops, 0, kExperts});
  Add(launches, {"expert_linear",
                 {y, w, choice},
                 {BF16({rows, kChoices, s.hidden})},
                 {},
                 flops,
                 0,
                 kExperts});
  Add(launches, {"expert_linear_weight_grad", {x, y, choice}, {w}, stored, flops, 0, kExperts});
  const TensorSpec sum = F32(w.shape);
  Add(launches, {"expert_linear_weight_grad_add",
                 {x, y, choice, sum},
                 {sum},
                 stored,
                 flops,
                 0,
                 kExperts,
                 {3}});
}

// `seen` is the part of all scores that the rows see.
void AddAttentionOf(const Sizes& s, int64_t length, int64_t hidden, int64_t heads,
                    int64_t key_heads, const std::vector<TensorSpec>& mask_or_sink,
                    const Attributes& attributes, double seen, std::vector<BenchLaunch>& launches) {
  const TensorSpec q = BF16({s.batch, heads, length, hidden / heads});
  const TensorSpec k = BF16({s.batch, key_heads, length, hidden / heads});
  const TensorSpec lse = F32({s.batch, heads, length});
  std::vector<TensorSpec> operands = {q, k, k}, of_gradient = {q, q, k, k, q, lse};
  for (const TensorSpec& operand : mask_or_sink) {
    operands.push_back(operand);
    of_gradient.push_back(operand);
  }
  // Two products with each score; five in the backward.
  const double scores = seen * 4.0 * static_cast<double>(s.batch * length * length * hidden);
  Add(launches, {"attention", operands, {q, lse}, attributes, scores});
  Add(launches, {"attention_grad", of_gradient, {q, k, k}, attributes, 2.5 * scores});
}

void AddAttention(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const Attributes causal = {{"scale", 0.088}, {"causal", int64_t{1}}}, all = {{"scale", 0.125}};
  const TensorSpec mask{DType::kBool, {s.batch, 1, s.length, s.length}}, sink = F32({s.heads});
  AddAttentionOf(s, s.length, s.hidden, s.heads, s.heads, {}, causal, 0.5, launches);
  AddAttentionOf(s, s.length, s.hidden, s.heads, s.key_heads, {}, causal, 0.5, launches);
  AddAttentionOf(s, s.length, s.hidden, s.heads, s.key_heads, {sink}, causal, 0.5, launches);
  // Behind the patches, a class token.
  AddAttentionOf(s, s.patches() + 1, s.vision, s.vision_heads, s.vision_heads, {}, all, 1,
                 launches);
  AddAttentionOf(s, s.length, s.hidden, s.heads, s.heads, {mask}, all, 1, launches);
}

void AddNorms(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const TensorSpec x = BF16({s.rows(), s.hidden}), w = F32({s.hidden}), row = F32({s.rows()});
  const Attributes epsilon = {{"epsilon", 1e-5}}, last = {{"dim", int64_t{1}}};
  Add(launches, {"rms_norm", {x, w}, {x, row}, epsilon});
  Add(launches, {"add_rms_norm", {x, x, w}, {x, row, x}, epsilon});
  Add(launches, {"rms_norm_grad", {x, x, w, row}, {x, w}, {}});
  Add(launches, {"rms_norm_grad", {x, x, w, row, x}, {x, w}, {}});
  Add(launches, {"layer_norm", {x, w, w}, {x, row, row}, epsilon});
  Add(launches, {"add_layer_norm", {x, x, w, w}, {x, row, row, x}, epsilon});
  Add(launches, {"layer_norm_grad", {x, x, w, row, row}, {x, w, w}, {}});
  Add(launches, {"layer_norm_grad", {x, x, w, row, row, x}, {x, w, w}, {}});
  Add(launches, {"softmax", {x}, {x}, last});
  Add(launches, {"softmax_grad", {x, x}, {x}, last});
}

void AddReductions(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const TensorSpec x = BF16({s.rows(), s.hidden}), row = BF16({s.rows()});
  const Attributes last = {{"dim", int64_t{1}}};
  Add(launches, {"reduce_sum", {x}, {F32({s.hidden})}, {{"dims", Ints{0}}}});
  Add(launches, {"reduce_sum", {x}, {row}, {{"dims", Ints{1}}}});
  Add(launches,
      {"reduce_sum", {BF16({s.narrow_rows, s.narrow})}, {BF16({s.narrow})}, {{"dims", Ints{0}}}});
  Add(launches, {"cumsum", {x}, {x}, last});
  // Inverses in chunks of 64 positions, of each head.
  const TensorSpec chunks = F32({std::max<int64_t>(1, s.rows() / 64), s.heads, 64, 64});
  Add(launches, {"triangular_solve", {chunks, chunks}, {chunks}, {{"unit_diagonal", int64_t{1}}}});
  const auto of_chunks = [&](int64_t rows, int64_t columns) {
    return BF16({s.heads, std::max<int64_t>(1, s.rows() / 64), rows, columns});
  };
  const TensorSpec values = of_chunks(64, 128), state = F32({s.heads, 128, 128});
  Add(launches, {"delta_scan",
                 {values, values, values, F32(of_chunks(1, 1).shape), state},
                 {values, of_chunks(128, 128), state},
                 {}});
  Add(launches, {"argmax", {x}, {{DType::kI64, row.shape}}, last});
  Add(launches, {"remaining_from", {x, row}, {{DType::kI64, row.shape}}, {}});
  Add(launches, {"topk", {x}, {{DType::kI64, {s.rows(), 4}}}, {last.begin(), last.end()}});
  launches.back().attributes.insert({{"k", int64_t{4}}, {"largest", int64_t{1}}});
}

void AddLosses(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t rows = s.rows(), v = s.vocabulary;
  const TensorSpec logits = BF16({rows, v}), row = F32({rows}), scalar = F32({}),
                   labels{DType::kI64, {rows}};
  Add(launches, {"cross_entropy", {logits, labels}, {scalar, scalar, row}, {}, 0, 0, v});
  Add(launches, {"token_losses", {logits, labels}, {row, row}, {}, 0, 0, v});
  Add(launches, {"cross_entropy_grad", {scalar, logits, labels, row}, {logits}, {}, 0, 0, v});
  // What a rank has of classes that are split.
  Add(launches, {"sum_exp", {logits, BF16({rows})}, {BF16({rows})}, {}});
  const Attributes blocks = {{"blocks", int64_t{4}}};
  const TensorSpec of_blocks = F32({rows, 4});
  Add(launches, {"block_logsumexp", {logits, labels}, {of_blocks, row}, blocks, 0, 0, v});

  const TensorSpec x = BF16({rows, s.hidden}), w = BF16({v, s.hidden});
  const double flops = 2.0 * static_cast<double>(rows * s.hidden * v);
  const Attributes stored = {{"transpose_weight", int64_t{1}}};
  Attributes in_blocks = stored;
  in_blocks.insert(blocks.begin(), blocks.end());
  Add(launches,
      {"linear_cross_entropy", {x, w, labels}, {scalar, scalar, row}, stored, flops, 0, v});
  Add(launches, {"linear_token_losses", {x, w, labels}, {row, row}, stored, flops, 0, v});
  Add(launches, {"linear_logsumexp", {x, w, labels}, {of_blocks, row}, in_blocks, flops, 0, v});
  // The logits once more, and two products with their gradient.
  Add(launches, {"linear_cross_entropy_grad",
                 {scalar, x, w, labels, row},
                 {x, F32(w.shape)},
                 stored,
                 3 * flops,
                 0,
                 v});
}

void AddElements(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t rows = s.rows(), head = s.hidden / s.heads;
  const TensorSpec x = BF16({rows, s.hidden}), y = BF16({rows, s.wide}), bias = BF16({s.hidden});
  const TensorSpec is{DType::kBool, x.shape};
  const TensorSpec q = BF16({s.batch, s.heads, s.length, head}),
                   angles = F32({1, 1, s.length, head});
  const Attributes silu = {{"kind", "silu"}}, gelu = {{"kind", "gelu_tanh"}};
  Add(launches, {"add", {x, x}, {x}, {}});
  Add(launches, {"add", {x, bias}, {x}, {}});
  Add(launches, {"less", {x, x}, {is}, {}});
  Add(launches, {"and", {is, is}, {is}, {}});
  Add(launches, {"select", {is, x, x}, {x}, {}});
  Add(launches, {"exp", {x}, {x}, {}});
  Add(launches, {"cast", {F32(x.shape)}, {x}, {}});
  Add(launches, {"cast", {x}, {F32(x.shape)}, {}});
  Add(launches,
      {"dropout", {x, {DType::kI64, {s.batch}}}, {x}, {{"ratio", 0.1}, {"site", int64_t{1}}}});
  Add(launches, {"activation", {y}, {y}, gelu});
  Add(launches, {"activation_grad", {y, y}, {y}, gelu});
  Add(launches, {"gated_activation", {y, y}, {y}, silu});
  Add(launches, {"gated_activation_grad", {y, y, y}, {y, y}, silu});
  Add(launches, {"rope", {q, angles, angles}, {q}, {}});
}

// What makes, picks and moves.
void AddMoves(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t rows = s.rows(), head = s.hidden / s.heads;
  const TensorSpec x = BF16({rows, s.hidden}), half = BF16({rows, s.hidden / 2});
  const TensorSpec table = BF16({s.vocabulary, s.hidden}), ids{DType::kI64, {rows}};
  const Attributes first = {{"dim", int64_t{0}}}, second = {{"dim", int64_t{1}}};
  const auto moved = static_cast<double>(x.bytes());
  Add(launches, {"gather", {table, ids}, {x}, first, 0, 2 * moved, s.vocabulary});
  // Every row of the table is written, for most have no gradient.
  const double updated = moved + static_cast<double>(table.bytes());
  Add(launches, {"scatter_add", {ids, x}, {table}, first, 0, updated, s.vocabulary});
  // All to few rows, as of token types.
  Add(launches, {"scatter_add", {ids, x}, {BF16({2, s.hidden})}, first, 0, moved, 2});
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
  Add(launches, {"broadcast", {BF16({s.hidden})}, {x}, {}});
  Add(launches, {"fill", {}, {x}, {{"value", 1.0}}});
  Add(launches, {"initial_value",
                 {},
                 {x},
                 {{"kind", "normal"},
                  {"first", 0.0},
                  {"second", 0.02},
                  {"seed", int64_t{1}},
                  {"name", int64_t{2}},
                  {"shape", Ints{rows, s.hidden}},
                  {"start", Ints{0, 0}}}});
}

// Images: patches, and their features among the tokens.
void AddImages(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const int64_t pixels = s.side * s.patch;
  const TensorSpec image = BF16({s.batch, 3, pixels, pixels});
  const TensorSpec weight = BF16({s.vision, 3, s.patch, s.patch});
  const TensorSpec patches = BF16({s.batch, s.vision, s.side, s.side});
  const Attributes strided = {{"strides", Ints{s.patch, s.patch}},
                              {"pads", Ints{0, 0, 0, 0}},
                              {"dilations", Ints{1, 1}},
                              {"group", int64_t{1}}};
  const double flops = 2.0 * static_cast<double>(patches.num_elements() * 3 * s.patch * s.patch);
  Add(launches, {"conv", {image, weight}, {patches}, strided, flops});
  Add(launches, {"conv", {image, weight, BF16({s.vision})}, {patches}, strided, flops});
  Add(launches, {"conv_weight_grad", {patches, image}, {weight}, strided, flops});
  Add(launches, {"conv_input_grad", {patches, weight}, {image}, strided, flops});
  // Patches side by side as plans have them: their elements together, then a product of all.
  const TensorSpec apart = BF16({s.batch, 3, s.side, s.patch, s.side, s.patch});
  const TensorSpec together = BF16({s.batch, s.side, s.side, 3, s.patch, s.patch});
  Add(launches, {"transpose", {apart}, {together}, {{"permutation", Ints{0, 2, 4, 1, 3, 5}}}});
  const int64_t rows = s.batch * s.side * s.side, patch = 3 * s.patch * s.patch;
  Add(launches, {"linear",
                 {BF16({rows, patch}), BF16({s.vision, patch}), BF16({s.vision})},
                 {BF16({rows, s.vision})},
                 {{"transpose_weight", int64_t{1}}},
                 flops});
  // Of each channel by itself, as state-space layers begin.
  const TensorSpec channels = BF16({s.batch, s.hidden, s.length});
  const TensorSpec taps = BF16({s.hidden, 1, 4});
  const Attributes causal = {
      {"strides", Ints{1}}, {"pads", Ints{3, 0}}, {"dilations", Ints{1}}, {"group", s.hidden}};
  Add(launches, {"conv", {channels, taps, BF16({s.hidden})}, {channels}, causal});
  Add(launches, {"conv_weight_grad", {channels, channels}, {{DType::kF32, taps.shape}}, causal});
  Add(launches, {"conv_input_grad", {channels, taps}, {channels}, causal});

  const TensorSpec x = BF16({s.batch, s.length, s.hidden});
  const TensorSpec features = BF16({s.batch, s.patches(), s.hidden});
  const TensorSpec mask{DType::kBool, {s.batch, s.length}}, all{DType::kBool, x.shape};
  const int64_t n = s.patches();
  // Each row of the result comes from one place.
  const double merged = 2.0 * static_cast<double>(x.bytes());
  Add(launches, {"merge_features", {x, mask, features}, {x}, {}, 0, merged, n});
  Add(launches, {"merge_features_grad", {x, mask}, {x, features}, {}, 0, 0, n});
  Add(launches, {"masked_scatter", {x, all, x}, {x}, {}});
  Add(launches, {"masked_scatter_grad", {x, all}, {x, x}, {}});
}

void AddOptimizer(const Sizes& s, std::vector<BenchLaunch>& launches) {
  const TensorSpec p = F32({s.parameters}), rounded = BF16(p.shape), scalar = F32({});
  const Attributes settings = {
      {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}};
  for (const TensorSpec& g : {p, rounded}) {
    Add(launches, {"sum_squares", {g}, {scalar}, {}});
    // Results are in the place of what was: read and written, as the lists say.
    const std::vector<TensorSpec> operands = {p, g, p, p, scalar, scalar, scalar};
    Add(launches, {"adamw", operands, {p, p, p}, settings, 0, 0, 0, {0, 2, 3}, {3}});
    Add(launches, {"adamw", operands, {p, p, p, rounded}, settings, 0, 0, 0, {0, 2, 3}, {3}});
    const TensorSpec rest{DType::kI16, p.shape};
    const std::vector<TensorSpec> halves = {rounded, g, p, p, rest, scalar, scalar, scalar};
    Add(launches, {"adamw", halves, {rounded, p, p, rest}, settings, 0, 0, 0, {0, 2, 3, 4}, {3}});
    Add(launches, {"sgd", {p, g, scalar, scalar}, {p}, {{"weight_decay", 0.1}}, 0, 0, 0, {0}});
    const Attributes moving = {{"momentum", 0.9}, {"nesterov", int64_t{0}}, {"weight_decay", 0.1}};
    Add(launches,
        {"sgd_momentum", {p, g, p, scalar, scalar}, {p, p}, moving, 0, 0, 0, {0, 2}, {1}});
  }
}

std::vector<BenchLaunch> Launches(const Sizes& sizes) {
  std::vector<BenchLaunch> launches;
  AddProducts(sizes, launches);
  AddExperts(sizes, launches);
  AddAttention(sizes, launches);
  AddNorms(sizes, launches);
  AddReductions(sizes, launches);
  AddLosses(sizes, launches);
  AddElements(sizes, launches);
  AddMoves(sizes, launches);
  AddImages(sizes, launches);
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
  return Launches({8, 1024, 4096, 32, 8, 11008, 32000, 24, 14, 1024, 16, 1 << 28, 768, 1 << 16});
}

std::vector<BenchLaunch> TinyLaunches() {
  return Launches({2, 16, 64, 4, 2, 96, 80, 2, 4, 32, 2, 1000, 32, 64});
}

std::string BenchedWith(const std::string& kernel) {
  // One loop each, which is told by a number what to do with an element.
  static const auto* const others = new std::map<std::string, std::vector<std::string>>{
      {"add", {"div", "max", "min", "mod", "mul", "pow", "sub"}},
      {"less", {"equal", "greater", "greater_equal", "less_equal"}},
      {"and", {"or", "xor", "not"}},
      {"exp", {"abs",   "acos",  "acosh",   "asin", "asinh", "atan", "atanh", "ceil", "cos",
               "cosh",  "erf",   "floor",   "log",  "neg",   "relu", "sign",  "sin",  "reciprocal",
               "round", "rsqrt", "sigmoid", "sinh", "sqrt",  "tan",  "tanh"}},
      {"reduce_sum", {"reduce_max", "reduce_mean", "reduce_min", "reduce_prod"}},
      {"fill", {"iota"}},
      {"the copy", {"reshape"}},
      {"no other: it reads a few bytes", {"check_image_slots", "label_logits"}},
      {"no other: its code is the plan's", {"generated"}},
  };
  for (const auto& [benched, kernels] : *others) {
    for (const std::string& other : kernels) {
      if (other == kernel) return benched;
    }
  }
  return "";
}

}  // namespace oriel::kernels::cuda
