#include "runtime/plan/own_memory.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace oriel::runtime {

bool OwnMemory::Place(int index, Problems& problems) {
  std::vector<int> order;
  for (int i = 0; i < program_.buffers_size(); ++i) {
    if (!rings_.IsEmpty(i)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return rings_.Of(a).Copy(0) < rings_.Of(b).Copy(0); });
  bool valid = true;
  const auto refuse = [&](const std::string& what) {
    problems.Add("program ", index, ": ", what);
    valid = false;
  };
  for (const int i : order) {
    if (!HasOwnMemory(program_.buffers(i))) continue;
    if (const std::string wrong = PlaceCopies(i); !wrong.empty()) refuse(wrong);
  }
  owners_.assign(program_.buffers_size(), -1);
  for (const int i : order) {
    const auto owner = OverlapOf(i);
    if (!owner) continue;
    if (rings_.IsView(*owner, i)) {
      owners_[i] = *owner;
    } else if (!HasOwnMemory(program_.buffers(i))) {
      refuse(absl::StrCat(Name(i), " lies partly in the memory of ", Name(*owner)));
    }
  }
  return valid;
}

// The buffer that has this memory for itself, or some of it.
std::optional<int> OwnMemory::OverlapOf(const Range& range) const {
  const auto after = owned_.lower_bound(range.end);
  if (after == owned_.begin()) return std::nullopt;
  const Owned& before = std::prev(after)->second;
  return before.end > range.begin ? std::optional(before.buffer) : std::nullopt;
}

// The same of the first copy of a buffer that lies in such memory.
std::optional<int> OwnMemory::OverlapOf(int index) const {
  for (size_t copy = 0; copy < rings_.Of(index).offsets.size(); ++copy) {
    if (const auto owner = OverlapOf(rings_.Of(index).Copy(static_cast<int64_t>(copy)))) {
      return owner;
    }
  }
  return std::nullopt;
}

std::string OwnMemory::PlaceCopies(int index) {
  const auto view = OverlapOf(rings_.Of(index).Copy(0));
  if (view && rings_.IsView(*view, index) && MayShare(index, *view)) return "";
  for (size_t copy = 0; copy < rings_.Of(index).offsets.size(); ++copy) {
    const Range range = rings_.Of(index).Copy(static_cast<int64_t>(copy));
    if (const auto other = OverlapOf(range)) {
      return absl::StrCat(*other == index ? absl::StrCat("copies of ", Name(index))
                                          : absl::StrCat(Name(*other), " and ", Name(index)),
                          " lie in the same memory");
    }
    owned_[range.begin] = {range.end, index};
  }
  return "";
}

// Two of the same constant, or two views of what moves with the microbatches.
bool OwnMemory::MayShare(int a, int b) const {
  const plan::Buffer& first = program_.buffers(a);
  const plan::Buffer& second = program_.buffers(b);
  if (IsKept(first.kind()) != IsKept(second.kind())) return false;
  return !IsKept(first.kind()) ||
         (first.kind() == plan::CONSTANT && second.kind() == plan::CONSTANT &&
          first.data() == second.data());
}

}  // namespace oriel::runtime
