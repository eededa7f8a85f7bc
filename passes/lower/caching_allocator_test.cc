#include "passes/lower/caching_allocator.h"

#include "gtest/gtest.h"

namespace oriel {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(CachingAllocatorTest, SegmentsBySize) {
  CachingAllocator allocator;
  allocator.allocate(1);
  EXPECT_EQ(allocator.mostReserved(), 2 * kMiB);
  allocator.allocate(2 * kMiB);  // of a segment that others may share
  EXPECT_EQ(allocator.mostReserved(), 22 * kMiB);
  allocator.allocate(17 * kMiB);  // the rest of it but for what is too little to be a block
  EXPECT_EQ(allocator.mostReserved(), 22 * kMiB);
  allocator.allocate(17 * kMiB);  // of its own, rounded up
  EXPECT_EQ(allocator.mostReserved(), 22 * kMiB + 18 * kMiB);
}

TEST(CachingAllocatorTest, SmallBlocksShareASegment) {
  CachingAllocator allocator;
  for (int i = 0; i < 4096; ++i) allocator.allocate(100);  // 512 bytes each
  EXPECT_EQ(allocator.mostReserved(), 2 * kMiB);
  allocator.allocate(100);
  EXPECT_EQ(allocator.mostReserved(), 4 * kMiB);
}

TEST(CachingAllocatorTest, WhatIsGivenBackServesLess) {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(64 * kMiB));
  auto first = allocator.allocate(20 * kMiB);
  allocator.allocate(44 * kMiB);
  EXPECT_EQ(allocator.mostReserved(), 64 * kMiB);
  allocator.free(first);
  allocator.allocate(21 * kMiB);  // the free block is smaller
  EXPECT_EQ(allocator.mostReserved(), 64 * kMiB + 22 * kMiB);
}

TEST(CachingAllocatorTest, NeighboursOfASegmentJoin) {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(60 * kMiB));
  auto first = allocator.allocate(20 * kMiB);
  auto second = allocator.allocate(20 * kMiB);
  auto third = allocator.allocate(20 * kMiB);
  allocator.free(first);
  allocator.free(third);
  allocator.free(second);
  allocator.allocate(60 * kMiB);
  EXPECT_EQ(allocator.mostReserved(), 60 * kMiB);
  // Of two segments, blocks never join.
  CachingAllocator other;
  auto one = other.allocate(20 * kMiB), two = other.allocate(20 * kMiB);
  other.free(one);
  other.free(two);
  other.allocate(40 * kMiB);
  EXPECT_EQ(other.mostReserved(), 80 * kMiB);
}

TEST(CachingAllocatorTest, TheSmallestThatIsLargeEnough) {
  CachingAllocator allocator;
  auto large = allocator.allocate(100 * kMiB), fits = allocator.allocate(30 * kMiB);
  allocator.free(large);
  allocator.free(fits);
  allocator.allocate(30 * kMiB);
  allocator.allocate(100 * kMiB);
  EXPECT_EQ(allocator.mostReserved(), 130 * kMiB);
}

TEST(CachingAllocatorTest, AFullDeviceGetsFreeSegmentsBack) {
  CachingAllocator allocator(100 * kMiB);
  auto first = allocator.allocate(40 * kMiB), second = allocator.allocate(40 * kMiB);
  allocator.free(first);
  auto part = allocator.allocate(10 * kMiB);  // of the first segment
  allocator.free(second);
  allocator.allocate(60 * kMiB);  // the second has gone, the first is in use
  EXPECT_EQ(allocator.mostReserved(), 100 * kMiB);
  allocator.free(part);
  allocator.allocate(40 * kMiB);
  EXPECT_EQ(allocator.mostReserved(), 100 * kMiB);
  allocator.allocate(20 * kMiB);  // does not fit
  EXPECT_EQ(allocator.mostReserved(), 120 * kMiB);
}

}  // namespace
}  // namespace oriel
