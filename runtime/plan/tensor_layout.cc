#include "runtime/plan/tensor_layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {

absl::StatusOr<TensorLayout> TensorLayout::CreatePadded(const plan::Grid& grid,
                                                        const plan::Sharding& sharding,
                                                        Shape global, const Shape& padded,
                                                        const Shape& groups) {
  auto error = [](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(what...));
  };
  TensorLayout layout;
  layout.first_rank_ = grid.first_rank();
  for (const plan::AtomicAxis& axis : grid.axes()) {
    layout.axes_.push_back({axis.name(), axis.size()});
    layout.ranks_ *= axis.size();
  }
  for (size_t i = layout.axes_.size(); i-- > 1;) {
    layout.axes_[i - 1].rank_stride = layout.axes_[i].rank_stride * layout.axes_[i].size;
  }
  const auto find = [&](const std::string& name) {
    return std::find_if(layout.axes_.begin(), layout.axes_.end(),
                        [&](const Axis& axis) { return axis.name == name; });
  };

  if (sharding.dims_size() > static_cast<int>(global.size())) {
    return error("its sharding has more dimensions than its shape");
  }
  bool fits = padded.size() == global.size();
  for (size_t dim = 0; fits && dim < global.size(); ++dim) fits = padded[dim] >= global[dim];
  if (!fits) {
    return error("the shape ", ShapeToString(global), " can't be padded to ",
                 ShapeToString(padded));
  }
  layout.piece_ = layout.padded_ = padded;
  for (int dim = 0; dim < sharding.dims_size(); ++dim) {
    for (const std::string& name : sharding.dims(dim).axes()) {
      const auto axis = find(name);
      if (axis == layout.axes_.end()) {
        return error("its sharding names the axis '", name, "', which the grid does not have");
      }
      if (axis->dim >= 0) return error("its sharding uses the axis '", name, "' twice");
      int64_t& size = layout.piece_[dim];
      if (size % axis->size != 0) {
        return error("dimension ", dim, " of size ", padded[dim],
                     " does not divide over the axis '", name, "' of size ", axis->size);
      }
      size /= axis->size;
      axis->dim = dim;
      axis->step = size;
    }
  }
  for (const bool sum : {true, false}) {
    for (const std::string& name : sum ? sharding.partial() : sharding.partial_max()) {
      const auto axis = find(name);
      if (axis == layout.axes_.end()) {
        return error("it is partial over the axis '", name, "', which the grid does not have");
      }
      if (axis->dim >= 0 || axis->partial) {
        return error("its sharding uses the axis '", name, "' twice");
      }
      axis->partial = true;
      if (sum) layout.partial_.push_back(name);
    }
  }
  layout.groups_ = groups.empty() ? Shape(global.size(), 1) : groups;
  fits = layout.groups_.size() == global.size();
  for (size_t dim = 0; fits && dim < global.size(); ++dim) {
    const int64_t count = layout.groups_[dim];
    if (count == 1) continue;
    fits = count > 1 && global[dim] > 0 && global[dim] % count == 0 && padded[dim] % count == 0 &&
           padded[dim] / layout.piece_[dim] % count == 0;
  }
  if (!fits) {
    return error("the shape ", ShapeToString(global), ", padded to ", ShapeToString(padded),
                 " and in pieces of ", ShapeToString(layout.piece_), ", does not have groups ",
                 ShapeToString(layout.groups_), " of dimensions on ranks of their own");
  }
  layout.content_ = WholeBox(global);
  layout.global_ = std::move(global);
  return layout;
}

absl::StatusOr<TensorLayout> TensorLayout::PartOf(Shape whole, const Shape& start) const {
  bool fits = whole.size() == global_.size() && start.size() == global_.size();
  for (size_t dim = 0; fits && dim < whole.size(); ++dim) {
    fits = start[dim] >= 0 && start[dim] <= whole[dim] - global_[dim];
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("no part of the shape ", ShapeToString(global_),
                                                   " begins at ", ShapeToString(start),
                                                   " of the shape ", ShapeToString(whole)));
  }
  TensorLayout result = *this;
  result.content_ = {start, global_};
  result.global_ = std::move(whole);
  return result;
}

bool TensorLayout::Contains(int64_t rank) const {
  return rank >= first_rank_ && rank - first_rank_ < ranks_;
}

