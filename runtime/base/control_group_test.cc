#include "runtime/base/control_group.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "runtime/base/cores.h"

namespace oriel::runtime {
namespace {

// A machine's files.
class ControlGroupTest : public ::testing::Test {
 protected:
  ControlGroupTest()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
  }
  ~ControlGroupTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::optional<double> Cpu() const { return CpuQuota(root_.string()); }
  std::optional<int64_t> Memory() const { return MemoryQuota(root_.string()); }

 private:
  std::filesystem::path root_;
};

TEST_F(ControlGroupTest, WithoutFilesNothingIsLimited) {
  EXPECT_FALSE(Cpu());
  EXPECT_FALSE(Memory());
}

// A container sees its group as the root of all.
TEST_F(ControlGroupTest, AContainersGroup) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  Write("sys/fs/cgroup/memory.max", "4294967296\n");
  EXPECT_EQ(Cpu(), 1.5);
  EXPECT_EQ(Memory(), int64_t{4} << 30);
}

TEST_F(ControlGroupTest, NoLimit) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_FALSE(Cpu());
  EXPECT_FALSE(Memory());
}

TEST_F(ControlGroupTest, TheLeastOfAGroupAndThoseAround) {
  Write("proc/self/cgroup", "0::/user.slice/job.scope/step\n");
  Write("sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n");
  Write("sys/fs/cgroup/user.slice/job.scope/cpu.max", "100000 50000\n");
  Write("sys/fs/cgroup/user.slice/job.scope/step/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/user.slice/memory.max", "1000\n");
  Write("sys/fs/cgroup/user.slice/job.scope/step/memory.max", "2000\n");
  Write("sys/fs/cgroup/other.slice/cpu.max", "10000 100000\n");
  EXPECT_EQ(Cpu(), 2);
  EXPECT_EQ(Memory(), 1000);
}

TEST_F(ControlGroupTest, VersionOne) {
  Write("proc/self/cgroup", "5:memory:/docker/abc\n4:cpuacct,cpu:/docker/abc\n0::/system.slice\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(Cpu());
  EXPECT_EQ(Memory(), 9223372036854771712);
  Write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "300000\n");
  Write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "4294967296\n");
  EXPECT_EQ(Cpu(), 3);
  EXPECT_EQ(Memory(), int64_t{4} << 30);
}

// The path of the group is the host's, and its files are where the container's groups begin.
TEST_F(ControlGroupTest, APathThatIsNotThere) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cpu(), 0.5);
}

TEST_F(ControlGroupTest, OtherTextsSayNothing) {
  for (const char* text : {"", "\n", "100000\n", "0 100000\n", "100000 0\n", "-5 100000\n", "a b\n",
                           "100000 100000 100000\n"}) {
    Write("sys/fs/cgroup/cpu.max", text);
    EXPECT_FALSE(Cpu()) << text;
  }
  for (const char* text : {"", "\n", "0\n", "-1\n", "4 GiB\n", "99999999999999999999\n"}) {
    Write("sys/fs/cgroup/memory.max", text);
    EXPECT_FALSE(Memory()) << text;
  }
  for (const char* group : {"", "0::\n", "0::..\n", "::\n", "4:cpu\n"}) {
    Write("proc/self/cgroup", group);
    EXPECT_FALSE(Cpu()) << group;
  }
}

TEST(CoresTest, WholeOnesOfTheQuota) {
  EXPECT_EQ(CoresOfQuota(8, std::nullopt), 8);
  EXPECT_EQ(CoresOfQuota(8, 16.0), 8);
  EXPECT_EQ(CoresOfQuota(8, 2.0), 2);
  EXPECT_EQ(CoresOfQuota(8, 2.9), 2);
}

TEST(CoresTest, AtLeastOne) {
  EXPECT_EQ(CoresOfQuota(8, 0.1), 1);
  EXPECT_EQ(CoresOfQuota(0, std::nullopt), 1);
  EXPECT_GE(UsableCores(), 1);
}

}  // namespace
}  // namespace oriel::runtime
