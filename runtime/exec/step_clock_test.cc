#include "runtime/exec/step_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;

// A device that comes to the events of a run at given moments; nothing else is asked of it.
class TimedBackend final : public Backend {
 public:
  explicit TimedBackend(std::vector<int64_t> moments) : moments_(std::move(moments)) {}

  std::string name() const override { return "timed"; }
  absl::StatusOr<std::unique_ptr<Event>> MakeTimedEvent() override {
    return std::make_unique<Moment>();
  }
  absl::Status Record(Event& event, int /*stream*/) override {
    static_cast<Moment&>(event).at = moments_.at(next_++);
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> NanosecondsBetween(Event& first, Event& last) override {
    return static_cast<Moment&>(last).at - static_cast<Moment&>(first).at;
  }

  absl::StatusOr<DeviceMemory> Allocate(int64_t) override { return Unused(); }
  absl::StatusOr<kernels::KernelFn> Prepare(const kernels::KernelSpec&, int64_t) override {
    return Unused();
  }
  absl::Status Copy(void*, const void*, int64_t) override { return Unused(); }
  absl::Status CopyRuns(void*, const void*, int64_t, int64_t, int64_t) override { return Unused(); }
  absl::Status Fill(void*, uint8_t, int64_t) override { return Unused(); }
  absl::Status Upload(void*, const void*, int64_t) override { return Unused(); }
  absl::Status Download(void*, const void*, int64_t) override { return Unused(); }

 private:
  struct Moment : Event {
    int64_t at = 0;
  };
  static absl::Status Unused() { return absl::UnimplementedError("not asked of a clock's device"); }

  std::vector<int64_t> moments_;
  size_t next_ = 0;
};

// Two runs of two steps: what an event takes is measured behind the last step.
TEST(StepClockTest, StepsAndWhatEventsTake) {
  TimedBackend backend({0, 10, 40, 43, 100, 120, 145, 147});
  StepClock clock;
  SegmentProfile profile;
  profile.nanoseconds.resize(2);
  profile.least_nanoseconds.resize(2);
  for (profile.runs = 1; profile.runs <= 2; ++profile.runs) {
    ORIEL_ASSERT_OK(clock.Begin(backend, 2));
    for (size_t step : {0, 1}) ORIEL_ASSERT_OK(clock.Mark(backend, step));
    ORIEL_ASSERT_OK(clock.AddTo(backend, profile));
  }
  EXPECT_THAT(profile.nanoseconds, ElementsAre(30, 55));
  EXPECT_THAT(profile.least_nanoseconds, ElementsAre(10, 25));
  EXPECT_EQ(profile.least_empty_nanoseconds, 2);
}

TEST(StepClockTest, NoSteps) {
  TimedBackend backend({0});
  StepClock clock;
  SegmentProfile profile;
  ORIEL_ASSERT_OK(clock.Begin(backend, 0));
  ORIEL_EXPECT_OK(clock.AddTo(backend, profile));
  EXPECT_EQ(profile.least_empty_nanoseconds, 0);
}

}  // namespace
}  // namespace oriel::runtime
