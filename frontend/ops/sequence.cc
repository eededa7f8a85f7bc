// Sequences of tensors (frontend/sequences.h): lists of Python, and the pieces of a split.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/sequences.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;
using Values = llvm::SmallVector<Value>;

// Most tensors of a sequence.
constexpr int64_t kMaxTensors = 1 << 16;

// The tensors of operand 0.
FailureOr<Values> tensors(NodeImporter& n) {
  Value sequence = n.operand(0);
  if (!sequence) {
    return failure();
  }
  if (!isSequence(sequence)) {
    return n.error() << "needs a sequence, not " << sequence.getType();
  }
  return Values(tensorsOf(sequence));
}

LogicalResult replaceBySequence(NodeImporter& n, llvm::ArrayRef<Value> tensors) {
  if (tensors.size() > kMaxTensors) {
    return n.error() << "makes a sequence of " << tensors.size() << " tensors, more than "
                     << kMaxTensors;
  }
  if (llvm::is_contained(tensors, Value())) {
    return failure();
  }
  return n.replace(makeSequence(n.builder(), n.location(), tensors));
}

// The place that operand `index` names, counted from the end where negative; `end` is the place
// behind the last that there is.
FailureOr<int64_t> place(NodeImporter& n, unsigned index, int64_t end) {
  auto given = n.constantInt(index);
  if (failed(given)) {
    return failure();
  }
  const int64_t place = *given < 0 ? *given + end : *given;
  if (place < 0 || place >= end) {
    return n.error() << "takes place " << *given << " of " << end;
  }
  return place;
}

LogicalResult importSequenceEmpty(NodeImporter& n) { return replaceBySequence(n, {}); }

LogicalResult importSequenceConstruct(NodeImporter& n) {
  Values all;
  for (unsigned i = 0; i < n.numOperands(); ++i) {
    all.push_back(n.operand(i));
  }
  return replaceBySequence(n, all);
}

LogicalResult importSequenceInsert(NodeImporter& n) {
  auto all = tensors(n);
  Value tensor = n.operand(1);
  if (failed(all) || !tensor) {
    return failure();
  }
  if (isSequence(tensor)) {
    return n.error() << "inserts a sequence";
  }
  FailureOr<int64_t> at = static_cast<int64_t>(all->size());
  if (n.hasOperand(2)) {
    // -1 is in front of the last one.
    auto given = n.constantInt(2);
    if (failed(given)) {
      return failure();
    }
    if (*given != *at) at = place(n, 2, *at);
  }
  if (failed(at)) {
    return failure();
  }
  all->insert(all->begin() + *at, tensor);
  return replaceBySequence(n, *all);
}

LogicalResult importSequenceErase(NodeImporter& n) {
  auto all = tensors(n);
  if (failed(all)) {
    return failure();
  }
  if (all->empty()) {
    return n.error() << "takes a tensor from an empty sequence";
  }
  FailureOr<int64_t> at = static_cast<int64_t>(all->size()) - 1;
  if (n.hasOperand(1)) at = place(n, 1, all->size());
  if (failed(at)) {
    return failure();
  }
  all->erase(all->begin() + *at);
  return replaceBySequence(n, *all);
}

LogicalResult importSequenceAt(NodeImporter& n) {
  auto all = tensors(n);
  if (failed(all)) {
    return failure();
  }
  auto at = place(n, 1, all->size());
  return failed(at) ? failure() : n.replace((*all)[*at]);
}

LogicalResult importSequenceLength(NodeImporter& n) {
  auto all = tensors(n);
  return failed(all) ? failure() : n.replace(n.constantOf({static_cast<int64_t>(all->size())}, {}));
}

LogicalResult importConcatFromSequence(NodeImporter& n) {
  auto all = tensors(n);
  if (failed(all)) {
    return failure();
  }
  if (all->empty()) {
    return n.error() << "joins no tensors, so that nothing says the shape of its result";
  }
  const bool isNew = n.attrInt("new_axis", 0) != 0;
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(all->front()) + (isNew ? 1 : 0));
  if (failed(axis)) {
    return failure();
  }
  for (Value& tensor : *all) {
    if (!isNew) break;
    Ints shape(shapeOf(tensor));
    if (*axis > static_cast<int64_t>(shape.size())) {
      return n.error() << "joins tensors of different ranks";
    }
    shape.insert(shape.begin() + *axis, 1);
    tensor = n.reshape(tensor, shape);
  }
  return n.replace(n.concat(*all, *axis));
}

// Sizes of the pieces: a list, one size for all but perhaps the last, or 1 where none is given.
FailureOr<Ints> pieceSizes(NodeImporter& n, int64_t total) {
  Ints sizes;
  int64_t each = 1;
  if (n.hasOperand(1)) {
    auto given = n.constantInts(1);
    if (failed(given)) {
      return failure();
    }
    if (rankOf(n.operand(1)) == 1) {
      return *given;
    }
    if (given->size() != 1 || given->front() < 1) {
      return n.error() << "splits into pieces without a positive size";
    }
    each = given->front();
  }
  if (total / each >= kMaxTensors) {
    return n.error() << "splits " << total << " elements into more than " << kMaxTensors
                     << " pieces";
  }
  sizes.assign(total / each, each);
  if (total % each != 0) {
    sizes.push_back(total % each);
  }
  return sizes;
}

LogicalResult importSplitToSequence(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  const int64_t total = shapeOf(input)[*axis];
  auto sizes = pieceSizes(n, total);
  if (failed(sizes)) {
    return failure();
  }
  // Without a list of sizes, single rows may come without their dimension.
  const bool dropsDim = !n.hasOperand(1) && n.attrInt("keepdims", 1) == 0;
  Values pieces;
  int64_t start = 0;
  for (int64_t size : *sizes) {
    if (size < 0 || size > total - start) {
      return n.error() << "the pieces don't fit into the size " << total;
    }
    Value piece = n.sliceDim(input, *axis, start, start + size);
    if (piece && dropsDim) {
      Ints shape(shapeOf(piece));
      shape.erase(shape.begin() + *axis);
      piece = n.reshape(piece, shape);
    }
    pieces.push_back(piece);
    start += size;
  }
  if (start != total) {
    return n.error() << "the pieces make " << start << " of " << total;
  }
  return replaceBySequence(n, pieces);
}

}  // namespace

void registerSequenceOps(OpRegistry& registry) {
  registry.add("SequenceEmpty", 11, importSequenceEmpty);
  registry.add("SequenceConstruct", 11, importSequenceConstruct);
  registry.add("SplitToSequence", 11, importSplitToSequence);
  registry.add("SequenceInsert", 11, importSequenceInsert);
  registry.add("SequenceErase", 11, importSequenceErase);
  registry.add("SequenceAt", 11, importSequenceAt);
  registry.add("SequenceLength", 11, importSequenceLength);
  registry.add("ConcatFromSequence", 11, importConcatFromSequence);
  for (const char* op : {"SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength",
                         "ConcatFromSequence", "Identity"}) {
    registry.addSequenceOperands(op);
  }
}

}  // namespace oriel
