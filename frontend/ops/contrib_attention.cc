// Attention as ONNX Runtime's optimizers and model builders write it: ops of the domain
// com.microsoft, by its ContribOperators.md.
//
// The past of a key-value cache is empty in training, so attention is of whole sequences.
#include <cmath>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/heads.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/rotary.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

// Fails where a cache holds anything.
LogicalResult expectNoPast(NodeImporter& n, llvm::ArrayRef<unsigned> operands) {
  for (unsigned at : operands) {
    Value past = n.optionalOperand(at);
    if (past && typeOf(past).getNumElements() != 0) {
      return n.error() << "has a past " << past.getType()
                       << ": bind its length to 0 (--bind past_sequence_length=0)";
    }
  }
  return success();
}

// Both hide; a float one is added. Either may be null.
Value bothMasks(NodeImporter& n, Value isVisible, Value bias) {
  if (!isVisible || !bias) {
    return isVisible ? isVisible : bias;
  }
  constexpr double kHidden = -1e30;
  return n.create<ir::SelectOp>(isVisible, bias, n.scalarLike(bias, kHidden));
}

// softmax(scale · query keyᵀ + mask) value, [b, s, h · e]; see oriel.attention. A causal one is of
// as many keys as queries: of others, ONNX Runtime and Oriel differ in which the first query sees.
Value attend(NodeImporter& n, Value query, Value key, Value value, Value mask, bool causal,
             int64_t window = 0) {
  if (!query || !key || !value) {
    return {};
  }
  if (mask && rankOf(mask) != 4) {
    n.error() << "has an attention bias " << mask.getType() << ", expected rank 4";
    return {};
  }
  if (causal && shapeOf(query)[2] != shapeOf(key)[2]) {
    n.error() << "is causal, with " << shapeOf(query)[2] << " queries and " << shapeOf(key)[2]
              << " keys: they must be as many";
    return {};
  }
  // Oriel hides keys altogether.
  constexpr double kHidden = -1000;
  if (n.attrFloat("mask_filter_value", -10000) > kHidden) {
    n.error() << "has a mask_filter_value above " << kHidden << ", which does not hide keys";
    return {};
  }
  double scale = n.attrFloat("scale", 0);
  if (scale == 0) {
    scale = 1 / std::sqrt(static_cast<double>(shapeOf(query)[3]));
  }
  return mergeHeads(n, n.create<ir::AttentionOp>(query, key, value, OptionalValue{mask}, scale,
                                                 causal, window, n.attrFloat("softcap", 0)));
}

// Three parts of the last dimension.
struct Parts {
  Value query, key, value;
};
Parts splitParts(NodeImporter& n, Value x, int64_t query, int64_t key, int64_t value) {
  const int64_t last = rankOf(x) - 1, size = shapeOf(x)[last];
  if (query < 1 || key < 1 || value < 1 || query + key + value != size) {
    n.error() << "can't split " << x.getType() << " into query, key and value of " << query << ", "
              << key << " and " << value;
    return {};
  }
  return {n.sliceDim(x, last, 0, query), n.sliceDim(x, last, query, query + key),
          n.sliceDim(x, last, query + key, size)};
}

// Keys that a mask of integers [b, t] shows, as [b, 1, 1, t]; null without one.
mlir::FailureOr<Value> visibleKeys(NodeImporter& n, unsigned operand, int64_t batch, int64_t keys) {
  Value mask = n.optionalOperand(operand);
  if (!mask) {
    return Value();
  }
  if (rankOf(mask) != 2 || shapeOf(mask)[0] != batch || shapeOf(mask)[1] != keys) {
    return n.error() << "has a mask " << mask.getType() << ", expected one number for each of "
                     << batch << " x " << keys << " keys";
  }
  Value shown = n.create<ir::GreaterOp>(mask, n.scalarLike(mask, 0));
  return n.reshape(shown, {batch, 1, 1, keys});
}

LogicalResult importGroupQueryAttention(NodeImporter& n) {
  const int64_t heads = n.attrInt("num_heads", 0), groups = n.attrInt("kv_num_heads", 0);
  Value query = n.operand(0), key = n.optionalOperand(1), value = n.optionalOperand(2);
  if (!query || failed(expectNoPast(n, {3, 4}))) {
    return failure();
  }
  if (n.attrInt("smooth_softmax", 0) > 0 || n.hasOperand(11)) {
    return n.error() << "has a smooth softmax or a sink, which Oriel does not import";
  }
  if (n.hasOperand(12) || n.hasOperand(13) || n.hasResult(3)) {
    return n.error() << "has a quantized cache, or gives its scores, which Oriel does not import";
  }
  if (heads < 1 || groups < 1 || heads % groups != 0 || rankOf(query) != 3 || !key != !value) {
    return n.error() << "has " << heads << " heads and " << groups << " of keys for "
                     << query.getType();
  }
  if (!key) {
    const int64_t head = shapeOf(query)[2] / (heads + 2 * groups);
    const Parts parts = splitParts(n, query, heads * head, groups * head, groups * head);
    query = parts.query, key = parts.key, value = parts.value;
  }
  if (!query || !key || !value || rankOf(key) != 3 || rankOf(value) != 3) {
    return query && key && value ? n.error() << "expects keys and values of rank 3" : failure();
  }
  query = splitHeads(n, query, heads);
  key = query ? splitHeads(n, key, groups) : Value();
  value = key ? splitHeads(n, value, groups) : Value();
  if (!value) {
    return failure();
  }
  const int64_t tokens = shapeOf(query)[2], keys = shapeOf(key)[2];
  if (n.attrInt("do_rotary", 0) != 0) {
    Rotary rotary{n.operand(7), n.operand(8), {}, n.attrInt("rotary_interleaved", 0) != 0};
    if (Value positions = n.optionalOperand(9)) {
      auto rows = rowsOf(n, positions, tokens);
      if (failed(rows)) {
        return failure();
      }
      rotary.at = *rows;
    }
    query = rotate(n, query, rotary);
    key = query ? rotate(n, key, rotary) : Value();
    if (!key) {
      return failure();
    }
  }
  // Keys behind a sequence's end (seqlens_k) are behind all its tokens: the causal mask hides them.
  const int64_t window = n.attrInt("local_window_size", -1);
  if (window == 0) {
    return n.error() << "has a local_window_size of 0; -1 is for none";
  }
  Value result = attend(n, query, key, value, n.optionalOperand(10), /*causal=*/true,
                        window > 0 && window < keys ? window : 0);
  return n.replace({result, n.hasResult(1) ? key : Value(), n.hasResult(2) ? value : Value()});
}

