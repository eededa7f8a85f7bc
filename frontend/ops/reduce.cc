// Reductions. Until a version (13 for ReduceSum, 18 for the others) the axes are an attribute,
// from then on an operand.
#include <limits>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

enum class AxesFrom { kAttribute, kOperand };

struct Reduction {
  Value input;
  Ints dims;
  bool keepDims = true;
  bool isNoop = false;  // no axes given, and noop_with_empty_axes
};

template <AxesFrom kAxes>
FailureOr<Reduction> readReduction(NodeImporter& n) {
  Reduction reduction;
  reduction.input = n.operand(0);
  if (!reduction.input) {
    return failure();
  }
  int64_t rank = rankOf(reduction.input);
  FailureOr<Ints> axes = Ints();
  if (kAxes == AxesFrom::kAttribute) {
    axes = n.attrInts("axes").value_or(Ints());
  } else if (n.hasOperand(1)) {
    axes = n.constantInts(1);
  }
  if (failed(axes) || failed(axes = n.normalizeAxes(*axes, rank))) {
    return failure();
  }
  reduction.isNoop = axes->empty() && n.attrInt("noop_with_empty_axes", 0) != 0;
  reduction.dims = axes->empty() ? llvm::to_vector(llvm::seq<int64_t>(0, rank)) : *axes;
  llvm::sort(reduction.dims);
  reduction.keepDims = n.attrInt("keepdims", 1) != 0;
  return reduction;
}

Value identity(NodeImporter&, Value x) { return x; }
Value absolute(NodeImporter& n, Value x) { return n.createLike<ir::AbsOp>(x); }
Value square(NodeImporter& n, Value x) { return n.create<ir::MulOp>(x, x); }
Value squareRoot(NodeImporter& n, Value x) { return n.createLike<ir::SqrtOp>(x); }
Value logarithm(NodeImporter& n, Value x) { return n.createLike<ir::LogOp>(x); }

using Step = Value (*)(NodeImporter&, Value);

// after(reduce(before(x)))
template <typename OpTy, AxesFrom kAxes, Step kBefore = identity, Step kAfter = identity>
LogicalResult importReduce(NodeImporter& n) {
  auto reduction = readReduction<kAxes>(n);
  if (failed(reduction)) {
    return failure();
  }
  Value x = kBefore(n, reduction->input);
  if (!reduction->isNoop && !reduction->dims.empty()) {
    x = n.reduce<OpTy>(x, reduction->dims, reduction->keepDims);
  }
  return n.replace(kAfter(n, x));
}

// max + log Σ exp(x - max); an infinite maximum, whose difference to itself is NaN, stays in.
template <AxesFrom kAxes>
LogicalResult importReduceLogSumExp(NodeImporter& n) {
  auto reduction = readReduction<kAxes>(n);
  if (failed(reduction)) {
    return failure();
  }
  Value x = reduction->input;
  if (reduction->isNoop || reduction->dims.empty()) {
    return n.replace(x);
  }
  if (!llvm::isa<mlir::FloatType>(elementOf(x))) {
    return n.error() << "takes floats, not " << x.getType();
  }
  Value max = n.reduce<ir::ReduceMaxOp>(x, reduction->dims, true);
  Value isFinite = n.create<ir::LessOp>(n.createLike<ir::AbsOp>(max),
                                        n.scalarLike(max, std::numeric_limits<double>::infinity()));
  max = n.create<ir::SelectOp>(isFinite, max, n.scalarLike(max, 0));
  Value sum = n.reduce<ir::ReduceSumOp>(n.createLike<ir::ExpOp>(n.create<ir::SubOp>(x, max)),
                                        reduction->dims, true);
  Value result = n.create<ir::AddOp>(max, n.createLike<ir::LogOp>(sum));
  if (result && !reduction->keepDims) {
    Ints shape;
    for (auto [dim, size] : llvm::enumerate(shapeOf(result))) {
      if (!llvm::is_contained(reduction->dims, static_cast<int64_t>(dim))) {
        shape.push_back(size);
      }
    }
    result = n.reshape(result, shape);
  }
  return n.replace(result);
}

// Booleans count as 0 and 1.
template <typename OpTy, AxesFrom kAxes>
LogicalResult importExtreme(NodeImporter& n) {
  auto reduction = readReduction<kAxes>(n);
  if (failed(reduction)) {
    return failure();
  }
  Value x = reduction->input;
  mlir::Type element = elementOf(x);
  if (element.isInteger(1)) {
    x = n.cast(x, n.builder().getI32Type());
  }
  if (!reduction->isNoop && !reduction->dims.empty()) {
    x = n.reduce<OpTy>(x, reduction->dims, reduction->keepDims);
  }
  bool isBool = element.isInteger(1);
  return n.replace(isBool ? n.create<ir::GreaterOp>(x, n.scalarLike(x, 0)) : x);
}

template <typename OpTy, Step kBefore = identity, Step kAfter = identity>
void addReduction(OpRegistry& registry, llvm::StringRef name) {
  registry.add(name, 13, importReduce<OpTy, AxesFrom::kAttribute, kBefore, kAfter>);
  registry.add(name, 18, importReduce<OpTy, AxesFrom::kOperand, kBefore, kAfter>);
}

}  // namespace

void registerReduceOps(OpRegistry& registry) {
  registry.add("ReduceSum", 13, importReduce<ir::ReduceSumOp, AxesFrom::kOperand>);
  addReduction<ir::ReduceMeanOp>(registry, "ReduceMean");
  registry.add("ReduceMax", 13, importExtreme<ir::ReduceMaxOp, AxesFrom::kAttribute>);
  registry.add("ReduceMax", 18, importExtreme<ir::ReduceMaxOp, AxesFrom::kOperand>);
  registry.add("ReduceMin", 13, importExtreme<ir::ReduceMinOp, AxesFrom::kAttribute>);
  registry.add("ReduceMin", 18, importExtreme<ir::ReduceMinOp, AxesFrom::kOperand>);
  addReduction<ir::ReduceProdOp>(registry, "ReduceProd");
  addReduction<ir::ReduceSumOp, absolute>(registry, "ReduceL1");
  addReduction<ir::ReduceSumOp, square, squareRoot>(registry, "ReduceL2");
  addReduction<ir::ReduceSumOp, square>(registry, "ReduceSumSquare");
  addReduction<ir::ReduceSumOp, identity, logarithm>(registry, "ReduceLogSum");
  registry.add("ReduceLogSumExp", 13, importReduceLogSumExp<AxesFrom::kAttribute>);
  registry.add("ReduceLogSumExp", 18, importReduceLogSumExp<AxesFrom::kOperand>);
}

}  // namespace oriel
