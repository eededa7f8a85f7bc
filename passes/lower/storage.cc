#include "passes/lower/storage.h"

#include <algorithm>

#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/view.h"
#include "ir/oriel/segment_roles.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include "passes/lower/arena_planner.h"
#include "passes/lower/fill_value.h"
#include "passes/strategize/schedule.h"

namespace oriel {

using ir::ValueKind;
using ir::ValueRole;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;

namespace {

std::string roleKey(const ValueRole& role) {
  return (ir::stringifyValueKind(role.kind) + "|" + role.ref + "|" + role.slot).str();
}

int64_t bytesOf(mlir::RankedTensorType type) {
  return ir::typesBytes(mlir::TypeRange(llvm::ArrayRef<mlir::Type>(type)));
}

// Whether results lie where the operands of the same number do.
bool staysInPlace(Operation& op) { return llvm::isa<ir::WaitOp>(op) || ir::isView(&op); }

// Whether the op may write result `result` over operand `operand` as it reads it.
bool mayOverwrite(Operation& op, unsigned result, unsigned operand) {
  if (op.getResult(result).getType() != op.getOperand(operand).getType()) return false;
  if (auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(op)) {
    return result == operand && collective.mayReduceInPlace();
  }
  auto kernel = llvm::dyn_cast<ir::KernelOpInterface>(op);
  return kernel && kernel.mayOverwrite(result, operand);
}

// The value whose bytes these are: what a wait waits for, what a view shows.
Value sourceInPlace(Value value) {
  for (Operation* op = value.getDefiningOp(); op && staysInPlace(*op); op = value.getDefiningOp()) {
    value = op->getOperand(llvm::cast<mlir::OpResult>(value).getResultNumber());
  }
  return value;
}

// Of the segment, or of the one whose place it takes for the last microbatch.
std::string plainName(mlir::func::FuncOp segment) {
  const llvm::StringRef name = segment.getSymName();
  return plainSegment(name).value_or(name.str());
}

}  // namespace

int64_t Storage::totalBytes() const {
  return slots * static_cast<int64_t>(llvm::alignTo(bytes, kArenaAlignment));
}

// One segment while storage is assigned to its values.
struct StorageAssignment::SegmentState {
  mlir::func::FuncOp segment;
  mlir::func::ReturnOp terminator;
  int64_t endTick = 0;
  // The last tick at which a value, or a view of it, is read; the end for a result.
  llvm::DenseMap<Value, int64_t> lastUse;
  // When a collective that was started is waited for.
  llvm::DenseMap<Operation*, int64_t> waitTick;
  // The last tick at which anything held by a storage is read.
  llvm::DenseMap<StorageId, int64_t> heldUntil;
  // Arguments' storages whose new value the segment returns: their bytes are free
  // once the old value has been read.
  llvm::DenseSet<StorageId> replaced;
  // Stash that no later segment reads: its bytes are free once this one has read it.
  llvm::DenseSet<StorageId> spent;
  // Where a result of the function should be computed.
  llvm::DenseMap<Value, StorageId> target;
  std::vector<std::pair<unsigned, ValueRole>> results;
};

void StorageAssignment::align(int64_t alignment) {
  for (Storage& storage : storages_) {
    storage.bytes = static_cast<int64_t>(llvm::alignTo(storage.bytes, alignment));
  }
}

std::optional<StorageId> StorageAssignment::storageOf(Value value) const {
  auto it = storageOfValue_.find(value);
  if (it == storageOfValue_.end()) return std::nullopt;
  return it->second;
}

llvm::ArrayRef<ResultMove> StorageAssignment::movesOf(mlir::func::FuncOp segment) const {
  auto it = moves_.find(segment);
  if (it == moves_.end()) return {};
  return it->second;
}

LogicalResult StorageAssignment::run(llvm::ArrayRef<mlir::func::FuncOp> segments,
                                     MicrobatchesInFlight inFlight) {
  inFlight_ = std::move(inFlight);
  for (mlir::func::FuncOp segment : segments) {
    if (failed(noteReader(segment))) return failure();
  }
  for (mlir::func::FuncOp segment : segments) {
    if (failed(runSegment(segment))) return failure();
  }
  for (Storage& storage : storages_) {
    const bool isStash = storage.role && storage.role->kind == ValueKind::kStash;
    if (storage.persistent && !isStash) {
      storage.begin = 0;
      storage.end = now_;
      storage.gapEnd = storage.gapBegin - 1;
    }
  }
  return success();
}

// As the last one so far of the stash that it reads: segments stand in the order in which a
// microbatch goes through them.
LogicalResult StorageAssignment::noteReader(mlir::func::FuncOp segment) {
  for (mlir::BlockArgument argument : segment.getArguments()) {
    FailureOr<ValueRole> role = ir::argumentRole(segment, argument.getArgNumber());
    if (failed(role)) return failure();
    if (role->kind == ValueKind::kStash) lastReader_[role->ref] = plainName(segment);
  }
  return success();
}

LogicalResult StorageAssignment::runSegment(mlir::func::FuncOp segment) {
  SegmentState state;
  state.segment = segment;
  segmentBegin_[segment.getSymName()] = now_;
  state.terminator = llvm::cast<mlir::func::ReturnOp>(segment.getBody().front().getTerminator());
  computeLastUses(state);
  if (failed(assignArguments(state)) || failed(findTargets(state))) return failure();
  for (Operation& op : segment.getBody().front().without_terminator()) {
    assignOp(state, op);
    ++now_;
  }
  if (failed(finishSegment(state))) return failure();
  ++now_;
  ++segment_;
  return success();
}

StorageId StorageAssignment::create(Value value, std::optional<ValueRole> role, bool persistent) {
  Storage storage;
  storage.type = ir::tensorType(value);
  storage.sharding = ir::shardingOf(value);
  storage.bytes = bytesOf(storage.type);
  storage.begin = storage.end = now_;
  storage.persistent = persistent;
  storage.role = std::move(role);
  storages_.push_back(std::move(storage));
  return static_cast<StorageId>(storages_.size() - 1);
}

// The same for what sends or receives it for the last microbatch.
StorageId StorageAssignment::createTransfer(Value value, mlir::StringAttr channel, Operation* op) {
  auto [known, isNew] = transfers_.try_emplace(channel, 0);
  if (!isNew) return known->second;
  StorageId id = known->second = create(value, std::nullopt, /*persistent=*/true);
  auto segment = op->getParentOfType<mlir::func::FuncOp>();
  llvm::StringRef kind = ir::segmentKind(segment);
  bool runsPerMicrobatch = kind != "update" && kind != "eval";
  storages_[id].slots = runsPerMicrobatch ? inFlight_.transfers : 1;
  storages_[id].transfer = true;
  return id;
}

// With several microbatches in flight, no memory of the stash serves anything else.
void StorageAssignment::becomeStash(StorageId storage, const std::string& ref) {
  if (!inFlight_.stash) return;
  storages_[storage].persistent = true;
  auto slots = inFlight_.stash->find(ref);
  if (slots != inFlight_.stash->end()) storages_[storage].slots = slots->second;
}

FailureOr<StorageId> StorageAssignment::persistentStorage(Value value, const ValueRole& role,
                                                          Operation* user) {
  auto [it, inserted] = byRole_.try_emplace(roleKey(role), 0);
  if (inserted) {
    // The stash is bounded by its uses; everything else stays.
    it->second = create(value, role, role.kind != ValueKind::kStash);
  } else if (storages_[it->second].type != value.getType()) {
    return user->emitOpError("uses ") << ir::roleText(role) << " as " << value.getType()
                                      << ", but another segment as " << storages_[it->second].type;
  }
  return it->second;
}

// A value that one segment makes and that is not kept for the next step.
bool StorageAssignment::isFresh(const ValueRole& role) const {
  if (role.kind == ValueKind::kGradient) {
    auto known = byRole_.find(roleKey(role));
    return inFlight_.oneBackward &&
           (known == byRole_.end() || !storages_[known->second].persistent);
  }
  return role.kind == ValueKind::kOutput || role.kind == ValueKind::kStash;
}

// A value of the segment holds these bytes up to its last use.
void StorageAssignment::hold(SegmentState& state, Value value, StorageId storage) {
  storageOfValue_[value] = storage;
  holdUntil(state, storage, std::max(now_, state.lastUse.lookup(value)));
}

void StorageAssignment::holdUntil(SegmentState& state, StorageId storage, int64_t tick) {
  int64_t& until = state.heldUntil.try_emplace(storage, tick).first->second;
  until = std::max(until, tick);
  storages_[storage].end = std::max(storages_[storage].end, until);
  std::vector<StorageUse>& uses = storages_[storage].uses;
  if (uses.empty() || uses.back().segment != segment_) uses.push_back({segment_, now_, tick});
  uses.back().end = std::max(uses.back().end, tick);
}

void StorageAssignment::computeLastUses(SegmentState& state) {
  int64_t tick = now_;
  for (Operation& op : state.segment.getBody().front()) {
    for (Value operand : op.getOperands()) state.lastUse[operand] = tick;
    if (auto wait = llvm::dyn_cast<ir::WaitOp>(op)) {
      for (Value started : wait.getInputs()) state.waitTick[started.getDefiningOp()] = tick;
    }
    state.endTick = tick++;
  }
  // A view keeps its source in use.
  for (Operation& op : llvm::reverse(state.segment.getBody().front())) {
    if (!staysInPlace(op)) continue;
    for (mlir::OpResult result : op.getResults()) {
      int64_t& source = state.lastUse[op.getOperand(result.getResultNumber())];
      source = std::max(source, state.lastUse.lookup(result));
    }
  }
}

// A forward has written the stash anew since the segment that this one takes the place of has run.
void StorageAssignment::leaveGap(mlir::func::FuncOp segment, Storage& storage) const {
  std::optional<std::string> plain = plainSegment(segment.getSymName());
  auto begin = plain ? segmentBegin_.find(*plain) : segmentBegin_.end();
  if (begin == segmentBegin_.end() || storage.end < begin->second) return;
  storage.gapBegin = storage.end + 1;
  storage.gapEnd = now_ - 1;
}

LogicalResult StorageAssignment::assignArguments(SegmentState& state) {
  for (mlir::BlockArgument argument : state.segment.getArguments()) {
    FailureOr<ValueRole> role = ir::argumentRole(state.segment, argument.getArgNumber());
    if (failed(role)) return failure();
    if (role->kind == ValueKind::kStash && !byRole_.count(roleKey(*role))) {
      return state.segment.emitOpError("reads ")
             << ir::roleText(*role) << ", which no earlier segment writes";
    }
    if (role->kind == ValueKind::kOutput) {
      return state.segment.emitOpError("reads ")
             << ir::roleText(*role) << ", which only the host may";
    }
    FailureOr<StorageId> storage = persistentStorage(argument, *role, state.segment);
    if (failed(storage)) return failure();
    if (role->kind == ValueKind::kStash) {
      leaveGap(state.segment, storages_[*storage]);
      if (lastReader_.lookup(role->ref) == plainName(state.segment)) state.spent.insert(*storage);
    }
    hold(state, argument, *storage);
  }
  return success();
}

LogicalResult StorageAssignment::findTargets(SegmentState& state) {
  llvm::StringSet<> seen;
  const llvm::StringRef segmentName = state.segment.getSymName();
  for (mlir::OpOperand& operand : state.terminator->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    FailureOr<ValueRole> role = ir::resultRole(state.segment, index);
    if (failed(role)) return failure();
    if (!seen.insert(roleKey(*role)).second) {
      return state.segment.emitOpError("has two results for ") << ir::roleText(*role);
    }
    if (role->kind == ValueKind::kInput || role->kind == ValueKind::kScalar) {
      return state.segment.emitOpError("returns ")
             << ir::roleText(*role) << ", which only the host writes";
    }
    const bool isWritten = isFresh(*role) && byRole_.count(roleKey(*role));
    if (role->kind == ValueKind::kStash && isWritten && !plainSegment(segmentName)) {
      return state.segment.emitOpError("returns ")
             << ir::roleText(*role) << ", which an earlier segment has written";
    }
    state.results.emplace_back(index, *role);
    // But for the last microbatch, it is there as the other segment left it.
    if (isFresh(*role) && !(isWritten && plainSegment(segmentName))) continue;
    FailureOr<StorageId> storage = persistentStorage(operand.get(), *role, state.segment);
    if (failed(storage)) return failure();
    state.replaced.insert(*storage);
    if (Value made = sourceInPlace(operand.get()); made.getDefiningOp()) {
      state.target.try_emplace(made, *storage);
    }
  }
  return success();
}

void StorageAssignment::assignOp(SegmentState& state, Operation& op) {
  if (auto constant = llvm::dyn_cast<ir::ConstantOp>(op)) {
    // A splat that only becomes the new value of something is filled in at the end.
    mlir::ElementsAttr attribute = constant.getValue();
    bool onlyReturned = llvm::all_of(
        op.getUsers(), [&](Operation* user) { return user == state.terminator.getOperation(); });
    if (onlyReturned && fillValue(attribute)) return;
    auto [it, inserted] = constants_.try_emplace(attribute, 0);
    if (inserted) {
      it->second = create(constant.getResult(), std::nullopt, /*persistent=*/true);
      storages_[it->second].constant = attribute;
    }
    hold(state, constant.getResult(), it->second);
    return;
  }
  if (staysInPlace(op)) {
    for (mlir::OpResult result : op.getResults()) {
      const Value source = op.getOperand(result.getResultNumber());
      hold(state, result, storageOfValue_.at(source));
      if (isOverStash(source)) overStash_.insert(result);
    }
    return;
  }
  if (auto send = llvm::dyn_cast<ir::SendOp>(op)) {
    sent_[&op] = createTransfer(send.getInput(), send.getChannelAttr(), &op);
    return;
  }
  if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op)) {
    hold(state, receive.getResult(),
         createTransfer(receive.getResult(), receive.getChannelAttr(), &op));
    return;
  }
  OpStorages storages;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    storages.ofOperands.push_back(storageOf(operand));
    if (auto storage = storages.ofOperands.back()) storages.operands[*storage].push_back(index);
  }
  for (mlir::OpResult result : op.getResults()) {
    assignResult(state, result, storages);
    if (auto storage = storageOf(result)) storages.results.insert(*storage);
  }
  // On its way, a collective reads its operands.
  auto waited = state.waitTick.find(&op);
  if (waited == state.waitTick.end()) return;
  for (Value operand : op.getOperands()) {
    if (auto storage = storageOf(operand)) holdUntil(state, *storage, waited->second);
  }
}

