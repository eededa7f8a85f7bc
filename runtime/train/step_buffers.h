// How the host fills the inputs of a segment and reads its outputs.
#ifndef ORIEL_RUNTIME_TRAIN_STEP_BUFFERS_H_
#define ORIEL_RUNTIME_TRAIN_STEP_BUFFERS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/host_access.h"
#include "runtime/train/data/batch_layout.h"
#include "runtime/train/data/loader.h"

namespace oriel::runtime {

// The input buffers of a rank.
class InputBuffers {
 public:
  // Inputs that the rank's program does not use are left out. InvalidArgument if a buffer is
  // not what the layout says.
  static absl::StatusOr<InputBuffers> Bind(const BatchLayout& layout, Executor& executor);
  absl::Status Fill(const Batch& batch, int64_t microbatch) const;

 private:
  struct Target {
    size_t input;  // of the layout
    HostAccess buffer;
  };
  std::vector<Target> targets_;
};

// A buffer that a program may do without (a scalar that its optimizer does not read, say).
absl::StatusOr<std::optional<HostAccess>> FindOptional(Executor& executor, plan::BufferKind kind,
                                                       const std::string& ref,
                                                       const std::string& slot = "");

// `status`, and behind its message the samples of the microbatch that it is about.
absl::Status AppendSamples(const absl::Status& status, const std::string& samples);

// The value of a buffer with one element of any dtype.
absl::StatusOr<double> ReadNumber(const HostAccess& buffer);
// Sets one; it must be f32.
absl::Status WriteNumber(const HostAccess& buffer, double value);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_STEP_BUFFERS_H_
