#include "runtime/train/trace_file.h"

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/comm/in_process.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/two_stage_plan_testing.h"
#include "runtime/train/data_testing.h"

namespace oriel::runtime {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TraceSlice Slice(TraceSlice::Kind kind, int segment, int64_t microbatch, int64_t begin,
                 int64_t end) {
  TraceSlice slice;
  slice.kind = kind;
  slice.segment = segment;
  slice.microbatch = microbatch;
  slice.begin = begin;
  slice.end = end;
  slice.step = 4;
  return slice;
}

// The slices of a file: not the names of threads.
std::vector<json> Slices(const std::string& text) {
  std::vector<json> slices;
  const json trace = json::parse(text);
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") slices.push_back(event);
  }
  return slices;
}

TEST(TraceFileTest, NamesRunsAndWaits) {
  const plan::Plan plan = TwoStagePlan({});
  const plan::Program& program = plan.programs(1);
  TraceSlice receive = Slice(TraceSlice::Kind::kReceive, 0, 3, 2100, 2400);
  receive.instruction = 0;
  receive.channel = 0;
  TraceSlice sent = Slice(TraceSlice::Kind::kSent, 1, 3, 3000, 3100);
  sent.channel = 1;
  TraceSlice collective = Slice(TraceSlice::Kind::kCollective, 2, 0, 4000, 4100);
  collective.instruction = 0;
  // As a recorder has them: by their ends.
  const std::vector<TraceSlice> slices = {
      receive,    Slice(TraceSlice::Kind::kSegment, 0, 3, 2000, 2500),
      sent,       Slice(TraceSlice::Kind::kSegment, 1, 3, 3000, 3500),
      collective, Slice(TraceSlice::Kind::kSegment, 2, 0, 4000, 4500),
  };
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::string text,
                             FormatTrace({EncodeTrace(plan, program, {"a", 1000}, slices)}));
  std::vector<std::string> names;
  const std::vector<json> events = Slices(text);
  for (const json& event : events) names.push_back(event["name"]);
  EXPECT_THAT(names, ElementsAre("forward.1 m3", "wait h", "backward.1 m3", "wait until sent dh",
                                 "update", "all_reduce a0 of 2"));
  EXPECT_EQ(events[1], json::parse(R"({"ph":"X","pid":0,"tid":0,"name":"wait h","cat":"receive",
      "ts":1.1,"dur":0.3,"args":{"rank":0,"segment":"forward.1","microbatch":3,"step":4,
      "instruction":0}})"));
}

// What is on its way while the rank computes has a thread of its own, which is shown behind the
// rank's.
TEST(TraceFileTest, StreamsHaveThreads) {
  const plan::Plan plan = SmallTrainingPlan(2, 2, ReduceGradient::kInLast);
  TraceSlice wait = Slice(TraceSlice::Kind::kWait, 2, 1, 5000, 6000);
  wait.instruction = 4;
  TraceSlice started = Slice(TraceSlice::Kind::kStarted, 2, 1, 3000, 5900);
  started.instruction = 3;
  const std::string rank =
      EncodeTrace(plan, plan.programs(0), {"a", 1000},
                  {wait, started, Slice(TraceSlice::Kind::kSegment, 2, 1, 2000, 6500)});
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::string text, FormatTrace({rank, rank}));
  std::vector<std::pair<std::string, int>> slices;
  for (const json& event : Slices(text)) slices.emplace_back(event["name"], event["tid"]);
  EXPECT_THAT(slices,
              ElementsAre(std::pair("backward_last m1", 0), std::pair("all_reduce a0", 2),
                          std::pair("wait all_reduce a0", 0), std::pair("backward_last m1", 1),
                          std::pair("all_reduce a0", 3), std::pair("wait all_reduce a0", 1)));
  std::vector<std::pair<std::string, int>> threads;
  const json trace = json::parse(text);
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") {
      threads.emplace_back(event["args"]["name"], event["tid"]);
    }
  }
  EXPECT_THAT(threads, ElementsAre(std::pair("rank 0", 0), std::pair("rank 0 stream 1", 2),
                                   std::pair("rank 1", 1), std::pair("rank 1 stream 1", 3)));
}

// Ranks 0 and 2 are on one host: both count from when rank 2 left the barrier. Rank 1 has a clock
// of its own.
TEST(TraceFileTest, TimesCountFromTheBarrier) {
  const plan::Plan plan = SmallTrainingPlan(3, 1);
  const auto encode = [&](const std::string& host, int64_t start, int64_t begin) {
    return EncodeTrace(plan, plan.programs(0), {host, start},
                       {Slice(TraceSlice::Kind::kSegment, 0, 0, begin, begin + 1000)});
  };
  ORIEL_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      FormatTrace({encode("a", 5000, 9000), encode("b", 70000, 77000), encode("a", 4000, 9000)}));
  std::vector<std::pair<int, double>> times;
  for (const json& event : Slices(text)) times.emplace_back(event["tid"], event["ts"]);
  EXPECT_THAT(times, ElementsAre(std::pair(0, 5.0), std::pair(1, 7.0), std::pair(2, 5.0)));
  std::vector<std::string> threads;
  const json trace = json::parse(text);
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") threads.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(threads, ElementsAre("rank 0", "rank 1", "rank 2"));
}

TEST(TraceFileTest, RefusesWhatIsNoTimeline) {
  for (const char* text : {"", "[]", "{}", R"({"host": "a", "start": 1})"}) {
    EXPECT_THAT(FormatTrace({text}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("timeline")));
  }
}

TEST(TraceFileTest, FirstRankWritesAll) {
  TempFolder folder;
  const std::string path = folder / "trace.json";
  const plan::Plan plan = SmallTrainingPlan(3, 1);
  std::vector<std::thread> threads;
  for (auto& communicator : MakeInProcessWorld(3)) {
    threads.emplace_back([&, world = std::move(communicator)] {
      ORIEL_ASSERT_OK_AND_ASSIGN(TraceFile file,
                                 TraceFile::Open(path, plan, world->rank(), world.get()));
      const int64_t now = TraceNow();
      ORIEL_EXPECT_OK(file.Write(plan.programs(0), {Slice(TraceSlice::Kind::kSegment, 0,
                                                          world->rank(), now, now + 1000)}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::string text, ReadText(path));
  const std::vector<json> events = Slices(text);
  ASSERT_EQ(events.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(events[rank]["tid"], rank);
    EXPECT_EQ(events[rank]["name"], "forward m" + std::to_string(rank));
    EXPECT_EQ(events[rank]["args"]["rank"], rank);
    EXPECT_GE(events[rank]["ts"], 0);
  }
}

TEST(TraceFileTest, SaysWhyItCannotBeWritten) {
  TempFolder folder;
  const plan::Plan plan = SmallTrainingPlan(1, 1);
  const std::string path = folder / "none" + "/trace.json";
  EXPECT_THAT(TraceFile::Open(path, plan, 0, nullptr).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
}

}  // namespace
}  // namespace oriel::runtime
