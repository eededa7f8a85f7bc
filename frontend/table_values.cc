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

int64_t spannedDims(const TensorData& data) {
  return llvm::count_if(data.shape, [](int64_t dim) { return dim != 1; });
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

// Of the elements that are not hidden.
Line growthOf(llvm::ArrayRef<float> values, int64_t first, const Lines& lines) {
  std::vector<std::pair<int64_t, double>> seen;
  double largest = 0;
  for (int64_t i = 0; i < lines.size; ++i) {
    const float value = values[first + i * lines.stride];
    if (value <= kHidden) continue;
    if (!std::isfinite(value)) return Line::kOther;
    seen.emplace_back(i, value);
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  if (seen.size() < 2) return Line::kConstant;
  const auto [begin, from] = seen.front();
  const auto [end, to] = seen.back();
  const double step = (to - from) / (end - begin), tolerance = kRounding * largest;
  for (const auto& [i, value] : seen) {
    if (std::abs(from + step * (i - begin) - value) > tolerance) return Line::kOther;
  }
  if (std::abs(to - from) <= 4 * tolerance) return Line::kConstant;
  return static_cast<int64_t>(seen.size()) >= kFewest ? Line::kGrowing : Line::kOther;
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

// Whether the squares of elements that are `pair` apart add up to the same number.
bool squaresAddUp(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  const double sum = double{a[0]} * a[0] + double{b[0]} * b[0];
  if (!(sum > 0)) return false;
  auto [least, most] = std::minmax_element(a.begin(), a.end());
  auto [leastOther, mostOther] = std::minmax_element(b.begin(), b.end());
  const double varied = 0.1 * std::sqrt(sum);
  if (*most - *least < varied || *mostOther - *leastOther < varied) return false;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    if (!(std::abs(double{x} * x + double{y} * y - sum) <= 2 * kRounding * sum)) return false;
  }
  return true;
}

}  // namespace

bool isAddedMask(const TensorData& data) {
  bool hides = false;
  auto isOfMask = [&](float value) {
    hides = hides || value <= kHidden;
    return value == 0 || value <= kHidden;
  };
  return allOf(data, isOfMask) && hides;
}

bool isFactorMask(const TensorData& data) {
  if (spannedDims(data) < 2) return false;
  bool hides = false, keeps = false;
  auto isOfMask = [&](float value) {
    hides = hides || value == 0;
    keeps = keeps || value == 1;
    return value == 0 || value == 1;
  };
  return allOf(data, isOfMask) && hides && keeps;
}

bool areCosinesAndSines(const TensorData& a, const TensorData& b) {
  if (a.shape != b.shape || a.numElements() < kFewest) return false;
  // Most pairs differ at once.
  const int64_t few = kFewest, count = a.numElements();
  auto addUp = [&](int64_t some) {
    std::vector<float> x = floatsOf(a, 0, some), y = floatsOf(b, 0, some);
    const double sum = double{x[0]} * x[0] + double{y[0]} * y[0];
    return llvm::all_of(llvm::seq<int64_t>(0, some), [&](int64_t i) {
      return std::abs(double{x[i]} * x[i] + double{y[i]} * y[i] - sum) <= 2 * kRounding * sum;
    });
  };
  return addUp(few) && squaresAddUp(floatsOf(a, 0, count), floatsOf(b, 0, count));
}

bool isOfCosinesAndSines(const TensorData& data) {
  const int64_t count = data.numElements();
  if (spannedDims(data) < 2 || count < 2 * kFewest) return false;
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
  if (spannedDims(data) != 1 || count < kFewest) return false;
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
  if (spannedDims(data) < 2) return false;
  return growsAlong(data, floatsOf(data, 0, data.numElements()), data.shape.size() - 1);
}

bool isOfAngles(const TensorData& data) {
  if (spannedDims(data) < 2) return false;
  std::vector<float> values = floatsOf(data, 0, data.numElements());
  return llvm::any_of(llvm::seq<size_t>(0, data.shape.size()),
                      [&](size_t dim) { return growsAlong(data, values, dim); });
}

}  // namespace oriel
