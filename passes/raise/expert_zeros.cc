#include "passes/raise/expert_zeros.h"

#include <limits>

#include "ir/oriel/matmul_dims.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;
using Elsewhere = ChosenOnly::Elsewhere;
using Ints = llvm::SmallVector<int64_t>;

// Indices of the largest of the last dimension, and how many that are of a row.
struct Largest {
  Value index;
  Value scores;
  int64_t count;
};

std::optional<Largest> largestOf(Value value) {
  auto isIndex = [](Value of) {
    mlir::Type type = elementOf(of);
    return type.isInteger(64) || type.isInteger(32);
  };
  // What keeps them, and their order.
  while (Operation* op = value.getDefiningOp()) {
    if (!llvm::isa<ir::CastOp, ir::ReshapeOp>(op) || !isIndex(op->getOperand(0))) break;
    value = op->getOperand(0);
  }
  std::optional<Largest> largest;
  int64_t dim = 0;
  if (auto topk = value.getDefiningOp<ir::TopkOp>()) {
    largest = Largest{topk, topk.getInput(), static_cast<int64_t>(topk.getK())};
    dim = static_cast<int64_t>(topk.getDim());
  } else if (auto argmax = value.getDefiningOp<ir::ArgmaxOp>()) {
    largest = Largest{argmax, argmax.getInput(), 1};
    dim = static_cast<int64_t>(argmax.getDim());
  }
  if (!largest || dim != rankOf(largest->scores) - 1) return std::nullopt;
  const bool isWide = elementOf(value).isInteger(64);
  return isWide && largest->count > 0 ? largest : std::nullopt;
}

// The elements of a constant of integers.
std::optional<std::vector<int64_t>> integersOf(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  if (!constant) return std::nullopt;
  auto elements = llvm::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.getElementType().isInteger(64)) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t element : elements.getValues<int64_t>()) values.push_back(element);
  return values;
}

// The dimension of a result of this rank along which the operand counts from 0 on; all others of
// its own are of size 1.
std::optional<int64_t> countedDim(Value operand, int64_t rank) {
  llvm::ArrayRef<int64_t> shape = shapeOf(operand);
  std::optional<int64_t> dim;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (size == 1) continue;
    if (dim) return std::nullopt;
    dim = static_cast<int64_t>(i) + rank - static_cast<int64_t>(shape.size());
  }
  auto values = integersOf(operand);
  if (!dim || !values) return std::nullopt;
  for (auto [i, value] : llvm::enumerate(*values)) {
    if (value != static_cast<int64_t>(i)) return std::nullopt;
  }
  return dim;
}

// Rows before the experts and behind them, in order; the last other dimension has the choices,
// where these are more than one.
std::optional<ChosenOnly> chosenAt(llvm::ArrayRef<int64_t> shape, int64_t expertDim,
                                   const Largest& largest, bool hasChoiceDim) {
  ChosenOnly chosen;
  chosen.choices.index = largest.index;
  chosen.choices.count = largest.count;
  chosen.choices.experts = shape[expertDim];
  int64_t last = -1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    const auto dim = static_cast<int64_t>(i);
    if (dim == expertDim) {
      chosen.roles.push_back(kExpertDim);
    } else if (size == 1) {
      chosen.roles.push_back(kFeatureDim);
    } else {
      last = dim;
      chosen.roles.push_back(static_cast<int>(chosen.choices.rows.size()));
      chosen.choices.rows.push_back(size);
    }
  }
  if (hasChoiceDim && largest.count > 1) {
    if (last < 0 || shape[last] != largest.count) return std::nullopt;
    chosen.roles[last] = kChoiceDim;
    chosen.choices.rows.pop_back();
  }
  const int64_t rows = ir::elementCount(chosen.choices.rows);
  const bool fits = rows > 1 && chosen.choices.experts == shapeOf(largest.scores).back() &&
                    rows * largest.count == tensorType(largest.index).getNumElements();
  return fits ? std::optional(chosen) : std::nullopt;
}

