#include "runtime/comm/conformance.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/conformance_values.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

// The buffers of one AllReduce call: filled, called, compared.
class ReduceCheck {
 public:
  ReduceCheck(Communicator& comm, bool in_place) : comm_(comm), in_place_(in_place) {}

  void Add(const Functions& type, int64_t count) {
    buffers_.push_back({&type, count, NewMemory(type, count), NewMemory(type, count)});
  }

  void Run(Reduction reduction) {
    std::vector<ReduceBuffer> call;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      Buffer& buffer = buffers_[i];
      buffer.type->fill(comm_.rank(), seed_ + i, buffer.count, Data(buffer.source));
      Buffer::Memory& target = in_place_ ? buffer.source : buffer.target;
      call.push_back({Data(buffer.source), Data(target), buffer.count, buffer.type->dtype});
    }
    ORIEL_ASSERT_OK(comm_.AllReduce(reduction, call));
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& buffer = buffers_[i];
      const size_t bytes = buffer.count * DTypeBytes(buffer.type->dtype);
      Buffer::Memory expected = NewMemory(*buffer.type, buffer.count);
      buffer.type->expected(reduction, comm_.size(), seed_ + i, buffer.count, Data(expected));
      EXPECT_EQ(std::memcmp(call[i].target, expected.data(), bytes), 0)
          << "rank " << comm_.rank() << " of " << comm_.size() << ", buffer " << i << ": "
          << buffer.count << " x " << DTypeName(buffer.type->dtype)
          << (in_place_ ? ", in place" : "") << (reduction == Reduction::kSum ? ", sum" : ", max");
      if (!in_place_) {
        buffer.type->fill(comm_.rank(), seed_ + i, buffer.count, Data(expected));
        EXPECT_EQ(std::memcmp(call[i].source, expected.data(), bytes), 0) << "source changed";
      }
    }
    ++seed_;
  }

 private:
  struct Buffer {
    using Memory = std::vector<uint64_t>;  // aligned for every dtype
    const Functions* type;
    int64_t count;
    Memory source;
    Memory target;
  };

  static Buffer::Memory NewMemory(const Functions& type, int64_t count) {
    return Buffer::Memory(count * DTypeBytes(type.dtype) / 8 + 1);
  }
  static char* Data(Buffer::Memory& memory) { return reinterpret_cast<char*>(memory.data()); }

  Communicator& comm_;
  const bool in_place_;
  int64_t seed_ = 0;
  std::vector<Buffer> buffers_;
};

void AllReduceEveryTypeAndSize(Communicator& comm) {
  for (const Functions& type : AllTypes(comm)) {
    for (const int64_t count : {0, 1, 3, 16, 17, 1000, 4099}) {
      // Every rank computes what all bring: keep it quadratic in small things only.
      if (count > 100 && comm.size() > 8) continue;
      for (const bool in_place : {false, true}) {
        ReduceCheck check(comm, in_place);
        check.Add(type, count);
        check.Run(Reduction::kSum);
        check.Run(Reduction::kMax);
      }
    }
  }
}

void AllReduceManyBuffers(Communicator& comm) {
  ReduceCheck check(comm, /*in_place=*/false);
  for (int64_t i = 0; i < 60; ++i) {
    check.Add(AllTypes(comm)[i % AllTypes(comm).size()], i * i * 7 % 1500);
  }
  check.Run(Reduction::kSum);
  check.Run(Reduction::kMax);
}

// Above the sizes at which an implementation may switch its method or split the buffer.
void AllReduceLarge(Communicator& comm) {
  const int64_t count = comm.size() <= 4 ? 5'000'011 : 30'011;
  ReduceCheck check(comm, /*in_place=*/true);
  check.Add(AllTypes(comm)[0], 100);
  check.Add(AllTypes(comm)[0], count);
  check.Add(AllTypes(comm)[2], count / 3);
  check.Add(AllTypes(comm)[1], 1);
  check.Run(Reduction::kSum);
}

void AllReduceRepeated(Communicator& comm) {
  ReduceCheck check(comm, /*in_place=*/true);
  check.Add(AllTypes(comm)[0], 33);
  check.Add(AllTypes(comm)[3], 1);
  for (int i = 0; i < 100; ++i) check.Run(i % 3 == 0 ? Reduction::kMax : Reduction::kSum);
}

