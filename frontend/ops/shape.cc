// Ops that move, repeat or drop elements along whole dimensions.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

LogicalResult importReshape(NodeImporter& n) {
  Value input = n.operand(0);
  auto wanted = n.constantInts(1);
  if (!input || failed(wanted)) {
    return failure();
  }
  bool zeroMeansZero = n.attrInt("allowzero", 0) != 0;
  Ints shape = *wanted;
  int64_t known = 1;
  int inferred = -1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (size == 0 && !zeroMeansZero) {
      if (static_cast<int64_t>(i) >= rankOf(input)) {
        return n.error() << "size 0 at " << i << " copies a dimension that the input lacks";
      }
      size = shapeOf(input)[i];
    }
    if (size == -1 && inferred < 0) {
      inferred = static_cast<int>(i);
    } else if (size < 0 || __builtin_mul_overflow(known, size, &known)) {
      return n.error() << "the shape has the size " << size << " at " << i;
    }
  }
  int64_t count = tensorType(input).getNumElements();
  if (inferred >= 0) {
    if (known == 0 || count % known != 0) {
      return n.error() << "no size at " << inferred << " makes " << count << " elements";
    }
    shape[inferred] = count / known;
  } else if (known != count) {
    return n.error() << "the input has " << count << " elements, the shape " << known;
  }
  return n.replace(n.reshape(input, shape));
}

LogicalResult importFlatten(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  int64_t axis = n.attrInt("axis", 1), rank = rankOf(input);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis > rank) {
    return n.error() << "axis " << axis << " does not exist in a tensor of rank " << rank;
  }
  int64_t rows = 1, columns = 1;
  for (auto [i, size] : llvm::enumerate(shapeOf(input))) {
    (static_cast<int64_t>(i) < axis ? rows : columns) *= size;
  }
  return n.replace(n.reshape(input, {rows, columns}));
}

LogicalResult importTranspose(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  Ints reversed;
  for (int64_t i = rankOf(input) - 1; i >= 0; --i) {
    reversed.push_back(i);
  }
  return n.replace(n.transpose(input, n.attrInts("perm").value_or(reversed)));
}

struct Blocks {
  int64_t size;        // of one, along rows and along columns
  bool channelsFirst;  // its channels are (channels, rows, columns), not (rows, columns, channels)
};

// Of an image [n, c, h, w].
FailureOr<Blocks> readBlocks(NodeImporter& n, Value input) {
  if (!input) return failure();
  constexpr int64_t kLargest = int64_t{1} << 20;  // its square is no overflow
  const int64_t size = n.attrInt("blocksize", 0);
  if (rankOf(input) != 4 || size < 1 || size > kLargest) {
    return n.error() << "expects an image of rank 4 and a blocksize of 1 to " << kLargest
                     << ", got " << input.getType() << " and " << size;
  }
  const std::string mode = n.attrString("mode", "DCR");
  if (mode == "DCR" || mode == "CRD") return Blocks{size, mode == "CRD"};
  return n.error() << "has the unknown mode \"" << mode << "\"; known: DCR, CRD";
}

