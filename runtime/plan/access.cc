#include "runtime/plan/access.h"

namespace oriel::runtime {

Access AccessOf(const plan::Instruction& instruction) {
  Access access;
  switch (instruction.kind_case()) {
    case plan::Instruction::kLaunch:
      access.reads.assign(instruction.launch().operands().begin(),
                          instruction.launch().operands().end());
      access.writes.assign(instruction.launch().results().begin(),
                           instruction.launch().results().end());
      break;
    case plan::Instruction::kCollective:
      access.reads.assign(instruction.collective().operands().begin(),
                          instruction.collective().operands().end());
      access.writes.assign(instruction.collective().results().begin(),
                           instruction.collective().results().end());
      break;
    case plan::Instruction::kCopy:
      access.reads = {instruction.copy().source()};
      access.writes = {instruction.copy().target()};
      break;
    case plan::Instruction::kSlice:
      access.reads = {instruction.slice().source()};
      access.writes = {instruction.slice().target()};
      break;
    case plan::Instruction::kSend:
      access.reads = {instruction.send().buffer()};
      break;
    case plan::Instruction::kReceive:
      access.writes = {instruction.receive().buffer()};
      break;
    case plan::Instruction::kWait:
    case plan::Instruction::KIND_NOT_SET:
      break;
  }
  return access;
}

}  // namespace oriel::runtime
