#include "passes/generate/joined_rule.h"

#include <map>
#include <set>
#include <string>

#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"
#include "passes/strategize/sharding.h"

namespace oriel {

namespace {

using mlir::ArrayAttr;
using mlir::Attribute;
using mlir::DictionaryAttr;
using mlir::Operation;
using mlir::Value;

using Indices = std::set<int64_t>;  // of operands of the joined op

Indices unionOf(const Indices& a, const Indices& b) {
  Indices sum = a;
  sum.insert(b.begin(), b.end());
  return sum;
}

bool overlap(const Indices& a, const Indices& b) {
  return llvm::any_of(a, [&](int64_t i) { return b.count(i) > 0; });
}

Indices common(const Indices& a, const Indices& b) {
  Indices both;
  for (int64_t i : a) {
    if (b.count(i)) both.insert(i);
  }
  return both;
}

// By axis, the operands that are summands over it. (No op takes a pending maximum.)
std::map<std::string, Indices> pendingOperands(llvm::ArrayRef<Value> operands) {
  std::map<std::string, Indices> pending;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    ir::ShardingAttr sharding = ir::shardingOf(operand);
    if (!sharding) continue;
    for (auto axis : sharding.getSum().getAsRange<mlir::StringAttr>()) {
      pending[axis.str()].insert(static_cast<int64_t>(index));
    }
  }
  return pending;
}

// The operands that a value depends on, and the sets of them in which it is linear together.
struct Dependence {
  Indices on;
  std::set<Indices> linear;
};

// The same without the factors that are not cut.
RuleAndSplit cutPart(DictionaryAttr rule, ArrayAttr split) {
  mlir::Builder builder(rule.getContext());
  auto all = rule.getAs<ArrayAttr>("factors");
  llvm::SmallVector<int64_t> place(all.size(), -1);
  llvm::SmallVector<Attribute> factors, axes;
  for (auto [index, own] : llvm::enumerate(split)) {
    if (index >= all.size() || llvm::cast<ArrayAttr>(own).empty()) continue;
    place[index] = static_cast<int64_t>(factors.size());
    factors.push_back(all[index]);
    axes.push_back(own);
  }
  auto tensors = [&](llvm::StringRef name) {
    llvm::SmallVector<Attribute> kept;
    for (Attribute tensor : rule.getAs<ArrayAttr>(name)) {
      auto dims = llvm::dyn_cast<ArrayAttr>(tensor);
      if (!dims) {
        kept.push_back(tensor);
        continue;
      }
      llvm::SmallVector<Attribute> lists;
      for (auto dim : dims.getAsRange<ArrayAttr>()) {
        llvm::SmallVector<int64_t> of;
        for (auto factor : dim.getAsRange<mlir::IntegerAttr>()) {
          if (place[factor.getInt()] >= 0) of.push_back(place[factor.getInt()]);
        }
        lists.push_back(builder.getI64ArrayAttr(of));
      }
      kept.push_back(builder.getArrayAttr(lists));
    }
    return builder.getNamedAttr(name, builder.getArrayAttr(kept));
  };
  return {builder.getDictionaryAttr({builder.getNamedAttr("factors", builder.getArrayAttr(factors)),
                                     builder.getNamedAttr("linear", rule.get("linear")),
                                     tensors("operands"), tensors("results")}),
          builder.getArrayAttr(axes)};
}

class Joined {
 public:
  // Of rules without the factors that are not cut: ops that reduce and ops that do not have other
  // factors, and are cut alike if they are cut along rows.
  explicit Joined(bool onlyCut) : onlyCut_(onlyCut) {}

