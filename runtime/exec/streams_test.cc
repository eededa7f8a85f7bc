#include "runtime/exec/streams.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/comm/in_process.h"
#include "runtime/exec/executor_testing.h"

namespace oriel::runtime {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A communicator that calls need not use.
class ThreadStreamTest : public ::testing::Test {
 protected:
  CommunicationStream::Task* Add(std::function<absl::Status()> call) {
    return *stream_.Add(world_[0].get(), std::move(call));
  }

  std::vector<std::unique_ptr<Communicator>> world_ = MakeInProcessWorld(1);
  ThreadStream stream_;
};

TEST_F(ThreadStreamTest, RunsInTheOrderOfStarts) {
  std::vector<int> order;
  std::vector<CommunicationStream::Task*> tasks;
  for (int i = 0; i < 5; ++i) {
    tasks.push_back(Add([&order, i] {
      order.push_back(i);
      return absl::OkStatus();
    }));
  }
  for (const int i : {3, 0, 4, 2}) ORIEL_ASSERT_OK(stream_.Start(*tasks[i]));
  for (const int i : {0, 3, 2, 4}) ORIEL_ASSERT_OK(stream_.Wait(*tasks[i]));
  ORIEL_ASSERT_OK(stream_.Run(*tasks[1]));
  EXPECT_THAT(order, ElementsAre(3, 0, 4, 2, 1));
  EXPECT_FALSE(stream_.IsBusy());
}

TEST_F(ThreadStreamTest, WorksWhileTheRankComputes) {
  std::atomic<bool> done{false};
  std::thread::id thread;
  auto* task = Add([&] {
    thread = std::this_thread::get_id();
    done = true;
    return absl::OkStatus();
  });
  ORIEL_ASSERT_OK(stream_.Start(*task));
  EXPECT_TRUE(stream_.IsBusy());
  while (!done) std::this_thread::yield();  // for ever, if nothing works
  ORIEL_ASSERT_OK(stream_.Wait(*task));
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_LE(task->begin(), task->end());
}

TEST_F(ThreadStreamTest, RunsInTheSameThreadIfItHasNothingElseToDo) {
  std::vector<std::thread::id> threads;
  auto* task = Add([&] {
    threads.push_back(std::this_thread::get_id());
    return absl::OkStatus();
  });
  for (int i = 0; i < 2; ++i) ORIEL_ASSERT_OK(stream_.Run(*task));
  EXPECT_THAT(threads, ElementsAre(std::this_thread::get_id(), std::this_thread::get_id()));
}

TEST_F(ThreadStreamTest, AnErrorEndsTheStream) {
  int runs = 0;
  auto* good = Add([&] {
    ++runs;
    return absl::OkStatus();
  });
  auto* bad = Add([] { return absl::AbortedError("rank 1 has left"); });
  const auto aborted = StatusIs(absl::StatusCode::kAborted, "rank 1 has left");
  auto* behind = Add([&] {
    ++runs;
    return absl::OkStatus();
  });
  ORIEL_ASSERT_OK(stream_.Start(*good));
  ORIEL_ASSERT_OK(stream_.Start(*bad));
  const absl::Status started = stream_.Start(*behind);  // perhaps it has failed already
  ORIEL_EXPECT_OK(stream_.Wait(*good));
  EXPECT_THAT(stream_.Wait(*bad), aborted);
  if (started.ok()) {
    EXPECT_THAT(stream_.Wait(*behind), aborted);
  } else {
    EXPECT_THAT(started, aborted);
  }
  EXPECT_THAT(stream_.Start(*good), aborted);
  EXPECT_THAT(stream_.Run(*good), aborted);
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(stream_.IsBusy());
}

TEST_F(ThreadStreamTest, RefusesMisuse) {
  auto* task = Add([] { return absl::OkStatus(); });
  const auto refused = [](const char* why) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why));
  };
  EXPECT_THAT(stream_.Wait(*task), refused("was not started"));
  ORIEL_ASSERT_OK(stream_.Start(*task));
  EXPECT_THAT(stream_.Start(*task), refused("is on its way"));
  ORIEL_ASSERT_OK(stream_.Wait(*task));
  EXPECT_THAT(stream_.Wait(*task), refused("was not started"));
}

