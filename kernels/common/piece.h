// A dimension of which a launch may have only a piece: one operand more, `first` (i64, rank 0),
// says where the piece begins, and an attribute how many elements the whole has.
//
//   ORIEL_ASSIGN_OR_RETURN(const Piece piece, Piece::Make(spec, 2, "rows", size));
//   ..
//   ORIEL_ASSIGN_OR_RETURN(const int64_t first, piece.First(args));
#ifndef ORIEL_KERNELS_COMMON_PIECE_H_
#define ORIEL_KERNELS_COMMON_PIECE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

struct Piece {
  int64_t size;   // of the piece
  int64_t whole;  // of all pieces; `size` where the launch has no operand `first`
  int operand;    // `first`; -1: none

  // `operand` is the index that `first` has where it is there; `attribute` the whole's size.
  static absl::StatusOr<Piece> Make(const KernelSpec& spec, size_t operand, const char* attribute,
                                    int64_t size);

  // Where the piece begins; InvalidArgument if it is not within the whole.
  absl::StatusOr<int64_t> First(const KernelArgs& args) const;
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_PIECE_H_
