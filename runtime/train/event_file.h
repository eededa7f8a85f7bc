// Scalars for TensorBoard, in a file of events.
//
//   ORIEL_ASSIGN_OR_RETURN(EventFile events, EventFile::Create("runs/a"));
//   ORIEL_RETURN_IF_ERROR(events.Write(step, {{"train/loss", loss}}));
#ifndef ORIEL_RUNTIME_TRAIN_EVENT_FILE_H_
#define ORIEL_RUNTIME_TRAIN_EVENT_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

class EventFile {
 public:
  // A new file in FOLDER, which is made if it is not there.
  static absl::StatusOr<EventFile> Create(const std::string& folder);
  // What other files in the folder have from this step on no longer counts: this run makes it anew.
  absl::Status StartAt(int64_t step);
  // The values are with the system when this returns.
  absl::Status Write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  absl::Status Append(const std::string& event);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// CRC-32C (Castagnoli), as in RFC 3720, appendix B.4.
uint32_t Crc32c(std::string_view bytes);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_EVENT_FILE_H_
