#include "runtime/plan/verify.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {

absl::Status Problems::ToStatus() const {
  if (empty()) return absl::OkStatus();
  if (messages_.size() == 1) {
    return absl::InvalidArgumentError(absl::StrCat("the plan is not valid: ", messages_[0]));
  }
  const size_t shown = std::min(messages_.size(), kMax);
  std::string text =
      absl::StrCat("the plan is not valid:\n  ",
                   absl::StrJoin(messages_.begin(), messages_.begin() + shown, "\n  "));
  if (full()) absl::StrAppend(&text, "\n  and more");
  return absl::InvalidArgumentError(text);
}

std::string InstructionPath(const plan::Plan& plan, int program, int segment, int instruction) {
  const plan::Segment& the_segment = plan.programs(program).segments(segment);
  const plan::Instruction& the_instruction = the_segment.instructions(instruction);
  return absl::StrCat("program ", program, ", segment ", the_segment.name(), ", instruction ",
                      instruction, " (", InstructionName(the_instruction), ")");
}

std::string BufferName(const plan::Buffer& buffer) {
  std::string name = absl::StrCat(KindName(buffer.kind()), " '",
                                  buffer.ref().empty() ? buffer.name() : buffer.ref(), "'");
  if (!buffer.slot().empty()) absl::StrAppend(&name, " ", buffer.slot());
  return name;
}

bool IsFill(const plan::Launch& launch) {
  return launch.kernel() == "fill" && launch.operands().empty();
}

bool IsZeroFill(const plan::Launch& launch) {
  if (!IsFill(launch)) return false;
  const auto value = launch.attributes().find("value");
  return value != launch.attributes().end() && value->second.value_case() == plan::Attribute::kF &&
         value->second.f() == 0;
}

const plan::Grid* GridOf(const plan::Plan& plan, const plan::Program& program) {
  for (const auto& grid : plan.grids()) {
    const GridLayout layout(grid);
    if (layout.Contains(program.first_rank()) &&
        layout.Contains(program.first_rank() + program.rank_count() - 1)) {
      return &grid;
    }
  }
  return nullptr;
}

absl::Status VerifyPlan(const plan::Plan& plan) {
  Problems problems;
  VerifyTables(plan, problems);
  if (problems.empty()) VerifyPrograms(plan, problems);
  if (problems.empty()) {
    VerifyTransfers(plan, problems);
    std::vector<UpdateValues> values;
    for (int program = 0; program < plan.programs_size(); ++program) {
      values.push_back(VerifyMemory(plan, program, problems));
      VerifyTraining(plan, program, problems);
    }
    VerifyTiedParameters(plan, values, problems);
    VerifySharding(plan, problems);
    VerifyCollectives(plan, problems);
  }
  return problems.ToStatus();
}

}  // namespace oriel::runtime
