// Sums and maxima along a row, in an order that depends on its length alone.
//
// A sum's element i goes to lane i % kSumLanes, in double precision; at the end
// lanes are added up in pairs, the upper half to the lower, and what did not fill
// all lanes is added last. What is summed is an expression on rows, evaluated for
// a vector of elements at a time:
//
//   double dot = RowSum<T>(n, [=](auto at) { return at(x) * at(y); });
#ifndef ORIEL_KERNELS_COMMON_ROW_SUMS_H_
#define ORIEL_KERNELS_COMMON_ROW_SUMS_H_

#include <cstdint>
#include <cstring>

namespace oriel::kernels {

inline constexpr int kRowVector = 8;
inline constexpr int kSumLanes = 2 * kRowVector;

template <typename T, int kCount>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kCount * sizeof(T))));
};
using DoubleRow = VectorOf<double, kRowVector>::Type;

// kCount elements of a row from `index`, or one.
template <typename T, int kCount>
struct VectorAt {
  using Vector = typename VectorOf<T, kCount>::Type;
  int64_t index;
  Vector operator()(const T* row) const {
    Vector v;
    std::memcpy(&v, row + index, sizeof(v));
    return v;
  }
};
template <typename T>
struct ScalarAt {
  int64_t index;
  T operator()(const T* row) const { return row[index]; }
};

// To double precision, elementwise.
inline double Widen(float x) { return x; }
inline double Widen(double x) { return x; }
inline DoubleRow Widen(VectorOf<float, kRowVector>::Type x) {
  return __builtin_convertvector(x, DoubleRow);
}
inline DoubleRow Widen(DoubleRow x) { return x; }

// Σ f over [0, count); f gives T or, having widened, double.
template <typename T, typename F>
inline double RowSum(int64_t count, const F& f) {
  DoubleRow even = {};
  DoubleRow odd = {};
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    even += Widen(f(VectorAt<T, kRowVector>{i}));
    odd += Widen(f(VectorAt<T, kRowVector>{i + kRowVector}));
  }
  double rest = 0;
  for (; i < count; ++i) rest += Widen(f(ScalarAt<T>{i}));
  // Halves by shuffles: taking a vector's address would keep it in memory throughout the loop.
  const DoubleRow all = even + odd;
  const auto four =
      __builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7);
  const auto two =
      __builtin_shufflevector(four, four, 0, 1) + __builtin_shufflevector(four, four, 2, 3);
  return two[0] + two[1] + rest;
}

// The largest element that is not NaN; `lowest` for none.
template <typename T>
inline T RowMax(const T* row, int64_t count, T lowest) {
  constexpr int kCount = 16;
  using Vector = typename VectorOf<T, kCount>::Type;
  T best = lowest;
  int64_t i = 0;
  if (count >= kCount) {
    Vector lanes = VectorAt<T, kCount>{0}(row);
    lanes = lanes > lowest ? lanes : Vector{} + lowest;  // NaN leaves
    for (i = kCount; i + kCount <= count; i += kCount) {
      const Vector x = VectorAt<T, kCount>{i}(row);
      lanes = x > lanes ? x : lanes;
    }
    const auto a = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7);
    const auto b = __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15);
    const auto eight = a > b ? a : b;
    const auto c = __builtin_shufflevector(eight, eight, 0, 1, 2, 3);
    const auto d = __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
    const auto four = c > d ? c : d;
    const T low = four[0] > four[1] ? four[0] : four[1];
    const T high = four[2] > four[3] ? four[2] : four[3];
    best = low > high ? low : high;
  }
  for (; i < count; ++i) best = row[i] > best ? row[i] : best;
  return best;
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_ROW_SUMS_H_
