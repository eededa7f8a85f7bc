// What tests of YAML readers share.
#ifndef ORIEL_PASSES_CONFIG_READER_TESTING_H_
#define ORIEL_PASSES_CONFIG_READER_TESTING_H_

#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace oriel {

// The text with the first `from`, which it must have, as `to`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// What is said of a text that must be refused as invalid.
template <typename T>
std::string refusalOf(const absl::StatusOr<T>& read) {
  EXPECT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

}  // namespace oriel

#endif  // ORIEL_PASSES_CONFIG_READER_TESTING_H_
