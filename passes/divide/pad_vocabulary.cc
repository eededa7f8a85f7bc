#include <limits>
#include <map>
#include <optional>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/divide/output_layer.h"
#include "passes/divide/passes.h"
#include "passes/strategize/padding.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/strategy_pass.h"

namespace oriel {

#define GEN_PASS_DEF_PADVOCABULARY
#include "passes/divide/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::OpOperand;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType withDim(RankedTensorType type, int64_t dim, int64_t size) {
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

class VocabularyPadder {
 public:
  VocabularyPadder(mlir::func::FuncOp main, const Strategy& strategy, llvm::StringRef output)
      : main_(main), strategy_(strategy), output_(output.str()), values_(readValues(main)) {}

  void run() {
    findTables();
    findLayers();
    if (padded_.empty()) return;
    for (auto& [argument, padding] : padded_) pad(argument, padding);
    for (ir::GatherOp gather : gathers_) checkIndices(gather);
    for (Layer& layer : layers_) padLogits(layer);
    main_.setFunctionType(mlir::FunctionType::get(main_.getContext(),
                                                  main_.getBody().front().getArgumentTypes(),
                                                  main_.getFunctionType().getResults()));
  }

 private:
  struct Padding {
    int64_t dim;
    int64_t size;    // in files
    int64_t padded;  // over the ranks
  };

  // An output layer, and what is between it and each loss.
  struct Layer {
    ir::LinearOp linear;
    std::vector<llvm::SmallVector<Operation*>> behind;
  };

  mlir::Block& block() { return main_.getBody().front(); }

  // What this dimension of a parameter needs; nothing where it divides, or where the strategy says
  // how to split the parameter.
  std::optional<Padding> paddingOf(Value value, int64_t dim) const {
    auto known = padded_.find(value);
    if (known != padded_.end()) {
      return known->second.dim == dim ? std::optional(known->second) : std::nullopt;
    }
    auto found = values_.parameters.find(value);
    if (found == values_.parameters.end() || partOf(found->second)) return std::nullopt;
    std::string name = ir::ParameterOp(found->second).getOnnxName().str();
    int64_t ranks = strategy_.commonTensorParallel(moduleOf(strategy_, name));
    int64_t size = ir::tensorType(value).getDimSize(dim);
    if (size % ranks == 0 || shardingOf(strategy_, name)) return std::nullopt;
    return Padding{dim, size, (size / ranks + 1) * ranks};
  }

  void findTables() {
    for (auto gather : main_.getOps<ir::GatherOp>()) {
      if (gather.getDim() != 0 || !values_.fromInputs.contains(gather.getIndices())) continue;
      // Rows are vectors. Weights to choose one from for each sample are split as other layers'.
      if (ir::rankOf(gather.getInput()) != 2) continue;
      std::optional<Padding> padding = paddingOf(gather.getInput(), 0);
      if (!padding) continue;
      padded_.insert({gather.getInput(), *padding});
      gathers_.push_back(gather);
    }
  }

  void findLayers() {
    for (OutputLayer& found : outputLayersOf(main_, output_)) add(std::move(found));
  }

  void add(OutputLayer found) {
    ir::LinearOp linear = found.linear;
    auto known = llvm::find_if(layers_, [&](const Layer& layer) { return layer.linear == linear; });
    if (known != layers_.end()) {
      if (!llvm::is_contained(known->behind, found.behind)) {
        known->behind.push_back(std::move(found.behind));
      }
      return;
    }
    std::optional<Padding> weight =
        paddingOf(linear.getWeight(), linear.getTransposeWeight() ? 0 : 1);
    if (!weight) return;
    if (Value bias = linear.getBias()) {
      std::optional<Padding> padding = paddingOf(bias, 0);
      if (!padding || padding->padded != weight->padded) return;
      padded_.insert({bias, *padding});
    }
    padded_.insert({linear.getWeight(), *weight});
    layers_.push_back({linear, {std::move(found.behind)}});
  }

  bool isLayer(Operation* op) const {
    return llvm::any_of(layers_, [&](const Layer& layer) { return layer.linear == op; });
  }

  bool usesPadding(OpOperand& use) {
    if (isLayer(use.getOwner())) return use.getOperandNumber() > 0;
    return use.getOperandNumber() == 0 && llvm::is_contained(gathers_, use.getOwner());
  }

  void pad(Value argument, const Padding& padding) {
    ir::ParameterOp parameter = values_.parameters[argument];
    parameter.emitWarning("the vocabulary of ")
        << padding.size << " of \"" << parameter.getOnnxName() << "\" is padded to "
        << padding.padded << " for tensor parallelism";
    padParameter(parameter, padding.dim, padding.padded);
    argument.setType(parameter.getType());
    if (llvm::all_of(argument.getUses(), [&](OpOperand& use) { return usesPadding(use); })) return;
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&block());
    Value kept =
        ir::sliceDim(builder, parameter.getLoc(), argument, padding.dim, /*start=*/0, padding.size);
    argument.replaceUsesWithIf(kept, [&](OpOperand& use) {
      return use.getOwner() != kept.getDefiningOp() && !usesPadding(use);
    });
  }

