// Typed, strict reading of a YAML mapping, with positions in every error.
//
// Errors latch: the first one is kept in the document, later reads return fallbacks. So a
// schema reads as a list of keys, and the status is asked for once, at the end.
#ifndef ORIEL_PASSES_CONFIG_YAML_READER_H_
#define ORIEL_PASSES_CONFIG_YAML_READER_H_

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel {

// The text of a file; `what` ("recipe") says in messages what it should be. NotFound for one that
// can't be read, InvalidArgument for a folder.
absl::StatusOr<std::string> readYamlText(const std::string& path, const std::string& what);

class YamlDocument {
 public:
  // `name` stands for the file in messages.
  YamlDocument(const std::string& text, std::string name);

  // Keeps "name:line:column: message" (both from 1) unless an error was kept before.
  void fail(const YAML::Mark& mark, const std::string& message);

  const YAML::Node& root() const { return root_; }
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

 private:
  std::string name_;
  YAML::Node root_;
  absl::Status status_;
};

// One mapping of the document. `path` names it in messages ("optimizer"; "" is the root).
class YamlMap {
 public:
  // Fails on a non-mapping, on a key twice, and on a key that is not in `known` (which
  // names the nearest one). An undefined node reads as an empty mapping.
  YamlMap(YamlDocument* document, const YAML::Node& node, std::string path,
          std::initializer_list<std::string> known);
  // A mapping whose keys are names of the user's.
  YamlMap(YamlDocument* document, const YAML::Node& node, std::string path);

  bool has(const std::string& key) const { return entries_.count(key) != 0; }
  // Keys in the order of the text.
  const std::vector<std::string>& keys() const { return keys_; }
  // Undefined if the key is absent.
  YAML::Node node(const std::string& key) const;
  // Fails unless the key is there.
  void require(const std::string& key);

  // Each fails on a value of another type; an absent key gives the fallback.
  std::string readString(const std::string& key, const std::string& fallback);
  int64_t readInt(const std::string& key, int64_t fallback, int64_t min, int64_t max = INT64_MAX);
  double readDouble(const std::string& key, double fallback);
  bool readBool(const std::string& key, bool fallback);
  // A list of strings, or one string.
  std::vector<std::string> readStrings(const std::string& key, std::vector<std::string> fallback);
  // Index of the value in `words`; fails, naming the nearest, if it is none of them.
  size_t readWord(const std::string& key, size_t fallback, std::vector<std::string> words);

  // Error at the value of `key`, or at the mapping if the key is absent.
  void fail(const std::string& key, const std::string& message);
  // "optimizer.lr"
  std::string pathOf(const std::string& key) const;

 private:
  void readKeys(const YAML::Node& node);

  YamlDocument* document_;
  std::string path_;
  YAML::Mark mark_;
  std::map<std::string, YAML::Node> entries_;
  std::vector<std::string> keys_;
  std::map<std::string, YAML::Mark> keyMarks_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_CONFIG_YAML_READER_H_
