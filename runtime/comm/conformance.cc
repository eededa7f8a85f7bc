#include "runtime/comm/conformance.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

// Bits that depend on rank, buffer and element only, so that any rank knows any other's data.
uint64_t Bits(int64_t rank, int64_t buffer, int64_t i) {
  uint64_t x = static_cast<uint64_t>(rank) * 0x9e3779b97f4a7c15u ^
               static_cast<uint64_t>(buffer) * 0xc2b2ae3d27d4eb4fu ^
               static_cast<uint64_t>(i + 1) * 0x165667b19e3779f9u;
  x = (x ^ (x >> 31)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

// Magnitudes from 2^-10 to 2^10, so that a float sum depends on its order.
double Value(int64_t rank, int64_t buffer, int64_t i) {
  const uint64_t bits = Bits(rank, buffer, i);
  const double mantissa = static_cast<double>(static_cast<int64_t>(bits >> 11)) / (1ll << 53);
  return std::ldexp(mantissa - 0.5, static_cast<int>(bits % 21) - 10);
}

// One element of each dtype as the reference sees it: load, combine, store.
template <typename T>
struct Plain {
  using Storage = T;
  static Storage Make(int64_t rank, int64_t buffer, int64_t i) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(Value(rank, buffer, i));
    } else {
      return static_cast<T>(Bits(rank, buffer, i) >> 8) / 64;  // 64 ranks don't overflow
    }
  }
  static T Load(Storage value) { return value; }
  static Storage Store(T value) { return value; }
};

// bf16 by its definition: the upper half of an f32, rounded to nearest, ties to even.
struct Bf16 {
  using Storage = uint16_t;
  static float Load(Storage value) {
    const uint32_t bits = static_cast<uint32_t>(value) << 16;
    float result;
    std::memcpy(&result, &bits, 4);
    return result;
  }
  static Storage Store(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint32_t rest = bits & 0xffff;
    Storage upper = static_cast<Storage>(bits >> 16);
    if (rest > 0x8000 || (rest == 0x8000 && (upper & 1))) ++upper;
    return upper;
  }
  static Storage Make(int64_t rank, int64_t buffer, int64_t i) {
    return Store(static_cast<float>(Value(rank, buffer, i)));
  }
};

// The bytes that rank `rank` brings, and what the reduction over `size` ranks must give.
template <typename Type>
void Fill(int64_t rank, int64_t buffer, int64_t count, char* out) {
  auto* data = reinterpret_cast<typename Type::Storage*>(out);
  for (int64_t i = 0; i < count; ++i) data[i] = Type::Make(rank, buffer, i);
}

template <typename Type>
void Expected(Reduction reduction, int64_t size, int64_t buffer, int64_t count, char* out) {
  auto* data = reinterpret_cast<typename Type::Storage*>(out);
  for (int64_t i = 0; i < count; ++i) {
    auto sum = Type::Load(Type::Make(0, buffer, i));
    for (int64_t rank = 1; rank < size; ++rank) {
      const auto value = Type::Load(Type::Make(rank, buffer, i));
      sum = reduction == Reduction::kSum ? sum + value : std::max(sum, value);
    }
    data[i] = Type::Store(sum);
  }
}

struct Functions {
  DType dtype;
  void (*fill)(int64_t rank, int64_t buffer, int64_t count, char* out);
  void (*expected)(Reduction reduction, int64_t size, int64_t buffer, int64_t count, char* out);
};

template <typename Type>
Functions For(DType dtype) {
  return {dtype, Fill<Type>, Expected<Type>};
}

const std::vector<Functions>& AllTypes() {
  static const auto* types = new std::vector<Functions>{
      For<Plain<float>>(DType::kF32), For<Plain<double>>(DType::kF64), For<Bf16>(DType::kBF16),
      For<Plain<int64_t>>(DType::kI64), For<Plain<int32_t>>(DType::kI32)};
  return *types;
}

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
  for (const Functions& type : AllTypes()) {
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
    check.Add(AllTypes()[i % AllTypes().size()], i * i * 7 % 1500);
  }
  check.Run(Reduction::kSum);
  check.Run(Reduction::kMax);
}

// Above the sizes at which an implementation may switch its method or split the buffer.
void AllReduceLarge(Communicator& comm) {
  const int64_t count = comm.size() <= 4 ? 5'000'011 : 30'011;
  ReduceCheck check(comm, /*in_place=*/true);
  check.Add(AllTypes()[0], 100);
  check.Add(AllTypes()[0], count);
  check.Add(AllTypes()[2], count / 3);
  check.Add(AllTypes()[1], 1);
  check.Run(Reduction::kSum);
}

void AllReduceRepeated(Communicator& comm) {
  ReduceCheck check(comm, /*in_place=*/true);
  check.Add(AllTypes()[0], 33);
  check.Add(AllTypes()[3], 1);
  for (int i = 0; i < 100; ++i) check.Run(i % 3 == 0 ? Reduction::kMax : Reduction::kSum);
}

void AllReduceOfNothing(Communicator& comm) {
  ORIEL_EXPECT_OK(comm.AllReduce(Reduction::kSum, {}));
}

void MaximumTakesNan(Communicator& comm) {
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

void Barriers(Communicator& comm) {
  for (int i = 0; i < 50; ++i) ORIEL_ASSERT_OK(comm.Barrier());
}

void CheckGroup(Communicator& comm, const std::vector<int64_t>& ranks) {
  ORIEL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Communicator> group, comm.Group(ranks));
  ASSERT_EQ(group->size(), static_cast<int64_t>(ranks.size()));
  ASSERT_EQ(ranks[group->rank()], comm.rank());
  ReduceCheck check(*group, /*in_place=*/false);
  check.Add(AllTypes()[0], 70);
  check.Add(AllTypes()[4], 5);
  check.Run(Reduction::kSum);
  AllGatherInRankOrder(*group);
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
  static const auto* cases = new std::vector<ConformanceCase>{
      {"AllReduceEveryTypeAndSize", AllReduceEveryTypeAndSize},
      {"AllReduceManyBuffers", AllReduceManyBuffers},
      {"AllReduceLarge", AllReduceLarge},
      {"AllReduceRepeated", AllReduceRepeated},
      {"AllReduceOfNothing", AllReduceOfNothing},
      {"MaximumTakesNan", MaximumTakesNan},
      {"RefusesUnsupportedType", RefusesUnsupportedType},
      {"BroadcastFromEveryRoot", BroadcastFromEveryRoot},
      {"AllGatherInRankOrder", AllGatherInRankOrder},
      {"Barriers", Barriers},
      {"InterleavedGroups", InterleavedGroups},
      {"GroupWithoutFirstRank", GroupWithoutFirstRank},
      {"GroupOfOneAndOfAll", GroupOfOneAndOfAll},
      {"GroupOfGroup", GroupOfGroup},
      {"RefusesBadGroups", RefusesBadGroups},
  };
  return *cases;
}

}  // namespace oriel::runtime
