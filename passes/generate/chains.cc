#include "passes/generate/chains.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/view.h"
#include "ir/scalar/scalar.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/generate/row_space.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

// Of a launch: kernel parameters are few, and what a thread holds is in registers.
constexpr size_t kMaxOps = 24;
constexpr size_t kMaxValues = 12;  // operands and results
// Each computes what it reduces from the operands.
constexpr int kMaxReductions = 4;

llvm::ArrayRef<int64_t> shapeOf(Operation* op) { return ir::shapeOf(op->getResult(0)); }

bool takesType(mlir::Type type) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() > 0 &&
         ir::computeType(tensor.getElementType());
}

class Chains {
 public:
  explicit Chains(mlir::Block& block) {
    for (Operation& op : block) {
      place_[&op] = static_cast<int64_t>(ops_.size());
      ops_.push_back(&op);
    }
  }

  std::vector<Chain> find() {
    for (Operation* op : ops_) {
      if (!canGenerate(op)) continue;
      int id = static_cast<int>(chains_.size());
      chains_.push_back(*chainOf({op}));
      chainOf_[op] = id;
      // What has ended last first: then less lies between the next one and the op.
      llvm::SmallVector<Value> operands(op->getOperands());
      llvm::stable_sort(operands, [&](Value a, Value b) { return endOf(a) > endOf(b); });
      for (Value operand : operands) join(operand, id);
    }
    std::vector<Chain> result;
    for (Chain& chain : chains_) {
      const bool isRead = !chain.ops.empty() && !chain.results.empty();
      if (isRead && isWorthwhile(chain)) result.push_back(std::move(chain));
    }
    return result;
  }

 private:
  bool isIn(const Chain& chain, Operation* op) const {
    return std::find(chain.ops.begin(), chain.ops.end(), op) != chain.ops.end();
  }

  // Whether the ops go along one shape, or along rows of one.
  static bool goAlike(llvm::ArrayRef<Operation*> ops) {
    if (!llvm::any_of(ops, llvm::IsaPred<ir::RowReductionOpInterface>)) {
      return llvm::all_of(ops, [&](Operation* op) { return shapeOf(op) == shapeOf(ops.front()); });
    }
    std::optional<RowSpace> space = rowSpaceOf(ops);
    return space &&
           llvm::count_if(ops, llvm::IsaPred<ir::RowReductionOpInterface>) <= kMaxReductions &&
           fitRows(ops, *space);
  }

  // One op alone has a kernel already; but an approximation has to be the same one everywhere.
  static bool isWorthwhile(Chain& chain) {
    if (chain.ops.size() > 1) return true;
    auto scalar = llvm::dyn_cast<ir::ScalarOpInterface>(chain.ops.front());
    if (scalar && !scalar.isApproximated()) return false;
    std::optional<RuleAndSplit> rule = joinedRule(chain.ops, chain.operands, chain.results);
    if (rule) chain.rule = *rule;
    return rule.has_value();
  }

  // Where the chain that makes the value ends; -1 for none.
  int64_t endOf(Value value) const {
    auto found = value.getDefiningOp() ? chainOf_.find(value.getDefiningOp()) : chainOf_.end();
    return found == chainOf_.end() ? -1 : end(chains_[found->second]);
  }

  // Adds the chain that makes the value to the chain `id`, whose last op has just been met.
  void join(Value value, int id) {
    Operation* producer = value.getDefiningOp();
    auto found = producer ? chainOf_.find(producer) : chainOf_.end();
    if (found == chainOf_.end() || found->second == id) return;
    const int other = found->second;
    const Chain &first = chains_[other], &last = chains_[id];
    std::vector<Operation*> ops = first.ops;
    ops.insert(ops.end(), last.ops.begin(), last.ops.end());
    llvm::sort(ops, [&](Operation* a, Operation* b) { return place_[a] < place_[b]; });
    if (!goAlike(ops)) return;
    std::optional<Chain> joined = chainOf(std::move(ops));
    if (!joined || !mayMove(first, *joined) || !fitsMemory(first, *joined)) return;
    for (Operation* op : first.ops) chainOf_[op] = id;
    chains_[other] = {};
    chains_[id] = *std::move(joined);
  }

