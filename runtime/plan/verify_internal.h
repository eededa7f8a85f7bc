// The parts of the plan verifier. Each reports to one list of problems.
#ifndef ORIEL_RUNTIME_PLAN_VERIFY_INTERNAL_H_
#define ORIEL_RUNTIME_PLAN_VERIFY_INTERNAL_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// What has been found so far. A repeated message counts once.
class Problems {
 public:
  template <typename... Parts>
  void Add(const Parts&... parts) {
    if (full()) return;
    std::string message = absl::StrCat(parts...);
    if (seen_.insert(message).second) messages_.push_back(std::move(message));
  }
  bool empty() const { return messages_.empty(); }
  // Nothing more is kept: the caller may stop.
  bool full() const { return messages_.size() > kMax; }
  absl::Status ToStatus() const;

 private:
  static constexpr size_t kMax = 20;
  std::set<std::string> seen_;
  std::vector<std::string> messages_;
};

// "program 0, segment update, instruction 3 (adamw)"
std::string InstructionPath(const plan::Plan& plan, int program, int segment, int instruction);
// "gradient 'w'"; the name where the buffer has no reference.
std::string BufferName(const plan::Buffer& buffer);

// Whether a launch only fills its results with a number, and whether that is zero.
bool IsFill(const plan::Launch& launch);
bool IsZeroFill(const plan::Launch& launch);

// The grid that holds a program's ranks, or null.
const plan::Grid* GridOf(const plan::Plan& plan, const plan::Program& program);

// Whether the segments are those of pipeline stages, as they are on several grids.
bool HasStages(const plan::Plan& plan);

// The kernel that runs code of the plan.
inline constexpr char kGeneratedKernel[] = "generated";

// What does not depend on a program's instructions.
void VerifyTables(const plan::Plan& plan, Problems& problems);
// Buffers, indices and schedule of each program. The rest assumes that the first two found
// nothing.
void VerifyPrograms(const plan::Plan& plan, Problems& problems);
// Of these; part of VerifyPrograms.
void VerifySchedules(const plan::Plan& plan, Problems& problems);
// Values that the update of a program moves; each has a number within the program.
struct UpdateValues {
  std::map<std::string, int64_t> written;  // the new one of each parameter
  std::map<int, int64_t> sent;             // by channel
  std::map<int64_t, int> received;         // over which channel
};
UpdateValues VerifyMemory(const plan::Plan& plan, int program, Problems& problems);
// `values` are of each program.
void VerifyTiedParameters(const plan::Plan& plan, const std::vector<UpdateValues>& values,
                          Problems& problems);
void VerifyTraining(const plan::Plan& plan, int program, Problems& problems);
void VerifySharding(const plan::Plan& plan, Problems& problems);
void VerifyCollectives(const plan::Plan& plan, Problems& problems);
void VerifyTransfers(const plan::Plan& plan, Problems& problems);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_VERIFY_INTERNAL_H_
