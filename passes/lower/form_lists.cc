#include <vector>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lower/passes.h"
#include "passes/strategize/sharding.h"

namespace oriel {

#define GEN_PASS_DEF_FORMLISTS
#include "passes/lower/passes.h.inc"

namespace {

using mlir::ArrayAttr;
using mlir::Attribute;
using mlir::Operation;
using mlir::Value;

// One op of a list, and the cast of its result 0 that the list takes over; null for none.
struct Entry {
  ir::ListedOpInterface op;
  ir::CastOp rounding;
};

using List = llvm::SmallVector<Entry>;

unsigned ownOperands(Entry entry) { return entry.op.getOwnOperandCount(); }

// The attributes that the kernel gets.
llvm::SmallVector<mlir::NamedAttribute> kernelAttributes(Operation* op) {
  llvm::SmallVector<mlir::NamedAttribute> result;
  for (mlir::NamedAttribute attribute : op->getAttrDictionary()) {
    llvm::StringRef name = attribute.getName();
    if (name != "origin" && !name.starts_with("oriel.")) result.push_back(attribute);
  }
  return result;
}

// Whether one launch does both: attributes, element types and common operands are the same.
bool areAlike(const Entry& a, const Entry& b) {
  Operation *left = a.op, *right = b.op;
  const unsigned own = ownOperands(a);
  if (left->getName() != right->getName() || left->getNumOperands() != right->getNumOperands() ||
      left->getOperands().drop_front(own) != right->getOperands().drop_front(own) ||
      kernelAttributes(left) != kernelAttributes(right) || !a.rounding != !b.rounding) {
    return false;
  }
  for (unsigned i = 0; i < own; ++i) {
    if (ir::elementOf(left->getOperand(i)) != ir::elementOf(right->getOperand(i))) return false;
  }
  return !a.rounding || ir::elementOf(Entry(a).rounding) == ir::elementOf(Entry(b).rounding);
}

// How the list is split (oriel.rule, oriel.split, oriel.shardings), of how its ops are: their
// factors, one op's behind the other's.
class ListSplit {
 public:
  ListSplit(const List& list, mlir::MLIRContext* context) : list_(list), builder_(context) {
    for (const Entry& entry : list) {
      offsets_.push_back(static_cast<int64_t>(factors_.size()));
      Operation* op = entry.op;
      auto rule = op->getAttrOfType<mlir::DictionaryAttr>(kRuleAttr);
      auto split = op->getAttrOfType<ArrayAttr>(kSplitAttr);
      if (!rule || !split) continue;
      llvm::append_range(factors_, rule.getAs<ArrayAttr>("factors"));
      llvm::append_range(axes_, split.getValue().take_front(factors_.size() - offsets_.back()));
      axes_.resize(factors_.size(), builder_.getArrayAttr({}));
    }
  }

  void describe(Operation* made) {
    describeShardings(made);
    if (factors_.empty()) return;
    llvm::SmallVector<Attribute> operands, results;
    const auto count = static_cast<unsigned>(list_.size());
    Operation* first = list_.front().op;
    const unsigned own = ownOperands(list_.front());
    for (unsigned i = 0; i < own * count; ++i) {
      operands.push_back(dimsOf("operands", i % count, i / count));
    }
    for (unsigned i = own; i < first->getNumOperands(); ++i) {
      operands.push_back(dimsOf("operands", 0, i));
    }
    for (unsigned i = 0; i < made->getNumResults(); ++i) {
      // Rounded ones are split as result 0.
      const unsigned result = i / count < first->getNumResults() ? i / count : 0;
      results.push_back(dimsOf("results", i % count, result));
    }
    auto named = [&](llvm::StringRef name, llvm::ArrayRef<Attribute> attributes) {
      return builder_.getNamedAttr(name, builder_.getArrayAttr(attributes));
    };
    made->setAttr(kRuleAttr, builder_.getDictionaryAttr(
                                 {named("factors", factors_), named("operands", operands),
                                  named("results", results), named("linear", {})}));
    made->setAttr(kSplitAttr, builder_.getArrayAttr(axes_));
  }

 private:
  // What one op's rule says of an operand or a result, in the list's factors; not cut if there is
  // no rule.
  Attribute dimsOf(llvm::StringRef tensors, unsigned entry, unsigned index) {
    Operation* op = list_[entry].op;
    auto rule = op->getAttrOfType<mlir::DictionaryAttr>(kRuleAttr);
    if (!rule) return builder_.getArrayAttr({});
    llvm::SmallVector<Attribute> dims;
    // The index where a piece begins has no dimensions.
    auto own = llvm::dyn_cast<ArrayAttr>(rule.getAs<ArrayAttr>(tensors)[index]);
    if (!own) return builder_.getArrayAttr({});
    for (Attribute dim : own) {
      llvm::SmallVector<int64_t> factors;
      for (Attribute factor : llvm::cast<ArrayAttr>(dim)) {
        factors.push_back(llvm::cast<mlir::IntegerAttr>(factor).getInt() + offsets_[entry]);
      }
      dims.push_back(builder_.getI64ArrayAttr(factors));
    }
    return builder_.getArrayAttr(dims);
  }

