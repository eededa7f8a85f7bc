#include "passes/lower/program_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "passes/strategize/schedule.h"

namespace oriel {

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;

int64_t totalBytes(const Storage& storage) {
  return storage.slots * static_cast<int64_t>(llvm::alignTo(storage.bytes, kArenaAlignment));
}

// What storage assignment relies on: one block of ops that become instructions, on tensors.
LogicalResult checkSegment(mlir::func::FuncOp segment) {
  if (!llvm::hasSingleElement(segment.getBody()) ||
      !llvm::isa<mlir::func::ReturnOp>(segment.getBody().front().back())) {
    return segment.emitOpError("is no straight line of ops");
  }
  for (mlir::Type type : segment.getArgumentTypes()) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat()) {
      return segment.emitOpError("takes ") << type << ", expected static tensors of numbers";
    }
  }
  for (Operation& op : segment.getBody().front().without_terminator()) {
    if (auto constant = llvm::dyn_cast<ir::ConstantOp>(op)) {
      if (llvm::isa<mlir::DenseElementsAttr>(constant.getValue())) continue;
      return op.emitOpError("has a value that is not dense");
    }
    if (!llvm::isa<ir::CollectiveOpInterface, ir::WaitOp, ir::SliceLocalOp, ir::SendOp,
                   ir::ReceiveOp, ir::KernelOpInterface>(op)) {
      return op.emitOpError("has no kernel and can't be lowered");
    }
  }
  return success();
}

// Offsets are below 2^62, so that no sum of two overflows.
LogicalResult checkSize(mlir::ModuleOp program, const StorageAssignment& assignment) {
  constexpr int64_t kLargest = int64_t{1} << 62;
  int64_t left = kLargest;
  for (const Storage& storage : assignment.storages()) {
    if (storage.bytes > (left - kArenaAlignment) / storage.slots) {
      return program.emitError("needs more memory than can be addressed, for a value of type ")
             << storage.type;
    }
    left -= totalBytes(storage);
  }
  return success();
}

// The segments that write each stash value and those that read it.
struct StashUse {
  std::set<std::string> writers;  // one, and what takes its place for the last microbatch
  std::set<std::string> readers;
};

mlir::FailureOr<std::map<std::string, StashUse>> stashUses(
    llvm::ArrayRef<mlir::func::FuncOp> segments) {
  std::map<std::string, StashUse> uses;
  for (mlir::func::FuncOp segment : segments) {
    for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
      mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(segment, i);
      if (failed(role)) return failure();
      if (role->kind == ir::ValueKind::kStash) {
        uses[role->ref].readers.insert(segment.getSymName().str());
      }
    }
    for (unsigned i = 0; i < segment.getNumResults(); ++i) {
      mlir::FailureOr<ir::ValueRole> role = ir::resultRole(segment, i);
      if (failed(role)) return failure();
      if (role->kind == ir::ValueKind::kStash) {
        uses[role->ref].writers.insert(segment.getSymName().str());
      }
    }
  }
  return uses;
}

// The fewest copies such that no microbatch writes one that an earlier one still reads, when
// microbatch m uses copy m modulo their number.
int64_t copiesOf(const StashUse& use, llvm::ArrayRef<ScheduleEntry> schedule) {
  std::vector<int64_t> written;        // the largest microbatch until each time
  std::map<int64_t, size_t> lastRead;  // by microbatch
  for (auto [time, entry] : llvm::enumerate(schedule)) {
    int64_t before = written.empty() ? -1 : written.back();
    written.push_back(use.writers.count(entry.segment) ? std::max(before, entry.microbatch)
                                                       : before);
    if (use.readers.count(entry.segment)) lastRead[entry.microbatch] = time;
  }
  int64_t copies = 1;
  for (auto [microbatch, time] : lastRead) {
    copies = std::max(copies, written[time] - microbatch + 1);
  }
  return copies;
}

mlir::FailureOr<MicrobatchesInFlight> microbatchesInFlight(
    mlir::ModuleOp program, llvm::ArrayRef<mlir::func::FuncOp> segments) {
  MicrobatchesInFlight inFlight;
  if (!program->getParentOp()) return inFlight;  // one stage: a microbatch after the other
  mlir::FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program);
  mlir::FailureOr<std::map<std::string, StashUse>> uses = stashUses(segments);
  if (failed(schedule) || failed(uses)) return failure();
  inFlight.stash.emplace();
  std::map<std::pair<std::set<std::string>, std::set<std::string>>, int64_t> known;
  for (const auto& [ref, use] : *uses) {
    auto [copies, isNew] = known.try_emplace({use.writers, use.readers}, 0);
    if (isNew) copies->second = copiesOf(use, *schedule);
    (*inFlight.stash)[ref] = copies->second;
  }
  for (const ScheduleEntry& entry : *schedule) {
    if (entry.microbatch > 0) inFlight.transfers = 2;
  }
  return inFlight;
}

