#include "passes/raise/expert_region.h"

#include "ir/oriel/matmul_dims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace oriel {

namespace {

using mlir::Location;
using mlir::RankedTensorType;
using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

// Experts are a few layers; what goes on for longer would not fit the stack.
constexpr int kMaxDepth = 1000;

// Sizes of features.
Ints featureSizes(llvm::ArrayRef<int64_t> shape, const DimRoles& roles) {
  Ints sizes;
  for (auto [role, size] : llvm::zip_equal(roles, shape)) {
    if (role == kFeatureDim) sizes.push_back(size);
  }
  return sizes;
}

// The dimension with this role; -1: none.
int64_t dimOf(const DimRoles& roles, int role) {
  auto at = llvm::find(roles, role);
  return at == roles.end() ? -1 : at - roles.begin();
}

}  // namespace

ExpertRegion::ExpertRegion(const ExpertZeros& zeros, const Choices& choices,
                           mlir::OpBuilder builder)
    : zeros_(zeros),
      choices_(choices),
      rowRank_(static_cast<int64_t>(choices.rows.size())),
      builder_(std::move(builder)) {
  Ints shape(choices.rows);
  shape.push_back(choices.count);
  choice_ = reshape(choices.index.getLoc(), choices.index, shape);
}

bool ExpertRegion::hasProducts() const {
  return llvm::any_of(made_, [](mlir::Operation* op) {
    return llvm::isa<ir::ExpertLinearOp>(op) && !op->use_empty();
  });
}

void ExpertRegion::undo() {
  for (mlir::Operation* op : llvm::reverse(made_)) op->erase();
  made_.clear();
  converted_.clear();
}

Value ExpertRegion::made(mlir::Operation* op) {
  made_.push_back(op);
  return op->getResult(0);
}

Value ExpertRegion::reshape(Location loc, Value value, llvm::ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(value);
  if (type.getShape() == shape) return value;
  return made(ir::ReshapeOp::create(builder_, loc, type.clone(shape), value));
}

Value ExpertRegion::transpose(Location loc, Value value, llvm::ArrayRef<int64_t> permutation) {
  if (mlir::isIdentityPermutation(permutation)) return value;
  return made(ir::TransposeOp::create(builder_, loc, value, permutation));
}

Value ExpertRegion::arrange(Value value, llvm::ArrayRef<int64_t> order,
                            llvm::ArrayRef<int64_t> shape) {
  // No element moves with a dimension of size 1.
  Ints moved;
  for (int64_t dim : order) {
    if (tensorType(value).getDimSize(dim) != 1) moved.push_back(dim);
  }
  if (!llvm::is_sorted(moved)) value = transpose(value.getLoc(), value, order);
  return reshape(value.getLoc(), value, shape);
}

Value ExpertRegion::slice(Location loc, Value value, llvm::ArrayRef<int64_t> starts,
                          llvm::ArrayRef<int64_t> limits, llvm::ArrayRef<int64_t> strides) {
  return made(ir::SliceOp::create(builder_, loc, value, starts, limits, strides));
}

llvm::ArrayRef<int64_t> ExpertRegion::featuresOf(Value converted) const {
  return shapeOf(converted).drop_front(rowRank_ + 1);
}

Value ExpertRegion::withFeatures(Location loc, Value value, llvm::ArrayRef<int64_t> shape) {
  Ints all(shapeOf(value).take_front(rowRank_ + 1));
  llvm::append_range(all, shape);
  return reshape(loc, value, all);
}

Value ExpertRegion::convert(Value value, const DimRoles& roles) {
  if (auto known = converted_.find(value); known != converted_.end()) {
    return known->second.roles == roles ? known->second.value : Value();
  }
  if (depth_ == kMaxDepth) return {};
  ++depth_;
  Value result = convertNew(value, roles);
  --depth_;
  converted_.insert({value, {roles, result}});
  return result;
}

