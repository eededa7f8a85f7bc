#include "passes/stage/segment_split.h"

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/view.h"
#include "ir/oriel/location.h"
#include "llvm/ADT/SetVector.h"
#include "passes/train/isolate.h"

namespace oriel {

using ir::ValueKind;
using ir::ValueRole;
using mlir::BlockArgument;
using mlir::Operation;
using mlir::Value;

namespace {

// A value is computed again rather than sent if its ops move at most so many times its bytes: a
// device reads its memory that much faster than it gets bytes from another one, at the least.
constexpr int64_t kRecomputeBytes = 8;
constexpr size_t kRecomputeOps = 64;

int64_t bytesOf(Value value) { return ir::typesBytes(mlir::TypeRange(value.getType())); }

}  // namespace

SegmentSplit::SegmentSplit(mlir::func::FuncOp segment, std::vector<SegmentPart> parts,
                           llvm::ArrayRef<mlir::ModuleOp> programs)
    : segment_(segment),
      parts_(std::move(parts)),
      programs_(programs.begin(), programs.end()),
      builders_(parts_.size()),
      local_(parts_.size()),
      holders_(programs.size()) {}

mlir::LogicalResult SegmentSplit::readRoles() {
  for (BlockArgument argument : segment_.getArguments()) {
    mlir::FailureOr<ValueRole> role = ir::argumentRole(segment_, argument.getArgNumber());
    if (failed(role)) return mlir::failure();
    roles_[argument] = std::move(*role);
  }
  return mlir::success();
}

bool SegmentSplit::isFree(Operation* op) const {
  // Ops of the update come and go while it is split.
  if (ir::isUpdate(segment_)) return findIfFree(op);
  if (auto known = free_.find(op); known != free_.end()) return known->second;
  const bool result = findIfFree(op);
  free_[op] = result;
  return result;
}

bool SegmentSplit::findIfFree(Operation* op) const {
  if (!mlir::isPure(op) || op->getNumRegions() != 0) return false;
  auto isScalar = [&](Value value) {
    if (Operation* producer = value.getDefiningOp()) {
      return ir::rankOf(value) == 0 && isFree(producer);
    }
    return roles_.at(value).kind == ValueKind::kScalar;
  };
  if (llvm::all_of(op->getOperands(), isScalar)) return true;
  if (!isFreeToRecompute(op)) return false;
  Operation* source = op->getOperand(0).getDefiningOp();
  return !source || isFree(source);
}

void SegmentSplit::add(Operation* op, int index, Import import) {
  clone(op, index, 0, import);
  for (Value result : op->getResults()) home_[result] = index;
}

Value SegmentSplit::clone(Operation* op, int index, unsigned result, Import import) {
  mlir::IRMapping mapping;
  for (Value operand : op->getOperands()) mapping.map(operand, get(operand, index, import));
  Operation* copy = part(index).builder().clone(*op, mapping);
  for (auto [own, local] : llvm::zip_equal(op->getResults(), copy->getResults())) {
    define(own, index, local);
  }
  return op->getNumResults() == 0 ? Value() : copy->getResult(result);
}

void SegmentSplit::keepIn(BlockArgument argument, int index) {
  const ValueRole& role = roles_.at(argument);
  home_[argument] = index;
  define(argument, index, part(index).argument(role, argument.getType(), argument.getLoc()));
}

void SegmentSplit::define(Value value, int index, Value local) {
  local_[index][value] = local;
  holders_[programOf(index)].try_emplace(value, index);
}

Value SegmentSplit::get(Value value, int index, Import import) {
  if (Value known = local_[index].lookup(value)) return known;
  Value local = bring(value, index, import);
  local_[index][value] = local;
  return local;
}

Value SegmentSplit::bring(Value value, int index, Import import) {
  Operation* op = value.getDefiningOp();
  if (!op && !home_.contains(value)) {
    const ValueRole& role = roles_.at(value);
    if (Value imported = import(role, index)) return imported;
    return part(index).argument(role, value.getType(), value.getLoc());
  }
  // What only widens its operand is repeated too: the operand takes less to send.
  if (op && (isFree(op) || (isFreeToRecompute(op) && !ir::isView(op)))) {
    mlir::IRMapping mapping;
    for (Value operand : op->getOperands()) mapping.map(operand, get(operand, index, import));
    Operation* copy = part(index).builder().clone(*op, mapping);
    return copy->getResult(llvm::cast<mlir::OpResult>(value).getResultNumber());
  }
  int program = programOf(index);
  if (holder(value, program) >= 0) {
    const std::string name = addStash(
        value, program, (ir::segmentKind(segment_) + "." + llvm::Twine(stashNames_.size())).str());
    return part(index).argument({ValueKind::kStash, name, ""}, value.getType(), value.getLoc());
  }
  // What stands in a later part can't be sent here: it is computed again, too.
  if (op && (isCheap(value) || !home_.contains(value))) {
    return clone(op, index, llvm::cast<mlir::OpResult>(value).getResultNumber(), import);
  }
  int from = home_.at(value);
  Value local = transfer(local_[from].at(value), from, index, op ? ir::originOf(op) : -1);
  define(value, index, local);
  return local;
}

Value SegmentSplit::transfer(Value local, int from, int to, int64_t origin) {
  std::string segment = ir::segmentKind(segment_).str();
  auto symbol = [&](int part) { return programs_[programOf(part)].getSymName().value(); };
  std::string channel = segment + "." + std::to_string(channels_++) + "." + symbol(to).str();
  mlir::OpBuilder sender = part(from).builder();
  if (local.getDefiningOp()) sender.setInsertionPointAfterValue(local);
  ir::SendOp::create(sender, local.getLoc(), local, channel, symbol(to), origin);
  return ir::ReceiveOp::create(part(to).builder(), local.getLoc(), local.getType(), channel,
                               symbol(from), origin);
}

int SegmentSplit::holder(Value value, int program) const {
  auto found = holders_[program].find(value);
  return found == holders_[program].end() ? -1 : found->second;
}

std::string SegmentSplit::addStash(Value value, int program, const std::string& name) {
  std::string& known = stashNames_[value];
  if (known.empty()) known = name;
  int index = holder(value, program);
  ValueRole role{ValueKind::kStash, known, ""};
  if (!part(index).hasResult(role)) part(index).addResult(local_[index].at(value), role);
  return known;
}

// Made of inputs, constants and small frozen parameters by ops that move few bytes.
bool SegmentSplit::isCheap(Value value) const {
  llvm::SetVector<Operation*> cone;
  cone.insert(value.getDefiningOp());
  int64_t bytes = 0;
  for (size_t i = 0; i < cone.size(); ++i) {
    Operation* op = cone[i];
    if (cone.size() > kRecomputeOps || !mlir::isPure(op)) return false;
    auto cost = llvm::dyn_cast<ir::CostOpInterface>(op);
    if (!cost) return false;
    if (!ir::isView(op)) bytes += cost.getBytesRead() + cost.getBytesWritten();
    if (bytes > kRecomputeBytes * bytesOf(value)) return false;
    for (Value operand : op->getOperands()) {
      if (Operation* producer = operand.getDefiningOp()) {
        cone.insert(producer);
        continue;
      }
      const ValueRole& role = roles_.at(operand);
      if (role.kind == ValueKind::kInput || role.kind == ValueKind::kScalar) continue;
      if (role.kind != ValueKind::kParameter || bytesOf(operand) > bytesOf(value)) return false;
      auto module = segment_->getParentOfType<mlir::ModuleOp>();
      auto parameter = module.lookupSymbol<ir::ParameterOp>(role.ref);
      if (!parameter || parameter.getTrainable()) return false;
    }
  }
  return true;
}

SegmentBuilder& SegmentSplit::part(int index) {
  std::unique_ptr<SegmentBuilder>& builder = builders_[index];
  if (!builder) {
    builder = std::make_unique<SegmentBuilder>(programs_[programOf(index)], parts_[index].name,
                                               segment_.getLoc());
  }
  return *builder;
}

std::set<int> SegmentSplit::readersOf(const ValueRole& role) const {
  std::set<int> programs;
  for (auto [part, builder] : llvm::zip_equal(parts_, builders_)) {
    if (builder && builder->find(role)) programs.insert(part.program);
  }
  return programs;
}

void SegmentSplit::finish(const llvm::StringMap<unsigned>& rank) {
  for (std::unique_ptr<SegmentBuilder>& builder : builders_) {
    if (builder) builder->finish(rank);
  }
}

}  // namespace oriel
