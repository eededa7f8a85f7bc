#include "runtime/train/sample_reader.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"
#include "runtime/train/npy.h"

namespace oriel::runtime {
namespace {

// Where the expectation comes from, for whoever has to change one or the other.
std::string Origin(const BatchInput& input) {
  return absl::StrCat(" (recipe inputs / model input ", input.name, ")");
}

// A leading 1 for the sample itself may be there or not.
bool ShapesMatch(const Shape& found, const Shape& expected) {
  if (found == expected) return true;
  return found.size() == expected.size() + 1 && found[0] == 1 &&
         Shape(found.begin() + 1, found.end()) == expected;
}

}  // namespace

absl::Status SampleReader::Read(int64_t number, const std::vector<char*>& targets) {
  const ShardSample& sample = index_->sample(number);
  ORIEL_ASSIGN_OR_RETURN(ReadFile file, ReadFile::Open(index_->shards()[sample.shard]));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (targets[i] == nullptr) continue;
    if (absl::Status status = ReadInput(sample, inputs_[i], file, targets[i]); !status.ok()) {
      return Annotate(status, index_->Describe(sample));
    }
  }
  return absl::OkStatus();
}

absl::Status SampleReader::ReadInput(const ShardSample& sample, const BatchInput& input,
                                     const ReadFile& file, char* target) {
  const ShardMember* member = index_->Find(sample, input.name);
  if (member == nullptr) {
    return absl::NotFoundError(absl::StrCat("has no ", input.name, ".npy, which the plan expects",
                                            Origin(input), "; the sample holds ",
                                            index_->MemberList(sample)));
  }
  scratch_.resize(member->size);
  ORIEL_RETURN_IF_ERROR(file.ReadAt(member->offset, scratch_.data(), member->size));
  absl::StatusOr<NpyHeader> header = ParseNpy(scratch_.data(), member->size);
  if (!header.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.name, " ", std::string(header.status().message())));
  }
  const TensorSpec& found = header->spec;
  if (!ShapesMatch(found.shape, input.sample.shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.name, " has shape ", ShapeToString(found.shape), ", the plan expects ",
                     ShapeToString(input.sample.shape), Origin(input)));
  }
  if (!IsConvertible(found.dtype, input.sample.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.name, " has dtype ", std::string(DTypeName(found.dtype)),
                     ", the plan expects ", std::string(DTypeName(input.sample.dtype)),
                     Origin(input), "; that conversion would lose values"));
  }
  return Annotate(ConvertElements(found.dtype, scratch_.data() + header->data_offset,
                                  input.sample.dtype, target, found.num_elements()),
                  absl::StrCat(input.name, " as ", std::string(DTypeName(input.sample.dtype))));
}

}  // namespace oriel::runtime
