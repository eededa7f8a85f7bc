// Attention, as ONNX defines it from operator set 23 on.
#include <cmath>
#include <limits>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/heads.h"
#include "frontend/ops/ops.h"
#include "ir/oriel/inference.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Attention {
 public:
  explicit Attention(NodeImporter& n) : n_(n) {}
  LogicalResult import();

 private:
  LogicalResult readHeads();
  LogicalResult readMask();
  // The mask less what causality, windows and padding hide, unless the op's own flag does that.
  LogicalResult hideKeys();
  // Adds to the mask.
  void hide(Value isVisible);
  // Scores, probabilities and product as ops of their own; `shown` is the qk_matmul_output.
  Value decompose(double scale, double softcap, Value& shown);
  // [b, g, t, d] -> [b, h, t, d]
  Value repeatGroups(Value x);
  Value isFinite(Value scores) {
    return n_.create<ir::GreaterOp>(scores, n_.scalarLike(scores, -kInfinity));
  }

  int64_t queries() const { return shapeOf(query_)[2]; }
  int64_t keys() const { return shapeOf(key_)[2]; }

  NodeImporter& n_;
  Value query_, key_, value_;  // [b, h, s, d], [b, g, t, d], [b, g, t, e]
  Value mask_;                 // of rank 4, or null
  int64_t past_ = 0;           // keys of the cache before the first query's
  bool merged_ = false;        // heads are part of the last dimension
  bool decomposed_ = false;    // asks for what oriel.attention has no counterpart for
  bool causal_ = false;        // oriel.attention's flag
};

LogicalResult Attention::readHeads() {
  query_ = n_.operand(0), key_ = n_.operand(1), value_ = n_.operand(2);
  if (!query_ || !key_ || !value_) {
    return failure();
  }
  int64_t rank = rankOf(query_);
  if ((rank != 3 && rank != 4) || rankOf(key_) != rank || rankOf(value_) != rank) {
    return n_.error() << "expects query, key and value all of rank 3 or all of rank 4";
  }
  merged_ = rank == 3;
  if (merged_) {
    query_ = splitHeads(n_, query_, n_.attrInt("q_num_heads", 0));
    key_ = query_ ? splitHeads(n_, key_, n_.attrInt("kv_num_heads", 0)) : Value();
    value_ = key_ ? splitHeads(n_, value_, n_.attrInt("kv_num_heads", 0)) : Value();
    if (!value_) {
      return failure();
    }
  }
  Value pastKey = n_.optionalOperand(4), pastValue = n_.optionalOperand(5);
  if (!pastKey != !pastValue || (pastKey && n_.hasOperand(6))) {
    return n_.error() << "expects past_key and past_value together, and without nonpad_kv_seqlen";
  }
  if (pastKey) {
    if (rankOf(pastKey) != 4 || rankOf(pastValue) != 4) {
      return n_.error() << "has a past_key " << pastKey.getType() << " and a past_value "
                        << pastValue.getType() << ", expected rank 4";
    }
    past_ = shapeOf(pastKey)[2];
    key_ = n_.concat({pastKey, key_}, 2);
    value_ = n_.concat({pastValue, value_}, 2);
  }
  return success(query_ && key_ && value_);
}

LogicalResult Attention::readMask() {
  mask_ = n_.optionalOperand(3);
  if (!mask_) {
    return success();
  }
  int64_t rank = rankOf(mask_);
  if (rank < 1 || rank > 4 || shapeOf(mask_).back() > keys()) {
    return n_.error() << "has a mask " << mask_.getType() << " for " << keys() << " keys";
  }
  Ints shape(4 - rank, 1);
  llvm::append_range(shape, shapeOf(mask_));
  mask_ = n_.reshape(mask_, shape);
  // Keys that it does not reach are hidden; a single column is broadcast.
  if (int64_t missing = keys() - shape.back(); missing > 0 && shape.back() != 1) {
    Ints low(4, 0), high{0, 0, 0, missing};
    using Array = llvm::ArrayRef<int64_t>;
    double hidden = elementOf(mask_).isInteger(1) ? 0 : -kInfinity;
    mask_ = n_.create<ir::PadOp>(mask_, Array(low), Array(high), Array(low), hidden);
  }
  return success(mask_ != nullptr);
}

void Attention::hide(Value isVisible) {
  if (!mask_) {
    mask_ = isVisible;
  } else if (elementOf(mask_).isInteger(1)) {
    mask_ = n_.create<ir::AndOp>(mask_, isVisible);
  } else {
    mask_ = n_.create<ir::SelectOp>(isVisible, mask_, n_.scalarLike(mask_, -kInfinity));
  }
}

