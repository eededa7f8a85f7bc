// What Abseil 20220623 lacks around Status: early-return macros and context.
//
//   absl::StatusOr<int> Sum() {
//     ORIEL_RETURN_IF_ERROR(Check());
//     ORIEL_ASSIGN_OR_RETURN(int a, Read("a"));
//     ORIEL_ASSIGN_OR_RETURN(int b, Read("b"));
//     return a + b;
//   }
#ifndef ORIEL_RUNTIME_BASE_STATUS_H_
#define ORIEL_RUNTIME_BASE_STATUS_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace oriel::runtime {

// The same error, payloads included, with another message.
inline absl::Status WithMessage(const absl::Status& status, std::string_view message) {
  absl::Status result(status.code(), absl::string_view(message.data(), message.size()));
  status.ForEachPayload(
      [&](absl::string_view key, const absl::Cord& payload) { result.SetPayload(key, payload); });
  return result;
}

// The same error with "context: " in front of its message. OK stays OK.
inline absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  std::string message(context);
  message += ": ";
  message.append(status.message().data(), status.message().size());
  return WithMessage(status, message);
}

// ResourceExhausted, of a device's memory: tells it from what else can run out, such as a disk.
inline constexpr char kDeviceMemoryPayload[] = "oriel/device_memory";
inline absl::Status DeviceMemoryError(std::string_view message) {
  absl::Status result =
      absl::ResourceExhaustedError(absl::string_view(message.data(), message.size()));
  result.SetPayload(kDeviceMemoryPayload, absl::Cord());
  return result;
}
inline bool IsDeviceMemoryError(const absl::Status& status) {
  return status.GetPayload(kDeviceMemoryPayload).has_value();
}

}  // namespace oriel::runtime

#define ORIEL_RETURN_IF_ERROR(expression)                               \
  do {                                                                  \
    if (absl::Status oriel_status = (expression); !oriel_status.ok()) { \
      return oriel_status;                                              \
    }                                                                   \
  } while (false)

#define ORIEL_STATUS_CONCAT_(a, b) a##b
#define ORIEL_STATUS_CONCAT(a, b) ORIEL_STATUS_CONCAT_(a, b)
// `lhs` may declare a variable. Two statements: not the body of an unbraced `if`.
#define ORIEL_ASSIGN_OR_RETURN(lhs, expression) \
  ORIEL_ASSIGN_OR_RETURN_(ORIEL_STATUS_CONCAT(oriel_statusor_, __COUNTER__), lhs, expression)
#define ORIEL_ASSIGN_OR_RETURN_(temporary, lhs, expression) \
  auto temporary = (expression);                            \
  if (!temporary.ok()) return temporary.status();           \
  lhs = std::move(temporary).value()

#endif  // ORIEL_RUNTIME_BASE_STATUS_H_
