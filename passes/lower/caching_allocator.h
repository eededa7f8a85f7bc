// An allocator that keeps what it is given back, as PyTorch's does on CUDA: what it has reserved is
// more than what was ever in use at a time, which is what published runs report.
//
// Sizes and rules are those of c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.x, its defaults).
#ifndef ORIEL_PASSES_LOWER_CACHING_ALLOCATOR_H_
#define ORIEL_PASSES_LOWER_CACHING_ALLOCATOR_H_

#include <cstdint>
#include <limits>
#include <list>
#include <set>

namespace oriel {

class CachingAllocator {
  struct Block;
  using Blocks = std::list<Block>;

 public:
  // What allocate() returns and free() takes, once.
  using Handle = Blocks::iterator;

  // Of a device with so many bytes.
  explicit CachingAllocator(int64_t capacity = std::numeric_limits<int64_t>::max())
      : capacity_(capacity) {}

  // More than 0 bytes. From the smallest free block that is large enough, or from a new segment.
  // Where the device has no room for that, segments that are free are given back to it first; if
  // it still has none, it is taken to have.
  Handle allocate(int64_t bytes);
  void free(Handle block);

  // The most that all segments had at a time.
  int64_t mostReserved() const { return mostReserved_; }

 private:
  // A part of a segment. The parts of all segments are one list, in the order of their addresses.
  struct Block {
    int64_t begin;  // address; one segment begins where the last one ends
    int64_t bytes;
    int64_t segment;  // its number
    bool isSmall;     // of a segment for small blocks
    bool isFree;
  };
  struct BySize {
    bool operator()(const Handle& a, const Handle& b) const;
  };
  using FreeBlocks = std::set<Handle, BySize>;

  FreeBlocks& freeBlocks(const Block& block) { return block.isSmall ? freeSmall_ : freeLarge_; }
  Handle reserve(int64_t bytes, bool isSmall);
  void giveBackFreeSegments();
  // Whether two neighbours are free, and of one segment.
  bool canJoin(Handle first, Handle second) const;

  Blocks blocks_;
  FreeBlocks freeSmall_, freeLarge_;
  const int64_t capacity_;
  int64_t reserved_ = 0, mostReserved_ = 0;
  int64_t segments_ = 0;
  int64_t address_ = 0;  // of the next segment
};

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_CACHING_ALLOCATOR_H_
