// Pieces of a split tensor (see frontend/sequences.h).
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

// Sizes of the pieces: a list, one size for all but perhaps the last, or 1 where none is given.
FailureOr<Ints> pieceSizes(NodeImporter& n, int64_t total) {
  if (total > kMaxEnumerated) {
    return n.error() << "splits " << total << " elements, more than " << kMaxEnumerated;
  }
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
    Ints sizes(total / given->front(), given->front());
    if (total % given->front() != 0) {
      sizes.push_back(total % given->front());
    }
    return sizes;
  }
  return Ints(total, 1);
}

LogicalResult importSequencePart(NodeImporter& n) {
  Value input = n.operand(0);
  auto position = n.constantInt(2);
  if (!input || failed(position)) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  int64_t total = shapeOf(input)[*axis];
  auto sizes = pieceSizes(n, total);
  if (failed(sizes)) {
    return failure();
  }
  int64_t count = static_cast<int64_t>(sizes->size());
  int64_t wanted = *position < 0 ? *position + count : *position;
  if (wanted < 0 || wanted >= count) {
    return n.error() << "takes piece " << *position << " of " << count;
  }
  int64_t start = 0;
  for (int64_t i = 0; i <= wanted; ++i) {
    int64_t size = (*sizes)[i];
    if (size < 0 || size > total - start) {
      return n.error() << "the pieces don't fit into the size " << total;
    }
    start += i < wanted ? size : 0;
  }
  Value part = n.sliceDim(input, *axis, start, start + (*sizes)[wanted]);
  // Without a list of sizes, single rows may come without their dimension.
  if (part && !n.hasOperand(1) && n.attrInt("keepdims", 1) == 0) {
    Ints shape(shapeOf(part));
    shape.erase(shape.begin() + *axis);
    part = n.reshape(part, shape);
  }
  return n.replace(part);
}

}  // namespace

void registerSequenceOps(OpRegistry& registry) {
  registry.add(kSequencePart, 1, importSequencePart, kOrielDomain);
}

}  // namespace oriel
