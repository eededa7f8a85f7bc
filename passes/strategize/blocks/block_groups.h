// Which candidates for tensor blocks read what others make, and which can only be there together.
#ifndef ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_GROUPS_H_
#define ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_GROUPS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/strategize/blocks/block_candidate.h"

namespace oriel {

// The outside uses of candidates, numbered: those of the same pieces by the same reader are one.
// With a condition that all layers take there are as many as the square of the layers.
class OutsideUses {
 public:
  explicit OutsideUses(llvm::ArrayRef<const BlockCandidate*> candidates);

  int count() const { return static_cast<int>(readers_.size()); }
  // Those of a candidate, in the order of its `outside`.
  llvm::ArrayRef<int> of(const BlockCandidate& candidate) const { return uses_.at(&candidate); }
  // The candidates that take the pieces.
  llvm::ArrayRef<const BlockCandidate*> readers(int use) const { return readers_[use]; }
  // The uses that a candidate is a reader of.
  llvm::ArrayRef<int> readBy(const BlockCandidate& candidate) const {
    auto found = readBy_.find(&candidate);
    return found == readBy_.end() ? llvm::ArrayRef<int>() : llvm::ArrayRef<int>(found->second);
  }

 private:
  llvm::DenseMap<const BlockCandidate*, std::vector<int>> uses_, readBy_;
  std::vector<std::vector<const BlockCandidate*>> readers_;
};

// Elements of the parameters that candidates cut, each counted once.
int64_t elementsCutBy(llvm::ArrayRef<const BlockCandidate*> candidates);

// Candidates, each with those that it must have beside it: all layers that take their scales from
// one small network, say (Peebles & Xie 2023, section 3.2). Those that split by themselves are
// groups of their own.
class BlockGroups {
 public:
  // Of some of the candidates that `uses` knows.
  BlockGroups(llvm::ArrayRef<const BlockCandidate*> candidates, const OutsideUses& uses);

  int count() const { return static_cast<int>(members_.size()); }
  int of(const BlockCandidate& candidate) const { return groups_.at(&candidate); }
  llvm::ArrayRef<const BlockCandidate*> members(int group) const { return members_[group]; }

  // Elements of the parameters that a group cuts, or some of these groups.
  int64_t elements(int group) const { return elements_[group]; }
  int64_t elements(const std::set<int>& groups) const;

 private:
  llvm::DenseMap<const BlockCandidate*, int> groups_;
  std::vector<std::vector<const BlockCandidate*>> members_;
  std::vector<int64_t> elements_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_GROUPS_H_
