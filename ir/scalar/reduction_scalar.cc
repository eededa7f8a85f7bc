// Reductions of floats over dimensions (ir/oriel/shape.td), as their host kernels do them
// (kernels/reduce): sums and means are accumulated in f64; NaN enters a maximum and stays.
#include <limits>

#include "ir/oriel/oriel.h"
#include "ir/scalar/build.h"
#include "ir/scalar/models.h"
#include "ir/scalar/scalar.h"
#include "mlir/IR/TypeUtilities.h"

namespace oriel::ir {

namespace {

using mlir::Location;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::Type;
using mlir::Value;
namespace arith = mlir::arith;

Value floatNumber(const At& at, Type type, double value) {
  return at.make<arith::ConstantOp>(at.builder.getFloatAttr(type, value));
}

template <typename Op, bool mean>
struct SumModel : RowReductionOpInterface::ExternalModel<SumModel<Op, mean>, Op> {
  llvm::ArrayRef<int64_t> getReducedDims(Operation* op) const {
    return llvm::cast<Op>(op).getDims();
  }
  Value buildStart(Operation*, OpBuilder& builder, Location loc, Type element) const {
    const At at{builder, loc};
    return llvm::isa<mlir::FloatType>(element) ? floatNumber(at, builder.getF64Type(), 0) : Value();
  }
  Value buildCombined(Operation*, OpBuilder& builder, Location loc, Value accumulator,
                      Value element) const {
    const At at{builder, loc};
    if (!element.getType().isF64()) {
      element = at.make<arith::ExtFOp>(accumulator.getType(), element);
    }
    return at.add(accumulator, element);
  }
  Value buildFinished(Operation* op, OpBuilder& builder, Location loc, Value accumulator,
                      int64_t count) const {
    const At at{builder, loc};
    if (mean) {
      accumulator = at.div(accumulator, at.number(accumulator.getType(), count));
    }
    Type element = computeType(mlir::getElementTypeOrSelf(op->getResult(0).getType()));
    return element.isF64() ? accumulator : at.make<arith::TruncFOp>(element, accumulator);
  }
};

template <typename Op, bool largest>
struct ExtremeModel : RowReductionOpInterface::ExternalModel<ExtremeModel<Op, largest>, Op> {
  llvm::ArrayRef<int64_t> getReducedDims(Operation* op) const {
    return llvm::cast<Op>(op).getDims();
  }
  Value buildStart(Operation*, OpBuilder& builder, Location loc, Type element) const {
    const double infinity = std::numeric_limits<double>::infinity();
    if (!llvm::isa<mlir::FloatType>(element)) return {};
    return floatNumber({builder, loc}, element, largest ? -infinity : infinity);
  }
  Value buildCombined(Operation*, OpBuilder& builder, Location loc, Value accumulator,
                      Value element) const {
    const At at{builder, loc};
    const auto predicate = largest ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OLE;
    Value first = at.make<arith::CmpFOp>(predicate, accumulator, element);
    Value keep = at.make<arith::OrIOp>(first, at.isNan(accumulator));
    return at.select(keep, accumulator, element);
  }
  Value buildFinished(Operation*, OpBuilder&, Location, Value accumulator, int64_t) const {
    return accumulator;
  }
};

}  // namespace

void attachReductionModels(mlir::MLIRContext* context) {
  ReduceSumOp::attachInterface<SumModel<ReduceSumOp, false>>(*context);
  ReduceMeanOp::attachInterface<SumModel<ReduceMeanOp, true>>(*context);
  ReduceMaxOp::attachInterface<ExtremeModel<ReduceMaxOp, true>>(*context);
  ReduceMinOp::attachInterface<ExtremeModel<ReduceMinOp, false>>(*context);
}

}  // namespace oriel::ir
