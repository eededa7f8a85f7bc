// Attention and rotary position embedding, as ONNX defines them from operator set 23 on.
#include <cmath>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

// [b, s, h d] -> [b, h, s, d]
Value splitHeads(NodeImporter& n, Value x, int64_t heads) {
  auto shape = shapeOf(x);
  if (heads < 1 || shape[2] % heads != 0) {
    n.error() << "can't split " << x.getType() << " into " << heads << " heads";
    return {};
  }
  return n.transpose(n.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

// [b, h, s, d] -> [b, s, h d]
Value mergeHeads(NodeImporter& n, Value x) {
  if (!x) {
    return {};
  }
  auto shape = shapeOf(x);
  return n.reshape(n.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

// What Oriel's attention has no counterpart for.
LogicalResult checkAttention(NodeImporter& n) {
  for (unsigned operand = 4; operand < n.numOperands(); ++operand) {
    if (n.hasOperand(operand)) {
      return n.error() << "reads a key-value cache (operand " << operand
                       << "); export the model without a cache for training";
    }
  }
  if (n.attrFloat("softcap", 0) != 0) {
    return n.error() << "softcap is not supported";
  }
  if (n.attrInt("left_window_size", -1) >= 0 || n.attrInt("right_window_size", -1) >= 0) {
    return n.error() << "window sizes are not supported";
  }
  return mlir::success();
}

LogicalResult importAttention(NodeImporter& n) {
  Value query = n.operand(0), key = n.operand(1), value = n.operand(2);
  Value mask = n.optionalOperand(3);
  if (!query || !key || !value || failed(checkAttention(n))) {
    return failure();
  }
  int64_t rank = rankOf(query);
  if ((rank != 3 && rank != 4) || rankOf(key) != rank || rankOf(value) != rank) {
    return n.error() << "expects query, key and value all of rank 3 or all of rank 4";
  }
  if (rank == 3) {
    query = splitHeads(n, query, n.attrInt("q_num_heads", 0));
    key = splitHeads(n, key, n.attrInt("kv_num_heads", 0));
    value = splitHeads(n, value, n.attrInt("kv_num_heads", 0));
    if (!query || !key || !value) {
      return failure();
    }
  }
  bool causal = n.attrInt("is_causal", 0) != 0;
  if (causal && shapeOf(query)[2] != shapeOf(key)[2]) {
    // ONNX aligns the mask with the first key, Oriel with the last.
    return n.error() << "is causal with " << shapeOf(query)[2] << " queries and " << shapeOf(key)[2]
                     << " keys; only equal numbers are supported";
  }
  if (mask) {
    if (rankOf(mask) > 4) {
      return n.error() << "has a mask of rank " << rankOf(mask);
    }
    Ints shape(4 - rankOf(mask), 1);
    llvm::append_range(shape, shapeOf(mask));
    mask = n.reshape(mask, shape);
  }
  double scale = n.attrFloat("scale", 1.0 / std::sqrt(static_cast<double>(shapeOf(query)[3])));
  Value result = n.create<ir::AttentionOp>(query, key, value, OptionalValue{mask}, scale, causal);
  return n.replace(rank == 3 ? mergeHeads(n, result) : result);
}

// Cosines or sines for each position, [b or 1, 1, s, d], from a table [positions, d/2] or from
// values per token [b, s, d/2]. Both halves of the head use the same ones.
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
  Value table = n.reshape(cache, {shape[0], 1, shape[1], shape[2]});
  return n.concat({table, table}, 3);
}

// Even elements first, then odd ones (of the last dimension of rank 4), and back.
Value deinterleave(NodeImporter& n, Value x) {
  if (!x) {
    return {};
  }
  Ints shape(shapeOf(x));
  Value pairs = n.reshape(x, {shape[0], shape[1], shape[2], shape[3] / 2, 2});
  return n.reshape(n.transpose(pairs, {0, 1, 2, 4, 3}), shape);
}
Value interleave(NodeImporter& n, Value x) {
  if (!x) {
    return {};
  }
  Ints shape(shapeOf(x));
  Value halves = n.reshape(x, {shape[0], shape[1], shape[2], 2, shape[3] / 2});
  return n.reshape(n.transpose(halves, {0, 1, 2, 4, 3}), shape);
}

LogicalResult importRotaryEmbedding(NodeImporter& n) {
  Value input = n.operand(0), positions = n.optionalOperand(3);
  Value cos = rotaryTable(n, n.operand(1), positions);
  Value sin = rotaryTable(n, n.operand(2), positions);
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
  bool isInterleaved = n.attrInt("interleaved", 0) != 0;
  Value turned = rotated == head ? x : n.sliceDim(x, 3, 0, rotated);
  turned = isInterleaved ? deinterleave(n, turned) : turned;
  turned = n.create<ir::RopeOp>(turned, cos, sin, /*inverse=*/false);
  turned = isInterleaved ? interleave(n, turned) : turned;
  if (rotated != head) {
    turned = n.concat({turned, n.sliceDim(x, 3, rotated, head)}, 3);
  }
  return n.replace(isMerged ? mergeHeads(n, turned) : turned);
}

}  // namespace

void registerAttentionOps(OpRegistry& registry) {
  registry.add("Attention", 23, importAttention);
  registry.add("RotaryEmbedding", 23, importRotaryEmbedding);
}

}  // namespace oriel
