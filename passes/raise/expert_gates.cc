#include "passes/raise/expert_gates.h"

namespace oriel {

namespace {

using mlir::Value;

// Before casts and reshapes.
Value withoutViews(Value value) {
  while (mlir::Operation* op = value.getDefiningOp()) {
    if (!llvm::isa<ir::CastOp, ir::ReshapeOp>(op)) break;
    value = op->getOperand(0);
  }
  return value;
}

// The largest of the last dimension, whose indices these are.
ir::TopkOp topkOf(Value value) {
  auto topk = withoutViews(value).getDefiningOp<ir::TopkOp>();
  if (!topk) return {};
  const int64_t last = topk.getType().getRank() - 1;
  return static_cast<int64_t>(topk.getDim()) == last ? topk : ir::TopkOp();
}

// The elements of a small constant of integers.
std::optional<std::vector<int64_t>> integersOf(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  if (!constant) return std::nullopt;
  auto elements = llvm::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.getElementType().isInteger(64)) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t element : elements.getValues<int64_t>()) values.push_back(element);
  return values;
}

// The dimension of the result along which the operand counts from 0 on, with all others of size 1.
std::optional<int64_t> countedDim(Value operand, int64_t rank) {
  mlir::RankedTensorType type = tensorType(operand);
  std::optional<int64_t> dim;
  for (auto [i, size] : llvm::enumerate(type.getShape())) {
    if (size == 1) continue;
    if (dim) return std::nullopt;
    dim = static_cast<int64_t>(i) + rank - type.getRank();
  }
  auto values = integersOf(operand);
  if (!dim || !values) return std::nullopt;
  for (auto [i, value] : llvm::enumerate(*values)) {
    if (value != static_cast<int64_t>(i)) return std::nullopt;
  }
  return dim;
}

// Indices compared with all numbers of experts: [r.., k] with a dimension for the experts.
struct OneHot {
  ir::TopkOp choice;
  int64_t expertDim;
};

std::optional<OneHot> matchOneHot(Value value) {
  while (auto cast = value.getDefiningOp<ir::CastOp>()) value = cast.getInput();
  auto equal = value.getDefiningOp<ir::EqualOp>();
  if (!equal) return std::nullopt;
  llvm::ArrayRef<int64_t> shape = tensorType(value).getShape();
  const int64_t rank = static_cast<int64_t>(shape.size());
  for (auto [index, count] : {std::pair<Value, Value>(equal.getLhs(), equal.getRhs()),
                              std::pair<Value, Value>(equal.getRhs(), equal.getLhs())}) {
    std::optional<int64_t> dim = countedDim(count, rank);
    ir::TopkOp topk = topkOf(index);
    if (!dim || !topk || tensorType(index).getRank() != rank) continue;
    if (tensorType(topk.getInput()).getShape().back() != shape[*dim]) continue;
    // The choices with a dimension of size 1 for the experts, in order.
    llvm::SmallVector<int64_t> expected(topk.getType().getShape());
    if (*dim > static_cast<int64_t>(expected.size())) continue;
    expected.insert(expected.begin() + *dim, 1);
    if (tensorType(index).getShape() == llvm::ArrayRef<int64_t>(expected)) {
      return OneHot{topk, *dim};
    }
  }
  return std::nullopt;
}

// Rows are all of its other dimensions that are more than 1.
ExpertGates gatesOf(Value value, ir::TopkOp choice, int64_t expertDim, Value weight) {
  llvm::ArrayRef<int64_t> shape = tensorType(value).getShape();
  ExpertGates gates;
  gates.value = value;
  gates.choices = choice.getType().getShape().back();
  gates.experts = shape[expertDim];
  gates.choice = choice.getResult();
  gates.weight = weight;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (static_cast<int64_t>(i) == expertDim) {
      gates.roles.push_back(kExpertDim);
    } else if (size == 1) {
      gates.roles.push_back(kFeatureDim);
    } else {
      gates.roles.push_back(static_cast<int>(gates.rows.size()));
      gates.rows.push_back(size);
    }
  }
  return gates;
}

