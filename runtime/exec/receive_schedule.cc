#include "runtime/exec/receive_schedule.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/plan/access.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

// Of a segment, as far as copies of buffers matter.
struct Outline {
  struct Ring {
    int64_t offset;  // of its first copy, which only views of it share
    int64_t copies;
    friend bool operator<(const Ring& a, const Ring& b) { return a.offset < b.offset; }
  };
  struct Receive {
    int instruction;
    Ring ring;
  };
  int index = 0;
  std::set<Ring> rings;  // that it uses, of those that anything is received in
  std::vector<Receive> receives;
};

Outline::Ring RingOf(const plan::Program& program, int buffer) {
  return {program.buffers(buffer).offset(), CopiesOf(program.buffers(buffer))};
}

std::set<Outline::Ring> ReceivedRings(const plan::Program& program) {
  std::set<Outline::Ring> rings;
  for (const auto& segment : program.segments()) {
    for (const auto& instruction : segment.instructions()) {
      if (instruction.has_receive()) rings.insert(RingOf(program, instruction.receive().buffer()));
    }
  }
  return rings;
}

Outline OutlineOf(const plan::Program& program, int index,
                  const std::set<Outline::Ring>& received) {
  Outline outline;
  outline.index = index;
  const plan::Segment& segment = program.segments(index);
  for (int i = 0; i < segment.instructions_size(); ++i) {
    const Access access = AccessOf(segment.instructions(i));
    for (const auto* buffers : {&access.reads, &access.writes}) {
      for (const int buffer : *buffers) {
        const Outline::Ring ring = RingOf(program, buffer);
        if (received.count(ring) > 0) outline.rings.insert(ring);
      }
    }
    if (segment.instructions(i).has_receive()) {
      outline.receives.push_back({i, RingOf(program, segment.instructions(i).receive().buffer())});
    }
  }
  return outline;
}

}  // namespace

std::vector<std::vector<ScheduledReceive>> ReceiveSchedule(const plan::Program& program) {
  const std::set<Outline::Ring> received = ReceivedRings(program);
  if (received.empty()) return {};
  std::map<std::string, Outline> outlines;
  for (int i = 0; i < program.segments_size(); ++i) {
    outlines[program.segments(i).name()] = OutlineOf(program, i, received);
  }
  std::vector<std::vector<ScheduledReceive>> schedule(program.schedule_size() + 1);
  std::map<std::pair<Outline::Ring, int64_t>, int> free_after;  // of a copy: so many runs
  bool receives = false;
  for (int run = 0; run < program.schedule_size(); ++run) {
    const int64_t microbatch = program.schedule(run).microbatch();
    const Outline& outline = outlines[program.schedule(run).segment()];
    for (const auto& [instruction, ring] : outline.receives) {
      const auto free = free_after.find({ring, microbatch % ring.copies});
      schedule[free == free_after.end() ? 0 : free->second].push_back(
          {outline.index, instruction, microbatch});
      receives = true;
    }
    for (const Outline::Ring& ring : outline.rings) {
      free_after[{ring, microbatch % ring.copies}] = run + 1;
    }
  }
  if (!receives) schedule.clear();
  return schedule;
}

}  // namespace oriel::runtime