  bool add(Operation* op) {
    auto rule = op->getAttrOfType<DictionaryAttr>(kRuleAttr);
    auto split = op->getAttrOfType<ArrayAttr>(kSplitAttr);
    if (onlyCut_ && rule && split) {
      RuleAndSplit part = cutPart(rule, split);
      rule = part.rule;
      split = part.split;
    }
    if (!first_ && (rule == nullptr) != (factors_ == nullptr)) return false;
    if (!rule) {
      first_ = false;
      for (Value result : op->getResults()) dependences_[result];
      return true;
    }
    auto factors = rule.getAs<ArrayAttr>("factors");
    auto operands = rule.getAs<ArrayAttr>("operands"), results = rule.getAs<ArrayAttr>("results");
    if (!factors || !operands || !results || operands.size() != op->getNumOperands() ||
        results.size() != op->getNumResults()) {
      return false;
    }
    if (!first_ && (factors != factors_ || split != split_)) return false;
    first_ = false;
    factors_ = factors;
    split_ = split;
    for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), operands)) {
      // No list: the index where a piece begins.
      if (!llvm::isa<ArrayAttr>(dims)) return false;
      if (dims_.try_emplace(operand, dims).first->second != dims) return false;
    }
    for (auto [result, dims] : llvm::zip_equal(op->getResults(), results)) {
      dims_[result] = dims;
    }
    addDependence(op, rule.getAs<ArrayAttr>("linear"));
    return true;
  }

 private:
  friend std::optional<RuleAndSplit> join(Joined, llvm::ArrayRef<Operation*>, llvm::ArrayRef<Value>,
                                          llvm::ArrayRef<Value>);

  void addDependence(Operation* op, ArrayAttr linear) {
    Dependence made;
    for (Value operand : op->getOperands()) made.on = unionOf(made.on, dependences_[operand].on);
    if (linear) {
      for (auto group : linear.getAsRange<ArrayAttr>()) addLinear(op, group, made.linear);
    }
    for (Value result : op->getResults()) dependences_[result] = made;
  }

  // The op is linear together in the operands of `group`: what is linear in sets of ours for
  // each of them, and depends on no more of their union, makes it linear in that union.
  void addLinear(Operation* op, ArrayAttr group, std::set<Indices>& sets) {
    Indices members;
    for (auto index : group.getAsRange<mlir::IntegerAttr>()) members.insert(index.getInt());
    std::set<Indices> unions{{}};
    for (int64_t member : members) {
      std::set<Indices> more;
      for (const Indices& one : unions) {
        for (const Indices& own : dependences_[op->getOperand(member)].linear) {
          more.insert(unionOf(one, own));
        }
      }
      unions = std::move(more);
      if (unions.size() > kMaxSets) return;
    }
    for (const Indices& set : unions) {
      const bool fits = llvm::all_of(llvm::enumerate(op->getOperands()), [&](auto operand) {
        const Dependence& own = dependences_[operand.value()];
        if (!members.count(operand.index())) return !overlap(own.on, set);
        return own.linear.count(common(own.on, set)) > 0;
      });
      if (fits) sets.insert(set);
    }
  }

  static constexpr size_t kMaxSets = 64;

  const bool onlyCut_;
  bool first_ = true;
  ArrayAttr factors_, split_;
  llvm::DenseMap<Value, Attribute> dims_;
  llvm::DenseMap<Value, Dependence> dependences_;
};

std::optional<RuleAndSplit> join(Joined joined, llvm::ArrayRef<Operation*> ops,
                                 llvm::ArrayRef<Value> operands, llvm::ArrayRef<Value> results) {
  for (auto [index, operand] : llvm::enumerate(operands)) {
    const Indices self{static_cast<int64_t>(index)};
    joined.dependences_[operand] = {self, {self}};
  }
  for (Operation* op : ops) {
    if (!joined.add(op)) return std::nullopt;
  }
  if (!joined.factors_) return RuleAndSplit{};
  mlir::Builder builder(ops.front()->getContext());
  auto dimsOf = [&](llvm::ArrayRef<Value> values) {
    llvm::SmallVector<Attribute> list;
    for (Value value : values) list.push_back(joined.dims_.lookup(value));
    return builder.getArrayAttr(list);
  };
  // A group counts if all results are linear in what they depend on of it.
  std::set<Indices> groups;
  for (Value candidate : results) {
    for (const Indices& set : joined.dependences_[candidate].linear) {
      const bool all = llvm::all_of(results, [&](Value result) {
        const Dependence& own = joined.dependences_[result];
        return own.linear.count(common(own.on, set)) > 0;
      });
      if (all) groups.insert(set);
    }
  }
  // Results that are not all made of a pending sum are neither all pending nor all whole.
  for (const auto& [axis, members] : pendingOperands(operands)) {
    if (!groups.count(members)) return std::nullopt;
  }
  llvm::SmallVector<Attribute> linear;
  for (const Indices& group : groups) {
    linear.push_back(
        builder.getI64ArrayAttr(llvm::SmallVector<int64_t>(group.begin(), group.end())));
  }
  return RuleAndSplit{
      builder.getDictionaryAttr({builder.getNamedAttr("factors", joined.factors_),
                                 builder.getNamedAttr("linear", builder.getArrayAttr(linear)),
                                 builder.getNamedAttr("operands", dimsOf(operands)),
                                 builder.getNamedAttr("results", dimsOf(results))}),
      joined.split_};
}

}  // namespace

std::optional<RuleAndSplit> joinedRule(llvm::ArrayRef<Operation*> ops,
                                       llvm::ArrayRef<Value> operands,
                                       llvm::ArrayRef<Value> results) {
  std::optional<RuleAndSplit> rule = join(Joined(/*onlyCut=*/false), ops, operands, results);
  return rule ? rule : join(Joined(/*onlyCut=*/true), ops, operands, results);
}

}  // namespace oriel