// Which storages only carry what ranks exchange.
std::vector<bool> communicationIn(llvm::ArrayRef<mlir::func::FuncOp> segments,
                                  const StorageAssignment& assignment) {
  std::vector<bool> communication(assignment.storages().size());
  for (auto [id, storage] : llvm::enumerate(assignment.storages())) {
    communication[id] = storage.transfer;
  }
  auto mark = [&](Value value) {
    if (std::optional<StorageId> id = assignment.storageOf(value)) communication[*id] = true;
  };
  for (mlir::func::FuncOp segment : segments) {
    for (Operation& op : segment.getBody().front().without_terminator()) {
      if (!llvm::isa<ir::CollectiveOpInterface>(op)) continue;
      for (Value result : op.getResults()) mark(result);
      for (Value operand : op.getOperands()) {
        if (operand.hasOneUse() && operand.getDefiningOp()) mark(operand);
      }
    }
  }
  return communication;
}

}  // namespace

mlir::FailureOr<ProgramMemory> ProgramMemory::of(mlir::ModuleOp program) {
  llvm::SmallVector<mlir::func::FuncOp> segments(program.getOps<mlir::func::FuncOp>());
  if (segments.empty()) return program.emitError("has no segment to lower");
  for (mlir::func::FuncOp segment : segments) {
    if (failed(checkSegment(segment))) return failure();
  }
  mlir::FailureOr<MicrobatchesInFlight> inFlight = microbatchesInFlight(program, segments);
  ProgramMemory memory;
  if (failed(inFlight) || failed(memory.assignment_.run(segments, *std::move(inFlight))) ||
      failed(checkSize(program, memory.assignment_))) {
    return failure();
  }
  memory.communication_ = communicationIn(segments, memory.assignment_);
  return memory;
}

int64_t ProgramMemory::bytesOf(StorageId storage) const {
  return totalBytes(assignment_.storages()[storage]);
}

MemoryUse ProgramMemory::useOf(StorageId id) const {
  const Storage& storage = assignment_.storages()[id];
  if (storage.role) {
    switch (storage.role->kind) {
      case ir::ValueKind::kParameter:
        return MemoryUse::kParameters;
      case ir::ValueKind::kGradient:
        return MemoryUse::kGradients;
      case ir::ValueKind::kOptimizerState:
        return MemoryUse::kOptimizerState;
      case ir::ValueKind::kStash:
        return MemoryUse::kStash;
      case ir::ValueKind::kOutput:
        return MemoryUse::kTemporaries;
      case ir::ValueKind::kAccumulator:
      case ir::ValueKind::kInput:
      case ir::ValueKind::kScalar:
        return MemoryUse::kOther;
    }
  }
  if (storage.constant) return MemoryUse::kOther;
  return communication_[id] ? MemoryUse::kCommunication : MemoryUse::kTemporaries;
}

MemoryPeak ProgramMemory::peak() const {
  llvm::ArrayRef<Storage> storages = assignment_.storages();
  std::vector<ArenaBlock> blocks;
  for (auto [id, storage] : llvm::enumerate(storages)) {
    blocks.push_back({storage.begin, storage.end, bytesOf(id), storage.gapBegin, storage.gapEnd});
  }
  const ArenaPeak instant = peakOf(blocks);
  MemoryPeak peak;
  peak.bytes = instant.bytes;
  peak.tick = instant.time;
  for (auto [id, block] : llvm::enumerate(blocks)) {
    if (block.begin > instant.time || block.end < instant.time) continue;
    if (block.gapBegin <= instant.time && instant.time <= block.gapEnd) continue;
    peak.bytesOf[static_cast<size_t>(useOf(id))] += block.bytes;
    peak.inUse.push_back(id);
  }
  llvm::stable_sort(peak.inUse,
                    [&](StorageId a, StorageId b) { return blocks[a].bytes > blocks[b].bytes; });
  return peak;
}

ArenaLayout ProgramMemory::place() const {
  llvm::ArrayRef<Storage> storages = assignment_.storages();
  std::vector<int64_t> offsets(storages.size(), 0);
  int64_t top = 0;
  auto placePersistent = [&](bool gradients) {
    for (auto [id, storage] : llvm::enumerate(storages)) {
      bool isGradient = storage.role && storage.role->kind == ir::ValueKind::kGradient;
      if (!storage.persistent || isGradient != gradients) continue;
      offsets[id] = top;
      top += totalBytes(storage);
    }
  };
  placePersistent(false);
  placePersistent(true);
  std::vector<ArenaBlock> blocks;
  std::vector<size_t> ids;
  for (auto [id, storage] : llvm::enumerate(storages)) {
    if (storage.persistent) continue;
    blocks.push_back({storage.begin, storage.end, storage.bytes, storage.gapBegin, storage.gapEnd});
    ids.push_back(id);
  }
  ArenaLayout shared = planArena(blocks);
  for (auto [id, offset] : llvm::zip_equal(ids, shared.offsets)) offsets[id] = top + offset;
  return {std::move(offsets), top + shared.bytes, top + shared.lowerBound};
}

}  // namespace oriel
