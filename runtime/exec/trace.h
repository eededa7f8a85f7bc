// What a rank does and when, recorded while it runs.
//
//   TraceRecorder recorder(/*first_step=*/1, /*last_step=*/3);
//   options.trace = &recorder;  // of the executor
//   recorder.BeginStep(1);
//   executor->Run("forward", 0);
//   for (const TraceSlice& slice : recorder.slices()) ..
#ifndef ORIEL_RUNTIME_EXEC_TRACE_H_
#define ORIEL_RUNTIME_EXEC_TRACE_H_

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace oriel::runtime {

// Nanoseconds of the steady clock.
inline int64_t TraceNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Indices are those of the rank's program, and of the plan's channels.
struct TraceSlice {
  enum class Kind : uint8_t {
    kSegment,     // a run of it
    kCollective,  // of several ranks
    kReceive,     // until what a Receive waits for has arrived
    kSent,        // until what was sent may be written over; before a run
    kWait,        // until a started collective is done
    kStarted,     // a started collective, on its communication stream: while the rank computes
  };
  Kind kind = Kind::kSegment;
  int segment = 0;  // that runs
  int64_t microbatch = 0;
  int instruction = -1;  // kCollective, kReceive, kWait, kStarted
  int channel = -1;      // kReceive, kSent
  int64_t step = 0;
  int64_t begin = 0;  // TraceNow()
  int64_t end = 0;
};

// Not thread-safe: of one rank.
class TraceRecorder {
 public:
  // Of steps first_step to last_step, both included.
  TraceRecorder(int64_t first_step, int64_t last_step) : first_(first_step), last_(last_step) {}

  void BeginStep(int64_t step) { step_ = step; }
  bool on() const { return step_ >= first_ && step_ <= last_; }
  void Add(TraceSlice slice) {
    slice.step = step_;
    slices_.push_back(slice);
  }
  // By their ends, but that a kStarted one comes with its kWait.
  const std::vector<TraceSlice>& slices() const { return slices_; }

 private:
  int64_t first_, last_;
  int64_t step_ = -1;
  std::vector<TraceSlice> slices_;
};

// Records the time from its making to its end.
class TraceSpan {
 public:
  // `recorder` may be null.
  TraceSpan(TraceRecorder* recorder, TraceSlice slice)
      : recorder_(recorder != nullptr && recorder->on() ? recorder : nullptr), slice_(slice) {
    if (recorder_ != nullptr) slice_.begin = TraceNow();
  }
  ~TraceSpan() {
    if (recorder_ == nullptr) return;
    slice_.end = TraceNow();
    recorder_->Add(slice_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  TraceRecorder* recorder_;
  TraceSlice slice_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_TRACE_H_
