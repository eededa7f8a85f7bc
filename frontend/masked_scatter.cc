#include "frontend/masked_scatter.h"

#include "frontend/mask_matcher.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;
using Node = Graph::Node;

class UpdateMatcher {
 public:
  explicit UpdateMatcher(const Graph& graph) : graph_(graph), masks_(graph) {}

  struct Source {
    std::string value;
    bool expanded = false;  // broadcast to as many rows as the mask has true positions
  };

  // Where the updates come from: before a Slice that only cuts them to as many rows as the mask has
  // true positions, or before an Expand to as many.
  Source sourceOf(StringRef updates, StringRef mask) const {
    if (StringRef source = beforeExpand(updates, mask); !source.empty()) {
      return {source.str(), true};
    }
    return {beforeSlice(updates, mask).str(), false};
  }

 private:
  // Reshape(Expand(source, Concat(count, ..)), [-1]); empty for anything else.
  StringRef beforeExpand(StringRef updates, StringRef mask) const {
    const Node* flatten = graph_.producer(masks_.skipCopies(updates));
    if (!Graph::is(flatten, "Reshape") || !masks_.isMinusOne(Graph::operand(*flatten, 1))) {
      return "";
    }
    const Node* expand = graph_.producer(masks_.skipCopies(Graph::operand(*flatten, 0)));
    if (!Graph::is(expand, "Expand")) {
      return "";
    }
    const Node* shape = graph_.producer(masks_.skipCopies(Graph::operand(*expand, 1)));
    bool isPerPosition = Graph::is(shape, "Concat") &&
                         masks_.isSumOf(Graph::operand(*shape, 0), masks_.beforeBroadcast(mask));
    return isPerPosition ? masks_.skipCopies(Graph::operand(*expand, 0)) : StringRef();
  }

  StringRef beforeSlice(StringRef updates, StringRef mask) const {
    updates = masks_.skipCopies(updates);
    const Node* slice = graph_.producer(updates);
    if (!Graph::is(slice, "Slice")) {
      return updates;
    }
    auto isOneInt = [&](int operand, int64_t wanted) {
      StringRef name = Graph::operand(*slice, operand);
      if (name.empty()) {
        return true;  // the default: axes from 0, steps of 1
      }
      auto ints = graph_.constantInts(name);
      return ints && ints->size() == 1 && ints->front() == wanted;
    };
    bool isPrefix = isOneInt(1, 0) && isOneInt(3, 0) && isOneInt(4, 1) &&
                    masks_.isCount(Graph::operand(*slice, 2), mask);
    return isPrefix ? masks_.skipCopies(Graph::operand(*slice, 0)) : updates;
  }

  const Graph& graph_;
  MaskMatcher masks_;
};

}  // namespace

int replaceMaskedScatters(Graph& graph) {
  int count = 0;
  for (const Node* node : graph.nodes().vec()) {
    if (!Graph::is(node, "ScatterND") || node->input_size() != 3) {
      continue;
    }
    const auto* reduction = Graph::attribute(*node, "reduction");
    if (reduction && reduction->s() != "none") {
      continue;
    }
    StringRef mask = MaskMatcher(graph).maskOfIndices(node->input(1));
    if (mask.empty()) {
      continue;
    }
    UpdateMatcher::Source source = UpdateMatcher(graph).sourceOf(node->input(2), mask);
    Node merged = *node;  // keeps name and metadata
    merged.set_domain(kOrielDomain);
    merged.set_op_type(kMaskedScatter);
    merged.clear_attribute();
    merged.set_input(1, mask.str());
    merged.set_input(2, source.value);
    if (source.expanded) {
      auto* attribute = merged.add_attribute();
      attribute->set_name(kExpanded);
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(1);
    }
    graph.replace(node, std::move(merged));
    ++count;
  }
  return count;
}

}  // namespace oriel