  void describeShardings(Operation* made) {
    llvm::SmallVector<Attribute> shardings;
    auto add = [&](Value value) {
      if (ir::ShardingAttr sharding = ir::shardingOf(value)) shardings.push_back(sharding);
    };
    Operation* first = list_.front().op;
    for (unsigned i = 0; i < first->getNumResults(); ++i) {
      for (Entry entry : list_) add(entry.op->getResult(i));
    }
    for (Entry entry : list_) {
      if (entry.rounding) add(entry.rounding.getResult());
    }
    if (shardings.size() == made->getNumResults()) {
      made->setAttr(ir::kShardingsAttr, builder_.getArrayAttr(shardings));
    }
  }

  const List& list_;
  mlir::Builder builder_;
  llvm::SmallVector<int64_t> offsets_;  // of each op's factors
  llvm::SmallVector<Attribute> factors_, axes_;
};

class ListBuilder {
 public:
  explicit ListBuilder(mlir::Block& block) : block_(block) {}

  void run() {
    for (Operation& op : block_) ops_.push_back(&op);
    for (Operation* op : ops_) visit(op);
    for (Operation* op : llvm::reverse(replaced_)) op->erase();
  }

 private:
  void visit(Operation* op) {
    if (taken_.contains(op)) return;
    // What waits, or others wait for: no step is to be late for it, or early by it.
    const bool isBetweenRanks =
        llvm::isa<ir::CollectiveOpInterface, ir::WaitOp, ir::SendOp, ir::ReceiveOp>(op);
    const bool usesOpen = llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && open_.contains(operand.getDefiningOp());
    });
    if (isBetweenRanks || usesOpen || op->hasTrait<mlir::OpTrait::IsTerminator>()) close();
    auto listed = llvm::dyn_cast<ir::ListedOpInterface>(op);
    if (!listed) return;
    Entry entry{listed, ir::roundingOf(listed)};
    auto list =
        llvm::find_if(lists_, [&](const List& one) { return areAlike(one.front(), entry); });
    if (list == lists_.end()) list = lists_.insert(lists_.end(), List());
    list->push_back(entry);
    open_.insert(op);
    if (entry.rounding) {
      taken_.insert(entry.rounding);
      open_.insert(entry.rounding);
    }
  }

  void close() {
    for (const List& list : lists_) {
      if (list.size() > 1 || list.front().rounding) build(list);
    }
    lists_.clear();
    open_.clear();
  }

  // Where the last of its ops stands.
  void build(const List& list) {
    Operation* last = list.back().op;
    mlir::OpBuilder builder(last->getContext());
    builder.setInsertionPointAfter(last);
    ir::ListedOpInterface first = list.front().op;
    const unsigned own = first.getOwnOperandCount(), results = first->getNumResults();
    llvm::SmallVector<Value> operands;
    for (unsigned i = 0; i < own; ++i) {
      for (Entry entry : list) operands.push_back(entry.op->getOperand(i));
    }
    llvm::append_range(operands, first->getOperands().drop_front(own));
    llvm::SmallVector<mlir::Type> rounded;
    for (Entry entry : list) {
      if (entry.rounding) rounded.push_back(entry.rounding.getType());
    }
    const auto count = static_cast<unsigned>(list.size());
    Operation* made = first.buildList(builder, operands, count, rounded);
    ListSplit(list, builder.getContext()).describe(made);
    for (auto [place, each] : llvm::enumerate(list)) {
      Entry entry = each;
      for (unsigned i = 0; i < results; ++i) {
        entry.op->getResult(i).replaceAllUsesWith(made->getResult(i * count + place));
      }
      replaced_.push_back(entry.op);
      if (!entry.rounding) continue;
      entry.rounding.getResult().replaceAllUsesWith(made->getResult(results * count + place));
      replaced_.push_back(entry.rounding);
    }
  }

  mlir::Block& block_;
  llvm::SmallVector<Operation*> ops_, replaced_;
  std::vector<List> lists_;
  llvm::DenseSet<Operation*> open_;   // in lists that are not built yet
  llvm::DenseSet<Operation*> taken_;  // casts that lists take over
};

struct FormLists : impl::FormListsBase<FormLists> {
  void runOnOperation() override {
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) {
      for (auto segment : program.getOps<mlir::func::FuncOp>()) {
        if (segment.getBody().hasOneBlock()) ListBuilder(segment.getBody().front()).run();
      }
    }
  }
};

}  // namespace
}  // namespace oriel
