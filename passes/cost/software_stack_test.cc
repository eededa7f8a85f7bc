#include "passes/cost/software_stack.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

TEST(SoftwareStackTest, ReadsWhatIsGiven) {
  auto stack = parseSoftwareStack({"kernel_overhead=6us", "overlap=0.5"});
  ASSERT_TRUE(stack.ok()) << stack.status();
  EXPECT_DOUBLE_EQ(stack->kernelOverhead, 6e-6);
  EXPECT_DOUBLE_EQ(stack->overlap, 0.5);
  EXPECT_DOUBLE_EQ(stack->pointwise, 1);
  EXPECT_DOUBLE_EQ(stack->attention, 1);
  EXPECT_DOUBLE_EQ(parseSoftwareStack({"attention=1.5"})->attention, 1.5);
}

TEST(SoftwareStackTest, ReadsWhereMemoryComesFrom) {
  auto stack = parseSoftwareStack({"step_gradients=flat", "allocator=caching",
                                   "microbatch_gradients=kept", "stage_outputs=kept"});
  ASSERT_TRUE(stack.ok()) << stack.status();
  EXPECT_TRUE(stack->memory.isCached);
  EXPECT_EQ(stack->memory.stepGradients, StepGradients::kFlat);
  EXPECT_TRUE(stack->memory.keepsGradients);
  EXPECT_TRUE(stack->memory.keepsOutputs);
  EXPECT_EQ(parseSoftwareStack({"allocator=arena"})->memory, SoftwareMemory());
}

TEST(SoftwareStackTest, SaysWhatCanNotBeUsed) {
  auto message = [](std::vector<std::string> values) {
    return std::string(parseSoftwareStack(values).status().message());
  };
  EXPECT_EQ(message({"overlap=1.5"}), "can't use 'overlap=1.5': give a number from 0 to 1");
  EXPECT_EQ(message({"overlap=nan"}), "can't use 'overlap=nan': give a number from 0 to 1");
  EXPECT_EQ(message({"kernel_overhead=6"}),
            "can't use 'kernel_overhead=6': give a time with its unit, e.g. 6us or 10ms");
  EXPECT_EQ(message({"kernel_overhead=-1s"}),
            "can't use 'kernel_overhead=-1s': give a time with its unit, e.g. 6us or 10ms");
  EXPECT_THAT(message({"overlp=1"}), testing::HasSubstr("overlap"));
  EXPECT_EQ(message({"allocator=cached"}), "can't use 'allocator=cached': give arena or caching");
  EXPECT_EQ(message({"allocator=caching", "step_gradients=copy"}),
            "can't use 'step_gradients=copy': give accumulated, copied or flat");
  EXPECT_EQ(message({"stage_outputs=kept"}),
            "can't use 'stage_outputs=kept': it is told of software with an allocator; give "
            "allocator=caching too");
  EXPECT_EQ(message({"overlap=1", "overlap=0"}), "can't use 'overlap=0': it is there twice");
}

}  // namespace
}  // namespace oriel