// Indices compared with the numbers of all experts.
std::optional<ChosenOnly> matchOneHot(ir::EqualOp op) {
  llvm::ArrayRef<int64_t> shape = shapeOf(op);
  for (auto [index, count] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                              std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
    std::optional<int64_t> dim = countedDim(count, static_cast<int64_t>(shape.size()));
    std::optional<Largest> largest = largestOf(index);
    if (!dim || !largest || shapeOf(index).size() != shape.size()) continue;
    Ints expected(shape);
    expected[*dim] = 1;
    if (shapeOf(index) != llvm::ArrayRef<int64_t>(expected)) continue;
    auto chosen = chosenAt(shape, *dim, *largest, /*hasChoiceDim=*/true);
    if (!chosen) continue;
    chosen->elsewhere = Elsewhere::kFalse;
    chosen->isOneHot = true;
    return chosen;
  }
  return std::nullopt;
}

// Weights added to zeros in the rows of their own.
std::optional<ChosenOnly> matchPlaced(ir::ScatterAddOp op) {
  const int64_t last = op.getType().getRank() - 1;
  std::optional<Largest> largest = largestOf(op.getIndices());
  if (last < 1 || static_cast<int64_t>(op.getBatchDims()) != last || !largest) return std::nullopt;
  auto chosen = chosenAt(shapeOf(op.getResult()), last, *largest, /*hasChoiceDim=*/false);
  if (!chosen) return std::nullopt;
  Value updates = op.getUpdates();
  const bool isAsWide = elementOf(updates) == op.getType().getElementType();
  if (isAsWide) chosen->weight = updates;
  return chosen;
}

// The same value behind a reshape that merges rows or splits them.
std::optional<ChosenOnly> regroupRows(const ChosenOnly& known, ir::ReshapeOp reshape) {
  llvm::ArrayRef<int64_t> from = shapeOf(reshape.getInput()), to = shapeOf(reshape);
  // Rows in order, nothing else but the experts.
  int64_t before = 1, elements = 1;
  int last = -1;
  for (auto [role, size] : llvm::zip_equal(known.roles, from)) {
    if (role == kExpertDim) before = elements;
    elements *= size;
    if (size == 1 || role == kExpertDim) continue;
    if (role < 0 || role < last) return std::nullopt;
    last = role;
  }
  const int64_t experts = known.choices.experts;
  if (elements != ir::elementCount(known.choices.rows) * experts) return std::nullopt;
  ChosenOnly regrouped = known;
  regrouped.roles.clear();
  regrouped.choices.rows.clear();
  int64_t seen = 1;
  bool hasExperts = false;
  for (int64_t size : to) {
    if (!hasExperts && size == experts && seen == before) {
      regrouped.roles.push_back(kExpertDim);
      hasExperts = true;
    } else if (size == 1) {
      regrouped.roles.push_back(kFeatureDim);
    } else {
      regrouped.roles.push_back(static_cast<int>(regrouped.choices.rows.size()));
      regrouped.choices.rows.push_back(size);
    }
    seen *= size;
  }
  if (!hasExperts || regrouped.choices.rows.empty()) return std::nullopt;
  return regrouped;
}

// A constant of one number, of floats or of integers.
std::optional<double> numberOf(Value value) {
  if (std::optional<double> splat = splatValue(value)) return splat;
  mlir::DenseElementsAttr elements;
  if (!mlir::matchPattern(value, mlir::m_Constant(&elements)) || !elements.isSplat()) {
    return std::nullopt;
  }
  if (!elements.getElementType().isInteger(64)) return std::nullopt;
  return static_cast<double>(elements.getSplatValue<int64_t>());
}

}  // namespace

ExpertZeros::ExpertZeros(mlir::func::FuncOp function) {
  if (function.isExternal()) return;
  for (Operation& op : function.getBody().front()) visit(&op);
}

void ExpertZeros::visit(Operation* op) {
  if (op->getNumResults() != 1) return;
  if (auto matmul = llvm::dyn_cast<ir::MatmulOp>(op)) return visitProduct(matmul);
  if (auto sum = llvm::dyn_cast<ir::ReduceSumOp>(op)) return visitSum(sum);
  if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(op)) return visitReshape(reshape);
  if (auto chosen = result(op)) known_.insert({op->getResult(0), std::move(*chosen)});
}