LogicalResult importDepthToSpace(NodeImporter& n) {
  Value input = n.operand(0);
  auto blocks = readBlocks(n, input);
  if (failed(blocks)) return failure();
  const auto [b, channelsFirst] = *blocks;
  Ints s(shapeOf(input));
  if (s[1] % (b * b) != 0) {
    return n.error() << "expects channels in " << b << " x " << b << " parts, got "
                     << input.getType();
  }
  s[1] /= b * b;
  Value apart = channelsFirst ? n.reshape(input, {s[0], s[1], b, b, s[2], s[3]})
                              : n.reshape(input, {s[0], b, b, s[1], s[2], s[3]});
  apart = n.transpose(apart, channelsFirst ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  return n.replace(n.reshape(apart, {s[0], s[1], s[2] * b, s[3] * b}));
}

LogicalResult importSpaceToDepth(NodeImporter& n) {
  Value input = n.operand(0);
  auto blocks = readBlocks(n, input);
  if (failed(blocks)) return failure();
  const auto [b, channelsFirst] = *blocks;
  Ints s(shapeOf(input));
  if (s[2] % b != 0 || s[3] % b != 0) {
    return n.error() << "expects rows and columns in blocks of " << b << ", got "
                     << input.getType();
  }
  Value apart = n.reshape(input, {s[0], s[1], s[2] / b, b, s[3] / b, b});
  apart = n.transpose(apart, channelsFirst ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  return n.replace(n.reshape(apart, {s[0], s[1] * b * b, s[2] / b, s[3] / b}));
}

LogicalResult importSqueeze(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  Ints axes, kept;
  if (n.hasOperand(1)) {
    auto given = n.constantInts(1);
    auto normalized = failed(given) ? given : n.normalizeAxes(*given, rankOf(input));
    if (failed(normalized)) {
      return failure();
    }
    axes = *normalized;
  }
  for (auto [i, size] : llvm::enumerate(shapeOf(input))) {
    bool drop = n.hasOperand(1) ? llvm::is_contained(axes, static_cast<int64_t>(i)) : size == 1;
    if (drop && size != 1) {
      mlir::emitWarning(n.location())
          << "Squeeze keeps axis " << i << ", which has the size " << size
          << ": ONNX has no meaning for it, and PyTorch's exporter writes x.squeeze(" << i
          << ") so, which keeps it";
    }
    if (!drop || size != 1) {
      kept.push_back(size);
    }
  }
  return n.replace(n.reshape(input, kept));
}

LogicalResult importUnsqueeze(NodeImporter& n) {
  Value input = n.operand(0);
  auto given = n.constantInts(1);
  if (!input || failed(given)) {
    return failure();
  }
  int64_t rank = rankOf(input) + static_cast<int64_t>(given->size());
  auto axes = n.normalizeAxes(*given, rank);
  if (failed(axes)) {
    return failure();
  }
  Ints shape;
  auto next = shapeOf(input).begin();
  for (int64_t i = 0; i < rank; ++i) {
    shape.push_back(llvm::is_contained(*axes, i) ? 1 : *next++);
  }
  return n.replace(n.reshape(input, shape));
}

// Broadcasts in both directions: a size 1 in the wanted shape keeps the input's.
LogicalResult importExpand(NodeImporter& n) {
  Value input = n.operand(0);
  auto wanted = n.constantInts(1);
  if (!input || failed(wanted)) {
    return failure();
  }
  Ints shape = *wanted, own(shapeOf(input));
  while (shape.size() < own.size()) {
    shape.insert(shape.begin(), 1);
  }
  size_t offset = shape.size() - own.size();
  for (size_t i = 0; i < own.size(); ++i) {
    if (shape[offset + i] == 1) {
      shape[offset + i] = own[i];
    }
  }
  if (llvm::any_of(shape, [](int64_t size) { return size < 0; })) {
    return n.error() << "the shape has a negative size";
  }
  return n.replace(n.broadcast(input, shape));
}

// [a, b, 1] tiled by [r, 1, s]: [1, a, b, 1] -> [r, a, b, s] -> [r a, b, s]
LogicalResult importTile(NodeImporter& n) {
  Value input = n.operand(0);
  auto repeats = n.constantInts(1);
  if (!input || failed(repeats)) {
    return failure();
  }
  if (static_cast<int64_t>(repeats->size()) != rankOf(input)) {
    return n.error() << "has " << repeats->size() << " repeats for a tensor of rank "
                     << rankOf(input);
  }
  Ints split, repeated, shape;
  for (auto [size, times] : llvm::zip(shapeOf(input), *repeats)) {
    int64_t total;
    if (times < 0 || __builtin_mul_overflow(size, times, &total)) {
      return n.error() << "repeats " << times << " times";
    }
    if (times != 1) {
      split.push_back(1);
      repeated.push_back(times);
    }
    if (times == 1 || size != 1) {
      split.push_back(size);
      repeated.push_back(size);
    }
    shape.push_back(total);
  }
  return n.replace(n.reshape(n.broadcast(n.reshape(input, split), repeated), shape));
}

LogicalResult importConcat(NodeImporter& n) {
  llvm::SmallVector<Value> inputs;
  for (unsigned i = 0; i < n.numOperands(); ++i) {
    inputs.push_back(n.operand(i));
    if (!inputs.back()) {
      return failure();
    }
  }
  if (inputs.empty()) {
    return n.error() << "has no operands";
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(inputs.front()));
  if (failed(axis)) {
    return failure();
  }
  // One head for all queries, as `torch.cat([k] * n)` writes it.
  if (inputs.size() > 1 && llvm::all_equal(inputs) && shapeOf(inputs.front())[*axis] == 1) {
    Ints shape(shapeOf(inputs.front()));
    shape[*axis] = static_cast<int64_t>(inputs.size());
    return n.replace(n.broadcast(inputs.front(), shape));
  }
  return n.replace(n.concat(inputs, *axis));
}

LogicalResult importSplit(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  int64_t total = shapeOf(input)[*axis];
  Ints sizes;
  if (n.hasOperand(1)) {
    auto given = n.constantInts(1);
    if (failed(given)) {
      return failure();
    }
    sizes = *given;
  } else {
    // Parts of equal size, the last one smaller if need be.
    int64_t parts = n.attrInt("num_outputs", n.numResults());
    if (parts < 1 || parts != n.numResults()) {
      return n.error() << "has " << n.numResults() << " results and num_outputs = " << parts;
    }
    int64_t part = (total + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<int64_t>(total - i * part, 0, part));
    }
  }
  if (sizes.size() != n.numResults()) {
    return n.error() << "has " << n.numResults() << " results, but splits into " << sizes.size();
  }
  llvm::SmallVector<Value> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > total - start) {
      return n.error() << "the parts don't fit into the size " << total;
    }
    parts.push_back(n.sliceDim(input, *axis, start, start + size));
    start += size;
  }
  return start == total ? n.replace(parts)
                        : n.error() << "the parts make " << start << " of " << total;
}

LogicalResult importIdentity(NodeImporter& n) { return n.replace(n.operand(0)); }

}  // namespace

void registerShapeOps(OpRegistry& registry) {
  registry.add("Reshape", 13, importReshape);
  registry.add("Flatten", 13, importFlatten);
  registry.add("Transpose", 13, importTranspose);
  registry.add("DepthToSpace", 13, importDepthToSpace);
  registry.add("SpaceToDepth", 13, importSpaceToDepth);
  registry.add("Squeeze", 13, importSqueeze);
  registry.add("Unsqueeze", 13, importUnsqueeze);
  registry.add("Expand", 13, importExpand);
  registry.add("Tile", 13, importTile);
  registry.add("Concat", 13, importConcat);
  registry.add("Split", 13, importSplit);
  registry.add("Identity", 13, importIdentity);
}

}  // namespace oriel
