#include "passes/lower/cached_memory.h"

#include <queue>
#include <utility>
#include <vector>

#include "passes/lower/caching_allocator.h"

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

bool isOptimizerState(const Storage& storage) {
  return storage.role && storage.role->kind == ir::ValueKind::kOptimizerState;
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

int64_t cachedBytes(const ProgramMemory& memory) {
  CachingAllocator allocator;
  const std::vector<MemoryStay> stays = memory.stays();
  allocatePersistent(memory, allocator,
                     [](const Storage& storage) { return !isOptimizerState(storage); });
  runStep(stays, allocator);
  allocatePersistent(memory, allocator, isOptimizerState);
  runStep(stays, allocator);
  return allocator.reserved();
}

}  // namespace oriel
