#include "passes/lower/caching_allocator.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace oriel {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kSmallest = 512;       // sizes are its multiples
constexpr int64_t kLargestSmall = kMiB;  // of a block in a segment for small ones
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kLargeSegment = 20 * kMiB;  // for blocks below kOwnSegment
constexpr int64_t kOwnSegment = 10 * kMiB;    // from here on, as large as it must be
constexpr int64_t kOwnMultiple = 2 * kMiB;

int64_t roundedUp(int64_t bytes, int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

int64_t segmentBytes(int64_t bytes) {
  if (bytes <= kLargestSmall) return kSmallSegment;
  if (bytes < kOwnSegment) return kLargeSegment;
  return roundedUp(bytes, kOwnMultiple);
}

}  // namespace

bool CachingAllocator::BySize::operator()(const Handle& a, const Handle& b) const {
  return std::tie(a->bytes, a->begin) < std::tie(b->bytes, b->begin);
}

CachingAllocator::Handle CachingAllocator::reserve(int64_t bytes, bool isSmall) {
  const int64_t whole = segmentBytes(bytes);
  if (whole > capacity_ - reserved_) giveBackFreeSegments();
  // Addresses only order blocks of one size: older segments first.
  blocks_.push_back({address_, whole, segments_++, isSmall, true});
  address_ += whole;
  reserved_ += whole;
  mostReserved_ = std::max(mostReserved_, reserved_);
  return std::prev(blocks_.end());
}

void CachingAllocator::giveBackFreeSegments() {
  for (Handle block = blocks_.begin(); block != blocks_.end();) {
    const Handle next = std::next(block);
    const bool begins = block == blocks_.begin() || std::prev(block)->segment != block->segment;
    const bool ends = next == blocks_.end() || next->segment != block->segment;
    if (block->isFree && begins && ends) {
      reserved_ -= block->bytes;
      freeBlocks(*block).erase(block);
      blocks_.erase(block);
    }
    block = next;
  }
}

CachingAllocator::Handle CachingAllocator::allocate(int64_t bytes) {
  bytes = roundedUp(bytes, kSmallest);
  const bool isSmall = bytes <= kLargestSmall;
  FreeBlocks& blocks = isSmall ? freeSmall_ : freeLarge_;
  Blocks probe = {{0, bytes, 0, isSmall, true}};
  const auto found = blocks.lower_bound(probe.begin());
  Handle block;
  if (found == blocks.end()) {
    block = reserve(bytes, isSmall);
  } else {
    block = *found;
    blocks.erase(found);
  }
  block->isFree = false;
  const int64_t rest = block->bytes - bytes;
  if (isSmall ? rest >= kSmallest : rest > kLargestSmall) {
    block->bytes = bytes;
    blocks.insert(blocks_.insert(std::next(block),
                                 {block->begin + bytes, rest, block->segment, isSmall, true}));
  }
  return block;
}

bool CachingAllocator::canJoin(Handle first, Handle second) const {
  return first->isFree && second->isFree && first->segment == second->segment;
}

void CachingAllocator::free(Handle block) {
  FreeBlocks& blocks = freeBlocks(*block);
  block->isFree = true;
  if (const Handle next = std::next(block); next != blocks_.end() && canJoin(block, next)) {
    blocks.erase(next);
    block->bytes += next->bytes;
    blocks_.erase(next);
  }
  if (block != blocks_.begin() && canJoin(std::prev(block), block)) {
    const Handle before = std::prev(block);
    blocks.erase(before);
    before->bytes += block->bytes;
    blocks_.erase(block);
    block = before;
  }
  blocks.insert(block);
}

}  // namespace oriel
