// Pieces of a tensor that is cut along one dimension, and how they are copied.
//
// Cut into `pieces` equal parts along a dimension, a tensor is [outer, pieces, inner] elements
// (Blocks, in communicator.h). A piece by itself is [outer, inner], row-major.
#ifndef ORIEL_RUNTIME_COMM_BLOCKS_H_
#define ORIEL_RUNTIME_COMM_BLOCKS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// Of a tensor of this shape that is cut along `dim`; its size is a multiple of `pieces`.
Blocks BlocksOf(absl::Span<const int64_t> shape, int64_t dim, int64_t pieces);

// The bytes of a piece in memory: runs of `run` bytes, one every `stride` bytes.
struct ConstPiece {
  const char* data;  // its first run
  int64_t run;
  int64_t stride;
};
struct MutablePiece {
  char* data;
  int64_t run;
  int64_t stride;

  // Implicit, as a pointer becomes one to const.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator ConstPiece() const { return {data, run, stride}; }
};

// Piece `index` of `pieces` of the tensor at `data`.
ConstPiece PieceOf(const void* data, Blocks blocks, int64_t pieces, int64_t index,
                   int64_t element_bytes);
MutablePiece PieceOf(void* data, Blocks blocks, int64_t pieces, int64_t index,
                     int64_t element_bytes);
// A piece by itself, or any part of one.
ConstPiece Contiguous(const void* data, int64_t bytes);
MutablePiece Contiguous(void* data, int64_t bytes);

// Copies `bytes` bytes of a piece, from its byte `from_begin` on, to where the same piece lies
// otherwise, from its byte `to_begin` on.
void CopyPiece(ConstPiece from, int64_t from_begin, MutablePiece to, int64_t to_begin,
               int64_t bytes);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_BLOCKS_H_
