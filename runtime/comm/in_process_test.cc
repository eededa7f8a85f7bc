#include "runtime/comm/in_process.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/conformance.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Runs `body` on a thread for each rank. The thread owns the rank's communicator, and destroys it
// when the body returns.
void RunRanks(int64_t size, const std::function<void(std::unique_ptr<Communicator>)>& body) {
  std::vector<std::thread> threads;
  for (auto& communicator : MakeInProcessWorld(size)) {
    threads.emplace_back(body, std::move(communicator));
  }
  for (std::thread& thread : threads) thread.join();
}

class InProcessConformance : public ::testing::TestWithParam<std::tuple<ConformanceCase, int64_t>> {
};

TEST_P(InProcessConformance, Case) {
  const auto [test, size] = GetParam();
  RunRanks(size,
           [run = test.run](std::unique_ptr<Communicator> communicator) { run(*communicator); });
}

INSTANTIATE_TEST_SUITE_P(InProcess, InProcessConformance,
                         ::testing::Combine(::testing::ValuesIn(ConformanceCases()),
                                            ::testing::Values<int64_t>(1, 2, 3, 4, 5, 6, 7, 8, 64)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "On",
                                               std::get<1>(info.param));
                         });

TEST(InProcess, AbortWakesEverybodyWithTheReason) {
  RunRanks(5, [](std::unique_ptr<Communicator> communicator) {
    if (communicator->rank() == 3) {
      communicator->Abort(absl::OutOfRangeError("label 7 is not in the vocabulary"));
    }
    const auto aborted =
        StatusIs(absl::StatusCode::kAborted, "rank 3 failed: label 7 is not in the vocabulary");
    EXPECT_THAT(communicator->Barrier(), aborted);
    EXPECT_THAT(communicator->Barrier(), aborted);  // and so does every later call
  });
}

TEST(InProcess, AbortReachesGroups) {
  RunRanks(4, [](std::unique_ptr<Communicator> communicator) {
    if (communicator->rank() == 3) {
      return communicator->Abort(absl::InternalError("no memory"));
    }
    ORIEL_ASSERT_OK_AND_ASSIGN(auto group, communicator->Group({0, 1, 2}));
    while (true) {  // rank 3 is not in the group, and fails at any time
      const absl::Status status = group->Barrier();
      if (status.ok()) continue;
      // A rank that noticed has left by now, perhaps.
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
      EXPECT_THAT(std::string(status.message()), HasSubstr("no memory"));
      return;
    }
  });
}

// Each collective on pieces, from `source` to `target`.
using PieceCollective = absl::Status (*)(Communicator&, DType dtype, void* source, void* target,
                                         Blocks blocks);
const PieceCollective kPieceCollectives[] = {
    [](Communicator& comm, DType dtype, void* source, void* target, Blocks blocks) {
      return comm.AllGather({{source, target, dtype, {}, blocks}});
    },
    [](Communicator& comm, DType dtype, void* source, void* target, Blocks blocks) {
      return comm.ReduceScatter(Reduction::kSum, {{source, target, dtype, blocks, {}}});
    },
    [](Communicator& comm, DType dtype, void* source, void* target, Blocks blocks) {
      return comm.AllToAll({{source, target, dtype, blocks, {blocks.inner, blocks.outer}}});
    },
};

TEST(InProcess, AbortWakesThoseWhoWaitForPieces) {
  for (const PieceCollective collective : kPieceCollectives) {
    RunRanks(3, [&](std::unique_ptr<Communicator> communicator) {
      if (communicator->rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return communicator->Abort(absl::InternalError("no memory"));
      }
      std::vector<float> source(18), target(18);
      EXPECT_THAT(collective(*communicator, DType::kF32, source.data(), target.data(), {3, 2}),
                  StatusIs(absl::StatusCode::kAborted, "rank 1 failed: no memory"));
    });
  }
}

