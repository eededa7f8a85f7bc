#include "frontend/masked_rows.h"

#include "frontend/mask_matcher.h"
#include "frontend/masked_scatter.h"
#include "llvm/ADT/StringSet.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;
using Node = Graph::Node;

bool isElementwise(const Node& node) {
  static const llvm::StringSet<> kOps = {
      "Abs",      "Add",      "Cast",        "Div",       "Elu",        "Erf",  "Exp",
      "Gelu",     "Identity", "HardSigmoid", "HardSwish", "LeakyRelu",  "Max",  "Min",
      "Mish",     "Mul",      "Neg",         "Pow",       "Reciprocal", "Relu", "Sigmoid",
      "Softplus", "Sqrt",     "Sub",         "Swish",     "Tanh"};
  return Graph::is(&node, node.op_type()) && kOps.contains(node.op_type());
}

// Before the copies and reshapes that leave elements in their order.
StringRef beforeFlattening(const Graph& graph, StringRef value) {
  const MaskMatcher masks(graph);
  const Node* node = graph.producer(value = masks.skipCopies(value));
  while (Graph::is(node, "Reshape") && masks.isMinusOne(Graph::operand(*node, 1))) {
    node = graph.producer(value = masks.skipCopies(Graph::operand(*node, 0)));
  }
  return value;
}

// Makes nodes that compute on all rows, in front of `place`, for the rows that `mask` chooses.
class AllRows {
 public:
  AllRows(Graph& graph, const Node* place, std::string mask)
      : graph_(graph), place_(place), mask_(std::move(mask)), masks_(graph) {}

  // The name of the value on all rows; empty where `value` is not made row by row of what the mask
  // chooses.
  std::string of(StringRef value) {
    value = masks_.skipCopies(value);
    constexpr int kDeepest = 300;  // of computations; recursion is bounded
    auto [known, isNew] = made_.try_emplace(value);
    if (!isNew || depth_ == kDeepest) {
      return known->second;
    }
    ++depth_;
    std::string made = make(value);
    --depth_;
    made_[value] = made;
    return made;
  }

 private:
  std::string make(StringRef value) {
    const Node* node = graph_.producer(value);
    if (!node || node->output_size() == 0 || value != node->output(0)) {
      return "";
    }
    if (Graph::is(node, "GatherND")) {
      return choice(*node);
    }
    if (isElementwise(*node)) {
      return elementwise(*node);
    }
    if (Graph::is(node, "MatMul") || Graph::is(node, "Gemm")) {
      return product(*node);
    }
    return isOfLastDimension(*node) ? withRows(*node) : "";
  }

  // By the mask, or, of all elements of the rows one behind the other, by the mask repeated for
  // them.
  std::string choice(const Node& node) {
    const auto* batch = Graph::attribute(node, "batch_dims");
    const StringRef chosen = masks_.maskOfIndices(Graph::operand(node, 1));
    if ((batch && batch->i() != 0) || chosen.empty()) {
      return "";
    }
    const bool isOfRows = masks_.isSame(chosen, mask_);
    if (!isOfRows && !masks_.isSame(masks_.beforeBroadcast(chosen), mask_)) {
      return "";
    }
    const std::string data = Graph::operand(node, 0).str();
    if (data_.empty()) {
      data_ = data;
      isFlat_ = !isOfRows;
      wide_ = chosen.str();
    }
    if (isFlat_ != !isOfRows) {
      return "";
    }
    return isOfRows ? emit(node, kRowsAtMask, {data, mask_, data_})
                    : emit(node, kRowsAtMask, {data, mask_, data_, chosen.str()});
  }

  std::string elementwise(const Node& node) {
    std::vector<std::string> operands;
    std::string like;
    for (const std::string& operand : node.input()) {
      operands.push_back(of(operand));
      if (like.empty()) like = operands.back();
    }
    if (like.empty()) {
      return "";
    }
    for (auto [index, operand] : llvm::enumerate(operands)) {
      if (!operand.empty()) continue;
      const std::string rows = isFlat_ ? unflattened(node.input(index)) : node.input(index);
      if (rows.empty()) return "";
      operand = isFlat_ ? emit(node, kSpreadRows, {like, mask_, rows, wide_})
                        : emit(node, kSpreadRows, {like, mask_, rows});
    }
    Node copy = node;
    *copy.mutable_input() = {operands.begin(), operands.end()};
    return add(std::move(copy));
  }

  // Of elements one behind the other: the rows, or one number for all; else empty.
  std::string unflattened(StringRef value) const {
    if (graph_.rankOfInitializer(value) == 0) {
      return value.str();
    }
    const StringRef rows = beforeFlattening(graph_, value);
    return rows == masks_.skipCopies(value) ? "" : rows.str();
  }

