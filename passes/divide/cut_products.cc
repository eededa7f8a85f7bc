#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/divide/joined_inputs.h"
#include "passes/divide/moved_parameter.h"
#include "passes/divide/passes.h"
#include "passes/divide/taken_columns.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/strategy_pass.h"

namespace oriel {

#define GEN_PASS_DEF_CUTPRODUCTS
#include "passes/divide/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

// A linear layer that becomes several.
struct Cut {
  ir::LinearOp linear;
  llvm::SmallVector<TakenColumns> taken;
  llvm::SmallVector<Columns> pieces;         // in order
  llvm::SmallVector<Value> weights, biases;  // of the pieces
};

// A parameter of which the model takes slices, as torch.nn.MultiheadAttention does where queries
// are of another input than keys and values.
struct SlicedParameter {
  Value whole;
  int64_t dim;
  llvm::SmallVector<TakenColumns> taken;
  llvm::SmallVector<Columns> pieces;  // in order
  llvm::SmallVector<Value> parts;     // that they become
};

class ProductCutter {
 public:
  ProductCutter(mlir::func::FuncOp main, const Strategy& strategy, llvm::StringRef output)
      : main_(main),
        strategy_(strategy),
        values_(readValues(main)),
        symbols_(main->getParentOfType<mlir::ModuleOp>()) {
    findAllBefore(output);
  }

  // Whether there is more to do, for another one: what was cut, or can be now.
  bool run() {
    if (slicePointwise() || sliceMoved() || sliceShared()) return true;
    for (auto linear : main_.getOps<ir::LinearOp>()) {
      if (std::optional<Cut> cut = cutOf(linear)) cuts_.push_back(std::move(*cut));
    }
    for (Value argument : main_.getArguments()) {
      if (std::optional<SlicedParameter> sliced = slicedOf(argument)) {
        sliced_.push_back(std::move(*sliced));
      }
    }
    if (cuts_.empty() && sliced_.empty()) return false;
    addPieces();
    for (Cut& cut : cuts_) replace(cut);
    for (SlicedParameter& sliced : sliced_) replace(sliced);
    eraseWholes();
    return true;
  }

