#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/conformance.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

// The neighbours in the ring of all ranks, in which a rank alone is its own.
int64_t Next(const Communicator& comm) { return (comm.rank() + 1) % comm.size(); }
int64_t Previous(const Communicator& comm) { return (comm.rank() + comm.size() - 1) % comm.size(); }

// What rank `sender` puts into its message `number`, so that its receiver knows it. The whole
// content of a short message depends on both.
std::vector<char> Content(int64_t sender, int64_t number, int64_t bytes) {
  std::vector<char> content(bytes);
  uint64_t state = static_cast<uint64_t>(sender * 1000003 + number + 1);
  for (int64_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0) state = state * 6364136223846793005u + 1442695040888963407u;
    content[i] = static_cast<char>(state >> (56 - i % 8));
  }
  return content;
}

// Messages in flight, with the memory of each. Started in one order and finished in another.
class Mail {
 public:
  explicit Mail(Communicator& comm) : comm_(comm) {}

  void Send(int64_t peer, int64_t tag, int64_t number, int64_t bytes) {
    Letter& letter = Add(Content(comm_.rank(), number, bytes));
    letter.text = absl::StrCat("send to ", peer, " with tag ", tag);
    auto message = comm_.Send(peer, tag, letter.data.data(), bytes);
    ORIEL_ASSERT_OK(message);
    letter.message = *std::move(message);
  }

  void Receive(int64_t peer, int64_t tag, int64_t number, int64_t bytes) {
    Letter& letter = Add(std::vector<char>(bytes, '?'));
    letter.text = absl::StrCat("receive from ", peer, " with tag ", tag);
    letter.expected = Content(peer, number, bytes);
    letter.receives = true;
    auto message = comm_.Receive(peer, tag, letter.data.data(), bytes);
    ORIEL_ASSERT_OK(message);
    letter.message = *std::move(message);
  }

  // Waits for the index-th that was started, and compares what came. What was sent is written over,
  // for it is not needed any more.
  void Finish(size_t index) {
    Letter& letter = *letters_[index];
    if (letter.message == nullptr) return;
    ORIEL_ASSERT_OK(letter.message->Wait()) << letter.text;
    if (letter.receives) {
      EXPECT_TRUE(letter.data == letter.expected) << "rank " << comm_.rank() << ": " << letter.text;
    } else {
      std::fill(letter.data.begin(), letter.data.end(), '!');
    }
    letter.message.reset();
  }

  void FinishInOrder() {
    for (size_t i = 0; i < letters_.size(); ++i) Finish(i);
  }
  // Every `stride`-th, which has no divisor in common with their number.
  void FinishShuffled(size_t stride) {
    ASSERT_EQ(std::gcd(stride, letters_.size()), 1u);
    for (size_t i = 0; i < letters_.size(); ++i) Finish(i * stride % letters_.size());
  }

 private:
  struct Letter {
    std::vector<char> data;
    std::vector<char> expected;
    bool receives = false;
    std::string text;
    std::unique_ptr<Message> message;
  };

  Letter& Add(std::vector<char> data) {
    letters_.push_back(std::make_unique<Letter>());
    letters_.back()->data = std::move(data);
    return *letters_.back();
  }

  Communicator& comm_;
  std::vector<std::unique_ptr<Letter>> letters_;
};

