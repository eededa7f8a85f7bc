#include "runtime/comm/tcp/environment.h"

#include <map>
#include <string>

#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

GetVariable In(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

// What torchrun sets with a master of one's own.
Variables Torchrun() {
  return {{"MASTER_ADDR", "node-0"},
          {"MASTER_PORT", "29500"},
          {"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"TORCHELASTIC_RUN_ID", "job7"},
          {"TORCHELASTIC_RESTART_COUNT", "2"}};
}

absl::StatusOr<LaunchEnvironment> Read(const Variables& variables) {
  return ReadLaunchEnvironment(In(variables));
}

TEST(LaunchEnvironment, OfTorchrun) {
  EXPECT_TRUE(HasLaunchEnvironment(In(Torchrun())));
  ORIEL_ASSERT_OK_AND_ASSIGN(const LaunchEnvironment environment, Read(Torchrun()));
  EXPECT_EQ(environment.master_address, "node-0");
  EXPECT_EQ(environment.master_port, 29500);
  EXPECT_EQ(environment.rank, 5);
  EXPECT_EQ(environment.world_size, 8);
  EXPECT_EQ(environment.local_rank, 1);
  EXPECT_EQ(environment.local_world_size, 4);
  EXPECT_EQ(environment.job, "job7/2");
  EXPECT_EQ(environment.timeout, std::chrono::seconds(300));
}

// Kubernetes operators start a process per pod, and say nothing of ranks within one.
TEST(LaunchEnvironment, WithoutLocalRanks) {
  const Variables variables = {
      {"MASTER_ADDR", "m"}, {"MASTER_PORT", "1"}, {"RANK", "3"}, {"WORLD_SIZE", "4"}};
  ORIEL_ASSERT_OK_AND_ASSIGN(const LaunchEnvironment environment, Read(variables));
  EXPECT_EQ(environment.local_rank, 0);
  EXPECT_EQ(environment.local_world_size, std::nullopt);
  Variables here = variables;
  here["LOCAL_WORLD_SIZE"] = "4";
  EXPECT_EQ(Read(here)->local_rank, 3);
}

TEST(LaunchEnvironment, TheAgentsPortIsTaken) {
  Variables variables = Torchrun();
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(Read(variables)->master_port, 29501);
  variables["ORIEL_MASTER_PORT"] = "4000";
  EXPECT_EQ(Read(variables)->master_port, 4000);
  variables.erase("ORIEL_MASTER_PORT");
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(Read(variables)->master_port, 29500);
}

TEST(LaunchEnvironment, NamesAllThatIsMissing) {
  EXPECT_FALSE(HasLaunchEnvironment(In({{"RANK", "1"}, {"WORLD_SIZE", ""}})));
  EXPECT_THAT(Read({{"RANK", "1"}, {"MASTER_PORT", ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("MASTER_ADDR, MASTER_PORT, WORLD_SIZE are not set; torchrun")));
}

// Each process would run the whole job, and all of them write the same files.
TEST(LaunchEnvironment, IsWholeOrNotThere) {
  auto check = [](const Variables& variables) {
    return CheckNoPartOfLaunchEnvironment(In(variables));
  };
  ORIEL_EXPECT_OK(check({}));
  ORIEL_EXPECT_OK(check(Torchrun()));
  ORIEL_EXPECT_OK(check({{"WORLD_SIZE", "1"}}));
  EXPECT_THAT(std::string(check({{"WORLD_SIZE", "4"}}).message()),
              HasSubstr("WORLD_SIZE=4 is set and RANK is not"));
  EXPECT_THAT(std::string(check({{"RANK", "0"}}).message()),
              HasSubstr("RANK=0 is set and WORLD_SIZE is not"));
}

TEST(LaunchEnvironment, RefusesWhatMakesNoSense) {
  const auto refused = [](const char* name, const char* value, const char* why) {
    Variables variables = Torchrun();
    variables[name] = value;
    EXPECT_THAT(Read(variables), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused("RANK", "8", "RANK=8 contradicts WORLD_SIZE=8");
  refused("RANK", "-1", "RANK is '-1', which is no number from 0 to");
  refused("RANK", "two", "RANK is 'two', which is no number");
  refused("WORLD_SIZE", "0", "WORLD_SIZE is '0', which is no number from 1 to");
  refused("WORLD_SIZE", "3", "RANK=5 contradicts WORLD_SIZE=3");
  refused("LOCAL_WORLD_SIZE", "16", "LOCAL_WORLD_SIZE=16 contradicts WORLD_SIZE=8");
  refused("LOCAL_RANK", "4", "LOCAL_RANK=4 contradicts LOCAL_WORLD_SIZE=4");
  refused("MASTER_PORT", "70000", "MASTER_PORT is '70000', which is no number from 1 to 65535");
  refused("ORIEL_RENDEZVOUS_TIMEOUT", "soon", "ORIEL_RENDEZVOUS_TIMEOUT is 'soon'");
}

}  // namespace
}  // namespace oriel::runtime