// Whether the op at this tick may write over the bytes: nothing that they hold is read later,
// and they are a temporary's, a gradient's that is not kept, stash that was read for the last time,
// or get a new value in this segment.
bool StorageAssignment::isFree(const SegmentState& state, StorageId storage) const {
  const Storage& bytes = storages_[storage];
  bool writable = state.replaced.contains(storage) || state.spent.contains(storage) ||
                  (!bytes.persistent && (!bytes.role || bytes.isGradient()));
  return writable && state.heldUntil.lookup(storage) <= now_;
}

void StorageAssignment::assignResult(SegmentState& state, mlir::OpResult result,
                                     const OpStorages& storages) {
  Operation& op = *result.getOwner();
  auto heldByOther = [&](StorageId storage) {
    // Another operand or result of this very op that lies in the storage.
    auto operands = storages.operands.find(storage);
    return storages.results.contains(storage) ||
           (operands != storages.operands.end() &&
            llvm::any_of(operands->second, [&](unsigned index) {
              return !mayOverwrite(op, result.getResultNumber(), index);
            }));
  };

  auto target = state.target.find(result);
  if (target != state.target.end() && isFree(state, target->second) &&
      !heldByOther(target->second)) {
    hold(state, result, target->second);
    return;
  }
  for (auto [index, storage] : llvm::enumerate(storages.ofOperands)) {
    if (!storage || !mayOverwrite(op, result.getResultNumber(), index)) continue;
    if (storages_[*storage].bytes != bytesOf(ir::tensorType(result))) continue;
    // What is returned must outlive the new value that the storage gets at the end, and has a
    // place of its own.
    bool returned = state.lastUse.lookup(result) == state.endTick;
    if (returned && (state.replaced.contains(*storage) || state.spent.contains(*storage))) continue;
    if (isFree(state, *storage) && !heldByOther(*storage)) {
      hold(state, result, *storage);
      if (state.spent.contains(*storage)) overStash_.insert(result);
      return;
    }
  }
  hold(state, result, create(result, std::nullopt, /*persistent=*/false));
}

