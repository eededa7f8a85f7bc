#include "runtime/comm/reduce.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/base/float16.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

// Elements accumulated at a time: the accumulators stay in the L1 cache, however many sources.
constexpr int64_t kChunk = 1024;

struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

// How elements of type T are accumulated.
template <typename T>
struct Arithmetic {
  using Accumulator = T;
  static Accumulator Load(T value) { return value; }
  static T Store(Accumulator value) { return value; }
};
template <>
struct Arithmetic<BFloat16> {
  using Accumulator = float;
  static float Load(BFloat16 value) { return BFloat16ToFloat(value.bits); }
  static BFloat16 Store(float value) { return {FloatToBFloat16(value)}; }
};

template <>
struct Arithmetic<Half> {
  using Accumulator = float;
  static float Load(Half value) { return HalfToFloat(value.bits); }
  static Half Store(float value) { return {FloatToHalf(value)}; }
};

struct Sum {
  template <typename A>
  static A Apply(A a, A b) {
    return a + b;
  }
};
struct Max {
  template <typename A>
  static A Apply(A a, A b) {
    return (b > a || b != b) ? b : a;  // b != b: NaN
  }
};

template <typename T, typename Op>
void Reduce(absl::Span<const void* const> sources, absl::Span<void* const> targets, int64_t count) {
  using Accumulator = typename Arithmetic<T>::Accumulator;
  alignas(64) Accumulator sums[kChunk];
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t n = std::min(kChunk, count - begin);
    const T* first = static_cast<const T*>(sources[0]) + begin;
    for (int64_t i = 0; i < n; ++i) sums[i] = Arithmetic<T>::Load(first[i]);
    for (size_t s = 1; s < sources.size(); ++s) {
      const T* source = static_cast<const T*>(sources[s]) + begin;
      for (int64_t i = 0; i < n; ++i) {
        sums[i] = Op::Apply(sums[i], Arithmetic<T>::Load(source[i]));
      }
    }
    for (void* address : targets) {
      T* target = static_cast<T*>(address) + begin;
      for (int64_t i = 0; i < n; ++i) target[i] = Arithmetic<T>::Store(sums[i]);
    }
  }
}

template <typename Op>
void ReduceAs(DType dtype, absl::Span<const void* const> sources, absl::Span<void* const> targets,
              int64_t count) {
  // Unsigned types make an overflowing sum wrap; a maximum needs the sign.
  constexpr bool kIsSum = std::is_same_v<Op, Sum>;
  switch (dtype) {
    case DType::kF32:
      return Reduce<float, Op>(sources, targets, count);
    case DType::kF64:
      return Reduce<double, Op>(sources, targets, count);
    case DType::kF16:
      return Reduce<Half, Op>(sources, targets, count);
    case DType::kBF16:
      return Reduce<BFloat16, Op>(sources, targets, count);
    case DType::kI64:
      return Reduce<std::conditional_t<kIsSum, uint64_t, int64_t>, Op>(sources, targets, count);
    case DType::kI32:
      return Reduce<std::conditional_t<kIsSum, uint32_t, int32_t>, Op>(sources, targets, count);
    default:
      return;  // CheckReduceBuffers has refused it
  }
}

absl::Status CheckPieces(const char* operation, const PieceBuffer& buffer, Blocks source_blocks,
                         Blocks target_blocks) {
  for (const Blocks& blocks : {source_blocks, target_blocks}) {
    if (blocks.outer < 0 || blocks.inner < 0) {
      return absl::InvalidArgumentError(absl::StrCat(operation, " of pieces of ", blocks.outer,
                                                     " x ", blocks.inner, " elements"));
    }
  }
  const int64_t count = source_blocks.num_elements();
  if (count != target_blocks.num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat(operation, " of pieces of ", count,
                                                   " elements into pieces of ",
                                                   target_blocks.num_elements()));
  }
  if (count > 0 && (buffer.source == nullptr || buffer.target == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat(operation, ": a buffer has no address"));
  }
  return absl::OkStatus();
}

}  // namespace

bool CanReduce(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kF16:
    case DType::kBF16:
    case DType::kI64:
    case DType::kI32:
      return true;
    default:
      return false;
  }
}