TEST(ThreadStream, AnAbortWakesWhoWaits) {
  RunRanks(2, [](int64_t rank, Communicator* world) {
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(5));
      return world->Abort(absl::InternalError("no memory"));
    }
    ThreadStream stream;
    auto* task = *stream.Add(world, [&] { return world->Barrier(); });
    ORIEL_ASSERT_OK(stream.Start(*task));
    EXPECT_THAT(stream.Wait(*task),
                StatusIs(absl::StatusCode::kAborted, "rank 1 failed: no memory"));
  });
}

// The peer does not come. What is on its way, and what is behind it, is given up.
TEST(ThreadStream, CanBeDestroyedAtAnyTime) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> destroyed{false};
    RunRanks(2, [&](int64_t rank, Communicator* world) {
      if (rank == 1) {
        while (!destroyed) std::this_thread::yield();
        EXPECT_THAT(world->Barrier(), StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 0")));
        return;
      }
      {
        ThreadStream stream;
        std::vector<CommunicationStream::Task*> tasks;
        for (int i = 0; i < 3; ++i) {
          tasks.push_back(*stream.Add(world, [&] { return world->Barrier(); }));
        }
        for (auto* task : tasks) ORIEL_ASSERT_OK(stream.Start(*task));
        std::this_thread::sleep_for(std::chrono::microseconds(round * 10));
      }
      world->Abort(absl::CancelledError("it has given up"));  // perhaps nothing had begun
      destroyed = true;
    });
  }
}

// Eight ranks with three streams, each of groups of its own: sums come out in any order of starts
// and waits.
TEST(ThreadStream, ManyRanksAndStreamsAtWork) {
  constexpr int64_t kRanks = 8;
  constexpr int kStreams = 3, kTasks = 4, kRounds = 60, kCount = 700;
  RunRanks(kRanks, [](int64_t rank, Communicator* world) {
    struct Job {
      CommunicationStream* stream;
      CommunicationStream::Task* task;
      std::vector<int64_t> values;
      ReduceBuffer buffer;
    };
    std::vector<std::unique_ptr<Communicator>> groups;
    std::vector<ThreadStream> streams(kStreams);
    std::vector<std::unique_ptr<Job>> jobs;
    for (int s = 0; s < kStreams; ++s) {
      ORIEL_ASSERT_OK_AND_ASSIGN(auto group, world->Group({0, 1, 2, 3, 4, 5, 6, 7}));
      for (int i = 0; i < kTasks; ++i) {
        auto job = std::make_unique<Job>();
        job->stream = &streams[s];
        job->values.resize(kCount);
        job->buffer = {job->values.data(), job->values.data(), kCount, DType::kI64};
        job->task = *streams[s].Add(group.get(), [group = group.get(), &buffer = job->buffer] {
          return group->AllReduce(Reduction::kSum, {&buffer, 1});
        });
        jobs.push_back(std::move(job));
      }
      groups.push_back(std::move(group));
    }
    std::mt19937 starts(1), waits(static_cast<unsigned>(rank));  // waits differ between ranks
    for (int64_t round = 0; round < kRounds; ++round) {
      std::shuffle(jobs.begin(), jobs.end(), starts);
      std::vector<Job*> order;
      for (size_t i = 0; i < jobs.size(); ++i) {
        jobs[i]->values.assign(kCount, rank + round + static_cast<int64_t>(i));
        ORIEL_ASSERT_OK(jobs[i]->stream->Start(*jobs[i]->task));
        order.push_back(jobs[i].get());
      }
      std::shuffle(order.begin(), order.end(), waits);
      for (Job* job : order) ORIEL_ASSERT_OK(job->stream->Wait(*job->task));
      for (size_t i = 0; i < jobs.size(); ++i) {
        const int64_t sum = 28 + kRanks * (round + static_cast<int64_t>(i));
        ASSERT_EQ(jobs[i]->values, std::vector<int64_t>(kCount, sum));
      }
    }
  });
}

}  // namespace
}  // namespace oriel::runtime
