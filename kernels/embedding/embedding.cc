#include "kernels/embedding/embedding.h"

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<GatherShape> GatherShape::Make(const KernelSpec& spec, const TensorSpec& table,
                                              const TensorSpec& indices, const TensorSpec& rows) {
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", table.rank()));
  Shape expected(table.shape.begin(), table.shape.begin() + dim);
  expected.insert(expected.end(), indices.shape.begin(), indices.shape.end());
  expected.insert(expected.end(), table.shape.begin() + dim + 1, table.shape.end());
  if (rows.shape != expected || rows.dtype != table.dtype) {
    return Malformed(spec, absl::StrCat(rows.ToString(), " does not fit ", table.ToString(),
                                        " indexed by ", indices.ToString()));
  }
  ORIEL_ASSIGN_OR_RETURN(const Piece piece, Piece::Make(spec, 2, "rows", table.shape[dim]));
  return GatherShape{SizeOf(table.shape, 0, dim), table.shape[dim],
                     SizeOf(table.shape, dim + 1, table.rank()), indices.num_elements(), piece};
}

}  // namespace oriel::kernels
