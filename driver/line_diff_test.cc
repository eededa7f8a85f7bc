#include "driver/line_diff.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// " line", "-line", "+line"
std::vector<std::string> marked(const std::string& a, const std::string& b) {
  std::vector<std::string> result;
  for (const ComparedLine& line : compareLines(a, b)) {
    const char* mark = line.in == ComparedLine::In::kBoth ? " "
                       : line.in == ComparedLine::In::kA  ? "-"
                                                          : "+";
    result.push_back(mark + line.text);
  }
  return result;
}

TEST(LineDiffTest, AReplacedLine) {
  EXPECT_THAT(marked("a\nb\nc\n", "a\nx\nc\n"), ElementsAre(" a", "-b", "+x", " c"));
}

TEST(LineDiffTest, LinesOfOneAlone) {
  EXPECT_THAT(marked("a\nc\n", "a\nb\nc\nd\n"), ElementsAre(" a", "+b", " c", "+d"));
  EXPECT_THAT(marked("", "a\n"), ElementsAre("+a"));
  EXPECT_THAT(marked("a\n", ""), ElementsAre("-a"));
  EXPECT_THAT(marked("", ""), IsEmpty());
}

// What both have between lines that differ is found, too.
TEST(LineDiffTest, TheMostLinesAreInBoth) {
  EXPECT_THAT(marked("x\na\nb\nc\ny\n", "1\na\nc\nb\n2\n"),
              ElementsAre("-x", "+1", " a", "-b", " c", "-y", "+b", "+2"));
}

TEST(LineDiffTest, ALineThatComesTwice) {
  EXPECT_THAT(marked("a\na\n", "a\n"), ElementsAre(" a", "-a"));
}

TEST(LineDiffTest, TheLastEndOfALineIsNoDifference) {
  EXPECT_THAT(marked("a\nb", "a\nb\n"), ElementsAre(" a", " b"));
}

// Of 10,000 lines each: those that they begin and end with, and no table of all pairs.
TEST(LineDiffTest, LongTexts) {
  std::string a = "first\n", b = a;
  for (int i = 0; i < 10000; ++i) {
    absl::StrAppend(&a, "a", i, "\nsame\n");
    absl::StrAppend(&b, "b", i, "\nsame\n");
  }
  a += "last\n";
  b += "last\n";
  const std::vector<ComparedLine> lines = compareLines(a, b);
  EXPECT_EQ(lines.front().in, ComparedLine::In::kBoth);
  EXPECT_EQ(lines.back().in, ComparedLine::In::kBoth);
  EXPECT_EQ(lines[1].text, "a0");
  EXPECT_EQ(lines.size(), 1 + 2 * 19999 + 2);
}

}  // namespace
}  // namespace oriel::driver
