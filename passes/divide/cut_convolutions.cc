#include <map>
#include <optional>
#include <utility>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/divide/passes.h"
#include "passes/divide/taken_columns.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/strategy_pass.h"

namespace oriel {

#define GEN_PASS_DEF_CUTCONVOLUTIONS
#include "passes/divide/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

// Of `[b, c, ..]` and `[o, c/group, ..]`.
constexpr int64_t kChannels = 1, kOutputs = 0;

// The op on an operand that has so many columns; `dim` is where its result has them.
Value withColumns(mlir::OpBuilder& builder, Operation* op, mlir::OpOperand& operand, Value columns,
                  int64_t dim, int64_t count) {
  mlir::IRMapping operands;
  operands.map(operand.get(), columns);
  Operation* copy = builder.clone(*op, operands);
  const RankedTensorType type = ir::tensorType(copy->getResult(0));
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape[dim] = count;
  copy->getResult(0).setType(type.clone(shape));
  return copy->getResult(0);
}

// These columns of a value: what a concatenation is joined of, or a slice takes, if that is all of
// them.
Value columnsOf(mlir::OpBuilder& builder, Value value, int64_t dim, Columns columns) {
  const RankedTensorType type = ir::tensorType(value);
  if (columns == Columns(0, type.getDimSize(dim))) return value;
  const mlir::Location loc = value.getLoc();
  if (auto concat = value.getDefiningOp<ir::ConcatOp>();
      concat && static_cast<int64_t>(concat.getDim()) == dim) {
    llvm::SmallVector<Value> operands = operandsOf(concat, columns);
    if (operands.size() == 1) return operands.front();
    if (!operands.empty()) return ir::ConcatOp::create(builder, loc, operands, dim);
  }
  if (auto transpose = value.getDefiningOp<ir::TransposeOp>()) {
    Value input =
        columnsOf(builder, transpose.getInput(), transpose.getPermutation()[dim], columns);
    return ir::TransposeOp::create(builder, loc, input, transpose.getPermutation());
  }
  if (auto pad = value.getDefiningOp<ir::PadOp>();
      pad && pad.getLow()[dim] == 0 && pad.getHigh()[dim] == 0 && pad.getInterior()[dim] == 0) {
    Value input = columnsOf(builder, pad.getInput(), dim, columns);
    return withColumns(builder, pad, pad.getInputMutable(), input, dim,
                       columns.second - columns.first);
  }
  llvm::SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()),
      strides(type.getRank(), 1);
  if (auto slice = value.getDefiningOp<ir::SliceOp>(); slice && slice.getStrides()[dim] == 1) {
    value = slice.getInput();
    starts.assign(slice.getStarts().begin(), slice.getStarts().end());
    limits.assign(slice.getLimits().begin(), slice.getLimits().end());
    strides.assign(slice.getStrides().begin(), slice.getStrides().end());
  }
  limits[dim] = starts[dim] + columns.second;
  starts[dim] += columns.first;
  return ir::SliceOp::create(builder, loc, value, starts, limits, strides);
}

class ConvolutionCutter {
 public:
  ConvolutionCutter(mlir::func::FuncOp main, const Strategy& strategy)
      : main_(main), strategy_(strategy), values_(readValues(main)) {}

  void run() {
    for (auto conv : llvm::make_early_inc_range(main_.getOps<ir::ConvOp>())) cut(conv);
  }

 private:
  // An op that makes of each channel of its operand one of its result.
  struct Step {
    Operation* op;
    unsigned operand;
    int64_t dim;  // of the channels of the result
  };

  bool isSplit(Value weight) const {
    auto parameter = values_.parameters.find(weight);
    if (parameter == values_.parameters.end()) return false;
    const std::string name = ir::ParameterOp(parameter->second).getOnnxName().str();
    return !shardingOf(strategy_, name) &&
           strategy_.commonTensorParallel(moduleOf(strategy_, name)) > 1;
  }

  static bool isDepthwise(ir::ConvOp conv) {
    const auto channels = ir::tensorType(conv.getInput()).getDimSize(kChannels);
    return channels > 1 && static_cast<int64_t>(conv.getGroup()) == channels &&
           ir::tensorType(conv.getWeight()).getDimSize(kOutputs) == channels;
  }

  // Whether an operand that broadcasts has the same for all channels, which are the `fromLast`-th
  // dimension from behind: a number, or a mask of positions.
  static bool isForAllChannels(Value operand, int64_t fromLast) {
    const int64_t dim = ir::rankOf(operand) - fromLast;
    return dim < 0 || ir::tensorType(operand).getDimSize(dim) == 1;
  }

