#include "frontend/mask_matcher.h"

#include "llvm/ADT/StringSet.h"
#include "onnx/onnx_pb.h"

namespace oriel {

using llvm::StringRef;
using Node = Graph::Node;

StringRef MaskMatcher::maskOfIndices(StringRef value) const {
  const Node* transpose = graph_.producer(skipCopies(value));
  if (!Graph::is(transpose, "Transpose")) {
    return "";
  }
  const auto* perm = Graph::attribute(*transpose, "perm");
  if (perm && !(perm->ints_size() == 2 && perm->ints(0) == 1 && perm->ints(1) == 0)) {
    return "";
  }
  return maskOfNonZero(Graph::operand(*transpose, 0));
}

bool MaskMatcher::isSame(StringRef a, StringRef b, int depth) const {
  a = skipCopies(a);
  b = skipCopies(b);
  if (a == b) {
    return true;
  }
  const Node *left = graph_.producer(a), *right = graph_.producer(b);
  static const llvm::StringSet<> kOps = {"And",    "Cast",    "Constant", "Equal",
                                         "Expand", "Greater", "Less",     "Not",
                                         "Or",     "Reshape", "Squeeze",  "Unsqueeze"};
  if (depth == 0 || !left || !right || left->op_type() != right->op_type() ||
      !Graph::is(left, left->op_type()) || !Graph::is(right, left->op_type()) ||
      !kOps.contains(left->op_type()) || left->input_size() > kMaxOperands ||
      left->input_size() != right->input_size() ||
      left->attribute_size() != right->attribute_size()) {
    return false;
  }
  for (int i = 0; i < left->attribute_size(); ++i) {
    if (left->attribute(i).SerializeAsString() != right->attribute(i).SerializeAsString()) {
      return false;
    }
  }
  for (int i = 0; i < left->input_size(); ++i) {
    if (!isSame(left->input(i), right->input(i), depth - 1)) {
      return false;
    }
  }
  return true;
}

bool MaskMatcher::isMinusOne(StringRef value) const {
  auto ints = graph_.constantInts(value);
  return ints && ints->size() == 1 && ints->front() == -1;
}

StringRef MaskMatcher::beforeBroadcast(StringRef mask) const {
  const Node* node = graph_.producer(mask);
  while (Graph::is(node, "Expand") || Graph::is(node, "Unsqueeze") || Graph::is(node, "Identity")) {
    mask = Graph::operand(*node, 0);
    node = graph_.producer(mask);
  }
  return mask;
}

bool MaskMatcher::isSumOf(StringRef value, StringRef mask) const {
  const Node* sum = graph_.producer(skipOneElement(value));
  if (!Graph::is(sum, "ReduceSum") || !Graph::operand(*sum, 1).empty()) {
    return false;
  }
  const auto* noop = Graph::attribute(*sum, "noop_with_empty_axes");
  const Node* cast = graph_.producer(Graph::operand(*sum, 0));
  if ((noop && noop->i() != 0) || !Graph::is(cast, "Cast")) {
    return false;
  }
  StringRef summed = skipCopies(Graph::operand(*cast, 0));
  const Node* flatten = graph_.producer(summed);
  if (Graph::is(flatten, "Reshape") && isMinusOne(Graph::operand(*flatten, 1))) {
    summed = skipCopies(Graph::operand(*flatten, 0));
  }
  return isSame(summed, mask);
}

StringRef MaskMatcher::skipCopies(StringRef value) const {
  const Node* node = graph_.producer(value);
  while (true) {
    if (isUndone(node))
      node = graph_.producer(Graph::operand(*node, 0));
    else if (!Graph::is(node, "Identity"))
      return value;
    value = Graph::operand(*node, 0);
    node = graph_.producer(value);
  }
}

// Whether the node squeezes what was unsqueezed before it.
bool MaskMatcher::isUndone(const Node* node) const {
  if (!Graph::is(node, "Squeeze")) {
    return false;
  }
  const Node* inner = graph_.producer(Graph::operand(*node, 0));
  if (!Graph::is(inner, "Unsqueeze")) {
    return false;
  }
  const auto squeezed = graph_.constantInts(Graph::operand(*node, 1));
  return squeezed && squeezed == graph_.constantInts(Graph::operand(*inner, 1));
}

// Before ops that keep a single element what it is.
StringRef MaskMatcher::skipOneElement(StringRef value) const {
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
StringRef MaskMatcher::maskOfNonZero(StringRef value) const {
  const Node* nonzero = graph_.producer(skipCopies(value));
  return Graph::is(nonzero, "NonZero") ? skipCopies(Graph::operand(*nonzero, 0)) : StringRef();
}

bool MaskMatcher::isCount(StringRef value, StringRef mask) const {
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
    const auto *start = Graph::attribute(*node, "start"), *end = Graph::attribute(*node, "end");
    int64_t first = start ? start->i() : 0;
    return end && end->i() == first + 1 && isCountDim(node, first, mask);
  }
  return false;
}

// Whether dimension `dim` of what `shape` (a Shape node) is taken of counts the mask.
bool MaskMatcher::isCountDim(const Node* shape, int64_t dim, StringRef mask) const {
  if (!Graph::is(shape, "Shape")) {
    return false;
  }
  StringRef value = Graph::operand(*shape, 0);
  if (isSame(maskOfIndices(value), mask)) {
    return dim == 0 || dim == -2;
  }
  return isSame(maskOfNonZero(value), mask) && (dim == 1 || dim == -1);
}

}  // namespace oriel