std::optional<ExpertGates> matchSum(Value value) {
  auto sum = value.getDefiningOp<ir::ReduceSumOp>();
  if (!sum || sum.getDims().size() != 1 || sum.getKeepDims()) return std::nullopt;
  const int64_t dim = sum.getDims().front();
  Value weight;
  std::optional<OneHot> oneHot = matchOneHot(sum.getInput());
  if (!oneHot) {
    auto product = matchEither<ir::MulOp>(
        sum.getInput(), [](Value operand) { return matchOneHot(operand).has_value(); });
    if (!product) return std::nullopt;
    oneHot = matchOneHot(product->first);
    weight = product->second;
  }
  // What is summed over are the choices, the last of the others.
  const int64_t rank = tensorType(sum.getInput()).getRank();
  const int64_t choices = oneHot->expertDim == rank - 1 ? rank - 2 : rank - 1;
  if (dim != choices || oneHot->choice.getType().getRank() != rank - 1) return std::nullopt;
  if (weight) {
    llvm::SmallVector<int64_t> shape(tensorType(sum.getInput()).getShape());
    shape[oneHot->expertDim] = 1;
    if (tensorType(weight).getShape() != llvm::ArrayRef<int64_t>(shape)) return std::nullopt;
  }
  const int64_t expertDim = oneHot->expertDim - (oneHot->expertDim > choices ? 1 : 0);
  return gatesOf(value, oneHot->choice, expertDim, weight);
}

// reshape [t * e] → [t.., e, 1..] of weights added to zeros at choice[t, j] + e t.
std::optional<ExpertGates> matchScattered(Value value) {
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  auto scatter = reshape ? reshape.getInput().getDefiningOp<ir::ScatterAddOp>() : nullptr;
  if (!scatter || scatter.getFirst() || scatter.getType().getRank() != 1) return std::nullopt;
  Value places = scatter.getIndices();
  while (auto view = places.getDefiningOp<ir::ReshapeOp>()) places = view.getInput();
  auto add = places.getDefiningOp<ir::AddOp>();
  if (!add) return std::nullopt;
  for (auto [index, offset] : {std::pair<Value, Value>(add.getLhs(), add.getRhs()),
                               std::pair<Value, Value>(add.getRhs(), add.getLhs())}) {
    auto topk = index.getDefiningOp<ir::TopkOp>();
    if (!topk || topkOf(index) != topk || topk.getType() != add.getType()) continue;
    const int64_t experts = tensorType(topk.getInput()).getShape().back();
    auto offsets = integersOf(offset);
    if (!offsets || tensorType(offset).getShape() != topk.getType().getShape()) continue;
    const auto choices = static_cast<size_t>(topk.getType().getShape().back());
    bool fits = offsets->size() > choices;
    for (size_t i = 0; i < offsets->size() && fits; ++i) {
      fits = (*offsets)[i] == static_cast<int64_t>(i / choices) * experts;
    }
    llvm::ArrayRef<int64_t> shape = tensorType(value).getShape();
    while (!shape.empty() && shape.back() == 1) shape = shape.drop_back();
    if (!fits || shape.empty() || shape.back() != experts) continue;
    return gatesOf(value, topk, static_cast<int64_t>(shape.size()) - 1, scatter.getUpdates());
  }
  return std::nullopt;
}

}  // namespace

std::optional<ExpertGates> matchExpertGates(Value value) {
  if (auto gates = matchSum(value)) return gates;
  return matchScattered(value);
}

std::optional<ExpertGates> regroupRows(const ExpertGates& gates, const DimRoles& roles,
                                       ir::ReshapeOp reshape) {
  llvm::ArrayRef<int64_t> from = tensorType(reshape.getInput()).getShape();
  llvm::ArrayRef<int64_t> to = reshape.getType().getShape();
  // Rows in order, nothing else but the experts; elements before and behind these as many as ever.
  int64_t before = 1, elements = 1;
  int last = -1;
  bool isBehind = false;
  for (auto [role, size] : llvm::zip_equal(roles, from)) {
    elements *= size;
    if (role == kExpertDim) {
      before = elements / size;
      isBehind = true;
    }
    if (role == kFeatureDim && size != 1) return std::nullopt;
    if (role < 0 || size == 1) continue;
    if (role < last) return std::nullopt;
    last = role;
  }
  int64_t rows = 1;
  for (int64_t size : gates.rows) rows *= size;
  if (!isBehind || elements != rows * gates.experts) return std::nullopt;
  ExpertGates regrouped = gates;
  regrouped.value = reshape;
  regrouped.roles.clear();
  regrouped.rows.clear();
  int64_t product = 1;
  bool hasExperts = false;
  for (int64_t size : to) {
    if (!hasExperts && size == gates.experts && product == before) {
      regrouped.roles.push_back(kExpertDim);
      hasExperts = true;
    } else if (size == 1) {
      regrouped.roles.push_back(kFeatureDim);
    } else {
      regrouped.roles.push_back(static_cast<int>(regrouped.rows.size()));
      regrouped.rows.push_back(size);
    }
    product *= size;
  }
  if (!hasExperts || regrouped.rows.empty()) return std::nullopt;
  return regrouped;
}

}  // namespace oriel
