#include "frontend/table_values.h"

#include <algorithm>
#include <cmath>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"

namespace oriel {
namespace {

// As large as scores that are hidden from softmax are made, and no weight is.
constexpr float kHidden = -1e9f;
// Fewer elements may be in a row by chance.
constexpr int64_t kFewest = 4;
// Of bf16's rounding.
constexpr double kRounding = 1.0 / 128;

// Elements from `first`, as floats.
std::vector<float> floatsOf(const TensorData& data, int64_t first, int64_t count) {
  TensorData part;
  part.dataType = data.dataType;
  part.shape = {count};
  const int64_t bytes = elementBytes(data.dataType);
  part.bytes = data.bytes.slice(first * bytes, count * bytes);
  return decodeFloats(part);
}

// Whether all elements are so; the first that is not ends it, so that weights cost little.
bool allOf(const TensorData& data, llvm::function_ref<bool(float)> is) {
  constexpr int64_t kChunk = 4096;
  const int64_t count = data.numElements();
  for (int64_t first = 0; first < count; first += kChunk) {
    if (!llvm::all_of(floatsOf(data, first, std::min(kChunk, count - first)), is)) return false;
  }
  return true;
}

// Values on lines, each of `size` elements `stride` apart.
struct Lines {
  int64_t size, stride;
};
Lines linesAlong(const TensorData& data, size_t dim) {
  Lines lines{data.shape[dim], 1};
  for (int64_t size : llvm::ArrayRef<int64_t>(data.shape).drop_front(dim + 1)) lines.stride *= size;
  return lines;
}

enum class Line { kConstant, kGrowing, kOther };

using Seen = std::vector<std::pair<int64_t, double>>;  // (where, what)

// How far the elements from `begin` to `end`, which are more than one, are from a straight line,
// and where most.
std::pair<double, size_t> distanceFromLine(const Seen& seen, size_t begin, size_t end) {
  const auto [first, from] = seen[begin];
  const auto [last, to] = seen[end];
  const double step = (to - from) / (last - first);
  std::pair<double, size_t> most{0, begin};
  for (size_t at = begin; at <= end; ++at) {
    const double distance = std::abs(from + step * (seen[at].first - first) - seen[at].second);
    if (distance > most.first) most = {distance, at};
  }
  return most;
}

// Of the elements that are not hidden.
Line growthOf(llvm::ArrayRef<float> values, int64_t first, const Lines& lines) {
  Seen seen;
  double largest = 0, least = INFINITY, most = -INFINITY;
  for (int64_t i = 0; i < lines.size; ++i) {
    const double value = values[first + i * lines.stride];
    if (value <= kHidden) continue;
    if (!std::isfinite(value)) return Line::kOther;
    seen.emplace_back(i, value);
    largest = std::max(largest, std::abs(value));
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (seen.size() < 2) return Line::kConstant;
  const double tolerance = kRounding * largest;
  const size_t end = seen.size() - 1;
  auto [distance, corner] = distanceFromLine(seen, 0, end);
  if (distance > tolerance && (distanceFromLine(seen, 0, corner).first > tolerance ||
                               distanceFromLine(seen, corner, end).first > tolerance)) {
    return Line::kOther;
  }
  if (most - least <= 4 * tolerance) return Line::kConstant;
  return static_cast<int64_t>(seen.size()) >= kFewest ? Line::kGrowing : Line::kConstant;
}

bool growsAlong(const TensorData& data, llvm::ArrayRef<float> values, size_t dim) {
  const Lines lines = linesAlong(data, dim);
  if (lines.size < kFewest) return false;
  int64_t growing = 0;
  for (int64_t outer = 0; outer < data.numElements(); outer += lines.size * lines.stride) {
    for (int64_t inner = 0; inner < lines.stride; ++inner) {
      switch (growthOf(values, outer + inner, lines)) {
        case Line::kOther:
          return false;
        case Line::kGrowing:
          ++growing;
          break;
        case Line::kConstant:
          break;
      }
    }
  }
  return growing > 0;
}

// Whether the squares of elements add up to the same number, and are not all of two magnitudes.
bool squaresAddUp(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  const double sum = double{a[0]} * a[0] + double{b[0]} * b[0];
  bool isBetween = false;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    const double square = double{x} * x;
    if (!(sum > 0) || !(std::abs(square + double{y} * y - sum) <= 2 * kRounding * sum))
      return false;
    isBetween = isBetween || (square > 0.1 * sum && square < 0.9 * sum);
  }
  if (!isBetween) return false;
  auto [least, most] = std::minmax_element(
      a.begin(), a.end(), [](float x, float y) { return std::abs(x) < std::abs(y); });
  const double low = std::abs(*least), high = std::abs(*most), third = (high - low) / 3;
  return high - low >= 0.1 * std::sqrt(sum) && llvm::any_of(a, [&](float x) {
           return std::abs(x) > low + third && std::abs(x) < high - third;
         });
}

}  // namespace

int64_t spannedDims(llvm::ArrayRef<int64_t> shape) {
  return llvm::count_if(shape, [](int64_t dim) { return dim != 1; });
}

bool isAddedMask(const TensorData& data) {
  bool hides = false;
  auto isOfMask = [&](float value) {
    hides = hides || value <= kHidden;
    return value == 0 || value <= kHidden;
  };
  return allOf(data, isOfMask) && hides;
}

bool isFillValue(const TensorData& data) {
  return allOf(data, [](float value) { return !(std::abs(value) < -kHidden); });
}

bool isOfOneNumber(const TensorData& data) {
  if (spannedDims(data.shape) < 2) return false;
  const float first = floatsOf(data, 0, 1)[0];
  return allOf(data, [&](float value) { return value == first; });
}

bool isScoreMask(const TensorData& data) {
  constexpr float kLarge = 50;
  if (spannedDims(data.shape) < 2) return false;
  float hidden = 0;
  bool shows = false;
  auto isOfMask = [&](float value) {
    shows = shows || value == 0;
    if (value != 0 && hidden == 0) hidden = value;
    return value == 0 || value == hidden;
  };
  return allOf(data, isOfMask) && shows && std::abs(hidden) >= kLarge;
}

bool isFactorMask(const TensorData& data) {
  if (spannedDims(data.shape) < 2) return false;
  bool hides = false, keeps = false;
  auto isOfMask = [&](float value) {
    hides = hides || value == 0;
    keeps = keeps || value == 1;
    return value == 0 || value == 1;
  };
  return allOf(data, isOfMask) && hides && keeps;
}

bool areCosinesAndSines(const TensorData& a, const TensorData& b) {
  const int64_t count = a.numElements();
  return a.shape == b.shape && count >= kFewest &&
         squaresAddUp(floatsOf(a, 0, count), floatsOf(b, 0, count));
}

bool isOfCosinesAndSines(const TensorData& data) {
  const int64_t count = data.numElements();
  if (spannedDims(data.shape) < 2 || count < 2 * kFewest) return false;
  std::vector<float> values = floatsOf(data, 0, count);
  auto areHalvesOf = [&](size_t dim) {
    const Lines lines = linesAlong(data, dim);
    if (lines.size % 2 != 0) return false;
    const int64_t half = lines.size / 2 * lines.stride;
    std::vector<float> first, second;
    for (int64_t at = 0; at < count; at += 2 * half) {
      auto begin = values.begin() + at;
      first.insert(first.end(), begin, begin + half);
      second.insert(second.end(), begin + half, begin + 2 * half);
    }
    return squaresAddUp(first, second);
  };
  return llvm::any_of(llvm::seq<size_t>(0, data.shape.size()), areHalvesOf);
}

bool isOfAlibiSlopes(const TensorData& data) {
  const int64_t count = data.numElements();
  if (spannedDims(data.shape) != 1 || count < kFewest) return false;
  std::vector<float> slopes = floatsOf(data, 0, count);
  const double perOctave = std::max<double>(2.0, llvm::PowerOf2Ceil(count) / 4.0);
  auto isSlope = [&](float slope) {
    const double steps = -std::log2(slope) * perOctave;
    return slope > 0 && slope < 1 && std::abs(steps - std::round(steps)) < 0.02;
  };
  if (!llvm::all_of(slopes, isSlope)) return false;
  llvm::sort(slopes);
  return std::adjacent_find(slopes.begin(), slopes.end()) == slopes.end();
}

bool isOfAlibiBiases(const TensorData& data) {
  if (spannedDims(data.shape) < 2) return false;
  return growsAlong(data, floatsOf(data, 0, data.numElements()), data.shape.size() - 1);
}

bool isOfAngles(const TensorData& data) {
  if (spannedDims(data.shape) < 2) return false;
  std::vector<float> values = floatsOf(data, 0, data.numElements());
  return llvm::any_of(llvm::seq<size_t>(0, data.shape.size()),
                      [&](size_t dim) { return growsAlong(data, values, dim); });
}

}  // namespace oriel
