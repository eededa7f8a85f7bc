// GoogleTest helpers for absl::Status. Tests only.
//
//   ORIEL_ASSERT_OK(WritePlan(plan, path));
//   ORIEL_ASSERT_OK_AND_ASSIGN(plan::Plan plan, ReadPlan(path));
//   EXPECT_THAT(ReadPlan("none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
#ifndef ORIEL_RUNTIME_BASE_STATUS_TESTING_H_
#define ORIEL_RUNTIME_BASE_STATUS_TESTING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

inline const absl::Status& GetStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& status) {
  return status.status();
}

// A Status or StatusOr with this code and a message that matches.
MATCHER_P2(StatusIs, code, message_matcher,
           "has the code " + absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message_matcher, negation)) {
  const absl::Status& status = GetStatus(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message_matcher, std::string(status.message()),
                                       result_listener);
}

MATCHER(IsOk, "is OK") {
  *result_listener << "which is " << GetStatus(arg).ToString();
  return GetStatus(arg).ok();
}

}  // namespace oriel::runtime

#define ORIEL_EXPECT_OK(expression) EXPECT_THAT(expression, ::oriel::runtime::IsOk())
#define ORIEL_ASSERT_OK(expression) ASSERT_THAT(expression, ::oriel::runtime::IsOk())
#define ORIEL_ASSERT_OK_AND_ASSIGN(lhs, expression) \
  ORIEL_ASSERT_OK_AND_ASSIGN_(ORIEL_STATUS_CONCAT(oriel_statusor_, __COUNTER__), lhs, expression)
#define ORIEL_ASSERT_OK_AND_ASSIGN_(temporary, lhs, expression) \
  auto temporary = (expression);                                \
  ASSERT_TRUE(temporary.ok()) << temporary.status();            \
  lhs = std::move(temporary).value()

#endif  // ORIEL_RUNTIME_BASE_STATUS_TESTING_H_
