// JSON without exceptions: parsing, printing, and checked numbers. Include in .cc files only.
#ifndef ORIEL_RUNTIME_TRAIN_JSON_UTIL_H_
#define ORIEL_RUNTIME_TRAIN_JSON_UTIL_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

// Nothing if the text is not one JSON object.
template <typename Json = nlohmann::json>
std::optional<Json> ParseJsonObject(const char* begin, const char* end) {
  Json json = Json::parse(begin, end, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return std::nullopt;
  return json;
}

// InvalidArgument if a string is not UTF-8.
template <typename Json>
absl::StatusOr<std::string> DumpJson(const Json& json, int indent = -1) {
  try {
    return json.dump(indent);
  } catch (const typename Json::exception&) {
    return absl::InvalidArgumentError("a name is not valid UTF-8");
  }
}

// A member of an object; null if absent (or `json` is no object).
template <typename Json>
const Json* Member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  auto it = json.find(key);
  return it == json.end() ? nullptr : &*it;
}

// A whole number from 0 to 2^63-1.
template <typename Json>
std::optional<int64_t> AsSize(const Json* json) {
  if (json == nullptr || !json->is_number_unsigned()) return std::nullopt;
  uint64_t value = json->template get<uint64_t>();
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(value);
}

template <typename Json>
std::optional<std::vector<int64_t>> AsSizes(const Json* json) {
  if (json == nullptr || !json->is_array()) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const auto& item : *json) {
    std::optional<int64_t> size = AsSize(&item);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

template <typename Json>
std::optional<std::string> AsText(const Json* json) {
  if (json == nullptr || !json->is_string()) return std::nullopt;
  return json->template get<std::string>();
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_JSON_UTIL_H_
