// A forward segment as remat sees it: what its stash holds, and what of it could be computed again.
//
//   StashGraph graph = ..;
//   for (int64_t block : blocksOf(graph)) Recomputation edit = fullRecomputation(graph, block);
#ifndef ORIEL_PASSES_REMAT_STASH_GRAPH_H_
#define ORIEL_PASSES_REMAT_STASH_GRAPH_H_

#include <cstdint>
#include <vector>

namespace oriel {

struct StashGraph {
  static constexpr int kNone = -1;

  struct Value {
    int op = kNone;     // that makes it; none: an argument, which the backward can have too
    int64_t bytes = 0;  // in the stash
    bool stashed = false;
    bool pinned = false;     // other segments than the backward read it from the stash
    std::vector<int> users;  // ops
    // Which segments of the backward read it, by their numbers; none: the only one.
    std::vector<int> readers;
  };

  struct Op {
    std::vector<int> operands, results;
    int64_t block = kNone;
    int64_t cluster = kNone;
    double seconds = 0;   // predicted
    bool repeats = true;  // it may run again: a transfer may not
    bool isCollective = false;
    bool isFree = false;        // a view, or of no activation: never kept for later
    bool ofParameters = false;  // made of parameters, and constants, alone
    bool contracts = false;     // sums up products of two activations
    bool projects = false;      // sums up products of an activation and a parameter
  };

  std::vector<Value> values;
  std::vector<Op> ops;  // operands first

  // Numbers of what they make, for tests and readers of IR.
  int addValue(int64_t bytes);
  int addOp(Op op);  // fills in the results' `op` and the operands' `users`
};

// How a block keeps less.
struct Recomputation {
  std::vector<int> dropped;  // values that leave the stash
  std::vector<int> added;    // values that it needs instead
  std::vector<int> ops;      // that the backward runs again, in their order

  // Of what runs again, in all segments of the backward: each runs what it needs by itself.
  double seconds(const StashGraph& graph) const;
  // Of `dropped` less `added`.
  int64_t savedBytes(const StashGraph& graph) const;
};

// How often each op runs again: once for each segment of the backward that needs it.
std::vector<int> timesAgain(const StashGraph& graph, const Recomputation& edit);

// Ascending, without kNone.
std::vector<int64_t> blocksOf(const StashGraph& graph);

// The stash values of a block that could leave the stash: made and used in the block alone.
std::vector<int> droppable(const StashGraph& graph, int64_t block);

// What it takes to drop these values of a block: ops run again, down to values that are kept or are
// arguments. What comes from elsewhere, and can't be made of parameters alone, is added to the
// stash; so is what `mayRun` refuses to compute again. Drops nothing if a value inside of a cluster
// would have to be kept.
Recomputation recomputation(const StashGraph& graph, int64_t block, std::vector<int> dropped,
                            const std::vector<bool>& mayRun);

// All that is droppable goes: what enters the block is kept, its collectives run again. Nothing
// goes if that would not save anything, here and below.
Recomputation fullRecomputation(const StashGraph& graph, int64_t block);

// What lies on a way from a contraction of two activations to the next one, without projections and
// collectives between them, goes: of attention that is what has the size of the scores (Korthikanti
// et al. 2022, section 5). It is computed again from the first one's operands.
Recomputation selectiveRecomputation(const StashGraph& graph, int64_t block);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_STASH_GRAPH_H_
