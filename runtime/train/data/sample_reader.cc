#include "runtime/train/data/sample_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"

namespace oriel::runtime {
namespace {

// Where the expectation comes from, for whoever has to change one or the other.
std::string Origin(const BatchInput& input) {
  return absl::StrCat(" (recipe inputs / model input ", input.member, ")");
}

// A leading 1 for the sample itself may be there or not.
bool ShapesMatch(const Shape& found, const Shape& expected) {
  if (found == expected) return true;
  return found.size() == expected.size() + 1 && found[0] == 1 &&
         Shape(found.begin() + 1, found.end()) == expected;
}

}  // namespace

absl::Status SampleReader::Read(int64_t number, const std::vector<char*>& targets) {
  // What the images of each kind are counted by, and the first input that holds some.
  struct Count {
    bool wanted = false;
    std::optional<int64_t> images;
    std::string from;
  };
  std::map<std::string, Count> counts;
  bool reads = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (targets[i] == nullptr) continue;
    if (inputs_[i].image_count) counts[inputs_[i].name].wanted = true;
    reads |= !inputs_[i].sample_bits;
  }
  if (!reads) return absl::OkStatus();
  const ShardSample& sample = index_->sample(number);
  ORIEL_ASSIGN_OR_RETURN(ReadFile file, ReadFile::Open(index_->shards()[sample.shard]));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const BatchInput& input = inputs_[i];
    Count* count = input.images > 0 ? &counts[input.counted_by] : nullptr;
    const bool skipped = targets[i] == nullptr && (count == nullptr || !count->wanted);
    if (skipped || input.image_count || input.sample_bits) continue;
    absl::Status status;
    if (count != nullptr) {
      absl::StatusOr<int64_t> images = ReadImages(sample, input, file, targets[i]);
      status = images.status();
      if (status.ok() && count->images && *count->images != *images) {
        status = absl::InvalidArgumentError(absl::StrCat("has ", *count->images, " images in ",
                                                         count->from, ", but ", *images, " in ",
                                                         input.member));
      }
      if (status.ok()) count->images = *images;
      count->from = input.member;
    } else {
      status = ReadInput(sample, input, file, targets[i]);
    }
    if (!status.ok()) return Annotate(status, index_->Describe(sample));
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (targets[i] == nullptr || !inputs_[i].image_count) continue;
    const int64_t count = counts[inputs_[i].name].images.value_or(0);
    std::memcpy(targets[i], &count, sizeof count);
  }
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> SampleReader::ReadHeader(const ShardMember& member, const ReadFile& file,
                                                   bool whole) {
  constexpr int64_t kUsually = 1024;  // bytes that a header may take; they are seldom more than 128
  const int64_t bytes = whole ? member.size : std::min(member.size, kUsually);
  scratch_.resize(bytes);
  ORIEL_RETURN_IF_ERROR(file.ReadAt(member.offset, scratch_.data(), bytes));
  absl::StatusOr<NpyHeader> header = ParseNpyBeginning(scratch_.data(), bytes, member.size);
  if (header.ok() || bytes == member.size) return header;
  return ReadHeader(member, file, /*whole=*/true);
}

absl::Status SampleReader::ReadMember(const ShardMember& member, const BatchInput& input,
                                      const ReadFile& file, TensorSpec* found, const char** data) {
  absl::StatusOr<NpyHeader> header = ReadHeader(member, file, /*whole=*/data != nullptr);
  if (!header.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.member, " ", std::string(header.status().message())));
  }
  if (!IsConvertible(header->spec.dtype, input.sample.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.member, " has dtype ", std::string(DTypeName(header->spec.dtype)),
                     ", the plan expects ", std::string(DTypeName(input.sample.dtype)),
                     Origin(input), "; that conversion would lose values"));
  }
  *found = header->spec;
  if (data != nullptr) *data = scratch_.data() + header->data_offset;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SampleReader::ReadImages(const ShardSample& sample, const BatchInput& input,
                                                 const ReadFile& file, char* target) {
  if (target != nullptr) std::memset(target, 0, input.sample.bytes());
  const ShardMember* member = index_->Find(sample, input.member);
  if (member == nullptr) return 0;
  TensorSpec found;
  const char* data = nullptr;
  ORIEL_RETURN_IF_ERROR(
      ReadMember(*member, input, file, &found, target == nullptr ? nullptr : &data));
  // [rows, row..]; without its first dimension one row; with one more of size 1, the sample's.
  Shape shape = found.shape;
  if (shape == input.image_row) shape.insert(shape.begin(), 1);
  if (shape.size() == input.image_row.size() + 2 && shape[0] == 1) shape.erase(shape.begin());
  const bool fits = shape.size() == input.image_row.size() + 1 &&
                    Shape(shape.begin() + 1, shape.end()) == input.image_row &&
                    shape[0] % input.image_rows == 0 && shape[0] / input.image_rows <= input.images;
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        input.member, " has shape ", ShapeToString(found.shape), ", the plan expects up to ",
        input.images, input.images == 1 ? " image" : " images", " of ", input.image_rows,
        input.image_rows == 1 ? " row " : " rows ", ShapeToString(input.image_row), Origin(input)));
  }
  if (target != nullptr) {
    absl::Status converted =
        ConvertElements(found.dtype, data, input.sample.dtype, target, found.num_elements());
    if (!converted.ok()) return Annotate(converted, input.member);
  }
  return shape[0] / input.image_rows;
}

absl::Status SampleReader::ReadInput(const ShardSample& sample, const BatchInput& input,
                                     const ReadFile& file, char* target) {
  const ShardMember* member = index_->Find(sample, input.member);
  if (member == nullptr) {
    return absl::NotFoundError(absl::StrCat("has no ", input.member, ".npy, which the plan expects",
                                            Origin(input), "; the sample holds ",
                                            index_->MemberList(sample)));
  }
  TensorSpec found;
  const char* data = nullptr;
  ORIEL_RETURN_IF_ERROR(ReadMember(*member, input, file, &found, &data));
  if (!ShapesMatch(found.shape, input.sample.shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.member, " has shape ", ShapeToString(found.shape), ", the plan expects ",
                     ShapeToString(input.sample.shape), Origin(input)));
  }
  return Annotate(
      ConvertElements(found.dtype, data, input.sample.dtype, target, found.num_elements()),
      absl::StrCat(input.member, " as ", std::string(DTypeName(input.sample.dtype))));
}

}  // namespace oriel::runtime
