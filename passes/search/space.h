// All strategies that the search chooses from.
#ifndef ORIEL_PASSES_SEARCH_SPACE_H_
#define ORIEL_PASSES_SEARCH_SPACE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "passes/cost/cluster.h"
#include "passes/search/candidate.h"

namespace oriel {

struct SearchProblem {
  Cluster cluster;
  int64_t ranks = 1;        // that a strategy has
  int64_t globalBatch = 1;  // samples of a step
  int64_t parts = 1;        // of the model, between which it can be cut into stages
  int64_t positions = 1;    // of the loss, which cp divides
  bool hasContext = false;  // cp is in the space; else only if pinned, and next to what was found
  // Samples of a microbatch of all ranks, where the model is for one number only.
  std::optional<int64_t> samples;
  bool isOneMicrobatch = false;  // the loss may mix the samples of a step
  // Modules that may have a mesh of their own (encodersOf()); null: none.
  std::shared_ptr<const std::vector<Strategy::Module>> encoders;
  double encoderShare = 0;  // of the time of a forward
  // Sizes of tp that do not divide all that they would split, where zeros may be added; and those
  // with which candidates have them, which searchStrategies() finds.
  std::set<int64_t> paddable, padded;
  Pins pins;
};

// In the order of candidates. What is in there:
// - tp: what divides the ranks and the devices of a node; sequence parallelism with it, since that
//   sends the same bytes and keeps less (without it: only if pinned);
// - cp: 1; with `hasContext` what divides the ranks and the positions (else only if pinned);
// - pp: what divides the other ranks, up to the parts; 1F1B, zb-h1, and interleaved with 2 stages
//   (more are neighbours of these, or pinned; GPipe, which takes as long as 1F1B and keeps more,
//   only if pinned);
// - dp: the ranks that are left; ZeRO 0 to 3 over all of them, or over those in one domain of
//   links; with a pipeline 0 and 1 (2 and 3, which send with each microbatch: only if pinned);
// - micro: what divides a rank's share of the batch;
// - remat: none, selective, full;
// - zeros are added with the sizes of tp that are `padded`;
// - encoders are split as all (on a mesh of their own: only if pinned);
// - stages are farthest apart (data-parallel ranks: only if pinned).
std::vector<Candidate> allCandidates(const SearchProblem& problem);

// Candidates that differ from this one in one choice; what follows from it (dp, microbatches)
// changes with it. Not all are in the space: other numbers of stages on a grid, positions
// that are cut, tensor parallelism without sequence parallelism, encoders on a mesh of their own,
// stages side by side, a size of tp with zeros, or without, where the space has the other.
std::vector<Candidate> neighboursOf(const Candidate& candidate, const SearchProblem& problem);

// Why allCandidates() is empty: which of the pins contradict the cluster, the batch, or each other.
// InvalidArgument.
absl::Status explainEmptySpace(const SearchProblem& problem);

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_SPACE_H_
