#include "driver/bindings.h"

#include "runtime/base/status_testing.h"

namespace oriel::driver {
namespace {

using runtime::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(BindingsTest, ReadsNamesAndSizes) {
  ORIEL_ASSERT_OK_AND_ASSIGN(auto sizes,
                             parseBindings({"batch=4", "sequence=64", "past=0", "batch=4"}));
  EXPECT_THAT(sizes, ElementsAre(Pair("batch", 4), Pair("past", 0), Pair("sequence", 64)));
}

TEST(BindingsTest, RefusesWhatIsNoSize) {
  for (const char* word : {"batch", "=4", "batch=", "batch=-1", "batch=four", ""}) {
    EXPECT_THAT(parseBindings({word}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("write NAME=N")))
        << word;
  }
}

TEST(BindingsTest, RefusesTwoSizesOfOneName) {
  EXPECT_THAT(parseBindings({"batch=4", "batch=2"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two sizes, 4 and 2")));
}

}  // namespace
}  // namespace oriel::driver
