#include "passes/raise/attention_scores.h"

#include <limits>

namespace oriel {

using mlir::Value;

std::optional<std::pair<ir::SoftmaxOp, KeyChoice>> matchShownSoftmax(Value value) {
  auto select = value.getDefiningOp<ir::SelectOp>();
  if (!select) return std::nullopt;
  const bool keeps = isSplat(select.getOnFalse(), 0.0);
  if (!keeps && !isSplat(select.getOnTrue(), 0.0)) return std::nullopt;
  Value shown = keeps ? select.getOnTrue() : select.getOnFalse();
  auto softmax = shown.getDefiningOp<ir::SoftmaxOp>();
  if (!softmax || softmax.getType() != select.getType()) return std::nullopt;
  return std::make_pair(softmax, KeyChoice{select.getCondition(), {}, keeps});
}

ir::SoftmaxOp matchSoftmax(Value value) {
  if (auto softmax = value.getDefiningOp<ir::SoftmaxOp>()) return softmax;
  auto select = value.getDefiningOp<ir::SelectOp>();
  if (!select || !splatValue(select.getOnTrue()) || *splatValue(select.getOnTrue()) != 0.0) {
    return {};
  }
  auto softmax = select.getOnFalse().getDefiningOp<ir::SoftmaxOp>();
  // x is NaN where it is not equal to itself.
  auto isNan = select.getCondition().getDefiningOp<ir::NotOp>();
  auto equal = isNan ? isNan.getInput().getDefiningOp<ir::EqualOp>() : ir::EqualOp();
  if (!softmax || !equal || equal.getLhs() != softmax.getResult() ||
      equal.getRhs() != softmax.getResult()) {
    return {};
  }
  return softmax;
}

Value withoutSplit(Value value) {
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  if (!reshape) return value;
  llvm::ArrayRef<int64_t> from = shapeOf(reshape.getInput());
  llvm::ArrayRef<int64_t> to = reshape.getType().getShape();
  bool keepsMatrix = from.size() >= 2 && to.size() >= 2 && from.take_back(2) == to.take_back(2);
  return keepsMatrix ? reshape.getInput() : value;
}

bool hasSharedMatrix(ir::MatmulOp op) {
  const int64_t rank = rankOf(op.getLhs());
  return op.getRowDims() == 2 && op.getSumDims() == 1 && op.getColumnDims() == 1 &&
         !op.getTransposeLhs() && (rank == 4 || rank == 5) && rankOf(op.getRhs()) == rank - 1;
}
ir::MatmulOp matchSide(Value value) {
  auto op = value.getDefiningOp<ir::MatmulOp>();
  return op && hasSharedMatrix(op) ? op : matchProduct(value);
}

AttentionOperand keysOrValues(ir::MatmulOp side) {
  AttentionOperand operand(side.getRhs());
  if (hasSharedMatrix(side) && operand.shape.size() == 3)
    operand.shape.insert(operand.shape.begin() + 1, 1);
  return operand;
}

bool Scores::hideAgain(const KeyChoice& choice, int64_t rank) {
  if (replaced.size() != 1) return false;
  Replaced& mask = replaced.front();
  auto hides = [](const Added& term) { return mayHide(term.value); };
  if (!mask.last || mask.rank != rank || mask.choice.value != choice.value ||
      mask.choice.keepsWhereTrue != choice.keepsWhereTrue || llvm::any_of(added, hides)) {
    return false;
  }
  mask.low = -std::numeric_limits<double>::infinity();
  return true;
}

bool Scores::addHeads(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> own;
  if (shape.size() == 4) own = {shape[0], shape[1]};
  if (shape.size() == 5) own = {shape[0], shape[1] * shape[2]};
  if (heads.empty()) heads = own;
  return own.empty() || own == heads;
}

namespace {

struct Capped {
  Value input;
  double scale, cap;
};

// x where the value is cap * tanh(scale * x / cap).
std::optional<Capped> matchCapped(Value value) {
  auto outer = matchScaled(value);
  auto tanh = outer ? outer->first.getDefiningOp<ir::TanhOp>() : ir::TanhOp();
  if (!tanh || !(outer->second > 0)) return std::nullopt;
  auto [input, factor] = matchScaled(tanh.getInput()).value_or(std::pair(tanh.getInput(), 1.0));
  return Capped{input, factor * outer->second, outer->second};
}

bool leadsToProduct(Value value, int depth = 8) {
  if (depth == 0) return false;
  if (matchSide(value)) return true;
  if (Value merged = withoutSplit(value); merged != value) return leadsToProduct(merged, depth - 1);
  if (auto capped = matchCapped(value)) return leadsToProduct(capped->input, depth - 1);
  if (auto scaled = matchScaled(value)) return leadsToProduct(scaled->first, depth - 1);
  if (Value keysFirst = matchTransposed(value)) return leadsToProduct(keysFirst, depth - 1);
  auto sameTypeLeads = [&](Value operand) {
    return operand.getType() == value.getType() && leadsToProduct(operand, depth - 1);
  };
  if (auto add = value.getDefiningOp<ir::AddOp>()) {
    return sameTypeLeads(add.getLhs()) || sameTypeLeads(add.getRhs());
  }
  if (auto mul = value.getDefiningOp<ir::MulOp>()) {
    return sameTypeLeads(mul.getLhs()) || sameTypeLeads(mul.getRhs());
  }
  if (auto div = value.getDefiningOp<ir::DivOp>()) return sameTypeLeads(div.getLhs());
  if (auto select = value.getDefiningOp<ir::SelectOp>()) {
    return (splatValue(select.getOnFalse()) && sameTypeLeads(select.getOnTrue())) ||
           (splatValue(select.getOnTrue()) && sameTypeLeads(select.getOnFalse()));
  }
  return false;
}

// What multiplies or divides scores of this rank, if it is the same for all queries and keys and
// may do so to queries [b, h, s, d].
bool scalesQueries(Value factor, int64_t rank) {
  llvm::ArrayRef<int64_t> shape = shapeOf(factor);
  if (tensorType(factor).getNumElements() == 1) return shape.size() <= 4;
  return rank == 4 && llvm::all_of(shape.take_back(2), [](int64_t size) { return size == 1; });
}

}  // namespace

std::optional<Scores> matchScores(Value value) {
  Scores scores;
  bool masksEnded = false;
  for (;;) {
    llvm::ArrayRef<int64_t> shape = shapeOf(value);
    int64_t rank = shape.size();
    if (!scores.addHeads(shape)) return std::nullopt;
    auto goesOn = [&](Value operand) {
      return operand.getType() == value.getType() && leadsToProduct(operand);
    };
    if (auto product = matchSide(value)) {
      scores.product = product;
      return scores;
    }
    if (Value merged = withoutSplit(value); merged != value) {
      value = merged;
    } else if (auto capped = matchCapped(value); capped && !masksEnded) {
      scores.softcap = capped->cap;
      scores.scale *= capped->scale;
      value = capped->input;
      masksEnded = true;
    } else if (auto scaled = matchScaled(value)) {
      scores.scale *= scaled->second;
      value = scaled->first;
      masksEnded = true;
    } else if (llvm::isa_and_nonnull<ir::MulOp, ir::DivOp>(value.getDefiningOp())) {
      mlir::Operation* op = value.getDefiningOp();
      Value scaledBy = op->getOperand(1), rest = op->getOperand(0);
      if (llvm::isa<ir::MulOp>(op) && !goesOn(rest)) std::swap(rest, scaledBy);
      if (!goesOn(rest) || !scalesQueries(scaledBy, rank)) return std::nullopt;
      scores.factors.push_back({scaledBy, llvm::isa<ir::DivOp>(op)});
      value = rest;
      masksEnded = true;
    } else if (Value keysFirst = matchTransposed(value)) {
      scores.transposed = !scores.transposed;
      value = keysFirst;
      masksEnded = true;
    } else if (auto match = matchEither<ir::AddOp>(value, goesOn);
               match && (!masksEnded || scores.onlyScaled())) {
      scores.added.push_back({match->second, rank, scores.scale});
      value = match->first;
    } else if (masksEnded) {
      return std::nullopt;
    } else if (auto select = value.getDefiningOp<ir::SelectOp>()) {
      bool keeps = goesOn(select.getOnTrue());
      Value seen = keeps ? select.getOnTrue() : select.getOnFalse();
      std::optional<double> low = splatValue(keeps ? select.getOnFalse() : select.getOnTrue());
      if (!goesOn(seen) || !low || !(*low <= kLowestScore)) return std::nullopt;
      bool last = scores.added.empty();
      scores.replaced.push_back({{select.getCondition(), {}, keeps}, *low, rank, last});
      value = seen;
    } else {
      return std::nullopt;
    }
  }
}

}  // namespace oriel
