#include "passes/lower/cached_memory.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "passes/lower/caching_allocator.h"
#include "passes/train/update.h"

namespace oriel {

namespace {

void runStep(const std::vector<MemoryStay>& stays, CachingAllocator& allocator) {
  using Held = std::pair<int64_t, size_t>;  // until when, and which of `handles`
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held;
  std::vector<CachingAllocator::Handle> handles;
  for (const MemoryStay& stay : stays) {
    while (!held.empty() && held.top().first < stay.span.begin) {
      allocator.free(handles[held.top().second]);
      held.pop();
    }
    if (stay.bytes == 0) continue;
    held.push({stay.span.end, handles.size()});
    handles.push_back(allocator.allocate(stay.bytes));
  }
  for (; !held.empty(); held.pop()) allocator.free(handles[held.top().second]);
}

bool hasKind(const Storage& storage, ir::ValueKind kind) {
  return storage.role && storage.role->kind == kind;
}

bool isOptimizerState(const Storage& storage) {
  return hasKind(storage, ir::ValueKind::kOptimizerState);
}

// Bits of an element of each parameter's gradient.
llvm::StringMap<unsigned> gradientBits(const ProgramMemory& memory) {
  llvm::StringMap<unsigned> bits;
  for (const Storage& storage : memory.assignment().storages()) {
    if (hasKind(storage, ir::ValueKind::kGradient)) {
      bits[storage.role->ref] = storage.type.getElementTypeBitWidth();
    }
  }
  return bits;
}

// Bytes of the gradients that are made for a step: those of the f32 parameters that it changes.
std::vector<int64_t> madeForStep(const ProgramMemory& memory, StepGradients gradients) {
  std::vector<int64_t> made;
  if (gradients == StepGradients::kAccumulated) return made;
  const llvm::StringMap<unsigned> bits = gradientBits(memory);
  int64_t flat = 0;
  for (const Storage& storage : memory.assignment().storages()) {
    if (!isOptimizerState(storage) || storage.role->slot != kMaster) continue;
    auto gradient = bits.find(storage.role->ref);
    const unsigned width = storage.type.getElementTypeBitWidth();
    if (gradient == bits.end() || gradient->second >= width || storage.bytes == 0) continue;
    made.push_back(storage.bytes);
    flat += storage.bytes;
  }
  if (gradients == StepGradients::kFlat && !made.empty()) return {flat};
  return made;
}

// Bytes of a microbatch's gradients in their parameter's type, where f32 ones accumulate them.
std::vector<int64_t> keptGradients(const ProgramMemory& memory) {
  const llvm::StringMap<unsigned> bits = gradientBits(memory);
  std::vector<int64_t> kept;
  for (const Storage& storage : memory.assignment().storages()) {
    if (!hasKind(storage, ir::ValueKind::kParameter)) continue;
    auto gradient = bits.find(storage.role->ref);
    if (gradient != bits.end() && gradient->second > storage.type.getElementTypeBitWidth()) {
      kept.push_back(storage.bytes);
    }
  }
  return kept;
}

// Where a stage puts what it sends forward.
std::set<StorageId> sentForward(const ProgramMemory& memory) {
  std::set<StorageId> sent;
  for (mlir::func::FuncOp segment : memory.segments()) {
    if (ir::segmentKind(segment) != "forward") continue;
    for (auto send : segment.getOps<ir::SendOp>()) sent.insert(memory.assignment().sentFrom(send));
  }
  return sent;
}

int64_t mostInFlight(const ProgramMemory& memory) {
  int64_t most = 1;
  for (const Storage& storage : memory.assignment().storages()) {
    if (storage.isStash()) most = std::max(most, storage.slots);
  }
  return most;
}

std::vector<CachingAllocator::Handle> allocateAll(const std::vector<int64_t>& sizes,
                                                  CachingAllocator& allocator) {
  std::vector<CachingAllocator::Handle> handles;
  for (const int64_t bytes : sizes) handles.push_back(allocator.allocate(bytes));
  return handles;
}

// What is allocated once: copies of those that are wanted.
void allocatePersistent(const ProgramMemory& memory, CachingAllocator& allocator,
                        const std::function<bool(const Storage&)>& isWanted,
                        const std::function<int64_t(StorageId)>& copiesOf) {
  for (auto [number, storage] : llvm::enumerate(memory.assignment().storages())) {
    if (!storage.persistent || storage.isStash() || storage.bytes == 0 || !isWanted(storage)) {
      continue;
    }
    const std::vector<int64_t> copies(copiesOf(static_cast<StorageId>(number)),
                                      storage.totalBytes() / storage.slots);
    allocateAll(copies, allocator);
  }
}

}  // namespace

int64_t cachedBytes(const ProgramMemory& memory, const SoftwareMemory& software) {
  CachingAllocator allocator(software.capacity);
  const std::vector<MemoryStay> stays = memory.stays();
  const std::set<StorageId> kept =
      software.keepsOutputs ? sentForward(memory) : std::set<StorageId>();
  const int64_t inFlight = mostInFlight(memory);
  const auto copiesOf = [&](StorageId storage) {
    return kept.count(storage) > 0 ? inFlight : memory.assignment().storages()[storage].slots;
  };
  allocatePersistent(
      memory, allocator, [](const Storage& storage) { return !isOptimizerState(storage); },
      copiesOf);
  if (software.keepsGradients) allocateAll(keptGradients(memory), allocator);
  const std::vector<int64_t> made = madeForStep(memory, software.stepGradients);
  auto step = [&] {
    runStep(stays, allocator);
    for (CachingAllocator::Handle gradient : allocateAll(made, allocator)) allocator.free(gradient);
  };
  step();
  allocatePersistent(memory, allocator, isOptimizerState, copiesOf);
  step();
  return allocator.mostReserved();
}

}  // namespace oriel
