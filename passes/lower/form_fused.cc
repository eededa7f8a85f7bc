#include "ir/interfaces/view.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/segment.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/fuse/cluster.h"
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

llvm::SmallVector<Attribute> listOf(DictionaryAttr rule, llvm::StringRef name) {
  return llvm::SmallVector<Attribute>(rule.getAs<ArrayAttr>(name).getValue());
}

// The rule of an op with one more operand that is added to result 0. Where the op is linear in some
// operands, the sum is in these and the addend.
DictionaryAttr withAddend(DictionaryAttr rule) {
  mlir::Builder builder(rule.getContext());
  llvm::SmallVector<Attribute> operands = listOf(rule, "operands"), linear;
  const auto addend = static_cast<int64_t>(operands.size());
  operands.push_back(listOf(rule, "results")[0]);
  for (Attribute group : listOf(rule, "linear")) {
    llvm::SmallVector<Attribute> members(llvm::cast<ArrayAttr>(group).getValue());
    members.push_back(builder.getI64IntegerAttr(addend));
    linear.push_back(builder.getArrayAttr(members));
  }
  mlir::NamedAttrList result(rule);
  result.set("operands", builder.getArrayAttr(operands));
  result.set("linear", builder.getArrayAttr(linear));
  result.set("added", builder.getI64ArrayAttr({addend}));
  return result.getDictionary(rule.getContext());
}

// The rule of an op that is linear in nothing, with operand 0 in two summands, and with their sum
// as one more result.
DictionaryAttr withSummands(DictionaryAttr rule) {
  mlir::Builder builder(rule.getContext());
  llvm::SmallVector<Attribute> operands = listOf(rule, "operands"),
                               results = listOf(rule, "results");
  results.push_back(operands[0]);
  operands.insert(operands.begin(), operands[0]);
  mlir::NamedAttrList list(rule);
  list.set("operands", builder.getArrayAttr(operands));
  list.set("results", builder.getArrayAttr(results));
  return list.getDictionary(rule.getContext());
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
  Type type = llvm::cast<mlir::RankedTensorType>(narrow[0].getType()).getElementType();
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

// --- sums

// Whether a sum that partition has cut reads each piece of its operands where it makes that piece
// of the result. Where one is repeated along a dimension, the pieces may be alike by chance.
bool isOfEqualPieces(ir::AddOp add) {
  auto rule = add->getAttrOfType<DictionaryAttr>(kRuleAttr);
  if (!rule) return true;
  const Attribute result = listOf(rule, "results")[0];
  return llvm::all_of(listOf(rule, "operands"),
                      [&](Attribute operand) { return operand == result; });
}

// --- sums behind an op

// Whether the producer may do the sum: nobody else sees what it makes, it is cut as the sum is,
// and, where clusters are, in the same one: then a clone of one is beside a clone of the other.
bool mayAdd(Operation* producer, Operation* sum) {
  const auto cluster = [](Operation* op) { return op->getAttr(kClusterAttr); };
  return producer->getBlock() == sum->getBlock() && producer->getResult(0).hasOneUse() &&
         cluster(producer) == cluster(sum) &&
         producer->hasAttr(kRuleAttr) == sum->hasAttr(kRuleAttr) &&
         producer->getResult(0).getType() == sum->getResult(0).getType();
}

bool isBefore(Value value, Operation* op) {
  Operation* producer = value.getDefiningOp();
  return !producer || (producer != op && producer->isBeforeInBlock(op));
}

// The operand that can take the other one, which is made before it; -1 for none.
int producerOf(ir::AddOp add) {
  for (int i = 0; i < 2; ++i) {
    Value made = add->getOperand(i), addend = add->getOperand(1 - i);
    Operation* producer = made.getDefiningOp();
    if (llvm::isa_and_present<ir::EpilogueOpInterface>(producer) &&
        made == producer->getResult(0) && addend.getType() == made.getType() &&
        mayAdd(producer, add) && isBefore(addend, producer)) {
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
    made->setDiscardableAttrs(user->getDiscardableAttrDictionary());
    if (rule) made->setAttr(kRuleAttr, withSummands(rule));
    auto shardings = user->getAttrOfType<ArrayAttr>(ir::kShardingsAttr);
    made->removeAttr(ir::kShardingsAttr);
    if (ir::ShardingAttr own = ir::shardingOf(sum); own && shardings) {
      llvm::SmallVector<Attribute> all(shardings.getValue());
      all.push_back(own);
      made->setAttr(ir::kShardingsAttr, builder.getArrayAttr(all));
    }
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
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) {
      for (auto segment : program.getOps<mlir::func::FuncOp>()) {
        if (!segment.getBody().hasOneBlock()) continue;
        mlir::Block& block = segment.getBody().front();
        // First, since casts stand between the sums and what is to take them.
        forEach<ir::NarrowOpInterface>(block, takeCasts);
        // A product adds for nothing, a norm reads one more tensor.
        forEach<ir::AddOp>(block, [](ir::AddOp add) {
          if (isOfEqualPieces(add) && !joinBehind(add)) joinBefore(add);
        });
      }
    }
  }
};

}  // namespace
}  // namespace oriel