  static std::optional<Step> stepOf(mlir::OpOperand& use, int64_t dim) {
    Operation* op = use.getOwner();
    if (op->getNumResults() != 1) return std::nullopt;
    const unsigned operand = use.getOperandNumber();
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(op)) {
      const llvm::ArrayRef<int64_t> permutation = transpose.getPermutation();
      return Step{op, operand, llvm::find(permutation, dim) - permutation.begin()};
    }
    const RankedTensorType type = ir::tensorType(op->getResult(0));
    if (llvm::isa<ir::SliceOp>(op)) {
      const bool isWhole = type.getDimSize(dim) == ir::tensorType(use.get()).getDimSize(dim);
      return isWhole ? std::optional(Step{op, operand, dim}) : std::nullopt;
    }
    if (!op->hasTrait<ir::Pointwise>() || type.getShape() != ir::shapeOf(use.get())) {
      return std::nullopt;
    }
    const bool isOfEach = llvm::all_of(op->getOpOperands(), [&](mlir::OpOperand& other) {
      return &other == &use || isForAllChannels(other.get(), type.getRank() - dim);
    });
    return isOfEach ? std::optional(Step{op, operand, dim}) : std::nullopt;
  }

  // The same of some of the channels.
  static Value stepOn(mlir::OpBuilder& builder, const Step& step, Value channels, int64_t count) {
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(step.op)) {
      return ir::TransposeOp::create(builder, step.op->getLoc(), channels,
                                     transpose.getPermutation());
    }
    if (auto slice = llvm::dyn_cast<ir::SliceOp>(step.op)) {
      llvm::SmallVector<int64_t> limits(slice.getLimits());
      limits[step.dim] = count;
      return ir::SliceOp::create(builder, step.op->getLoc(), channels, slice.getStarts(), limits,
                                 slice.getStrides());
    }
    return withColumns(builder, step.op, step.op->getOpOperand(step.operand), channels, step.dim,
                       count);
  }

  void cut(ir::ConvOp conv) {
    if (!isDepthwise(conv) || !isSplit(conv.getWeight())) return;
    llvm::SmallVector<Step> steps;
    Value end = conv.getResult();
    int64_t dim = kChannels;
    auto taken = findTaken(end, dim);
    while (!taken) {
      const std::optional<Step> step =
          end.hasOneUse() ? stepOf(*end.use_begin(), dim) : std::nullopt;
      if (!step) return;
      steps.push_back(*step);
      end = step->op->getResult(0);
      dim = step->dim;
      taken = findTaken(end, dim);
    }
    const llvm::SmallVector<Columns> pieces = piecesOf(*taken, ir::tensorType(end).getDimSize(dim));
    if (pieces.size() < 2) return;
    mlir::OpBuilder builder(main_.getContext());
    builder.setInsertionPointAfterValue(end);
    std::map<Columns, Value> made;
    for (const Columns& columns : pieces) {
      const int64_t count = columns.second - columns.first;
      Value bias = conv.getBias();
      Value piece = ir::ConvOp::create(
          builder, conv.getLoc(), columnsOf(builder, conv.getInput(), kChannels, columns),
          columnsOf(builder, conv.getWeight(), kOutputs, columns),
          bias ? columnsOf(builder, bias, 0, columns) : bias, conv.getStrides(), conv.getPads(),
          conv.getDilations(), count);
      for (const Step& step : steps) piece = stepOn(builder, step, piece, count);
      made[columns] = piece;
    }
    takeFrom(builder, *taken, made);
    Operation* before = conv.getInput().getDefiningOp();
    eraseUnused(conv);
    // What only joined its channels.
    while (before && mlir::isOpTriviallyDead(before)) {
      Operation* next =
          before->getNumOperands() == 1 ? before->getOperand(0).getDefiningOp() : nullptr;
      before->erase();
      before = next;
    }
  }

  mlir::func::FuncOp main_;
  const Strategy& strategy_;
  SegmentValues values_;
};

struct CutConvolutions : StrategyPass<impl::CutConvolutionsBase<CutConvolutions>> {
  using StrategyPass::StrategyPass;

  mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override {
    if (mlir::func::FuncOp main = ir::mainOfOneBlock(module))
      ConvolutionCutter(main, strategy).run();
    return mlir::success();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createCutConvolutions(Strategy strategy) {
  return std::make_unique<CutConvolutions>(std::move(strategy));
}

}  // namespace oriel
