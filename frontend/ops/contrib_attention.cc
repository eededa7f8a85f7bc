// Attention as ONNX Runtime's optimizers and model builders write it: ops of the domain
// com.microsoft, by its ContribOperators.md.
//
// The past of a key-value cache is empty in training, so attention is of whole sequences.
#include <cmath>
#include <utility>

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
    if (past && tensorType(past).getNumElements() != 0) {
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

struct Parts {
  Value query, key, value;
};

// Three parts of the last dimension; null ones, with an error, where they are not all of it.
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

// softmax(scale · query keyᵀ + mask) value, [b, s, h · e]; see oriel.attention. A causal one is of
// as many keys as queries: of others, ONNX Runtime and Oriel differ in which the first query sees.
Value attend(NodeImporter& n, const Parts& parts, Value mask, bool causal, int64_t window = 0,
             Value sink = {}) {
  const int64_t queries = shapeOf(parts.query)[2], keys = shapeOf(parts.key)[2];
  if (mask && rankOf(mask) != 4) {
    n.error() << "has an attention bias " << mask.getType() << ", expected rank 4";
    return {};
  }
  if (causal && queries != keys) {
    n.error() << "is causal, with " << queries << " queries and " << keys
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
    scale = 1 / std::sqrt(static_cast<double>(shapeOf(parts.query)[3]));
  }
  return mergeHeads(n, n.create<ir::AttentionOp>(parts.query, parts.key, parts.value,
                                                 OptionalValue{mask}, OptionalValue{sink}, scale,
                                                 causal, window, n.attrFloat("softcap", 0)));
}

// [b, s, h d] -> [b, h, s, d], with `groups` heads of keys and values, which may be split already.
LogicalResult splitAllHeads(NodeImporter& n, Parts& parts, int64_t heads, int64_t groups) {
  for (auto [part, count] : {std::pair(&parts.query, heads), std::pair(&parts.key, groups),
                             std::pair(&parts.value, groups)}) {
    if (*part && rankOf(*part) == 3) {
      *part = splitHeads(n, *part, count);
    }
    if (!*part) {
      return failure();
    }
  }
  return success();
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

// Of all heads, with a mask of keys at this operand and a bias at the sixth.
Value attendMasked(NodeImporter& n, const Parts& parts, unsigned maskOperand) {
  auto shown = visibleKeys(n, maskOperand, shapeOf(parts.query)[0], shapeOf(parts.key)[2]);
  if (failed(shown)) {
    return {};
  }
  return attend(n, parts, bothMasks(n, *shown, n.optionalOperand(5)),
                n.attrInt("unidirectional", 0) != 0);
}

// One more score of each row of a head: a learned one [h], or 0 for a smooth softmax. Null for
// none.
mlir::FailureOr<Value> sinkOfHeads(NodeImporter& n, const Parts& parts) {
  const int64_t heads = shapeOf(parts.query)[1];
  const bool smooth = n.attrInt("smooth_softmax", 0) > 0;
  Value sink = n.optionalOperand(11);
  if (!sink) {
    if (!smooth) return Value();
    return n.splat(mlir::RankedTensorType::get({heads}, ir::elementOf(parts.query)), 0);
  }
  if (smooth) {
    return n.error() << "has both a smooth softmax and a head_sink, which is one itself";
  }
  if (rankOf(sink) != 1 || shapeOf(sink)[0] != heads) {
    return n.error() << "has a head_sink " << sink.getType() << ", expected one number for each of "
                     << heads << " heads";
  }
  return sink;
}

LogicalResult importGroupQueryAttention(NodeImporter& n) {
  const int64_t heads = n.attrInt("num_heads", 0), groups = n.attrInt("kv_num_heads", 0);
  Parts parts{n.operand(0), n.optionalOperand(1), n.optionalOperand(2)};
  if (!parts.query || failed(expectNoPast(n, {3, 4}))) {
    return failure();
  }
  if (n.hasOperand(12) || n.hasOperand(13) || n.hasResult(3)) {
    return n.error() << "has a quantized cache, or gives its scores, which Oriel does not import";
  }
  auto isOfRank3 = [](Value part) { return !part || rankOf(part) == 3; };
  if (heads < 1 || groups < 1 || heads % groups != 0 || !parts.key != !parts.value ||
      !isOfRank3(parts.query) || !isOfRank3(parts.key) || !isOfRank3(parts.value)) {
    return n.error() << "has " << heads << " heads and " << groups << " of keys for "
                     << parts.query.getType() << "; all are expected to be of rank 3";
  }
  if (!parts.key) {
    const int64_t head = shapeOf(parts.query)[2] / (heads + 2 * groups);
    parts = splitParts(n, parts.query, heads * head, groups * head, groups * head);
  }
  if (failed(splitAllHeads(n, parts, heads, groups))) {
    return failure();
  }
  const mlir::FailureOr<Value> sink = sinkOfHeads(n, parts);
  if (failed(sink)) {
    return failure();
  }
  const int64_t tokens = shapeOf(parts.query)[2], keys = shapeOf(parts.key)[2];
  if (n.attrInt("do_rotary", 0) != 0) {
    Rotary rotary{n.operand(7), n.operand(8), {}, n.attrInt("rotary_interleaved", 0) != 0};
    if (Value positions = n.optionalOperand(9)) {
      auto rows = rowsOf(n, positions, tokens);
      if (failed(rows)) {
        return failure();
      }
      rotary.at = *rows;
    }
    parts.query = rotate(n, parts.query, rotary);
    parts.key = parts.query ? rotate(n, parts.key, rotary) : Value();
    if (!parts.key) {
      return failure();
    }
  }
  // Keys behind a sequence's end (seqlens_k) are behind all its tokens: the causal mask hides them.
  const int64_t window = n.attrInt("local_window_size", -1);
  if (window == 0) {
    return n.error() << "has a local_window_size of 0; -1 is for none";
  }
  Value result = attend(n, parts, n.optionalOperand(10), /*causal=*/true,
                        window > 0 && window < keys ? window : 0, *sink);
  return n.replace(
      {result, n.hasResult(1) ? parts.key : Value(), n.hasResult(2) ? parts.value : Value()});
}

// The part at `index` of what has its heads in parts, [b, s, h, parts, d]: [b, s, h d].
Value unpackHeads(NodeImporter& n, Value packed, int64_t index) {
  auto shape = shapeOf(packed);
  return n.reshape(n.sliceDim(packed, 3, index, index + 1),
                   {shape[0], shape[1], shape[2] * shape[4]});
}

// Query, key and value of MultiHeadAttention, which may be packed: all in the first operand, or
// keys and values in the second. With a null one, and an error, where there are other operands.
Parts readParts(NodeImporter& n, int64_t heads) {
  Value first = n.operand(0);
  if (!first) return {};
  const bool hasKeys = n.hasOperand(1), hasValues = n.hasOperand(2);
  auto isPacked = [&](Value x, int64_t parts) {
    return rankOf(x) == 5 && shapeOf(x)[2] == heads && shapeOf(x)[3] == parts;
  };
  if (!hasKeys && !hasValues && isPacked(first, 3)) {
    return {unpackHeads(n, first, 0), unpackHeads(n, first, 1), unpackHeads(n, first, 2)};
  }
  if (hasKeys && !hasValues && isPacked(n.operand(1), 2)) {
    Value packed = n.operand(1);
    return {first, unpackHeads(n, packed, 0), unpackHeads(n, packed, 1)};
  }
  if (hasKeys && hasValues) return {first, n.operand(1), n.operand(2)};
  auto error = n.error();
  error << "has no "
        << (hasKeys     ? "values"
            : hasValues ? "keys"
                        : "keys and values")
        << ", and does not pack them: that is ";
  if (hasKeys) {
    error << "a key [batch, keys, " << heads << ", 2, channels], not " << n.operand(1).getType();
  } else {
    error << "a query [batch, positions, " << heads << ", 3, channels], not " << first.getType();
  }
  return {};
}

LogicalResult importMultiHeadAttention(NodeImporter& n) {
  const int64_t heads = n.attrInt("num_heads", 0);
  Parts parts = readParts(n, heads);
  auto& [query, key, value] = parts;
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
  if (Value bias = n.optionalOperand(3)) {
    if (rankOf(key) == 4 || rankOf(bias) != 1) {
      return n.error() << "has a bias " << bias.getType() << " for keys " << key.getType();
    }
    const Parts biases = splitParts(n, bias, shapeOf(query)[2], shapeOf(key)[2], shapeOf(value)[2]);
    query = n.create<ir::AddOp>(query, biases.query);
    key = n.create<ir::AddOp>(key, biases.key);
    value = n.create<ir::AddOp>(value, biases.value);
  }
  if (failed(splitAllHeads(n, parts, heads, heads))) {
    return failure();
  }
  return n.replace({attendMasked(n, parts, 4), n.hasResult(1) ? key : Value(),
                    n.hasResult(2) ? value : Value()});
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
  Parts parts = splitParts(n, projected, sizes[0], sizes[1], sizes[2]);
  if (failed(splitAllHeads(n, parts, heads, heads))) {
    return failure();
  }
  Value present;  // [2, b, h, s, d]
  if (n.hasResult(1)) {
    auto alone = [&](Value x) {
      Ints shape(shapeOf(x));
      shape.insert(shape.begin(), 1);
      return n.reshape(x, shape);
    };
    present = n.concat({alone(parts.key), alone(parts.value)}, 0);
  }
  return n.replace({attendMasked(n, parts, 3), present});
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
