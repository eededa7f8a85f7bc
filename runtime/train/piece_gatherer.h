// Brings the pieces of tensors together on rank 0, for files that hold whole
// ones.
#ifndef ORIEL_RUNTIME_TRAIN_PIECE_GATHERER_H_
#define ORIEL_RUNTIME_TRAIN_PIECE_GATHERER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/tensor_layout.h"

namespace oriel::runtime {

// Every rank of the world makes one and calls the same functions for the same
// tensors in the same order. Beside what it is given, a rank needs room for one
// piece.
class PieceGatherer {
 public:
  // `world` may be null for one rank; it and the plan must outlive the result.
  // Unimplemented for a plan of several grids.
  static absl::StatusOr<PieceGatherer> Create(const plan::Plan& plan, Communicator* world);

  int64_t rank() const { return world_ == nullptr ? 0 : world_->rank(); }

  // Adds up the `count` values of the ranks over which the layout is a pending
  // sum, in rank order. All of them get the sum, in place.
  absl::Status Sum(const TensorLayout& layout, DType dtype, int64_t count, void* values);
  // Joins the boxes of all ranks, this one's being `piece`, to the whole tensor
  // at `target` of rank 0; on other ranks `target` may be null.
  absl::Status Gather(const TensorLayout& layout, DType dtype, const void* piece, void* target);

 private:
  PieceGatherer(const plan::Grid& grid, Communicator* world) : grid_(&grid), world_(world) {}
  // The ranks that differ from this one along these axes only; null if there
  // are none.
  absl::StatusOr<Communicator*> GroupOver(const std::vector<std::string>& axes);

  const plan::Grid* grid_;
  Communicator* world_;
  std::map<std::vector<std::string>, std::unique_ptr<Communicator>> groups_;
  std::vector<char> passing_;  // a piece on its way
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_PIECE_GATHERER_H_
