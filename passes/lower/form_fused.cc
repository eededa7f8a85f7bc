#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/view.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/location.h"
#include "ir/oriel/segment.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/fuse/cluster.h"
#include "passes/lower/fused_rules.h"
#include "passes/lower/launches.h"
#include "passes/lower/passes.h"
#include "passes/strategize/sharding.h"

namespace oriel {

#define GEN_PASS_DEF_FORMFUSED
#include "passes/lower/passes.h.inc"

namespace {

using mlir::ArrayAttr;
using mlir::Attribute;
using mlir::DictionaryAttr;
using mlir::Operation;
using mlir::Type;
using mlir::Value;

// Gives `made` what is said of an op that it stands for, and `last`, the sharding of one more
// result.
void takeAttributes(Operation* made, Operation* from, ir::ShardingAttr last) {
  made->setDiscardableAttrs(from->getDiscardableAttrDictionary());
  auto shardings = made->getAttrOfType<ArrayAttr>(ir::kShardingsAttr);
  if (made->getNumResults() == from->getNumResults() || !shardings) return;
  made->removeAttr(ir::kShardingsAttr);
  if (!last) return;
  llvm::SmallVector<Attribute> all(shardings.getValue());
  all.push_back(last);
  made->setAttr(ir::kShardingsAttr, mlir::ArrayAttr::get(made->getContext(), all));
}

// Puts `made`, whose first results are the op's, in the op's place.
void replace(Operation* op, Operation* made) {
  for (auto [old, now] : llvm::zip(op->getResults(), made->getResults())) {
    old.replaceAllUsesWith(now);
  }
  op->erase();
}

void eraseUnused(Operation* op) {
  if (op && op->use_empty()) op->erase();
}

// --- casts around an op whose kernel widens and rounds by itself

// What all of the op's first operands are cast from, to its wider type. Empty if some are not.
llvm::SmallVector<Value> narrowOperands(ir::NarrowOpInterface op) {
  llvm::SmallVector<Value> result;
  Type type;
  for (Value operand : op->getOperands().take_front(op.getNarrowOperandCount())) {
    auto cast = operand.getDefiningOp<ir::CastOp>();
    if (!cast) return {};
    Type own = cast.getInput().getType().getElementType();
    if (!(own.isBF16() || own.isF16()) || !cast.getType().getElementType().isF32() ||
        (type && own != type)) {
      return {};
    }
    type = own;
    result.push_back(cast.getInput());
  }
  return result;
}

void takeCasts(ir::NarrowOpInterface op) {
  llvm::SmallVector<Value> narrow = narrowOperands(op);
  Value result = op->getResult(0);
  if (narrow.empty() || result.use_empty()) return;
  Type type = ir::elementOf(narrow[0]);
  for (Operation* user : result.getUsers()) {
    auto cast = llvm::dyn_cast<ir::CastOp>(user);
    if (!cast || cast.getType().getElementType() != type) return;
  }
  mlir::OpBuilder builder(op);
  Operation* made = op.buildNarrow(builder, narrow);
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (Operation* cast : llvm::make_early_inc_range(result.getUsers())) {
    cast->getResult(0).replaceAllUsesWith(made->getResult(0));
    cast->erase();
  }
  llvm::SmallVector<Operation*> casts;
  for (Value operand : op->getOperands().take_front(narrow.size())) {
    if (!llvm::is_contained(casts, operand.getDefiningOp())) {
      casts.push_back(operand.getDefiningOp());
    }
  }
  replace(op, made);
  for (Operation* cast : casts) eraseUnused(cast);
}

// --- what stands behind what

// Whether the producer may do what `op` does with its result 0: nobody else sees that, it is cut as
// op's is, and, where clusters are, in the same one: then a clone of one is beside a clone of the
// other.
bool mayJoin(Operation* producer, Operation* op) {
  const auto cluster = [](Operation* of) { return of->getAttr(kClusterAttr); };
  return producer->getBlock() == op->getBlock() && producer->getResult(0).hasOneUse() &&
         cluster(producer) == cluster(op) &&
         producer->hasAttr(kRuleAttr) == op->hasAttr(kRuleAttr) &&
         producer->getResult(0).getType() == op->getResult(0).getType();
}

bool isBefore(Value value, Operation* op) {
  Operation* producer = value.getDefiningOp();
  return !producer || (producer != op && producer->isBeforeInBlock(op));
}

// --- gradients of biases

// Whether it adds up all dimensions but the last one, which it keeps.
bool sumsRows(ir::ReduceSumOp sum) {
  const int64_t rank = sum.getInput().getType().getRank();
  if (sum.getKeepDims() || static_cast<int64_t>(sum.getDims().size()) != rank - 1) return false;
  return llvm::all_of(llvm::enumerate(sum.getDims()),
                      [](auto dim) { return dim.value() == static_cast<int64_t>(dim.index()); });
}

bool isPendingSum(Value value) {
  ir::ShardingAttr sharding = ir::shardingOf(value);
  return sharding && !sharding.getSum().empty();
}

// The gradient of a weight for the same cotangent, where its launch may stand for both. What is
// pending in its other operand is so in one of the two gradients only.
ir::LinearWeightGradOp weightGradBeside(ir::ReduceSumOp sum) {
  for (Operation* user : sum.getInput().getUsers()) {
    auto grad = llvm::dyn_cast<ir::LinearWeightGradOp>(user);
    if (!grad || grad.getCotangent() != sum.getInput() || grad->getBlock() != sum->getBlock() ||
        grad->getAttr(kClusterAttr) != sum->getAttr(kClusterAttr) ||
        (sum->hasAttr(kRuleAttr) && !grad->hasAttr(kRuleAttr)) || isPendingSum(grad.getInput())) {
      continue;
    }
    const bool isEarly = llvm::any_of(sum->getUsers(), [&](Operation* reader) {
      return reader->getBlock() == grad->getBlock() && reader->isBeforeInBlock(grad);
    });
    if (!isEarly) return grad;
  }
  return nullptr;
}

void joinBiasGrad(ir::ReduceSumOp sum) {
  ir::LinearWeightGradOp grad = sumsRows(sum) ? weightGradBeside(sum) : nullptr;
  if (!grad) return;
  mlir::OpBuilder builder(grad);
  Operation* made = ir::LinearGradsOp::create(
      builder, grad.getLoc(), grad.getType(), sum.getType(), grad.getInput(), grad.getCotangent(),
      /*addend=*/nullptr, grad.getTransposeWeight(), grad.getOrigin());
  takeAttributes(made, grad, ir::shardingOf(sum.getResult()));
  if (auto rule = made->getAttrOfType<DictionaryAttr>(kRuleAttr)) {
    made->setAttr(kRuleAttr, withBiasGrad(rule));
  }
  sum.getResult().replaceAllUsesWith(made->getResult(1));
  sum.erase();
  replace(grad, made);
}

// --- activations

// The ONNX nodes of which the backward computes something again.
llvm::DenseSet<int64_t> recomputedOrigins(mlir::ModuleOp program) {
  llvm::DenseSet<int64_t> origins;
  program.walk([&](Operation* op) {
    if (op->hasAttr(kRecomputedAttr)) origins.insert(ir::originOf(op));
  });
  return origins;
}

// The kernel need not round what the activation is of. So an activation is not joined to a product
// where only one of the two is computed again: its bits would be others. Where both are, all copies
// have the same results, for a library may have another algorithm with fewer.
void joinActivation(ir::ActivationOp activation, const llvm::DenseSet<int64_t>& recomputed) {
  auto linear = activation.getInput().getDefiningOp<ir::LinearOp>();
  if (!linear || linear->getBlock() != activation->getBlock() ||
      !ir::isEpilogueActivation(activation.getKind()) ||
      linear->hasAttr(kRuleAttr) != activation->hasAttr(kRuleAttr) ||
      recomputed.contains(linear.getOrigin()) != recomputed.contains(activation.getOrigin())) {
    return;
  }
  const bool isWanted = !linear.getResult().hasOneUse() || recomputed.contains(linear.getOrigin());
  mlir::OpBuilder builder(linear);
  Operation* made = ir::LinearActivationOp::create(
      builder, linear.getLoc(), activation.getType(), isWanted ? linear.getType() : Type(),
      linear.getInput(), linear.getWeight(), linear.getBias(), activation.getKind(),
      linear.getTransposeWeight(), linear.getOrigin());
  takeAttributes(made, linear, ir::shardingOf(linear.getResult()));
  if (auto rule = made->getAttrOfType<DictionaryAttr>(kRuleAttr)) {
    made->setAttr(kRuleAttr, withActivation(rule, made->getNumResults()));
  }
  activation.getResult().replaceAllUsesWith(made->getResult(0));
  activation.erase();
  if (isWanted) linear.getResult().replaceAllUsesWith(made->getResult(1));
  linear.erase();
}

void joinActivationGrad(ir::ActivationGradOp grad) {
  auto linear = grad.getCotangent().getDefiningOp<ir::LinearOp>();
  if (!linear || linear.getBias() || !ir::isEpilogueActivation(grad.getKind()) ||
      !mayJoin(linear, grad)) {
    return;
  }
  // Where the preactivation is computed again, that is behind the product.
  Operation* place = isBefore(grad.getInput(), linear) ? linear.getOperation() : grad;
  mlir::OpBuilder builder(place);
  Operation* made = ir::LinearActivationGradOp::create(
      builder, linear.getLoc(), grad.getType(), linear.getInput(), linear.getWeight(),
      grad.getInput(), grad.getKind(), linear.getTransposeWeight(), linear.getOrigin());
  takeAttributes(made, linear, nullptr);
  if (auto rule = made->getAttrOfType<DictionaryAttr>(kRuleAttr)) {
    made->setAttr(kRuleAttr, withFactor(rule));
  }
  grad.getResult().replaceAllUsesWith(made->getResult(0));
  grad.erase();
  linear.erase();
}

// --- sums

// Whether a sum that partition has cut reads each piece of its operands where it makes that piece
// of the result. Where one is repeated along a dimension, the pieces may be alike by chance.
bool isOfEqualPieces(ir::AddOp add) {
  auto rule = add->getAttrOfType<DictionaryAttr>(kRuleAttr);
  if (!rule) return true;
  const Attribute result = ruleList(rule, "results")[0];
  return llvm::all_of(ruleList(rule, "operands"),
                      [&](Attribute operand) { return operand == result; });
}

// --- sums behind an op

// The operand that can take the other one, which is made before it; -1 for none.
int producerOf(ir::AddOp add) {
  for (int i = 0; i < 2; ++i) {
    Value made = add->getOperand(i), addend = add->getOperand(1 - i);
    Operation* producer = made.getDefiningOp();
    if (llvm::isa_and_present<ir::EpilogueOpInterface>(producer) &&
        made == producer->getResult(0) && addend.getType() == made.getType() &&
        mayJoin(producer, add) && isBefore(addend, producer)) {
      return i;
    }
  }
  return -1;
}

// The sum is made where the product was: then the addend is needed no longer than before.
bool joinBehind(ir::AddOp add) {
  const int operand = producerOf(add);
  if (operand < 0) return false;
  Operation* producer = add->getOperand(operand).getDefiningOp();
  mlir::OpBuilder builder(producer);
  Operation* made =
      llvm::cast<ir::EpilogueOpInterface>(producer).buildSum(builder, add->getOperand(1 - operand));
  if (!made) return false;
  made->setDiscardableAttrs(producer->getDiscardableAttrDictionary());
  if (auto rule = made->getAttrOfType<DictionaryAttr>(kRuleAttr)) {
    made->setAttr(kRuleAttr, withAddend(rule));
  }
  add.getResult().replaceAllUsesWith(made->getResult(0));
  add.erase();
  replace(producer, made);
  return true;
}

// --- sums before an op

// Whether what stands between two ops computes nothing.
bool areAdjacent(Operation* first, Operation* last) {
  if (first->getBlock() != last->getBlock() || !first->isBeforeInBlock(last)) return false;
  for (Operation* op = first->getNextNode(); op != last; op = op->getNextNode()) {
    if (!ir::isView(op) && !op->hasTrait<mlir::OpTrait::ConstantLike>()) return false;
  }
  return true;
}

// The op on the sum, where the op stood: nothing else may want the sum before it.
void joinBefore(ir::AddOp add) {
  Value sum = add.getResult();
  if (add.getLhs().getType() != sum.getType() || add.getRhs().getType() != sum.getType()) return;
  for (Operation* user : sum.getUsers()) {
    auto op = llvm::dyn_cast<ir::PrologueOpInterface>(user);
    if (!op || user->getOperand(0) != sum || llvm::count(user->getOperands(), sum) != 1 ||
        !areAdjacent(add, user) || user->hasAttr(kRuleAttr) != add->hasAttr(kRuleAttr) ||
        llvm::any_of(sum.getUsers(), [&](Operation* other) {
          return other != user && other->isBeforeInBlock(user);
        })) {
      continue;
    }
    auto rule = user->getAttrOfType<DictionaryAttr>(kRuleAttr);
    if (rule && !rule.getAs<ArrayAttr>("linear").empty()) continue;
    mlir::OpBuilder builder(user);
    Operation* made = op.buildOfSum(builder, add.getLhs(), add.getRhs());
    if (!made) continue;
    takeAttributes(made, user, ir::shardingOf(sum));
    if (rule) made->setAttr(kRuleAttr, withSummands(rule));
    replace(user, made);
    sum.replaceAllUsesWith(made->getResults().back());
    add.erase();
    return;
  }
}

template <typename OpTy, typename Function>
void forEach(mlir::Block& block, Function function) {
  llvm::SmallVector<OpTy> ops;
  for (Operation& op : block) {
    if (auto found = llvm::dyn_cast<OpTy>(op)) ops.push_back(found);
  }
  for (OpTy op : ops) function(op);
}

struct FormFused : impl::FormFusedBase<FormFused> {
  void runOnOperation() override {
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) formFused(program);
  }
};

}  // namespace

void formFused(mlir::ModuleOp program) {
  const llvm::DenseSet<int64_t> recomputed = recomputedOrigins(program);
  for (auto segment : program.getOps<mlir::func::FuncOp>()) {
    if (!segment.getBody().hasOneBlock()) continue;
    mlir::Block& block = segment.getBody().front();
    // First, since casts stand between the sums and what is to take them.
    forEach<ir::NarrowOpInterface>(block, takeCasts);
    forEach<ir::ReduceSumOp>(block, joinBiasGrad);
    forEach<ir::ActivationOp>(block, [&](ir::ActivationOp op) { joinActivation(op, recomputed); });
    forEach<ir::ActivationGradOp>(block, joinActivationGrad);
    // A product adds for nothing, a norm reads one more tensor.
    forEach<ir::AddOp>(block, [](ir::AddOp add) {
      if (isOfEqualPieces(add) && !joinBehind(add)) joinBefore(add);
    });
  }
}

}  // namespace oriel
