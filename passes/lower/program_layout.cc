// Where the storages of a program lie: the placing half of ProgramMemory.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "passes/lower/program_memory.h"

namespace oriel {

namespace {

// Beyond so many copies, the stash values of a microbatch that the same segments use lie one behind
// the other. One is small then beside all.
constexpr int64_t kMaxCopies = 30'000;
// About so many seconds take 3e8 steps.
constexpr int64_t kMaxSteps = 1'500'000'000;
// Nothing better than this above the lower bound is looked for, and for each so many steps a
// percent more is as good.
constexpr int64_t kGoodPercent = 1;
constexpr int64_t kStepsOfPercent = 100'000'000;

// A value of one microbatch that lives within runs of a segment. Its memory serves others.
bool isTemporary(const Storage& storage) {
  return !storage.persistent && !storage.role && !storage.transfer && storage.uses.size() == 1;
}

// Storages that lie one behind the other.
struct Group {
  Storage whole;
  std::vector<std::pair<StorageId, int64_t>> members;  // how far behind the first
};

void append(Group& group, StorageId id, const Storage& storage) {
  const auto bytes = static_cast<int64_t>(llvm::alignTo(storage.bytes, kArenaAlignment));
  if (group.members.empty()) {
    group = {storage, {{id, 0}}};
    group.whole.bytes = bytes;
    return;
  }
  group.members.emplace_back(id, group.whole.bytes);
  group.whole.bytes += bytes;
  for (auto [use, other] : llvm::zip_equal(group.whole.uses, storage.uses)) {
    use.begin = std::min(use.begin, other.begin);
    use.end = std::max(use.end, other.end);
  }
}

}  // namespace

MemoryLayout ProgramMemory::placeAll(int64_t enough, int64_t steps) const {
  llvm::ArrayRef<Storage> storages = assignment_.storages();
  MemoryLayout layout;
  for (const Storage& storage : storages) layout.offsets.emplace_back(storage.slots);
  int64_t top = 0;
  auto placePersistent = [&](bool gradients) {
    for (auto [id, storage] : llvm::enumerate(storages)) {
      if (!storage.persistent || isOnClock(storage) || storage.isGradient() != gradients) continue;
      for (int64_t& offset : layout.offsets[id]) {
        offset = top;
        top += storage.totalBytes() / storage.slots;
      }
    }
  };
  placePersistent(false);
  placePersistent(true);

  int64_t copies = 0;
  for (const Storage& storage : storages) copies += isOnClock(storage) ? storage.slots : 0;
  std::vector<Group> groups;
  std::map<std::pair<std::vector<size_t>, int64_t>, size_t> known;  // by segments and copies
  for (auto [id, storage] : llvm::enumerate(storages)) {
    if (storage.persistent && !isOnClock(storage)) continue;
    size_t group = groups.size();
    if (copies > kMaxCopies && isOnClock(storage)) {
      std::vector<size_t> segments;
      for (const StorageUse& use : storage.uses) segments.push_back(use.segment);
      group = known.try_emplace({std::move(segments), storage.slots}, group).first->second;
    }
    groups.resize(std::max(groups.size(), group + 1));
    append(groups[group], static_cast<StorageId>(id), storage);
  }

  std::vector<ArenaBlock> blocks;
  for (const Group& group : groups) {
    const Storage& whole = group.whole;
    ArenaBlock block = {whole.begin, whole.end, whole.bytes, whole.gapBegin, whole.gapEnd};
    block.isStash = whole.isStash();
    if (!isOnClock(whole)) {
      blocks.push_back(std::move(block));
      continue;
    }
    if (!whole.uses.empty()) {
      block.begin = whole.uses.front().begin;
      block.end = whole.uses.back().end;
    }
    for (ArenaCopy& copy : clock_->copiesOf(whole)) {
      block.copy = std::move(copy);
      blocks.push_back(block);
    }
  }
  layout.lowerBound = peak().bytes;
  const ArenaLayout shared = planArena(blocks, {layout.lowerBound - top, enough - top, steps});
  layout.bytes = top + shared.bytes;
  layout.steps = shared.steps;
  auto offset = shared.offsets.begin();
  for (const Group& group : groups) {
    for (int64_t copy = 0; copy < group.whole.slots; ++copy, ++offset) {
      for (const auto& [id, behind] : group.members) {
        layout.offsets[id][copy] = top + *offset + behind;
      }
    }
  }
  return layout;
}

// What is needed at least is often not enough: copies are in each other's way if microbatches come
// back to them out of step. The most that any value needs has those of one microbatch take turns;
// as many as are in flight over all segments, those of several stages, if the schedule comes round
// to the same copies; a copy for each microbatch always does, and makes the largest plan.
std::vector<int64_t> ProgramMemory::copiesToTry(int64_t most) const {
  bool allTheSame = true;
  std::vector<const Storage*> stash;
  for (auto [id, storage] : llvm::enumerate(assignment_.storages())) {
    if (!storage.isStash()) continue;
    allTheSame = allTheSame && fewest_[id] == most;
    stash.push_back(&storage);
  }
  const int64_t microbatches = clock_->microbatches();
  std::vector<int64_t> counts;
  if (!allTheSame) counts.push_back(most);
  const int64_t inStep = std::lcm(clock_->mostInFlight(stash), clock_->period());
  for (int64_t count : {inStep, 2 * inStep}) {
    if (most < count && count < microbatches) counts.push_back(count);
  }
  if (microbatches > most) counts.push_back(microbatches);
  return counts;
}

int64_t ProgramMemory::setCopies(const Copies& copies) {
  int64_t all = 0;
  for (auto [id, storage] : llvm::enumerate(assignment_.storages())) {
    const int64_t wanted = storage.isStash()      ? copies.stash
                           : isTemporary(storage) ? copies.temporaries
                                                  : 1;
    int64_t microbatches = 0;
    for (const StorageUse& use : storage.uses) {
      microbatches = std::max(microbatches, clock_->microbatchesOf(use.segment));
    }
    const int64_t slots = std::max(fewest_[id], std::min(wanted, microbatches));
    assignment_.setSlots(id, slots);
    all += slots;
  }
  return all;
}

MemoryLayout ProgramMemory::place(int64_t enough) {
  MemoryLayout best = placeAll(enough, kMaxSteps);
  if (!clock_) return best;
  int64_t most = 1;  // copies that any value needs
  for (auto [id, storage] : llvm::enumerate(assignment_.storages())) {
    if (storage.isStash()) most = std::max(most, fewest_[id]);
  }
  // A run finds room where its own microbatch has its copies, which are elsewhere in other runs: so
  // temporaries have as many.
  std::vector<Copies> all = {{1, most}};
  for (int64_t count : copiesToTry(most)) {
    all.push_back({count, 1});
    all.push_back({count, count});
  }
  std::vector<std::pair<int64_t, Copies>> attempts;  // by how many blocks they have
  for (const Copies& copies : all) attempts.emplace_back(setCopies(copies), copies);
  llvm::stable_sort(attempts, llvm::less_first());
  Copies chosen = {1, 1}, placed = {0, 0};
  int64_t placedBlocks = 0;
  int64_t steps = best.steps;
  for (const auto& [blocks, copies] : attempts) {
    // Without temporaries to copy, say.
    if (copies.stash == placed.stash && blocks == placedBlocks) continue;
    const int64_t percent = kGoodPercent + steps / kStepsOfPercent;
    const int64_t good = std::max(enough, best.lowerBound + best.lowerBound / 100 * percent);
    if (best.bytes <= good) break;
    // An order takes so many at the most.
    if (blocks > kMaxCopies || blocks * blocks / 2 > kMaxSteps - steps) break;
    placed = copies;
    placedBlocks = setCopies(copies);
    MemoryLayout layout = placeAll(good, kMaxSteps - steps);
    steps += layout.steps;
    if (layout.bytes >= best.bytes) continue;
    best = std::move(layout);
    chosen = copies;
  }
  setCopies(chosen);
  return best;
}

}  // namespace oriel