  // None if they can't be one launch.
  std::optional<Chain> chainOf(std::vector<Operation*> ops) const {
    Chain chain;
    chain.ops = std::move(ops);
    llvm::SetVector<Value> operands, results;
    for (Operation* op : chain.ops) {
      for (Value operand : op->getOperands()) {
        Operation* producer = operand.getDefiningOp();
        if (!producer || !isIn(chain, producer)) operands.insert(operand);
      }
      for (Value result : op->getResults()) {
        if (llvm::any_of(result.getUsers(), [&](Operation* user) { return !isIn(chain, user); })) {
          results.insert(result);
        }
      }
    }
    chain.operands.assign(operands.begin(), operands.end());
    chain.results.assign(results.begin(), results.end());
    if (chain.ops.size() == 1) return chain;
    if (chain.ops.size() > kMaxOps || operands.size() + results.size() > kMaxValues) {
      return std::nullopt;
    }
    std::optional<RuleAndSplit> rule = joinedRule(chain.ops, chain.operands, chain.results);
    if (!rule) return std::nullopt;
    chain.rule = *rule;
    return chain;
  }

  int64_t end(const Chain& chain) const { return place_.lookup(chain.ops.back()); }

  // Whether `first` may run where `joined` ends: nobody else wants its values before.
  bool mayMove(const Chain& first, const Chain& joined) const {
    for (Value value : first.results) {
      for (Operation* user : value.getUsers()) {
        if (!isIn(joined, user) && place_.lookup(user) < end(joined)) return false;
      }
    }
    return true;
  }

  // Whether values take no more memory between the end of `first` and the end of `joined` if it
  // runs there: its operands that nobody reads later are then held instead of its values that
  // nobody else reads.
  bool fitsMemory(const Chain& first, const Chain& joined) const {
    bool adjacent = true;
    for (int64_t i = end(first) + 1; i < end(joined); ++i) {
      Operation* between = ops_[i];
      const bool runs = !ir::isView(between) && !between->hasTrait<mlir::OpTrait::ConstantLike>();
      if (runs && !isIn(joined, between)) adjacent = false;
    }
    if (adjacent) return true;
    int64_t held = 0, freed = 0;
    for (Value operand : first.operands) {
      if (lastUse(operand) < end(joined)) held += ir::typeBytes(operand.getType());
    }
    for (Value value : first.results) {
      if (!llvm::is_contained(joined.results, value)) freed += ir::typeBytes(value.getType());
    }
    return held <= freed;
  }

  // The last place where the value or a view of it is read.
  int64_t lastUse(Value value) const {
    int64_t last = -1;
    for (Operation* user : value.getUsers()) {
      last = std::max(last, place_.lookup(user));
      if (!ir::isView(user)) continue;
      for (Value view : user->getResults()) last = std::max(last, lastUse(view));
    }
    return last;
  }

  std::vector<Operation*> ops_;
  llvm::DenseMap<Operation*, int64_t> place_;
  std::vector<Chain> chains_;  // empty: joined to another one
  llvm::DenseMap<Operation*, int> chainOf_;
};

}  // namespace

bool canGenerate(Operation* op) {
  // Whether it can is known once it has.
  mlir::Block scratch;
  mlir::OpBuilder builder(op->getContext());
  builder.setInsertionPointToStart(&scratch);
  if (auto reduction = llvm::dyn_cast<ir::RowReductionOpInterface>(op)) {
    if (!rowSpaceOf(op) || !takesType(op->getOperand(0).getType()) ||
        !takesType(op->getResult(0).getType())) {
      return false;
    }
    auto operand = ir::tensorType(op->getOperand(0));
    mlir::Type element = ir::computeType(operand.getElementType());
    return static_cast<bool>(reduction.buildStart(builder, op->getLoc(), element));
  }
  auto scalar = llvm::dyn_cast<ir::ScalarOpInterface>(op);
  if (!scalar || !op->hasTrait<ir::Pointwise>() || op->getNumResults() == 0 ||
      !llvm::all_of(op->getOperandTypes(), takesType) ||
      !llvm::all_of(op->getResultTypes(), takesType)) {
    return false;
  }
  for (mlir::Type type : op->getResultTypes()) {
    if (llvm::cast<RankedTensorType>(type).getShape() != shapeOf(op)) return false;
  }
  for (mlir::Type type : op->getOperandTypes()) {
    auto element = llvm::cast<RankedTensorType>(type).getElementType();
    scratch.addArgument(ir::computeType(element), op->getLoc());
  }
  llvm::SmallVector<Value> results;
  return succeeded(scalar.buildScalar(builder, op->getLoc(), scratch.getArguments(), results));
}

std::vector<Chain> findChains(mlir::Block& block) { return Chains(block).find(); }

}  // namespace oriel
