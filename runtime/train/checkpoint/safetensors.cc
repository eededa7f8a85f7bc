#include "runtime/train/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/train/convert.h"
#include "runtime/train/json_util.h"
#include "runtime/train/tensor_bytes.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr char kMetadataKey[] = "__metadata__";

struct DTypeEntry {
  DType dtype;
  const char* name;
};
constexpr DTypeEntry kDTypes[] = {
    {DType::kF32, "F32"},   {DType::kF64, "F64"}, {DType::kF16, "F16"},
    {DType::kBF16, "BF16"}, {DType::kI64, "I64"}, {DType::kI32, "I32"},
    {DType::kI8, "I8"},     {DType::kU8, "U8"},   {DType::kBool, "BOOL"},
};

struct Range {
  int64_t begin;
  int64_t end;
  const std::string* name;
};

// Reads one entry of the header. The message of an error is about the entry only.
absl::StatusOr<SafetensorsView> ParseEntry(const nlohmann::json& json, int64_t data_bytes,
                                           int64_t* begin, int64_t* end) {
  std::optional<std::string> dtype_name = AsText(Member(json, "dtype"));
  std::optional<std::vector<int64_t>> shape = AsSizes(Member(json, "shape"));
  std::optional<std::vector<int64_t>> offsets = AsSizes(Member(json, "data_offsets"));
  if (!dtype_name || !shape || !offsets || offsets->size() != 2) {
    return absl::InvalidArgumentError("its header entry needs dtype, shape and data_offsets");
  }
  absl::StatusOr<DType> dtype = SafetensorsDType(*dtype_name);
  if (!dtype.ok()) return dtype.status();
  SafetensorsView view;
  view.spec = {*dtype, std::move(*shape)};
  *begin = (*offsets)[0];
  *end = (*offsets)[1];
  if (*begin > *end || *end > data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("bytes ", *begin, " to ", *end,
                                                   " are not inside the ", data_bytes,
                                                   " bytes of data; is the file truncated?"));
  }
  std::optional<int64_t> bytes = CheckedBytes(view.spec);
  if (!bytes || *bytes != *end - *begin) {
    return absl::InvalidArgumentError(absl::StrCat(view.spec.ToString(), " does not take the ",
                                                   *end - *begin, " bytes of its data_offsets"));
  }
  return view;
}

// Tensors must cover the data exactly once. `ranges` is sorted here.
absl::Status CheckCoverage(std::vector<Range>& ranges, int64_t data_bytes) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::make_pair(a.begin, a.end) < std::make_pair(b.begin, b.end);
  });
  int64_t covered = 0;
  for (const Range& range : ranges) {
    if (range.begin != covered) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor \"", *range.name, "\" starts at byte ", range.begin, ", which ",
                       range.begin < covered ? "overlaps" : "leaves a gap after",
                       " what ends at byte ", covered));
    }
    covered = range.end;
  }
  if (covered != data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the tensors end at byte ", covered, ", but there are ", data_bytes, " bytes of data"));
  }
  return absl::OkStatus();
}

}  // namespace

const char* SafetensorsDTypeName(DType dtype) {
  for (const DTypeEntry& entry : kDTypes) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "UNKNOWN";
}

absl::StatusOr<DType> SafetensorsDType(const std::string& name) {
  for (const DTypeEntry& entry : kDTypes) {
    if (name == entry.name) return entry.dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat("dtype \"", name, "\" is not supported"));
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  SafetensorsFile result;
  result.file_ = *std::move(mapped);
  const char* bytes = result.file_->data();
  const int64_t size = result.file_->size();
  auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };

  if (size < kLengthBytes) {
    return error("not a safetensors file, or truncated: it has ", size, " bytes");
  }
  uint64_t header_bytes = 0;
  for (int i = 0; i < kLengthBytes; ++i) {
    header_bytes |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  if (header_bytes > kMaxHeaderBytes) {
    return error("not a safetensors file: its header would take ", header_bytes, " bytes");
  }
  if (static_cast<int64_t>(header_bytes) > size - kLengthBytes) {
    return error("truncated: the header takes ", header_bytes, " bytes, the file has ",
                 size - kLengthBytes, " behind the length");
  }
  const char* header = bytes + kLengthBytes;
  const char* data = header + header_bytes;
  const int64_t data_bytes = size - kLengthBytes - static_cast<int64_t>(header_bytes);
  std::optional<nlohmann::json> json = ParseJsonObject(header, data);
  if (!json) return error("not a safetensors file: the header is not a JSON object");

  std::vector<Range> ranges;
  for (const auto& [name, value] : json->items()) {
    if (name == kMetadataKey) {
      if (!value.is_object()) return error(kMetadataKey, " is not an object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return error(kMetadataKey, ".", key, " is not a string");
        result.metadata_[key] = text.get<std::string>();
      }
      continue;
    }
    Range range{0, 0, nullptr};
    absl::StatusOr<SafetensorsView> view = ParseEntry(value, data_bytes, &range.begin, &range.end);
    if (!view.ok()) {
      return error("tensor \"", name, "\": ", std::string(view.status().message()));
    }
    view->data = data + range.begin;
    range.name = &result.tensors_.emplace(name, *std::move(view)).first->first;
    ranges.push_back(range);
  }
  absl::Status coverage = CheckCoverage(ranges, data_bytes);
  if (!coverage.ok()) return error(std::string(coverage.message()));
  result.data_ = {data, static_cast<size_t>(data_bytes)};
  return result;
}

