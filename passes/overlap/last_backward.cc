#include "passes/overlap/last_backward.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/strategize/schedule.h"

namespace oriel {

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

constexpr llvm::StringLiteral kUpdate("update");

// Collectives one behind the other that reduce a gradient, by what each of them is used for: its
// operand.
using Reductions = llvm::SmallVector<std::pair<Operation*, unsigned>, 2>;

// Of what only they use.
Reductions reductionsOf(Value value) {
  Reductions result;
  while (value.hasOneUse()) {
    mlir::OpOperand& use = *value.use_begin();
    auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(use.getOwner());
    if (!collective || !collective.getReductionName()) break;
    result.emplace_back(collective, use.getOperandNumber());
    value = collective->getResult(use.getOperandNumber());
  }
  return result;
}

// Operand and result of this number, as an op of its own.
Value cloneOne(mlir::OpBuilder& builder, Operation* op, unsigned number, Value operand) {
  mlir::OperationState state(op->getLoc(), op->getName());
  state.addOperands(operand);
  state.addTypes(op->getResult(number).getType());
  state.addAttributes(op->getAttrs());
  if (auto shardings = op->getAttrOfType<mlir::ArrayAttr>(ir::kShardingsAttr)) {
    state.attributes.set(ir::kShardingsAttr, builder.getArrayAttr(shardings[number]));
  }
  return builder.create(state)->getResult(0);
}

// The op less the operands and results of these numbers.
void removeOperands(Operation* op, const llvm::SmallDenseSet<unsigned>& numbers) {
  mlir::OpBuilder builder(op);
  mlir::OperationState state(op->getLoc(), op->getName());
  state.addAttributes(op->getAttrs());
  llvm::SmallVector<mlir::Attribute> shardings;
  auto old = op->getAttrOfType<mlir::ArrayAttr>(ir::kShardingsAttr);
  llvm::SmallVector<Value> kept;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (numbers.contains(i)) continue;
    state.addOperands(op->getOperand(i));
    state.addTypes(op->getResult(i).getType());
    kept.push_back(op->getResult(i));
    if (old) shardings.push_back(old[i]);
  }
  if (!kept.empty()) {
    if (old) state.attributes.set(ir::kShardingsAttr, builder.getArrayAttr(shardings));
    for (auto [value, replacement] : llvm::zip_equal(kept, builder.create(state)->getResults())) {
      value.replaceAllUsesWith(replacement);
    }
  }
  op->erase();
}

// A gradient whose reductions move.
struct Moved {
  std::string ref;
  unsigned argument;  // of update
  unsigned result;    // of the segment that adds the last part to it
  Reductions reductions;
};

class LastBackward {
 public:
  LastBackward(mlir::ModuleOp program, FuncOp update, std::vector<ScheduleEntry> schedule)
      : program_(program), update_(update), schedule_(std::move(schedule)) {}

  LogicalResult run() {
    if (failed(findLastResults())) return failure();
    std::map<size_t, std::vector<Moved>> moved;  // by the run that adds the last part
    for (mlir::BlockArgument argument : update_.getArguments()) {
      FailureOr<ValueRole> role = ir::argumentRole(update_, argument.getArgNumber());
      if (failed(role)) return failure();
      if (role->kind != ValueKind::kGradient) continue;
      Reductions reductions = reductionsOf(argument);
      if (reductions.empty()) continue;
      auto last = lastResults_.find(*role);
      if (last == lastResults_.end()) continue;
      const auto [run, result] = last->second;
      moved[run].push_back({role->ref, argument.getArgNumber(), result, std::move(reductions)});
    }
    if (moved.empty()) return success();
    for (const auto& [run, gradients] : moved) {
      if (failed(move(run, gradients))) return failure();
    }
    finishUpdate();
    setSchedule(program_, schedule_);
    return success();
  }

 private:
  // A value that update takes from a segment of the last microbatch.
  struct Piece {
    mlir::Type type;
    mlir::DictionaryAttr attributes;
    Value replaced;
  };

  LogicalResult findLastResults() {
    llvm::StringSet<> seen;
    for (size_t run = schedule_.size(); run-- > 0;) {
      if (!seen.insert(schedule_[run].segment).second) continue;
      auto segment = program_.lookupSymbol<FuncOp>(schedule_[run].segment);
      if (!segment || segment == update_) continue;
      for (unsigned i = 0; i < segment.getNumResults(); ++i) {
        FailureOr<ValueRole> role = ir::resultRole(segment, i);
        if (failed(role)) return failure();
        lastResults_.try_emplace(*role, run, i);
      }
    }
    return success();
  }

  LogicalResult move(size_t run, const std::vector<Moved>& gradients) {
    ScheduleEntry& entry = schedule_[run];
    auto plain = program_.lookupSymbol<FuncOp>(entry.segment);
    const std::string name = lastSegment(entry.segment);
    const bool others = llvm::count_if(schedule_, [&](const ScheduleEntry& other) {
                          return other.segment == entry.segment;
                        }) > 1;
    FuncOp last = plain;
    if (others) {
      mlir::OpBuilder builder(plain);
      builder.setInsertionPointAfter(plain);
      last = llvm::cast<FuncOp>(builder.clone(*plain));
    }
    last.setSymName(name);
    entry.segment = name;
    microbatch_ = std::max(microbatch_, entry.microbatch);
    return reduceIn(last, gradients);
  }

