// ONNX's LinearAttention: a recurrence over positions, computed in chunks of them.
//
// With G the sums of the decays g from a chunk's start on, and S the state in front of the chunk,
// unrolling `S_i = exp(g_i) S_(i-1) + k_i δ_iᵀ` within it gives (Yang et al. 2024, "Gated Delta
// Networks", section 3.3)
//
//   δ = (I + M)⁻¹ (β v - β exp(G) k S)       M_ij = β_i exp(G_i - G_j) k_i·k_j for j < i
//   o_i = scale (exp(G_i) q_i S + Σ_(j ≤ i) exp(G_i - G_j) (q_i·k_j) δ_j)
//
// for the delta rules, and δ = v for the others. Only S goes from chunk to chunk: oriel.delta_scan.
#include <cmath>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/heads.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

// Positions of a chunk. With a decay for each column of the keys, factors of pairs of positions
// have as many columns, so that chunks are smaller.
constexpr int64_t kChunk = 64, kChunkOfColumnDecays = 16;
// exp of it is 0.
constexpr double kNever = -1e30;
// exp of it is 1e-26.
constexpr double kForgotten = -60;

class LinearAttention {
 public:
  explicit LinearAttention(NodeImporter& n) : n_(n) {}
  LogicalResult import();

 private:
  LogicalResult readRule();
  LogicalResult readShapes();
  // [b, positions, heads d] -> [b, heads, n, c, d], zero behind the last position.
  Value inChunks(Value x, int64_t heads);
  // Queries in chunks of the heads of their keys, r for each: [b, heads r, n, c, d] ->
  // [b, heads, n, r c, d]; and back.
  Value withKeys(Value x);
  Value apart(Value x);
  // [b, h, n, rows, c]: Σ_d of left_id right_jd exp(G_id - G_jd), where j < i or, with `diagonal`,
  // j <= i; else 0. Rows of `left` are positions i of a chunk, once or more.
  Value pairs(Value left, Value decaysOfLeft, Value right, bool diagonal);

  Value add(Value a, Value b) { return n_.create<ir::AddOp>(a, b); }
  Value mul(Value a, Value b) { return n_.create<ir::MulOp>(a, b); }
  Value matmul(Value a, Value b, bool transposeRight = false) {
    return n_.create<ir::MatmulOp>(a, b, false, transposeRight);
  }
  // x exp(logarithms), where there are decays.
  Value decayed(Value x, Value logarithms) {
    return isGated_ ? mul(x, n_.create<ir::ExpOp>(logarithms)) : x;
  }

  NodeImporter& n_;
  bool isGated_ = false, isDelta_ = false;
  int64_t batch_ = 0, length_ = 0, queryHeads_ = 0, heads_ = 0, keyColumns_ = 0, valueColumns_ = 0;
  int64_t chunk_ = 0, chunks_ = 0;
  Value decays_;  // G [b, h, n, c, d], d = 1 or the columns of the keys; null without decays
};

LogicalResult LinearAttention::readRule() {
  const std::string rule = n_.attrString("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    return n_.error() << "does not know the update_rule \"" << rule << "\"";
  }
  isGated_ = rule == "gated" || rule == "gated_delta";
  isDelta_ = rule == "delta" || rule == "gated_delta";
  if ((isGated_ && !n_.hasOperand(4)) || (isDelta_ && !n_.hasOperand(5))) {
    return n_.error() << "has the update_rule \"" << rule << "\", but no "
                      << (isGated_ && !n_.hasOperand(4) ? "decay" : "beta");
  }
  return mlir::success();
}