LogicalResult StorageAssignment::finishSegment(SegmentState& state) {
  std::vector<ResultMove> copies;  // to outputs and the stash
  std::vector<ResultMove> updates;
  for (auto& [index, role] : state.results) {
    Value value = state.terminator.getOperand(index);
    std::optional<StorageId> storage = storageOf(value);
    auto known = byRole_.find(roleKey(role));

    // A temporary becomes the output or the stash itself.
    if (isFresh(role) && known == byRole_.end() && storage && !storages_[*storage].persistent &&
        !storages_[*storage].role) {
      storages_[*storage].role = role;
      storages_[*storage].type = ir::tensorType(value);
      storages_[*storage].sharding = ir::shardingOf(value);
      if (role.kind == ValueKind::kStash) becomeStash(*storage, role.ref);
      byRole_[roleKey(role)] = *storage;
      continue;
    }
    StorageId target = known != byRole_.end() ? known->second : create(value, role, false);
    if (known == byRole_.end() && role.kind == ValueKind::kStash) becomeStash(target, role.ref);
    byRole_[roleKey(role)] = target;
    if (storage == target) continue;
    if (storages_[target].type != value.getType()) {
      return state.segment.emitOpError("returns ")
             << ir::roleText(role) << " as " << value.getType() << ", but another segment as "
             << storages_[target].type;
    }
    holdUntil(state, target, now_);
    (isFresh(role) ? copies : updates).push_back({target, value});
  }
  // Updates run in any order, so none may read an old value that another replaces.
  for (const ResultMove& update : updates) {
    std::optional<StorageId> source = storageOf(update.source);
    auto replaces = [&](const ResultMove& other) { return other.target == source; };
    if (source && llvm::any_of(updates, replaces)) {
      return state.segment.emitOpError("returns the old value of ")
             << ir::roleText(*storages_[*source].role) << " as the new one of "
             << ir::roleText(*storages_[update.target].role);
    }
  }
  // Copies first: an output may be an old value.
  llvm::append_range(copies, updates);
  moves_[state.segment] = std::move(copies);
  return success();
}

}  // namespace oriel
