#include "runtime/train/event_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/tensorboard.pb.h"

namespace oriel::runtime {
namespace {

// What stands for the bytes' sum in a file of records (tensorflow/core/lib/io/record_writer.h): the
// sum of bytes that hold a sum would be weak.
uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Little-endian, as this machine is.
template <typename T>
void AppendNumber(T value, std::string* record) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  record->append(bytes, sizeof value);
}

// Of now.
tensorboard::Event EventOf(int64_t step) {
  tensorboard::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
  event.set_step(step);
  return event;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  // Bit by bit: events are few, and short.
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

absl::StatusOr<EventFile> EventFile::Create(const std::string& folder) {
  ORIEL_RETURN_IF_ERROR(MakeFolders(folder));
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  EventFile events;
  // TensorBoard reads files whose name has "tfevents", in the order of the names.
  events.path_ =
      JoinPath(folder, absl::StrCat("events.out.tfevents.", absl::ToUnixSeconds(absl::Now()), ".",
                                    host, ".", getpid()));
  events.file_.reset(std::fopen(events.path_.c_str(), "wxe"));
  if (events.file_ == nullptr) return ErrnoError(events.path_, "create the file of events", errno);
  tensorboard::Event version = EventOf(0);
  version.set_file_version("brain.Event:2");
  ORIEL_RETURN_IF_ERROR(events.Append(version.SerializeAsString()));
  return events;
}

absl::Status EventFile::StartAt(int64_t step) {
  tensorboard::Event start = EventOf(step);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return Append(start.SerializeAsString());
}

absl::Status EventFile::Write(int64_t step,
                              const std::vector<std::pair<std::string, double>>& scalars) {
  tensorboard::Event event = EventOf(step);
  for (const auto& [tag, value] : scalars) {
    tensorboard::Summary::Value* scalar = event.mutable_summary()->add_value();
    scalar->set_tag(tag);
    scalar->set_simple_value(static_cast<float>(value));
  }
  return Append(event.SerializeAsString());
}

// A record: the event's length, the masked sum of these 8 bytes, the event, its masked sum.
absl::Status EventFile::Append(const std::string& event) {
  std::string record;
  AppendNumber(static_cast<uint64_t>(event.size()), &record);
  AppendNumber(MaskedCrc(record), &record);
  record += event;
  AppendNumber(MaskedCrc(event), &record);
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() ||
      std::fflush(file_.get()) != 0) {
    return ErrnoError(path_, "write", errno);
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
