#include "runtime/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "runtime/base/folder_testing.h"
#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  std::string In(const char* name) const { return folder_ / name; }
  int64_t Files() const { return std::distance(fs::directory_iterator(folder_.path()), {}); }

  const TempFolder folder_;
};

TEST_F(AtomicFileTest, IsThereWholeOrNotAtAll) {
  const std::string path = In("a");
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ORIEL_EXPECT_OK((*file)->Append("half", 4));
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_EQ(Files(), 0);
  const mode_t before = umask(027);
  ORIEL_EXPECT_OK(WriteTextAtomically(path, "whole"));
  umask(before);
  EXPECT_EQ(*ReadText(path), "whole");
  EXPECT_EQ(Files(), 1);
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

// Links stay, whether what they lead to is there or not.
TEST_F(AtomicFileTest, FollowsLinks) {
  fs::create_directory(In("disk"));
  fs::create_symlink("second", In("first"));
  fs::create_symlink("disk/file", In("second"));
  for (const char* text : {"new", "old"}) {
    ORIEL_EXPECT_OK(WriteTextAtomically(In("first"), text));
    EXPECT_TRUE(fs::is_symlink(In("first")));
    EXPECT_TRUE(fs::is_symlink(In("second")));
    EXPECT_EQ(*ReadText(In("disk/file")), text);
  }
  EXPECT_EQ(Files(), 3);
  fs::create_symlink("loop", In("loop"));
  EXPECT_FALSE(WriteTextAtomically(In("loop"), "text").ok());
}

TEST_F(AtomicFileTest, WritesToWhatIsNoFile) {
  const std::string pipe = In("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read(4, ' ');
  std::thread reader([&] {
    const int fd = open(pipe.c_str(), O_RDONLY);
    for (size_t at = 0; at < read.size();) {
      const ssize_t count = ::read(fd, read.data() + at, read.size() - at);
      if (count <= 0) break;
      at += static_cast<size_t>(count);
    }
    close(fd);
  });
  auto file = AtomicFile::Create(pipe);
  ASSERT_TRUE(file.ok()) << file.status();
  ORIEL_EXPECT_OK((*file)->Append("text", 4));
  ORIEL_EXPECT_OK((*file)->Commit());
  reader.join();
  EXPECT_EQ(read, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(Files(), 1);
  EXPECT_FALSE(WriteTextAtomically(folder_.path(), "text").ok());
}

TEST(MakeFoldersTest, SaysWhatALinkToNowhereIs) {
  const TempFolder folder;
  ORIEL_EXPECT_OK(MakeFolders(folder / "a/b"));
  ORIEL_EXPECT_OK(MakeFolders(folder / "a/b"));
  fs::create_symlink(folder / "a", folder / "there");
  ORIEL_EXPECT_OK(MakeFolders(folder / "there"));
  fs::create_symlink(folder / "absent", folder / "link");
  const absl::Status made = MakeFolders(folder / "link");
  EXPECT_EQ(made.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(made.message()),
              ::testing::HasSubstr("is a link to a folder that is not there"));
}

}  // namespace
}  // namespace oriel::runtime
