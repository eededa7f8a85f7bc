// Triangular systems on the host, see solve.h: rows of some right-hand sides are combined as
// vectors, which stay in the cache.
#include <algorithm>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/solve/solve.h"
#include "runtime/base/status.h"

namespace oriel::kernels {
namespace {

// Right-hand sides that are solved for at a time.
constexpr int64_t kColumns = 64;

// x[i] -= a y[i]
template <typename T>
void Subtract(T* x, T a, const T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) x[i] -= a * y[i];
}

// `matrix`, `rhs` and `result` at the first of the rows' elements, of `columns` each.
template <typename T>
void Solve(const TriangularSystems& s, const T* matrix, const T* rhs, T* result, int64_t columns) {
  for (int64_t i = 0; i < s.n; ++i) {
    T* const x = result + i * s.row_step;
    std::copy_n(rhs + i * s.row_step, columns, x);
    const T* const row = matrix + i * s.row;
    for (int64_t j = 0; j < i; ++j) {
      Subtract(x, row[j * s.column], result + j * s.row_step, columns);
    }
    if (s.unit_diagonal) continue;
    const T diagonal = row[i * s.column];
    for (int64_t c = 0; c < columns; ++c) x[c] /= diagonal;
  }
}

struct TriangularSolve {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const TriangularSystems s, SystemsOf(spec));
    const int threads = spec.num_threads;
    return KernelFn([=](const KernelArgs& args) {
      const int64_t tiles = (s.m + kColumns - 1) / kColumns;
      ParallelFor(
          threads, s.systems * tiles, s.n * s.n * kColumns / 2, [&](int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; ++unit) {
              const int64_t system = unit / tiles, column = unit % tiles * kColumns;
              const int64_t at = system * s.n * s.m + s.first_row + column;
              Solve(s, args.operand<T>(0) + system * s.n * s.n + s.first, args.operand<T>(1) + at,
                    args.result<T>(0) + at, std::min(kColumns, s.m - column));
            }
          });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeTriangularSolve(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  return DispatchFloat<TriangularSolve>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("triangular_solve", 0, MakeTriangularSolve);

}  // namespace
}  // namespace oriel::kernels
