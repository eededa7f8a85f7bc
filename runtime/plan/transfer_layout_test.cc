#include "runtime/plan/transfer_layout.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One side of a channel: a grid and how the tensor lies over it.
struct Side {
  std::vector<int64_t> axes;
  plan::Sharding sharding;
};

plan::Plan TwoGrids(const Side& source, const Side& target, const Shape& shape) {
  plan::Plan plan;
  *plan.add_grids() = MakeGrid(source.axes);
  *plan.add_grids() = MakeGrid(target.axes);
  plan.mutable_grids(1)->set_first_rank(GridLayout(plan.grids(0)).size());
  plan::Channel* channel = plan.add_channels();
  channel->set_name("h");
  channel->set_target_grid(1);
  *channel->mutable_global() = ToPlan(TensorSpec{DType::kF32, shape});
  *channel->mutable_source() = source.sharding;
  *channel->mutable_target() = target.sharding;
  return plan;
}

// {peer, start, size}
using Part = std::tuple<int64_t, Shape, Shape>;

std::vector<Part> Parts(const std::vector<TransferPart>& parts) {
  std::vector<Part> result;
  for (const TransferPart& part : parts) {
    result.emplace_back(part.peer, part.box.start, part.box.size);
  }
  return result;
}

TEST(TransferLayoutTest, EqualGridsSendRankToRank) {
  const Side side{{2, 2}, MakeSharding({{"a0"}})};
  const plan::Plan plan = TwoGrids(side, side, {4, 6});
  ORIEL_ASSERT_OK_AND_ASSIGN(TransferLayout layout, TransferLayout::Create(plan, plan.channels(0)));
  for (int64_t i = 0; i < 4; ++i) {
    const Shape start = {i / 2 * 2, 0}, size = {2, 6};
    EXPECT_THAT(Parts(layout.SentBy(i)), ElementsAre(Part{4 + i, start, size}));
    EXPECT_THAT(Parts(layout.ReceivedBy(4 + i)), ElementsAre(Part{i, start, size}));
  }
}

// Rows on 4 ranks, which every receiver has whole: it gets each from the rank that has it.
TEST(TransferLayoutTest, ReceiverJoinsWhatIsCut) {
  const plan::Plan plan = TwoGrids({{4}, MakeSharding({{"a0"}})}, {{2}, {}}, {4, 3});
  ORIEL_ASSERT_OK_AND_ASSIGN(TransferLayout layout, TransferLayout::Create(plan, plan.channels(0)));
  for (const int64_t receiver : {4, 5}) {
    EXPECT_THAT(Parts(layout.ReceivedBy(receiver)),
                ElementsAre(Part{0, {0, 0}, {1, 3}}, Part{1, {1, 0}, {1, 3}},
                            Part{2, {2, 0}, {1, 3}}, Part{3, {3, 0}, {1, 3}}));
  }
}

// Receivers 0 and 2 need the same rows of two replicas: each gets them from another one.
TEST(TransferLayoutTest, ReplicasTakeTurns) {
  const plan::Plan plan =
      TwoGrids({{2, 2}, MakeSharding({{"a0"}})}, {{2, 2}, MakeSharding({{"a1"}})}, {4});
  ORIEL_ASSERT_OK_AND_ASSIGN(TransferLayout layout, TransferLayout::Create(plan, plan.channels(0)));
  EXPECT_THAT(Parts(layout.SentBy(0)), ElementsAre(Part{4, {0}, {2}}));
  EXPECT_THAT(Parts(layout.SentBy(1)), ElementsAre(Part{6, {0}, {2}}));
  EXPECT_THAT(Parts(layout.SentBy(2)), ElementsAre(Part{5, {2}, {2}}));
  EXPECT_THAT(Parts(layout.SentBy(3)), ElementsAre(Part{7, {2}, {2}}));
}

// The elements of the tensor that a box covers, row-major.
std::vector<int64_t> Elements(const Shape& shape, const Box& box) {
  std::vector<int64_t> elements;
  const BoxRuns runs(WholeBox(shape), box);
  for (int64_t i = 0; i < runs.count(); ++i) {
    for (int64_t j = 0; j < runs.length(); ++j) elements.push_back(runs[i].a + j);
  }
  return elements;
}

void ExpectEachReceiverIsFilledOnce(const plan::Plan& plan, const TransferLayout& layout) {
  const Shape shape = FromPlan(plan.channels(0).global()).shape;
  const GridLayout source(plan.grids(0)), target(plan.grids(1));
  for (int64_t i = 0; i < target.size(); ++i) {
    const int64_t receiver = target.first_rank() + i;
    std::vector<int64_t> received;
    for (const TransferPart& part : layout.ReceivedBy(receiver)) {
      ASSERT_TRUE(source.Contains(part.peer));
      // The sender has it.
      EXPECT_EQ(Intersect(layout.source().BoxOf(part.peer), part.box), part.box);
      const std::vector<int64_t> elements = Elements(shape, part.box);
      received.insert(received.end(), elements.begin(), elements.end());
    }
    std::sort(received.begin(), received.end());
    EXPECT_EQ(received, Elements(shape, layout.target().BoxOf(receiver))) << receiver;
  }
}

