// Where the time of the steps goes.
#ifndef ORIEL_RUNTIME_TRAIN_STEP_PROFILE_H_
#define ORIEL_RUNTIME_TRAIN_STEP_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace oriel::runtime {

// Sums wall time by phase: "data", then the kinds of segments.
class StepProfile {
 public:
  using Clock = std::chrono::steady_clock;

  // Adds the time since the last call (or Start) to a phase.
  void Start() { last_ = Clock::now(); }
  void Lap(const std::string& phase) {
    const Clock::time_point now = Clock::now();
    seconds_[phase] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  void CountStep() { ++steps_; }
  // "phase, ms per step, share" lines.
  std::string Report() const;

 private:
  Clock::time_point last_;
  std::map<std::string, double> seconds_;
  int64_t steps_ = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_STEP_PROFILE_H_
