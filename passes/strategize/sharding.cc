#include "passes/strategize/sharding.h"

#include <algorithm>
#include <tuple>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace oriel {

ir::ShardingRule ruleOf(mlir::Operation* op) {
  auto shardable = llvm::dyn_cast<ir::ShardableOpInterface>(op);
  return shardable ? shardable.getShardingRule() : ir::wholeRule(op);
}

bool Sharding::isReplicated() const {
  return !isPending() && llvm::all_of(dims, [](const AxisList& axes) { return axes.empty(); });
}

bool Sharding::cuts(int axis) const {
  return llvm::any_of(dims, [&](const AxisList& axes) { return llvm::is_contained(axes, axis); });
}

bool Sharding::uses(int axis) const {
  return cuts(axis) || llvm::is_contained(sum, axis) || llvm::is_contained(max, axis);
}

AxisList Sharding::cutting() const {
  AxisList result;
  for (const AxisList& axes : dims) result.append(axes.begin(), axes.end());
  llvm::sort(result);
  return result;
}

bool operator<(const Sharding& a, const Sharding& b) {
  auto less = [](const AxisList& x, const AxisList& y) {
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  };
  if (a.dims != b.dims) {
    return std::lexicographical_compare(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                                        less);
  }
  if (a.sum != b.sum) return less(a.sum, b.sum);
  return less(a.max, b.max);
}

void insertSorted(AxisList& axes, int axis) {
  auto* place = llvm::lower_bound(axes, axis);
  if (place == axes.end() || *place != axis) axes.insert(place, axis);
}

void dropCuts(llvm::ArrayRef<int> axes, Sharding* sharding) {
  for (AxisList& own : sharding->dims) {
    llvm::erase_if(own, [&](int axis) { return llvm::is_contained(axes, axis); });
  }
}

AxisSizes::AxisSizes(const Grid& grid) {
  for (const AtomicAxis& axis : grid.axes) {
    sizes_.push_back(axis.size);
    names_.push_back(axis.name);
  }
}

int64_t AxisSizes::product(llvm::ArrayRef<int> axes) const {
  int64_t product = 1;
  for (int axis : axes) product *= sizes_[axis];
  return product;
}

llvm::SmallVector<int64_t> AxisSizes::local(llvm::ArrayRef<int64_t> shape,
                                            const Sharding& sharding) const {
  llvm::SmallVector<int64_t> result(shape);
  for (auto [size, axes] : llvm::zip_equal(result, sharding.dims)) size /= product(axes);
  return result;
}

mlir::RankedTensorType AxisSizes::local(mlir::RankedTensorType type,
                                        const Sharding& sharding) const {
  return type.clone(local(type.getShape(), sharding));
}

bool AxisSizes::divides(llvm::ArrayRef<int64_t> shape, const Sharding& sharding) const {
  return llvm::all_of(llvm::zip_equal(shape, sharding.dims), [&](const auto& dim) {
    return std::get<0>(dim) % product(std::get<1>(dim)) == 0;
  });
}

int AxisSizes::find(llvm::StringRef name) const {
  const auto* begin = names_.data();
  const auto* found = std::find(begin, begin + names_.size(), name);
  return found == begin + names_.size() ? -1 : static_cast<int>(found - begin);
}

AxisList AxisSizes::findAll(llvm::ArrayRef<std::string> names) const {
  AxisList axes;
  for (const std::string& name : names) axes.push_back(find(name));
  return axes;
}

std::string AxisSizes::text(const Sharding& sharding) const {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto printAxes = [&](const AxisList& axes) {
    out << '{';
    llvm::interleaveComma(axes, out, [&](int axis) { out << names_[axis]; });
    out << '}';
  };
  out << '[';
  llvm::interleaveComma(sharding.dims, out, printAxes);
  out << ']';
  for (auto [keyword, axes] : {std::pair("sum", &sharding.sum), std::pair("max", &sharding.max)}) {
    if (axes->empty()) continue;
    out << ' ' << keyword << ' ';
    printAxes(*axes);
  }
  return text;
}

mlir::ArrayAttr AxisSizes::namesOf(mlir::MLIRContext* context, llvm::ArrayRef<int> axes) const {
  llvm::SmallVector<mlir::Attribute> result;
  for (int axis : axes) result.push_back(mlir::StringAttr::get(context, names_[axis]));
  return mlir::ArrayAttr::get(context, result);
}

ir::ShardingAttr AxisSizes::toAttr(mlir::MLIRContext* context, const Sharding& sharding) const {
  llvm::SmallVector<mlir::Attribute> dims;
  for (const AxisList& axes : sharding.dims) dims.push_back(namesOf(context, axes));
  return ir::ShardingAttr::get(context, mlir::ArrayAttr::get(context, dims),
                               namesOf(context, sharding.sum), namesOf(context, sharding.max));
}

mlir::FailureOr<Sharding> AxisSizes::fromAttr(ir::ShardingAttr attribute,
                                              mlir::RankedTensorType type, std::string& why) const {
  auto read = [&](mlir::ArrayAttr names, AxisList& axes) {
    for (auto name : names.getAsRange<mlir::StringAttr>()) {
      axes.push_back(find(name.getValue()));
      if (axes.back() >= 0) continue;
      why = ("names the axis " + name.getValue() + ", which the grid lacks").str();
      return false;
    }
    return true;
  };
  Sharding result;
  for (auto names : attribute.getDims().getAsRange<mlir::ArrayAttr>()) {
    if (!read(names, result.dims.emplace_back())) return mlir::failure();
  }
  if (!read(attribute.getSum(), result.sum) || !read(attribute.getMax(), result.max)) {
    return mlir::failure();
  }
  llvm::sort(result.sum);
  llvm::sort(result.max);
  if (static_cast<int64_t>(result.dims.size()) != type.getRank()) {
    why = "has " + std::to_string(result.dims.size()) + " dimensions, the tensor " +
          std::to_string(type.getRank());
    return mlir::failure();
  }
  if (!divides(type.getShape(), result)) {
    why = "does not divide the tensor";
    return mlir::failure();
  }
  return result;
}

Sharding cutFurther(const Sharding& sharding, llvm::ArrayRef<int64_t> shape, AxisList axes,
                    const AxisSizes& sizes) {
  llvm::SmallVector<int64_t> local = sizes.local(shape, sharding);
  // Neighbouring ones of the axes, those with most ranks first.
  std::vector<llvm::ArrayRef<int>> groups;
  const llvm::ArrayRef<int> all = axes;
  for (size_t begin = 0; begin < all.size(); ++begin) {
    for (size_t count = all.size() - begin; count > 0; --count) {
      groups.push_back(all.slice(begin, count));
    }
  }
  llvm::stable_sort(groups, [&](llvm::ArrayRef<int> a, llvm::ArrayRef<int> b) {
    return sizes.product(a) > sizes.product(b);
  });
  for (llvm::ArrayRef<int> group : groups) {
    const int64_t ranks = sizes.product(group);
    int64_t best = -1;
    for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
      if (local[dim] % ranks != 0) continue;
      auto rank = [&](int64_t d) { return std::pair(sharding.dims[d].empty(), local[d]); };
      if (best < 0 || rank(dim) > rank(best)) best = dim;
    }
    if (best < 0) continue;
    Sharding result = sharding;
    result.dims[best].append(group.begin(), group.end());
    return result;
  }
  return sharding;
}

}  // namespace oriel
