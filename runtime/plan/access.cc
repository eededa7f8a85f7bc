#include "runtime/plan/access.h"

#include <algorithm>
#include <set>
#include <string>

#include "runtime/plan/plan_types.h"

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

SegmentAccesses AccessesOf(const plan::Program& program) {
  SegmentAccesses accesses;
  for (const auto& segment : program.segments()) {
    std::vector<Access>& of_segment = accesses.emplace_back();
    for (const auto& instruction : segment.instructions()) {
      of_segment.push_back(AccessOf(instruction));
    }
  }
  return accesses;
}

const plan::Buffer& BeforeUpdate(const plan::Program& program, const plan::Buffer& buffer) {
  std::set<std::string> seen;
  for (int i = program.schedule_size(); i-- > 0;) {
    const std::string& name = program.schedule(i).segment();
    if (name == kUpdateSegment || !seen.insert(name).second) continue;
    const auto segment = std::find_if(program.segments().begin(), program.segments().end(),
                                      [&](const plan::Segment& one) { return one.name() == name; });
    for (int j = segment == program.segments().end() ? 0 : segment->instructions_size(); j-- > 0;) {
      for (const int write : AccessOf(segment->instructions(j)).writes) {
        const plan::Buffer& view = program.buffers(write);
        if (view.offset() != buffer.offset() ||
            CheckedBytes(view.local()) != CheckedBytes(buffer.local())) {
          continue;
        }
        // Of another shape it is what was reshaped in place, whose dimensions are others.
        const bool isOfItsShape =
            std::equal(view.global_shape().begin(), view.global_shape().end(),
                       buffer.global_shape().begin(), buffer.global_shape().end());
        return isOfItsShape ? view : buffer;
      }
    }
  }
  return buffer;
}

}  // namespace oriel::runtime
