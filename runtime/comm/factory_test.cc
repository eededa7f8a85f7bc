#include "runtime/comm/factory.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// Copies this test to a folder without the plugin and runs it there: the plugin is looked for
// beside the executable.
TEST(OpenMpiWorld, SaysWhatIsMissing) {
  namespace fs = std::filesystem;
  if (!fs::exists(fs::read_symlink("/proc/self/exe").parent_path() / "liboriel_comm_mpi.so")) {
    const auto world = oriel::runtime::OpenMpiWorld();
    EXPECT_EQ(world.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(world.status().message()),
                ::testing::AllOf(::testing::HasSubstr("liboriel_comm_mpi.so is missing"),
                                 ::testing::HasSubstr("--comm in_process")));
    return;
  }
  const fs::path folder = fs::path(::testing::TempDir()) / ("oriel_" + std::to_string(getpid()));
  fs::create_directories(folder);
  fs::copy_file(fs::read_symlink("/proc/self/exe"), folder / "test");
  const int result =
      std::system(("'" + (folder / "test").string() + "' --gtest_brief=1 >/dev/null").c_str());
  EXPECT_EQ(result, 0);
  fs::remove_all(folder);
}

}  // namespace
