#include <optional>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/train/isolate.h"
#include "passes/train/passes.h"
#include "passes/train/precision_rules.h"
#include "passes/train/recipe_option.h"

namespace oriel {

#define GEN_PASS_DEF_MIXEDPRECISION
#include "passes/train/passes.h.inc"

namespace {

using namespace mlir;
using ir::Precision;
using ir::ValueKind;
using ir::ValueRole;

// What a tensor of floats comes from.
enum class Source {
  kConstant,
  kWeight,      // a parameter, moved perhaps
  kTable,       // computed, but of no activation: angles of positions, masks
  kActivation,  // an input, or computed of one; a row of a parameter that an input picks
};

bool isFloat(Value value) { return isa<FloatType>(ir::elementOf(value)); }
bool isWide(Value value) { return ir::elementOf(value).isF32(); }

// The constant in another float type; what is finite stays so.
DenseElementsAttr convert(DenseElementsAttr constant, FloatType to) {
  const llvm::fltSemantics& semantics = to.getFloatSemantics();
  return cast<DenseFPElementsAttr>(constant).mapValues(to, [&](const APFloat& value) {
    APFloat converted = value;
    bool lossy;
    converted.convert(semantics, APFloat::rmNearestTiesToEven, &lossy);
    if (converted.isInfinity() && !value.isInfinity()) {
      converted = APFloat::getLargest(semantics, value.isNegative());
    }
    return converted.bitcastToAPInt();
  });
}

// Rewrites @main op by op, in order.
class Narrowing {
 public:
  Narrowing(ModuleOp module, func::FuncOp main, const PrecisionRules& rules)
      : module_(module),
        main_(main),
        rules_(rules),
        block_(main.getBody().front()),
        builder_(main.getContext()),
        narrowType_(BFloat16Type::get(main.getContext())) {}

  LogicalResult run() {
    if (failed(describeArguments())) return failure();
    findPositions();
    for (Operation& op : llvm::make_early_inc_range(block_.without_terminator())) {
      if (failed(visit(&op))) return failure();
    }
    // What the host reads is f32.
    for (OpOperand& result : block_.getTerminator()->getOpOperands()) {
      if (isNarrow(result.get())) result.set(widened(result.get()));
    }
    eraseDeadOps(block_);
    narrowParameters();
    main_.setFunctionType(FunctionType::get(main_.getContext(), block_.getArgumentTypes(),
                                            main_.getFunctionType().getResults()));
    return success();
  }

 private:
  // Values that were f32 and are not any more; what the exporter made narrow stays as it is.
  bool isNarrow(Value value) const { return narrow_.contains(value); }

  LogicalResult describeArguments() {
    const mlir::SymbolTable symbols(module_);
    for (BlockArgument argument : block_.getArguments()) {
      FailureOr<ValueRole> role = ir::argumentRole(main_, argument.getArgNumber());
      if (failed(role)) return failure();
      if (role->kind == ValueKind::kParameter) {
        if (auto parameter = symbols.lookup<ir::ParameterOp>(role->ref)) {
          parameters_[argument] = parameter;
        }
        sources_[argument] = Source::kWeight;
      } else {
        fromInputs_.insert(argument);
        sources_[argument] = Source::kActivation;
      }
    }
    return success();
  }

  // From what makes whole numbers of them back to ops that are narrow or wide by themselves.
  void findPositions() {
    for (Operation& op : llvm::reverse(block_.without_terminator())) {
      const Precision precision = rules_.of(&op);
      const bool depends = precision == Precision::kFollow || precision == Precision::kMove;
      for (OpOperand& operand : op.getOpOperands()) {
        if (isPosition(operand) || (depends && givesPosition(&op) && isFloat(operand.get()))) {
          positions_.insert(operand.get());
        }
      }
    }
  }
  static bool isPosition(OpOperand& operand) {
    auto precise = dyn_cast<ir::PrecisionOpInterface>(operand.getOwner());
    return precise && isFloat(operand.get()) && precise.needsWide(operand.getOperandNumber());
  }
  static bool takesPosition(Operation* op) { return llvm::any_of(op->getOpOperands(), isPosition); }
  bool givesPosition(Operation* op) const {
    return llvm::any_of(op->getResults(), [&](Value v) { return positions_.contains(v); });
  }

