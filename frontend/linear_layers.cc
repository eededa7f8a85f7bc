#include "frontend/linear_layers.h"

#include <set>

#include "frontend/branches.h"
#include "frontend/graph.h"
#include "frontend/node_location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;

int64_t intOf(const onnx::NodeProto& node, StringRef name, int64_t otherwise) {
  const onnx::AttributeProto* attribute = Graph::attribute(node, name);
  return attribute ? attribute->i() : otherwise;
}

// Of a matrix; without an order, dimensions are reversed.
bool swapsDims(const onnx::NodeProto& node) {
  const onnx::AttributeProto* order = Graph::attribute(node, "perm");
  return !order || (order->ints_size() == 2 && order->ints(0) == 1);
}

// Which values the graph's outputs are, but for conversions, scales, biases and slices, and nothing
// else reads: not keys and values that a decoder gives for its cache.
class OutputValues {
 public:
  explicit OutputValues(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) constants_.insert(tensor.name());
    for (const auto& node : graph.node()) {
      visitWithBranches(node, [&](const onnx::NodeProto& inner) { add(inner); });
    }
    follow(graph);
    dropWhatOthersRead();
  }

  bool contains(StringRef value) const { return values_.contains(value); }

 private:
  void add(const onnx::NodeProto& node) {
    bool isConstant = node.input_size() > 0 || Graph::is(&node, "Constant");
    for (const std::string& operand : node.input()) {
      readers_[operand].push_back(&node);
      isConstant &= operand.empty() || constants_.contains(operand);
    }
    for (const std::string& result : node.output()) {
      producers_[result] = &node;
      if (isConstant) constants_.insert(result);
    }
  }

  // The operand that the node's result is, but for what outputs may be; null for none.
  const std::string* operandOf(const onnx::NodeProto& node) const {
    constexpr StringRef kThrough[] = {"Add",     "Cast",     "Clip",       "Div",      "Flatten",
                                      "Gather",  "Identity", "LogSoftmax", "Mul",      "Neg",
                                      "Reshape", "Sigmoid",  "Slice",      "Softmax",  "Squeeze",
                                      "Sub",     "Tanh",     "Transpose",  "Unsqueeze"};
    // Whose other operands say how, and may be computed from sizes.
    constexpr StringRef kOfOne[] = {"Gather", "Reshape", "Slice", "Squeeze", "Unsqueeze"};
    const std::string* computed = nullptr;
    if (!llvm::is_contained(kThrough, StringRef(node.op_type()))) return nullptr;
    const bool isOfOne = llvm::is_contained(kOfOne, StringRef(node.op_type()));
    for (const std::string& operand : node.input()) {
      if (isOfOne && &operand != &node.input(0)) break;
      if (operand.empty() || constants_.contains(operand)) continue;
      if (computed) return nullptr;
      computed = &operand;
    }
    return computed;
  }

  void follow(const onnx::GraphProto& graph) {
    std::vector<StringRef> open;
    for (const auto& output : graph.output()) open.push_back(output.name());
    while (!open.empty()) {
      const StringRef value = open.back();
      open.pop_back();
      const onnx::NodeProto* node = producers_.lookup(value);
      if (!values_.insert(value).second || !node) continue;
      for (const auto& attribute : node->attribute()) {
        if (!Graph::is(node, "If") || !attribute.has_g()) continue;
        for (const auto& output : attribute.g().output()) open.push_back(output.name());
      }
      if (const std::string* operand = operandOf(*node)) {
        through_.insert(node);
        open.push_back(*operand);
      }
    }
  }

  void dropWhatOthersRead() {
    for (bool changes = true; changes;) {
      changes = false;
      for (const auto& [value, producer] : producers_) {
        auto readers = readers_.find(value);
        if (!values_.contains(value) || readers == readers_.end()) continue;
        auto readsNoElement = [&](const onnx::NodeProto* node) {
          return through_.contains(node) || Graph::is(node, "Shape");
        };
        if (llvm::all_of(readers->second, readsNoElement)) continue;
        values_.erase(value);
        through_.erase(producer);
        changes = true;
      }
    }
  }

  llvm::StringMap<const onnx::NodeProto*> producers_;
  llvm::StringMap<std::vector<const onnx::NodeProto*>> readers_;
  llvm::StringSet<> constants_, values_;
  llvm::SmallPtrSet<const onnx::NodeProto*, 16> through_;  // that are on a way to an output
};

// What is known of a weight's uses.
struct Use {
  LinearLayer layer;
  bool isBothWays = false;
};

std::string moduleOf(const ModelFile& model, const onnx::NodeProto& node, StringRef weight) {
  StringRef stem = weight;
  if (stem.consume_back(".weight") && !stem.empty()) {
    // As ONNX Runtime's builder of generative models names weights.
    if (!stem.consume_back(".MatMul")) stem.consume_back(".Gemm");
    return stem.str();
  }
  std::string path = modulePath(node);
  const std::string part = model.partOf(weight).str();
  // Composed files have the part's name in front of names that say nothing.
  if (path.empty() || path == part) return weight.str();
  return part.empty() || StringRef(path).starts_with(part + ".") ? path : part + "." + path;
}

