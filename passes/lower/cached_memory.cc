#include "passes/lower/cached_memory.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "llvm/ADT/DenseMap.h"
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

// Bytes of what a stage has sent forward, by storage.
llvm::DenseMap<StorageId, int64_t> sentForward(const ProgramMemory& memory) {
  llvm::DenseMap<StorageId, int64_t> sent;
  for (mlir::func::FuncOp segment : memory.segments()) {
    if (ir::segmentKind(segment) != "forward") continue;
    for (auto send : segment.getOps<ir::SendOp>()) {
      const StorageId storage = memory.assignment().sentFrom(send);
      sent[storage] = memory.assignment().storages()[storage].bytes;
    }
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

// What is allocated once.
template <typename Wanted>
void allocatePersistent(const ProgramMemory& memory, CachingAllocator& allocator, Wanted wanted) {
  for (const Storage& storage : memory.assignment().storages()) {
    if (!storage.persistent || storage.isStash() || storage.bytes == 0 || !wanted(storage)) {
      continue;
    }
    for (int64_t copy = 0; copy < storage.slots; ++copy) {
      allocator.allocate(storage.totalBytes() / storage.slots);
    }
  }
}

}  // namespace

int64_t cachedBytes(const ProgramMemory& memory, const SoftwareMemory& software) {
  CachingAllocator allocator(software.capacity);
  std::vector<MemoryStay> stays = memory.stays();
  allocatePersistent(memory, allocator,
                     [](const Storage& storage) { return !isOptimizerState(storage); });
  if (software.keepsGradients) allocateAll(keptGradients(memory), allocator);
  if (software.keepsOutputs) {
    const llvm::DenseMap<StorageId, int64_t> sent = sentForward(memory);
    for (auto [storage, bytes] : sent) {
      allocateAll(std::vector<int64_t>(mostInFlight(memory), bytes), allocator);
    }
    llvm::erase_if(stays, [&](const MemoryStay& stay) { return sent.contains(stay.storage); });
  }
  const std::vector<int64_t> made = madeForStep(memory, software.stepGradients);
  auto step = [&] {
    runStep(stays, allocator);
    for (CachingAllocator::Handle gradient : allocateAll(made, allocator)) allocator.free(gradient);
  };
  step();
  allocatePersistent(memory, allocator, isOptimizerState);
  step();
  return allocator.mostReserved();
}

}  // namespace oriel
