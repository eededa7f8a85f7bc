#include "frontend/masked_scatter.h"

#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;
using Node = Graph::Node;

const onnx::AttributeProto* findAttr(const Node& node, StringRef name) {
  for (const auto& attribute : node.attribute()) {
    if (name == attribute.name()) {
      return &attribute;
    }
  }
  return nullptr;
}

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph) {}

  // The mask whose true positions, one per row, this value lists; empty if it is nothing like it.
  StringRef maskOfIndices(StringRef value) const {
    const Node* transpose = graph_.producer(skipCopies(value));
    if (!Graph::is(transpose, "Transpose")) {
      return "";
    }
    const auto* perm = findAttr(*transpose, "perm");
    if (perm && !(perm->ints_size() == 2 && perm->ints(0) == 1 && perm->ints(1) == 0)) {
      return "";
    }
    return maskOfNonZero(Graph::operand(*transpose, 0));
  }

  struct Source {
    std::string value;
    bool expanded = false;  // broadcast to as many rows as the mask has true positions
  };

  // Where the updates come from: before a Slice that only cuts them to as many rows as the mask has
  // true positions, or before an Expand to as many.
  Source sourceOfUpdates(StringRef updates, StringRef mask) const {
    if (StringRef source = beforeExpand(updates, mask); !source.empty()) {
      return {source.str(), true};
    }
    return {beforeSlice(updates, mask).str(), false};
  }

 private:
  // Reshape(Expand(source, Concat(count, ..)), [-1]); empty for anything else.
  StringRef beforeExpand(StringRef updates, StringRef mask) const {
    const Node* flatten = graph_.producer(skipCopies(updates));
    if (!Graph::is(flatten, "Reshape") || !isMinusOne(Graph::operand(*flatten, 1))) {
      return "";
    }
    const Node* expand = graph_.producer(skipCopies(Graph::operand(*flatten, 0)));
    if (!Graph::is(expand, "Expand")) {
      return "";
    }
    const Node* shape = graph_.producer(skipCopies(Graph::operand(*expand, 1)));
    bool isPerPosition =
        Graph::is(shape, "Concat") && isSumOf(Graph::operand(*shape, 0), beforeBroadcast(mask));
    return isPerPosition ? skipCopies(Graph::operand(*expand, 0)) : StringRef();
  }

  StringRef beforeSlice(StringRef updates, StringRef mask) const {
    updates = skipCopies(updates);
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
                    isCount(Graph::operand(*slice, 2), mask);
    return isPrefix ? skipCopies(Graph::operand(*slice, 0)) : updates;
  }

  bool isMinusOne(StringRef value) const {
    auto ints = graph_.constantInts(value);
    return ints && ints->size() == 1 && ints->front() == -1;
  }

  // The mask before it was given the input's trailing dimensions.
  StringRef beforeBroadcast(StringRef mask) const {
    const Node* node = graph_.producer(mask);
    while (Graph::is(node, "Expand") || Graph::is(node, "Unsqueeze") ||
           Graph::is(node, "Identity")) {
      mask = Graph::operand(*node, 0);
      node = graph_.producer(mask);
    }
    return mask;
  }

  // Whether the value is ReduceSum(Cast(mask)) over everything, the mask perhaps flattened.
  bool isSumOf(StringRef value, StringRef mask) const {
    const Node* sum = graph_.producer(skipOneElement(value));
    if (!Graph::is(sum, "ReduceSum") || !Graph::operand(*sum, 1).empty()) {
      return false;
    }
    const auto* noop = findAttr(*sum, "noop_with_empty_axes");
    const Node* cast = graph_.producer(Graph::operand(*sum, 0));
    if ((noop && noop->i() != 0) || !Graph::is(cast, "Cast")) {
      return false;
    }
    StringRef summed = skipCopies(Graph::operand(*cast, 0));
    const Node* flatten = graph_.producer(summed);
    if (Graph::is(flatten, "Reshape") && isMinusOne(Graph::operand(*flatten, 1))) {
      summed = skipCopies(Graph::operand(*flatten, 0));
    }
    return summed == mask;
  }

  StringRef skipCopies(StringRef value) const {
    const Node* node = graph_.producer(value);
    while (Graph::is(node, "Identity")) {
      value = Graph::operand(*node, 0);
      node = graph_.producer(value);
    }
    return value;
  }

  // Before ops that keep a single element what it is.
  StringRef skipOneElement(StringRef value) const {
    const Node* node = graph_.producer(value);
    while (Graph::is(node, "Identity") || Graph::is(node, "Cast") || Graph::is(node, "Reshape") ||
           Graph::is(node, "Unsqueeze") || Graph::is(node, "Squeeze") ||
           (Graph::is(node, "Concat") && node->input_size() == 1)) {
      value = Graph::operand(*node, 0);
      node = graph_.producer(value);
    }
    return value;
  }

  // The mask, where the value is NonZero(mask), [rank, count].
  StringRef maskOfNonZero(StringRef value) const {
    const Node* nonzero = graph_.producer(skipCopies(value));
    return Graph::is(nonzero, "NonZero") ? skipCopies(Graph::operand(*nonzero, 0)) : StringRef();
  }

  // Whether the value is the number of true positions of the mask, whatever its rank.
  bool isCount(StringRef value, StringRef mask) const {
    if (isSumOf(value, mask)) {
      return true;
    }
    const Node* node = graph_.producer(skipOneElement(value));
    if (Graph::is(node, "Gather")) {
      auto index = graph_.constantInts(Graph::operand(*node, 1));
      return index && index->size() == 1 &&
             isCountDim(graph_.producer(Graph::operand(*node, 0)), index->front(), mask);
    }
    if (Graph::is(node, "Shape")) {  // of one dimension
      const auto *start = findAttr(*node, "start"), *end = findAttr(*node, "end");
      int64_t first = start ? start->i() : 0;
      return end && end->i() == first + 1 && isCountDim(node, first, mask);
    }
    return false;
  }

  // Whether dimension `dim` of what `shape` (a Shape node) is taken of counts the mask.
  bool isCountDim(const Node* shape, int64_t dim, StringRef mask) const {
    if (!Graph::is(shape, "Shape")) {
      return false;
    }
    StringRef value = Graph::operand(*shape, 0);
    if (maskOfIndices(value) == mask) {
      return dim == 0 || dim == -2;
    }
    return maskOfNonZero(value) == mask && (dim == 1 || dim == -1);
  }

  const Graph& graph_;
};

}  // namespace

int replaceMaskedScatters(Graph& graph) {
  int count = 0;
  for (const Node* node : graph.nodes().vec()) {
    if (!Graph::is(node, "ScatterND") || node->input_size() != 3) {
      continue;
    }
    const auto* reduction = findAttr(*node, "reduction");
    if (reduction && reduction->s() != "none") {
      continue;
    }
    Matcher matcher(graph);
    StringRef mask = matcher.maskOfIndices(node->input(1));
    if (mask.empty()) {
      continue;
    }
    Matcher::Source source = matcher.sourceOfUpdates(node->input(2), mask);
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