std::optional<ChosenOnly> ExpertZeros::ofOperand(Operation* op, unsigned operand,
                                                 Elsewhere elsewhere) const {
  const ChosenOnly* known = of(op->getOperand(operand));
  if (!known || known->elsewhere != elsewhere) return std::nullopt;
  ChosenOnly chosen = *known;
  const int64_t rank = rankOf(op->getResult(0));
  const auto aligned = static_cast<int64_t>(chosen.roles.size());
  chosen.roles.insert(chosen.roles.begin(), rank - aligned, kFeatureDim);
  chosen.isOneHot = false;
  chosen.weight = {};
  return chosen;
}

std::optional<ChosenOnly> ExpertZeros::result(Operation* op) const {
  if (auto equal = llvm::dyn_cast<ir::EqualOp>(op)) {
    if (auto chosen = matchOneHot(equal)) return chosen;
  }
  if (auto scatter = llvm::dyn_cast<ir::ScatterAddOp>(op)) return matchPlaced(scatter);
  if (llvm::isa<ir::EqualOp, ir::GreaterOp, ir::NotOp, ir::AndOp>(op)) return ofComparison(op);
  if (auto select = llvm::dyn_cast<ir::SelectOp>(op)) return ofSelect(select);
  if (auto mul = llvm::dyn_cast<ir::MulOp>(op)) return ofProduct(mul);
  if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(op)) {
    const ChosenOnly* known = of(transpose.getInput());
    if (!known) return std::nullopt;
    ChosenOnly chosen = *known;
    for (auto [role, dim] : llvm::zip_equal(chosen.roles, transpose.getPermutation())) {
      role = known->roles[dim];
    }
    return chosen;
  }
  if (auto cast = llvm::dyn_cast<ir::CastOp>(op)) {
    const ChosenOnly* known = of(cast.getInput());
    if (!known || known->elsewhere == Elsewhere::kTrue) return std::nullopt;
    const bool isBool = cast.getType().getElementType().isInteger(1);
    if (known->elsewhere == Elsewhere::kLowest) {
      return llvm::isa<mlir::FloatType>(cast.getType().getElementType())
                 ? ofOperand(op, 0, Elsewhere::kLowest)
                 : std::nullopt;
    }
    ChosenOnly chosen = *known;
    chosen.elsewhere = isBool ? Elsewhere::kFalse : Elsewhere::kZero;
    chosen.weight = {};
    return chosen;
  }
  if (auto broadcast = llvm::dyn_cast<ir::BroadcastOp>(op)) {
    const ChosenOnly* known = of(broadcast.getInput());
    return known ? ofOperand(op, 0, known->elsewhere) : std::nullopt;
  }
  if (auto slice = llvm::dyn_cast<ir::SliceOp>(op)) {
    auto chosen = ofOperand(op, 0, Elsewhere::kZero);
    if (!chosen) return std::nullopt;
    for (auto [i, role] : llvm::enumerate(chosen->roles)) {
      const bool isWhole = shapeOf(slice)[i] == shapeOf(slice.getInput())[i];
      if (role != kFeatureDim && !isWhole) return std::nullopt;
    }
    return chosen;
  }
  if (auto softmax = llvm::dyn_cast<ir::SoftmaxOp>(op)) {
    auto chosen = ofOperand(op, 0, Elsewhere::kLowest);
    if (!chosen || chosen->roles[softmax.getDim()] != kExpertDim) return std::nullopt;
    chosen->elsewhere = Elsewhere::kZero;
    return chosen;
  }
  if (llvm::isa<ir::SigmoidOp, ir::ExpOp>(op)) {
    auto chosen = ofOperand(op, 0, Elsewhere::kLowest);
    if (chosen) chosen->elsewhere = Elsewhere::kZero;
    return chosen;
  }
  // What makes 0 of 0, of this operand or of either.
  if (llvm::isa<ir::DivOp, ir::NegOp, ir::ActivationOp, ir::TanhOp, ir::ReluOp>(op)) {
    return ofOperand(op, 0, Elsewhere::kZero);
  }
  if (llvm::isa<ir::GatedActivationOp>(op)) {
    auto chosen = ofOperand(op, 0, Elsewhere::kZero);
    return chosen ? chosen : ofOperand(op, 1, Elsewhere::kZero);
  }
  if (auto linear = llvm::dyn_cast<ir::LinearOp>(op)) {
    auto chosen = ofOperand(op, 0, Elsewhere::kZero);
    const bool keeps = chosen && !linear.getBias() && chosen->roles.back() == kFeatureDim;
    return keeps ? chosen : std::nullopt;
  }
  return std::nullopt;
}

