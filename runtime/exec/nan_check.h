// Finds the first instruction whose result is not a number.
#ifndef ORIEL_RUNTIME_EXEC_NAN_CHECK_H_
#define ORIEL_RUNTIME_EXEC_NAN_CHECK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/backend/backend.h"
#include "runtime/base/tensor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// The index of the first NaN of a tensor of floats. Nothing if there is none, or of other types.
std::optional<int64_t> FindNan(DType dtype, const void* data, int64_t count);

// Reads back what instructions leave. All three must outlive it.
class NanCheck {
 public:
  NanCheck(const plan::Program& program, Backend& backend, char* arena)
      : program_(program), backend_(backend), arena_(arena) {}

  // InvalidArgument, saying where, if a result of a launch, or of a collective that is done, has a
  // NaN. Waits for the instruction; in the run of this microbatch.
  absl::Status After(const plan::Instruction& instruction, int64_t microbatch);

 private:
  absl::Status Check(const plan::Buffer& buffer, int64_t microbatch);

  const plan::Program& program_;
  Backend& backend_;
  char* const arena_;
  std::vector<char> copy_;  // where the host does not see the memory
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_NAN_CHECK_H_