TEST(InProcess, DifferentPiecesAreADisagreement) {
  struct Case {
    DType dtype;
    Blocks blocks;
  };
  for (const PieceCollective collective : kPieceCollectives) {
    // Of other sizes, of the same size cut otherwise, of another type.
    for (const Case& other :
         {Case{DType::kF32, {3, 1}}, Case{DType::kF32, {2, 3}}, Case{DType::kI32, {3, 2}}}) {
      RunRanks(3, [&](std::unique_ptr<Communicator> communicator) {
        std::vector<float> source(18), target(18);
        const Case mine = communicator->rank() == 2 ? other : Case{DType::kF32, {3, 2}};
        EXPECT_THAT(
            collective(*communicator, mine.dtype, source.data(), target.data(), mine.blocks),
            StatusIs(absl::StatusCode::kAborted,
                     AllOf(HasSubstr("ranks disagree: rank 0 calls"), HasSubstr("rank 2 calls"))));
      });
    }
  }
}

TEST(InProcess, AbortKeepsTheRankThatTheErrorNames) {
  RunRanks(2, [](std::unique_ptr<Communicator> communicator) {
    if (communicator->rank() == 1) {
      communicator->Abort(absl::InternalError("rank 1, segment forward: bad index"));
    }
    EXPECT_THAT(communicator->Barrier(),
                StatusIs(absl::StatusCode::kAborted, "rank 1, segment forward: bad index"));
  });
}

TEST(InProcess, LeavingAbortsThoseWhoWait) {
  RunRanks(3, [](std::unique_ptr<Communicator> communicator) {
    if (communicator->rank() == 1) return;
    EXPECT_THAT(communicator->Barrier(),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1 has left")));
  });
}

TEST(InProcess, LeavingAbortsGroupsMadeLater) {
  std::atomic<bool> left{false};
  RunRanks(2, [&](std::unique_ptr<Communicator> communicator) {
    if (communicator->rank() == 1) {
      communicator.reset();
      left = true;
      return;
    }
    while (!left) std::this_thread::yield();
    ORIEL_ASSERT_OK_AND_ASSIGN(auto group, communicator->Group({0, 1}));
    EXPECT_THAT(group->Barrier(),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1 has left")));
  });
}

// Ranks leave at different times after their last collective: none of them sees an error.
TEST(InProcess, LeavingAfterACollectiveIsClean) {
  for (int round = 0; round < 200; ++round) {
    RunRanks(3, [](std::unique_ptr<Communicator> communicator) {
      ORIEL_EXPECT_OK(communicator->Barrier());
    });
  }
}

TEST(InProcess, DisagreementNamesBothSides) {
  RunRanks(3, [](std::unique_ptr<Communicator> communicator) {
    float value[2] = {1, 2};
    const ReduceBuffer buffer = {value, value, communicator->rank() == 2 ? 1 : 2, DType::kF32};
    EXPECT_THAT(communicator->AllReduce(Reduction::kSum, {&buffer, 1}),
                StatusIs(absl::StatusCode::kAborted,
                         AllOf(HasSubstr("rank 0 calls all_reduce of 1 buffers, 8 bytes"),
                               HasSubstr("rank 2 calls all_reduce of 1 buffers, 4 bytes"))));
  });
  RunRanks(2, [](std::unique_ptr<Communicator> communicator) {
    float value = 0;
    const absl::Status status = communicator->rank() == 0
                                    ? communicator->Barrier()
                                    : communicator->Broadcast(0, &value, sizeof(value));
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted, HasSubstr("calls broadcast")));
  });
}

