// Rotary position embedding, as ONNX defines it from operator set 23 on.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/heads.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

// Cosines or sines for each position and pair, [b or 1, 1, s, d/2], from a table [positions, d/2]
// or from values per token [b, s, d/2].
Value rotaryTable(NodeImporter& n, Value cache, Value positions) {
  if (cache && positions) {
    cache = n.gather(cache, positions, 0);
  }
  if (!cache) {
    return {};
  }
  if (rankOf(cache) != 3) {
    n.error() << "has a cos or sin cache of rank " << rankOf(cache) << " after the gather, "
              << "expected 3";
    return {};
  }
  auto shape = shapeOf(cache);
  return n.reshape(cache, {shape[0], 1, shape[1], shape[2]});
}

LogicalResult importRotaryEmbedding(NodeImporter& n) {
  Value input = n.operand(0), positions = n.optionalOperand(3);
  Value cos = rotaryTable(n, n.operand(1), positions);
  Value sin = cos ? rotaryTable(n, n.operand(2), positions) : Value();
  if (!input || !cos || !sin) {
    return failure();
  }
  bool isMerged = rankOf(input) == 3;
  if (!isMerged && rankOf(input) != 4) {
    return n.error() << "expects an input of rank 3 or 4, got " << input.getType();
  }
  Value x = isMerged ? splitHeads(n, input, n.attrInt("num_heads", 0)) : input;
  if (!x) {
    return failure();
  }
  int64_t head = shapeOf(x)[3], rotated = n.attrInt("rotary_embedding_dim", 0);
  rotated = rotated == 0 ? head : rotated;
  if (rotated < 2 || rotated > head || rotated % 2 != 0) {
    return n.error() << "rotates " << rotated << " of " << head << " elements of a head";
  }
  Value turned =
      n.create<ir::RopeOp>(x, cos, sin, /*inverse=*/false, n.attrInt("interleaved", 0) != 0,
                           rotated == head ? 0 : rotated);
  return n.replace(isMerged ? mergeHeads(n, turned) : turned);
}

}  // namespace

void registerRotaryEmbedding(OpRegistry& registry) {
  registry.add("RotaryEmbedding", 23, importRotaryEmbedding);
  registry.addConstantOperands("RotaryEmbedding", {1, 2});
}

}  // namespace oriel
