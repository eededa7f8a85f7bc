// Who may write what persists, and that parameters of several grids stay the same.
#include <algorithm>
#include <map>

#include "runtime/plan/access.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

class TrainingVerifier {
 public:
  TrainingVerifier(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan), index_(index), program_(plan.programs(index)), problems_(problems) {
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
  }

 private:
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
        } else if (name != kUpdateSegment) {
          refuse("which only update may");
        } else {
          ++parameter_writes_[index];
        }
        break;
      case plan::OPTIMIZER_STATE:
        if (name != kUpdateSegment) refuse("which only update may");
        break;
      case plan::GRADIENT:
      case plan::STEP_GRADIENT:
      case plan::ACCUMULATOR:
        if (SegmentKind(name) == "eval") refuse("which eval may not");
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

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  Problems& problems_;
  std::map<std::string, const plan::Parameter*> parameters_;
  std::map<int, int> owners_;
  std::map<int, int> parameter_writes_;
};

}  // namespace

void VerifyTraining(const plan::Plan& plan, int program, Problems& problems) {
  TrainingVerifier(plan, program, problems).Verify();
}

// Where a trainable parameter is kept on several grids, the others get from its home the value that
// it has there.
void VerifyTiedParameters(const plan::Plan& plan, const std::vector<UpdateValues>& values,
                          Problems& problems) {
  std::vector<int> program_of_grid(plan.grids_size(), -1);
  for (int i = 0; i < plan.programs_size(); ++i) {
    program_of_grid[GridIndexOf(plan, plan.programs(i).first_rank())] = i;
  }
  for (const auto& parameter : plan.parameters()) {
    if (!parameter.trainable()) continue;
    const int home = parameter.placements(0).grid();
    const auto& at_home = values[program_of_grid[home]];
    const auto stepped = at_home.written.find(parameter.name());
    for (const auto& placement : parameter.placements()) {
      if (IsHome(parameter, placement.grid())) continue;
      const int program = program_of_grid[placement.grid()];
      const auto refuse = [&](const auto&... what) {
        problems.Add("program ", program, ", segment update: parameter '", parameter.name(), "' ",
                     what...);
      };
      const auto written = values[program].written.find(parameter.name());
      if (written == values[program].written.end()) continue;  // has been reported
      const auto received = values[program].received.find(written->second);
      if (received == values[program].received.end()) {
        refuse("does not become what grid ", home, ", which steps it, sends");
        continue;
      }
      const plan::Channel& channel = plan.channels(received->second);
      const auto sent = at_home.sent.find(received->second);
      if (stepped == at_home.written.end() || sent == at_home.sent.end() ||
          sent->second != stepped->second) {
        refuse("becomes what arrives over the channel '", channel.name(),
               "', which is not the new value that it has on grid ", home);
      }
    }
  }
}

}  // namespace oriel::runtime