  // By a lookup in the true range, whose result is the index, a negative one counted from its end.
  void checkIndices(ir::GatherOp gather) {
    int64_t size = padded_.find(gather.getInput())->second.size;
    Value& checked = checked_[{gather.getIndices(), size}];
    if (!checked) {
      mlir::OpBuilder builder(gather);
      mlir::Location loc = gather.getLoc();
      auto range = ir::tensorType(gather.getIndices()).clone(llvm::ArrayRef<int64_t>{size});
      Value iota = ir::IotaOp::create(builder, loc, range, 0);
      checked = ir::GatherOp::create(builder, loc, iota, gather.getIndices(), 0, /*first=*/Value());
    }
    gather.getIndicesMutable().assign(checked);
  }

  // The values with -inf behind the true classes, the last dimension.
  static Value cutOff(mlir::OpBuilder& builder, mlir::Location loc, Value values, int64_t size) {
    auto index = RankedTensorType::get({ir::shapeOf(values).back()}, builder.getI64Type());
    Value iota = ir::IotaOp::create(builder, loc, index, 0);
    Value first = ir::ConstantOp::create(
        builder, loc, mlir::DenseElementsAttr::get(index.clone(llvm::ArrayRef<int64_t>{}), size));
    Value beyond = ir::GreaterEqualOp::create(builder, loc, iota, first);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Value minusInfinity = ir::scalarConstant(builder, loc, -kInfinity, values);
    return ir::SelectOp::create(builder, loc, beyond, minusInfinity, values);
  }

  static Value wideBias(mlir::OpBuilder& builder, ir::LinearOp linear, const Padding& padding) {
    Value bias = linear.getBias();
    if (!bias) {
      auto row = ir::tensorType(linear.getWeight()).clone(llvm::ArrayRef<int64_t>{padding.padded});
      bias = ir::ConstantOp::create(
          builder, linear.getLoc(),
          mlir::DenseElementsAttr::get(row, builder.getZeroAttr(row.getElementType())));
    }
    return cutOff(builder, linear.getLoc(), bias, padding.size);
  }

  // The same op on more classes.
  static Value widened(mlir::OpBuilder& builder, Operation* op, Value wide) {
    RankedTensorType type = ir::tensorType(op->getResult(0));
    const int64_t padded = ir::shapeOf(wide).back();
    type = withDim(type, type.getRank() - 1, padded);
    if (llvm::isa<ir::ReshapeOp>(op)) return ir::reshapeTo(builder, op->getLoc(), wide, type);
    if (auto slice = llvm::dyn_cast<ir::SliceOp>(op)) {
      llvm::SmallVector<int64_t> limits(slice.getLimits());
      limits.back() = padded;
      return ir::SliceOp::create(builder, op->getLoc(), wide, slice.getStarts(), limits,
                                 slice.getStrides());
    }
    mlir::IRMapping mapping;
    mapping.map(classesOf(op)->get(), wide);
    Operation* copy = builder.clone(*op, mapping);
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }

  void padLogits(Layer& layer) {
    ir::LinearOp linear = layer.linear;
    Padding padding = padded_.find(linear.getWeight())->second;
    mlir::OpBuilder builder(linear);
    // A bias costs nothing; what else stands between might make something else of -inf.
    const bool onlyMove = llvm::all_of(layer.behind, [](llvm::ArrayRef<Operation*> behind) {
      return llvm::all_of(behind, llvm::IsaPred<ir::ReshapeOp, ir::SliceOp>);
    });
    Value bias = onlyMove ? wideBias(builder, linear, padding) : linear.getBias();
    Value wide = ir::LinearOp::create(builder, linear.getLoc(), linear.getInput(),
                                      linear.getWeight(), bias, linear.getTransposeWeight());
    llvm::MapVector<Operation*, Value> wides;
    wides.insert({linear, wide});
    llvm::SmallPtrSet<Operation*, 4> ends;  // that a loss reads
    for (llvm::ArrayRef<Operation*> behind : layer.behind) {
      Operation* last = linear;
      for (Operation* op : behind) {
        Value& own = wides[op];
        builder.setInsertionPoint(op);
        if (!own) own = widened(builder, op, wides.lookup(last));
        last = op;
      }
      ends.insert(last);
    }
    // The old results are slices of the wide ones.
    for (auto [old, value] : llvm::reverse(wides)) {
      builder.setInsertionPointAfter(old);
      if (!old->use_empty()) {
        if (!onlyMove && ends.contains(old)) {
          value = cutOff(builder, old->getLoc(), value, padding.size);
        }
        const int64_t last = ir::rankOf(value) - 1;
        old->getResult(0).replaceAllUsesWith(
            ir::sliceDim(builder, old->getLoc(), value, last, /*start=*/0, padding.size));
      }
      old->erase();
    }
  }

  mlir::func::FuncOp main_;
  const Strategy& strategy_;
  std::string output_;
  SegmentValues values_;
  llvm::MapVector<Value, Padding> padded_;
  llvm::SmallVector<ir::GatherOp> gathers_;
  std::vector<Layer> layers_;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> checked_;
};

struct PadVocabulary : StrategyPass<impl::PadVocabularyBase<PadVocabulary>> {
  using StrategyPass::StrategyPass;
  PadVocabulary(Strategy strategy, std::string name) : StrategyPass(std::move(strategy)) {
    output = std::move(name);
  }

  mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override {
    if (mlir::func::FuncOp main = ir::mainOfOneBlock(module)) {
      VocabularyPadder(main, strategy, output).run();
    }
    return mlir::success();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createPadVocabulary(Strategy strategy, std::string output) {
  return std::make_unique<PadVocabulary>(std::move(strategy), std::move(output));
}

}  // namespace oriel
