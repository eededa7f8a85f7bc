#include "runtime/launch/device.h"

#include <cstdlib>

#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

plan::Plan PlanFor(const std::string& kind) {
  PlanBuilder builder(1);
  builder.Parameter("w", {DType::kF32, {1 << 20}});
  if (!kind.empty()) builder.plan().mutable_device()->set_kind(kind);
  return builder.plan();
}

TEST(DeviceTest, PlanIsForTheDeviceThatWasAskedFor) {
  ORIEL_EXPECT_OK(CheckDevice(PlanFor(""), ""));
  ORIEL_EXPECT_OK(CheckDevice(PlanFor(""), "host"));
  ORIEL_EXPECT_OK(CheckDevice(PlanFor("cuda"), ""));
  ORIEL_EXPECT_OK(CheckDevice(PlanFor("cuda"), "cuda"));
  EXPECT_THAT(CheckDevice(PlanFor(""), "cuda"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the plan is compiled for the device host, but --device asks for cuda; "
                       "compile it again: oriel compile --device cuda"));
  EXPECT_THAT(CheckDevice(PlanFor("cuda"), "host"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("for the device cuda")));
}

TEST(DeviceTest, HostNeedsNoBackend) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Backend> device, OpenDevice(PlanFor(""), 0));
  EXPECT_EQ(device, nullptr);
}

TEST(DeviceTest, LocalRankComesFromTheLauncher) {
  for (const char* name :
       {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    unsetenv(name);
  }
  EXPECT_EQ(LocalRank(5), 5);
  setenv("SLURM_LOCALID", "2", 1);
  EXPECT_EQ(LocalRank(5), 2);
  setenv("LOCAL_RANK", "3", 1);
  EXPECT_EQ(LocalRank(5), 3);
  setenv("LOCAL_RANK", "none", 1);
  EXPECT_EQ(LocalRank(5), 2);
  unsetenv("LOCAL_RANK");
  unsetenv("SLURM_LOCALID");
}

TEST(DeviceTest, TooLittleMemoryIsToldWithWhatItIsFor) {
  const plan::Plan plan = PlanFor("");
  ORIEL_EXPECT_OK(CheckDeviceMemory(plan.programs(0), 4 << 20));
  EXPECT_THAT(CheckDeviceMemory(plan.programs(0), 3 << 20),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("needs 4.0 MiB of the device's memory, of which 3.0 MiB are "
                                       "free: 1.0 MiB too few"),
                             HasSubstr("4.0 MiB of parameters"), HasSubstr("--memory 3MiB"))));
}

TEST(DeviceTest, MemoryBesideThePlansIsTold) {
  const plan::Plan plan = PlanFor("");
  EXPECT_THAT(
      ExplainDeviceMemory(DeviceMemoryError("9 bytes of scratch"), plan.programs(0), 5 << 20),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("9 bytes of scratch. The device had 5.0 MiB free"),
                     HasSubstr("plan's own 4.0 MiB"), HasSubstr("4.0 MiB of parameters"))));
  for (const absl::Status& other :
       {absl::InternalError("broken"), absl::ResourceExhaustedError("the disk is full")}) {
    EXPECT_EQ(ExplainDeviceMemory(other, plan.programs(0), 0), other);
  }
}

}  // namespace
}  // namespace oriel::runtime
