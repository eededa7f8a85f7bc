#include "runtime/comm/link_delay.h"

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/comm/conformance.h"
#include "runtime/comm/in_process.h"

namespace oriel::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// Runs ranks as threads, each with a slow communicator.
void RunRanks(int64_t size, const LinkDelay& delay,
              const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (auto& world : MakeInProcessWorld(size)) {
    threads.emplace_back([&, world = std::move(world)] {
      const std::unique_ptr<Communicator> slow = DelayCommunication(*world, delay);
      body(*slow);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

double MillisecondsOf(const std::function<void()>& body) {
  const Clock::time_point begin = Clock::now();
  body();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

class LinkDelayConformance : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(LinkDelayConformance, Case) {
  for (const int64_t size : {1, 2, 5}) {
    RunRanks(size, {microseconds(1), 20e9}, [](Communicator& comm) { GetParam().run(comm); });
  }
}

INSTANTIATE_TEST_SUITE_P(InProcess, LinkDelayConformance, ::testing::ValuesIn(ConformanceCases()),
                         [](const auto& info) { return info.param.name; });

TEST(ParseLinkDelay, TakesTimesAndBandwidths) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const LinkDelay both,
                             ParseLinkDelay("latency=50us,bandwidth=1.5GB/s"));
  EXPECT_EQ(both.latency, microseconds(50));
  EXPECT_EQ(both.bandwidth, 1.5e9);
  ORIEL_ASSERT_OK_AND_ASSIGN(const LinkDelay latency, ParseLinkDelay("latency=0.25ms"));
  EXPECT_EQ(latency.latency, microseconds(250));
  EXPECT_EQ(latency.bandwidth, 0);
  ORIEL_ASSERT_OK_AND_ASSIGN(const LinkDelay bandwidth, ParseLinkDelay("bandwidth=300B/s"));
  EXPECT_EQ(bandwidth.bandwidth, 300);
}

TEST(ParseLinkDelay, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> bad[] = {
      {"", "'' is neither latency=50us nor bandwidth=1GB/s"},
      {"latency=50", "'50' is not a time"},
      {"latency=-1us", "'-1us' is not a time"},
      {"latency=us", "'us' is not a time"},
      {"bandwidth=0GB/s", "'0GB/s' is not a bandwidth"},
      {"bandwidth=1GB", "'1GB' is not a bandwidth"},
      {"latency=1us,latency=2us", "latency is given twice"},
      {"jitter=1us", "'jitter=1us' is neither"},
  };
  for (const auto& [text, why] : bad) {
    EXPECT_THAT(ParseLinkDelay(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  }
}

// Each collective takes the time of its hops and its volume, and hardly more than it has to. The
// upper bounds are for a busy machine.
TEST(LinkDelay, FollowsTheFormula) {
  constexpr int64_t kRanks = 4, kBytes = 40'000;  // of the largest operand
  struct Case {
    const char* name;
    double hops, bytes;
    absl::Status (*call)(Communicator&, char* source, char* target);
  };
  const Case cases[] = {
      {"all_reduce", 6, 2 * 30'000,
       [](Communicator& comm, char* source, char* target) {
         const ReduceBuffer buffer{source, target, kBytes / 4, DType::kF32};
         return comm.AllReduce(Reduction::kSum, {&buffer, 1});
       }},
      {"all_gather", 3, 30'000,
       [](Communicator& comm, char* source, char* target) {
         return comm.AllGather({{source, target, DType::kF32, {}, {1, kBytes / 16}}});
       }},
      {"reduce_scatter", 3, 30'000,
       [](Communicator& comm, char* source, char* target) {
         return comm.ReduceScatter(Reduction::kSum,
                                   {{source, target, DType::kF32, {1, kBytes / 16}, {}}});
       }},
      {"all_to_all", 3, 30'000,
       [](Communicator& comm, char* source, char* target) {
         const Blocks blocks{1, kBytes / 16};
         return comm.AllToAll({{source, target, DType::kF32, blocks, blocks}});
       }},
      {"bucket", 3, 30'000,
       [](Communicator& comm, char* source, char* target) {
         const PieceBuffer half{source, target, DType::kF32, {}, {1, kBytes / 32}};
         const PieceBuffer rest{source, target + kBytes / 2, DType::kF32, {}, {1, kBytes / 32}};
         return comm.AllGather({half, rest});
       }},
      {"broadcast", 3, 40'000,
       [](Communicator& comm, char* source, char*) { return comm.Broadcast(0, source, kBytes); }},
      {"barrier", 2, 0, [](Communicator& comm, char*, char*) { return comm.Barrier(); }},
  };
  for (const Case& each : cases) {
    RunRanks(kRanks, {milliseconds(4), 2e6}, [&](Communicator& comm) {
      std::vector<char> source(kBytes), target(kBytes);
      const double time =
          MillisecondsOf([&] { ORIEL_EXPECT_OK(each.call(comm, source.data(), target.data())); });
      const double expected = each.hops * 4 + each.bytes / 2e3;
      EXPECT_GE(time, expected) << each.name;
      EXPECT_LE(time, expected + 300) << each.name;
    });
  }
}

// Of two groups of a rank one waits until the other has sent.
TEST(LinkDelay, GroupsShareALink) {
  RunRanks(2, {microseconds(0), 1e6}, [](Communicator& comm) {
    std::vector<std::unique_ptr<Communicator>> groups(2);
    for (auto& group : groups) {
      ORIEL_ASSERT_OK_AND_ASSIGN(group, comm.Group({0, 1}));
    }
    const auto gather = [](Communicator& group) {
      std::vector<char> source(40'000), target(80'000);  // 40 ms
      ORIEL_EXPECT_OK(group.AllGather(source.data(), 40'000, target.data()));
    };
    const double time = MillisecondsOf([&] {
      std::thread other([&] { gather(*groups[1]); });
      gather(*groups[0]);
      other.join();
    });
    EXPECT_GE(time, 80);
  });
}

// What has been on its way long enough is there when it is waited for; else the rest is waited for.
// Messages follow each other on the sender's link. Times are long beside what a busy machine holds
// a thread up for.
TEST(LinkDelay, MessagesArriveWhileTheReceiverComputes) {
  constexpr int64_t kBytes = 120'000;  // 120 ms
  RunRanks(2, {milliseconds(40), 1e6}, [](Communicator& comm) {
    std::vector<char> data(2 * kBytes);
    std::vector<std::unique_ptr<Message>> messages;
    ORIEL_ASSERT_OK(comm.Barrier());
    const Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < 2; ++i) {
      char* place = data.data() + i * kBytes;
      auto message =
          comm.rank() == 0 ? comm.Send(1, i, place, kBytes) : comm.Receive(0, i, place, kBytes);
      ORIEL_ASSERT_OK(message);
      messages.push_back(*std::move(message));
    }
    std::this_thread::sleep_until(begin + milliseconds(220));
    const double first = MillisecondsOf([&] { ORIEL_EXPECT_OK(messages[0]->Wait()); });
    EXPECT_LE(first, 60) << "it was there after 120 or 160 ms";
    ORIEL_EXPECT_OK(messages[1]->Wait());
    const auto all = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    EXPECT_GE(all, comm.rank() == 0 ? 240 : 279);
  });
}

TEST(LinkDelay, ErrorsComeFromBeneath) {
  RunRanks(2, {milliseconds(1), 1e6}, [](Communicator& comm) {
    if (comm.rank() == 1) return comm.Abort(absl::InternalError("no memory"));
    EXPECT_THAT(comm.Barrier(), StatusIs(absl::StatusCode::kAborted, HasSubstr("no memory")));
  });
}

}  // namespace
}  // namespace oriel::runtime
