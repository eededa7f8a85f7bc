// What the tests of damaged plans share: a plan that `oriel` compiled, and places in it.
#ifndef ORIEL_TESTS_DAMAGED_PLANS_DAMAGED_PLAN_TESTING_H_
#define ORIEL_TESTS_DAMAGED_PLANS_DAMAGED_PLAN_TESTING_H_

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/launch/program_testing.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/data_testing.h"

namespace oriel {

using Instructions = google::protobuf::RepeatedPtrField<plan::Instruction>;

// An instruction that the damage is done to.
struct Place {
  plan::Segment* segment = nullptr;
  int index = 0;

  Instructions& instructions() const { return *segment->mutable_instructions(); }
  plan::Instruction& instruction() const { return instructions()[index]; }
  std::string ToString() const {
    return "segment " + segment->name() + ", instruction " + std::to_string(index) + " (" +
           runtime::InstructionName(instruction()) + ")";
  }
  void Remove() const { instructions().DeleteSubrange(index, 1); }
  // Behind it.
  void Repeat() const {
    const plan::Instruction copy = instruction();
    *instructions().Add() = copy;
    for (int i = instructions().size() - 1; i > index + 1; --i)
      instructions().SwapElements(i, i - 1);
  }
};

inline Place Find(plan::Plan& plan, const std::string& segment,
                  const std::function<bool(const plan::Instruction&)>& is) {
  for (auto& program : *plan.mutable_programs()) {
    for (auto& candidate : *program.mutable_segments()) {
      if (candidate.name() != segment) continue;
      for (int i = 0; i < candidate.instructions_size(); ++i) {
        if (is(candidate.instructions(i))) return {&candidate, i};
      }
    }
  }
  throw std::runtime_error("the plan has no such instruction");
}

// A fixture with a plan that is compiled once for all its tests. Model::kName is a folder of
// models/, Model::Options() what `oriel compile` is told beside it.
template <typename Model>
class DamagedPlanTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new runtime::TempFolder();
    const std::string path = std::string(ORIEL_MODELS) + "/" + Model::kName;
    std::vector<std::string> command = {ORIEL_PROGRAM, "compile", path + "/model.onnx", "--recipe",
                                        path + "/golden/recipe_sgd.yaml"};
    for (const char* option : Model::Options()) command.emplace_back(option);
    command.insert(command.end(), {"-o", PlanPath()});
    runtime::TestProgram compile(command);
    ASSERT_EQ(compile.Wait(), 0) << compile.errors();
  }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override { ORIEL_ASSERT_OK_AND_ASSIGN(plan_, runtime::ReadPlan(PlanPath())); }

  // `oriel verify` takes the plan that was compiled.
  void ExpectTaken() {
    runtime::TestProgram verify({ORIEL_PROGRAM, "verify", PlanPath()});
    EXPECT_EQ(verify.Wait(), 0) << verify.errors();
  }

  // `oriel verify` refuses plan_ and says this.
  void ExpectRefused(const ::testing::Matcher<std::string>& message) {
    const std::string path = *folder_ / "damaged.oplan";
    ORIEL_ASSERT_OK(runtime::WritePlan(plan_, path));
    runtime::TestProgram verify({ORIEL_PROGRAM, "verify", path});
    EXPECT_NE(verify.Wait(), 0);
    EXPECT_THAT(verify.errors(), message);
  }

  plan::Plan plan_;

 private:
  static std::string PlanPath() { return *folder_ / "model.oplan"; }

  static inline runtime::TempFolder* folder_ = nullptr;
};

}  // namespace oriel

#endif  // ORIEL_TESTS_DAMAGED_PLANS_DAMAGED_PLAN_TESTING_H_