// What a sender says that it sends to a receiver is what the receiver says, in the same order.
void ExpectSidesMirrorEachOther(const plan::Plan& plan, const TransferLayout& layout) {
  using Messages = std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<Shape, Shape>>>;
  Messages sent, received;
  const GridLayout source(plan.grids(0)), target(plan.grids(1));
  for (int64_t rank = source.first_rank(); source.Contains(rank); ++rank) {
    for (const TransferPart& part : layout.SentBy(rank)) {
      sent[{rank, part.peer}].emplace_back(part.box.start, part.box.size);
    }
  }
  for (int64_t rank = target.first_rank(); target.Contains(rank); ++rank) {
    for (const TransferPart& part : layout.ReceivedBy(rank)) {
      received[{part.peer, rank}].emplace_back(part.box.start, part.box.size);
    }
  }
  EXPECT_EQ(sent, received);
  for (const auto& [ranks, parts] : sent) EXPECT_EQ(parts.size(), 1u);
}

// Of two ranks with the same box none sends to two receivers more than the other.
void ExpectReplicasShareTheWork(const plan::Plan& plan, const TransferLayout& layout) {
  std::map<Shape, std::pair<size_t, size_t>> fewest_and_most;
  const GridLayout source(plan.grids(0));
  for (int64_t rank = source.first_rank(); source.Contains(rank); ++rank) {
    const size_t count = layout.SentBy(rank).size();
    auto [box, is_new] =
        fewest_and_most.emplace(layout.source().BoxOf(rank).start, std::pair(count, count));
    auto& [fewest, most] = box->second;
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  }
  for (const auto& [box, counts] : fewest_and_most) EXPECT_LE(counts.second - counts.first, 1u);
}

// Grids of 1 to 12 ranks of a tensor [12, 8, 6]: samples cut, features cut, both, one dimension
// over several axes in either order, replicas in any place.
const Side kSides[] = {
    {{1}, {}},
    {{2}, {}},
    {{2}, MakeSharding({{"a0"}})},
    {{3}, MakeSharding({{"a0"}})},
    {{4}, MakeSharding({{"a0"}})},
    {{4}, MakeSharding({{}, {"a0"}})},
    {{4}, {}},
    {{2, 2}, MakeSharding({{"a0"}})},
    {{2, 2}, MakeSharding({{"a1"}})},
    {{2, 2}, MakeSharding({{"a1", "a0"}})},
    {{2, 2}, MakeSharding({{"a0"}, {}, {"a1"}})},
    {{2, 4}, MakeSharding({{"a0"}, {"a1"}})},
    {{2, 2, 2}, MakeSharding({{"a2"}, {"a0"}})},
    {{2, 3, 2}, MakeSharding({{"a2"}, {"a0"}, {"a1"}})},
    {{2, 3, 2}, MakeSharding({{"a1", "a0"}})},
    {{2, 3, 2}, MakeSharding({{}, {}, {"a1"}})},
    {{6}, {}},
};

TEST(TransferLayoutTest, AnyTwoSidesFit) {
  for (size_t i = 0; i < std::size(kSides); ++i) {
    for (size_t j = 0; j < std::size(kSides); ++j) {
      SCOPED_TRACE(testing::Message() << "from side " << i << " to side " << j);
      const plan::Plan plan = TwoGrids(kSides[i], kSides[j], {12, 8, 6});
      ORIEL_ASSERT_OK_AND_ASSIGN(TransferLayout layout,
                                 TransferLayout::Create(plan, plan.channels(0)));
      ExpectEachReceiverIsFilledOnce(plan, layout);
      ExpectSidesMirrorEachOther(plan, layout);
      ExpectReplicasShareTheWork(plan, layout);
    }
  }
}

TEST(TransferLayoutTest, ScalarGoesToEveryReceiver) {
  const plan::Plan plan = TwoGrids({{2}, {}}, {{4}, {}}, {});
  ORIEL_ASSERT_OK_AND_ASSIGN(TransferLayout layout, TransferLayout::Create(plan, plan.channels(0)));
  EXPECT_THAT(Parts(layout.SentBy(0)), ElementsAre(Part{2, {}, {}}, Part{4, {}, {}}));
  EXPECT_THAT(Parts(layout.SentBy(1)), ElementsAre(Part{3, {}, {}}, Part{5, {}, {}}));
}

TEST(TransferLayoutTest, NothingIsSentOfATensorWithoutElements) {
  const plan::Plan plan = TwoGrids({{2}, {}}, {{2}, MakeSharding({{"a0"}})}, {4, 0});
  ORIEL_ASSERT_OK_AND_ASSIGN(TransferLayout layout, TransferLayout::Create(plan, plan.channels(0)));
  EXPECT_TRUE(layout.SentBy(0).empty());
  EXPECT_TRUE(layout.ReceivedBy(3).empty());
}

TEST(TransferLayoutTest, SaysWhatDoesNotFit) {
  const auto error = [](const Side& source, const Side& target) {
    const plan::Plan plan = TwoGrids(source, target, {4});
    return TransferLayout::Create(plan, plan.channels(0)).status();
  };
  const Side whole{{2}, {}};
  EXPECT_THAT(error({{2}, MakeSharding({}, {"a0"})}, whole),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the source of channel 'h' is a pending reduction, which can't be sent"));
  plan::Sharding maximum;
  maximum.add_partial_max("a0");
  EXPECT_THAT(error(whole, {{2}, maximum}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the target of channel 'h' is a pending reduction, which can't be sent"));
  EXPECT_THAT(
      error(whole, {{3}, MakeSharding({{"a0"}})}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("the target of channel 'h'"), HasSubstr("does not divide"))));
  for (const int grid : {-1, 0, 2}) {
    plan::Plan plan = TwoGrids(whole, whole, {4});
    plan.mutable_channels(0)->set_target_grid(grid);
    EXPECT_THAT(
        TransferLayout::Create(plan, plan.channels(0)),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("channel 'h' goes from grid 0 to grid " + std::to_string(grid))));
  }
}

}  // namespace
}  // namespace oriel::runtime