Value ExpertRegion::convertNew(Value value, const DimRoles& roles) {
  llvm::ArrayRef<int64_t> shape = shapeOf(value);
  bool hasExperts = false, hasRows = false;
  int64_t features = 1;
  for (auto [role, size] : llvm::zip_equal(roles, shape)) {
    if (role == kFeatureDim) features *= size;
    if (size == 1) continue;
    hasExperts |= role == kExpertDim;
    hasRows |= role >= 0;
  }
  if (!hasExperts) return layOut(value, roles);
  if (!hasRows) return gather(value, roles);
  Location loc = value.getLoc();
  const ChosenOnly* known = zeros_.of(value);
  if (known && known->weight && known->choices == choices_ && known->roles == roles) {
    Ints shape(shapeOf(choice_));
    shape.append(llvm::count(roles, kFeatureDim), 1);
    return reshape(loc, known->weight, shape);
  }
  mlir::Operation* op = value.getDefiningOp();
  if (!op) return features == 1 ? pickNumbers(value, roles) : Value();
  Value result =
      llvm::TypeSwitch<mlir::Operation*, Value>(op)
          .Case<ir::TransposeOp, ir::ReshapeOp, ir::BroadcastOp, ir::SliceOp, ir::MatmulOp,
                ir::LinearOp, ir::RmsNormOp>([&](auto typed) { return convertOp(typed, roles); })
          .Default([&](mlir::Operation*) -> Value {
            return op->hasTrait<ir::Pointwise>() && op->getNumResults() == 1
                       ? convertPointwise(op, roles)
                       : Value();
          });
  if (result || features != 1) return result;
  return pickNumbers(value, roles);
}

Value ExpertRegion::layOut(Value value, const DimRoles& roles) {
  RankedTensorType type = tensorType(value);
  Ints order, shape(rowRank_ + 1, 1);
  for (int row = 0; row < rowRank_; ++row) {
    const int64_t dim = dimOf(roles, row);
    if (dim < 0) continue;
    order.push_back(dim);
    shape[row] = type.getDimSize(dim);
  }
  if (const int64_t dim = dimOf(roles, kExpertDim); dim >= 0) order.push_back(dim);
  for (auto [i, role] : llvm::enumerate(roles)) {
    if (role != kFeatureDim) continue;
    order.push_back(static_cast<int64_t>(i));
    shape.push_back(type.getDimSize(static_cast<int64_t>(i)));
  }
  // Scalars broadcast as they are.
  if (type.getRank() == 0) return value;
  return arrange(value, order, shape);
}

Value ExpertRegion::gather(Value value, const DimRoles& roles) {
  Location loc = value.getLoc();
  RankedTensorType type = tensorType(value);
  const int64_t expert = dimOf(roles, kExpertDim);
  Ints order = {expert}, shape = {type.getDimSize(expert)};
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (dim == expert) continue;
    order.push_back(dim);
    if (roles[dim] == kFeatureDim) shape.push_back(type.getDimSize(dim));
  }
  Value table = arrange(value, order, shape);
  return made(ir::GatherOp::create(builder_, loc, table, choice_, 0, /*first=*/Value()));
}

Value ExpertRegion::pickNumbers(Value value, const DimRoles& roles) {
  Location loc = value.getLoc();
  RankedTensorType type = tensorType(value);
  Ints order, shape(choices_.rows);
  for (int row = 0; row < rowRank_; ++row) {
    const int64_t dim = dimOf(roles, row);
    // What is not there for each row has no place of its own.
    if (dim < 0 || type.getDimSize(dim) != choices_.rows[row]) return {};
    order.push_back(dim);
  }
  order.push_back(dimOf(roles, kExpertDim));
  shape.push_back(choices_.experts);
  for (auto [i, role] : llvm::enumerate(roles)) {
    if (role == kFeatureDim) order.push_back(static_cast<int64_t>(i));
  }
  Value picked = made(ir::GatherOp::create(builder_, loc, arrange(value, order, shape), choice_,
                                           rowRank_, /*first=*/Value(), /*rows=*/0,
                                           /*batch_dims=*/rowRank_));
  return withFeatures(loc, picked, Ints(type.getRank() - rowRank_ - 1, 1));
}

Value ExpertRegion::convertOp(ir::TransposeOp op, const DimRoles& roles) {
  DimRoles before(roles.size());
  for (auto [i, dim] : llvm::enumerate(op.getPermutation())) before[dim] = roles[i];
  Value input = convert(op.getInput(), before);
  if (!input) return {};
  // Features in the result's order.
  Ints permutation;
  for (int64_t dim = 0; dim <= rowRank_; ++dim) permutation.push_back(dim);
  for (int64_t dim : op.getPermutation()) {
    if (before[dim] != kFeatureDim) continue;
    const auto features = llvm::count(llvm::ArrayRef(before).take_front(dim), kFeatureDim);
    permutation.push_back(rowRank_ + 1 + features);
  }
  return transpose(op.getLoc(), input, permutation);
}