LogicalResult importMultiHeadAttention(NodeImporter& n) {
  const int64_t heads = n.attrInt("num_heads", 0);
  Value query = n.operand(0), key = n.operand(1), value = n.operand(2);
  if (!query || !key || !value || failed(expectNoPast(n, {6, 7}))) {
    return failure();
  }
  if (n.hasResult(3) || n.hasOperand(8) || n.hasOperand(9)) {
    return n.error() << "has a cache of its own, or gives its scores, which Oriel does not import";
  }
  if (rankOf(query) != 3 || rankOf(key) != rankOf(value) ||
      (rankOf(key) != 3 && rankOf(key) != 4)) {
    return n.error() << "expects a query of rank 3, keys and values of rank 3 or 4, got "
                     << query.getType() << ", " << key.getType() << ", " << value.getType();
  }
  const bool areSplit = rankOf(key) == 4;
  if (Value bias = n.optionalOperand(3)) {
    if (areSplit || rankOf(bias) != 1) {
      return n.error() << "has a bias " << bias.getType() << " for keys " << key.getType();
    }
    const Parts parts = splitParts(n, bias, shapeOf(query)[2], shapeOf(key)[2], shapeOf(value)[2]);
    query = n.create<ir::AddOp>(query, parts.query);
    key = n.create<ir::AddOp>(key, parts.key);
    value = n.create<ir::AddOp>(value, parts.value);
    if (!query || !key || !value) {
      return failure();
    }
  }
  query = splitHeads(n, query, heads);
  key = !query || areSplit ? key : splitHeads(n, key, heads);
  value = !query || !key || areSplit ? value : splitHeads(n, value, heads);
  if (!query || !key || !value) {
    return failure();
  }
  auto shown = visibleKeys(n, 4, shapeOf(query)[0], shapeOf(key)[2]);
  if (failed(shown)) {
    return failure();
  }
  Value mask = bothMasks(n, *shown, n.optionalOperand(5));
  Value result = attend(n, query, key, value, mask, n.attrInt("unidirectional", 0) != 0);
  return n.replace({result, n.hasResult(1) ? key : Value(), n.hasResult(2) ? value : Value()});
}

// Of one input: its products with a weight [in, q + k + v].
LogicalResult importAttention(NodeImporter& n) {
  const int64_t heads = n.attrInt("num_heads", 0);
  Value input = n.operand(0), weight = n.operand(1), bias = n.optionalOperand(2);
  if (!input || !weight || failed(expectNoPast(n, {4}))) {
    return failure();
  }
  if (n.hasOperand(6) || n.attrInt("do_rotary", 0) != 0) {
    return n.error()
           << "has a cache of fixed size or a rotary embedding, which Oriel does not import";
  }
  if (rankOf(input) != 3 || rankOf(weight) != 2) {
    return n.error() << "expects an input of rank 3 and a weight of rank 2, got " << input.getType()
                     << " and " << weight.getType();
  }
  const int64_t third = shapeOf(weight)[1] / 3;
  const Ints sizes = n.attrInts("qkv_hidden_sizes").value_or(Ints{third, third, third});
  if (sizes.size() != 3) {
    return n.error() << "has " << sizes.size() << " qkv_hidden_sizes, expected 3";
  }
  Value projected = n.create<ir::LinearOp>(input, weight, OptionalValue{bias}, false);
  if (!projected) {
    return failure();
  }
  const Parts parts = splitParts(n, projected, sizes[0], sizes[1], sizes[2]);
  Value query = parts.value ? splitHeads(n, parts.query, heads) : Value();
  Value key = query ? splitHeads(n, parts.key, heads) : Value();
  Value value = key ? splitHeads(n, parts.value, heads) : Value();
  if (!value) {
    return failure();
  }
  auto shown = visibleKeys(n, 3, shapeOf(query)[0], shapeOf(key)[2]);
  if (failed(shown)) {
    return failure();
  }
  Value mask = bothMasks(n, *shown, n.optionalOperand(5));
  Value result = attend(n, query, key, value, mask, n.attrInt("unidirectional", 0) != 0);
  Value present;  // [2, b, h, s, d]
  if (n.hasResult(1)) {
    auto alone = [&](Value x) {
      Ints shape(shapeOf(x));
      shape.insert(shape.begin(), 1);
      return n.reshape(x, shape);
    };
    present = n.concat({alone(key), alone(value)}, 0);
  }
  return n.replace({result, present});
}

}  // namespace

void registerContribAttention(OpRegistry& registry) {
  constexpr char kDomain[] = "com.microsoft";
  registry.add("GroupQueryAttention", 1, importGroupQueryAttention, kDomain);
  registry.addConstantOperands("GroupQueryAttention", {7, 8}, kDomain);
  registry.add("MultiHeadAttention", 1, importMultiHeadAttention, kDomain);
  registry.add("Attention", 1, importAttention, kDomain);
}

}  // namespace oriel
