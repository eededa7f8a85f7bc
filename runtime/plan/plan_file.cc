#include "runtime/plan/plan_file.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "runtime/base/crc32.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

constexpr std::string_view kMagic = "\x8fOPLAN\r\n";

template <typename T>
void Append(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

template <typename T>
T Load(std::string_view bytes, size_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  }
  return value;
}

// Of a part, behind groups, or by more than an element for each rank.
bool IsPaddedByHeads(const plan::Plan& plan, const plan::Parameter& parameter) {
  if (parameter.padded_shape().empty()) return false;
  if (parameter.has_part_of() || !parameter.padded_groups().empty()) return true;
  const auto& shape = parameter.global().shape();
  const auto ranks = static_cast<uint64_t>(std::max<int64_t>(plan.world_size(), 1));
  for (int dim = 0; dim < std::min(shape.size(), parameter.padded_shape_size()); ++dim) {
    const int64_t padded = parameter.padded_shape(dim);
    // Not verified: unsigned numbers do not overflow.
    const uint64_t added = static_cast<uint64_t>(padded) - static_cast<uint64_t>(shape[dim]);
    if (padded > shape[dim] && added >= ranks) return true;
  }
  return false;
}

uint32_t OldestReaderOf(const plan::Plan& plan) {
  uint32_t oldest = kOldestPlanFormat;
  for (const auto& parameter : plan.parameters()) {
    if (parameter.has_part_of()) oldest = std::max(oldest, kOldestReaderOfParts);
    if (IsPaddedByHeads(plan, parameter)) oldest = std::max(oldest, kOldestReaderOfPaddedHeads);
  }
  for (const auto& program : plan.programs()) {
    for (const auto& buffer : program.buffers()) {
      if (buffer.kind() == plan::STEP_GRADIENT) {
        oldest = std::max(oldest, kOldestReaderOfStepGradients);
      }
    }
  }
  for (const auto& state : plan.optimizer_states()) {
    if (state.global().dtype() == plan::I16) oldest = std::max(oldest, kOldestReaderOfRemainders);
  }
  if (plan.training().learning_rate().hold_steps() > 0) {
    oldest = std::max(oldest, kOldestReaderOfHeldRates);
  }
  int counts = 0;
  for (const auto& input : plan.inputs()) counts += input.image_count() ? 1 : 0;
  if (counts > 1) oldest = std::max(oldest, kOldestReaderOfImageKinds);
  return oldest;
}

}  // namespace

absl::StatusOr<std::string> EncodePlan(const plan::Plan& plan) {
  const size_t payload_bytes = plan.ByteSizeLong();
  if (payload_bytes > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the plan has ", payload_bytes,
                     " bytes, more than protobuf's 2 GiB; its constants are too large"));
  }
  std::string payload;
  // protobuf writes a string that is not UTF-8 (a path, say), and then refuses to read it.
  google::protobuf::LogSilencer silencer;
  {
    google::protobuf::io::StringOutputStream stream(&payload);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps have no order of their own
    plan.SerializeWithCachedSizes(&coded);
  }
  if (!plan::Plan().ParseFromString(payload)) {
    return absl::InvalidArgumentError("a name or a path in the plan is not valid UTF-8");
  }
  std::string out(kMagic);
  Append<uint32_t>(kPlanFormatVersion, out);
  Append<uint32_t>(OldestReaderOf(plan), out);
  Append<uint64_t>(payload.size(), out);
  Append<uint32_t>(Crc32(payload), out);
  Append<uint32_t>(Crc32(out), out);
  out += payload;
  return out;
}

absl::StatusOr<plan::Plan> DecodePlan(std::string_view bytes, const std::string& name) {
  const std::string_view magic = bytes.substr(0, kMagic.size());
  if (bytes.empty()) return absl::DataLossError(absl::StrCat(name, " is empty, not a plan"));
  if (magic != kMagic.substr(0, magic.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not a plan: it does not begin with the magic bytes of one"));
  }
  if (bytes.size() < static_cast<size_t>(kPlanHeaderBytes)) {
    return absl::DataLossError(absl::StrCat(name, " is truncated: expected at least ",
                                            kPlanHeaderBytes, " bytes, have ", bytes.size()));
  }
  if (Load<uint32_t>(bytes, 28) != Crc32(bytes.substr(0, 28))) {
    return absl::DataLossError(
        absl::StrCat(name, " is corrupt: the checksum of its header does not match"));
  }
  const uint32_t format = Load<uint32_t>(bytes, 8);
  const uint32_t minimum_reader = Load<uint32_t>(bytes, 12);
  if (minimum_reader > kPlanFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " was written by a newer Oriel (format ", format,
                     ", this one reads up to ", kPlanFormatVersion, "): update oriel-run"));
  }
  if (format < kOldestPlanFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " was written by an older Oriel (format ", format,
                     ", this one reads from ", kOldestPlanFormat, "): compile the model again"));
  }
  const uint64_t payload_bytes = Load<uint64_t>(bytes, 16);
  const std::string_view payload = bytes.substr(kPlanHeaderBytes);
  if (payload.size() < payload_bytes) {
    return absl::DataLossError(absl::StrCat(name, " is truncated: expected ",
                                            kPlanHeaderBytes + payload_bytes, " bytes, have ",
                                            bytes.size()));
  }
  if (payload.size() > payload_bytes) {
    return absl::DataLossError(absl::StrCat(name, " is corrupt: expected ",
                                            kPlanHeaderBytes + payload_bytes, " bytes, have ",
                                            bytes.size()));
  }
  if (Load<uint32_t>(bytes, 24) != Crc32(payload)) {
    return absl::DataLossError(
        absl::StrCat(name, " is corrupt: the checksum of its contents does not match"));
  }
  plan::Plan plan;
  google::protobuf::LogSilencer silencer;  // the status says it
  if (payload.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()) ||
      !plan.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return absl::DataLossError(absl::StrCat(name, " is corrupt: its contents cannot be decoded"));
  }
  return plan;
}

absl::Status WritePlan(const plan::Plan& plan, const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(const std::string bytes, EncodePlan(plan));
  return WriteTextAtomically(path, bytes);
}

absl::StatusOr<plan::Plan> ReadPlan(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(absl::StrCat("there is no plan ", path));
  }
  if (!file.ok()) return file.status();
  return DecodePlan(std::string_view((*file)->data(), (*file)->size()), path);
}

}  // namespace oriel::runtime