class Finder {
 public:
  explicit Finder(const ModelFile& model)
      : model_(model), matrices_(model), outputs_(model.graph()) {}

  std::vector<LinearLayer> run() {
    add(model_.graph());
    std::vector<LinearLayer> layers;
    std::set<std::string> modules;
    for (Use& use : uses_) {
      if (use.isBothWays) continue;
      use.layer.isShared = shared_.contains(use.layer.weight);
      if (!modules.insert(use.layer.module).second) use.layer.module = use.layer.weight;
      layers.push_back(std::move(use.layer));
    }
    return layers;
  }

 private:
  void add(const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
      for (const auto& attribute : node.attribute()) {
        if (!attribute.has_g()) continue;
        matrices_.enter(attribute.g());
        add(attribute.g());
      }
      add(node);
    }
    for (const auto& output : graph.output()) {
      if (const Matrix* given = matrices_.find(output.name())) shared_.insert(given->weight);
    }
  }

  void add(const onnx::NodeProto& node) {
    if (matrices_.follow(node)) return;
    const std::optional<Matrix> factor = matrices_.factorOf(node);
    for (int i = 0; i < node.input_size(); ++i) {
      const Matrix* other = matrices_.find(node.input(i));
      if (other && !(factor && i == 1)) shared_.insert(other->weight);
    }
    if (factor) addUse(node, *factor);
  }

  void addUse(const onnx::NodeProto& node, const Matrix& factor) {
    auto [place, isNew] = place_.try_emplace(factor.weight, uses_.size());
    if (!isNew) {
      Use& use = uses_[place->second];
      use.isBothWays |= use.layer.isOutputFirst != factor.isTransposed;
      use.layer.isOutputLayer |= outputs_.contains(node.output(0));
      return;
    }
    auto header = model_.initializerHeader(factor.weight);
    if (!header) {
      llvm::consumeError(header.takeError());  // said where it is read
      place_.erase(place);
      return;
    }
    LinearLayer layer;
    layer.weight = factor.weight;
    layer.module = moduleOf(model_, node, factor.weight);
    layer.isOutputFirst = factor.isTransposed;
    layer.inputs = header->shape[layer.isOutputFirst ? 1 : 0];
    layer.outputs = header->shape[layer.isOutputFirst ? 0 : 1];
    layer.isOutputLayer = outputs_.contains(node.output(0));
    uses_.push_back({std::move(layer), false});
  }

  const ModelFile& model_;
  ParameterMatrices matrices_;
  OutputValues outputs_;
  llvm::StringMap<size_t> place_;  // of a weight in uses_
  std::vector<Use> uses_;
  llvm::StringSet<> shared_;
};

}  // namespace

ParameterMatrices::ParameterMatrices(const ModelFile& model) {
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.dims_size() != 2 || model.role(tensor.name()) != InitializerRole::kParameter) {
      continue;
    }
    values_[tensor.name()] = {tensor.name(), false, tensor.data_type()};
  }
}

const Matrix* ParameterMatrices::find(StringRef value) const {
  auto found = values_.find(value);
  return found == values_.end() ? nullptr : &found->second;
}

bool ParameterMatrices::follow(const onnx::NodeProto& node) {
  const Matrix* operand = find(Graph::operand(node, 0));
  const bool isTranspose = Graph::is(&node, "Transpose");
  if (!operand || !(isTranspose || Graph::is(&node, "Identity") || Graph::is(&node, "Cast"))) {
    for (const std::string& result : node.output()) values_.erase(result);
    return false;
  }
  Matrix result = *operand;
  if (isTranspose && swapsDims(node)) result.isTransposed = !result.isTransposed;
  if (Graph::is(&node, "Cast")) {
    result.dataType = static_cast<int32_t>(intOf(node, "to", result.dataType));
  }
  values_[node.output(0)] = result;
  return true;
}

void ParameterMatrices::enter(const onnx::GraphProto& branch) {
  for (const auto& input : branch.input()) values_.erase(input.name());
  for (const auto& tensor : branch.initializer()) values_.erase(tensor.name());
}

std::optional<Matrix> ParameterMatrices::factorOf(const onnx::NodeProto& node) const {
  const bool isGemm = Graph::is(&node, "Gemm");
  if (!isGemm && !Graph::is(&node, "MatMul")) return std::nullopt;
  const Matrix* factor = find(Graph::operand(node, 1));
  if (!factor || find(Graph::operand(node, 0)) || node.output_size() != 1) return std::nullopt;
  Matrix result = *factor;
  if (isGemm) {
    const onnx::AttributeProto* alpha = Graph::attribute(node, "alpha");
    if (intOf(node, "transA", 0) != 0 || (alpha && alpha->f() != 1.0F)) return std::nullopt;
    result.isTransposed ^= intOf(node, "transB", 0) != 0;
  }
  return result;
}

std::vector<LinearLayer> linearLayers(const ModelFile& model) { return Finder(model).run(); }

bool hasFunctions(const ModelFile& model) { return model.proto().functions_size() > 0; }

}  // namespace oriel
