#include "driver/line_diff.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace oriel::driver {

namespace {

using Lines = std::vector<std::string>;
using In = ComparedLine::In;

Lines linesOf(const std::string& text) {
  if (text.empty()) return {};
  return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
}

// common[i][j]: the most lines that a[i..] and b[j..] have in common, in one order.
std::vector<std::vector<uint32_t>> commonLines(const Lines& a, const Lines& b) {
  std::vector<std::vector<uint32_t>> common(a.size() + 1, std::vector<uint32_t>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  return common;
}

void add(const Lines& lines, In in, std::vector<ComparedLine>* result) {
  for (const std::string& line : lines) result->push_back({in, line});
}

// Neither their first lines nor their last ones are the same.
void compareMiddle(const Lines& a, const Lines& b, std::vector<ComparedLine>* result) {
  constexpr size_t kMaxPairs = 4'000'000;  // pairs of lines
  size_t i = 0, j = 0;
  if (!a.empty() && b.size() <= kMaxPairs / a.size()) {
    const auto common = commonLines(a, b);
    while (i < a.size() && j < b.size()) {
      if (a[i] == b[j]) {
        result->push_back({In::kBoth, a[i++]});
        ++j;
      } else if (common[i + 1][j] >= common[i][j + 1]) {
        result->push_back({In::kA, a[i++]});
      } else {
        result->push_back({In::kB, b[j++]});
      }
    }
  }
  add(Lines(a.begin() + i, a.end()), In::kA, result);
  add(Lines(b.begin() + j, b.end()), In::kB, result);
}

}  // namespace

std::vector<ComparedLine> compareLines(const std::string& a, const std::string& b) {
  const Lines linesA = linesOf(a), linesB = linesOf(b);
  const size_t shorter = std::min(linesA.size(), linesB.size());
  size_t head = 0, tail = 0;
  while (head < shorter && linesA[head] == linesB[head]) ++head;
  while (tail < shorter - head && *(linesA.rbegin() + tail) == *(linesB.rbegin() + tail)) ++tail;

  std::vector<ComparedLine> result;
  add(Lines(linesA.begin(), linesA.begin() + head), In::kBoth, &result);
  compareMiddle(Lines(linesA.begin() + head, linesA.end() - tail),
                Lines(linesB.begin() + head, linesB.end() - tail), &result);
  add(Lines(linesA.end() - tail, linesA.end()), In::kBoth, &result);
  return result;
}

}  // namespace oriel::driver
