#include "ir/oriel/segment.h"

#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"

namespace oriel::ir {
namespace {

class SegmentTest : public testing::Test {
 protected:
  SegmentTest() { context_.loadDialect<mlir::func::FuncDialect>(); }

  mlir::func::FuncOp Parse(llvm::StringRef text) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    return *module_->getOps<mlir::func::FuncOp>().begin();
  }

  // The one diagnostic of a refused role.
  std::string MessageOf(llvm::StringRef argumentAttributes) {
    std::string message;
    mlir::ScopedDiagnosticHandler handler(&context_, [&](mlir::Diagnostic& diagnostic) {
      message += diagnostic.str();
      return mlir::success();
    });
    std::string text = "func.func private @forward(tensor<f32> {" + argumentAttributes.str() + "})";
    EXPECT_TRUE(failed(argumentRole(Parse(text), 0)));
    return message;
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(SegmentTest, EveryKindRoundTrips) {
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kOptimizerState, ValueKind::kGradient,
                         ValueKind::kAccumulator, ValueKind::kInput, ValueKind::kScalar,
                         ValueKind::kStash, ValueKind::kOutput}) {
    auto segment = Parse("func.func private @forward(tensor<f32>) -> tensor<f32>");
    ValueRole role{kind, "name", kind == ValueKind::kOptimizerState ? "exp_avg" : ""};
    setArgumentRoles(segment, role);
    setResultRoles(segment, role);
    auto argument = argumentRole(segment, 0);
    auto result = resultRole(segment, 0);
    ASSERT_TRUE(succeeded(argument) && succeeded(result)) << stringifyValueKind(kind).str();
    EXPECT_TRUE(*argument == role && *result == role) << stringifyValueKind(kind).str();
  }
}

TEST_F(SegmentTest, ANewRoleReplacesTheOldOneAndKeepsOtherAttributes) {
  auto segment = Parse("func.func private @update(tensor<f32> {other.note = 1 : i64})");
  setArgumentRoles(segment, ValueRole{ValueKind::kOptimizerState, "p0", "exp_avg"});
  setArgumentRoles(segment, ValueRole{ValueKind::kGradient, "p0", ""});
  auto role = argumentRole(segment, 0);
  ASSERT_TRUE(succeeded(role));
  EXPECT_TRUE((*role == ValueRole{ValueKind::kGradient, "p0", ""}));
  EXPECT_TRUE(segment.getArgAttr(0, "other.note"));
}

TEST_F(SegmentTest, RefusesAMissingRole) {
  EXPECT_EQ(MessageOf(""), "argument 0 of @forward lacks the string attribute oriel.kind");
}

TEST_F(SegmentTest, RefusesAnUnknownKind) {
  EXPECT_EQ(MessageOf(R"(oriel.kind = "weight", oriel.ref = "p0")"),
            "argument 0 of @forward has the unknown oriel.kind \"weight\", known are parameter "
            "optimizer_state gradient accumulator input scalar stash output");
}

TEST_F(SegmentTest, RefusesARoleWithoutName) {
  EXPECT_EQ(MessageOf(R"(oriel.kind = "stash")"),
            "argument 0 of @forward lacks the string attribute oriel.ref");
}

TEST_F(SegmentTest, RefusesAnOptimizerStateWithoutSlot) {
  EXPECT_EQ(MessageOf(R"(oriel.kind = "optimizer_state", oriel.ref = "p0")"),
            "argument 0 of @forward of kind \"optimizer_state\" lacks the string attribute "
            "oriel.slot, which optimizer states have and nothing else");
}

TEST_F(SegmentTest, RefusesASlotElsewhere) {
  EXPECT_EQ(MessageOf(R"(oriel.kind = "stash", oriel.ref = "s0", oriel.slot = "exp_avg")"),
            "argument 0 of @forward of kind \"stash\" has the string attribute oriel.slot, "
            "which optimizer states have and nothing else");
}

}  // namespace
}  // namespace oriel::ir
