#include "runtime/plan/buffer_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace oriel::runtime {

bool Contains(const AxisNames& axes, const std::string& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::string Braces(const AxisNames& axes) {
  return absl::StrCat("{", absl::StrJoin(axes, ", "), "}");
}

GridAxes::GridAxes(const plan::Grid& grid) {
  for (const auto& axis : grid.axes()) sizes_[axis.name()] = axis.size();
}

int64_t GridAxes::SizeOf(const std::string& axis) const {
  const auto found = sizes_.find(axis);
  return found == sizes_.end() ? 1 : found->second;
}

int64_t GridAxes::SizeOf(const AxisNames& axes) const {
  int64_t product = 1;
  for (const std::string& axis : axes) product *= SizeOf(axis);
  return product;
}

AxisNames GridAxes::Real(const google::protobuf::RepeatedPtrField<std::string>& names) const {
  AxisNames axes;
  for (const std::string& name : names) {
    if (SizeOf(name) > 1) axes.push_back(name);
  }
  return axes;
}

bool BufferLayout::IsWhole() const {
  return !IsPending() &&
         std::all_of(dims.begin(), dims.end(), [](const AxisNames& axes) { return axes.empty(); });
}

bool BufferLayout::Uses(const std::string& axis) const {
  return Contains(sum, axis) || Contains(max, axis) ||
         std::any_of(dims.begin(), dims.end(),
                     [&](const AxisNames& axes) { return Contains(axes, axis); });
}

std::string BufferLayout::ToString() const {
  std::string text = ShapeToString(global);
  std::vector<std::string> cuts;
  bool cut = false;
  for (const AxisNames& axes : dims) {
    cuts.push_back(Braces(axes));
    cut |= !axes.empty();
  }
  if (cut) absl::StrAppend(&text, " cut [", absl::StrJoin(cuts, ", "), "]");
  if (!sum.empty()) absl::StrAppend(&text, " sum ", Braces(sum));
  if (!max.empty()) absl::StrAppend(&text, " max ", Braces(max));
  if (scale != 1) absl::StrAppend(&text, " scale ", scale);
  return text;
}

std::string BufferLayout::ViewKey(plan::DType dtype, const GridAxes& grid) const {
  // The index of an element in the whole has digits: which piece on an axis, and which element
  // of the piece. Neighbouring digits of the latter kind are one.
  std::string key = absl::StrCat(dtype, " ");
  int64_t local = 1;
  const auto flush = [&] {
    if (local != 1) absl::StrAppend(&key, local, " ");
    local = 1;
  };
  for (size_t dim = 0; dim < global.size(); ++dim) {
    if (!dims[dim].empty()) flush();
    for (const std::string& axis : dims[dim]) absl::StrAppend(&key, "{", axis, "} ");
    local *= global[dim] / grid.SizeOf(dims[dim]);
  }
  flush();
  return absl::StrCat(key, "sum ", Braces(sum), " max ", Braces(max), " scale ", scale);
}

bool operator==(const BufferLayout& a, const BufferLayout& b) {
  return a.global == b.global && a.dims == b.dims && a.sum == b.sum && a.max == b.max &&
         a.scale == b.scale;
}

BufferLayout LayoutOf(const plan::Buffer& buffer, const GridAxes& grid) {
  BufferLayout layout;
  for (const auto& dim : buffer.sharding().dims()) layout.dims.push_back(grid.Real(dim.axes()));
  layout.dims.resize(buffer.local().shape_size());
  for (int dim = 0; dim < buffer.local().shape_size(); ++dim) {
    layout.global.push_back(buffer.local().shape(dim) * grid.SizeOf(layout.dims[dim]));
  }
  layout.sum = grid.Real(buffer.sharding().partial());
  layout.max = grid.Real(buffer.sharding().partial_max());
  std::sort(layout.sum.begin(), layout.sum.end());
  std::sort(layout.max.begin(), layout.max.end());
  if (buffer.scale() != 0) layout.scale = buffer.scale();
  return layout;
}

std::vector<BufferLayout> LayoutsOf(const plan::Program& program, const GridAxes& grid) {
  std::vector<BufferLayout> layouts;
  layouts.reserve(program.buffers_size());
  for (const auto& buffer : program.buffers()) layouts.push_back(LayoutOf(buffer, grid));
  return layouts;
}

}  // namespace oriel::runtime
