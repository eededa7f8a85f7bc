// Where values lie in a program's memory, and what a write leaves there: for the memory verifier.
#ifndef ORIEL_RUNTIME_PLAN_VERIFY_CONTENTS_H_
#define ORIEL_RUNTIME_PLAN_VERIFY_CONTENTS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/plan/access.h"
#include "runtime/plan/buffer_layout.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {

// Nothing else may use its memory, whether or not it holds a value.
inline bool HasOwnMemory(const plan::Buffer& buffer) { return IsPersistent(buffer.kind()); }
// From one step to the next.
inline bool IsKept(plan::BufferKind kind) { return IsPersistent(kind) && kind != plan::TRANSFER; }

inline bool IsSum(plan::BufferKind kind) {
  return kind == plan::GRADIENT || kind == plan::ACCUMULATOR;
}

struct Range {
  int64_t begin;
  int64_t end;
  bool empty() const { return begin == end; }
  bool Overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  friend bool operator<(const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  }
  friend bool operator==(const Range& a, const Range& b) {
    return a.begin == b.begin && a.end == b.end;
  }
};

// What the last write left in a range.
struct Content {
  int64_t end;
  int buffer;
  int64_t run;  // which entry of the schedule wrote it
  int64_t microbatch;
  bool zero = false;  // all zeros, which mean the same however they lie
  int constant = -1;  // the constant that it is a piece of
  int sum = -1;       // the gradient or accumulator whose value has been added to
  int64_t value = 0;  // a number of its own; what is only moved keeps it
};

// The copies of a value, one for each microbatch in flight. Buffers with the same ring are views.
struct Ring {
  std::vector<int64_t> offsets;  // of each copy
  int64_t bytes;                 // of one

  explicit Ring(const plan::Buffer& buffer)
      : offsets({buffer.offset()}), bytes(*CheckedBytes(buffer.local())) {
    offsets.insert(offsets.end(), buffer.copy_offsets().begin(), buffer.copy_offsets().end());
  }
  Range Copy(int64_t microbatch) const {
    const int64_t begin = offsets[microbatch % offsets.size()];
    return {begin, begin + bytes};
  }
  friend bool operator<(const Ring& a, const Ring& b) {
    return std::tie(a.offsets, a.bytes) < std::tie(b.offsets, b.bytes);
  }
};

// Those of a program's buffers.
class Rings {
 public:
  explicit Rings(const plan::Program& program) : program_(program) {
    std::map<Ring, int> numbers;
    for (const auto& buffer : program.buffers()) {
      Ring ring(buffer);
      const auto [number, is_new] = numbers.try_emplace(ring, rings_.size());
      ring_of_.push_back(number->second);
      if (is_new) rings_.push_back(std::move(ring));
      carried_.resize(rings_.size());
      if (buffer.kind() == plan::STASH || buffer.kind() == plan::TRANSFER ||
          buffer.kind() == plan::STEP_GRADIENT) {
        carried_[ring_of_.back()] = true;
      }
    }
  }

  const Ring& Of(int buffer) const { return rings_[ring_of_[buffer]]; }
  bool IsEmpty(int buffer) const { return Of(buffer).bytes == 0; }
  // The same for views.
  int NumberOf(int buffer) const { return ring_of_[buffer]; }
  bool IsView(int a, int b) const { return ring_of_[a] == ring_of_[b]; }
  // Whether it is a stash, a gradient of one step or transferred, or a view of one.
  bool IsCarried(int buffer) const { return carried_[ring_of_[buffer]]; }

  // Microbatches for which a segment runs, one for each choice of copies of what it accesses; 0 for
  // what the schedule does not run.
  std::vector<int64_t> MicrobatchesOf(const std::string& segment,
                                      const std::vector<Access>& accesses) const {
    std::set<int64_t> counts;
    for (const Access& access : accesses) {
      for (const auto* list : {&access.reads, &access.writes}) {
        for (const int index : *list) counts.insert(Of(index).offsets.size());
      }
    }
    std::set<std::vector<int64_t>> known;
    std::vector<int64_t> microbatches;
    for (const auto& entry : program_.schedule()) {
      if (entry.segment() != segment) continue;
      std::vector<int64_t> copies;
      for (const int64_t count : counts) copies.push_back(entry.microbatch() % count);
      if (known.insert(copies).second) microbatches.push_back(entry.microbatch());
    }
    if (microbatches.empty()) microbatches.push_back(0);
    return microbatches;
  }

 private:
  const plan::Program& program_;
  std::vector<Ring> rings_;
  std::vector<int> ring_of_;   // of each buffer
  std::vector<bool> carried_;  // of each ring
};

inline bool IsAllZero(const std::string& data) {
  return std::all_of(data.begin(), data.end(), [](char byte) { return byte == 0; });
}

// Whether all elements of the tensor are the same along dimensions that are cut.
inline bool IsUniformAlongCuts(const std::string& data, const Shape& shape, int64_t element_bytes,
                               const std::vector<AxisNames>& dims) {
  int64_t inner = element_bytes;
  for (size_t dim = shape.size(); dim-- > 0;) {
    const int64_t block = inner * shape[dim];
    if (!dims[dim].empty()) {
      for (int64_t i = 0; i < static_cast<int64_t>(data.size()); i += inner) {
        if (std::memcmp(&data[i], &data[i - i % block], inner) != 0) return false;
      }
    }
    inner = block;
  }
  return true;
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_VERIFY_CONTENTS_H_