LogicalResult LinearAttention::readShapes() {
  Value query = n_.operand(0), key = n_.operand(1), value = n_.operand(2);
  if (!query || !key || !value) {
    return failure();
  }
  queryHeads_ = n_.attrInt("q_num_heads", 0);
  heads_ = n_.attrInt("kv_num_heads", 0);
  if (heads_ < 1 || queryHeads_ < 1 || queryHeads_ % heads_ != 0) {
    return n_.error() << "has " << queryHeads_ << " query heads, which must be a multiple of its "
                      << heads_ << " key heads";
  }
  auto fits = [&](Value x, int64_t heads) {
    return rankOf(x) == 3 && shapeOf(x).drop_back() == shapeOf(query).drop_back() &&
           shapeOf(x).back() > 0 && shapeOf(x).back() % heads == 0;
  };
  if (!fits(query, queryHeads_) || !fits(key, heads_) || !fits(value, heads_) ||
      shapeOf(query).back() / queryHeads_ != shapeOf(key).back() / heads_) {
    return n_.error() << "has operands " << query.getType() << ", " << key.getType() << " and "
                      << value.getType()
                      << ", not [batch, positions, heads x columns] of one batch "
                      << "with as many columns of a query as of a key";
  }
  batch_ = shapeOf(query)[0];
  length_ = shapeOf(query)[1];
  keyColumns_ = shapeOf(key).back() / heads_;
  valueColumns_ = shapeOf(value).back() / heads_;
  auto isWide = [&](unsigned index, llvm::ArrayRef<int64_t> widths) {
    Value x = n_.operand(index);
    return rankOf(x) == 3 && shapeOf(x).drop_back() == shapeOf(query).drop_back() &&
           llvm::is_contained(widths, shapeOf(x).back());
  };
  if ((isGated_ && !isWide(4, {heads_, heads_ * keyColumns_})) ||
      (isDelta_ && !isWide(5, {heads_, 1}))) {
    return n_.error() << "has a decay or beta that does not fit " << heads_ << " heads of "
                      << keyColumns_ << " columns";
  }
  Value past = n_.optionalOperand(3);
  const Ints state{batch_, heads_, keyColumns_, valueColumns_};
  if (past && shapeOf(past) != llvm::ArrayRef<int64_t>(state)) {
    return n_.error() << "has a past state " << past.getType() << ", not [batch, key heads, "
                      << "key columns, value columns]";
  }
  if (batch_ < 1 || length_ < 1) {
    return n_.error() << "has no positions";
  }
  const bool perColumn = isGated_ && shapeOf(n_.operand(4)).back() != heads_;
  chunk_ = std::min(length_, perColumn ? kChunkOfColumnDecays : kChunk);
  chunks_ = (length_ + chunk_ - 1) / chunk_;
  return mlir::success();
}

Value LinearAttention::inChunks(Value x, int64_t heads) {
  Value split = splitHeads(n_, x, heads);
  if (!split) {
    return {};
  }
  const int64_t columns = shapeOf(split).back(), missing = chunks_ * chunk_ - length_;
  if (missing > 0) {
    const Ints none(4, 0), high{0, 0, missing, 0};
    split = n_.create<ir::PadOp>(split, llvm::ArrayRef<int64_t>(none),
                                 llvm::ArrayRef<int64_t>(high), llvm::ArrayRef<int64_t>(none), 0.0);
  }
  return n_.reshape(split, {batch_, heads, chunks_, chunk_, columns});
}

Value LinearAttention::withKeys(Value x) {
  if (!x || queryHeads_ == heads_) {
    return x;
  }
  const int64_t shared = queryHeads_ / heads_, columns = shapeOf(x).back();
  x = n_.reshape(x, {batch_, heads_, shared, chunks_, chunk_, columns});
  return n_.reshape(n_.transpose(x, {0, 1, 3, 2, 4, 5}),
                    {batch_, heads_, chunks_, shared * chunk_, columns});
}

Value LinearAttention::apart(Value x) {
  if (!x || queryHeads_ == heads_) {
    return x;
  }
  const int64_t shared = queryHeads_ / heads_, columns = shapeOf(x).back();
  x = n_.reshape(x, {batch_, heads_, chunks_, shared, chunk_, columns});
  return n_.reshape(n_.transpose(x, {0, 1, 3, 2, 4, 5}),
                    {batch_, queryHeads_, chunks_, chunk_, columns});
}

Value LinearAttention::pairs(Value left, Value decaysOfLeft, Value right, bool diagonal) {
  if (!left || !right) {
    return {};
  }
  const int64_t rows = shapeOf(left)[3];
  llvm::SmallVector<bool> before;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t i = row % chunk_;
    for (int64_t j = 0; j < chunk_; ++j) {
      before.push_back(j < i || (diagonal && j == i));
    }
  }
  if (!isGated_) {
    return n_.create<ir::SelectOp>(n_.boolConstant(before, {rows, chunk_}),
                                   matmul(left, right, /*transposeRight=*/true),
                                   n_.scalarLike(left, 0));
  }
  auto rowsOf = [&](Value x) {
    return n_.reshape(x, {batch_, heads_, chunks_, rows, 1, shapeOf(x).back()});
  };
  auto columnsOf = [&](Value x) {
    return n_.reshape(x, {batch_, heads_, chunks_, 1, chunk_, shapeOf(x).back()});
  };
  // Masked before exp, which could be infinite.
  Value factors = n_.create<ir::ExpOp>(n_.create<ir::SelectOp>(
      n_.boolConstant(before, {rows, chunk_, 1}),
      n_.create<ir::SubOp>(rowsOf(decaysOfLeft), columnsOf(decays_)), n_.scalarLike(left, kNever)));
  if (shapeOf(decays_).back() == 1) {
    return mul(matmul(left, right, /*transposeRight=*/true),
               n_.reshape(factors, {batch_, heads_, chunks_, rows, chunk_}));
  }
  return n_.reduce<ir::ReduceSumOp>(mul(mul(rowsOf(left), factors), columnsOf(right)), {5},
                                    /*keepDims=*/false);
}

