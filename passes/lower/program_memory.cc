#include "passes/lower/program_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseSet.h"
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
    left -= storage.totalBytes();
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

// Of one stage: a microbatch after the other.
bool hasSeveralInFlight(mlir::ModuleOp program) { return program->getParentOp() != nullptr; }

mlir::FailureOr<MicrobatchesInFlight> microbatchesInFlight(
    mlir::ModuleOp program, llvm::ArrayRef<mlir::func::FuncOp> segments,
    llvm::ArrayRef<ScheduleEntry> schedule) {
  MicrobatchesInFlight inFlight;
  if (!hasSeveralInFlight(program)) {
    inFlight.oneBackward = llvm::count_if(schedule, [](const ScheduleEntry& entry) {
                             return llvm::StringRef(entry.segment).starts_with("backward");
                           }) == 1;
    return inFlight;
  }
  mlir::FailureOr<std::map<std::string, StashUse>> uses = stashUses(segments);
  if (failed(uses)) return failure();
  inFlight.stash.emplace();
  std::map<std::pair<std::set<std::string>, std::set<std::string>>, int64_t> known;
  for (const auto& [ref, use] : *uses) {
    auto [copies, isNew] = known.try_emplace({use.writers, use.readers}, 0);
    if (isNew) copies->second = copiesOf(use, schedule);
    (*inFlight.stash)[ref] = copies->second;
  }
  for (const ScheduleEntry& entry : schedule) {
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

// The first tick of each segment, and the end of the last one.
std::vector<int64_t> beginsOf(llvm::ArrayRef<mlir::func::FuncOp> segments) {
  std::vector<int64_t> begins = {0};
  for (mlir::func::FuncOp segment : segments) {
    const auto ops = static_cast<int64_t>(segment.getBody().front().getOperations().size());
    begins.push_back(begins.back() + ops);
  }
  return begins;
}

// Behind the schedule, what it does not run: one segment (stage of eval) after the other.
std::vector<SegmentRun> runsOf(llvm::ArrayRef<mlir::func::FuncOp> segments,
                               llvm::ArrayRef<ScheduleEntry> schedule) {
  llvm::StringMap<size_t> numbers;
  for (auto [number, segment] : llvm::enumerate(segments)) {
    numbers[mlir::func::FuncOp(segment).getSymName()] = number;
  }
  std::vector<SegmentRun> runs;
  for (const ScheduleEntry& entry : schedule) {
    auto number = numbers.find(entry.segment);
    if (number != numbers.end()) runs.emplace_back(number->second, entry.microbatch);
  }
  llvm::DenseSet<size_t> scheduled;
  for (const SegmentRun& run : runs) scheduled.insert(run.first);
  for (size_t number = 0; number < segments.size(); ++number) {
    if (!scheduled.contains(number)) runs.emplace_back(number, 0);
  }
  return runs;
}

bool isIn(const std::vector<TimeSpan>& spans, int64_t time) {
  return llvm::any_of(spans,
                      [&](const TimeSpan& span) { return span.begin <= time && time <= span.end; });
}

}  // namespace

mlir::FailureOr<ProgramMemory> ProgramMemory::of(mlir::ModuleOp program, int64_t alignment) {
  llvm::SmallVector<mlir::func::FuncOp> segments(program.getOps<mlir::func::FuncOp>());
  if (segments.empty()) return program.emitError("has no segment to lower");
  for (mlir::func::FuncOp segment : segments) {
    if (failed(checkSegment(segment))) return failure();
  }
  mlir::FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program);
  if (failed(schedule)) return failure();
  mlir::FailureOr<MicrobatchesInFlight> inFlight =
      microbatchesInFlight(program, segments, *schedule);
  ProgramMemory memory;
  memory.segments_.assign(segments.begin(), segments.end());
  for (mlir::func::FuncOp segment : segments) {
    memory.isScheduled_.push_back(schedule->empty() ||
                                  llvm::any_of(*schedule, [&](const ScheduleEntry& entry) {
                                    return entry.segment == segment.getSymName();
                                  }));
  }
  if (failed(inFlight) || failed(memory.assignment_.run(segments, *std::move(inFlight))) ||
      failed(checkSize(program, memory.assignment_))) {
    return failure();
  }
  memory.assignment_.align(alignment);
  memory.communication_ = communicationIn(segments, memory.assignment_);
  if (hasSeveralInFlight(program)) {
    memory.clock_.emplace(beginsOf(segments), runsOf(segments, *schedule));
  }
  for (const Storage& storage : memory.assignment_.storages()) {
    memory.fewest_.push_back(storage.slots);
  }
  return memory;
}