void AllReduceOfNothing(Communicator& comm) {
  ORIEL_EXPECT_OK(comm.AllReduce(Reduction::kSum, {}));
}

void MaximumTakesNan(Communicator& comm) {
  if (!ReducesInRankOrder(comm)) return;
  // The last rank brings NaN; the others are numbers on both sides of it.
  float value = static_cast<float>(comm.rank());
  if (comm.rank() == comm.size() - 1) value = std::numeric_limits<float>::quiet_NaN();
  const ReduceBuffer buffer = {&value, &value, 1, DType::kF32};
  ORIEL_ASSERT_OK(comm.AllReduce(Reduction::kMax, {&buffer, 1}));
  EXPECT_TRUE(std::isnan(value));
}

void RefusesUnsupportedType(Communicator& comm) {
  uint8_t byte = 0;
  const ReduceBuffer buffer = {&byte, &byte, 1, DType::kU8};
  EXPECT_THAT(comm.AllReduce(Reduction::kSum, {&buffer, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("u8")));
}

void BroadcastFromEveryRoot(Communicator& comm) {
  for (const int64_t bytes : {0, 1, 1001, 1 << 20}) {
    // All roots for small messages, first and last for large ones.
    const int64_t step = bytes > 4096 ? std::max<int64_t>(comm.size() - 1, 1) : 1;
    for (int64_t root = 0; root < comm.size(); root += step) {
      std::vector<char> data(bytes, static_cast<char>(comm.rank()));
      ORIEL_ASSERT_OK(comm.Broadcast(root, data.data(), bytes));
      EXPECT_EQ(data, std::vector<char>(bytes, static_cast<char>(root)));
    }
  }
  char byte = 0;
  EXPECT_THAT(comm.Broadcast(comm.size(), &byte, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank")));
}

void AllGatherInRankOrder(Communicator& comm) {
  for (const int64_t bytes : {0, 1, 13, 10'000}) {
    std::vector<char> expected;
    for (int64_t rank = 0; rank < comm.size(); ++rank) {
      expected.insert(expected.end(), bytes, static_cast<char>(rank + 1));
    }
    const std::vector<char> mine(bytes, static_cast<char>(comm.rank() + 1));
    std::vector<char> all(expected.size());
    ORIEL_ASSERT_OK(comm.AllGather(mine.data(), bytes, all.data()));
    EXPECT_EQ(all, expected);
    // In place: the source is the rank's own part of the target.
    std::vector<char> in_place(expected.size());
    char* part = in_place.data() + comm.rank() * bytes;
    std::fill(part, part + bytes, static_cast<char>(comm.rank() + 1));
    ORIEL_ASSERT_OK(comm.AllGather(part, bytes, in_place.data()));
    EXPECT_EQ(in_place, expected);
  }
}

// Piece of rank `index` of a whole tensor, by plain loops over its elements.
std::vector<char> SlicePiece(const std::vector<char>& whole, Blocks blocks, int64_t pieces,
                             int64_t index, int64_t width) {
  std::vector<char> piece;
  for (int64_t row = 0; row < blocks.outer; ++row) {
    for (int64_t i = 0; i < blocks.inner * width; ++i) {
      piece.push_back(whole[(row * pieces + index) * blocks.inner * width + i]);
    }
  }
  return piece;
}

std::vector<char> SomeBytes(int64_t seed, int64_t count) {
  std::vector<char> bytes(count);
  for (int64_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(Bits(seed, 0, i));
  return bytes;
}

// Memory aligned for every dtype, never without an address.
class Memory {
 public:
  explicit Memory(int64_t bytes) : words_(bytes / 8 + 1), bytes_(bytes) {}
  explicit Memory(const std::vector<char>& bytes) : Memory(static_cast<int64_t>(bytes.size())) {
    std::copy(bytes.begin(), bytes.end(), data());
  }
  char* data() { return reinterpret_cast<char*>(words_.data()); }
  std::vector<char> bytes() { return {data(), data() + bytes_}; }

 private:
  std::vector<uint64_t> words_;
  int64_t bytes_;
};

// Shapes of pieces: one and several runs, runs of one element, none.
const std::vector<Blocks>& SomeBlocks() {
  static const auto* blocks =
      new std::vector<Blocks>{{1, 1}, {1, 37}, {3, 1}, {4, 5}, {2, 64}, {5, 0}, {0, 3}};
  return *blocks;
}

// Several runs per piece, whose bytes exceed what an implementation may move at a time.
Blocks LargeBlocks(int64_t size) { return {3, (size <= 4 ? 1'700'000 : 7'000) / size}; }

void CheckAllGather(Communicator& comm, DType dtype, Blocks blocks) {
  const int64_t width = DTypeBytes(dtype);
  const std::vector<char> whole =
      SomeBytes(blocks.inner, comm.size() * blocks.num_elements() * width);
  Memory source(SlicePiece(whole, blocks, comm.size(), comm.rank(), width));
  Memory target(static_cast<int64_t>(whole.size()));
  ORIEL_ASSERT_OK(comm.AllGather({{source.data(), target.data(), dtype, {}, blocks}}));
  EXPECT_TRUE(target.bytes() == whole)
      << "rank " << comm.rank() << " of " << comm.size() << ": " << blocks.outer << " x "
      << blocks.inner << " " << DTypeName(dtype);
}

void AllGatherAlongADimension(Communicator& comm) {
  for (const DType dtype : {DType::kBool, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const Blocks& blocks : SomeBlocks()) CheckAllGather(comm, dtype, blocks);
  }
}

void AllGatherLarge(Communicator& comm) {
  CheckAllGather(comm, DType::kF32, LargeBlocks(comm.size()));
}

// The bits of an all-reduce, of which each rank takes its piece.
void CheckReduceScatter(Communicator& comm, Reduction reduction, const Functions& type,
                        Blocks blocks) {
  const int64_t width = DTypeBytes(type.dtype);
  const int64_t count = comm.size() * blocks.num_elements();
  const int64_t seed = blocks.inner;
  Memory source(count * width), expected(count * width), reduced(count * width);
  Memory target(blocks.num_elements() * width);
  type.fill(comm.rank(), seed, count, source.data());
  type.expected(reduction, comm.size(), seed, count, expected.data());
  ORIEL_ASSERT_OK(
      comm.ReduceScatter(reduction, {{source.data(), target.data(), type.dtype, blocks, {}}}));
  const auto piece_of = [&](Memory& whole) {
    return SlicePiece(whole.bytes(), blocks, comm.size(), comm.rank(), width);
  };
  EXPECT_TRUE(target.bytes() == piece_of(expected))
      << "rank " << comm.rank() << " of " << comm.size() << ": " << blocks.outer << " x "
      << blocks.inner << " " << DTypeName(type.dtype);
  const ReduceBuffer buffer = {source.data(), reduced.data(), count, type.dtype};
  ORIEL_ASSERT_OK(comm.AllReduce(reduction, {&buffer, 1}));
  EXPECT_TRUE(target.bytes() == piece_of(reduced)) << "differs from an all-reduce";
}

void ReduceScatterIsAPieceOfAllReduce(Communicator& comm) {
  for (const Functions& type : AllTypes(comm)) {
    for (const Blocks& blocks : SomeBlocks()) {
      if (blocks.num_elements() > 40 && comm.size() > 8) continue;
      CheckReduceScatter(comm, Reduction::kSum, type, blocks);
      CheckReduceScatter(comm, Reduction::kMax, type, blocks);
    }
  }
}

void ReduceScatterLarge(Communicator& comm) {
  if (comm.size() > 8) return;
  CheckReduceScatter(comm, Reduction::kSum, AllTypes(comm)[0], LargeBlocks(comm.size()));
}

// A global tensor [2, 3 n, 2, 5 n, 3] of which each of n ranks has a piece along one of the long
// dimensions before, and along the other after.
void CheckAllToAll(Communicator& comm, DType dtype, int split, int concat, int64_t scale) {
  const int64_t n = comm.size();
  const int64_t width = DTypeBytes(dtype);
  const std::vector<int64_t> global = {2, 3 * n, 2, 5 * n, 3 * scale};
  const auto blocks_of = [&](const std::vector<int64_t>& shape, int dim) {
    Blocks blocks{1, 1};
    for (int d = 0; d < dim; ++d) blocks.outer *= shape[d];
    for (int d = dim; d < 5; ++d) blocks.inner *= shape[d];
    blocks.inner /= n;
    return blocks;
  };
  const std::vector<char> whole = SomeBytes(split, 2 * 3 * n * 2 * 5 * n * 3 * scale * width);
  std::vector<int64_t> before = global;
  before[concat] /= n;
  std::vector<int64_t> after = global;
  after[split] /= n;
  Memory source(SlicePiece(whole, blocks_of(global, concat), n, comm.rank(), width));
  const std::vector<char> expected =
      SlicePiece(whole, blocks_of(global, split), n, comm.rank(), width);
  Memory target(static_cast<int64_t>(expected.size()));
  ORIEL_ASSERT_OK(comm.AllToAll(
      {{source.data(), target.data(), dtype, blocks_of(before, split), blocks_of(after, concat)}}));
  EXPECT_TRUE(target.bytes() == expected)
      << "rank " << comm.rank() << " of " << n << ": split " << split << ", concat " << concat
      << ", " << DTypeName(dtype);
}

void AllToAllMovesTheCut(Communicator& comm) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kI32, DType::kI64}) {
    CheckAllToAll(comm, dtype, 1, 3, 1);
    CheckAllToAll(comm, dtype, 3, 1, 1);
  }
}

void AllToAllLarge(Communicator& comm) {
  if (comm.size() > 8) return;
  const int64_t scale = comm.size() <= 4 ? 30'000 / comm.size() : 10;
  CheckAllToAll(comm, DType::kF32, 1, 3, scale);
  CheckAllToAll(comm, DType::kF32, 3, 1, scale);
}

void RefusesBadPieces(Communicator& comm) {
  float value[2] = {0, 0};
  const auto refused = [](const char* why) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why));
  };
  EXPECT_THAT(comm.AllGather({{value, value + 1, DType::kF32, {}, {1, -1}}}),
              refused("all_gather of pieces of 1 x -1 elements"));
  EXPECT_THAT(comm.AllGather({{nullptr, value, DType::kF32, {}, {1, 1}}}),
              refused("all_gather: a buffer has no address"));
  EXPECT_THAT(comm.ReduceScatter(Reduction::kSum, {{value, value + 1, DType::kU8, {1, 1}, {}}}),
              refused("reduce_scatter of u8, which cannot be reduced"));
  EXPECT_THAT(comm.AllToAll({{value, value + 1, DType::kF32, {2, 3}, {2, 4}}}),
              refused("all_to_all of pieces of 6 elements into pieces of 8"));
}

// Buckets: tensors of several types and sizes, empty, small, and beyond what is moved at a time,
// in one call. The same bits as one by one.
enum class PieceCall { kAllGather, kReduceScatter, kAllToAll };

absl::Status Call(Communicator& comm, PieceCall call, absl::Span<const PieceBuffer> buffers) {
  switch (call) {
    case PieceCall::kAllGather:
      return comm.AllGather(buffers);
    case PieceCall::kReduceScatter:
      return comm.ReduceScatter(Reduction::kSum, buffers);
    case PieceCall::kAllToAll:
      return comm.AllToAll(buffers);
  }
  return absl::OkStatus();
}

void CheckBucket(Communicator& comm, PieceCall call, const std::vector<Blocks>& blocks) {
  std::vector<Memory> sources, together, alone;
  std::vector<PieceBuffer> buffers;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Functions& type = AllTypes(comm)[i % AllTypes(comm).size()];
    const int64_t piece = blocks[i].num_elements(), width = DTypeBytes(type.dtype);
    const bool gathers = call == PieceCall::kAllGather;
    const int64_t source = gathers ? piece : comm.size() * piece;
    const int64_t target = call == PieceCall::kReduceScatter ? piece : comm.size() * piece;
    sources.emplace_back(source * width);
    type.fill(comm.rank(), static_cast<int64_t>(i), source, sources.back().data());
    together.emplace_back(target * width);
    alone.emplace_back(target * width);
    // An all-to-all joins along a dimension outside of that which it cuts.
    const Blocks joined = call == PieceCall::kAllToAll ? Blocks{1, piece} : blocks[i];
    buffers.push_back({nullptr, nullptr, type.dtype, blocks[i], joined});
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].source = sources[i].data();
    buffers[i].target = alone[i].data();
    ORIEL_ASSERT_OK(Call(comm, call, {&buffers[i], 1}));
    buffers[i].target = together[i].data();
  }
  ORIEL_ASSERT_OK(Call(comm, call, buffers));
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_TRUE(together[i].bytes() == alone[i].bytes())
        << "rank " << comm.rank() << " of " << comm.size() << ", tensor " << i << ": "
        << blocks[i].outer << " x " << blocks[i].inner;
  }
}

