// Memory that a program's buffers have for themselves: for the memory verifier.
#ifndef ORIEL_RUNTIME_PLAN_OWN_MEMORY_H_
#define ORIEL_RUNTIME_PLAN_OWN_MEMORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/verify_contents.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {

class OwnMemory {
 public:
  // Of a copy of a buffer.
  struct Owned {
    int64_t end;
    int buffer;
  };

  // `rings` are the program's, and stay as long.
  OwnMemory(const plan::Program& program, const Rings& rings) : program_(program), rings_(rings) {}

  // Gives each buffer its memory that has it for itself. Others in it have to be views of it. False
  // if a problem was found; `index` is the program's, for the message.
  bool Place(int index, Problems& problems);

  // By offset; disjoint.
  const std::map<int64_t, Owned>& owned() const { return owned_; }
  // The buffer whose memory it is a view of, perhaps itself, or -1.
  int OwnerOf(int buffer) const { return owners_[buffer]; }

 private:
  std::string Name(int index) const { return BufferName(program_.buffers(index)); }
  std::optional<int> OverlapOf(const Range& range) const;
  std::optional<int> OverlapOf(int index) const;
  bool MayShare(int a, int b) const;
  // What is wrong with it, or nothing.
  std::string PlaceCopies(int index);

  const plan::Program& program_;
  const Rings& rings_;
  std::map<int64_t, Owned> owned_;
  std::vector<int> owners_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_OWN_MEMORY_H_