// Both orders of starting, and of waiting: a rank may wait for its send first.
void MessagesAroundARing(Communicator& comm) {
  for (const int64_t bytes : {0, 1, 13, 4096, 100'003}) {
    for (const bool receive_first : {false, true}) {
      for (const size_t first : {0, 1}) {
        Mail mail(comm);
        if (receive_first) mail.Receive(Previous(comm), 3, bytes, bytes);
        mail.Send(Next(comm), 3, bytes, bytes);
        if (!receive_first) mail.Receive(Previous(comm), 3, bytes, bytes);
        mail.Finish(first);
        mail.Finish(1 - first);
      }
    }
  }
}

// Of one tag they arrive as they were sent, whatever their sizes and in whatever order they are
// waited for.
void MessagesOfATagKeepTheirOrder(Communicator& comm) {
  constexpr int64_t kMessages = 21;
  const auto bytes = [](int64_t i) { return i % 4 == 3 ? 70'000 : i * 5; };
  Mail mail(comm);
  for (int64_t i = 0; i < kMessages; ++i) mail.Send(Next(comm), 0, i, bytes(i));
  for (int64_t i = 0; i < kMessages; ++i) mail.Receive(Previous(comm), 0, i, bytes(i));
  mail.FinishShuffled(5);
}

void TagsOutOfOrder(Communicator& comm) {
  const std::vector<int64_t> tags = {0, 1, 77, kMaxTags - 1, 4, 300};
  Mail mail(comm);
  for (const int64_t tag : tags) mail.Send(Next(comm), tag, tag, 1000 + tag);
  for (auto tag = tags.rbegin(); tag != tags.rend(); ++tag) {
    mail.Receive(Previous(comm), *tag, *tag, 1000 + *tag);
  }
  mail.FinishShuffled(7);
}

// 100 messages to and from both neighbours at once, some of them large, tags used twice.
void ManyMessagesInFlight(Communicator& comm) {
  constexpr int64_t kEach = 100;
  const auto bytes = [&](int64_t i) { return i % 10 == 9 && comm.size() <= 8 ? 200'000 : i * 11; };
  Mail mail(comm);
  for (int64_t i = 0; i < kEach; ++i) {
    mail.Receive(Previous(comm), i / 2, i, bytes(i));
    mail.Send(Next(comm), i / 2, i, bytes(i));
    mail.Send(Previous(comm), 1000 + i / 2, i + kEach, bytes(i));
  }
  for (int64_t i = 0; i < kEach; ++i) mail.Receive(Next(comm), 1000 + i / 2, i + kEach, bytes(i));
  mail.FinishShuffled(37);
}

// Both directions between the first and the last rank at once.
void LargeMessages(Communicator& comm) {
  const int64_t bytes = comm.size() <= 2 ? (64 << 20) + 5 : 3'000'001;
  if (comm.rank() == 0 || comm.rank() == comm.size() - 1) {
    const int64_t peer = comm.size() - 1 - comm.rank();
    Mail mail(comm);
    mail.Send(peer, 1, 1, bytes);
    mail.Receive(peer, 1, 1, bytes);
    mail.FinishInOrder();
  }
  ORIEL_EXPECT_OK(comm.Barrier());
}

// The receiver does not wait for the message before the sender has finished its own wait.
void ASendIsDoneOnceItsReceiveIsStarted(Communicator& comm) {
  for (const int64_t bytes : {0, 8, 500'000}) {
    Mail sent(comm), received(comm);
    sent.Send(Next(comm), 1, bytes, bytes);
    received.Receive(Previous(comm), 1, bytes, bytes);
    sent.FinishInOrder();
    ORIEL_ASSERT_OK(comm.Barrier());
    received.FinishInOrder();
  }
}

// Ranks that compute let messages go on; that neither takes one twice nor out of order.
void ProgressBetweenMessages(Communicator& comm) {
  comm.Progress();
  Mail mail(comm);
  for (int64_t i = 0; i < 25; ++i) {
    if (i < 20) mail.Receive(Previous(comm), 1, i, 90'000);
    comm.Progress();
    if (i >= 5) mail.Send(Next(comm), 1, i - 5, 90'000);
    comm.Progress();
  }
  mail.FinishShuffled(7);
  comm.Progress();
}

// The receive starts late: the sender has gone on, and waits then.
void ASendWaitsForALateReceive(Communicator& comm) {
  for (const int64_t bytes : {8, 500'000}) {
    Mail mail(comm);
    mail.Send(Next(comm), 1, bytes, bytes);
    ORIEL_ASSERT_OK(comm.Barrier());
    mail.Receive(Previous(comm), 1, bytes, bytes);
    mail.FinishInOrder();
  }
}

// Pairs of ranks; of an odd number, one has no part.
void PingPong(Communicator& comm) {
  const int64_t rounds = comm.size() <= 2 ? 1000 : 50;
  const int64_t peer = comm.rank() ^ 1;
  if (peer < comm.size()) {
    int64_t ball = 0;
    for (int64_t round = 0; round < rounds; ++round) {
      for (const bool back : {false, true}) {
        const bool sends = (comm.rank() % 2 == 1) == back;
        if (sends) ++ball;
        auto message = sends ? comm.Send(peer, back, &ball, sizeof ball)
                             : comm.Receive(peer, back, &ball, sizeof ball);
        ORIEL_ASSERT_OK(message);
        ORIEL_ASSERT_OK((*message)->Wait());
      }
    }
    EXPECT_EQ(ball, 2 * rounds);
  }
  ORIEL_EXPECT_OK(comm.Barrier());
}

// Both sides get the error, and later messages of the same tag work.
void MessageSizesMustAgree(Communicator& comm) {
  for (const auto& [sent, received] : std::vector<std::pair<int64_t, int64_t>>{
           {8, 4}, {4, 8}, {0, 4}, {4, 0}, {300'000, 200'000}, {200'000, 300'000}}) {
    std::vector<char> source(sent), target(received);
    ORIEL_ASSERT_OK_AND_ASSIGN(auto send, comm.Send(Next(comm), 9, source.data(), sent));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto receive,
                               comm.Receive(Previous(comm), 9, target.data(), received));
    const auto disagree = [sent = sent, received = received](int64_t sender, int64_t receiver) {
      return StatusIs(
          absl::StatusCode::kAborted,
          absl::StrCat("ranks disagree: rank ", sender, " sends ", sent, " bytes with tag 9, rank ",
                       receiver, " receives ", received, " bytes"));
    };
    EXPECT_THAT(send->Wait(), disagree(comm.rank(), Next(comm)));
    EXPECT_THAT(receive->Wait(), disagree(Previous(comm), comm.rank()));
    Mail mail(comm);
    mail.Send(Next(comm), 9, sent, received);
    mail.Receive(Previous(comm), 9, sent, received);
    mail.FinishInOrder();
  }
}

void MessagesAndCollectivesDoNotOrderEachOther(Communicator& comm) {
  const auto all_reduce = [&comm] {
    int64_t value = comm.rank();
    const ReduceBuffer buffer = {&value, &value, 1, DType::kI64};
    ORIEL_ASSERT_OK(comm.AllReduce(Reduction::kSum, {&buffer, 1}));
    EXPECT_EQ(value, comm.size() * (comm.size() - 1) / 2);
  };
  for (int64_t round = 0; round < 20; ++round) {
    const int64_t bytes = round % 2 == 0 ? 100 : 100'000;
    Mail mail(comm);
    mail.Receive(Previous(comm), 5, round, bytes);
    all_reduce();
    // Ranks are in different calls: those with an even number send before the collective.
    if (comm.rank() % 2 == 0) mail.Send(Next(comm), 5, round, bytes);
    ORIEL_ASSERT_OK(comm.Barrier());
    if (comm.rank() % 2 == 1) mail.Send(Next(comm), 5, round, bytes);
    all_reduce();
    mail.FinishInOrder();
  }
}

// Peers are ranks of the group. Messages of the group and of all ranks have the same tag, and are
// on their way together.
void MessagesInGroups(Communicator& comm) {
  for (const int64_t ways : {1, 2, 3}) {
    std::vector<int64_t> ranks;
    for (int64_t rank = comm.rank() % ways; rank < comm.size(); rank += ways) {
      ranks.push_back(rank);
    }
    ORIEL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Communicator> group, comm.Group(ranks));
    Mail outer(comm), inner(*group);
    for (const int64_t bytes : {40, 50'000}) {
      outer.Send(Next(comm), 2, bytes, bytes);
      inner.Send(Next(*group), 2, bytes + 1, bytes);
      inner.Receive(Previous(*group), 2, bytes + 1, bytes);
      outer.Receive(Previous(comm), 2, bytes, bytes);
    }
    inner.FinishInOrder();
    outer.FinishInOrder();
    ORIEL_EXPECT_OK(comm.Barrier());
  }
}

// Ranks of a mismatch are told as ranks of the world, also by a group.
void MismatchInAGroupNamesRanksOfTheWorld(Communicator& comm) {
  const int64_t last = comm.size() - 1;
  if (comm.rank() == last) {
    ORIEL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Communicator> group, comm.Group({last}));
    char byte = 0;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto send, group->Send(0, 0, &byte, 1));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto receive, group->Receive(0, 0, nullptr, 0));
    const std::string text = absl::StrCat("rank ", last, " sends 1 bytes with tag 0, rank ", last);
    EXPECT_THAT(send->Wait(), StatusIs(absl::StatusCode::kAborted, HasSubstr(text)));
    EXPECT_THAT(receive->Wait(), StatusIs(absl::StatusCode::kAborted, HasSubstr(text)));
  }
  ORIEL_EXPECT_OK(comm.Barrier());
}

// Of a message that has arrived, and of one that nobody sends. Other tags work on.
void MessagesNeedNotBeWaitedFor(Communicator& comm) {
  {
    std::vector<char> source(1000), target(1000), never(1000);
    ORIEL_ASSERT_OK_AND_ASSIGN(auto nothing,
                               comm.Receive(Previous(comm), 31'000, never.data(), 1000));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto receive,
                               comm.Receive(Previous(comm), 31'001, target.data(), 1000));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto send, comm.Send(Next(comm), 31'001, source.data(), 1000));
    ORIEL_EXPECT_OK(receive->Wait());
    ORIEL_EXPECT_OK(comm.Barrier());
  }
  MessagesAroundARing(comm);
}

void RefusesBadMessages(Communicator& comm) {
  char byte = 0;
  const auto refused = [](const char* why) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why));
  };
  EXPECT_THAT(comm.Send(comm.size(), 0, &byte, 1), refused("send of 1 bytes, peer"));
  EXPECT_THAT(comm.Receive(-1, 0, &byte, 1), refused("receive of 1 bytes, peer -1 of"));
  EXPECT_THAT(comm.Send(0, kMaxTags, &byte, 1), refused("tag 32768"));
  EXPECT_THAT(comm.Receive(0, -1, &byte, 1), refused("tag -1"));
  EXPECT_THAT(comm.Receive(0, 0, &byte, -1), refused("receive of -1 bytes"));
  EXPECT_THAT(comm.Send(0, 0, nullptr, 1), refused("send: the buffer has no address"));
}

}  // namespace