  // Of rows and a matrix of weights. Gemm takes two dimensions only.
  std::string product(const Node& node) {
    const std::string rows = of(Graph::operand(node, 0));
    if (rows.empty() || isFlat_ || !isMatrix(Graph::operand(node, 1))) {
      return "";
    }
    Node matmul = node;
    matmul.set_op_type("MatMul");
    matmul.clear_attribute();
    matmul.set_input(0, rows);
    if (Graph::is(&node, "MatMul")) {
      return add(std::move(matmul));
    }
    auto isOne = [&](const char* name) {
      const auto* attribute = Graph::attribute(node, name);
      return !attribute || attribute->f() == 1;
    };
    const auto *left = Graph::attribute(node, "transA"), *right = Graph::attribute(node, "transB");
    if (!isOne("alpha") || !isOne("beta") || (left && left->i() != 0)) {
      return "";
    }
    if (right && right->i() != 0) {
      Node transpose = node;
      transpose.set_op_type("Transpose");
      transpose.clear_attribute();
      *transpose.mutable_input() = {node.input().begin() + 1, node.input().begin() + 2};
      matmul.set_input(1, add(std::move(transpose)));
    }
    const std::string bias = Graph::operand(node, 2).str();
    while (matmul.input_size() > 2) matmul.mutable_input()->RemoveLast();
    const std::string result = add(std::move(matmul));
    if (bias.empty()) {
      return result;
    }
    Node sum = node;
    sum.set_op_type("Add");
    sum.clear_attribute();
    const std::string inputs[] = {result, emit(node, kSpreadRows, {result, mask_, bias})};
    *sum.mutable_input() = {std::begin(inputs), std::end(inputs)};
    return add(std::move(sum));
  }

  static bool isNorm(const Node& node) {
    return Graph::is(&node, "LayerNormalization") || Graph::is(&node, "RMSNormalization");
  }

  // With the first operand on all rows.
  std::string withRows(const Node& node) {
    const std::string rows = of(Graph::operand(node, 0));
    if (rows.empty() || (isFlat_ && !Graph::is(&node, "CastLike"))) {
      return "";
    }
    Node copy = node;
    copy.set_input(0, rows);
    // The scale and the bias of a norm may be of each row.
    for (int i = 1; isNorm(node) && i < node.input_size(); ++i) {
      if (!node.input(i).empty()) {
        copy.set_input(i, emit(node, kSpreadRows, {rows, mask_, node.input(i)}));
      }
    }
    while (copy.output_size() > 1) copy.mutable_output()->RemoveLast();
    return add(std::move(copy));
  }

  // Norms, softmax and reductions that keep the dimension, of the last one alone, which is never
  // that of the rows.
  bool isOfLastDimension(const Node& node) const {
    const auto* axis = Graph::attribute(node, "axis");
    if (isNorm(node) || Graph::is(&node, "Softmax")) {
      return !axis || axis->i() == -1;
    }
    if (Graph::is(&node, "CastLike")) {
      return true;  // the other operand gives its type only
    }
    if (!Graph::is(&node, "ReduceMean") && !Graph::is(&node, "ReduceSum") &&
        !Graph::is(&node, "ReduceMax")) {
      return false;
    }
    const auto *keep = Graph::attribute(node, "keepdims"), *axes = Graph::attribute(node, "axes");
    const bool isLast = axes ? axes->ints_size() == 1 && axes->ints(0) == -1
                             : masks_.isMinusOne(Graph::operand(node, 1));
    return isLast && (!keep || keep->i() != 0);
  }

  // Whether the value is a parameter of two dimensions.
  bool isMatrix(StringRef value) const {
    const Node* node = graph_.producer(value);
    while (Graph::is(node, "Identity") || Graph::is(node, "Transpose") || Graph::is(node, "Cast")) {
      value = Graph::operand(*node, 0);
      node = graph_.producer(value);
    }
    return !node && graph_.rankOfInitializer(value) == 2;
  }

  // A node of ours in the place of `like`.
  std::string emit(const Node& like, const char* op, std::initializer_list<std::string> inputs) {
    Node node = like;  // keeps name and metadata
    node.set_domain(kOrielDomain);
    node.set_op_type(op);
    node.clear_attribute();
    *node.mutable_input() = {inputs.begin(), inputs.end()};
    while (node.output_size() > 1) node.mutable_output()->RemoveLast();
    return add(std::move(node));
  }

  std::string add(Node node) {
    std::string name = graph_.freshName(node.output(0) + " of all rows");
    node.set_output(0, name);
    graph_.insertBefore(place_, std::move(node));
    return name;
  }

  Graph& graph_;
  const Node* place_;
  std::string mask_;
  std::string data_;  // what rows are chosen of, at first, and by which mask
  std::string wide_;
  bool isFlat_ = false;  // all that is made of them has their elements one behind the other
  int depth_ = 0;
  MaskMatcher masks_;
  llvm::StringMap<std::string> made_;
};

}  // namespace

void replaceMaskedRows(Graph& graph) {
  for (const Node* node : graph.nodes().vec()) {
    if (node->domain() != kOrielDomain || node->op_type() != kMaskedScatter) {
      continue;
    }
    const std::string mask = MaskMatcher(graph).beforeBroadcast(node->input(1)).str();
    const std::string rows = AllRows(graph, node, mask).of(beforeFlattening(graph, node->input(2)));
    if (rows.empty()) {
      continue;
    }
    Node select = *node;
    select.set_op_type(kSelectRows);
    select.clear_attribute();
    select.set_input(1, mask);
    select.set_input(2, rows);
    select.add_input(node->input(1));
    graph.replace(node, std::move(select));
  }
}

}  // namespace oriel