void BucketsAreTheirTensors(Communicator& comm) {
  std::vector<Blocks> large = SomeBlocks();
  large.insert(large.begin() + 3, {1, 300'000 / comm.size()});
  large.push_back(LargeBlocks(comm.size()));
  large.push_back({7, 11});
  for (const PieceCall call :
       {PieceCall::kAllGather, PieceCall::kReduceScatter, PieceCall::kAllToAll}) {
    CheckBucket(comm, call, {});
    CheckBucket(comm, call, {{0, 4}, {3, 0}});
    CheckBucket(comm, call, SomeBlocks());
    CheckBucket(comm, call, large);
  }
}

void ExchangeInTheRing(Communicator& comm) {
  const int64_t next = (comm.rank() + 1) % comm.size();
  const int64_t previous = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<int64_t> mine(5000, comm.rank()), theirs(5000);
  ORIEL_ASSERT_OK_AND_ASSIGN(auto receive, comm.Receive(previous, 3, theirs.data(), 40'000));
  ORIEL_ASSERT_OK_AND_ASSIGN(auto send, comm.Send(next, 3, mine.data(), 40'000));
  ORIEL_ASSERT_OK(receive->Wait());
  ORIEL_ASSERT_OK(send->Wait());
  EXPECT_EQ(theirs, std::vector<int64_t>(5000, previous));
}

void WorkInGroup(Communicator& group, const Functions& type) {
  ReduceCheck check(group, /*in_place=*/true);
  check.Add(type, 1500);
  check.Run(Reduction::kSum);
  CheckAllGather(group, DType::kF32, {3, 50});
}

// Two groups of the same ranks, each used by a thread of its own, while a third thread exchanges
// messages.
void GroupsAtTheSameTime(Communicator& comm) {
  ORIEL_ASSERT_OK(comm.CheckConcurrent());
  std::vector<int64_t> all(comm.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::unique_ptr<Communicator>> groups(2);
  for (auto& group : groups) {
    ORIEL_ASSERT_OK_AND_ASSIGN(group, comm.Group(all));
    group->SetBackground(true);
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < groups.size(); ++i) {
    threads.emplace_back([&type = AllTypes(comm)[i], &group = *groups[i]] {
      for (int round = 0; round < 20; ++round) WorkInGroup(group, type);
    });
  }
  for (int round = 0; round < 20; ++round) ExchangeInTheRing(comm);
  for (std::thread& thread : threads) thread.join();
  ORIEL_EXPECT_OK(comm.Barrier());
}

void Barriers(Communicator& comm) {
  for (int i = 0; i < 50; ++i) ORIEL_ASSERT_OK(comm.Barrier());
}

void CheckGroup(Communicator& comm, const std::vector<int64_t>& ranks) {
  ORIEL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Communicator> group, comm.Group(ranks));
  ASSERT_EQ(group->size(), static_cast<int64_t>(ranks.size()));
  ASSERT_EQ(ranks[group->rank()], comm.rank());
  ReduceCheck check(*group, /*in_place=*/false);
  check.Add(AllTypes(*group)[0], 70);
  check.Add(AllTypes(*group)[4], 5);
  check.Run(Reduction::kSum);
  AllGatherInRankOrder(*group);
  CheckAllGather(*group, DType::kBF16, {3, 5});
  CheckReduceScatter(*group, Reduction::kSum, AllTypes(*group)[2], {3, 5});
  CheckAllToAll(*group, DType::kF32, 1, 3, 1);
  ORIEL_EXPECT_OK(group->Barrier());
}

// Every rank is in the group of its remainder: interleaved groups at work at the same time.
void InterleavedGroups(Communicator& comm) {
  for (const int64_t ways : {2, 3}) {
    std::vector<int64_t> ranks;
    for (int64_t rank = comm.rank() % ways; rank < comm.size(); rank += ways) {
      ranks.push_back(rank);
    }
    CheckGroup(comm, ranks);
  }
  ORIEL_EXPECT_OK(comm.Barrier());
}

void GroupWithoutFirstRank(Communicator& comm) {
  if (comm.rank() > 0) {
    std::vector<int64_t> ranks(comm.size() - 1);
    std::iota(ranks.begin(), ranks.end(), 1);
    CheckGroup(comm, ranks);
  }
  ORIEL_EXPECT_OK(comm.Barrier());
}

void GroupOfOneAndOfAll(Communicator& comm) {
  CheckGroup(comm, {comm.rank()});
  std::vector<int64_t> all(comm.size());
  std::iota(all.begin(), all.end(), 0);
  CheckGroup(comm, all);
  CheckGroup(comm, all);  // a second one of the same ranks is another group
  ORIEL_EXPECT_OK(comm.Barrier());
}

void GroupOfGroup(Communicator& comm) {
  const int64_t half = (comm.size() + 1) / 2;
  const bool upper = comm.rank() >= half;
  std::vector<int64_t> ranks(upper ? comm.size() - half : half);
  std::iota(ranks.begin(), ranks.end(), upper ? half : 0);
  ORIEL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Communicator> group, comm.Group(ranks));
  InterleavedGroups(*group);
  ORIEL_EXPECT_OK(comm.Barrier());
}

void RefusesBadGroups(Communicator& comm) {
  EXPECT_THAT(comm.Group({}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not in")));
  EXPECT_THAT(comm.Group({comm.rank(), comm.rank()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ascending")));
  EXPECT_THAT(comm.Group({comm.rank(), comm.size()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("below")));
}

}  // namespace

const std::vector<ConformanceCase>& ConformanceCases() {
  static const auto* cases = [] {
    auto* cases = new std::vector<ConformanceCase>{
        {"AllReduceEveryTypeAndSize", AllReduceEveryTypeAndSize},
        {"AllReduceManyBuffers", AllReduceManyBuffers},
        {"AllReduceLarge", AllReduceLarge},
        {"AllReduceRepeated", AllReduceRepeated},
        {"AllReduceOfNothing", AllReduceOfNothing},
        {"MaximumTakesNan", MaximumTakesNan},
        {"RefusesUnsupportedType", RefusesUnsupportedType},
        {"BroadcastFromEveryRoot", BroadcastFromEveryRoot},
        {"AllGatherInRankOrder", AllGatherInRankOrder},
        {"AllGatherAlongADimension", AllGatherAlongADimension},
        {"AllGatherLarge", AllGatherLarge},
        {"ReduceScatterIsAPieceOfAllReduce", ReduceScatterIsAPieceOfAllReduce},
        {"ReduceScatterLarge", ReduceScatterLarge},
        {"AllToAllMovesTheCut", AllToAllMovesTheCut},
        {"AllToAllLarge", AllToAllLarge},
        {"RefusesBadPieces", RefusesBadPieces},
        {"BucketsAreTheirTensors", BucketsAreTheirTensors},
        {"GroupsAtTheSameTime", GroupsAtTheSameTime},
        {"Barriers", Barriers},
        {"InterleavedGroups", InterleavedGroups},
        {"GroupWithoutFirstRank", GroupWithoutFirstRank},
        {"GroupOfOneAndOfAll", GroupOfOneAndOfAll},
        {"GroupOfGroup", GroupOfGroup},
        {"RefusesBadGroups", RefusesBadGroups},
    };
    const std::vector<ConformanceCase>& messages = MessageConformanceCases();
    cases->insert(cases->end(), messages.begin(), messages.end());
    return cases;
  }();
  return *cases;
}

}  // namespace oriel::runtime
