// Which rank sends what to whom when a tensor goes from one grid to another.
//
//   ORIEL_ASSIGN_OR_RETURN(TransferLayout layout, TransferLayout::Create(plan, channel));
//   for (const TransferPart& part : layout.SentBy(rank)) Send(part.peer, part.box);
#ifndef ORIEL_RUNTIME_PLAN_TRANSFER_LAYOUT_H_
#define ORIEL_RUNTIME_PLAN_TRANSFER_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/box.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"

namespace oriel::runtime {

// A box of the channel's tensor, in its coordinates, that goes to or comes from a rank.
struct TransferPart {
  int64_t peer;
  Box box;
};

// Every element of a receiver's box comes from one rank that has it. Of the ranks of the source
// grid that have the same box (replicas), the receivers that need some of it take turns: the one
// that is i-th among them, in the order of ranks, gets it from replica i modulo their number.
// Between two ranks goes one part at most.
class TransferLayout {
 public:
  // Of a channel of the plan, whose grids have been verified. InvalidArgument if they are not two
  // grids of the plan, if a sharding does not fit its grid or the tensor, or if the value is
  // pending on either side.
  static absl::StatusOr<TransferLayout> Create(const plan::Plan& plan,
                                               const plan::Channel& channel);

  // Of a rank of the source grid; ascending by peer, each with elements.
  std::vector<TransferPart> SentBy(int64_t rank) const;
  // Of a rank of the target grid; ascending by peer, each with elements.
  std::vector<TransferPart> ReceivedBy(int64_t rank) const;

  const TensorLayout& source() const { return source_; }
  const TensorLayout& target() const { return target_; }

 private:
  // The ranks of the source grid that have the same box, ascending.
  struct Replicas {
    Box box;
    std::vector<int64_t> ranks;
  };

  TransferLayout(TensorLayout source, TensorLayout target, const GridLayout& source_grid,
                 const GridLayout& target_grid);

  TensorLayout source_, target_;
  std::vector<Replicas> replicas_;  // by each one's first rank
  int64_t first_receiver_, receivers_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_TRANSFER_LAYOUT_H_
