// Indices of rows of a table, in device code.
#ifndef ORIEL_KERNELS_EMBEDDING_INDICES_CUH_
#define ORIEL_KERNELS_EMBEDDING_INDICES_CUH_

#include "kernels/cuda/device_code.cuh"
#include "kernels/cuda/piece.cuh"
#include "kernels/embedding/gather_args.h"

namespace oriel::kernels::cuda {

// The row of the table that an index names; -1 for one of another piece, or none at all.
template <typename I>
__device__ inline int64_t RowOf(const GatherArgs& args, const I* indices, int64_t k,
                                int64_t first) {
  const int64_t index = indices[k], rows = args.rows.whole;
  const int64_t own = (index < 0 ? index + rows : index) - first;
  const bool has = index >= -rows && index < rows && own >= 0 && own < args.batch_size;
  return has ? own + k / args.batch_count * args.batch_size : -1;
}

// Reports an index that is out of range.
template <typename I>
__device__ inline void CheckIndex(const GatherArgs& args, const I* indices, int64_t k) {
  const int64_t index = indices[k], rows = args.rows.whole;
  if (index >= -rows && index < rows) return;
  ReportFault(args.indices.fault, args.indices.launch, kIndexOutOfRange, index, rows, k);
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_EMBEDDING_INDICES_CUH_