LogicalResult LinearAttention::import() {
  if (failed(readRule()) || failed(readShapes())) {
    return failure();
  }
  Value query = withKeys(inChunks(n_.operand(0), queryHeads_));
  Value key = inChunks(n_.operand(1), heads_), value = inChunks(n_.operand(2), heads_);
  if (!query || !key || !value) {
    return failure();
  }
  Value writeKeys = key, decaysOfQuery;
  Value stateDecays = n_.splat(n_.tensorType({batch_, heads_, chunks_, 1, 1}, elementOf(key)), 1);
  if (isGated_) {
    // Beyond it nothing is left of a state in any case, and sums of decays stay exact.
    Value decays = n_.create<ir::MaxOp>(n_.operand(4), n_.scalarLike(n_.operand(4), kForgotten));
    decays_ = n_.create<ir::CumsumOp>(inChunks(decays, heads_), int64_t{3}, false, false);
    if (!decays_) {
      return failure();
    }
    const int64_t columns = shapeOf(decays_).back();
    const int64_t shared = queryHeads_ / heads_;
    decaysOfQuery =
        n_.reshape(n_.broadcast(n_.reshape(decays_, {batch_, heads_, chunks_, 1, chunk_, columns}),
                                {batch_, heads_, chunks_, shared, chunk_, columns}),
                   {batch_, heads_, chunks_, shared * chunk_, columns});
    Value ends = n_.sliceDim(decays_, 3, chunk_ - 1, chunk_);
    writeKeys = decayed(key, n_.create<ir::SubOp>(ends, decays_));
    stateDecays = n_.create<ir::ExpOp>(n_.reshape(ends, {batch_, heads_, chunks_, columns, 1}));
  }
  Value values = value, readKeys;
  if (isDelta_) {
    const bool isShared = shapeOf(n_.operand(5)).back() == 1 && heads_ > 1;
    Value beta = inChunks(n_.operand(5), isShared ? 1 : heads_);
    Value betaKey = mul(key, beta);
    Value system = pairs(betaKey, decays_, key, /*diagonal=*/false);
    auto solve = [&](Value x) {
      return n_.create<ir::TriangularSolveOp>(system, x, false, false, /*unitDiagonal=*/true);
    };
    values = solve(mul(value, beta));
    Value read = solve(decayed(betaKey, decays_));
    readKeys = read ? n_.createLike<ir::NegOp>(read) : Value();
  } else {
    readKeys = n_.splat(tensorType(key), 0);
  }
  Value initial = n_.optionalOperand(3);
  if (!initial) {
    initial =
        n_.splat(n_.tensorType({batch_, heads_, keyColumns_, valueColumns_}, elementOf(key)), 0);
  }
  Value written = n_.create<ir::DeltaScanOp>(values, readKeys, writeKeys, stateDecays, initial,
                                             OptionalValue{}, /*reverse=*/false);
  auto scan = written ? written.getDefiningOp<ir::DeltaScanOp>() : ir::DeltaScanOp();
  if (!scan) {
    return failure();
  }
  double scale = n_.attrFloat("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(keyColumns_));
  Value result = add(matmul(decayed(query, decaysOfQuery), scan.getStates()),
                     matmul(pairs(query, decaysOfQuery, key, /*diagonal=*/true), written));
  result = result ? apart(mul(result, n_.scalarLike(result, scale))) : Value();
  if (!result) {
    return failure();
  }
  result = n_.reshape(result, {batch_, queryHeads_, chunks_ * chunk_, valueColumns_});
  result = mergeHeads(n_, n_.sliceDim(result, 2, 0, length_));
  return n_.replace(llvm::ArrayRef<Value>{result, scan.getLast()});
}

LogicalResult importLinearAttention(NodeImporter& n) { return LinearAttention(n).import(); }

}  // namespace

void registerLinearAttention(OpRegistry& registry) {
  registry.add("LinearAttention", 27, importLinearAttention);
}

}  // namespace oriel
