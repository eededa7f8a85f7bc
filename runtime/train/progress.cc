#include "runtime/train/progress.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace oriel::runtime {
namespace {

std::string FormatRate(double rate) {
  if (rate >= 1e6) return absl::StrFormat("%.2fM", rate / 1e6);
  if (rate >= 1e3) return absl::StrFormat("%.1fk", rate / 1e3);
  return absl::StrFormat("%.0f", rate);
}

std::string FormatDuration(double seconds) {
  const int64_t whole = std::llround(std::max(seconds, 0.0));
  if (whole >= 3600) {
    return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
}

}  // namespace

std::string FormatProgress(const StepMetrics& metrics, int64_t total_steps, double eta_seconds) {
  return absl::StrFormat("step %d/%d  loss %.4f  lr %.2e  %s tok/s  ETA %s", metrics.step,
                         total_steps, metrics.loss, metrics.learning_rate,
                         FormatRate(metrics.tokens_per_second), FormatDuration(eta_seconds));
}

int64_t EvaluationsLeft(int64_t step, int64_t total_steps, int64_t every) {
  return every > 0 ? (total_steps - 1) / every - (step - 1) / every : 0;
}

void Progress::Update(const StepMetrics& metrics) {
  // The first step pays for caches and page faults; a moving mean forgets it.
  mean_step_ms_ =
      mean_step_ms_ == 0 ? metrics.step_ms : 0.9 * mean_step_ms_ + 0.1 * metrics.step_ms;
  const bool first = last_shown_ == Clock::time_point();
  const auto now = Clock::now();
  const auto interval = terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10);
  if (!first && metrics.step != total_steps_ && now - last_shown_ < interval) return;
  last_shown_ = now;
  const double eta = static_cast<double>(total_steps_ - metrics.step) * mean_step_ms_ / 1000 +
                     static_cast<double>(EvaluationsLeft(metrics.step, total_steps_, eval_every_)) *
                         evaluation_seconds_;
  const std::string line = FormatProgress(metrics, total_steps_, eta);
  // \x1b[K erases what a longer line before left behind.
  std::fputs(
      terminal_ ? absl::StrCat("\r", line, "\x1b[K").c_str() : absl::StrCat(line, "\n").c_str(),
      stderr);
  std::fflush(stderr);
  open_ = terminal_;
}

void Progress::Clear() {
  if (!open_) return;
  std::fputs("\n", stderr);
  open_ = false;
}

}  // namespace oriel::runtime
