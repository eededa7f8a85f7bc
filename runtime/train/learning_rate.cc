#include "runtime/train/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace oriel::runtime {

double LearningRateAt(const plan::LearningRate& schedule, int64_t step) {
  const double peak = schedule.peak();
  const int64_t warmup = schedule.warmup_steps();
  if (step <= warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  const int64_t held = schedule.hold_steps();
  if (step - warmup <= held) return peak;
  const int64_t decay = schedule.total_steps() - warmup - held;
  // Without room for a decay, the rate ends right behind the peak.
  const double t =
      decay > 0
          ? std::min(1.0, static_cast<double>(step - warmup - held) / static_cast<double>(decay))
          : 1.0;
  const double ratio = schedule.final_ratio();
  switch (schedule.kind()) {
    case plan::LearningRate::LINEAR:
      return peak * (1 - (1 - ratio) * t);
    case plan::LearningRate::COSINE:
      return peak * (ratio + (1 - ratio) * 0.5 * (1 + std::cos(M_PI * t)));
    default:
      return peak;
  }
}

}  // namespace oriel::runtime