const std::vector<ConformanceCase>& MessageConformanceCases() {
  static const auto* cases = new std::vector<ConformanceCase>{
      {"MessagesAroundARing", MessagesAroundARing},
      {"MessagesOfATagKeepTheirOrder", MessagesOfATagKeepTheirOrder},
      {"TagsOutOfOrder", TagsOutOfOrder},
      {"ManyMessagesInFlight", ManyMessagesInFlight},
      {"LargeMessages", LargeMessages},
      {"ASendIsDoneOnceItsReceiveIsStarted", ASendIsDoneOnceItsReceiveIsStarted},
      {"ProgressBetweenMessages", ProgressBetweenMessages},
      {"ASendWaitsForALateReceive", ASendWaitsForALateReceive},
      {"PingPong", PingPong},
      {"MessageSizesMustAgree", MessageSizesMustAgree},
      {"MessagesAndCollectivesDoNotOrderEachOther", MessagesAndCollectivesDoNotOrderEachOther},
      {"MessagesInGroups", MessagesInGroups},
      {"MismatchInAGroupNamesRanksOfTheWorld", MismatchInAGroupNamesRanksOfTheWorld},
      {"MessagesNeedNotBeWaitedFor", MessagesNeedNotBeWaitedFor},
      {"RefusesBadMessages", RefusesBadMessages},
  };
  return *cases;
}

}  // namespace oriel::runtime
