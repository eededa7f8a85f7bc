// Rotary position embedding, as ONNX defines it from operator set 23 on, and ONNX Runtime.
#include "frontend/ops/rotary.h"

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/heads.h"
#include "frontend/ops/ops.h"

namespace oriel {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

namespace {

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

}  // namespace

Value rotate(NodeImporter& n, Value x, const Rotary& rotary) {
  if (!x || !rotary.cos || !rotary.sin) {
    return {};
  }
  const int64_t tokens = shapeOf(x)[2], head = shapeOf(x)[3];
  auto table = [&](Value cache) -> Value {
    if (rankOf(cache) != 2) {
      n.error() << "has a table of angles " << cache.getType() << ", expected rank 2";
      return {};
    }
    if (rotary.at) {
      return rotaryTable(n, cache, rotary.at);
    }
    if (shapeOf(cache)[0] < tokens) {
      n.error() << "has a table of angles " << cache.getType() << " for " << tokens << " tokens";
      return {};
    }
    return n.reshape(n.sliceDim(cache, 0, 0, tokens), {1, 1, tokens, shapeOf(cache)[1]});
  };
  Value cos = table(rotary.cos), sin = cos ? table(rotary.sin) : Value();
  if (!cos || !sin) {
    return {};
  }
  const int64_t rotated = 2 * shapeOf(cos).back();
  if (rotated > head) {
    n.error() << "has a table of " << rotated / 2 << " angles for heads of " << head;
    return {};
  }
  return n.create<ir::RopeOp>(x, cos, sin, /*inverse=*/false, rotary.isInterleaved,
                              rotated == head ? 0 : rotated);
}

mlir::FailureOr<Value> rowsOf(NodeImporter& n, Value positions, int64_t tokens) {
  if (rankOf(positions) == 2 && shapeOf(positions)[1] == tokens) {
    return positions;
  }
  if (tensorType(positions).getNumElements() != 1) {
    return n.error() << "has positions " << positions.getType() << " for " << tokens << " tokens";
  }
  mlir::Type index = elementOf(positions);
  Value steps = n.createTyped<ir::IotaOp>(n.tensorType({1, tokens}, index), int64_t{1});
  return n.create<ir::AddOp>(steps, n.reshape(positions, {1, 1}));
}

namespace {

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

// com.microsoft: its operands are in another order, and positions may be that of the first token.
LogicalResult importContribRotaryEmbedding(NodeImporter& n) {
  Value input = n.operand(0), positions = n.operand(1);
  Rotary rotary{n.operand(2), n.operand(3), {}, n.attrInt("interleaved", 0) != 0};
  if (!input || !positions || !rotary.cos || !rotary.sin) {
    return failure();
  }
  const double scale = n.attrFloat("scale", 1);
  if (scale != 1 || n.attrInt("is_packed_batching", 0) != 0) {
    return n.error() << "scales positions or packs batches, which Oriel does not import";
  }
  const bool isMerged = rankOf(input) == 3;
  if (!isMerged && rankOf(input) != 4) {
    return n.error() << "expects an input of rank 3 or 4, got " << input.getType();
  }
  if (rankOf(rotary.cos) != 2) {
    return n.error() << "has a cos_cache " << rotary.cos.getType() << ", expected rank 2";
  }
  const int64_t angles = 2 * shapeOf(rotary.cos)[1], rotated = n.attrInt("rotary_embedding_dim", 0);
  if (rotated != 0 && rotated != angles) {
    return n.error() << "turns " << rotated << " elements of a head by a table for " << angles;
  }
  int64_t heads = n.attrInt("num_heads", 0);
  if (heads == 0 && isMerged) {
    heads = shapeOf(input)[2] / std::max<int64_t>(1, 2 * shapeOf(rotary.cos)[1]);
  }
  Value x = isMerged ? splitHeads(n, input, heads) : input;
  auto rows = x ? rowsOf(n, positions, shapeOf(x)[2]) : mlir::FailureOr<Value>(failure());
  if (failed(rows)) {
    return failure();
  }
  rotary.at = *rows;
  Value turned = rotate(n, x, rotary);
  return n.replace(isMerged ? mergeHeads(n, turned) : turned);
}

}  // namespace

void registerRotaryEmbedding(OpRegistry& registry) {
  registry.add("RotaryEmbedding", 23, importRotaryEmbedding);
  registry.addConstantOperands("RotaryEmbedding", {1, 2});
  registry.add("RotaryEmbedding", 1, importContribRotaryEmbedding, "com.microsoft");
  registry.addConstantOperands("RotaryEmbedding", {2, 3}, "com.microsoft");
}

}  // namespace oriel
