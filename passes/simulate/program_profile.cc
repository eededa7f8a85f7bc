#include "passes/simulate/program_profile.h"

#include <algorithm>
#include <set>
#include <string>

#include "ir/interfaces/work.h"
#include "ir/oriel/location.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/cost/cluster_attribute.h"
#include "passes/cost/op_time.h"
#include "passes/cost/segment_time.h"
#include "passes/lower/cached_memory.h"
#include "passes/stage/parts.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/programs.h"
#include "passes/strategize/schedule.h"

namespace oriel {

namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::func::FuncOp;

// Programs by their symbols.
using ProgramNumbers = llvm::StringMap<size_t>;

SegmentPiece pieceOf(mlir::Operation* transfer, const ProgramNumbers& numbers) {
  SegmentPiece piece;
  if (auto send = llvm::dyn_cast<ir::SendOp>(transfer)) {
    piece.kind = SegmentPiece::Kind::kSend;
    piece.channel = send.getChannel().str();
    piece.peer = numbers.lookup(send.getPeer());
    piece.bytes = static_cast<double>(ir::typeBytes(send.getInput().getType()));
  } else {
    piece.kind = SegmentPiece::Kind::kReceive;
    auto receive = llvm::cast<ir::ReceiveOp>(transfer);
    piece.channel = receive.getChannel().str();
    piece.peer = numbers.lookup(receive.getPeer());
  }
  return piece;
}

FailureOr<std::vector<SegmentPiece>> piecesOf(FuncOp segment, const ProgramNumbers& numbers) {
  FailureOr<std::vector<SegmentInterval>> intervals = predictedIntervals(segment);
  if (failed(intervals)) return failure();
  std::vector<SegmentPiece> pieces;
  for (const SegmentInterval& interval : *intervals) {
    SegmentPiece run;
    run.computing = interval.time.computing;
    run.waiting = interval.time.waiting;
    pieces.push_back(run);
    if (interval.transfer) pieces.push_back(pieceOf(interval.transfer, numbers));
  }
  return pieces;
}

SegmentWork workOf(FuncOp segment) {
  const OpTimes times(segment);
  SegmentWork work;
  for (mlir::Operation& op : segment.getBody().front()) {
    work.flops += ir::workFlops(&op);
    auto kernel = llvm::dyn_cast<ir::KernelOpInterface>(op);
    if (!kernel || llvm::isa<ir::CollectiveOpInterface>(op)) continue;
    const double seconds = times.seconds(&op);
    if (seconds > 0) work.ofKernel[kernel.getKernelName().str()] += seconds;
  }
  return work;
}

MemoryByPlace byPlaceOf(const ProgramMemory& memory) {
  MemoryByPlace byPlace;
  std::map<MemoryPlace, int> counts;
  for (const MemoryAtOp& at : memory.atOps()) {
    MemoryPlace place = {at.op->getParentOfType<FuncOp>().getSymNameAttr().getAsOpaquePointer(),
                         at.op->getLoc().getAsOpaquePointer(),
                         at.op->getName().getAsOpaquePointer(), 0};
    std::get<int>(place) = counts[place]++;
    MemoryBytes& bytes = byPlace[place];
    std::copy(at.bytesOf.begin(), at.bytesOf.end(), bytes.begin());
  }
  return byPlace;
}

FailureOr<ScheduledMemory> memoryOf(mlir::ModuleOp program) {
  FailureOr<ProgramMemory> memory = ProgramMemory::of(program);
  if (failed(memory)) return failure();
  ScheduledMemory result{byPlaceOf(*memory)};
  const SoftwareMemory software = softwareStackOf(program).memory;
  if (software.isCached) {
    result.cachedBytes = static_cast<double>(cachedBytes(*memory, software));
  }
  return result;
}

FailureOr<ProgramCost> costOf(mlir::ModuleOp program, const ProgramNumbers& numbers) {
  ProgramCost cost;
  cost.profile.name = program.getSymName().value_or("").str();
  if (auto first = program->getAttrOfType<mlir::IntegerAttr>(kFirstRankAttr)) {
    cost.profile.firstRank = first.getInt();
  }
  FailureOr<Grid> grid = getGrid(program);
  FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program);
  FailureOr<ScheduledMemory> memory = memoryOf(program);
  if (failed(grid) || failed(schedule) || failed(memory)) return failure();
  cost.ranks = grid->worldSize();
  std::set<std::string> scheduled;
  for (const ScheduleEntry& entry : *schedule) {
    cost.profile.schedule.push_back({entry.segment, entry.microbatch});
    scheduled.insert(entry.segment);
  }
  for (auto segment : program.getOps<FuncOp>()) {
    const std::string name = segment.getSymName().str();
    if (scheduled.count(name) == 0) continue;
    FailureOr<std::vector<SegmentPiece>> pieces = piecesOf(segment, numbers);
    if (failed(pieces)) return failure();
    cost.profile.segments[name] = *std::move(pieces);
    cost.work[name] = workOf(segment);
  }
  cost.memory = std::move(memory->byPlace);
  cost.cachedBytes = memory->cachedBytes;
  cost.bytes = peakOf(cost.memory);
  return cost;
}

