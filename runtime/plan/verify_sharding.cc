// That each instruction makes, of operands that lie over the ranks as their buffers say, results
// that lie as theirs say.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "absl/strings/str_join.h"
#include "runtime/plan/buffer_layout.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

using plan::SplitRule;

// Of a dimension; none where the list ends before it.
const google::protobuf::RepeatedField<int32_t>& FactorsOf(const SplitRule::TensorDims& tensor,
                                                          int dim) {
  static const auto* none = new google::protobuf::RepeatedField<int32_t>();
  return dim < tensor.dims_size() ? tensor.dims(dim).factors() : *none;
}

bool Has(const SplitRule::TensorDims& tensor, int factor) {
  return std::any_of(tensor.dims().begin(), tensor.dims().end(), [&](const auto& dim) {
    return std::count(dim.factors().begin(), dim.factors().end(), factor) > 0;
  });
}

// Which part of the launch each factor is of: parts have no operand and no result in common that
// either cuts, as the tensors of a list.
std::vector<int> PartsOf(const SplitRule& rule) {
  // Another factor of the same part, or the factor itself, which the part is then called after.
  std::vector<int> parts(rule.factors_size());
  std::iota(parts.begin(), parts.end(), 0);
  const auto part_of = [&](int factor) {
    while (parts[factor] != factor) factor = parts[factor] = parts[parts[factor]];
    return factor;
  };
  const auto join = [&](const SplitRule::TensorDims& tensor) {
    std::optional<int> first;
    for (const auto& dim : tensor.dims()) {
      for (const int factor : dim.factors()) {
        if (!first) first = factor;
        parts[part_of(factor)] = part_of(*first);
      }
    }
  };
  for (const auto& tensor : rule.operands()) join(tensor);
  for (const auto& tensor : rule.results()) join(tensor);
  for (int factor = 0; factor < rule.factors_size(); ++factor) parts[factor] = part_of(factor);
  return parts;
}

// Empty if the rule can be used, else what is wrong.
std::string WhatIsWrong(const SplitRule& rule) {
  for (const auto& factor : rule.factors()) {
    if (factor.size() < 0 || !SplitRule::Kind_IsValid(factor.kind())) {
      return "has a factor of an impossible size or an unknown kind";
    }
  }
  const auto known = [&](int factor) { return factor >= 0 && factor < rule.factors_size(); };
  for (const auto* tensors : {&rule.operands(), &rule.results()}) {
    for (const auto& tensor : *tensors) {
      std::set<int> seen;
      for (const auto& dim : tensor.dims()) {
        for (const int factor : dim.factors()) {
          if (!known(factor)) return absl::StrCat("names the factor ", factor);
          if (!seen.insert(factor).second) return absl::StrCat("has the factor ", factor, " twice");
        }
      }
      if (!tensor.first()) continue;
      if (!known(tensor.factor())) return absl::StrCat("names the factor ", tensor.factor());
      if (tensors == &rule.results()) return "has an index of a piece among its results";
    }
  }
  for (const auto& group : rule.linear()) {
    for (const int operand : group.operands()) {
      if (operand < 0 || operand >= rule.operands_size()) {
        return absl::StrCat("is linear in the operand ", operand);
      }
    }
  }
  for (const int operand : rule.added()) {
    if (operand < 0 || operand >= rule.operands_size()) {
      return absl::StrCat("adds the operand ", operand);
    }
  }
  return "";
}

// Whether results are sums over the factor, all of them.
bool IsSummed(const SplitRule& rule, int factor) {
  return rule.factors(factor).kind() == SplitRule::SUM &&
         std::none_of(rule.results().begin(), rule.results().end(),
                      [&](const auto& result) { return Has(result, factor); });
}

class ShardingVerifier {
 public:
  ShardingVerifier(const plan::Plan& plan, int index, const std::vector<bool>& rules,
                   Problems& problems)
      : plan_(plan),
        index_(index),
        rules_(rules),
        program_(plan.programs(index)),
        axes_(*GridOf(plan, program_)),
        layouts_(LayoutsOf(program_, axes_)),
        problems_(problems) {}

  void Verify() {
    for (int i = 0; i < program_.buffers_size(); ++i) VerifyRole(i);
    for (segment_ = 0; segment_ < program_.segments_size(); ++segment_) {
      const auto& segment = program_.segments(segment_);
      for (instruction_ = 0; instruction_ < segment.instructions_size(); ++instruction_) {
        if (problems_.full()) return;
        VerifyInstruction(segment.instructions(instruction_));
      }
    }
  }

