#include "frontend/graph.h"

#include "frontend/error.h"
#include "frontend/node_location.h"
#include "llvm/ADT/StringSet.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

// Adds what `node` reads and `own`, the values of the branches around it, does not hold.
void addReads(const onnx::NodeProto& node, const llvm::StringSet<>& own,
              std::vector<llvm::StringRef>& reads) {
  for (const std::string& value : node.input()) {
    if (!value.empty() && !own.contains(value)) {
      reads.push_back(value);
    }
  }
  for (const auto& attribute : node.attribute()) {
    if (!attribute.has_g()) {
      continue;
    }
    llvm::StringSet<> within = own;
    for (const auto& inner : attribute.g().node()) {
      within.insert(inner.output().begin(), inner.output().end());
    }
    for (const auto& tensor : attribute.g().initializer()) {
      within.insert(tensor.name());
    }
    for (const auto& input : attribute.g().input()) {
      within.insert(input.name());
    }
    for (const auto& inner : attribute.g().node()) {
      addReads(inner, within, reads);
    }
    for (const auto& output : attribute.g().output()) {
      if (!within.contains(output.name())) {
        reads.push_back(output.name());
      }
    }
  }
}

}  // namespace

llvm::Expected<Graph> Graph::create(const onnx::GraphProto& graph, const ModelFile& model) {
  Graph ordered(graph, model);
  for (const auto& node : graph.node()) {
    ordered.nodes_.push_back(&node);
  }
  if (llvm::Error error = ordered.findProducers()) {
    return error;
  }
  if (llvm::Error error = ordered.sort()) {
    return error;
  }
  return ordered;
}