Shape TensorLayout::OffsetOf(int64_t rank) const {
  Shape offset(piece_.size(), 0);
  for (const Axis& axis : axes_) {
    if (axis.dim >= 0) offset[axis.dim] += Coordinate(rank, axis) * axis.step;
  }
  return offset;
}

TensorLayout::GroupStart TensorLayout::StartOfGroup(size_t dim, int64_t offset) const {
  if (groups_[dim] == 1) return {0, 0};
  const int64_t size = padded_[dim] / groups_[dim], group = offset / size;
  return {group * (content_.size[dim] / groups_[dim]), group * size};
}

Box TensorLayout::BoxOf(int64_t rank) const {
  Box box{content_.start, piece_};
  const Shape offset = OffsetOf(rank);
  for (size_t dim = 0; dim < offset.size(); ++dim) {
    const GroupStart group = StartOfGroup(dim, offset[dim]);
    box.start[dim] += group.in_files + offset[dim] - group.padded;
  }
  return box;
}

Box TensorLayout::ContentOf(int64_t rank) const {
  Box groups = content_;
  const Shape offset = OffsetOf(rank);
  for (size_t dim = 0; dim < offset.size(); ++dim) {
    groups.start[dim] += StartOfGroup(dim, offset[dim]).in_files;
    groups.size[dim] /= groups_[dim];
  }
  return Intersect(BoxOf(rank), groups);
}

bool TensorLayout::Owns(int64_t rank) const {
  return Contains(rank) && std::all_of(axes_.begin(), axes_.end(), [&](const Axis& axis) {
           return axis.dim >= 0 || Coordinate(rank, axis) == 0;
         });
}

bool TensorLayout::is_pending() const {
  return std::any_of(axes_.begin(), axes_.end(), [](const Axis& axis) { return axis.partial; });
}

bool TensorLayout::Contributes(int64_t rank) const {
  return Contains(rank) && std::all_of(axes_.begin(), axes_.end(), [&](const Axis& axis) {
           return axis.dim >= 0 || axis.partial || Coordinate(rank, axis) == 0;
         });
}

std::vector<int64_t> TensorLayout::Owners() const {
  std::vector<int64_t> owners = {first_rank_};
  for (const Axis& axis : axes_) {
    if (axis.dim < 0) continue;
    std::vector<int64_t> wider;
    for (const int64_t owner : owners) {
      for (int64_t i = 0; i < axis.size; ++i) wider.push_back(owner + i * axis.rank_stride);
    }
    owners = std::move(wider);
  }
  return owners;
}

Shape PaddedShape(const plan::Parameter& parameter) {
  const auto& shape =
      parameter.padded_shape().empty() ? parameter.global().shape() : parameter.padded_shape();
  return {shape.begin(), shape.end()};
}

Shape PaddedGroups(const plan::Parameter& parameter) {
  return {parameter.padded_groups().begin(), parameter.padded_groups().end()};
}

absl::StatusOr<TensorLayout> LayoutInFiles(const plan::Grid& grid, const plan::Parameter& parameter,
                                           const plan::Sharding& sharding) {
  absl::StatusOr<TensorLayout> layout =
      TensorLayout::CreatePadded(grid, sharding, FromPlan(parameter.global()).shape,
                                 PaddedShape(parameter), PaddedGroups(parameter));
  if (!layout.ok() || !parameter.has_part_of()) return layout;
  const auto& start = parameter.part_of().start();
  return layout->PartOf(ShapeInFiles(parameter), {start.begin(), start.end()});
}

bool SameSharding(const plan::Sharding& a, const plan::Sharding& b) {
  const auto axes = [](const plan::Sharding& sharding, int dim) {
    std::vector<std::string> names;
    if (dim < sharding.dims_size()) {
      names.assign(sharding.dims(dim).axes().begin(), sharding.dims(dim).axes().end());
    }
    return names;
  };
  for (int dim = 0; dim < std::max(a.dims_size(), b.dims_size()); ++dim) {
    if (axes(a, dim) != axes(b, dim)) return false;
  }
  const auto set = [](const auto& names) {
    return std::set<std::string>(names.begin(), names.end());
  };
  return set(a.partial()) == set(b.partial()) && set(a.partial_max()) == set(b.partial_max());
}

}  // namespace oriel::runtime