 private:
  // What the output of the loss has a derivative by: by way of floats, and of ops that have one.
  // What has no gradient is frozen.
  void findAllBefore(llvm::StringRef output) {
    llvm::SmallVector<Value> values;
    for (unsigned i = 0; i < main_.getNumResults(); ++i) {
      mlir::FailureOr<ir::ValueRole> role = ir::resultRole(main_, i);
      if (failed(role) || role->ref != output) continue;
      values.push_back(main_.getBody().front().getTerminator()->getOperand(i));
    }
    while (!values.empty()) {
      Value value = values.pop_back_val();
      Operation* op = value.getDefiningOp();
      const bool isFloat = llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value.getType()));
      if (!op || !isFloat || op->hasTrait<ir::StepFunction>()) continue;
      if (beforeLoss_.insert(op).second) {
        values.append(op->operand_begin(), op->operand_end());
      }
    }
  }

  // In files.
  std::string nameOf(Value parameter) const {
    return ir::ParameterOp(values_.parameters.lookup(parameter)).getOnnxName().str();
  }

  bool isSplit(ir::LinearOp linear) const { return isSplit(linear.getWeight()); }
  bool isSplit(Value parameter) const {
    return strategy_.commonTensorParallel(moduleOf(strategy_, nameOf(parameter))) > 1;
  }

  // Tensor parallelism needs it. Else it saves the copies that the slices are, in the forward and
  // the backward, of all columns of the result, and reads the input once more for each further
  // piece, and so its gradient: in products, where most of that is hidden.
  bool pays(ir::LinearOp linear, size_t pieces) const {
    constexpr int64_t kHidden = 2;
    if (isSplit(linear)) return true;
    const int64_t columns = linear.getType().getShape().back();
    const int64_t read = ir::shapeOf(linear.getInput()).back();
    return kHidden * columns > static_cast<int64_t>(pieces - 1) * read;
  }

  // Whether it is a parameter of this layer alone that may be cut.
  bool isOwn(Value value) const {
    auto parameter = values_.parameters.find(value);
    if (parameter == values_.parameters.end() || !value.hasOneUse()) return false;
    return !shardingOf(strategy_, nameOf(value));
  }

  // What a bias of this layer alone is joined of; null for another one.
  static ir::ConcatOp joinedBias(Value bias) {
    return bias && bias.hasOneUse() ? bias.getDefiningOp<ir::ConcatOp>() : ir::ConcatOp();
  }

  // Whether pieces of a product could have a bias of their own, if this is that of the whole.
  bool mayCut(Value bias) const { return !bias || isOwn(bias) || joinedBias(bias); }

  // Whether each piece has a bias of its own: none, one that is cut with the weight, or operands of
  // a concatenation (the query's, zeros and the value's: BEiT, Bao et al. 2021).
  bool hasBiases(ir::LinearOp linear, llvm::ArrayRef<Columns> pieces) const {
    Value bias = linear.getBias();
    if (!bias || isOwn(bias)) return true;
    ir::ConcatOp joined = joinedBias(bias);
    return joined && llvm::all_of(pieces, [&](const Columns& columns) {
             return !operandsOf(joined, columns).empty();
           });
  }

  // Likewise of all products that `whole` is made of.
  bool hasBiases(Value whole, llvm::ArrayRef<Columns> pieces) const {
    if (isForAllColumns(whole) || isOwn(whole)) return true;
    Operation* op = whole.getDefiningOp();
    if (auto linear = llvm::dyn_cast<ir::LinearOp>(op)) return hasBiases(linear, pieces);
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return hasBiases(operand, pieces); });
  }

  std::optional<Cut> cutOf(ir::LinearOp linear) const {
    if (!isOwn(linear.getWeight())) return std::nullopt;
    Cut cut;
    cut.linear = linear;
    int64_t last = linear.getType().getRank() - 1;
    auto taken = findTaken(linear.getResult(), last);
    if (!taken) return std::nullopt;
    cut.taken = std::move(*taken);
    cut.pieces = piecesOf(cut.taken, linear.getType().getDimSize(last));
    if (cut.pieces.empty() || !areTrained(cut.taken, cut.pieces)) return std::nullopt;
    if (!hasBiases(linear, cut.pieces)) return std::nullopt;
    return pays(linear, cut.pieces.size()) ? std::optional(cut) : std::nullopt;
  }

  std::optional<SlicedParameter> slicedOf(Value value) const {
    if (!values_.parameters.contains(value) || shardingOf(strategy_, nameOf(value))) {
      return std::nullopt;
    }
    for (int64_t dim = 0; dim < ir::rankOf(value); ++dim) {
      SlicedParameter sliced{value, dim, {}, {}, {}};
      auto taken = findTaken(value, dim);
      if (!taken) continue;
      sliced.taken = std::move(*taken);
      sliced.pieces = piecesOf(sliced.taken, ir::tensorType(value).getDimSize(dim));
      if (!sliced.pieces.empty() && areTrained(sliced.taken, sliced.pieces)) return sliced;
    }
    return std::nullopt;
  }

  // All have a gradient, as the whole has. Columns for another output would be frozen.
  bool areTrained(llvm::ArrayRef<TakenColumns> taken, llvm::ArrayRef<Columns> pieces) const {
    std::set<Columns> trained;
    for (const TakenColumns& each : taken) {
      if (beforeLoss_.contains(each.slice)) trained.insert(each.columns);
    }
    return trained.size() == pieces.size();
  }

  // Whether its result is made, column by column, of products that tensor parallelism could cut, of
  // biases, and of what is the same for all columns: so is a layer's product with its adapter's.
  // `known`: those before it that are.
  bool isPointwiseOfProducts(Operation* op, const llvm::DenseSet<Operation*>& known) const {
    if (!op->hasTrait<ir::Pointwise>() || op->getNumResults() != 1) return false;
    if (isForAllColumns(op->getResult(0))) return false;
    llvm::ArrayRef<int64_t> shape = ir::shapeOf(op->getResult(0));
    bool hasProduct = false;
    for (Value operand : op->getOperands()) {
      if (isForAllColumns(operand)) continue;
      if (isOwn(operand) && ir::shapeOf(operand) == shape.take_back()) continue;
      hasProduct = true;
      Operation* before = operand.getDefiningOp();
      if (!before || ir::shapeOf(operand) != shape || !operand.hasOneUse()) return false;
      if (auto linear = llvm::dyn_cast<ir::LinearOp>(before)) {
        if (!isOwn(linear.getWeight()) || !mayCut(linear.getBias()) || !isSplit(linear)) {
          return false;
        }
      } else if (!known.contains(before)) {
        return false;
      }
    }
    return hasProduct;
  }

  static bool isForAllColumns(Value value) {
    llvm::ArrayRef<int64_t> shape = ir::shapeOf(value);
    return shape.empty() || shape.back() == 1;
  }

  // Slices of what is made of products become slices of these. Whether there were any.
  bool slicePointwise() {
    llvm::SmallVector<Value> wholes;
    llvm::DenseSet<Operation*> known;
    for (Operation& op : main_.getBody().front().without_terminator()) {
      if (!isPointwiseOfProducts(&op, known)) continue;
      known.insert(&op);
      wholes.push_back(op.getResult(0));
    }
    bool sliced = false;
    for (Value whole : wholes) sliced |= slicePointwise(whole);
    return sliced;
  }

  bool slicePointwise(Value whole) {
    const int64_t last = ir::rankOf(whole) - 1;
    auto taken = findTaken(whole, last);
    if (!taken) return false;
    llvm::SmallVector<Columns> pieces = piecesOf(*taken, ir::tensorType(whole).getDimSize(last));
    if (pieces.empty() || !areTrained(*taken, pieces) || !hasBiases(whole, pieces)) return false;
    mlir::OpBuilder builder(main_.getContext());
    builder.setInsertionPointAfterValue(whole);
    std::map<Columns, Value> made;
    for (const Columns& columns : pieces) made[columns] = columnsOf(builder, whole, columns);
    takeFrom(builder, *taken, made);
    eraseWithOperands(whole.getDefiningOp());
    return true;
  }

  // Products of which slices are taken, with weights that einsums have moved before, become
  // products with slices of the parameters, which are parts of theirs then. Whether there were any.
  bool sliceMoved() {
    bool sliced = false;
    for (auto linear : llvm::make_early_inc_range(main_.getOps<ir::LinearOp>())) {
      sliced |= sliceMoved(linear);
    }
    return sliced;
  }

  bool sliceMoved(ir::LinearOp linear) {
    auto isOwnParameter = [&](Value value) { return isOwn(value); };
    auto weight = matchMovedParameter(linear.getWeight(), linear.getTransposeWeight() ? 0 : 1,
                                      isOwnParameter);
    if (!weight || weight->steps.empty() || !isSplit(weight->parameter)) return false;
    std::optional<MovedParameter> bias;
    if (linear.getBias()) {
      bias = matchMovedParameter(linear.getBias(), 0, isOwnParameter);
      if (!bias) return false;
    }
    const int64_t last = linear.getType().getRank() - 1;
    auto taken = findTaken(linear.getResult(), last);
    if (!taken) return false;
    llvm::SmallVector<Columns> pieces = piecesOf(*taken, linear.getType().getDimSize(last));
    auto hold = [](const MovedParameter& moved, const Columns& columns) {
      return columns.first % moved.width == 0 && columns.second % moved.width == 0;
    };
    const bool isWhole = llvm::all_of(pieces, [&](const Columns& columns) {
      return hold(*weight, columns) && (!bias || hold(*bias, columns));
    });
    if (pieces.empty() || !isWhole || !areTrained(*taken, pieces)) return false;
    mlir::OpBuilder builder(linear);
    auto sliceOf = [&](const MovedParameter& moved, const Columns& columns) {
      return moved.slice(builder, columns.first / moved.width, columns.second / moved.width);
    };
    std::map<Columns, Value> products;
    for (const Columns& columns : pieces) {
      Value part = sliceOf(*weight, columns);
      products[columns] = ir::LinearOp::create(builder, linear.getLoc(), linear.getInput(), part,
                                               bias ? sliceOf(*bias, columns) : Value(),
                                               linear.getTransposeWeight());
    }
    takeFrom(builder, *taken, products);
    eraseUnused(linear);
    for (const auto* moved : {&weight, &bias}) {
      if (!*moved) continue;
      for (auto [step, place] : llvm::reverse((*moved)->steps)) step->erase();
    }
    return true;
  }

  // Products of several layers, or of one that runs several times, with the same weight, of which
  // each takes the same slices: they become products with slices of the parameters, which are parts
  // of theirs then. Whether there were any.
  bool sliceShared() {
    bool sliced = false;
    for (Value argument : main_.getArguments()) sliced |= sliceShared(argument);
    return sliced;
  }

  bool sliceShared(Value weight) {
    if (!values_.parameters.contains(weight) || weight.hasOneUse() || !isSplit(weight) ||
        shardingOf(strategy_, nameOf(weight))) {
      return false;
    }
    llvm::SmallVector<std::pair<ir::LinearOp, llvm::SmallVector<TakenColumns>>> uses;
    llvm::SmallVector<TakenColumns> all;
    for (mlir::OpOperand& use : weight.getUses()) {
      auto linear = llvm::dyn_cast<ir::LinearOp>(use.getOwner());
      if (!linear || linear.getWeight() != weight || linear.getInput() == weight ||
          linear.getBias() == weight || !isAlike(linear, uses)) {
        return false;
      }
      auto taken = findTaken(linear.getResult(), linear.getType().getRank() - 1);
      if (!taken) return false;
      all.append(*taken);
      uses.emplace_back(linear, std::move(*taken));
    }
    if (uses.empty()) return false;
    ir::LinearOp first = uses.front().first;
    const int64_t width = first.getType().getShape().back();
    llvm::SmallVector<Columns> pieces = piecesOf(uses.front().second, width);
    const bool areSame =
        llvm::all_of(uses, [&](const auto& use) { return piecesOf(use.second, width) == pieces; });
    Value bias = first.getBias();
    if (pieces.empty() || !areSame || !areTrained(all, pieces) || !isOf(bias, uses.size())) {
      return false;
    }
    auto builder = mlir::OpBuilder::atBlockBegin(&main_.getBody().front());
    std::map<Columns, std::pair<Value, Value>> parts;
    const MovedParameter ofWeight{weight, first.getTransposeWeight() ? 0 : 1, 1, {}};
    const MovedParameter ofBias{bias, 0, 1, {}};
    for (auto [from, to] : pieces) {
      parts[{from, to}] = {ofWeight.slice(builder, from, to),
                           bias ? ofBias.slice(builder, from, to) : Value()};
    }
    for (auto& [linear, taken] : uses) {
      builder.setInsertionPoint(linear);
      std::map<Columns, Value> products;
      for (const auto& [columns, part] : parts) {
        products[columns] =
            ir::LinearOp::create(builder, linear.getLoc(), linear.getInput(), part.first,
                                 part.second, linear.getTransposeWeight());
      }
      takeFrom(builder, taken, products);
      eraseUnused(linear);
    }
    return true;
  }

  // Whether it takes its weight and bias as the products before it do.
  static bool isAlike(
      ir::LinearOp linear,
      llvm::ArrayRef<std::pair<ir::LinearOp, llvm::SmallVector<TakenColumns>>> before) {
    if (before.empty()) return true;
    ir::LinearOp first = before.front().first;
    return linear.getBias() == first.getBias() &&
           linear.getTransposeWeight() == first.getTransposeWeight();
  }

  // Whether there is no bias, or it is a parameter that may be cut, of so many products and nothing
  // else.
  bool isOf(Value bias, size_t products) const {
    if (!bias) return true;
    const auto uses = static_cast<size_t>(std::distance(bias.use_begin(), bias.use_end()));
    return values_.parameters.contains(bias) && uses == products &&
           !shardingOf(strategy_, nameOf(bias));
  }

  // Of what is made of products: the same of slices of them.
  static Value columnsOf(mlir::OpBuilder& builder, Value whole, Columns columns) {
    if (isForAllColumns(whole)) return whole;
    RankedTensorType type = ir::tensorType(whole);
    llvm::SmallVector<int64_t> shape(type.getShape());
    shape.back() = columns.second - columns.first;
    Operation* op = whole.getDefiningOp();
    if (!op || llvm::isa<ir::LinearOp>(op)) {
      return ir::sliceDim(builder, whole.getLoc(), whole, type.getRank() - 1, columns.first,
                          columns.second - columns.first);
    }
    mlir::IRMapping operands;
    for (Value operand : op->getOperands()) {
      operands.map(operand, columnsOf(builder, operand, columns));
    }
    Operation* copy = builder.clone(*op, operands);
    copy->getResult(0).setType(type.clone(shape));
    return copy->getResult(0);
  }

  // With what it alone reads, but for products, parameters, and what is the same for all columns.
  static void eraseWithOperands(Operation* op) {
    llvm::SmallVector<Value> operands(op->getOperands());
    eraseUnused(op);
    for (Value operand : operands) {
      Operation* before = isForAllColumns(operand) ? nullptr : operand.getDefiningOp();
      if (before && !llvm::isa<ir::LinearOp>(before)) eraseWithOperands(before);
    }
  }

  // Parameters, and arguments behind all others. At once: MLIR keeps every list of attributes.
  void addPieces() {
    llvm::SmallVector<mlir::Type> types;
    llvm::SmallVector<mlir::DictionaryAttr> roles;
    llvm::SmallVector<mlir::Location> locations;
    llvm::SmallVector<llvm::SmallVector<Value>*> takers;
    auto add = [&](Value whole, int64_t dim, llvm::ArrayRef<Columns> pieces,
                   llvm::SmallVector<Value>* taker) {
      ir::ParameterOp parameter = values_.parameters[whole];
      mlir::Block::iterator behind = std::next(parameter->getIterator());
      for (auto [from, to] : pieces) {
        ir::ParameterOp piece = clonePart(parameter, dim, from, to);
        mlir::StringAttr symbol = symbols_.insert(piece, behind);  // another than the whole one's
        types.push_back(piece.getType());
        roles.push_back(ir::roleAttributes(main_.getContext(),
                                           {ir::ValueKind::kParameter, symbol.str(), /*slot=*/""}));
        locations.push_back(whole.getLoc());
        takers.push_back(taker);
      }
      wholes_.push_back(whole);
    };
    for (Cut& cut : cuts_) {
      ir::LinearOp linear = cut.linear;
      add(linear.getWeight(), linear.getTransposeWeight() ? 0 : 1, cut.pieces, &cut.weights);
      Value bias = linear.getBias();
      if (bias && isOwn(bias)) add(bias, 0, cut.pieces, &cut.biases);
    }
    for (SlicedParameter& sliced : sliced_) {
      add(sliced.whole, sliced.dim, sliced.pieces, &sliced.parts);
    }
    unsigned first = main_.getNumArguments();
    llvm::SmallVector<unsigned> places(types.size(), first);
    mlir::LogicalResult inserted = main_.insertArguments(places, types, roles, locations);
    assert(succeeded(inserted) && "a function of tensors takes more of them");
    (void)inserted;
    for (auto [i, taker] : llvm::enumerate(takers)) {
      taker->push_back(main_.getArgument(first + static_cast<unsigned>(i)));
    }
  }

  // What the slices took, made of the pieces' products.
  void replace(Cut& cut) {
    ir::LinearOp linear = cut.linear;
    mlir::OpBuilder builder(linear);
    ir::ConcatOp joined = joinedBias(linear.getBias());
    if (joined) cut.biases = biasesOf(builder, joined, cut.pieces);
    std::map<Columns, Value> products;
    for (auto [i, columns] : llvm::enumerate(cut.pieces)) {
      products[columns] = ir::LinearOp::create(
          builder, linear.getLoc(), linear.getInput(), cut.weights[i],
          cut.biases.empty() ? Value() : cut.biases[i], linear.getTransposeWeight());
    }
    takeFrom(builder, cut.taken, products);
    eraseUnused(linear);
    if (joined) joined.erase();
  }

  static llvm::SmallVector<Value> biasesOf(mlir::OpBuilder& builder, ir::ConcatOp joined,
                                           llvm::ArrayRef<Columns> pieces) {
    llvm::SmallVector<Value> biases;
    for (const Columns& columns : pieces) {
      llvm::SmallVector<Value> operands = operandsOf(joined, columns);
      biases.push_back(
          operands.size() == 1
              ? operands.front()
              : Value(ir::ConcatOp::create(builder, joined.getLoc(), operands, joined.getDim())));
    }
    return biases;
  }

  void replace(SlicedParameter& sliced) {
    mlir::OpBuilder builder(main_.getContext());
    std::map<Columns, Value> parts;
    for (auto [columns, part] : llvm::zip_equal(sliced.pieces, sliced.parts)) parts[columns] = part;
    takeFrom(builder, sliced.taken, parts);
    for (Operation* user : llvm::make_early_inc_range(sliced.whole.getUsers())) eraseUnused(user);
  }

  void eraseWholes() {
    llvm::BitVector unused(main_.getNumArguments());
    for (Value whole : wholes_) {
      unused.set(llvm::cast<mlir::BlockArgument>(whole).getArgNumber());
      symbols_.erase(values_.parameters[whole]);
    }
    mlir::LogicalResult erased = main_.eraseArguments(unused);
    assert(succeeded(erased) && "a function of tensors takes fewer of them");
    (void)erased;
  }

  mlir::func::FuncOp main_;
  const Strategy& strategy_;
  SegmentValues values_;
  mlir::SymbolTable symbols_;
  llvm::DenseSet<Operation*> beforeLoss_;
  std::vector<Cut> cuts_;
  std::vector<SlicedParameter> sliced_;
  llvm::SmallVector<Value> wholes_;  // arguments that pieces have replaced
};

struct CutProducts : StrategyPass<impl::CutProductsBase<CutProducts>> {
  using StrategyPass::StrategyPass;
  CutProducts(Strategy strategy, std::string name) : StrategyPass(std::move(strategy)) {
    output = std::move(name);
  }

  mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override {
    mlir::func::FuncOp main = ir::mainOfOneBlock(module);
    if (!main) return mlir::success();
    // Again, for what is sliced in steps: keys and values first, say.
    do {
      while (ProductCutter(main, strategy, output).run()) {
      }
    } while (splitJoinedInputs(main, strategy));
    return mlir::success();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createCutProducts(Strategy strategy, std::string output) {
  return std::make_unique<CutProducts>(std::move(strategy), std::move(output));
}

}  // namespace oriel
