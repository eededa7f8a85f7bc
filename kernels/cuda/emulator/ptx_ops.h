// What instructions of PTX do, by the "PTX ISA" manual, version 9.0.
//
// Those that LLVM writes for generated kernels; others are refused by name. Arithmetic is the
// host's: sums, products, quotients and roots are rounded as IEEE 754 has it, on both.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_PTX_OPS_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_PTX_OPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/emulator/ptx_text.h"

namespace oriel::kernels::cuda::emulator {

// What a thread has. A register, a constant and a special register is a slot: its low bytes are
// the value, the others zero.
struct PtxThread {
  uint64_t* slots;
  char* shared;  // the block's
  size_t shared_bytes;
  const char* const* parameters;  // the address of each
};

// Where names are.
class PtxNames {
 public:
  virtual ~PtxNames() = default;
  // The slot of a register, or of a new one with these bits; InvalidArgument for an unknown name.
  // Of a variable in shared memory: of its address there.
  virtual absl::StatusOr<int> Slot(const PtxOperand& operand) = 0;
  // The number of a parameter, and the bytes that it has.
  virtual absl::StatusOr<int> Parameter(const std::string& name, size_t* bytes) const = 0;
};

using PtxStep = std::function<void(PtxThread&)>;

// What the instruction does, but where it is a jump or a return. Unimplemented, naming it, if it is
// not emulated.
absl::StatusOr<PtxStep> MakePtxStep(const PtxInstruction& instruction, PtxNames& names);

}  // namespace oriel::kernels::cuda::emulator

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_PTX_OPS_H_
