#include "kernels/embedding/embedding.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<GatherShape> GatherShape::Make(const KernelSpec& spec, const TensorSpec& table,
                                              const TensorSpec& indices, const TensorSpec& rows) {
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", table.rank()));
  ORIEL_ASSIGN_OR_RETURN(const int64_t batch_dims, IntOr(spec, "batch_dims", 0));
  const bool has_batch = batch_dims != 0;
  if (has_batch &&
      (batch_dims != dim || batch_dims > indices.rank() ||
       !std::equal(table.shape.begin(), table.shape.begin() + dim, indices.shape.begin()))) {
    return Malformed(spec, absl::StrCat(batch_dims, " batch dimensions of ", table.ToString(),
                                        " don't fit ", indices.ToString()));
  }
  Shape expected(table.shape.begin(), table.shape.begin() + dim);
  expected.insert(expected.end(), indices.shape.begin() + batch_dims, indices.shape.end());
  expected.insert(expected.end(), table.shape.begin() + dim + 1, table.shape.end());
  if (rows.shape != expected || rows.dtype != table.dtype) {
    return Malformed(spec, absl::StrCat(rows.ToString(), " does not fit ", table.ToString(),
                                        " indexed by ", indices.ToString()));
  }
  ORIEL_ASSIGN_OR_RETURN(const Piece piece, Piece::Make(spec, 2, "rows", table.shape[dim]));
  const int64_t size = table.shape[dim], batches = has_batch ? SizeOf(table.shape, 0, dim) : 1;
  const int64_t count = indices.num_elements();
  return GatherShape{has_batch ? 1 : SizeOf(table.shape, 0, dim),
                     batches * size,
                     SizeOf(table.shape, dim + 1, table.rank()),
                     count,
                     batches == 0 ? 0 : count / batches,
                     size,
                     piece};
}

}  // namespace oriel::kernels