llvm::Error Graph::findProducers() {
  llvm::StringMap<char> given;
  for (const auto& input : graph_->input()) {
    if (!given.try_emplace(input.name(), 0).second) {
      return makeError("the graph has two inputs named \"" + llvm::Twine(input.name()) + "\"");
    }
  }
  for (const Node* node : nodes_) {
    for (const std::string& output : node->output()) {
      if (output.empty()) {
        continue;
      }
      if (given.contains(output) || model_->hasInitializer(output)) {
        return makeError("node \"" + nodeName(*node) + "\" produces \"" + output +
                         "\", which is already an input or initializer");
      }
      auto [other, isNew] = producers_.try_emplace(output, node);
      if (!isNew) {
        return makeError("the value \"" + output + "\" is produced twice, by the nodes \"" +
                         nodeName(*other->second) + "\" and \"" + nodeName(*node) + "\"");
      }
    }
  }
  auto check = [&](llvm::StringRef value, const llvm::Twine& reader) -> llvm::Error {
    if (given.contains(value) || producers_.contains(value) || model_->hasInitializer(value)) {
      return llvm::Error::success();
    }
    return makeError(reader + " reads \"" + value +
                     "\", which no node, input or initializer provides: the model is incomplete, "
                     "export it again with its weights");
  };
  for (const Node* node : nodes_) {
    for (llvm::StringRef value : reads(*node)) {
      if (llvm::Error error = check(value, "node \"" + nodeName(*node) + "\"")) {
        return error;
      }
    }
  }
  for (const auto& output : graph_->output()) {
    if (llvm::Error error = check(output.name(), "the list of outputs")) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error Graph::sort() {
  // Depth first in file order, without recursion: a sorted graph comes out as it was.
  enum State : char { kNew, kOpen, kDone };
  llvm::DenseMap<const Node*, State> states;
  std::vector<const Node*> sorted;
  for (const Node* root : nodes_) {
    if (states.lookup(root) != kNew) {
      continue;
    }
    struct Open {
      const Node* node;
      std::vector<llvm::StringRef> left;  // reads to be followed
    };
    auto open = [&](const Node* node) {
      Open opened{node, reads(*node)};
      std::reverse(opened.left.begin(), opened.left.end());
      states[node] = kOpen;
      return opened;
    };
    std::vector<Open> stack{open(root)};
    while (!stack.empty()) {
      auto& [node, left] = stack.back();
      if (left.empty()) {
        states[node] = kDone;
        sorted.push_back(node);
        stack.pop_back();
        continue;
      }
      const Node* from = producer(left.back());
      left.pop_back();
      if (!from || states.lookup(from) == kDone) {
        continue;
      }
      if (states.lookup(from) == kOpen) {
        return makeError("the graph has a cycle through the nodes \"" + nodeName(*from) +
                         "\" and \"" + nodeName(*node) + "\"");
      }
      stack.push_back(open(from));
    }
  }
  nodes_ = std::move(sorted);
  return llvm::Error::success();
}

const Graph::Node* Graph::producer(llvm::StringRef value) const { return producers_.lookup(value); }

llvm::StringRef Graph::operand(const Node& node, int index) {
  return index < node.input_size() ? llvm::StringRef(node.input(index)) : llvm::StringRef();
}

std::vector<llvm::StringRef> Graph::reads(const Node& node) {
  std::vector<llvm::StringRef> reads;
  addReads(node, {}, reads);
  return reads;
}

const onnx::AttributeProto* Graph::attribute(const Node& node, llvm::StringRef name) {
  for (const auto& attribute : node.attribute()) {
    if (name == attribute.name()) {
      return &attribute;
    }
  }
  return nullptr;
}

bool Graph::is(const Node* node, llvm::StringRef op) {
  return node && op == node->op_type() && (node->domain().empty() || node->domain() == "ai.onnx");
}

std::optional<std::vector<int64_t>> Graph::constantInts(llvm::StringRef value) const {
  auto fromTensor = [](const TensorData& data) -> std::optional<std::vector<int64_t>> {
    constexpr int64_t kSmall = 64;
    if (data.numElements() > kSmall) {
      return std::nullopt;
    }
    std::vector<int64_t> ints(data.numElements());
    if (data.dataType == onnx::TensorProto::INT64) {
      std::copy(data.bytes.begin(), data.bytes.end(), reinterpret_cast<char*>(ints.data()));
      return ints;
    }
    if (data.dataType == onnx::TensorProto::INT32) {
      std::vector<int32_t> narrow(ints.size());
      std::copy(data.bytes.begin(), data.bytes.end(), reinterpret_cast<char*>(narrow.data()));
      ints.assign(narrow.begin(), narrow.end());
      return ints;
    }
    return std::nullopt;
  };
  auto orNothing = [&](llvm::Expected<TensorData> data) -> std::optional<std::vector<int64_t>> {
    if (!data) {
      llvm::consumeError(data.takeError());
      return std::nullopt;
    }
    return fromTensor(*data);
  };
  const Node* node = producer(value);
  while (is(node, "Identity") || is(node, "Reshape") || is(node, "Unsqueeze") ||
         is(node, "Squeeze") || is(node, "Cast") ||
         (is(node, "Concat") && node->input_size() == 1)) {
    value = operand(*node, 0);
    node = producer(value);
  }
  if (!node) {
    return model_->hasInitializer(value) ? orNothing(model_->initializer(value)) : std::nullopt;
  }
  if (!is(node, "Constant") || node->attribute_size() != 1) {
    return std::nullopt;
  }
  const auto& attribute = node->attribute(0);
  if (attribute.name() == "value_int") {
    return std::vector<int64_t>{attribute.i()};
  }
  if (attribute.name() == "value_ints") {
    return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
  }
  if (attribute.name() == "value") {
    return orNothing(readTensor(attribute.t(), model_->folder()));
  }
  return std::nullopt;
}

std::optional<size_t> Graph::rankOfInitializer(llvm::StringRef value) const {
  if (!model_->hasInitializer(value)) {
    return std::nullopt;
  }
  auto header = model_->initializerHeader(value);
  if (!header) {
    llvm::consumeError(header.takeError());
    return std::nullopt;
  }
  return header->shape.size();
}

const Graph::Node* Graph::own(Node node) {
  owned_.push_back(std::make_shared<Node>(std::move(node)));
  const Node* fresh = owned_.back().get();
  for (const std::string& output : fresh->output()) {
    if (!output.empty()) {
      producers_[output] = fresh;
    }
  }
  return fresh;
}

void Graph::replace(const Node* old, Node node) {
  const Node* fresh = own(std::move(node));
  for (const Node*& slot : nodes_) {
    if (slot == old) {
      slot = fresh;
    }
  }
}

void Graph::insertBefore(const Node* place, Node node) {
  auto at = llvm::find(nodes_, place);
  nodes_.insert(at, own(std::move(node)));
}

std::string Graph::freshName(llvm::StringRef name) const {
  auto isTaken = [&](llvm::StringRef wanted) {
    return producer(wanted) || model_->hasInitializer(wanted.str()) ||
           llvm::any_of(graph_->input(), [&](const auto& input) { return wanted == input.name(); });
  };
  std::string fresh = name.str();
  while (isTaken(fresh)) {
    fresh += "'";
  }
  return fresh;
}

void Graph::removeDeadNodes() {
  llvm::DenseMap<const Node*, bool> live;
  std::vector<const Node*> pending;
  auto mark = [&](llvm::StringRef value) {
    const Node* node = producer(value);
    if (node && !live.lookup(node)) {
      live[node] = true;
      pending.push_back(node);
    }
  };
  for (const auto& output : graph_->output()) {
    mark(output.name());
  }
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (llvm::StringRef value : reads(*node)) {
      mark(value);
    }
  }
  llvm::erase_if(nodes_, [&](const Node* node) { return !live.lookup(node); });
}

}  // namespace oriel
