// Who may write what persists, and that sums over microbatches become sums over ranks.
#include <algorithm>
#include <map>

#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

// Those of more than one rank.
std::set<std::string> RealAxes(const plan::Grid& grid,
                               const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::set<std::string> axes(names.begin(), names.end());
  for (const auto& axis : grid.axes()) {
    if (axis.size() == 1) axes.erase(axis.name());
  }
  return axes;
}

class TrainingVerifier {
 public:
  TrainingVerifier(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan),
        index_(index),
        program_(plan.programs(index)),
        grid_(*GridOf(plan, program_)),
        problems_(problems) {
    for (const auto& parameter : plan.parameters()) parameters_[parameter.name()] = &parameter;
    // A view of what persists stands for it.
    std::map<std::pair<int64_t, int64_t>, int> by_range;
    for (const bool persistent : {true, false}) {
      for (int i = 0; i < program_.buffers_size(); ++i) {
        const auto& buffer = program_.buffers(i);
        if (IsPersistent(buffer.kind()) != persistent) continue;
        const std::pair range(buffer.offset(), *CheckedBytes(buffer.local()));
        if (persistent && range.second > 0) by_range.emplace(range, i);
        if (persistent) continue;
        if (const auto found = by_range.find(range); found != by_range.end()) {
          owners_[i] = found->second;
        }
      }
    }
  }

  void Verify() {
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      for (int i = 0; i < program_.segments(segment).instructions_size(); ++i) {
        const Access access = AccessOf(program_.segments(segment).instructions(i));
        for (const int write : access.writes) VerifyWrite(Owner(write), segment, i);
      }
    }
    for (int i = 0; i < program_.buffers_size(); ++i) {
      const auto& buffer = program_.buffers(i);
      if (buffer.kind() == plan::PARAMETER && IsTrainable(buffer) && parameter_writes_[i] != 1 &&
          *CheckedBytes(buffer.local()) > 0) {
        problems_.Add("program ", index_, ": update writes ", BufferName(buffer), " ",
                      parameter_writes_[i], " times, not once");
      }
    }
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      if (program_.segments(segment).name() == "update") VerifySums(segment);
    }
  }

 private:
  // How far `update` has come with a gradient or accumulator.
  struct Sum {
    std::set<std::string> axes;  // over which its buffer is still a pending sum
    bool used = false;
    bool reduced = false;
    bool reset = false;
  };

  int Owner(int buffer) const {
    const auto found = owners_.find(buffer);
    return found == owners_.end() ? buffer : found->second;
  }

  bool IsTrainable(const plan::Buffer& buffer) const {
    const auto found = parameters_.find(buffer.ref());
    return found != parameters_.end() && found->second->trainable();
  }

  void VerifyWrite(int index, int segment, int instruction) {
    const auto& buffer = program_.buffers(index);
    const std::string& name = program_.segments(segment).name();
    const auto refuse = [&](const char* why) {
      problems_.Add(InstructionPath(plan_, index_, segment, instruction), " writes ",
                    BufferName(buffer), ", ", why);
    };
    switch (buffer.kind()) {
      case plan::PARAMETER:
        if (!IsTrainable(buffer)) {
          refuse("which is frozen");
        } else if (name != "update") {
          refuse("which only update may");
        } else {
          ++parameter_writes_[index];
        }
        break;
      case plan::OPTIMIZER_STATE:
        if (name != "update") refuse("which only update may");
        break;
      case plan::GRADIENT:
      case plan::ACCUMULATOR:
        if (name == "eval") refuse("which eval may not");
        break;
      case plan::INPUT:
      case plan::SCALAR:
        refuse("which the host fills");
        break;
      case plan::CONSTANT:
        refuse("which does not change");
        break;
      default:
        break;
    }
  }

  // Gradients and accumulators in update: summed over the ranks where they are pending sums, then
  // used, then reset.
  void VerifySums(int segment) {
    std::map<int, Sum> sums;
    for (int i = 0; i < program_.buffers_size(); ++i) {
      const auto& buffer = program_.buffers(i);
      if (*CheckedBytes(buffer.local()) == 0) continue;
      if (buffer.kind() == plan::GRADIENT || buffer.kind() == plan::ACCUMULATOR) {
        sums[i].axes = RealAxes(grid_, buffer.sharding().partial());
      }
    }
    const auto& instructions = program_.segments(segment).instructions();
    for (int i = 0; i < instructions.size(); ++i) {
      const auto path = [&] { return InstructionPath(plan_, index_, segment, i); };
      const bool reduces = Reduces(instructions[i].collective().kind());
      const Access access = AccessOf(instructions[i]);
      for (size_t k = 0; k < access.reads.size(); ++k) {
        const int owner = Owner(access.reads[k]);
        const auto found = sums.find(owner);
        if (found == sums.end()) continue;
        if (reduces) {
          Reduce(instructions[i].collective(), owner, Owner(access.writes[k]), found->second,
                 path());
        } else {
          Use(owner, found->second, path());
        }
      }
      if (reduces) continue;
      for (const int write : access.writes) {
        const auto found = sums.find(Owner(write));
        if (found != sums.end()) found->second.reset = true;
      }
    }
    for (const auto& [index, sum] : sums) {
      const std::string name = BufferName(program_.buffers(index));
      const bool gradient = program_.buffers(index).kind() == plan::GRADIENT;
      if (gradient && !sum.axes.empty() && !sum.reduced) {
        problems_.Add("program ", index_, ": update does not sum ", name, " over the ranks");
      }
      if ((gradient || sum.used || sum.reduced) && !sum.reset) {
        problems_.Add("program ", index_, ": update does not reset ", name);
      }
    }
  }

  void Reduce(const plan::Collective& collective, int owner, int target, Sum& sum,
              const std::string& path) {
    const std::string name = BufferName(program_.buffers(owner));
    const std::set<std::string> axes = RealAxes(grid_, collective.axes());
    if (!std::includes(sum.axes.begin(), sum.axes.end(), axes.begin(), axes.end())) {
      problems_.Add(path, " reduces ", name, " over axes on which it is no pending sum");
    } else if (collective.reduction() != plan::Collective::SUM) {
      problems_.Add(path, " does not sum ", name);
    } else if (sum.reset) {
      problems_.Add(path, " reduces ", name, " after its reset");
    }
    sum.reduced = true;
    if (owner != target) return;
    for (const std::string& axis : axes) sum.axes.erase(axis);
  }

  void Use(int owner, Sum& sum, const std::string& path) {
    sum.used = true;
    if (sum.axes.empty() || sum.reset) return;
    const std::string name = BufferName(program_.buffers(owner));
    problems_.Add(path, " reads ", name, ", which is still a sum over ranks");
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  const plan::Grid& grid_;
  Problems& problems_;
  std::map<std::string, const plan::Parameter*> parameters_;
  std::map<int, int> owners_;
  std::map<int, int> parameter_writes_;
};

}  // namespace

void VerifyTraining(const plan::Plan& plan, int program, Problems& problems) {
  TrainingVerifier(plan, program, problems).Verify();
}

}  // namespace oriel::runtime
