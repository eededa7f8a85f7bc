// Any text as the index of a checkpoint. What is read is written, and read again as the same.
#include <cstdint>
#include <string>

#include "runtime/train/checkpoint/checkpoint_index.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using oriel::fuzz::check;
  namespace rt = oriel::runtime;
  std::string text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<rt::CheckpointIndex> index = rt::ParseCheckpointIndex(text, "index.json");
  if (!index.ok()) {
    std::string message(index.status().message());
    check(message.rfind("index.json", 0) == 0, "the error names the file", message);
    return 0;
  }
  oriel::fuzz::accepted();
  absl::StatusOr<std::string> written = rt::EncodeCheckpointIndex(*index);
  check(written.ok(), "what was read can be written", written.status().ToString());
  absl::StatusOr<rt::CheckpointIndex> again = rt::ParseCheckpointIndex(*written, "index.json");
  check(again.ok(), "what was written can be read", again.status().ToString());
  check(rt::EncodeCheckpointIndex(*again).value() == *written, "writing is stable", *written);
  return 0;
}
