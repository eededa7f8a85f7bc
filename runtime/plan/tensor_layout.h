// How a tensor lies over the ranks of a grid: which box of it each rank holds.
//
//   ORIEL_ASSIGN_OR_RETURN(TensorLayout layout, TensorLayout::Create(grid, storage, shape));
//   const Box mine = layout.BoxOf(rank);
//   if (layout.Owns(rank)) Write(mine, data);  // each element is written once
//
// Where the ranks do not divide a tensor (Parameter.padded_shape), it is padded behind its end, and
// boxes may reach into the padding: zeros, which no file has.
//
// The layout of a part of a tensor (Parameter.part_of) has boxes of the whole one; where they reach
// into the padding, other parts have elements there. So what files have is ContentOf().
#ifndef ORIEL_RUNTIME_PLAN_TENSOR_LAYOUT_H_
#define ORIEL_RUNTIME_PLAN_TENSOR_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/box.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// A dimension with the axes [x, y] is cut into size(x) * size(y) equal parts; the rank at (i, j)
// of them has part i * size(y) + j. Ranks that differ on other axes only have the same box (of a
// pending sum: a summand of it).
class TensorLayout {
 public:
  // Of a verified grid. InvalidArgument if the sharding names an axis that the grid does not have,
  // or one twice, or if a dimension does not divide.
  static absl::StatusOr<TensorLayout> Create(const plan::Grid& grid, const plan::Sharding& sharding,
                                             Shape global) {
    return CreatePadded(grid, sharding, global, global);
  }
  // A dimension is padded behind each of its groups (Parameter.padded_groups; none: one of each).
  // InvalidArgument also if the padded shape is not at least the global one in each dimension, or
  // has elements of two groups on a rank.
  static absl::StatusOr<TensorLayout> CreatePadded(const plan::Grid& grid,
                                                   const plan::Sharding& sharding, Shape global,
                                                   const Shape& padded, const Shape& groups = {});

  // The same boxes, as those of a tensor of this shape in which this layout's begins at `start`.
  // InvalidArgument if it does not fit.
  absl::StatusOr<TensorLayout> PartOf(Shape whole, const Shape& start) const;

  const Shape& global() const { return global_; }  // without padding
  const Shape& piece() const { return piece_; }    // the size of every rank's box
  bool is_whole() const { return piece_ == global_; }
  // Whether the value is a pending sum or maximum over any axis.
  bool is_pending() const;
  // Axes over which it is a pending sum.
  const std::vector<std::string>& partial() const { return partial_; }

  // Whether a rank is one of the grid's.
  bool Contains(int64_t rank) const;
  // Of a rank of the grid.
  Box BoxOf(int64_t rank) const;
  // Without padding; may have no elements.
  Box ContentOf(int64_t rank) const;
  // Of the ranks with the same box one, that with the coordinate 0 on all axes that don't cut. No
  // rank of another grid.
  bool Owns(int64_t rank) const;
  // Those ranks, ascending.
  std::vector<int64_t> Owners() const;
  // Whether the rank's value belongs to the sum over all ranks that adds each box once: it owns the
  // box, or has another summand of it than the owner. Not that of another grid.
  bool Contributes(int64_t rank) const;

 private:
  // An atomic axis of the grid.
  struct Axis {
    std::string name;
    int64_t size;
    int64_t rank_stride = 1;
    int dim = -1;      // that it cuts
    int64_t step = 0;  // elements of that dimension between neighbours
    bool partial = false;
  };

  int64_t Coordinate(int64_t rank, const Axis& axis) const {
    return (rank - first_rank_) / axis.rank_stride % axis.size;
  }
  // Where the rank's box begins in the padded tensor.
  Shape OffsetOf(int64_t rank) const;
  // The first element of a dimension's group with this element of the padded dimension, in files
  // and padded.
  struct GroupStart {
    int64_t in_files, padded;
  };
  GroupStart StartOfGroup(size_t dim, int64_t offset) const;

  int64_t first_rank_ = 0;
  int64_t ranks_ = 1;
  std::vector<Axis> axes_;
  Shape global_;
  Box content_;  // of `global_`, without padding: all of it, or a part
  Shape piece_, padded_;
  Shape groups_;  // of each dimension
  std::vector<std::string> partial_;
};

// The shape that the ranks divide: padded, or that of `global`.
Shape PaddedShape(const plan::Parameter& parameter);
Shape PaddedGroups(const plan::Parameter& parameter);

// How a parameter, its gradient or a state of it lies over a grid, in boxes of the tensor that
// files have (NameInFiles). Errors as of CreatePadded and PartOf.
absl::StatusOr<TensorLayout> LayoutInFiles(const plan::Grid& grid, const plan::Parameter& parameter,
                                           const plan::Sharding& sharding);

// Whether two shardings say the same; dimensions at the end without axes don't matter.
bool SameSharding(const plan::Sharding& a, const plan::Sharding& b);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_TENSOR_LAYOUT_H_