 private:
  const plan::Buffer& buffer(int index) const { return program_.buffers(index); }
  // "gradient 'w' ([4] sum {a0})"
  std::string Name(int index) const {
    return absl::StrCat(BufferName(buffer(index)), " (", layouts_[index].ToString(), ")");
  }
  template <typename... Parts>
  void Refuse(const Parts&... parts) {
    problems_.Add(InstructionPath(plan_, index_, segment_, instruction_), parts...);
  }

  // What the host fills and reads, and what the optimizer keeps.
  void VerifyRole(int index) {
    const BufferLayout& layout = layouts_[index];
    const auto refuse = [&](const char* why) {
      problems_.Add("program ", index_, ": ", Name(index), " ", why);
    };
    if (!layout.sum.empty() && !layout.max.empty()) {
      return refuse("is a pending sum and a pending maximum");
    }
    const bool cut = std::any_of(layout.dims.begin(), layout.dims.end(),
                                 [](const AxisNames& axes) { return !axes.empty(); });
    const bool cut_within =
        std::any_of(layout.dims.begin() + std::min<size_t>(1, layout.dims.size()),
                    layout.dims.end(), [](const AxisNames& axes) { return !axes.empty(); });
    switch (buffer(index).kind()) {
      case plan::PARAMETER:
      case plan::OPTIMIZER_STATE:
        if (layout.IsPending()) refuse("is pending, but kept");
        break;
      case plan::GRADIENT:
      case plan::STEP_GRADIENT:
      case plan::ACCUMULATOR:
        if (!layout.max.empty()) refuse("is added to, but a pending maximum");
        return;
      case plan::INPUT:
        if (layout.IsPending()) refuse("is pending, but an input");
        break;
      case plan::SCALAR:
        if (cut || layout.IsPending()) refuse("is not the same on all ranks");
        break;
      case plan::OUTPUT:
        if (!layout.max.empty()) refuse("is read by the host, but a pending maximum");
        // Numbers are joined from pieces, of anything else a rank reads all of its samples.
        if (cut_within && !IsFloat(FromPlan(buffer(index).local()).dtype)) {
          refuse("is read by the host, but cut along another dimension than 0");
        }
        break;
      default:
        return;
    }
    if (layout.scale != 1) refuse("has another scale than 1");
  }

  void VerifyInstruction(const plan::Instruction& instruction) {
    switch (instruction.kind_case()) {
      case plan::Instruction::kLaunch:
        return instruction.launch().has_split() ? VerifySplit(instruction.launch())
                                                : VerifyWhole(instruction.launch());
      case plan::Instruction::kCollective:
        for (int i = 0; i < instruction.collective().operands_size(); ++i) {
          VerifyCollective(instruction.collective(), i);
        }
        return;
      case plan::Instruction::kSlice:
        return VerifySlice(instruction.slice());
      case plan::Instruction::kSend:
        return VerifyEnd(instruction.send().buffer(),
                         plan_.channels(instruction.send().channel()).source(), " sends ");
      case plan::Instruction::kReceive:
        return VerifyEnd(instruction.receive().buffer(),
                         plan_.channels(instruction.receive().channel()).target(), " receives ");
      default:
        return;  // a copy is checked where it is known what is copied
    }
  }

  // A launch of whole operands; zeros may stand for anything.
  void VerifyWhole(const plan::Launch& launch) {
    const bool fills = IsFill(launch), zero = IsZeroFill(launch);
    for (const int operand : launch.operands()) {
      if (!layouts_[operand].IsWhole() || layouts_[operand].scale != 1) {
        return Refuse(" reads ", Name(operand), ", but does not say how it splits");
      }
    }
    for (const int result : launch.results()) {
      if (zero) continue;
      const BufferLayout& layout = layouts_[result];
      if (layout.IsPending() || layout.scale != 1 || (!fills && !layout.IsWhole())) {
        return Refuse(" writes ", Name(result), ", but does not say how it splits");
      }
    }
  }

