#include "runtime/train/data/npy.h"

#include <cctype>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/train/tensor_bytes.h"

namespace oriel::runtime {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr int64_t kMagicBytes = 6;

struct DTypeEntry {
  const char* descr;
  DType dtype;
};
constexpr DTypeEntry kDTypes[] = {
    {"<f4", DType::kF32}, {"<f8", DType::kF64}, {"<f2", DType::kF16}, {"<i8", DType::kI64},
    {"<i4", DType::kI32}, {"|i1", DType::kI8},  {"|u1", DType::kU8},  {"|b1", DType::kBool},
};

// The few pieces of Python syntax that a header is made of.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool Take(char c) {
    SkipSpace();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> String() {
    SkipSpace();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  std::optional<int64_t> Size() {
    SkipSpace();
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < text_.size() && std::isdigit(static_cast<unsigned char>(text_[digits]));
         ++digits) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[digits] - '0'}, &value)) {
        return std::nullopt;
      }
    }
    if (digits == 0) return std::nullopt;
    text_.remove_prefix(digits);
    return value;
  }
  bool AtEnd() {
    SkipSpace();
    return text_.empty();
  }

 private:
  void SkipSpace() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_[0]))) {
      text_.remove_prefix(1);
    }
  }
  std::string_view text_;
};

struct Dictionary {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

std::optional<Shape> ParseShape(Scanner& scanner) {
  if (!scanner.Take('(')) return std::nullopt;
  Shape shape;
  while (!scanner.Take(')')) {
    std::optional<int64_t> size = scanner.Size();
    if (!size) return std::nullopt;
    shape.push_back(*size);
    if (!scanner.Take(',')) {
      if (!scanner.Take(')')) return std::nullopt;
      break;
    }
  }
  return shape;
}

std::optional<Dictionary> ParseDictionary(std::string_view text) {
  Scanner scanner(text);
  Dictionary result;
  if (!scanner.Take('{')) return std::nullopt;
  while (!scanner.Take('}')) {
    std::optional<std::string> key = scanner.String();
    if (!key || !scanner.Take(':')) return std::nullopt;
    if (*key == "descr") {
      // A structured type is a list here and fails as "not a string".
      if (!(result.descr = scanner.String())) return std::nullopt;
    } else if (*key == "fortran_order") {
      if (scanner.TakeWord("True")) {
        result.fortran_order = true;
      } else if (scanner.TakeWord("False")) {
        result.fortran_order = false;
      } else {
        return std::nullopt;
      }
    } else if (*key == "shape") {
      if (!(result.shape = ParseShape(scanner))) return std::nullopt;
    } else {
      return std::nullopt;
    }
    if (!scanner.Take(',')) {
      if (!scanner.Take('}')) return std::nullopt;
      break;
    }
  }
  if (!scanner.AtEnd() || !result.descr || !result.fortran_order || !result.shape) {
    return std::nullopt;
  }
  return result;
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpy(const char* data, int64_t bytes) {
  return ParseNpyBeginning(data, bytes, bytes);
}

absl::StatusOr<NpyHeader> ParseNpyBeginning(const char* data, int64_t present, int64_t bytes) {
  if (present < kMagicBytes + 2 || std::memcmp(data, kMagic, kMagicBytes) != 0) {
    return absl::InvalidArgumentError("is not an .npy array");
  }
  const int major = static_cast<unsigned char>(data[kMagicBytes]);
  if (major != 1 && major != 2) {
    return absl::InvalidArgumentError(absl::StrCat("has .npy version ", major, ", not 1 or 2"));
  }
  const int64_t length_bytes = major == 1 ? 2 : 4;
  int64_t offset = kMagicBytes + 2;
  if (present < offset + length_bytes) return absl::InvalidArgumentError("is truncated");
  int64_t header_bytes = 0;
  for (int64_t i = 0; i < length_bytes; ++i) {
    header_bytes |= int64_t{static_cast<unsigned char>(data[offset + i])} << (8 * i);
  }
  offset += length_bytes;
  if (header_bytes > present - offset) {
    return absl::InvalidArgumentError("is truncated in its header");
  }
  std::optional<Dictionary> dictionary =
      ParseDictionary(std::string_view(data + offset, header_bytes));
  if (!dictionary) return absl::InvalidArgumentError("has an .npy header that cannot be read");

  NpyHeader header;
  header.data_offset = offset + header_bytes;
  header.spec.shape = *std::move(dictionary->shape);
  const DTypeEntry* known = nullptr;
  for (const DTypeEntry& entry : kDTypes) {
    // One-byte types have no byte order, whatever sign is written.
    const size_t first = entry.descr[0] == '|' ? 1 : 0;
    if (dictionary->descr->size() == 3 &&
        dictionary->descr->compare(first, 3, entry.descr + first) == 0) {
      known = &entry;
    }
  }
  if (known == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("has dtype '", *dictionary->descr,
                     "'; f2 f4 f8 i1 i4 i8 u1 b1 in little-endian order can be read"));
  }
  header.spec.dtype = known->dtype;
  if (*dictionary->fortran_order && header.spec.rank() > 1) {
    return absl::InvalidArgumentError(
        "is in Fortran order; save numpy.ascontiguousarray(..) of it");
  }
  std::optional<int64_t> expected = CheckedBytes(header.spec);
  const int64_t data_bytes = bytes - header.data_offset;
  if (!expected || *expected != data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(expected && *expected > data_bytes ? "is truncated: " : "is damaged: ",
                     header.spec.ToString(), " does not take the ", data_bytes, " bytes of data"));
  }
  return header;
}

absl::StatusOr<std::string> EncodeNpyHeader(const TensorSpec& spec) {
  const DTypeEntry* known = nullptr;
  for (const DTypeEntry& entry : kDTypes) {
    if (entry.dtype == spec.dtype) known = &entry;
  }
  if (known == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(".npy has no dtype for ", spec.ToString()));
  }
  std::string dictionary =
      absl::StrCat("{'descr': '", known->descr, "', 'fortran_order': False, 'shape': (");
  for (int64_t size : spec.shape) absl::StrAppend(&dictionary, size, ",");
  dictionary += "), }";
  // A newline ends it.
  const size_t prefix = kMagicBytes + 4;
  dictionary.resize((prefix + dictionary.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  dictionary += '\n';
  std::string header(kMagic, kMagicBytes);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

absl::StatusOr<NpyWriter> NpyWriter::Create(const std::string& path, const TensorSpec& spec) {
  absl::StatusOr<std::string> header = EncodeNpyHeader(spec);
  if (!header.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", std::string(header.status().message())));
  }
  absl::StatusOr<std::unique_ptr<AtomicFile>> file = AtomicFile::Create(path);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Append(header->data(), header->size());
  if (!status.ok()) return status;
  NpyWriter writer;
  writer.path_ = path;
  writer.file_ = *std::move(file);
  writer.missing_ = spec.bytes();
  return writer;
}

absl::Status NpyWriter::Append(const void* data, int64_t bytes) {
  missing_ -= bytes;
  return file_->Append(data, bytes);
}

absl::Status NpyWriter::Finish() {
  if (missing_ != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", missing_, " bytes of the array are missing"));
  }
  return file_->Commit();
}

}  // namespace oriel::runtime