bool haveSameShape(const ProgramProfile& a, const ProgramProfile& b) {
  if (a.segments.size() != b.segments.size() || a.schedule.size() != b.schedule.size()) {
    return false;
  }
  for (const auto& [name, pieces] : a.segments) {
    auto other = b.segments.find(name);
    if (other == b.segments.end() || other->second.size() != pieces.size()) return false;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].kind != other->second[i].kind) return false;
    }
  }
  return true;
}

double difference(double from, double to, double times) { return times * (to - from); }

// Whether it is of a few ops at a time, however many blocks there are: what travels is cut into
// buckets of limited sizes. Not so in the update, where many parameters are at work together.
bool isPassing(size_t use, const MemoryPlace& place) {
  const bool isOfOps = use == static_cast<size_t>(MemoryUse::kTemporaries) ||
                       use == static_cast<size_t>(MemoryUse::kCommunication);
  const void* segment = std::get<0>(place);
  return isOfOps && segment != nullptr &&
         mlir::StringAttr::getFromOpaquePointer(segment).getValue() != "update";
}

void growWork(const SegmentWork& from, const SegmentWork& to, double times, SegmentWork* result) {
  result->flops += difference(from.flops, to.flops, times);
  for (const auto& [kernel, seconds] : from.ofKernel) result->ofKernel[kernel] -= times * seconds;
  for (const auto& [kernel, seconds] : to.ofKernel) result->ofKernel[kernel] += times * seconds;
}

// The place without which of them it is.
MemoryPlace likeOf(MemoryPlace place) {
  std::get<int>(place) = 0;
  return place;
}

std::map<MemoryPlace, int> countsOf(const MemoryByPlace& memory) {
  std::map<MemoryPlace, int> counts;
  for (const auto& [place, bytes] : memory) ++counts[likeOf(place)];
  return counts;
}

// Places that the other one doesn't have go, and those that it has in another number (reductions of
// gradients, which come from no node): which of them is which, nothing says. Others stand beside.
void grow(const MemoryByPlace& from, const MemoryByPlace& to, double times, MemoryByPlace* result) {
  const std::map<MemoryPlace, int> counts = countsOf(from), others = countsOf(to);
  for (auto at = result->begin(); at != result->end();) {
    auto before = from.find(at->first), after = to.find(at->first);
    const auto other = others.find(likeOf(at->first));
    const bool isSame = other != others.end() && counts.at(likeOf(at->first)) == other->second;
    if (before == from.end() || after == to.end() || !isSame) {
      at = result->erase(at);
      continue;
    }
    for (size_t use = 0; use < kMemoryUses; ++use) {
      const double less = before->second[use], more = after->second[use];
      at->second[use] +=
          isPassing(use, at->first) ? std::max(more - less, 0.) : difference(less, more, times);
    }
    ++at;
  }
}

}  // namespace

double sumOf(const MemoryBytes& bytes) {
  double sum = 0;
  for (double part : bytes) sum += part;
  return sum;
}

double ProgramCost::peakBytes() const { return sumOf(bytes); }

MemoryBytes peakOf(const MemoryByPlace& memory) {
  const auto most = std::max_element(
      memory.begin(), memory.end(),
      [](const auto& a, const auto& b) { return sumOf(a.second) < sumOf(b.second); });
  return most == memory.end() ? MemoryBytes() : most->second;
}

double ProgramCost::flopsOfStep() const {
  double sum = 0;
  for (const ScheduledRun& run : profile.schedule) {
    auto own = work.find(run.segment);
    if (own != work.end()) sum += own->second.flops;
  }
  return sum;
}