std::optional<ChosenOnly> ExpertZeros::ofProduct(ir::MulOp op) const {
  for (unsigned operand : {0u, 1u}) {
    auto chosen = ofOperand(op, operand, Elsewhere::kZero);
    if (!chosen) continue;
    // One-hot rows times a number for each choice, which are in order.
    Value weight = op->getOperand(1 - operand);
    Ints shape(shapeOf(op));
    DimRoles others;
    for (auto [role, size] : llvm::zip_equal(chosen->roles, shape)) {
      if (role == kExpertDim) size = 1;
      if (role >= 0) others.push_back(role);
      if (role == kChoiceDim) others.push_back(std::numeric_limits<int>::max());
    }
    const bool hasChoices = llvm::is_contained(chosen->roles, kChoiceDim);
    if (of(op->getOperand(operand))->isOneHot && hasChoices && llvm::is_sorted(others) &&
        shapeOf(weight) == llvm::ArrayRef<int64_t>(shape)) {
      chosen->weight = weight;
    }
    return chosen;
  }
  return std::nullopt;
}

std::optional<ChosenOnly> ExpertZeros::ofSelect(ir::SelectOp op) const {
  const ChosenOnly* condition = of(op.getCondition());
  if (!condition) return std::nullopt;
  const bool isFalse = condition->elsewhere == Elsewhere::kFalse;
  if (!isFalse && condition->elsewhere != Elsewhere::kTrue) return std::nullopt;
  std::optional<double> number = numberOf(op->getOperand(isFalse ? 2 : 1));
  if (!number || (*number != 0 && !(*number <= kLowestScore))) return std::nullopt;
  auto chosen = ofOperand(op, 0, condition->elsewhere);
  chosen->elsewhere = *number == 0 ? Elsewhere::kZero : Elsewhere::kLowest;
  chosen->isOneHot = condition->isOneHot && isFalse && numberOf(op->getOperand(1)) == 1.0;
  return chosen;
}

std::optional<ChosenOnly> ExpertZeros::ofComparison(Operation* op) const {
  if (llvm::isa<ir::NotOp>(op)) {
    for (Elsewhere elsewhere : {Elsewhere::kFalse, Elsewhere::kTrue}) {
      auto chosen = ofOperand(op, 0, elsewhere);
      if (!chosen) continue;
      chosen->elsewhere = elsewhere == Elsewhere::kFalse ? Elsewhere::kTrue : Elsewhere::kFalse;
      return chosen;
    }
    return std::nullopt;
  }
  if (llvm::isa<ir::AndOp>(op)) {
    auto chosen = ofOperand(op, 0, Elsewhere::kFalse);
    return chosen ? chosen : ofOperand(op, 1, Elsewhere::kFalse);
  }
  // 0 = c, 0 > c, c > 0.
  for (unsigned operand : {0u, 1u}) {
    auto chosen = ofOperand(op, operand, Elsewhere::kZero);
    std::optional<double> number = numberOf(op->getOperand(1 - operand));
    if (!chosen || !number) continue;
    bool holds = *number == 0;
    if (llvm::isa<ir::GreaterOp>(op)) holds = operand == 0 ? 0 > *number : *number > 0;
    chosen->elsewhere = holds ? Elsewhere::kTrue : Elsewhere::kFalse;
    return chosen;
  }
  return std::nullopt;
}

