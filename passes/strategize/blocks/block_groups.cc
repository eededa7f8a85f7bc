#include "passes/strategize/blocks/block_groups.h"

#include <map>
#include <utility>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"

namespace oriel {

namespace {

using FactorCuts = std::map<int, RankRange>;

}  // namespace

OutsideUses::OutsideUses(llvm::ArrayRef<const BlockCandidate*> candidates) {
  llvm::DenseMap<mlir::Operation*, std::vector<const BlockCandidate*>> having;
  for (const BlockCandidate* candidate : candidates) {
    for (const auto& [op, cuts] : candidate->ops) having[op].push_back(candidate);
  }
  // By producer and reader: of each way in which the producer is cut.
  using Key = std::pair<mlir::Operation*, mlir::Operation*>;
  llvm::DenseMap<Key, llvm::SmallVector<std::pair<const FactorCuts*, int>, 1>> known;
  for (const BlockCandidate* candidate : candidates) {
    std::vector<int>& own = uses_[candidate];
    for (const BlockCandidate::OutsideUse& use : candidate->outside) {
      const FactorCuts& cuts = candidate->ops.find(use.producer)->second;
      auto& ways = known[{use.producer, use.user}];
      const auto* way = llvm::find_if(ways, [&](const auto& one) { return *one.first == cuts; });
      if (way != ways.end()) {
        own.push_back(way->second);
        continue;
      }
      ways.emplace_back(&cuts, count());
      own.push_back(count());
      std::vector<const BlockCandidate*>& readers = readers_.emplace_back();
      for (const BlockCandidate* reader : having.lookup(use.user)) {
        if (!reader->has(use.producer, cuts)) continue;
        readers.push_back(reader);
        readBy_[reader].push_back(own.back());
      }
    }
  }
}

int64_t elementsCutBy(llvm::ArrayRef<const BlockCandidate*> candidates) {
  llvm::DenseSet<mlir::Operation*> counted;
  int64_t sum = 0;
  for (const BlockCandidate* candidate : candidates) {
    for (const TensorBlock::Cut& cut : candidate->block.cuts) {
      ir::ParameterOp parameter = cut.parameter;
      if (counted.insert(parameter).second) sum += parameter.getTensorType().getNumElements();
    }
  }
  return sum;
}

BlockGroups::BlockGroups(llvm::ArrayRef<const BlockCandidate*> candidates,
                         const OutsideUses& uses) {
  llvm::DenseMap<const BlockCandidate*, unsigned> places;
  for (const BlockCandidate* candidate : candidates) {
    const auto place = static_cast<unsigned>(places.size());
    places[candidate] = place;
  }
  llvm::IntEqClasses classes(static_cast<unsigned>(candidates.size()));
  std::vector<bool> isJoined(uses.count());  // with its readers
  std::vector<unsigned> first(uses.count());
  for (const BlockCandidate* candidate : candidates) {
    const unsigned own = places.at(candidate);
    for (int use : uses.of(*candidate)) {
      if (isJoined[use]) {
        classes.join(own, first[use]);
        continue;
      }
      isJoined[use] = true;
      first[use] = own;
      for (const BlockCandidate* reader : uses.readers(use)) {
        auto place = places.find(reader);
        if (place != places.end() && !reader->isPlain()) classes.join(own, place->second);
      }
    }
  }
  classes.compress();
  members_.resize(classes.getNumClasses());
  for (const BlockCandidate* candidate : candidates) {
    const auto group = static_cast<int>(classes[places.at(candidate)]);
    groups_[candidate] = group;
    members_[group].push_back(candidate);
  }
  for (int group = 0; group < count(); ++group) elements_.push_back(elementsCutBy(members(group)));
}

int64_t BlockGroups::elements(const std::set<int>& groups) const {
  std::vector<const BlockCandidate*> all;
  for (int group : groups) llvm::append_range(all, members_[group]);
  return elementsCutBy(all);
}

}  // namespace oriel
