// Sorts indices of rows of a table on a device; those of one row stay in order. See scatter_add.cu.
//
//   ORIEL_ASSIGN_OR_RETURN(const IndexSort sort,
//                          IndexSort::Make(spec, device, shape, index_type, "index"));
//   ORIEL_RETURN_IF_ERROR(device.AddScratch(sort.scratch_bytes()));
//   ..
//   ORIEL_ASSIGN_OR_RETURN(const SortedIndices sorted, sort.Launch(launch, indices, scratch));
#ifndef ORIEL_KERNELS_EMBEDDING_INDEX_SORT_H_
#define ORIEL_KERNELS_EMBEDDING_INDEX_SORT_H_

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/embedding/embedding.h"
#include "kernels/embedding/gather_args.h"

namespace oriel::kernels::cuda {

// `what` an index is called in faults of those that are out of range.
GatherArgs IndexArgs(const KernelSpec& spec, Device& device, const GatherShape& shape,
                     const char* what);
// The same, for one launch.
GatherArgs AtLaunch(GatherArgs args, const GatherShape& shape, const KernelArgs& launch);

class IndexSort {
 public:
  // Unsupported for 2^31 indices or more, and for types of which there is no code.
  static absl::StatusOr<IndexSort> Make(const KernelSpec& spec, Device& device,
                                        const GatherShape& shape, DType index, const char* what);

  int64_t scratch_bytes() const;
  // Puts the sort on the launch's stream; gives where the result is, in `scratch`. An index of no
  // row here has the row `size`. Not for no indices at all.
  absl::StatusOr<SortedIndices> Launch(const KernelArgs& launch, const void* indices,
                                       CUdeviceptr scratch) const;
  GatherArgs args(const KernelArgs& launch) const { return AtLaunch(args_, shape_, launch); }

 private:
  IndexSort(const GatherShape& shape, const GatherArgs& args, Grid row_blocks, Function rows,
            Function sort)
      : shape_(shape), args_(args), row_blocks_(row_blocks), rows_(rows), sort_(sort) {}

  GatherShape shape_;
  GatherArgs args_;
  Grid row_blocks_;
  Function rows_, sort_;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_EMBEDDING_INDEX_SORT_H_