  LogicalResult visit(Operation* op) {
    const Precision precision = rules_.of(op);
    findExtremes(op, precision);
    bool data = llvm::any_of(op->getOperands(), [&](Value v) { return fromInputs_.contains(v); });
    if (data) fromInputs_.insert(op->result_begin(), op->result_end());
    Source source = sourceOf(op, precision);
    // Rows that an input picks of a parameter, as of an embedding.
    bool isLookup = data && source == Source::kWeight;
    if (isLookup) source = Source::kActivation;
    if (data && source == Source::kConstant) source = Source::kTable;
    for (Value result : op->getResults()) sources_[result] = source;

    bool narrow = false;
    switch (precision) {
      case Precision::kWide:
      case Precision::kWideInside:
        break;
      case Precision::kNarrow:
        narrow = source == Source::kActivation;
        break;
      case Precision::kMove:
      case Precision::kFollow:
        narrow =
            !givesPosition(op) && !takesPosition(op) &&
            (isLookup || llvm::any_of(op->getOperands(), [&](Value v) { return isNarrow(v); }));
        break;
    }
    if (narrow) return makeNarrow(op);
    for (OpOperand& operand : op->getOpOperands()) {
      if (isNarrow(operand.get())) operand.set(widened(operand.get()));
    }
    if (precision == Precision::kWideInside && source == Source::kActivation) {
      roundNow(op->getResult(0));
    }
    return success();
  }

  // What moves or follows the value is narrow; what is wide reads it as it was.
  void roundNow(Value value) {
    if (!isWide(value)) return;
    Value narrow = narrowed(value);
    value.replaceAllUsesExcept(narrow, narrow.getDefiningOp());
    narrow_.insert(narrow);
    wideOf_[narrow] = value;
  }

  // Values that may have elements below the lowest bf16: what masks are made of.
  void findExtremes(Operation* op, Precision precision) {
    DenseElementsAttr constant;
    bool extreme = false;
    if (matchPattern(op, m_Constant(&constant)) && isFloat(op->getResult(0))) {
      const auto isExtreme = [](APFloat value) {
        bool lossy;
        value.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &lossy);
        return value.isInfinity() && value.isNegative();
      };
      extreme = constant.isSplat() ? isExtreme(constant.getSplatValue<APFloat>())
                                   : llvm::any_of(constant.getValues<APFloat>(), isExtreme);
    } else if (precision == Precision::kFollow || precision == Precision::kMove) {
      extreme = llvm::any_of(op->getOperands(), [&](Value v) { return extremes_.contains(v); });
    }
    if (extreme) extremes_.insert(op->result_begin(), op->result_end());
  }

  // Of the op's results, unless an input picks the elements.
  Source sourceOf(Operation* op, Precision precision) const {
    bool any = false;
    Source source = Source::kConstant;
    for (Value operand : op->getOperands()) {
      if (!isFloat(operand)) continue;
      any = true;
      source = std::max(source, sources_.at(operand));
    }
    bool isStored = source == Source::kConstant || source == Source::kWeight;
    if (any && isStored && precision != Precision::kMove) return Source::kTable;
    return source;
  }