  // The axes that cut each factor of the rule; none if they are not right.
  std::optional<std::vector<AxisNames>> FactorAxes(const plan::Split& split,
                                                   const SplitRule& rule) {
    if (split.factors_size() > rule.factors_size()) {
      Refuse(" cuts ", split.factors_size(), " factors; its rule has ", rule.factors_size());
      return std::nullopt;
    }
    std::vector<AxisNames> result(rule.factors_size());
    std::map<std::string, std::vector<int>> cut_by;  // factors
    std::vector<int> parts;
    // Of two parts, each is cut by itself, where no result is a sum over both.
    const auto may_both = [&](int a, int b) {
      if (parts.empty()) parts = PartsOf(rule);
      return parts[a] != parts[b] && rule.factors(a).kind() == SplitRule::PARALLEL &&
             rule.factors(b).kind() == SplitRule::PARALLEL;
    };
    for (int i = 0; i < split.factors_size(); ++i) {
      for (const std::string& axis : split.factors(i).axes()) {
        if (!axes_.Has(axis)) {
          Refuse(" is cut by the axis '", axis, "', which the grid does not have");
          return std::nullopt;
        }
        std::vector<int>& others = cut_by[axis];
        if (!std::all_of(others.begin(), others.end(),
                         [&](int other) { return may_both(other, i); })) {
          Refuse(" is cut by the axis '", axis, "' twice");
          return std::nullopt;
        }
        others.push_back(i);
      }
      result[i] = axes_.Real(split.factors(i).axes());
      if (result[i].empty()) continue;
      if (rule.factors(i).kind() == SplitRule::WHOLE ||
          rule.factors(i).size() % axes_.SizeOf(result[i]) != 0) {
        Refuse(" cuts a factor of ", rule.factors(i).size(), " over ", Braces(result[i]));
        return std::nullopt;
      }
    }
    return result;
  }

  void VerifySplit(const plan::Launch& launch) {
    const plan::Split& split = launch.split();
    if (split.rule() < 0 || split.rule() >= plan_.rules_size()) {
      return Refuse(" names the rule ", split.rule(), " of ", plan_.rules_size());
    }
    if (!rules_[split.rule()]) return;
    const SplitRule& rule = plan_.rules(split.rule());
    if (rule.operands_size() != launch.operands_size() ||
        rule.results_size() != launch.results_size()) {
      return Refuse(" has ", launch.operands_size(), " operands and ", launch.results_size(),
                    " results, its rule ", rule.operands_size(), " and ", rule.results_size());
    }
    const auto factors = FactorAxes(split, rule);
    if (!factors) return;
    for (int i = 0; i < launch.operands_size(); ++i) {
      if (rule.operands(i).first()) {
        const auto& local = buffer(launch.operands(i)).local();
        if (local.dtype() != plan::I64 || local.shape_size() != 0) {
          Refuse(" takes ", Name(launch.operands(i)), " for the index of a piece");
        }
      } else if (!VerifyCuts(launch.operands(i), rule.operands(i), rule, *factors, " reads ")) {
        return;
      }
    }
    const auto passing = PassingAxes(launch, rule, *factors);
    const auto scale = ResultScale(launch, rule);
    if (!passing || !scale) return;
    std::vector<int> reduced;  // factors that are cut; few, where a launch has many results
    for (int f = 0; f < rule.factors_size(); ++f) {
      const SplitRule::Kind kind = rule.factors(f).kind();
      const bool is_reduced = kind == SplitRule::SUM || kind == SplitRule::MAX;
      if (is_reduced && !(*factors)[f].empty()) reduced.push_back(f);
    }
    for (int i = 0; i < launch.results_size(); ++i) {
      const int result = launch.results(i);
      if (!VerifyCuts(result, rule.results(i), rule, *factors, " writes ")) return;
      AxisNames sum = *passing, max;
      for (const int f : reduced) {
        if (Has(rule.results(i), f)) continue;
        AxisNames& pending = rule.factors(f).kind() == SplitRule::SUM ? sum : max;
        pending.insert(pending.end(), (*factors)[f].begin(), (*factors)[f].end());
      }
      std::sort(sum.begin(), sum.end());
      std::sort(max.begin(), max.end());
      const BufferLayout& layout = layouts_[result];
      if (layout.sum != sum || layout.max != max) {
        Refuse(" writes ", Name(result), ", but makes a sum over ", Braces(sum),
               max.empty() ? "" : absl::StrCat(" and a maximum over ", Braces(max)));
      } else if (layout.scale != *scale) {
        Refuse(" writes ", Name(result), ", but makes the scale ", *scale);
      }
    }
  }