absl::StatusOr<SafetensorsView> SafetensorsFile::Find(const std::string& name) const {
  auto it = tensors_.find(name);
  if (it == tensors_.end()) {
    return absl::NotFoundError(absl::StrCat(path(), ": has no tensor \"", name, "\""));
  }
  return it->second;
}

absl::Status SafetensorsFile::Read(const std::string& name, const TensorSpec& spec,
                                   void* target) const {
  return ReadBox(name, spec, WholeBox(spec.shape), target);
}

absl::Status SafetensorsFile::ReadBox(const std::string& name, const TensorSpec& spec,
                                      const Box& box, void* target) const {
  absl::StatusOr<SafetensorsView> view = Find(name);
  if (!view.ok()) return view.status();
  if (!CanRead(view->spec, spec)) {
    return absl::InvalidArgumentError(absl::StrCat(path(), ": tensor \"", name, "\" is ",
                                                   view->spec.ToString(), ", expected ",
                                                   spec.ToString()));
  }
  return ConvertBox(WholeBox(spec.shape), view->spec.dtype, view->data, box, spec.dtype, target);
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, absl::Span<const NamedSpec> tensors,
    const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json[kMetadataKey] = metadata;
  std::set<std::string> names;
  int64_t offset = 0;
  for (const NamedSpec& tensor : tensors) {
    if (tensor.name == kMetadataKey || !names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": two tensors have the name \"", tensor.name, "\""));
    }
    const int64_t end = offset + tensor.spec.bytes();
    // emplace_back on the vector behind ordered_json: operator[] would search it each time.
    nlohmann::ordered_json entry = {{"dtype", SafetensorsDTypeName(tensor.spec.dtype)},
                                    {"shape", tensor.spec.shape},
                                    {"data_offsets", {offset, end}}};
    json.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(tensor.name, std::move(entry));
    offset = end;
  }
  absl::StatusOr<std::string> header = DumpJson(json);
  if (!header.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", std::string(header.status().message())));
  }
  // Spaces after the header are allowed; they align the data.
  header->resize((header->size() + 7) / 8 * 8, ' ');
  char length[kLengthBytes];
  for (int i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<char>((uint64_t{header->size()} >> (8 * i)) & 0xff);
  }

  absl::StatusOr<std::unique_ptr<AtomicFile>> file = AtomicFile::Create(path);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Append(length, kLengthBytes);
  if (status.ok()) status = (*file)->Append(header->data(), header->size());
  if (!status.ok()) return status;
  return SafetensorsWriter(path, *std::move(file), offset);
}

absl::Status SafetensorsWriter::Append(const void* data, int64_t bytes) {
  if (bytes > missing_) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", bytes - missing_, " bytes more than its tensors take"));
  }
  missing_ -= bytes;
  return file_->Append(data, bytes);
}

absl::Status SafetensorsWriter::Finish() {
  if (missing_ != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", missing_, " bytes of its tensors are missing"));
  }
  return file_->Commit();
}

absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<NamedSpec> specs;
  for (const NamedTensor& tensor : tensors) specs.push_back({tensor.name, tensor.spec});
  absl::StatusOr<SafetensorsWriter> writer = SafetensorsWriter::Create(path, specs, metadata);
  if (!writer.ok()) return writer.status();
  for (const NamedTensor& tensor : tensors) {
    absl::Status status = writer->Append(tensor.data, tensor.spec.bytes());
    if (!status.ok()) return status;
  }
  return writer->Finish();
}

}  // namespace oriel::runtime
