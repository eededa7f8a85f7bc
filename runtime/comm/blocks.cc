#include "runtime/comm/blocks.h"

#include <algorithm>
#include <cstring>

namespace oriel::runtime {
Blocks BlocksOf(absl::Span<const int64_t> shape, int64_t dim, int64_t pieces) {
  Blocks blocks{1, 1};
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool before = static_cast<int64_t>(d) < dim;
    (before ? blocks.outer : blocks.inner) *= shape[d];
  }
  blocks.inner /= pieces;
  return blocks;
}

ConstPiece PieceOf(const void* data, Blocks blocks, int64_t pieces, int64_t index,
                   int64_t element_bytes) {
  const int64_t run = blocks.inner * element_bytes;
  return {static_cast<const char*>(data) + index * run, run, pieces * run};
}

MutablePiece PieceOf(void* data, Blocks blocks, int64_t pieces, int64_t index,
                     int64_t element_bytes) {
  const int64_t run = blocks.inner * element_bytes;
  return {static_cast<char*>(data) + index * run, run, pieces * run};
}

ConstPiece Contiguous(const void* data, int64_t bytes) {
  return {static_cast<const char*>(data), bytes, bytes};
}

MutablePiece Contiguous(void* data, int64_t bytes) {
  return {static_cast<char*>(data), bytes, bytes};
}

void CopyPiece(ConstPiece from, int64_t from_begin, MutablePiece to, int64_t to_begin,
               int64_t bytes) {
  if (bytes == 0) return;
  const char* source = from.data + from_begin / from.run * from.stride;
  char* target = to.data + to_begin / to.run * to.stride;
  int64_t source_at = from_begin % from.run;
  int64_t target_at = to_begin % to.run;
  while (bytes > 0) {
    const int64_t n = std::min({bytes, from.run - source_at, to.run - target_at});
    std::memcpy(target + target_at, source + source_at, n);
    bytes -= n;
    if ((source_at += n) == from.run) {
      source_at = 0;
      source += from.stride;
    }
    if ((target_at += n) == to.run) {
      target_at = 0;
      target += to.stride;
    }
  }
}

}  // namespace oriel::runtime
