#include "passes/config/yaml_reader.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "passes/config/suggest.h"

namespace oriel {
namespace {

// as<T>() without its exception.
template <typename T>
bool convert(const YAML::Node& node, T* value) {
  return node.IsScalar() && YAML::convert<T>::decode(node, *value);
}

// As RFC 3629 has it: no surrogates, no code in more bytes than it needs.
bool isUtf8(const std::string& text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  for (size_t i = 0; i < text.size();) {
    unsigned char first = byte(i);
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || first > 0xf4) return false;
    for (size_t j = 1; j < length; ++j) {
      if ((byte(i + j) & 0xc0) != 0x80) return false;
    }
    unsigned char second = byte(i + 1);
    bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                 (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    if (wrong) return false;
    i += length;
  }
  return true;
}

// Whether a document has anything, and where that begins.
class ContentFinder : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> first;

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { note(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {
    note(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
    note(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    note(mark);
  }
  void OnMapEnd() override {}

 private:
  void note(const YAML::Mark& mark) {
    if (!first) first = mark;
  }
};

// What YAML::Load does not look at. (YAML::LoadAll does not end on some texts.)
std::optional<YAML::Mark> secondDocument(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  ContentFinder own, next;
  if (parser.HandleNextDocument(own)) parser.HandleNextDocument(next);
  return next.first;
}

// Whether the line (from 0), or the one before, begins with a tab.
bool isIndentedByTab(const std::string& text, int line) {
  std::istringstream lines(text);
  std::string own;
  for (int i = 0; i <= line && std::getline(lines, own); ++i) {
    const size_t content = own.find_first_not_of(" \t");
    const size_t tab = own.find('\t');
    if (i + 1 >= line && tab != std::string::npos &&
        (content == std::string::npos || tab < content)) {
      return true;
    }
  }
  return false;
}

// "010", which YAML takes for 8.
bool isOctal(const std::string& text) {
  const size_t first = text.find_first_not_of("+-");
  return first != std::string::npos && text[first] == '0' && text.size() > first + 1 &&
         text.find_first_not_of("0123456789", first) == std::string::npos;
}

}  // namespace

absl::StatusOr<std::string> readYamlText(const std::string& path, const std::string& what) {
  const std::string problem = "can't read the " + what + " '" + path + "'";
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(problem + ": it is a folder");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(problem);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.good()) return absl::NotFoundError(problem);
  return text.str();
}

YamlDocument::YamlDocument(const std::string& text, std::string name) : name_(std::move(name)) {
  if (text.find('\0') != std::string::npos) {
    fail(YAML::Mark::null_mark(), "has a byte of 0, as no text has");
    return;
  }
  // yaml-cpp takes UTF-16 too, but the plan keeps the text as it is.
  if (!isUtf8(text)) {
    fail(YAML::Mark::null_mark(), "is not UTF-8 text, as a YAML file is");
    return;
  }
  try {
    root_ = YAML::Load(text);
    if (const std::optional<YAML::Mark> more = secondDocument(text)) {
      fail(*more, "a second document ('---') begins here; remove it");
    }
  } catch (const YAML::DeepRecursion& error) {
    fail(error.mark, "nested too deeply");
  } catch (const YAML::Exception& error) {  // yaml-cpp reports syntax errors no other way
    const bool isByTab = isIndentedByTab(text, error.mark.line);
    fail(error.mark, error.msg + (isByTab ? " (YAML is indented with spaces, not with tabs)" : ""));
  }
}

void YamlDocument::fail(const YAML::Mark& mark, const std::string& message) {
  if (!status_.ok()) return;
  std::string where = name_;
  if (!mark.is_null()) {
    where += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
  }
  status_ = absl::InvalidArgumentError(where + ": " + message);
}

YamlMap::YamlMap(YamlDocument* document, const YAML::Node& node, std::string path)
    : document_(document), path_(std::move(path)), mark_(YAML::Mark::null_mark()) {
  readKeys(node);
}

YamlMap::YamlMap(YamlDocument* document, const YAML::Node& node, std::string path,
                 std::initializer_list<std::string> known)
    : YamlMap(document, node, std::move(path)) {
  std::vector<std::string> names(known);
  for (const std::string& key : keys_) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    std::string where = path_.empty() ? "" : " in '" + path_ + "'";
    document_->fail(keyMarks_[key], "unknown key '" + key + "'" + where + suggestion(key, names));
  }
}

void YamlMap::readKeys(const YAML::Node& node) {
  if (!node.IsDefined()) return;
  mark_ = node.Mark();
  if (!node.IsMap()) {
    document_->fail(mark_, (path_.empty() ? "the document" : "'" + path_ + "'") +
                               std::string(" must be a mapping of keys to values"));
    return;
  }
  for (const auto& entry : node) {
    std::string key;
    if (!convert(entry.first, &key)) {
      document_->fail(entry.first.Mark(), "a key must be a word");
      continue;
    }
    if (!entries_.emplace(key, entry.second).second) {
      document_->fail(entry.first.Mark(), "key '" + pathOf(key) +
                                              "' appears twice (first on line " +
                                              std::to_string(keyMarks_[key].line + 1) + ")");
      continue;
    }
    keys_.push_back(key);
    keyMarks_[key] = entry.first.Mark();
  }
}

YAML::Node YamlMap::node(const std::string& key) const {
  auto it = entries_.find(key);
  return it == entries_.end() ? YAML::Node(YAML::NodeType::Undefined) : it->second;
}

void YamlMap::require(const std::string& key) {
  if (!has(key)) document_->fail(mark_, "missing key '" + pathOf(key) + "'");
}

std::string YamlMap::readString(const std::string& key, const std::string& fallback) {
  std::string value = fallback;
  if (has(key) && (!convert(node(key), &value) || value.empty())) {
    fail(key, "'" + pathOf(key) + "' must be a word");
  }
  return value;
}

int64_t YamlMap::readInt(const std::string& key, int64_t fallback, int64_t min, int64_t max) {
  int64_t value = fallback;
  if (!has(key)) return value;
  if (!convert(node(key), &value)) {
    fail(key, "'" + pathOf(key) + "' must be a whole number");
    return fallback;
  }
  if (isOctal(node(key).Scalar())) {
    fail(key, "'" + pathOf(key) + "' begins with a 0, which makes it octal in YAML: write " +
                  std::to_string(value) + ", or leave out the 0");
    return fallback;
  }
  if (value < min || value > max) {
    std::string range = max == INT64_MAX ? "at least " + std::to_string(min)
                                         : std::to_string(min) + " to " + std::to_string(max);
    fail(key, "'" + pathOf(key) + "' must be " + range + ", not " + std::to_string(value));
  }
  return value;
}

double YamlMap::readDouble(const std::string& key, double fallback) {
  double value = fallback;
  if (has(key) && (!convert(node(key), &value) || !std::isfinite(value))) {
    fail(key, "'" + pathOf(key) + "' must be a finite number");
    return fallback;
  }
  return value;
}

bool YamlMap::readBool(const std::string& key, bool fallback) {
  bool value = fallback;
  if (has(key) && !convert(node(key), &value)) {
    fail(key, "'" + pathOf(key) + "' must be true or false");
  }
  return value;
}

std::vector<std::string> YamlMap::readStrings(const std::string& key,
                                              std::vector<std::string> fallback) {
  if (!has(key)) return fallback;
  std::vector<std::string> values;
  YAML::Node list = node(key);
  std::string value;
  if (convert(list, &value)) return {value};
  if (!list.IsSequence()) {
    fail(key, "'" + pathOf(key) + "' must be a list of words");
    return fallback;
  }
  for (const YAML::Node& item : list) {
    if (!convert(item, &value) || value.empty()) {
      document_->fail(item.Mark(), "'" + pathOf(key) + "' must be a list of words");
      return fallback;
    }
    values.push_back(value);
  }
  return values;
}

size_t YamlMap::readWord(const std::string& key, size_t fallback, std::vector<std::string> words) {
  if (!has(key)) return fallback;
  std::string value = readString(key, words[fallback]);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == value) return i;
  }
  fail(key, "'" + pathOf(key) + "' can't be '" + value + "'" + suggestion(value, words));
  return fallback;
}

void YamlMap::fail(const std::string& key, const std::string& message) {
  document_->fail(has(key) ? node(key).Mark() : mark_, message);
}

std::string YamlMap::pathOf(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

}  // namespace oriel
