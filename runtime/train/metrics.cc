#include "runtime/train/metrics.h"

#include <cerrno>
#include <optional>
#include <sstream>

#include "runtime/base/status.h"
#include "runtime/train/files.h"
#include "runtime/train/json_util.h"

namespace oriel::runtime {
namespace {

// The lines of an earlier run up to a step. A torn last line is dropped.
std::string KeptLines(const std::string& text, int64_t last_step) {
  std::istringstream lines(text);
  std::string line, kept;
  while (std::getline(lines, line)) {
    std::optional<nlohmann::json> json = ParseJsonObject(line.data(), line.data() + line.size());
    std::optional<int64_t> step = json ? AsSize(Member(*json, "step")) : std::nullopt;
    if (step && *step <= last_step) kept += line + "\n";
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
  std::string kept;
  if (resumed_step) {
    absl::StatusOr<std::string> text = ReadText(path);
    if (text.ok()) kept = KeptLines(*text, *resumed_step);
  }
  MetricsFile metrics;
  metrics.path_ = path;
  metrics.file_.reset(std::fopen(path.c_str(), "we"));
  if (metrics.file_ == nullptr) return ErrnoError(path, "create the metrics file", errno);
  if (std::fputs(kept.c_str(), metrics.file_.get()) == EOF) {
    return ErrnoError(path, "write", errno);
  }
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
