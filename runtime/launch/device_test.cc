#include "runtime/launch/device.h"

#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder.h"

namespace oriel::runtime {
namespace {

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

TEST(DeviceTest, HostIsThere) { ORIEL_EXPECT_OK(FindDevice(PlanFor(""))); }

}  // namespace
}  // namespace oriel::runtime