Value ExpertRegion::convertOp(ir::ReshapeOp op, const DimRoles& roles) {
  llvm::ArrayRef<int64_t> shape = op.getType().getShape();
  const Ints features = featureSizes(shape, roles);
  if (auto before = rolesBefore(op, roles)) {
    Value input = convert(op.getInput(), *before);
    return input ? withFeatures(op.getLoc(), input, features) : Value();
  }
  // Experts are the first part of a layer's columns.
  auto linear = op.getInput().getDefiningOp<ir::LinearOp>();
  const int64_t expert = dimOf(roles, kExpertDim);
  llvm::ArrayRef<int64_t> columns = linear ? linear.getType().getShape() : shape;
  if (!linear ||
      ir::elementCount(shape.take_front(expert)) != ir::elementCount(columns.drop_back()) ||
      ir::elementCount(featureSizes(shape.take_front(expert),
                                    DimRoles(roles.begin(), roles.begin() + expert))) != 1) {
    return {};
  }
  DimRoles rows(roles.begin(), roles.begin() + expert);
  auto before = movedRoles(shape.take_front(expert), rows, columns.drop_back());
  if (!before) return {};
  Value result = convertColumns(linear, *before, ir::elementCount(shape.drop_front(expert + 1)));
  return result ? withFeatures(op.getLoc(), result, features) : Value();
}

Value ExpertRegion::convertOp(ir::BroadcastOp op, const DimRoles& roles) {
  const int64_t rank = rankOf(op.getInput());
  Value input = convert(op.getInput(), alignedRoles(roles, rank));
  if (!input || rank == 0) return {};
  // Rows and choices may stay 1, features not.
  const Ints features = featureSizes(op.getType().getShape(), roles);
  Ints of(features.size() - featuresOf(input).size(), 1);
  llvm::append_range(of, featuresOf(input));
  input = withFeatures(op.getLoc(), input, of);
  if (llvm::ArrayRef(of) == llvm::ArrayRef(features)) return input;
  Ints shape(shapeOf(input).take_front(rowRank_ + 1));
  llvm::append_range(shape, features);
  return made(ir::BroadcastOp::create(builder_, op.getLoc(), op.getType().clone(shape), input));
}

Value ExpertRegion::convertOp(ir::SliceOp op, const DimRoles& roles) {
  RankedTensorType type = tensorType(op.getInput());
  Ints starts(rowRank_ + 1, 0), limits, strides(rowRank_ + 1, 1);
  for (auto [i, role] : llvm::enumerate(roles)) {
    if (role == kFeatureDim) {
      starts.push_back(op.getStarts()[i]);
      limits.push_back(op.getLimits()[i]);
      strides.push_back(op.getStrides()[i]);
    } else if (op.getType().getDimSize(i) != type.getDimSize(i)) {
      return {};
    }
  }
  Value input = convert(op.getInput(), roles);
  if (!input) return {};
  // Where all is taken apart by columns, weights can be.
  const int64_t last = static_cast<int64_t>(roles.size()) - 1;
  bool isOfColumns = roles.back() == kFeatureDim && isOfProducts(input);
  for (mlir::Operation* user : op.getInput().getUsers()) {
    auto other = llvm::dyn_cast<ir::SliceOp>(user);
    isOfColumns &= other && other.getStrides()[last] == 1;
    for (int64_t dim = 0; dim < last && isOfColumns; ++dim) {
      isOfColumns = other.getType().getDimSize(dim) == type.getDimSize(dim);
    }
  }
  if (isOfColumns) return sliceColumns(input, starts.back(), limits.back());
  Ints all(shapeOf(input).take_front(rowRank_ + 1));
  llvm::append_range(all, limits);
  return slice(op.getLoc(), input, starts, all, strides);
}

// Each value once: some are used twice, again and again.
bool ExpertRegion::isOfProducts(Value value) {
  mlir::Operation* op = value.getDefiningOp();
  if (!op || rankOf(value) < 2) return false;
  if (auto known = ofProducts_.find(value); known != ofProducts_.end()) return known->second;
  bool result = llvm::isa<ir::ExpertLinearOp, ir::GatherOp>(op) && llvm::is_contained(made_, op);
  if (op->hasTrait<ir::Pointwise>() && llvm::is_contained(made_, op)) {
    const int64_t columns = shapeOf(value).back();
    result = llvm::all_of(op->getOperands(), [&](Value operand) {
      llvm::ArrayRef<int64_t> shape = shapeOf(operand);
      return shape.empty() || shape.back() == 1 ||
             (shape.back() == columns && isOfProducts(operand));
    });
  }
  ofProducts_[value] = result;
  return result;
}