  // Whether the tensor's dimensions are cut as the factors that they are made of.
  bool VerifyCuts(int index, const SplitRule::TensorDims& tensor, const SplitRule& rule,
                  const std::vector<AxisNames>& factors, const char* verb) {
    const BufferLayout& layout = layouts_[index];
    if (tensor.dims_size() > static_cast<int>(layout.global.size())) {
      Refuse(verb, Name(index), ", but its rule is for ", tensor.dims_size(), " dimensions");
      return false;
    }
    for (int dim = 0; dim < static_cast<int>(layout.global.size()); ++dim) {
      AxisNames expected;
      int64_t left = layout.global[dim];
      bool single = true;  // the factors so far are cut to single elements
      for (const int f : FactorsOf(tensor, dim)) {
        const int64_t size = rule.factors(f).size();
        if (size == 0 ? left != 0 : left % size != 0) {
          Refuse(verb, Name(index), ", whose dimension ", dim,
                 " is not made of the rule's factors");
          return false;
        }
        if (size != 0) left /= size;
        if (!single && !factors[f].empty()) {
          Refuse(" cuts an inner factor of dimension ", dim, " of ", Name(index));
          return false;
        }
        expected.insert(expected.end(), factors[f].begin(), factors[f].end());
        single = single && axes_.SizeOf(factors[f]) == size;
      }
      if (layout.dims[dim] != expected) {
        Refuse(verb, Name(index), ", whose dimension ", dim, " should be cut over ",
               Braces(expected));
        return false;
      }
    }
    return true;
  }

  // The axes on which pending sums pass through the launch: on each, the operands that are
  // pending are all those in which it is linear together, and nothing is cut. Where the launch
  // makes a sum of its own, all that it adds is pending, and nothing else.
  std::optional<AxisNames> PassingAxes(const plan::Launch& launch, const SplitRule& rule,
                                       const std::vector<AxisNames>& factors) {
    std::map<std::string, std::set<int>> pending;
    for (int i = 0; i < launch.operands_size(); ++i) {
      if (rule.operands(i).first()) continue;
      const BufferLayout& layout = layouts_[launch.operands(i)];
      if (!layout.max.empty()) {
        Refuse(" reads ", Name(launch.operands(i)), ", which is a pending maximum");
        return std::nullopt;
      }
      for (const std::string& axis : layout.sum) pending[axis].insert(i);
    }
    const std::set<int> added(rule.added().begin(), rule.added().end());
    for (int f = 0; f < rule.factors_size() && !added.empty(); ++f) {
      if (!IsSummed(rule, f)) continue;
      for (const std::string& axis : factors[f]) {
        const auto found = pending.find(axis);
        if (found == pending.end() || found->second != added) {
          Refuse(" makes a sum over {", axis, "}, but adds ", Name(launch.operands(*added.begin())),
                 " to it");
          return std::nullopt;
        }
        pending.erase(found);
      }
    }
    AxisNames passing;
    for (const auto& [axis, operands] : pending) {
      const bool cut = std::any_of(factors.begin(), factors.end(),
                                   [&name = axis](const auto& own) { return Contains(own, name); });
      if (cut || !IsLinear(rule, operands)) {
        Refuse(" reads ", Name(launch.operands(*operands.begin())), ", a pending sum over {", axis,
               "} that has to be reduced first");
        return std::nullopt;
      }
      passing.push_back(axis);
    }
    return passing;
  }

  static bool IsLinear(const SplitRule& rule, const std::set<int>& operands) {
    return std::any_of(rule.linear().begin(), rule.linear().end(), [&](const auto& group) {
      return std::set<int>(group.operands().begin(), group.operands().end()) == operands;
    });
  }

  // Where the operands of one linear group have a scale, the results have it too.
  std::optional<double> ResultScale(const plan::Launch& launch, const SplitRule& rule) {
    std::set<int> scaled;
    double scale = 1;
    for (int i = 0; i < launch.operands_size(); ++i) {
      const double own = layouts_[launch.operands(i)].scale;
      if (own == 1) continue;
      if (!scaled.empty() && own != scale) {
        Refuse(" reads ", Name(launch.operands(i)), " and another operand of the scale ", scale);
        return std::nullopt;
      }
      scaled.insert(i);
      scale = own;
    }
    if (!scaled.empty() && !IsLinear(rule, scaled)) {
      Refuse(" reads ", Name(launch.operands(*scaled.begin())), ", whose scale it does not keep");
      return std::nullopt;
    }
    return scale;
  }

