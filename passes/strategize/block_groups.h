// Which candidates for tensor blocks can only be there together.
#ifndef ORIEL_PASSES_STRATEGIZE_BLOCK_GROUPS_H_
#define ORIEL_PASSES_STRATEGIZE_BLOCK_GROUPS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/strategize/block_candidate.h"

namespace oriel {

// The candidates that have an op which another one makes pieces for.
class BlockReaders {
 public:
  explicit BlockReaders(llvm::ArrayRef<const BlockCandidate*> candidates);

  // Those that take what `candidate` makes in pieces, in these pieces, for this use of it.
  std::vector<const BlockCandidate*> of(const BlockCandidate& candidate,
                                        const BlockCandidate::OutsideUse& use) const;

 private:
  llvm::DenseMap<mlir::Operation*, std::vector<const BlockCandidate*>> having_;
};

// Elements of the parameters that candidates cut, each counted once.
int64_t elementsCutBy(llvm::ArrayRef<const BlockCandidate*> candidates);

// Candidates, each with those that it must have beside it: all layers that take their scales from
// one small network, say (Peebles & Xie 2023, section 3.2). Those that split by themselves are
// groups of their own.
class BlockGroups {
 public:
  explicit BlockGroups(llvm::ArrayRef<const BlockCandidate*> candidates);

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

#endif  // ORIEL_PASSES_STRATEGIZE_BLOCK_GROUPS_H_
