#include "kernels/common/thread_pool.h"

#include <chrono>
#include <numeric>

#include "gtest/gtest.h"
#include "kernels/common/parallel.h"

namespace oriel::kernels {
namespace {

// A job that counts how often each chunk was run.
struct Counts {
  explicit Counts(int64_t chunks) : counts(chunks) {}
  std::vector<std::atomic<int>> counts;
  static void Add(const void* context, int64_t chunk) {
    const_cast<Counts*>(static_cast<const Counts*>(context))->counts[chunk].fetch_add(1);
  }
  bool AllAre(int expected) const {
    for (const auto& count : counts) {
      if (count.load() != expected) return false;
    }
    return true;
  }
};

TEST(ThreadPoolTest, EveryChunkRunsOnce) {
  ThreadPool pool;
  for (int threads : {1, 2, 3, 8, 2}) {
    for (int64_t chunks : {0, 1, 2, 7, 100}) {
      Counts counts(chunks);
      pool.Run(threads, chunks, Counts::Add, &counts);
      EXPECT_TRUE(counts.AllAre(1)) << threads << " threads, " << chunks << " chunks";
    }
  }
}

// Jobs follow each other so closely that helpers arrive late.
TEST(ThreadPoolTest, ManyShortJobs) {
  ThreadPool pool;
  Counts counts(5);
  for (int job = 0; job < 20000; ++job) {
    int64_t sum = 0;  // on this job's stack: a late helper would write into the next one's
    struct Context {
      Counts* counts;
      int64_t* sum;
    } context{&counts, &sum};
    pool.Run(
        4, 5,
        [](const void* opaque, int64_t chunk) {
          const Context* c = static_cast<const Context*>(opaque);
          c->counts->counts[chunk].fetch_add(1);
          if (chunk == 0) *c->sum += 1;
        },
        &context);
    ASSERT_EQ(sum, 1);
  }
  EXPECT_TRUE(counts.AllAre(20000));
}

TEST(ThreadPoolTest, HelpersWakeUpAfterSleep) {
  ThreadPool pool;
  for (int round = 0; round < 5; ++round) {
    Counts counts(50);
    pool.Run(3, 50, Counts::Add, &counts);
    EXPECT_TRUE(counts.AllAre(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(ThreadPoolTest, EachThreadHasItsOwn) {
  std::vector<std::thread> owners;
  std::vector<int> wrong(4, 0);
  for (int owner = 0; owner < 4; ++owner) {
    owners.emplace_back([&wrong, owner] {
      for (int job = 0; job < 500; ++job) {
        Counts counts(9);
        ThreadPool::Current().Run(2, 9, Counts::Add, &counts);
        wrong[owner] += counts.AllAre(1) ? 0 : 1;
      }
    });
  }
  for (std::thread& owner : owners) owner.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(ParallelForTest, RangesCoverAllUnits) {
  for (int threads : {1, 2, 5}) {
    for (int64_t units : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> seen(units);
      ParallelFor(threads, units, /*work_per_unit=*/1 << 20, [&](int64_t begin, int64_t end) {
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) seen[i].fetch_add(1);
      });
      for (const auto& count : seen) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ParallelForTest, NestedLoopsRunInTheirThread) {
  std::atomic<int> total{0};
  ParallelFor(3, 4, 1 << 20, [&](int64_t begin, int64_t end) {
    ParallelFor(3, end - begin, 1 << 20, [&](int64_t first, int64_t last) {
      total.fetch_add(static_cast<int>(last - first));
    });
  });
  EXPECT_EQ(total.load(), 4);
}

}  // namespace
}  // namespace oriel::kernels
