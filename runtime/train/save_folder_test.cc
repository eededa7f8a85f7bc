#include "runtime/train/save_folder.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "runtime/base/files.h"
#include "runtime/base/status_testing.h"
#include "runtime/train/data_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SaveFolderTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SaveFolder>> Take(std::chrono::milliseconds patience) {
    return SaveFolder::Take(
        path_, patience, [this](const std::string& text) { said_.push_back(text); },
        [this] { return stops_; });
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "checkpoints";
  std::vector<std::string> said_;
  bool stops_ = false;
};

TEST_F(SaveFolderTest, IsOfOneRun) {
  {
    ORIEL_ASSERT_OK_AND_ASSIGN(const auto folder, Take(std::chrono::milliseconds(0)));
    EXPECT_THAT(Take(std::chrono::milliseconds(120)).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(path_), HasSubstr("another run (process "),
                               HasSubstr("give this run another folder"))));
    EXPECT_THAT(said_, ElementsAre(HasSubstr("waiting for another run")));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));  // nothing has come into it
  std::filesystem::create_directories(path_);
  ORIEL_EXPECT_OK(Take(std::chrono::milliseconds(0)).status());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(SaveFolderTest, WaitsForAProcessThatEnds) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto folder = Take(std::chrono::seconds(10));
    if (write(pipe_ends[1], "x", 1) == 1) pause();
    _exit(folder.ok() ? 0 : 1);
  }
  char ready = 0;
  ASSERT_EQ(read(pipe_ends[0], &ready, 1), 1);
  std::thread killer([child] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  });
  ORIEL_EXPECT_OK(Take(std::chrono::seconds(60)).status());
  killer.join();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("process " + std::to_string(child))));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(SaveFolderTest, GivesUpWhenItIsToStop) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto folder, Take(std::chrono::milliseconds(0)));
  stops_ = true;
  EXPECT_THAT(Take(std::chrono::hours(1)).status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("interrupted while waiting")));
}

TEST_F(SaveFolderTest, OthersAreAwaited) {
  auto await = [&](std::chrono::milliseconds patience) {
    return SaveFolder::AwaitOthers(
        path_, patience, [this](const std::string& text) { said_.push_back(text); },
        [this] { return stops_; });
  };
  ORIEL_EXPECT_OK(await(std::chrono::milliseconds(0)));
  EXPECT_FALSE(std::filesystem::exists(path_));
  ORIEL_ASSERT_OK_AND_ASSIGN(auto folder, Take(std::chrono::milliseconds(0)));
  EXPECT_THAT(await(std::chrono::milliseconds(120)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another run (process ")));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("waiting for another run")));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    folder.reset();
  });
  ORIEL_EXPECT_OK(await(std::chrono::seconds(60)));
  other.join();
  // It holds nothing.
  ORIEL_EXPECT_OK(Take(std::chrono::milliseconds(0)).status());
}

TEST_F(SaveFolderTest, RemovesWhatAKilledRunHasLeft) {
  for (const char* name : {".step-00000007.tmp", "step-00000005", ".hidden.tmp"}) {
    std::filesystem::create_directories(JoinPath(path_, name));
    std::ofstream(JoinPath(JoinPath(path_, name), "model.safetensors")) << "half";
  }
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto folder, Take(std::chrono::milliseconds(0)));
  EXPECT_FALSE(std::filesystem::exists(JoinPath(path_, ".step-00000007.tmp")));
  EXPECT_TRUE(std::filesystem::exists(JoinPath(path_, "step-00000005/model.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(JoinPath(path_, ".hidden.tmp/model.safetensors")));
}

}  // namespace
}  // namespace oriel::runtime
