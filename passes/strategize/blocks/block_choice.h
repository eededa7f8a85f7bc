// Which of the candidates for tensor blocks a model is split by.
#ifndef ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_CHOICE_H_
#define ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_CHOICE_H_

#include <string>
#include <utility>
#include <vector>

#include "ir/oriel/oriel.h"
#include "passes/strategize/blocks/block_candidate.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

// The candidates for a factor of a reduction, by numbers of ranks: one of them at most is chosen.
struct BlockAlternatives {
  mlir::Operation* reduction;
  std::vector<BlockCandidate> candidates;
};

struct ChosenBlocks {
  std::vector<BlockCandidate> candidates;  // in the order of their reductions
  // Why others were not chosen, by their reductions.
  std::vector<std::pair<mlir::Operation*, std::string>> notes;

  bool isCut(ir::ParameterOp parameter) const;
};

// Chooses of candidates those that can be together. What one makes in pieces may be read by another
// one that takes it in these pieces: then both are there, or none. `layers`: by themselves, of what
// is left.
ChosenBlocks chooseBlocks(const SegmentValues& values, const std::vector<BlockAlternatives>& all,
                          const std::vector<BlockCandidate>& layers);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_CHOICE_H_