std::map<std::string, double> ProgramCost::kernelsOfStep() const {
  std::map<std::string, double> sums;
  for (const ScheduledRun& run : profile.schedule) {
    auto own = work.find(run.segment);
    if (own == work.end()) continue;
    for (const auto& [kernel, seconds] : own->second.ofKernel) sums[kernel] += seconds;
  }
  return sums;
}

std::optional<int64_t> stageOfSegment(const std::string& segment) {
  const auto [kind, number] = llvm::StringRef(segment).rsplit('.');
  int64_t stage = 0;
  if (number.empty() || number.getAsInteger(10, stage)) return std::nullopt;
  return stage;
}

FailureOr<std::vector<ProgramCost>> programCosts(mlir::ModuleOp module) {
  std::vector<ProgramCost> costs;
  ProgramNumbers numbers;
  for (mlir::ModuleOp program : ir::programsOf(module)) {
    numbers.try_emplace(program.getSymName().value_or(""), numbers.size());
  }
  for (mlir::ModuleOp program : ir::programsOf(module)) {
    FailureOr<ProgramCost> cost = costOf(program, numbers);
    if (failed(cost)) return failure();
    costs.push_back(*std::move(cost));
  }
  return costs;
}

FailureOr<ScheduledMemory> memoryWith(mlir::ModuleOp program,
                                      const std::vector<ScheduledRun>& runs) {
  std::vector<ScheduleEntry> schedule;
  schedule.reserve(runs.size());
  for (const ScheduledRun& run : runs) schedule.push_back({run.segment, run.microbatch});
  mlir::Attribute before = program->getAttr(kScheduleAttr);
  setSchedule(program, schedule);
  FailureOr<ScheduledMemory> memory = memoryOf(program);
  program->setAttr(kScheduleAttr, before);
  return memory;
}

ModelFlops modelFlopsOfMicrobatch(mlir::ModuleOp module, const Strategy& strategy) {
  ModelFlops flops;
  auto forward = module.lookupSymbol<FuncOp>("forward");
  if (!forward) return flops;
  const ModelParts parts = findParts(forward, {}, strategy);
  flops.ofBlocks.resize(parts.blockOps.size());
  llvm::DenseMap<int64_t, int64_t> blockOf;  // by origin
  if (!parts.blockOps.empty()) {
    for (const auto& [op, block] : parts.blockOf) blockOf[ir::originOf(op)] = block;
  }
  for (const char* name : {"forward", "backward"}) {
    auto segment = module.lookupSymbol<FuncOp>(name);
    if (!segment) continue;
    for (mlir::Operation& op : segment.getBody().front()) {
      auto block = blockOf.find(ir::originOf(&op));
      double& sum = block == blockOf.end() ? flops.ofRest : flops.ofBlocks[block->second];
      sum += ir::modelFlops(&op);
    }
  }
  return flops;
}

std::optional<ProgramCost> extrapolate(const ProgramCost& cost,
                                       const std::vector<BlockDifference>& differences) {
  ProgramCost result = cost;
  for (const BlockDifference& own : differences) {
    const ProgramCost& other = *own.withOneMore;
    if (!haveSameShape(cost.profile, other.profile)) return std::nullopt;
    for (auto& [name, pieces] : result.profile.segments) {
      const std::optional<int64_t> stage = stageOfSegment(name);
      double times = own.times;
      if (stage) {
        auto found = own.ofStage.find(*stage);
        times = found == own.ofStage.end() ? 0 : found->second;
      }
      const std::vector<SegmentPiece>& before = cost.profile.segments.at(name);
      const std::vector<SegmentPiece>& after = other.profile.segments.at(name);
      for (size_t i = 0; i < pieces.size(); ++i) {
        pieces[i].computing += difference(before[i].computing, after[i].computing, times);
        pieces[i].waiting += difference(before[i].waiting, after[i].waiting, times);
        pieces[i].waiting = std::max(pieces[i].waiting, 0.);
        pieces[i].bytes += difference(before[i].bytes, after[i].bytes, times);
      }
      growWork(cost.work.at(name), other.work.at(name), times, &result.work[name]);
    }
    grow(cost.memory, other.memory, own.times, &result.memory);
    for (auto& [grid, memory] : result.memoryOn) {
      grow(cost.memoryOn.at(grid), other.memoryOn.at(grid), own.times, &memory);
    }
  }
  if (!differences.empty()) result.bytes = peakOf(result.memory);
  return result;
}

}  // namespace oriel
