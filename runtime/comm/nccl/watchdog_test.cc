#include "runtime/comm/nccl/watchdog.h"

#include <atomic>
#include <string>
#include <thread>

#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

struct Report {
  std::atomic<int> count{0};
  absl::Status reason;
};

Watchdog::Options Fast(Report& report) {
  Watchdog::Options options;
  options.timeout = std::chrono::milliseconds(100);
  options.period = std::chrono::milliseconds(2);
  options.on_failure = [&report](const absl::Status& reason) {
    report.reason = reason;
    ++report.count;
  };
  return options;
}

void WaitFor(Watchdog& watchdog) {
  for (int i = 0; i < 2000 && watchdog.status().ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(Watchdog, NamesWhatIsLate) {
  Report report;
  Watchdog watchdog(Fast(report));
  std::atomic<int> released{0};
  watchdog.Watch(
      "the first", [] { return true; }, [&] { ++released; });
  watchdog.Watch(
      "all_reduce over ranks 0, 1", [] { return false; }, [] {});
  WaitFor(watchdog);
  EXPECT_EQ(released, 1);
  EXPECT_THAT(watchdog.status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("all_reduce over ranks 0, 1 has not ended within 0.1 s")));
}

TEST(Watchdog, NamesWhatOfItIsLate) {
  for (const std::string part : {"the second of its calls", ""}) {
    Report report;
    Watchdog watchdog(Fast(report));
    watchdog.Watch(
        "a graph", [] { return false; }, [] {}, [&] { return part; });
    WaitFor(watchdog);
    EXPECT_THAT(watchdog.status().message(),
                HasSubstr((part.empty() ? "a graph" : part) + " has not ended within 0.1 s"));
  }
}

TEST(Watchdog, ReportsOnce) {
  Report report;
  {
    Watchdog watchdog(Fast(report));
    watchdog.Watch(
        "it", [] { return false; }, [] {});
    WaitFor(watchdog);
    watchdog.Fail(absl::InternalError("later"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(watchdog.status(), report.reason);
  }
  EXPECT_EQ(report.count, 1);
}

TEST(Watchdog, WhatEndsInTimeIsNoFailure) {
  Report report;
  {
    Watchdog watchdog(Fast(report));
    std::atomic<bool> done{false};
    std::atomic<int> released{0};
    watchdog.Watch(
        "it", [&] { return done.load(); }, [&] { ++released; });
    done = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(released, 1);
    ORIEL_EXPECT_OK(watchdog.status());
  }
  EXPECT_EQ(report.count, 0);
}

// The host puts a whole step on a stream: the time of what is last begins when the rest has ended.
TEST(Watchdog, WhatIsBehindOthersHasItsTime) {
  Report report;
  {
    Watchdog::Options options = Fast(report);
    options.timeout = std::chrono::milliseconds(400);
    Watchdog watchdog(options);
    std::atomic<int> ended{0};
    for (int i = 0; i < 6; ++i) {
      watchdog.Watch(
          "it", [&ended, i] { return i < ended; }, [] {});
    }
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(120));
      ORIEL_EXPECT_OK(watchdog.status());
      ++ended;
    }
    // Now nothing ends.
    WaitFor(watchdog);
    EXPECT_THAT(watchdog.status(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                            HasSubstr("it has not ended within 0.4 s")));
  }
  EXPECT_EQ(report.count, 1);
}

// A driver that does not answer while the host is stuck in it.
TEST(Watchdog, LooksWhileTheDeviceDoesNotAnswer) {
  Report report;
  std::atomic<bool> answers{false};
  {
    Watchdog watchdog(Fast(report));
    watchdog.Watch(
        "it",
        [&] {
          while (!answers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return true;
        },
        [] {});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    watchdog.AddCheck([] { return absl::AbortedError("rank 1 was lost"); });
    WaitFor(watchdog);
    EXPECT_THAT(watchdog.status(), StatusIs(absl::StatusCode::kAborted, "rank 1 was lost"));
    answers = true;
  }
  EXPECT_EQ(report.count, 1);
}

TEST(Watchdog, AsksItsChecks) {
  Report report;
  Watchdog watchdog(Fast(report));
  std::atomic<bool> lost{false};
  const auto check = [&] {
    return lost ? absl::AbortedError("rank 1 was lost") : absl::OkStatus();
  };
  const int64_t removed = watchdog.AddCheck(check);
  watchdog.RemoveCheck(removed);
  lost = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ORIEL_EXPECT_OK(watchdog.status());
  watchdog.AddCheck(check);
  WaitFor(watchdog);
  EXPECT_THAT(watchdog.status(), StatusIs(absl::StatusCode::kAborted, "rank 1 was lost"));
}

}  // namespace
}  // namespace oriel::runtime
