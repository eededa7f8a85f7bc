// Delta-rule scans on the host, see delta_scan.h: some columns of a state stay in the cache from
// chunk to chunk, and are combined as vectors.
#include <algorithm>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/recurrence/delta_scan.h"
#include "runtime/base/status.h"

namespace oriel::kernels {
namespace {

// Columns of a state that are scanned at a time.
constexpr int64_t kColumns = 64;

// Rows and columns of sums that are in registers.
constexpr int64_t kRows = 4, kBlock = 16;

// to[row] += Σ_i from[i * step_of_sum + row * step_of_row] x[i], of kColumns each, for `kCount`
// rows from `row` on.
template <int64_t kCount, typename S, typename T>
void AddProductsOfRows(int64_t row, int64_t sums, const S* from, int64_t step_of_row,
                       int64_t step_of_sum, const T* x, T* to) {
  for (int64_t first = 0; first < kColumns; first += kBlock) {
    T block[kCount][kBlock];
    for (int64_t r = 0; r < kCount; ++r) {
      std::copy_n(to + (row + r) * kColumns + first, kBlock, block[r]);
    }
    for (int64_t i = 0; i < sums; ++i) {
      const T* const y = x + i * kColumns + first;
      for (int64_t r = 0; r < kCount; ++r) {
        const T factor = static_cast<T>(from[(row + r) * step_of_row + i * step_of_sum]);
#pragma omp simd
        for (int64_t column = 0; column < kBlock; ++column) block[r][column] += factor * y[column];
      }
    }
    for (int64_t r = 0; r < kCount; ++r) {
      std::copy_n(block[r], kBlock, to + (row + r) * kColumns + first);
    }
  }
}

template <typename S, typename T>
void AddProducts(int64_t rows, int64_t sums, const S* from, int64_t step_of_row,
                 int64_t step_of_sum, const T* x, T* to) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    AddProductsOfRows<kRows>(row, sums, from, step_of_row, step_of_sum, x, to);
  }
  for (; row < rows; ++row) {
    AddProductsOfRows<1>(row, sums, from, step_of_row, step_of_sum, x, to);
  }
}

// Between memory, of rows of `v` elements, and the columns that are scanned. Those beyond `columns`
// are 0.
template <typename S, typename T>
void Load(const S* from, int64_t rows, int64_t v, int64_t columns, T* to) {
  for (int64_t row = 0; row < rows; ++row) {
    T* const x = to + row * kColumns;
    for (int64_t i = 0; i < columns; ++i) x[i] = static_cast<T>(from[row * v + i]);
    std::fill(x + columns, x + kColumns, T(0));
  }
}
template <typename T, typename S>
void Store(const T* from, int64_t rows, int64_t v, int64_t columns, S* to) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* const x = from + row * kColumns;
    for (int64_t i = 0; i < columns; ++i) Assign(to + row * v + i, x[i]);
  }
}

template <typename S>
struct Scan {
  using T = Compute<S>;
  DeltaScan s;
  const KernelArgs& args;

  // `columns` of them from `first` on; `state` [k, kColumns] and `x` [c, kColumns] are scratch
  // memory.
  void Run(int64_t batch, int64_t first, int64_t columns, T* state, T* x) const {
    const int64_t of_state = s.k * s.v, of_keys = s.c * s.k;
    Load(args.operand<T>(4) + batch * of_state + first, s.k, s.v, columns, state);
    for (int64_t i = 0; i < s.chunks; ++i) {
      const int64_t chunk = batch * s.chunks + (s.reverse ? s.chunks - 1 - i : i);
      const int64_t at = chunk * s.c * s.v + first;
      Store(state, s.k, s.v, columns, args.result<S>(1) + chunk * of_state + first);
      Load(args.operand<S>(0) + at, s.c, s.v, columns, x);
      AddProducts(s.c, s.k, args.operand<S>(1) + chunk * of_keys, s.k, 1, state, x);
      Store(x, s.c, s.v, columns, args.result<S>(0) + at);
      const T* const decays = args.operand<T>(3) + chunk * (s.decays_rows ? s.k : 1);
      for (int64_t row = 0; row < s.k; ++row) {
        const T decay = decays[s.decays_rows ? row : 0];
        for (int64_t column = 0; column < kColumns; ++column)
          state[row * kColumns + column] *= decay;
      }
      AddProducts(s.k, s.c, args.operand<S>(2) + chunk * of_keys, 1, s.k, x, state);
      if (s.adds) AddRows(args.operand<S>(5) + chunk * of_state + first, columns, state);
    }
    Store(state, s.k, s.v, columns, args.result<T>(2) + batch * of_state + first);
  }

  void AddRows(const S* added, int64_t columns, T* state) const {
    for (int64_t row = 0; row < s.k; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        state[row * kColumns + column] += static_cast<T>(added[row * s.v + column]);
      }
    }
  }
};

struct MakeScan {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    ORIEL_ASSIGN_OR_RETURN(const DeltaScan s, DeltaScanOf(spec));
    const int threads = spec.num_threads;
    return KernelFn([=](const KernelArgs& args) {
      const int64_t tiles = (s.v + kColumns - 1) / kColumns;
      const Scan<S> scan{s, args};
      ParallelFor(threads, s.batch * tiles, 2 * s.chunks * s.c * s.k * kColumns,
                  [&](int64_t begin, int64_t end) {
                    T* const state =
                        static_cast<T*>(ThreadScratch((s.k + s.c) * kColumns * sizeof(T)));
                    for (int64_t unit = begin; unit < end; ++unit) {
                      const int64_t first = unit % tiles * kColumns;
                      scan.Run(unit / tiles, first, std::min(kColumns, s.v - first), state,
                               state + s.k * kColumns);
                    }
                  });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeDeltaScan(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 5, 6, 3));
  return DispatchStored<MakeScan>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("delta_scan", 0, MakeDeltaScan);

}  // namespace
}  // namespace oriel::kernels
