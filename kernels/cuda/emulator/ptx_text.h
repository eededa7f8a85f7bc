// PTX as text: what LLVM writes for generated kernels, taken apart and not understood.
//
// ptx_ops.h gives instructions their meaning, and ptx.h runs them.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_PTX_TEXT_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_PTX_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace oriel::kernels::cuda::emulator {

struct PtxOperand {
  enum class Kind : uint8_t {
    kName,     // a register, a variable or a label
    kNumber,   // its bits
    kAddress,  // [name + number], or [number] without a name
    kList,     // {..}
  };
  Kind kind = Kind::kName;
  std::string name;
  uint64_t number = 0;
  std::vector<PtxOperand> list;
};

struct PtxInstruction {
  int line = 0;
  std::string guard;  // a predicate's register; empty if it runs always
  bool guard_negated = false;
  std::vector<std::string> words;  // "ld.global.v4.b32" is four
  std::vector<PtxOperand> operands;
};

struct PtxVariable {
  std::string name;
  size_t alignment = 1, bytes = 0;
};

struct PtxEntry {
  std::string name;
  unsigned max_threads = 1024;  // of a block
  std::vector<PtxVariable> parameters;
  std::vector<PtxVariable> shared;
  std::vector<std::string> registers;
  std::map<std::string, size_t> labels;  // the instruction that they stand before
  std::vector<PtxInstruction> instructions;
};

// InvalidArgument, naming the line, for what is no PTX, and for parts of it that generated kernels
// don't have: functions, memory of the module, debug information.
absl::StatusOr<std::vector<PtxEntry>> ReadPtx(absl::string_view text);

// The bytes of a type ("b32", "pred"); 0 if it is none.
size_t PtxTypeBytes(absl::string_view type);

}  // namespace oriel::kernels::cuda::emulator

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_PTX_TEXT_H_