int64_t ProgramMemory::bytesOf(StorageId storage) const {
  return assignment_.storages()[storage].totalBytes();
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

bool ProgramMemory::isOnClock(const Storage& storage) const {
  return clock_.has_value() && (storage.isStash() || (storage.slots > 1 && !storage.transfer));
}

std::vector<int64_t> ProgramMemory::bytesByTick() const {
  int64_t end = 1;
  for (const Storage& storage : assignment_.storages()) end = std::max(end, storage.end + 2);
  std::vector<int64_t> bytes(end);  // the change from the tick before
  for (auto [id, storage] : llvm::enumerate(assignment_.storages())) {
    if (isOnClock(storage)) continue;
    bytes[storage.persistent ? 0 : storage.begin] += bytesOf(id);
    bytes[storage.persistent ? end - 1 : storage.end + 1] -= bytesOf(id);
    if (storage.persistent || storage.gapEnd < storage.gapBegin) continue;
    bytes[storage.gapBegin] -= bytesOf(id);
    bytes[storage.gapEnd + 1] += bytesOf(id);
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

std::vector<MemoryAtOp> ProgramMemory::atOps() const {
  using Bytes = std::array<int64_t, kMemoryUses>;
  const std::vector<int64_t> begins = beginsOf(segments_);
  auto sum = [](std::vector<Bytes>& changes) {
    for (size_t i = 1; i < changes.size(); ++i) {
      for (size_t use = 0; use < kMemoryUses; ++use) changes[i][use] += changes[i - 1][use];
    }
  };
  std::vector<Bytes> byTick(begins.back() + 2), byTime(clock_ ? clock_->end() + 1 : 0);
  for (auto [id, storage] : llvm::enumerate(assignment_.storages())) {
    const auto use = static_cast<size_t>(useOf(id));
    if (isOnClock(storage)) {
      const int64_t bytes = bytesOf(id) / storage.slots;
      for (const ArenaCopy& copy : clock_->copiesOf(storage)) {
        for (const TimeSpan& span : copy.among) {
          byTime[span.begin][use] += bytes;
          byTime[span.end + 1][use] -= bytes;
        }
      }
      continue;
    }
    auto add = [&](int64_t begin, int64_t end, int64_t bytes) {
      byTick[begin][use] += bytes;
      byTick[end + 1][use] -= bytes;
    };
    if (storage.persistent) {
      add(0, begins.back(), bytesOf(id));
      continue;
    }
    add(storage.begin, storage.end, bytesOf(id));
    if (storage.gapBegin <= storage.gapEnd) add(storage.gapBegin, storage.gapEnd, -bytesOf(id));
  }
  sum(byTick);
  sum(byTime);
  auto totalOf = [](const Bytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  };
  std::vector<MemoryAtOp> result;
  for (auto [number, segment] : llvm::enumerate(segments_)) {
    std::vector<int64_t> times;  // at which its runs begin
    if (clock_) {
      for (const CopyClock::Run& run : clock_->runs()) {
        if (run.segment == number) times.push_back(run.begin);
      }
    }
    mlir::Block& body = mlir::func::FuncOp(segment).getBody().front();
    for (auto [index, op] : llvm::enumerate(body)) {
      MemoryAtOp at{&op, {}};
      for (int64_t time : times) {
        const Bytes& own = byTime[time + static_cast<int64_t>(index)];
        if (totalOf(own) > totalOf(at.bytesOf)) at.bytesOf = own;
      }
      const Bytes& shared = byTick[begins[number] + static_cast<int64_t>(index)];
      for (size_t use = 0; use < kMemoryUses; ++use) at.bytesOf[use] += shared[use];
      result.push_back(at);
    }
  }
  return result;
}

std::vector<MemoryStay> ProgramMemory::stays() const {
  std::vector<MemoryStay> stays;
  const std::vector<int64_t> begins = beginsOf(segments_);
  auto isEvaluated = [&](int64_t tick) {  // but not trained
    const auto next = std::upper_bound(begins.begin(), begins.end() - 1, tick);
    return !isScheduled_[next - begins.begin() - 1];
  };
  // The part of these ticks that is within the runs of segments.
  auto addTicks = [&](StorageId id, int64_t bytes, TimeSpan ticks) {
    if (ticks.begin > ticks.end || isEvaluated(ticks.begin)) return;
    if (!clock_) return stays.push_back({id, bytes, ticks});
    for (const CopyClock::Run& run : clock_->runs()) {
      const TimeSpan own = clock_->ticksOf(run.segment);
      const TimeSpan both = {std::max(own.begin, ticks.begin), std::min(own.end, ticks.end)};
      if (both.begin > both.end) continue;
      const int64_t shift = run.begin - own.begin;
      stays.push_back({id, bytes, {both.begin + shift, both.end + shift}});
    }
  };
  for (auto [number, storage] : llvm::enumerate(assignment_.storages())) {
    const auto id = static_cast<StorageId>(number);
    const int64_t bytes = bytesOf(id) / storage.slots;
    if (isOnClock(storage)) {
      for (const ArenaCopy& copy : clock_->copiesOf(storage)) {
        for (const TimeSpan& span : copy.among) stays.push_back({id, bytes, span});
      }
    } else if (!storage.persistent) {
      const bool hasGap = storage.gapBegin <= storage.gapEnd;
      addTicks(id, bytesOf(id), {storage.begin, hasGap ? storage.gapBegin - 1 : storage.end});
      if (hasGap) addTicks(id, bytesOf(id), {storage.gapEnd + 1, storage.end});
    }
  }
  llvm::stable_sort(
      stays, [](const MemoryStay& a, const MemoryStay& b) { return a.span.begin < b.span.begin; });
  return stays;
}

MemoryPeak ProgramMemory::peak() const {
  llvm::ArrayRef<Storage> storages = assignment_.storages();
  const std::vector<int64_t> byTick = bytesByTick();
  MemoryPeak peak;
  auto largest = std::max_element(byTick.begin(), byTick.end());
  peak.bytes = *largest;
  peak.tick = largest - byTick.begin();
  int64_t time = -1;  // of the clock
  llvm::DenseMap<StorageId, std::vector<ArenaCopy>> copies;
  if (clock_) {
    std::vector<int64_t> stashed(clock_->end() + 1);
    for (auto [id, storage] : llvm::enumerate(storages)) {
      if (!isOnClock(storage)) continue;
      const int64_t bytes = bytesOf(id) / storage.slots;
      std::vector<ArenaCopy>& own = copies[id] = clock_->copiesOf(storage);
      for (const ArenaCopy& copy : own) {
        for (const TimeSpan& span : copy.among) {
          stashed[span.begin] += bytes;
          stashed[span.end + 1] -= bytes;
        }
      }
    }
    std::partial_sum(stashed.begin(), stashed.end(), stashed.begin());
    for (const CopyClock::Run& run : clock_->runs()) {
      const auto [first, last] = clock_->ticksOf(run.segment);
      for (int64_t tick = first; tick <= last; ++tick) {
        const int64_t now = run.begin + tick - first;
        const int64_t bytes = byTick[tick] + stashed[now];
        if (bytes <= peak.bytes) continue;
        peak.bytes = bytes;
        peak.tick = tick;
        time = now;
      }
    }
  }
  std::vector<std::pair<int64_t, StorageId>> held;
  for (auto [id, storage] : llvm::enumerate(storages)) {
    int64_t bytes = bytesOf(id);
    if (isOnClock(storage)) {
      const auto inUse =
          llvm::count_if(copies[id], [&](const ArenaCopy& copy) { return isIn(copy.among, time); });
      bytes = bytes / storage.slots * inUse;
    } else if (!storage.persistent &&
               (peak.tick < storage.begin || peak.tick > storage.end ||
                (storage.gapBegin <= peak.tick && peak.tick <= storage.gapEnd))) {
      continue;
    }
    if (bytes == 0) continue;
    peak.bytesOf[static_cast<size_t>(useOf(id))] += bytes;
    held.emplace_back(-bytes, id);
  }
  llvm::sort(held);
  for (const auto& [bytes, id] : held) peak.inUse.push_back(id);
  return peak;
}

}  // namespace oriel
