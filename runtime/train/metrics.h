// Metrics of each step as JSON lines.
#ifndef ORIEL_RUNTIME_TRAIN_METRICS_H_
#define ORIEL_RUNTIME_TRAIN_METRICS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

struct StepMetrics {
  int64_t step = 0;                 // from 1
  double loss = 0;                  // mean over the valid tokens of the global batch
  std::optional<double> grad_norm;  // global, before clipping
  double learning_rate = 0;
  double tokens_per_second = 0;  // positions of the labels, padding included, over all ranks
  double step_ms = 0;            // wall time, waiting for data included
};

// {"step":1,"loss":2.5,"grad_norm":1.25,"lr":0.001,"tokens_per_second":1000.0,"step_ms":8.0}
// Numbers have all their digits, so that runs can be compared bit by bit; what is not finite
// is null.
std::string EncodeMetrics(const StepMetrics& metrics);

// As TensorBoard shows them: {"train/loss", 2.5}, .., those that are there.
std::vector<std::pair<std::string, double>> ScalarsOf(const StepMetrics& metrics);

class MetricsFile {
 public:
  // InvalidArgument where a file is there that no run has written: it stays as it is.
  // A run from the start replaces the file; one that resumes after `resumed_step` keeps the
  // lines up to that step.
  static absl::StatusOr<MetricsFile> Open(const std::string& path,
                                          std::optional<int64_t> resumed_step);
  // The line is with the system when this returns.
  absl::Status Write(const StepMetrics& metrics);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_METRICS_H_