// A rank fails while the others are in the middle of collectives on memory that they free as soon
// as they return. AddressSanitizer sees a peer that still touches it.
TEST(InProcess, AbortInTheMiddleTouchesNoFreedMemory) {
  for (int round = 0; round < 60; ++round) {
    RunRanks(4, [round](std::unique_ptr<Communicator> communicator) {
      if (communicator->rank() == round % 4) {
        std::this_thread::sleep_for(std::chrono::microseconds(50 + round * 17));
        return communicator->Abort(absl::InternalError("stop"));
      }
      ORIEL_ASSERT_OK_AND_ASSIGN(auto group, communicator->Group([&] {
        std::vector<int64_t> ranks;
        for (int64_t rank = 0; rank < 4; ++rank) {
          if (rank != round % 4) ranks.push_back(rank);
        }
        return ranks;
      }()));
      absl::Status status;
      while (status.ok()) {
        std::vector<float> data(20'000, 1.0f), target(3 * 20'000);
        const ReduceBuffer buffer = {data.data(), data.data(), static_cast<int64_t>(data.size()),
                                     DType::kF32};
        const size_t which = round % (std::size(kPieceCollectives) + 1);
        if (which < std::size(kPieceCollectives)) {
          status = kPieceCollectives[which](*group, DType::kF32, data.data(), target.data(),
                                            {40, 20'000 / 40 / 4});
        } else {
          status = group->AllReduce(Reduction::kSum, {&buffer, 1});
        }
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    });
  }
}

// What the wait gives, or why there is nothing to wait for: the peer may have ended before.
absl::Status Outcome(const absl::StatusOr<std::unique_ptr<Message>>& message) {
  return message.ok() ? (*message)->Wait() : message.status();
}

// Who waits for either side of a message with rank 1, which does not start its own.
void WaitForRankOne(Communicator& comm, const std::string& why) {
  std::vector<char> data(100);
  const auto aborted = StatusIs(absl::StatusCode::kAborted, why);
  for (const bool sends : {true, false}) {
    auto message = sends ? comm.Send(1, 4, data.data(), 100) : comm.Receive(1, 5, data.data(), 100);
    EXPECT_THAT(Outcome(message), aborted);
    EXPECT_THAT(Outcome(message), aborted);
  }
  EXPECT_THAT(comm.Send(1, 4, data.data(), 100), aborted);
}

TEST(InProcess, AbortWakesThoseWhoWaitForMessages) {
  for (const int delay : {0, 2}) {
    RunRanks(4, [delay](std::unique_ptr<Communicator> communicator) {
      if (communicator->rank() != 1) {
        return WaitForRankOne(*communicator, "rank 1 failed: no memory");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      communicator->Abort(absl::InternalError("no memory"));
    });
  }
}

TEST(InProcess, AbortReachesMessagesOfGroups) {
  RunRanks(3, [](std::unique_ptr<Communicator> communicator) {
    if (communicator->rank() == 2) return communicator->Abort(absl::InternalError("no memory"));
    auto group = communicator->Group({0, 1});
    if (!group.ok()) return;
    char byte = 0;
    // A rank that noticed has left by now, perhaps.
    EXPECT_THAT(Outcome((*group)->Receive(1 - communicator->rank(), 0, &byte, 1)),
                StatusIs(absl::StatusCode::kAborted,
                         ::testing::AnyOf("rank 2 failed: no memory", HasSubstr("has left"))));
  });
}

TEST(InProcess, LeavingAbortsMessagesOfThatRank) {
  for (const int delay : {0, 2}) {
    RunRanks(4, [delay](std::unique_ptr<Communicator> communicator) {
      if (communicator->rank() != 1) return WaitForRankOne(*communicator, "rank 1 has left");
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    });
  }
}

TEST(InProcess, LeavingKeepsMessagesOfOthers) {
  RunRanks(3, [](std::unique_ptr<Communicator> communicator) {
    if (communicator->rank() == 1) return;
    char byte = 0;
    EXPECT_THAT(Outcome(communicator->Receive(1, 0, &byte, 1)),
                StatusIs(absl::StatusCode::kAborted, "rank 1 has left"));
    const int64_t peer = 2 - communicator->rank();
    for (int64_t round = 0; round < 100; ++round) {
      int64_t mine = round + communicator->rank(), theirs = -1;
      ORIEL_ASSERT_OK_AND_ASSIGN(auto send, communicator->Send(peer, 0, &mine, sizeof mine));
      ORIEL_ASSERT_OK_AND_ASSIGN(auto receive,
                                 communicator->Receive(peer, 0, &theirs, sizeof theirs));
      ORIEL_ASSERT_OK(receive->Wait());
      ORIEL_ASSERT_OK(send->Wait());
      EXPECT_EQ(theirs, round + peer);
    }
  });
}

// Ranks leave at different times after their last message: none of them sees an error.
TEST(InProcess, LeavingAfterAMessageIsClean) {
  for (int round = 0; round < 200; ++round) {
    RunRanks(3, [](std::unique_ptr<Communicator> communicator) {
      const int64_t rank = communicator->rank();
      int64_t mine = rank, theirs = -1;
      ORIEL_ASSERT_OK_AND_ASSIGN(auto receive,
                                 communicator->Receive((rank + 2) % 3, 0, &theirs, sizeof theirs));
      ORIEL_ASSERT_OK_AND_ASSIGN(auto send,
                                 communicator->Send((rank + 1) % 3, 0, &mine, sizeof mine));
      ORIEL_EXPECT_OK(send->Wait());
      ORIEL_EXPECT_OK(receive->Wait());
      EXPECT_EQ(theirs, (rank + 2) % 3);
    });
  }
}

// The peer of a message that was given up gets told, whether it starts its side before or after;
// the next message of the same tag is another one.
TEST(InProcess, GivingUpAMessageTellsThePeer) {
  RunRanks(2, [](std::unique_ptr<Communicator> communicator) {
    for (const bool before : {false, true}) {
      for (const bool rank_1_sends : {false, true}) {
        const bool sends = rank_1_sends == (communicator->rank() == 1);
        std::vector<char> data(10);
        const auto start = [&, peer = 1 - communicator->rank()] {
          auto message = sends ? communicator->Send(peer, 3, data.data(), 10)
                               : communicator->Receive(peer, 3, data.data(), 10);
          EXPECT_THAT(message, ::oriel::runtime::IsOk());
          return *std::move(message);
        };
        std::unique_ptr<Message> message;
        if (communicator->rank() == 1 || !before) message = start();
        ORIEL_ASSERT_OK(communicator->Barrier());
        if (communicator->rank() == 1) message.reset();
        ORIEL_ASSERT_OK(communicator->Barrier());
        if (communicator->rank() == 0) {
          if (before) message = start();
          EXPECT_THAT(
              message->Wait(),
              StatusIs(absl::StatusCode::kAborted,
                       rank_1_sends ? "rank 1 has given up its send to rank 0 with tag 3"
                                    : "rank 1 has given up its receive from rank 0 with tag 3"));
        }
        ORIEL_EXPECT_OK(start()->Wait());
      }
    }
  });
}

// A rank that fails frees the memory of its messages at any time, also before it aborts, and so do
// those who get the error. AddressSanitizer sees a peer that still touches it.
TEST(InProcess, FailingInTheMiddleOfMessagesTouchesNoFreedMemory) {
  for (int round = 0; round < 60; ++round) {
    RunRanks(4, [round](std::unique_ptr<Communicator> communicator) {
      const int64_t rank = communicator->rank();
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(round * 37);
      absl::Status status;
      while (status.ok()) {
        std::vector<char> source(60'000, static_cast<char>(rank)), target(3 * 60'000);
        std::vector<absl::StatusOr<std::unique_ptr<Message>>> messages;
        for (int64_t hop = 1; hop < 4; ++hop) {
          messages.push_back(communicator->Receive((rank + hop) % 4, 0,
                                                   target.data() + (hop - 1) * 60'000, 60'000));
          messages.push_back(communicator->Send((rank + hop) % 4, 0, source.data(), 60'000));
        }
        if (rank == round % 4 && std::chrono::steady_clock::now() >= end) {
          messages.clear();
          status = absl::InternalError("stop");
          break;
        }
        for (auto& message : messages) {
          if (status.ok()) status = Outcome(message);
        }
        // Declared after the buffers, the messages are destroyed before them.
      }
      if (rank == round % 4) return communicator->Abort(status);
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    });
  }
}

// A message may be destroyed after the communicator that it is of.
TEST(InProcess, MessagesOutliveTheirCommunicator) {
  RunRanks(2, [](std::unique_ptr<Communicator> communicator) {
    char byte = 0;
    const auto message = communicator->Receive(1 - communicator->rank(), 0, &byte, 1);
    communicator.reset();
    EXPECT_THAT(Outcome(message), StatusIs(absl::StatusCode::kAborted, HasSubstr("has left")));
  });
}

}  // namespace
}  // namespace oriel::runtime
