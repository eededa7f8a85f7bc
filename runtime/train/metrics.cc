#include "runtime/train/metrics.h"

#include <unistd.h>

#include <cerrno>
#include <optional>

#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/json_util.h"

namespace oriel::runtime {
namespace {

// Bytes of the lines of an earlier run up to a step. They end at a torn line.
size_t KeptBytes(const std::string& text, int64_t last_step) {
  size_t kept = 0;
  for (size_t end; (end = text.find('\n', kept)) != std::string::npos; kept = end + 1) {
    std::optional<nlohmann::json> json = ParseJsonObject(text.data() + kept, text.data() + end);
    std::optional<int64_t> step = json ? AsSize(Member(*json, "step")) : std::nullopt;
    if (!step || *step > last_step) break;
  }
  return kept;
}

}  // namespace

std::string EncodeMetrics(const StepMetrics& metrics) {
  nlohmann::ordered_json json = {{"step", metrics.step},
                                 {"loss", metrics.loss},
                                 {"grad_norm", nullptr},
                                 {"lr", metrics.learning_rate},
                                 {"tokens_per_second", metrics.tokens_per_second},
                                 {"step_ms", metrics.step_ms}};
  if (metrics.grad_norm) json["grad_norm"] = *metrics.grad_norm;
  return json.dump();
}

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::string& path,
                                              std::optional<int64_t> resumed_step) {
  // What is kept stays where it is, so that a run that is killed here loses none of it.
  bool appends = false;
  if (resumed_step) {
    absl::StatusOr<std::string> text = ReadText(path);
    appends = text.ok();
    if (appends && truncate(path.c_str(), KeptBytes(*text, *resumed_step)) != 0) {
      return ErrnoError(path, "truncate", errno);
    }
  }
  MetricsFile metrics;
  metrics.path_ = path;
  metrics.file_.reset(std::fopen(path.c_str(), appends ? "ae" : "we"));
  if (metrics.file_ == nullptr) return ErrnoError(path, "create the metrics file", errno);
  return metrics;
}

absl::Status MetricsFile::Write(const StepMetrics& metrics) {
  std::string line = EncodeMetrics(metrics) + "\n";
  if (std::fputs(line.c_str(), file_.get()) == EOF || std::fflush(file_.get()) != 0) {
    return ErrnoError(path_, "write", errno);
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
