#include "passes/propagate/op_split.h"

#include <algorithm>

#include "llvm/ADT/STLExtras.h"

namespace oriel {

namespace {

using ir::FactorKind;
using ir::FactorList;
using ir::ShardingRule;
using ir::TensorFactors;

Sharding cutBy(const OpSplit& split, const TensorFactors& dims) {
  Sharding sharding;
  for (const FactorList& factors : dims) {
    AxisList& axes = sharding.dims.emplace_back();
    for (int factor : factors) axes.append(split.factors[factor]);
  }
  return sharding;
}

// The cuts of factors that a proposal alone would give. A dimension's axes go to its factors from
// the outermost on; the next one is reached when one is cut to single elements.
std::vector<AxisList> factorsOf(const ShardingRule& rule, const AxisSizes& sizes,
                                const Proposal& proposal) {
  std::vector<AxisList> result(rule.factors.size());
  for (auto [factors, axes] : llvm::zip_equal(*proposal.dims, proposal.sharding.dims)) {
    const int* next = factors.begin();
    int64_t left = next == factors.end() ? 1 : rule.factors[*next].size;
    for (int axis : axes) {
      while (left == 1 && next != factors.end() && ++next != factors.end()) {
        left = rule.factors[*next].size;
      }
      if (next == factors.end() || left % sizes[axis] != 0) break;
      left /= sizes[axis];
      result[*next].push_back(axis);
    }
  }
  return result;
}

// An inner factor of a dimension may be cut only where the outer ones are cut to single elements:
// else the pieces would not be contiguous.
void dropUncontiguous(const ShardingRule& rule, const AxisSizes& sizes,
                      std::vector<AxisList>& factors) {
  bool changed = true;
  auto check = [&](const TensorFactors& dims) {
    for (const FactorList& list : dims) {
      bool whole = true;  // all outer factors are cut to single elements
      for (int factor : list) {
        if (!whole && !factors[factor].empty()) {
          factors[factor].clear();
          changed = true;
        }
        whole &= sizes.product(factors[factor]) == rule.factors[factor].size;
      }
    }
  };
  while (changed) {
    changed = false;
    llvm::for_each(rule.operands, check);
    llvm::for_each(rule.results, check);
  }
}

bool takes(const std::vector<AxisList>& factors, int axis) {
  return llvm::any_of(factors,
                      [&](const AxisList& axes) { return llvm::is_contained(axes, axis); });
}

}  // namespace

Sharding OpSplit::operand(const ShardingRule& rule, unsigned index) const {
  Sharding sharding = cutBy(*this, rule.operands[index]);
  for (const Pass& pass : passes) {
    if (llvm::is_contained(rule.linear[pass.group], index)) insertSorted(sharding.sum, pass.axis);
  }
  return sharding;
}

Sharding OpSplit::result(const ShardingRule& rule, unsigned index) const {
  Sharding sharding = cutBy(*this, rule.results[index]);
  for (auto [i, axes] : llvm::enumerate(factors)) {
    if (rule.resultHas(index, static_cast<int>(i))) continue;
    if (rule.factors[i].kind == FactorKind::kSum) {
      for (int axis : axes) insertSorted(sharding.sum, axis);
    } else if (rule.factors[i].kind == FactorKind::kMax) {
      for (int axis : axes) insertSorted(sharding.max, axis);
    }
  }
  for (const Pass& pass : passes) insertSorted(sharding.sum, pass.axis);
  return sharding;
}

llvm::SmallVector<int64_t> OpSplit::pieces(const AxisSizes& sizes) const {
  return llvm::map_to_vector(factors, [&](const AxisList& axes) { return sizes.product(axes); });
}

AxisList OpSplit::cutting() const {
  AxisList result;
  for (const AxisList& axes : factors) result.append(axes.begin(), axes.end());
  llvm::sort(result);
  return result;
}

mlir::Attribute OpSplit::toAttr(mlir::MLIRContext* context, const AxisSizes& sizes) const {
  mlir::Builder builder(context);
  llvm::SmallVector<mlir::Attribute> lists;
  for (const AxisList& axes : factors) lists.push_back(sizes.namesOf(context, axes));
  for (const Pass& pass : passes) {
    lists.push_back(builder.getArrayAttr(
        {builder.getStringAttr(sizes.name(pass.axis)), builder.getI64IntegerAttr(pass.group)}));
  }
  return builder.getArrayAttr(lists);
}

mlir::FailureOr<OpSplit> OpSplit::fromAttr(mlir::Attribute attribute, const ShardingRule& rule,
                                           const AxisSizes& sizes) {
  auto lists = llvm::dyn_cast_or_null<mlir::ArrayAttr>(attribute);
  if (!lists || lists.size() < rule.factors.size()) return mlir::failure();
  auto axisOf = [&](mlir::Attribute name) {
    auto string = llvm::dyn_cast<mlir::StringAttr>(name);
    return string ? sizes.find(string.getValue()) : -1;
  };
  OpSplit split;
  for (auto [i, element] : llvm::enumerate(lists)) {
    auto list = llvm::dyn_cast<mlir::ArrayAttr>(element);
    if (!list) return mlir::failure();
    if (i >= rule.factors.size()) {
      auto group = list.size() == 2 ? llvm::dyn_cast<mlir::IntegerAttr>(list[1]) : nullptr;
      if (!group || axisOf(list[0]) < 0 || group.getInt() < 0 ||
          group.getInt() >= static_cast<int64_t>(rule.linear.size())) {
        return mlir::failure();
      }
      split.passes.push_back({axisOf(list[0]), static_cast<unsigned>(group.getInt())});
      continue;
    }
    AxisList& axes = split.factors.emplace_back();
    for (mlir::Attribute name : list) {
      const int axis = axisOf(name);
      if (axis < 0 || takes(split.factors, axis)) return mlir::failure();
      axes.push_back(axis);
    }
    if (rule.factors[i].size % sizes.product(axes) != 0) return mlir::failure();
  }
  return split;
}

bool operator==(const OpSplit& a, const OpSplit& b) {
  return a.factors == b.factors &&
         std::equal(a.passes.begin(), a.passes.end(), b.passes.begin(), b.passes.end(),
                    [](const OpSplit::Pass& x, const OpSplit::Pass& y) {
                      return x.axis == y.axis && x.group == y.group;
                    });
}

std::vector<AxisList> combineProposals(const ShardingRule& rule, const AxisSizes& sizes,
                                       llvm::ArrayRef<Proposal> proposals) {
  std::vector<AxisList> result(rule.factors.size());
  for (const Proposal& proposal : proposals) {
    std::vector<AxisList> wanted = factorsOf(rule, sizes, proposal);
    for (auto [i, axes] : llvm::enumerate(wanted)) {
      // Only what lengthens the list; an axis that cuts another factor ends it.
      if (axes.size() <= result[i].size() ||
          !std::equal(result[i].begin(), result[i].end(), axes.begin())) {
        continue;
      }
      for (int axis : llvm::ArrayRef(axes).drop_front(result[i].size())) {
        if (takes(result, axis)) break;
        result[i].push_back(axis);
      }
    }
  }
  dropUncontiguous(rule, sizes, result);
  return result;
}

bool wouldCut(const ShardingRule& rule, const AxisSizes& sizes, const Proposal& proposal,
              FactorKind kind) {
  std::vector<AxisList> factors = factorsOf(rule, sizes, proposal);
  return llvm::any_of(llvm::zip_equal(rule.factors, factors), [&](const auto& pair) {
    return std::get<0>(pair).kind == kind && !std::get<1>(pair).empty();
  });
}

}  // namespace oriel
