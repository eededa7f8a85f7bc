// The blocks of a model, found by what repeats.
//
//   norm linear gelu linear add | norm linear gelu linear add | norm linear
//
// is a tower of two blocks and a rest. The layers of a model need not be all alike: those of a
// vision encoder and of a language model make two towers.
#ifndef ORIEL_PASSES_STAGE_TOWERS_H_
#define ORIEL_PASSES_STAGE_TOWERS_H_

#include <cstdint>
#include <vector>

namespace oriel {

// One op of a sequence in which equal layers are equal (layer_order.h).
struct SequenceOp {
  int64_t kind = 0;  // equal for ops that do the same on values of the same types
  double cost = 0;
  int64_t bytes = 0;          // of its results
  bool hasWeight = false;     // reads a parameter of two dimensions or more
  std::vector<int> operands;  // the ops whose results it reads, all before it
  bool isConversion = false;  // makes nothing but its operand in another element type
};

// Ops of the sequence: [begin, end).
struct Block {
  int begin = 0;
  int end = 0;

  friend bool operator==(const Block& a, const Block& b) {
    return a.begin == b.begin && a.end == b.end;
  }
};

// At least two blocks in their order, each the same sequence of kinds, with a weight, and each
// reading what the one before makes. Between two there may be ops without weights. Conversions
// don't count, for mixed precision makes them where types change: a first layer may read as it is
// what the others widen. A block has those inside of it, and those in front that it reads.
using Tower = std::vector<Block>;

// Towers that do not overlap, by their first ops: the one whose blocks cost most is taken first,
// then the next in what is left. Of the ways to cut a row of equal layers, blocks are those with
// the fewest bytes live between them.
std::vector<Tower> findTowers(const std::vector<SequenceOp>& ops);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_TOWERS_H_
