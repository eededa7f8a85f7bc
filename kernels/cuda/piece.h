// What factories of kernels on pieces share.
#ifndef ORIEL_KERNELS_CUDA_PIECE_H_
#define ORIEL_KERNELS_CUDA_PIECE_H_

#include "absl/strings/str_cat.h"
#include "kernels/common/piece.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/piece_args.h"

namespace oriel::kernels::cuda {

// All but the address.
inline PieceArgs PreparePiece(const Piece& piece, Device& device) {
  const int32_t launch =
      piece.operand < 0
          ? -1
          : device.NextLaunch(absl::StrCat("a piece of ", piece.size,
                                           " that begins at {value} is not within ", piece.whole));
  return {nullptr, piece.size, piece.whole, launch};
}
// The same, for one launch.
inline PieceArgs AtLaunch(PieceArgs prepared, const Piece& piece, const KernelArgs& args) {
  if (piece.operand >= 0) prepared.first = args.operand<int64_t>(piece.operand);
  return prepared;
}

inline FaultArgs FaultsOf(Device& device, std::string message) {
  return {reinterpret_cast<Fault*>(device.fault()), device.NextLaunch(std::move(message))};
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_PIECE_H_
