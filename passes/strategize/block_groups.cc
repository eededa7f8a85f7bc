#include "passes/strategize/block_groups.h"

#include <iterator>
#include <map>
#include <string>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"

namespace oriel {

BlockReaders::BlockReaders(llvm::ArrayRef<const BlockCandidate*> candidates) {
  for (const BlockCandidate* candidate : candidates) {
    for (const auto& [op, cuts] : candidate->ops) having_[op].push_back(candidate);
  }
}

std::vector<const BlockCandidate*> BlockReaders::of(const BlockCandidate& candidate,
                                                    const BlockCandidate::OutsideUse& use) const {
  std::vector<const BlockCandidate*> readers;
  auto found = having_.find(use.user);
  if (found == having_.end()) return readers;
  const std::map<int, RankRange>& cuts = candidate.ops.find(use.producer)->second;
  llvm::copy_if(found->second, std::back_inserter(readers),
                [&](const BlockCandidate* other) { return other->has(use.producer, cuts); });
  return readers;
}

int64_t elementsCutBy(llvm::ArrayRef<const BlockCandidate*> candidates) {
  std::map<std::string, int64_t> ofParameters;
  for (const BlockCandidate* candidate : candidates) {
    for (const TensorBlock::Cut& cut : candidate->block.cuts) {
      ir::ParameterOp parameter = cut.parameter;
      ofParameters[parameter.getSymName().str()] = parameter.getTensorType().getNumElements();
    }
  }
  int64_t sum = 0;
  for (const auto& [name, elements] : ofParameters) sum += elements;
  return sum;
}

BlockGroups::BlockGroups(llvm::ArrayRef<const BlockCandidate*> candidates) {
  const BlockReaders readers(candidates);
  llvm::EquivalenceClasses<const BlockCandidate*> classes;
  for (const BlockCandidate* candidate : candidates) {
    classes.insert(candidate);
    for (const BlockCandidate::OutsideUse& use : candidate->outside) {
      for (const BlockCandidate* other : readers.of(*candidate, use)) {
        if (!other->isPlain()) classes.unionSets(candidate, other);
      }
    }
  }
  llvm::DenseMap<const BlockCandidate*, int> ofLeader;
  for (const BlockCandidate* candidate : candidates) {
    auto [leader, isNew] = ofLeader.try_emplace(classes.getLeaderValue(candidate), count());
    if (isNew) members_.emplace_back();
    groups_[candidate] = leader->second;
    members_[leader->second].push_back(candidate);
  }
  for (int group = 0; group < count(); ++group) {
    elements_.push_back(elements(std::set<int>{group}));
  }
}

int64_t BlockGroups::elements(const std::set<int>& groups) const {
  std::vector<const BlockCandidate*> all;
  for (int group : groups) llvm::append_range(all, members_[group]);
  return elementsCutBy(all);
}

}  // namespace oriel