LogicalResult Attention::hideKeys() {
  bool causal = n_.attrInt("is_causal", 0) != 0;
  // A window beyond all sizes is none.
  auto windowSize = [&](llvm::StringRef name) {
    int64_t size = n_.attrInt(name, -1);
    return size > ir::kMaxElements ? -1 : size;
  };
  int64_t left = windowSize("left_window_size"), right = windowSize("right_window_size");
  Value valid = n_.optionalOperand(6);
  // The op's own flag aligns the last query with the last key.
  causal_ = causal && !decomposed_ && !valid && past_ == keys() - queries();
  if (causal && !causal_) {
    right = 0;
  }
  if (left < 0 && right < 0 && !valid) {
    return success();
  }
  mlir::Type index = n_.builder().getI64Type();
  Value key = n_.createTyped<ir::IotaOp>(n_.tensorType({1, 1, 1, keys()}, index), int64_t{3});
  Value query = n_.createTyped<ir::IotaOp>(n_.tensorType({1, 1, queries(), 1}, index), int64_t{2});
  Value offset = n_.constantOf({past_}, {1});
  if (valid) {
    valid = n_.cast(n_.reshape(valid, {tensorType(valid).getNumElements(), 1, 1, 1}), index);
    offset = n_.create<ir::SubOp>(valid, n_.scalarLike(valid, static_cast<double>(queries())));
    hide(n_.create<ir::LessOp>(key, valid));
  }
  Value position = n_.create<ir::AddOp>(query, offset);
  auto shifted = [&](int64_t by) {
    return n_.create<ir::AddOp>(position, n_.constantOf({by}, {1}));
  };
  if (left >= 0) {
    hide(n_.create<ir::GreaterEqualOp>(key, shifted(-left)));
  }
  if (right >= 0) {
    hide(n_.create<ir::LessEqualOp>(key, shifted(right)));
  }
  return success(mask_ != nullptr);
}

Value Attention::repeatGroups(Value x) {
  Ints shape(shapeOf(x));
  int64_t heads = shapeOf(query_)[1], groups = shape[1];
  if (heads == groups) {
    return x;
  }
  if (groups < 1 || heads % groups != 0) {
    n_.error() << "has " << heads << " query heads for " << groups << " key heads";
    return {};
  }
  Value apart = n_.reshape(x, {shape[0], groups, 1, shape[2], shape[3]});
  apart = n_.broadcast(apart, {shape[0], groups, heads / groups, shape[2], shape[3]});
  return n_.reshape(apart, {shape[0], heads, shape[2], shape[3]});
}

Value Attention::decompose(double scale, double softcap, Value& shown) {
  int64_t mode = n_.attrInt("qk_matmul_output_mode", 0);
  Value key = repeatGroups(key_), value = repeatGroups(value_);
  Value scores = n_.create<ir::MatmulOp>(query_, key, false, /*transposeRhs=*/true);
  scores = n_.create<ir::MulOp>(scores, n_.scalarLike(scores, scale));
  shown = scores;
  if (softcap != 0) {
    Value bent = n_.create<ir::MulOp>(scores, n_.scalarLike(scores, 1 / softcap));
    scores = n_.create<ir::MulOp>(n_.createLike<ir::TanhOp>(bent), n_.scalarLike(scores, softcap));
  }
  shown = mode >= 1 ? scores : shown;
  if (mask_ && elementOf(mask_).isInteger(1)) {
    scores = n_.create<ir::SelectOp>(mask_, scores, n_.scalarLike(scores, -kInfinity));
  } else if (mask_) {
    scores = n_.create<ir::AddOp>(scores, mask_);
  }
  shown = mode >= 2 ? scores : shown;
  // A row that sees nothing gives 0, and no NaN on the way.
  if (mask_) {
    Value isSeen = isFinite(scores);
    constexpr double kLow = -1e30;
    scores = n_.create<ir::SelectOp>(isSeen, scores, n_.scalarLike(scores, kLow));
    scores = n_.createLike<ir::SoftmaxOp>(scores, int64_t{3});
    scores = n_.create<ir::SelectOp>(isSeen, scores, n_.scalarLike(scores, 0));
  } else {
    scores = n_.createLike<ir::SoftmaxOp>(scores, int64_t{3});
  }
  shown = mode >= 3 ? scores : shown;
  return n_.create<ir::MatmulOp>(scores, value, false, false);
}

LogicalResult Attention::import() {
  double softcap = n_.attrFloat("softcap", 0);
  decomposed_ = softcap != 0 || n_.hasResult(3);
  if (failed(readHeads()) || failed(readMask()) || failed(hideKeys())) {
    return failure();
  }
  double headSize = static_cast<double>(shapeOf(query_)[3]);
  double scale = n_.attrFloat("scale", 1.0 / std::sqrt(headSize));
  Value scores;
  Value result = decomposed_
                     ? decompose(scale, softcap, scores)
                     : n_.create<ir::AttentionOp>(query_, key_, value_, OptionalValue{mask_},
                                                  OptionalValue{}, scale, causal_);
  llvm::SmallVector<Value> results{merged_ ? mergeHeads(n_, result) : result};
  for (Value more : {key_, value_, scores}) {
    if (results.size() < n_.numResults()) {
      results.push_back(more);
    }
  }
  return n_.replace(results);
}

LogicalResult importAttention(NodeImporter& n) { return Attention(n).import(); }

}  // namespace

void registerAttentionOps(OpRegistry& registry) { registry.add("Attention", 23, importAttention); }

}  // namespace oriel