void ExpertZeros::visitReshape(ir::ReshapeOp op) {
  std::optional<ChosenOnly> chosen;
  const ChosenOnly* known = of(op.getInput());
  if (!known) return;
  if (auto roles = rolesBehind(op, known->roles)) {
    chosen = *known;
    chosen->roles = *roles;
  } else {
    chosen = regroupRows(*known, op);
  }
  if (chosen) {
    known_.insert({op, std::move(*chosen)});
    return;
  }
  // Experts merged with what they give, which a linear layer sums over.
  if (known->elsewhere != Elsewhere::kZero || shapeOf(op).empty()) return;
  int64_t columns = 0;
  int last = -1;
  for (auto [role, size] : llvm::zip_equal(known->roles, shapeOf(op.getInput()))) {
    if (role == kExpertDim) {
      columns = size;
    } else if (columns == 0) {
      if (size != 1 && role < last) return;
      last = std::max(last, role);
    } else {
      if (role >= 0) return;
      columns *= size;
    }
  }
  if (columns == 0 || shapeOf(op).back() != columns) return;
  for (Operation* user : op->getUsers()) {
    auto linear = llvm::dyn_cast<ir::LinearOp>(user);
    if (linear && linear.getInput() == op.getResult()) sums_.push_back({linear, op.getInput()});
  }
}

void ExpertZeros::visitSum(ir::ReduceSumOp op) {
  const ChosenOnly* known = of(op.getInput());
  if (!known || known->elsewhere != Elsewhere::kZero || op.getDims().size() != 1) return;
  const int64_t dim = op.getDims().front();
  if (known->roles[dim] == kExpertDim) {
    sums_.push_back({op, op.getInput()});
    return;
  }
  // Over the choices of one-hot rows, or over features.
  if (known->roles[dim] >= 0) return;
  ChosenOnly chosen = *known;
  chosen.isOneHot = false;
  if (known->roles[dim] != kChoiceDim) chosen.weight = {};
  if (op.getKeepDims()) {
    chosen.roles[dim] = kFeatureDim;
  } else {
    chosen.roles.erase(chosen.roles.begin() + dim);
  }
  known_.insert({op, std::move(chosen)});
}

void ExpertZeros::visitProduct(ir::MatmulOp op) {
  for (bool isLeft : {true, false}) {
    Value operand = isLeft ? op.getLhs() : op.getRhs();
    const ChosenOnly* known = of(operand);
    if (!known || known->elsewhere != Elsewhere::kZero) continue;
    const auto m = static_cast<int64_t>(op.getRowDims()),
               n = static_cast<int64_t>(op.getColumnDims()),
               sum = static_cast<int64_t>(op.getSumDims());
    const int64_t batch = op.getType().getRank() - m - n, own = isLeft ? m : n;
    const bool sumIsFirst = isLeft ? op.getTransposeLhs() : !op.getTransposeRhs();
    llvm::ArrayRef<int> all(known->roles);
    llvm::ArrayRef<int> ownRoles = sumIsFirst ? all.take_back(own) : all.slice(batch, own);
    llvm::ArrayRef<int> sumRoles = sumIsFirst ? all.slice(batch, sum) : all.take_back(sum);
    if (llvm::is_contained(sumRoles, kExpertDim)) {
      sums_.push_back({op, operand});
      return;
    }
    if (llvm::any_of(sumRoles, [](int role) { return role >= 0; })) continue;
    ChosenOnly chosen = *known;
    chosen.isOneHot = false;
    chosen.weight = {};
    chosen.roles.assign(all.begin(), all.begin() + batch);
    if (isLeft) llvm::append_range(chosen.roles, ownRoles);
    chosen.roles.append(isLeft ? n : m, kFeatureDim);
    if (!isLeft) llvm::append_range(chosen.roles, ownRoles);
    known_.insert({op, std::move(chosen)});
    return;
  }
}

}  // namespace oriel
