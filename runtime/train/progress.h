// What a person sees of a running job.
#ifndef ORIEL_RUNTIME_TRAIN_PROGRESS_H_
#define ORIEL_RUNTIME_TRAIN_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/train/metrics.h"

namespace oriel::runtime {

// "step 120/1000  loss 1.2345  lr 3.00e-04  12.3k tok/s  ETA 2:05"
std::string FormatProgress(const StepMetrics& metrics, int64_t total_steps, double eta_seconds);

// When a step from 1 on has just ended: its own, and those of later steps but the last one.
int64_t EvaluationsLeft(int64_t step, int64_t total_steps, int64_t every);

// On a terminal one line on stderr that is written over; elsewhere a line at the first and the
// last step and every 10 s between.
class Progress {
 public:
  // There are evaluations after every `eval_every` steps (0: none) but the last one.
  Progress(int64_t total_steps, int64_t eval_every, bool terminal)
      : total_steps_(total_steps), eval_every_(eval_every), terminal_(terminal) {}
  ~Progress() { Clear(); }
  void Update(const StepMetrics& metrics);
  // An evaluation took so long: the time left counts those to come.
  void Evaluated(double seconds) { evaluation_seconds_ = seconds; }
  // Ends the line, so that other text can follow.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  const int64_t total_steps_, eval_every_;
  const bool terminal_;
  bool open_ = false;  // a line without its end is on the terminal
  double mean_step_ms_ = 0, evaluation_seconds_ = 0;
  Clock::time_point last_shown_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_PROGRESS_H_
