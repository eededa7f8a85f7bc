// Kernels that the compiler has made for a plan: the kernel "generated".
//
// A launch has the operands and results of the plan's GeneratedKernel; its attributes are what the
// executor takes from there:
//
//   string name                   also of the function in PTX
//   int units, unit_elements,
//       block_units,
//       thread_elements           see plan.proto; one thread_elements at least
//   string image.TARGET           code, for each target
//   int entry.TARGET
//
// Each result element is assigned, after its operands have been read (of a unit, where results have
// one element for each); a result may be the same buffer as an operand of its type where the
// compiler lets it. The code is of the compiler's choice: it runs with all that the process may do
// (docs/generated_kernels.md).
#ifndef ORIEL_KERNELS_GENERATED_GENERATED_H_
#define ORIEL_KERNELS_GENERATED_GENERATED_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// Threads of a block on CUDA, which the code knows.
inline constexpr int kGeneratedThreads = 256;

// Machine code in memory that can run, and only that.
class HostCode {
 public:
  // Computes units [begin, end).
  using Function = void (*)(const void* const* operands, void* const* results, int64_t begin,
                            int64_t end);

  // Equal code is loaded once as long as it is used. InvalidArgument for an entry beyond the code;
  // FailedPrecondition where the system runs nothing that a program has written.
  static absl::StatusOr<std::shared_ptr<const HostCode>> Load(const std::string& code,
                                                              int64_t entry);
  ~HostCode();
  HostCode(const HostCode&) = delete;
  HostCode& operator=(const HostCode&) = delete;

  Function function() const { return function_; }

 private:
  HostCode(void* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}

  void* const memory_;
  const size_t bytes_;
  Function function_ = nullptr;
};

// What a launch says of itself; InvalidArgument if the units are not all of each result.
struct GeneratedUnits {
  int64_t units = 0, unit_elements = 0;
  int64_t block_units = 0;  // 0: blocks of CUDA are of elements
  int64_t thread_elements = 1;
};
absl::StatusOr<GeneratedUnits> UnitsOf(const KernelSpec& spec);

// The code for this processor, the fastest that it runs; Unimplemented, naming what there is, if
// there is none.
absl::StatusOr<std::shared_ptr<const HostCode>> LoadForThisProcessor(const KernelSpec& spec);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_GENERATED_GENERATED_H_