Value ExpertRegion::sliceColumns(Value value, int64_t from, int64_t to) {
  RankedTensorType type = tensorType(value);
  auto cut = [&](Value of, int64_t dim) {
    llvm::ArrayRef<int64_t> shape = shapeOf(of);
    Ints starts(shape.size(), 0), limits(shape), strides(shape.size(), 1);
    starts[dim] = from;
    limits[dim] = to;
    return slice(of.getLoc(), of, starts, limits, strides);
  };
  if (type.getRank() == 0 || type.getShape().back() == 1) return value;
  mlir::Operation* op = value.getDefiningOp();
  if (auto known = sliced_.find({op, from}); known != sliced_.end()) return known->second;
  Value& result = sliced_[{op, from}];
  if (auto gathered = llvm::dyn_cast<ir::GatherOp>(op)) {
    Value table = cut(gathered.getInput(), rankOf(gathered.getInput()) - 1);
    return result = made(ir::GatherOp::create(builder_, op->getLoc(), table, gathered.getIndices(),
                                              0, /*first=*/Value()));
  }
  if (auto linear = llvm::dyn_cast<ir::ExpertLinearOp>(op)) {
    Value weight = cut(linear.getWeight(), linear.getTransposeWeight() ? 1 : 2);
    return result = made(ir::ExpertLinearOp::create(builder_, op->getLoc(), linear.getInput(),
                                                    weight, linear.getChoice(), /*first=*/Value(),
                                                    linear.getTransposeWeight()));
  }
  mlir::IRMapping operands;
  for (Value operand : op->getOperands()) operands.map(operand, sliceColumns(operand, from, to));
  mlir::Operation* copy = builder_.clone(*op, operands);
  Ints shape(type.getShape());
  shape.back() = to - from;
  copy->getResult(0).setType(type.clone(shape));
  return result = made(copy);
}

Value ExpertRegion::convertPointwise(mlir::Operation* op, const DimRoles& roles) {
  mlir::IRMapping operands;
  const auto features = llvm::count(roles, kFeatureDim);
  Ints shape(rowRank_ + 1 + features, 1);
  for (Value operand : op->getOperands()) {
    Value of = convert(operand, alignedRoles(roles, rankOf(operand)));
    if (!of) return {};
    if (rankOf(of) > 0) {
      // Aligned at the last feature.
      Ints all(features - static_cast<int64_t>(featuresOf(of).size()), 1);
      llvm::append_range(all, featuresOf(of));
      of = withFeatures(op->getLoc(), of, all);
      for (auto [size, given] : llvm::zip_equal(shape, shapeOf(of))) {
        if (size == 1) size = given;
      }
    }
    operands.map(operand, of);
  }
  if (op->hasTrait<mlir::OpTrait::SameOperandsAndResultType>()) {
    for (Value operand : op->getOperands()) {
      Value of = operands.lookup(operand);
      if (shapeOf(of) == llvm::ArrayRef<int64_t>(shape)) continue;
      operands.map(operand, made(ir::BroadcastOp::create(builder_, op->getLoc(),
                                                         tensorType(of).clone(shape), of)));
    }
  }
  mlir::Operation* copy = builder_.clone(*op, operands);
  copy->getResult(0).setType(tensorType(op->getResult(0)).clone(shape));
  return made(copy);
}

Value ExpertRegion::multiply(Location loc, Value rows, Value weight, bool transposed) {
  // The same rows for all choices are not repeated.
  Ints shape(shapeOf(rows));
  const int64_t depth = shape.back();
  for (auto [row, size] : llvm::enumerate(choices_.rows)) {
    if (shape[row] != size) return {};
  }
  if (shape[rowRank_] == 1 && choices_.count != 1) shape.erase(shape.begin() + rowRank_);
  if (tensorType(weight).getDimSize(transposed ? 2 : 1) != depth) return {};
  return made(ir::ExpertLinearOp::create(builder_, loc, reshape(loc, rows, shape), weight, choice_,
                                         /*first=*/Value(), transposed));
}

