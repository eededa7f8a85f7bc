#include "runtime/train/data/tar_shards.h"

#include <filesystem>

#include "absl/strings/str_format.h"
#include "runtime/base/status_testing.h"
#include "runtime/train/data_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ShardIndexTest, SamplesInTheOrderOfNamesThenOfTheTar) {
  TempFolder folder;
  WriteTar(folder / "b.tar", {{"2.x.npy", "xx"}});
  WriteTar(folder / "a.tar", {{"9.x.npy", "x"}, {"9.y.npy", "yyy"}, {"1.x.npy", "z"}});
  WriteFileBytes(folder / "notes.txt", "not a shard");
  ORIEL_ASSERT_OK_AND_ASSIGN(ShardIndex index, ShardIndex::Read(folder.path()));
  ASSERT_EQ(index.size(), 3);
  EXPECT_EQ(index.sample(0).key, "9");
  EXPECT_EQ(index.sample(1).key, "1");
  EXPECT_EQ(index.sample(2).key, "2");
  EXPECT_EQ(index.Describe(index.sample(2)), (folder / "b.tar") + ": sample 2");
  EXPECT_EQ(index.MemberList(index.sample(0)), "x, y");
  EXPECT_EQ(index.Find(index.sample(1), "y"), nullptr);
}

// The offsets lead to the bytes, also behind the extra headers of long names.
TEST(ShardIndexTest, OffsetsOfData) {
  TempFolder folder;
  const std::string long_key = std::string(180, 'd') + "/" + std::string(90, 'k');
  WriteTar(folder / "s.tar", {{"empty.x.npy", ""},
                              {long_key + ".x.npy", "first"},
                              {"ü.x.npy", std::string(1000, 'b')},
                              {"c.a.b.npy", "third"},
                              {"c.json", "{}"}});
  ORIEL_ASSERT_OK_AND_ASSIGN(ShardIndex index, ShardIndex::Read(folder.path()));
  const std::string bytes = ReadFileBytes(folder / "s.tar");
  auto data = [&](int64_t sample, const std::string& name) {
    const ShardMember* member = index.Find(index.sample(sample), name);
    return member ? bytes.substr(member->offset, member->size) : "absent";
  };
  ASSERT_EQ(index.size(), 4);
  EXPECT_EQ(data(0, "x"), "");
  EXPECT_EQ(index.sample(1).key, long_key);
  EXPECT_EQ(data(1, "x"), "first");
  EXPECT_EQ(data(2, "x"), std::string(1000, 'b'));
  EXPECT_EQ(data(3, "a.b"), "third");
  EXPECT_EQ(data(3, "json"), "{}");
}

TEST(ShardIndexTest, FolderMissing) {
  EXPECT_THAT(ShardIndex::Read("/none/such"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none/such: there is no such")));
}

TEST(ShardIndexTest, FolderEmpty) {
  TempFolder folder;
  EXPECT_THAT(ShardIndex::Read(folder.path()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("the folder is empty")));
}

TEST(ShardIndexTest, NoTarInTheFolder) {
  TempFolder folder;
  WriteFileBytes(folder / "data.zip", "");
  EXPECT_THAT(ShardIndex::Read(folder.path()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no .tar file among its 1")));
}

TEST(ShardIndexTest, NotAFolder) {
  TempFolder folder;
  WriteFileBytes(folder / "file", "");
  EXPECT_THAT(ShardIndex::Read(folder / "file"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a folder")));
}

TEST(ShardIndexTest, NoSampleInTheShards) {
  TempFolder folder;
  WriteTar(folder / "s.tar", {{"README", "nothing here"}});
  EXPECT_THAT(ShardIndex::Read(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hold no sample")));
}

TEST(ShardIndexTest, MemberTwice) {
  TempFolder folder;
  WriteTar(folder / "s.tar", {{"1.x.npy", "a"}, {"1.x.npy", "b"}});
  EXPECT_THAT(ShardIndex::Read(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("s.tar"), HasSubstr("sample 1 holds the member x twice"))));
}

// A header that claims any size: the field of 12 octal digits, or GNU's binary form.
TEST(ShardIndexTest, HugeMember) {
  TempFolder folder;
  const std::string path = folder / "s.tar";
  for (const std::string& size :
       {std::string("77777777777"), std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12),
        std::string(12, '\xff')}) {
    WriteTar(path, {{"1.x.npy", "a"}, {"2.x.npy", "b"}});
    std::string bytes = ReadFileBytes(path);
    const size_t header = bytes.find("2.x.npy");
    bytes.replace(header + 124, size.size(), size);
    bytes.replace(header + 148, 8, 8, ' ');  // the checksum counts its own field as spaces
    int64_t sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[header + i]);
    bytes.replace(header + 148, 8, absl::StrFormat("%06o", sum) + std::string("\0 ", 2));
    WriteFileBytes(path, bytes);
    EXPECT_THAT(ShardIndex::Read(folder.path()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("s.tar")));
  }
}

// Names are keys only: nothing is opened or written by them.
TEST(ShardIndexTest, NamesThatAreOtherPaths) {
  TempFolder folder;
  WriteTar(folder / "s.tar", {{"../../etc/1.x.npy", "a"}, {"/etc/1.x.npy", "b"}, {"...npy", "c"}});
  ORIEL_ASSERT_OK_AND_ASSIGN(ShardIndex index, ShardIndex::Read(folder.path()));
  ASSERT_EQ(index.size(), 3);
  EXPECT_EQ(index.sample(0).key, "../../etc/1");
  EXPECT_EQ(index.sample(2).key, "");
}

// Cut inside a header, inside data, between members, and before the end marker.
TEST(ShardIndexTest, TruncatedAnywhere) {
  TempFolder folder;
  WriteTar(folder / "s.tar", {{"1.x.npy", std::string(700, 'a')}, {"2.x.npy", "b"}});
  // Without the padding that libarchive adds to fill a record.
  const std::string bytes = ReadFileBytes(folder / "s.tar").substr(0, 512 * (1 + 2 + 1 + 1 + 2));
  WriteFileBytes(folder / "s.tar", bytes);
  ORIEL_ASSERT_OK(ShardIndex::Read(folder.path()));
  for (size_t size : {0, 100, 512, 1000, 1024, 1536, 1600, 2048, 2560, 3072, 3583}) {
    WriteFileBytes(folder / "s.tar", bytes.substr(0, size));
    EXPECT_THAT(ShardIndex::Read(folder.path()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("s.tar: ")))
        << size;
  }
}

TEST(ShardIndexTest, CompressedTar) {
  TempFolder folder;
  WriteFileBytes(folder / "s.tar", std::string("\x1f\x8b\x08\x00", 4) + std::string(600, 'z'));
  EXPECT_THAT(ShardIndex::Read(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not an uncompressed tar")));
}

}  // namespace
}  // namespace oriel::runtime