  LogicalResult makeNarrow(Operation* op) {
    auto precise = dyn_cast<ir::PrecisionOpInterface>(op);
    for (OpOperand& operand : op->getOpOperands()) {
      bool mayBeWide = precise && precise.takesWide(operand.getOperandNumber());
      if (isWide(operand.get()) && !mayBeWide) operand.set(narrowed(operand.get()));
    }
    SmallVector<Type> types;
    if (auto inferring = dyn_cast<InferTypeOpInterface>(op)) {
      if (failed(inferring.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                            op->getAttrDictionary(), op->getPropertiesStorage(),
                                            op->getRegions(), types))) {
        return failure();
      }
    } else {
      for (Value result : op->getResults()) types.push_back(narrowTypeOf(result));
    }
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
      if (result.getType() == type) continue;
      result.setType(type);
      narrow_.insert(result);
    }
    return success();
  }

  // The type in bf16 of an f32 tensor; that of another one.
  RankedTensorType narrowTypeOf(Value value) const {
    return isWide(value) ? ir::tensorType(value).clone(narrowType_) : ir::tensorType(value);
  }

  void insertAfter(Value value) {
    if (value.getDefiningOp()) {
      builder_.setInsertionPointAfterValue(value);
    } else {
      builder_.setInsertionPointToStart(&block_);
    }
  }

  Value widened(Value value) {
    if (Value known = wideOf_.lookup(value)) return known;
    insertAfter(value);
    auto type = ir::tensorType(value).clone(builder_.getF32Type());
    Value wide = ir::CastOp::create(builder_, value.getLoc(), type, value);
    describeLike(wide, value);
    return wideOf_[value] = wide;
  }

  Value narrowed(Value value) {
    if (Value known = narrowOf_.lookup(value)) return known;
    Value narrow = makeNarrowed(value);
    describeLike(narrow, value);
    return narrowOf_[value] = narrow;
  }

  void describeLike(Value made, Value value) {
    const Source source = sources_.at(value);
    sources_[made] = source;
    if (fromInputs_.contains(value)) fromInputs_.insert(made);
  }

  Value makeNarrowed(Value value) {
    Operation* producer = value.getDefiningOp();
    if (auto cast = value.getDefiningOp<ir::CastOp>(); cast && isNarrow(cast.getInput())) {
      return cast.getInput();  // it was widened, which loses nothing
    }
    DenseElementsAttr constant;
    if (matchPattern(value, m_Constant(&constant))) {
      insertAfter(value);
      return ir::ConstantOp::create(builder_, value.getLoc(), convert(constant, narrowType_));
    }
    Source source = sources_.at(value);
    bool isStored = source == Source::kConstant || source == Source::kWeight;
    if (producer && isStored && rules_.of(producer) == Precision::kMove &&
        producer->getNumResults() == 1) {
      IRMapping mapping;
      for (Value operand : producer->getOperands()) {
        if (isWide(operand)) mapping.map(operand, narrowed(operand));
      }
      insertAfter(value);
      Operation* copy = builder_.clone(*producer, mapping);
      copy->getResult(0).setType(narrowTypeOf(value));
      return copy->getResult(0);
    }
    insertAfter(value);
    const bool isMade = source == Source::kTable && fromInputs_.contains(value);
    if (isMade || extremes_.contains(value)) value = aboveInfinity(value);
    Value narrow = ir::CastOp::create(builder_, value.getLoc(), narrowTypeOf(value), value);
    if (parameters_.contains(value)) parameterCasts_.insert(narrow.getDefiningOp());
    return narrow;
  }

  // A mask may hold the lowest f32, which would round to -inf: a row of -inf alone has no softmax.
  Value aboveInfinity(Value table) {
    auto scalar = RankedTensorType::get({}, builder_.getF32Type());
    APFloat lowest = APFloat::getLargest(narrowType_.getFloatSemantics(), /*Negative=*/true);
    bool lossy;
    lowest.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lossy);
    Value bound =
        ir::ConstantOp::create(builder_, table.getLoc(), DenseElementsAttr::get(scalar, lowest));
    return ir::MaxOp::create(builder_, table.getLoc(), table, bound);
  }

  // Parameters that are used narrow are narrow; their f32 uses widen them. Parts of one tensor have
  // one type.
  void narrowParameters() {
    DenseSet<StringRef> narrowNames;
    for (auto [argument, parameter] : parameters_) {
      bool isNarrowed = llvm::any_of(
          argument.getUsers(), [&](Operation* user) { return parameterCasts_.contains(user); });
      if (isNarrowed) narrowNames.insert(parameter.getOnnxName());
    }
    for (auto [argument, parameter] : parameters_) {
      if (!narrowNames.contains(parameter.getOnnxName()) || !isWide(argument)) continue;
      Operation* cast = nullptr;
      SmallVector<OpOperand*> wideUses;
      for (OpOperand& use : argument.getUses()) {
        if (parameterCasts_.contains(use.getOwner())) {
          cast = use.getOwner();
        } else {
          wideUses.push_back(&use);
        }
      }
      argument.setType(narrowTypeOf(argument));
      parameter.setType(argument.getType());
      if (cast) {
        cast->getResult(0).replaceAllUsesWith(argument);
        cast->erase();
      }
      if (wideUses.empty()) continue;
      Value wide = widened(argument);
      for (OpOperand* use : wideUses) use->set(wide);
    }
  }

  ModuleOp module_;
  func::FuncOp main_;
  const PrecisionRules& rules_;
  Block& block_;
  OpBuilder builder_;
  FloatType narrowType_;
  llvm::MapVector<Value, ir::ParameterOp> parameters_;  // by argument
  DenseMap<Value, Source> sources_;
  DenseSet<Value> fromInputs_;  // depend on an input
  DenseSet<Value> extremes_;
  DenseSet<Value> positions_;  // of which an op makes whole numbers
  DenseSet<Value> narrow_;
  DenseMap<Value, Value> narrowOf_, wideOf_;  // made once for each value
  DenseSet<Operation*> parameterCasts_;       // that narrow an argument
};

struct MixedPrecision : impl::MixedPrecisionBase<MixedPrecision> {
  using MixedPrecisionBase::MixedPrecisionBase;
  explicit MixedPrecision(Recipe recipe) : given(std::move(recipe)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(readRecipeOption(module, recipe, given))) return signalPassFailure();
    if (!given->precision.mixed) return;
    PrecisionRules rules(given->precision);
    if (failed(rules.check(module))) return signalPassFailure();
    func::FuncOp main = ir::mainOfOneBlock(module);
    if (!main) return;
    if (failed(Narrowing(module, main, rules).run())) signalPassFailure();
  }

  std::optional<Recipe> given;
};

}  // namespace

std::unique_ptr<mlir::Pass> createMixedPrecision(Recipe recipe) {
  return std::make_unique<MixedPrecision>(std::move(recipe));
}

}  // namespace oriel