Value ExpertRegion::convertColumns(ir::LinearOp op, const DimRoles& rows, int64_t columns) {
  Location loc = op.getLoc();
  DimRoles roles(rows);
  roles.push_back(kFeatureDim);
  Value input = convert(op.getInput(), roles);
  if (!input || tensorType(input).getDimSize(rowRank_) != 1) return {};
  const int64_t experts = choices_.experts, depth = ir::elementCount(featuresOf(input));
  input = withFeatures(loc, input, Ints{depth});
  if (shapeOf(op.getInput()).back() != depth) return {};
  Value weight = op.getWeight();
  if (op.getTransposeWeight()) {
    weight = reshape(loc, weight, Ints{experts, columns, depth});
  } else {
    weight = transpose(loc, reshape(loc, weight, Ints{depth, experts, columns}), {1, 0, 2});
  }
  Value result = multiply(loc, input, weight, op.getTransposeWeight());
  if (!result || !op.getBias()) return result;
  Value bias = reshape(loc, op.getBias(), Ints{experts, columns});
  bias = made(ir::GatherOp::create(builder_, loc, bias, choice_, 0, /*first=*/Value()));
  return made(ir::AddOp::create(builder_, loc, result, bias));
}

Value ExpertRegion::convertOp(ir::LinearOp op, const DimRoles& roles) {
  if (roles.back() != kFeatureDim) return {};
  // The same layer for all experts.
  Value input = convert(op.getInput(), roles);
  if (!input) return {};
  return made(ir::LinearOp::create(builder_, op.getLoc(), input, op.getWeight(), op.getBias(),
                                   op.getTransposeWeight()));
}

// The same norm of each row, for all experts.
Value ExpertRegion::convertOp(ir::RmsNormOp op, const DimRoles& roles) {
  if (roles.back() != kFeatureDim) return {};
  Value input = convert(op.getInput(), roles);
  if (!input) return {};
  return made(ir::RmsNormOp::create(builder_, op.getLoc(), mlir::ValueRange{input, op.getWeight()},
                                    op->getAttrs()));
}

Value ExpertRegion::convertOp(ir::MatmulOp op, const DimRoles& roles) {
  // A matrix for each expert, times rows.
  const int64_t m = static_cast<int64_t>(op.getRowDims()), n = op.getColumnDims(),
                sum = op.getSumDims();
  const int64_t batch = op.getType().getRank() - m - n;
  if (batch != 1 || roles[0] != kExpertDim) return {};
  const llvm::ArrayRef<int> ofRows = llvm::ArrayRef(roles).slice(1, m),
                            ofColumns = llvm::ArrayRef(roles).take_back(n);
  ir::MatmulDims dims = *ir::MatmulDims::of(op);
  auto isRow = [](int role) { return role >= 0; };
  const bool rowsAreLeft = llvm::any_of(ofRows, isRow);
  if (rowsAreLeft == llvm::any_of(ofColumns, isRow)) return {};
  // All of them are rows.
  if (ir::elementCount(featureSizes(rowsAreLeft ? dims.rows : dims.columns,
                                    DimRoles(rowsAreLeft ? ofRows : ofColumns))) != 1) {
    return {};
  }
  Value rows = rowsAreLeft ? op.getLhs() : op.getRhs();
  Value weight = rowsAreLeft ? op.getRhs() : op.getLhs();
  // Sums come behind rows in what is not transposed on the left, and is transposed on the right.
  const bool sumIsLast = rowsAreLeft ? !op.getTransposeLhs() : op.getTransposeRhs();
  DimRoles before = {kExpertDim};
  auto addSum = [&] { before.append(sum, kFeatureDim); };
  if (!sumIsLast) addSum();
  llvm::append_range(before, rowsAreLeft ? ofRows : ofColumns);
  if (sumIsLast) addSum();
  Value input = convert(rows, before);
  if (!input) return {};
  const int64_t depth = ir::elementCount(dims.sum);
  llvm::ArrayRef<int64_t> columns = rowsAreLeft ? dims.columns : dims.rows;
  const bool transposed = rowsAreLeft ? op.getTransposeRhs() : !op.getTransposeLhs();
  Ints stored = {choices_.experts, depth, ir::elementCount(columns)};
  if (transposed) std::swap(stored[1], stored[2]);
  Location loc = op.getLoc();
  Value result = multiply(loc, withFeatures(loc, input, Ints{depth}), reshape(loc, weight, stored),
                          transposed);
  return result ? withFeatures(loc, result, featureSizes(op.getType().getShape(), roles)) : Value();
}

}  // namespace oriel