  LogicalResult reduceIn(FuncOp last, const std::vector<Moved>& gradients) {
    Operation* terminator = last.getBody().front().getTerminator();
    mlir::OpBuilder builder(terminator);
    llvm::SmallVector<mlir::DictionaryAttr> attributes;
    last.getAllResultAttrs(attributes);
    llvm::SmallVector<mlir::Type> types(last.getResultTypes());
    for (const Moved& gradient : gradients) {
      Value value = terminator->getOperand(gradient.result);
      const mlir::Type type = value.getType();
      // Where the gradient is there, so that buckets are filled in that order.
      if (Operation* source = value.getDefiningOp()) builder.setInsertionPointAfter(source);
      for (auto [op, number] : gradient.reductions) value = cloneOne(builder, op, number, value);
      auto [op, number] = gradient.reductions.back();
      Value reduced = op->getResult(number);
      mlir::Attribute sharding = ir::shardingOf(value);
      if (value.getType() == type) {
        // In the gradient's place.
        terminator->setOperand(gradient.result, value);
        attributes[gradient.result] = withSharding(attributes[gradient.result], sharding);
        shardings_[gradient.argument] = sharding;
        reduced.replaceAllUsesWith(update_.getArgument(gradient.argument));
      } else {
        mlir::DictionaryAttr role =
            withSharding(ir::roleAttributes(program_.getContext(),
                                            {ValueKind::kStash, "reduced." + gradient.ref, ""}),
                         sharding);
        terminator->insertOperands(terminator->getNumOperands(), value);
        types.push_back(value.getType());
        attributes.push_back(role);
        pieces_.push_back({value.getType(), role, reduced});
      }
      for (auto [collective, operand] : gradient.reductions) removed_[collective].insert(operand);
    }
    last.setFunctionType(
        mlir::FunctionType::get(program_.getContext(), last.getArgumentTypes(), types));
    last.setAllResultAttrs(attributes);
    return success();
  }

  static mlir::DictionaryAttr withSharding(mlir::DictionaryAttr old, mlir::Attribute sharding) {
    mlir::NamedAttrList list(old);
    if (sharding) list.set(ir::kShardingAttr, sharding);
    return list.getDictionary(old.getContext());
  }

  void finishUpdate() {
    llvm::SmallVector<mlir::DictionaryAttr> attributes;
    update_.getAllArgAttrs(attributes);
    for (auto [argument, sharding] : shardings_) {
      attributes[argument] = withSharding(attributes[argument], sharding);
    }
    llvm::SmallVector<mlir::Type> types(update_.getArgumentTypes());
    for (const Piece& piece : pieces_) {
      types.push_back(piece.type);
      attributes.push_back(piece.attributes);
      Value argument = update_.getBody().front().addArgument(piece.type, update_.getLoc());
      mlir::Value replaced = piece.replaced;
      replaced.replaceAllUsesWith(argument);
    }
    update_.setFunctionType(
        mlir::FunctionType::get(program_.getContext(), types, update_.getResultTypes()));
    update_.setAllArgAttrs(attributes);
    // Users first.
    llvm::SmallVector<Operation*> ops;
    for (Operation& op : update_.getBody().front()) {
      if (removed_.count(&op)) ops.push_back(&op);
    }
    for (Operation* op : llvm::reverse(ops)) removeOperands(op, removed_[op]);
    if (pieces_.empty()) return;
    for (ScheduleEntry& entry : schedule_) {
      if (entry.segment == kUpdate) entry.microbatch = microbatch_;
    }
  }

  mlir::ModuleOp program_;
  FuncOp update_;
  std::vector<ScheduleEntry> schedule_;
  int64_t microbatch_ = 0;  // the last one
  // What segments but update return: the last run in the schedule that does, and as which result.
  std::map<ValueRole, std::pair<size_t, unsigned>> lastResults_;
  std::map<unsigned, mlir::Attribute> shardings_;  // new ones, of update's arguments
  std::vector<Piece> pieces_;                      // new arguments of update
  llvm::DenseMap<Operation*, llvm::SmallDenseSet<unsigned>> removed_;  // operands, from update
};

}  // namespace

LogicalResult reduceInLastBackward(mlir::ModuleOp program) {
  auto update = program.lookupSymbol<FuncOp>(kUpdate);
  FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program);
  if (failed(schedule)) return failure();
  if (!update || schedule->empty()) return success();
  return LastBackward(program, update, *std::move(schedule)).run();
}

LogicalResult alignUpdates(llvm::ArrayRef<mlir::ModuleOp> programs) {
  std::vector<std::vector<ScheduleEntry>> schedules;
  int64_t microbatch = 0;
  for (mlir::ModuleOp program : programs) {
    FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program);
    if (failed(schedule)) return failure();
    for (const ScheduleEntry& entry : *schedule) {
      if (entry.segment == kUpdate) microbatch = std::max(microbatch, entry.microbatch);
    }
    schedules.push_back(*std::move(schedule));
  }
  if (microbatch == 0) return success();
  for (auto [program, schedule] : llvm::zip_equal(programs, schedules)) {
    for (ScheduleEntry& entry : schedule) {
      if (entry.segment == kUpdate) entry.microbatch = microbatch;
    }
    setSchedule(program, schedule);
  }
  return success();
}

}  // namespace oriel
