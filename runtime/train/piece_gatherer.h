// Brings the pieces of tensors together on rank 0, for files that hold whole
// ones.
#ifndef ORIEL_RUNTIME_TRAIN_PIECE_GATHERER_H_
#define ORIEL_RUNTIME_TRAIN_PIECE_GATHERER_H_

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"

namespace oriel::runtime {

// Every rank of the world makes one and calls the same functions for the same
// tensors in the same order. Beside what it is given, rank 0 needs room for one
// piece.
class PieceGatherer {
 public:
  // `world` may be null for one rank; it must outlive the result.
  static absl::StatusOr<PieceGatherer> Create(const plan::Plan& plan, Communicator* world);

  int64_t rank() const { return world_ == nullptr ? 0 : world_->rank(); }

  // Adds up the `count` values of the ranks over which the layout is a pending
  // sum, in rank order. All of them get the sum, in place. Ranks of another grid
  // than the layout's have none.
  absl::Status Sum(const TensorLayout& layout, DType dtype, int64_t count, void* values);
  // Joins the boxes of all ranks of the layout's grid, this one's being `piece`,
  // to the whole tensor at `target` of rank 0. `piece` may be null on ranks of
  // another grid, `target` on all but rank 0.
  absl::Status Gather(const TensorLayout& layout, DType dtype, const void* piece, void* target);
  // The same, but rank 0 calls `take` with one box after the other, without padding.
  using TakeBox = std::function<void(const Box& box, const void* data)>;
  absl::Status Gather(const TensorLayout& layout, DType dtype, const void* piece,
                      const TakeBox& take);

 private:
  PieceGatherer(GridLayout grid, Communicator* world) : grid_(std::move(grid)), world_(world) {}
  absl::Status CheckWorld() const;
  // Of these ranks of the world, ascending, with this one.
  absl::StatusOr<Communicator*> GroupOf(const std::vector<int64_t>& ranks);

  GridLayout grid_;  // this rank's
  Communicator* world_;
  std::map<std::vector<int64_t>, std::unique_ptr<Communicator>> groups_;
  std::vector<char> passing_, content_;  // a piece on its way, and without its padding
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_PIECE_GATHERER_H_
