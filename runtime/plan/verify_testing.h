// What the tests of the verifier share: a good plan's parts, and plans that are damaged.
#ifndef ORIEL_RUNTIME_PLAN_VERIFY_TESTING_H_
#define ORIEL_RUNTIME_PLAN_VERIFY_TESTING_H_

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {

// Buffers of SmallTrainingPlan, in its order.
enum { kW, kDw, kLoss, kX, kRate, kHalf, kH, kSquares, kProduct, kOut, kPredictions };
enum { kBatchLoss = kPredictions + 1, kBatchDw, kReducedDw, kReducedLoss, kBuffers };
enum { kForward, kBackward, kUpdate, kEval };

inline plan::Program& Program(plan::Plan& plan) { return *plan.mutable_programs(0); }
inline plan::Buffer& Buffer(plan::Plan& plan, int index) {
  return *Program(plan).mutable_buffers(index);
}
inline plan::Instruction& Instruction(plan::Plan& plan, int segment, int index) {
  return *Program(plan).mutable_segments(segment)->mutable_instructions(index);
}
inline plan::Launch& Launch(plan::Plan& plan, int segment, int index) {
  return *Instruction(plan, segment, index).mutable_launch();
}
inline plan::Launch& AddLaunch(plan::Plan& plan, int segment, const std::vector<int>& operands,
                               const std::vector<int>& results) {
  auto* launch = Program(plan).mutable_segments(segment)->add_instructions()->mutable_launch();
  launch->set_kernel("test_added");
  launch->mutable_operands()->Add(operands.begin(), operands.end());
  launch->mutable_results()->Add(results.begin(), results.end());
  return *launch;
}
inline void RemoveInstruction(plan::Plan& plan, int segment, int index) {
  Program(plan).mutable_segments(segment)->mutable_instructions()->DeleteSubrange(index, 1);
}

// One program for each of the two ranks.
inline void Split(plan::Plan& plan) {
  Program(plan).set_rank_count(1);
  *plan.add_programs() = plan.programs(0);
  plan.mutable_programs(1)->set_first_rank(1);
}

// A change to a good plan, and what the verifier says about it.
struct BadPlan {
  const char* name;
  std::function<void(plan::Plan&)> damage;
  const char* message;
};

inline void PrintTo(const BadPlan& bad, std::ostream* out) { *out << bad.name; }
inline std::string NameOf(const ::testing::TestParamInfo<BadPlan>& info) { return info.param.name; }

inline void ExpectRefused(plan::Plan plan, const BadPlan& bad) {
  bad.damage(plan);
  EXPECT_THAT(VerifyPlan(plan),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr(bad.message)));
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_VERIFY_TESTING_H_
