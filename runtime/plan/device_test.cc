#include "runtime/plan/device.h"

#include <algorithm>

#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

TEST(DeviceTest, TextsOfDevices) {
  for (const char* text : {"host", "cuda", "cuda:sm_90", "cuda:sm_80,sm_90a,sm_100"}) {
    ORIEL_ASSERT_OK_AND_ASSIGN(const plan::Device device, ParseDevice(text));
    EXPECT_EQ(DeviceText(device), text);
  }
  for (const char* text : {"", "gpu", "cpu", "host:sm_90", "cuda:", "cuda:90", "cuda:sm_9",
                           "cuda:sm_90,", "cuda:sm_90,compute_80", "cuda :sm_90"}) {
    EXPECT_THAT(ParseDevice(text).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cuda:sm_90,sm_100")))
        << text;
  }
}

TEST(DeviceTest, PlanWithoutADeviceIsTheHosts) {
  plan::Plan plan;
  EXPECT_EQ(DeviceKind(plan), "host");
  EXPECT_EQ(DeviceText(plan.device()), "host");
  plan.mutable_device()->set_kind("cuda");
  EXPECT_EQ(DeviceKind(plan), "cuda");
}

TEST(DeviceTest, ArchitecturesThatRunAPlan) {
  ORIEL_ASSERT_OK_AND_ASSIGN(plan::Device device, ParseDevice("cuda"));
  EXPECT_TRUE(RunsOn(device, "sm_90"));
  ORIEL_ASSERT_OK_AND_ASSIGN(device, ParseDevice("cuda:sm_80,sm_100"));
  EXPECT_TRUE(RunsOn(device, "sm_100"));
  EXPECT_FALSE(RunsOn(device, "sm_90"));
  device.clear_architectures();
  device.add_architectures("sm_90a");  // of which nothing is used that is not there elsewhere
  EXPECT_TRUE(RunsOn(device, "sm_90"));
  EXPECT_FALSE(RunsOn(device, "sm_100"));
}

TEST(DeviceTest, KernelsAreSorted) {
  EXPECT_TRUE(std::is_sorted(CudaKernels().begin(), CudaKernels().end()));
  EXPECT_EQ(std::adjacent_find(CudaKernels().begin(), CudaKernels().end()), CudaKernels().end());
}

TEST(DeviceTest, UnknownDeviceIsNotVerified) {
  PlanBuilder builder(1);
  builder.plan().mutable_device()->set_kind("abacus");
  EXPECT_THAT(VerifyPlan(builder.plan()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the plan is for the device 'abacus'")));
}

}  // namespace
}  // namespace oriel::runtime
