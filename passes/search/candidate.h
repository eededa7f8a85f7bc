// A strategy among those that the search chooses from, by its numbers.
#ifndef ORIEL_PASSES_SEARCH_CANDIDATE_H_
#define ORIEL_PASSES_SEARCH_CANDIDATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/strategy/strategy.h"

namespace oriel {

struct Candidate {
  int64_t tp = 1;          // ranks that split a layer
  int64_t cp = 1;          // ranks with other positions of the same samples
  int64_t pp = 1;          // grids of ranks, each with `interleave` stages
  int64_t dp = 1;          // ranks with different samples, of a grid
  int64_t shards = 1;      // of those, neighbours that share what `zero` says: all, or a part
  int64_t interleave = 1;  // stages on a grid
  int64_t micro = 1;       // samples of a microbatch on a rank
  int64_t microbatches = 1;
  int zero = 0;
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  RematPolicy remat = RematPolicy::kNone;
  std::optional<int64_t> memory;  // bytes that a rank may use, of `auto`
  bool sequenceParallel = false;
  bool padding = false;  // zeros where tp does not divide
  Placement placement = Placement::kPpOutermost;
  // With tp: these modules (of the model's encoders) aren't split, and each of the tp ranks has
  // samples of its own for them. Null: they are split as all.
  std::shared_ptr<const std::vector<Strategy::Module>> apart;

  int64_t ranks() const { return ofSample() * pp * dp; }
  // Ranks of a grid with the same samples.
  int64_t ofSample() const { return tp * cp; }
  // Ranks of a grid among which what `zero` says is shared.
  int64_t sharing() const { return shards * cp; }
  RankPlaces places() const;
  // The same, but for what runs again.
  Candidate with(RematPolicy policy, std::optional<int64_t> within = std::nullopt) const;
  // With its text.
  Strategy strategy() const;
  // "tp=2 pp=4 dp=8 zero=1 micro=2 x 16 1f1b remat=full sp", for tables.
  std::string shortText() const;

  friend bool operator==(const Candidate& a, const Candidate& b);
  // Simpler ones first: fewer stages, layers in fewer pieces, less sharded, nothing that runs
  // again, ranks at their own places, more samples at a time.
  friend bool operator<(const Candidate& a, const Candidate& b);
};

// What the user decided: `--fix tp=2,zero=3`.
struct Pins {
  // None: any. As Candidate has them; `hsdp` is `shards` where that is not all of dp, and 0: all.
  std::optional<int64_t> tp, cp, pp, dp, micro, microbatches, interleave, zero, hsdp;
  std::optional<ScheduleKind> schedule;
  std::optional<RematPolicy> remat;
  std::optional<bool> sequenceParallel, apart, padding;
  std::optional<Placement> placement;

  bool allow(const Candidate& candidate) const;
  // Each choice as parsePins() reads it: "tp=2".
  std::vector<std::string> words() const;
};

// Of words KEY=VALUE. InvalidArgument for one that is malformed, or given twice.
absl::StatusOr<Pins> parsePins(const std::vector<std::string>& words);
// The keys of parsePins(), with what they mean, for --help.
std::string pinsHelp();

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_CANDIDATE_H_