  static void Cut(AxisNames& dim, const AxisNames& axes) {
    dim.insert(dim.end(), axes.begin(), axes.end());
  }
  // False if these are not the innermost pieces.
  static bool Join(AxisNames& dim, const AxisNames& axes) {
    if (dim.size() < axes.size() || !std::equal(axes.rbegin(), axes.rend(), dim.rbegin())) {
      return false;
    }
    dim.resize(dim.size() - axes.size());
    return true;
  }

  void VerifyCollective(const plan::Collective& collective, int index) {
    const int operand = collective.operands(index);
    BufferLayout layout = layouts_[operand];
    const AxisNames axes = axes_.Real(collective.axes());
    if (Reduces(collective.kind())) {
      const bool max = collective.reduction() == plan::Collective::MAX;
      AxisNames& pending = max ? layout.max : layout.sum;
      for (const std::string& axis : axes) {
        const auto found = std::find(pending.begin(), pending.end(), axis);
        if (found == pending.end()) {
          return Refuse(" reduces ", Name(operand), ", which is no pending ",
                        max ? "maximum" : "sum", " over {", axis, "}");
        }
        pending.erase(found);
      }
    }
    if (Joins(collective.kind()) && !Join(layout.dims[collective.concat_dims(index)], axes)) {
      return Refuse(" joins ", Name(operand), ", whose dimension ", collective.concat_dims(index),
                    " is not cut last over ", Braces(axes));
    }
    if (Cuts(collective.kind())) Cut(layout.dims[collective.split_dims(index)], axes);
    VerifyMade(collective.results(index), layout);
  }

  void VerifySlice(const plan::Slice& slice) {
    BufferLayout layout = layouts_[slice.source()];
    const AxisNames axes = axes_.Real(slice.axes());
    for (const std::string& axis : axes) {
      if (layout.Uses(axis)) {
        return Refuse(" takes pieces of ", Name(slice.source()), ", which is not the same on {",
                      axis, "}");
      }
    }
    Cut(layout.dims[slice.dim()], axes);
    VerifyMade(slice.target(), layout);
  }

  // What is sent or received lies over the grid as the channel says; nothing of that is pending.
  void VerifyEnd(int index, const plan::Sharding& sharding, const char* verb) {
    plan::Buffer expected = buffer(index);
    *expected.mutable_sharding() = sharding;
    expected.set_scale(layouts_[index].scale);
    const BufferLayout layout = LayoutOf(expected, axes_);
    if (layouts_[index] != layout) {
      Refuse(verb, Name(index), ", but its channel is for ", layout.ToString());
    }
  }

  void VerifyMade(int result, const BufferLayout& made) {
    if (layouts_[result] != made) Refuse(" writes ", Name(result), ", but makes ", made.ToString());
  }

  const plan::Plan& plan_;
  const int index_;
  const std::vector<bool>& rules_;  // which can be used
  const plan::Program& program_;
  const GridAxes axes_;
  const std::vector<BufferLayout> layouts_;
  Problems& problems_;
  int segment_ = 0;
  int instruction_ = 0;
};

// A channel does not change the scale.
void VerifyScales(const plan::Plan& plan, Problems& problems) {
  std::vector<double> sent(plan.channels_size(), 1), received(plan.channels_size(), 1);
  for (const auto& program : plan.programs()) {
    const auto scale = [&](int index) {
      const double own = program.buffers(index).scale();
      return own == 0 ? 1 : own;
    };
    for (const auto& segment : program.segments()) {
      for (const auto& each : segment.instructions()) {
        if (each.has_send()) sent[each.send().channel()] = scale(each.send().buffer());
        if (each.has_receive()) {
          received[each.receive().channel()] = scale(each.receive().buffer());
        }
      }
    }
  }
  for (int i = 0; i < plan.channels_size(); ++i) {
    if (sent[i] == received[i]) continue;
    problems.Add("channel '", plan.channels(i).name(), "' is sent at the scale ", sent[i],
                 " and received at the scale ", received[i]);
  }
}

}  // namespace

void VerifySharding(const plan::Plan& plan, Problems& problems) {
  std::vector<bool> rules;
  for (int i = 0; i < plan.rules_size(); ++i) {
    const std::string wrong = WhatIsWrong(plan.rules(i));
    if (!wrong.empty()) problems.Add("rule ", i, " ", wrong);
    rules.push_back(wrong.empty());
  }
  for (int i = 0; i < plan.programs_size(); ++i) {
    ShardingVerifier(plan, i, rules, problems).Verify();
  }
  VerifyScales(plan, problems);
}

}  // namespace oriel::runtime
