#include "runtime/train/metrics.h"

#include <unistd.h>

#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/json_util.h"

namespace oriel::runtime {
namespace {

// Of a line of metrics.
std::optional<int64_t> StepOf(const char* begin, const char* end) {
  const std::optional<nlohmann::json> json = ParseJsonObject(begin, end);
  return json ? AsSize(Member(*json, "step")) : std::nullopt;
}

// Bytes of the lines of an earlier run up to a step. They end at a torn line.
size_t KeptBytes(const std::string& text, int64_t last_step) {
  size_t kept = 0;
  for (size_t end; (end = text.find('\n', kept)) != std::string::npos; kept = end + 1) {
    const std::optional<int64_t> step = StepOf(text.data() + kept, text.data() + end);
    if (!step || *step > last_step) break;
  }
  return kept;
}

// Whether an earlier run may have written it: by its first line, which may be torn.
bool MayBeMetrics(const std::string& text) {
  const size_t end = text.find('\n');
  if (end != std::string::npos) return StepOf(text.data(), text.data() + end).has_value();
  return text.empty() || text.front() == '{';
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

std::vector<std::pair<std::string, double>> ScalarsOf(const StepMetrics& metrics) {
  std::vector<std::pair<std::string, double>> scalars = {
      {"train/loss", metrics.loss},
      {"train/lr", metrics.learning_rate},
      {"train/tokens_per_second", metrics.tokens_per_second},
      {"train/step_ms", metrics.step_ms}};
  if (metrics.grad_norm) scalars.emplace_back("train/grad_norm", *metrics.grad_norm);
  return scalars;
}

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::string& path,
                                              std::optional<int64_t> resumed_step) {
  // What is kept stays where it is, so that a run that is killed here loses none of it.
  bool appends = false;
  const absl::StatusOr<std::string> text = ReadText(path);  // not of a device or a pipe
  if (text.ok() && !MayBeMetrics(*text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is there, and holds something else than metrics; give another path"));
  }
  if (resumed_step) {
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