absl::Status CheckReduceBuffers(absl::Span<const ReduceBuffer> buffers) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ReduceBuffer& buffer = buffers[i];
    if (!CanReduce(buffer.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "all_reduce: buffer ", i, " is of type ", std::string(DTypeName(buffer.dtype)),
          ", which cannot be reduced (f32, f64, f16, bf16, i64 and i32 can)"));
    }
    if (buffer.count < 0 ||
        (buffer.count > 0 && (buffer.source == nullptr || buffer.target == nullptr))) {
      return absl::InvalidArgumentError(
          absl::StrCat("all_reduce: buffer ", i, " has no address or a negative size"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAllGather(absl::Span<const PieceBuffer> buffers) {
  for (const PieceBuffer& buffer : buffers) {
    ORIEL_RETURN_IF_ERROR(
        CheckPieces("all_gather", buffer, buffer.target_blocks, buffer.target_blocks));
  }
  return absl::OkStatus();
}

absl::Status CheckReduceScatter(absl::Span<const PieceBuffer> buffers) {
  for (const PieceBuffer& buffer : buffers) {
    ORIEL_RETURN_IF_ERROR(
        CheckPieces("reduce_scatter", buffer, buffer.source_blocks, buffer.source_blocks));
    if (CanReduce(buffer.dtype)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("reduce_scatter of ", std::string(DTypeName(buffer.dtype)),
                     ", which cannot be reduced (f32, f64, f16, bf16, i64 and i32 can)"));
  }
  return absl::OkStatus();
}

absl::Status CheckAllToAll(absl::Span<const PieceBuffer> buffers) {
  for (const PieceBuffer& buffer : buffers) {
    ORIEL_RETURN_IF_ERROR(
        CheckPieces("all_to_all", buffer, buffer.source_blocks, buffer.target_blocks));
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(const char* operation, int64_t peer, int64_t tag, const void* data,
                          int64_t bytes, int64_t size) {
  if (peer < 0 || peer >= size || tag < 0 || tag >= kMaxTags || bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(operation, " of ", bytes, " bytes, peer ", peer,
                                                   " of ", size, ", tag ", tag, " (they are below ",
                                                   kMaxTags, ")"));
  }
  if (bytes > 0 && data == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(operation, ": the buffer has no address"));
  }
  return absl::OkStatus();
}

absl::Status MessageMismatch(int64_t sender, int64_t receiver, int64_t tag, int64_t sent,
                             int64_t received) {
  return absl::AbortedError(absl::StrCat("ranks disagree: rank ", sender, " sends ", sent,
                                         " bytes with tag ", tag, ", rank ", receiver, " receives ",
                                         received, " bytes"));
}

absl::Status CheckGroup(const std::vector<int64_t>& ranks, int64_t self, int64_t size) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size || (i > 0 && ranks[i] <= ranks[i - 1])) {
      return absl::InvalidArgumentError(absl::StrCat("a group's ranks must be ascending and below ",
                                                     size, "; rank ", ranks[i], " is not"));
    }
  }
  if (!std::binary_search(ranks.begin(), ranks.end(), self)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", self, " asks for a group that it is not in"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> NewNumbers(const std::vector<int64_t>& ranks, int64_t size) {
  std::vector<int64_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t rank = 0; rank < std::max(size, static_cast<int64_t>(sorted.size())); ++rank) {
    if (rank < static_cast<int64_t>(sorted.size()) && sorted[rank] == rank) continue;
    return absl::InvalidArgumentError(absl::StrCat("new numbers for ", size,
                                                   " ranks must have each of them once; rank ",
                                                   rank, " is not there"));
  }
  std::vector<int64_t> numbers(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) numbers[ranks[i]] = static_cast<int64_t>(i);
  return numbers;
}

void ReduceInOrder(Reduction reduction, DType dtype, absl::Span<const void* const> sources,
                   absl::Span<void* const> targets, int64_t count) {
  if (sources.empty()) return;
  if (reduction == Reduction::kSum) {
    ReduceAs<Sum>(dtype, sources, targets, count);
  } else {
    ReduceAs<Max>(dtype, sources, targets, count);
  }
}

Slice SliceOf(int64_t count, DType dtype, int64_t size, int64_t rank, int64_t index) {
  const int64_t block = 64 / DTypeBytes(dtype);  // no two ranks write to one cache line
  const int64_t blocks = (count + block - 1) / block;
  // Blocks are dealt evenly, the rest one each to the first `rest` places; places are shifted by
  // the index, or one-block buffers would all fall to rank 0.
  const int64_t place = (rank + index) % size;
  const int64_t each = blocks / size;
  const int64_t rest = blocks % size;
  const int64_t begin = place * each + std::min(place, rest);
  const int64_t end = begin + each + (place < rest ? 1 : 0);
  const int64_t first = std::min(begin * block, count);
  return {first, std::min(end * block, count) - first};
}

}  // namespace oriel::runtime
