// The strategy: how the work is split over the ranks, as the user writes it (docs/strategy.md).
#ifndef ORIEL_PASSES_STRATEGIZE_STRATEGY_H_
#define ORIEL_PASSES_STRATEGIZE_STRATEGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace oriel {

constexpr int64_t kMaxRanks = int64_t{1} << 20;

// Sizes of the mesh axes, outermost first: neighbouring ranks differ in tp.
struct Mesh {
  int64_t dp = 1;    // different samples, the same parameters
  int64_t fsdp = 1;  // different samples; what `zero` says is sharded
  int64_t tp = 1;    // the same samples, different pieces of each layer

  int64_t ranks() const { return dp * fsdp * tp; }
  // Ranks with different samples.
  int64_t dataParallel() const { return dp * fsdp; }
};

struct Strategy {
  Mesh mesh;     // of all that is in no module below
  int zero = 0;  // sharded: 1 optimizer state, 2 gradients too, 3 parameters too
  // Ranks of a group that shards, where dp is split into groups that are copies of each other.
  std::optional<int64_t> hsdp;
  bool sequenceParallel = false;

  // Another mesh on the same ranks.
  struct Module {
    std::string name;
    std::vector<std::string> parameters;  // patterns over ONNX initializer names
    Mesh mesh;
  };
  std::vector<Module> modules;

  // Overrules what is found from structure.
  struct Sharding {
    std::vector<std::string> parameters;  // patterns
    std::optional<int64_t> tp;            // the dimension that is split over tp; none: not split
  };
  std::vector<Sharding> shardings;

  std::string text;  // as read; made up where the strategy came from options

  int64_t ranks() const { return mesh.ranks(); }
  // With `hsdp` resolved: the dp of a mesh is the number of copies, its fsdp the group that shards.
  Mesh resolved(const Mesh& mesh) const;
  // Ranks that get different samples whatever the module: the smallest dataParallel() of a mesh.
  int64_t dataParallel() const;
  // Nothing but copies of the model with different samples.
  bool isPlainDataParallel() const;
};

// All but the text.
bool operator==(const Mesh& a, const Mesh& b);
bool operator==(const Strategy::Module& a, const Strategy::Module& b);
bool operator==(const Strategy::Sharding& a, const Strategy::Sharding& b);
bool operator==(const Strategy& a, const Strategy& b);

// Values that are possible each, but not together.
struct StrategyProblem {
  std::string key;      // of the file: "hsdp", "modules.vision.mesh"
  std::string message;  // goes on after the key: "needs .."
};
// None if the strategy is sound. Sizes are at least 1 and at most kMaxRanks, zero is 0 to 3.
std::optional<StrategyProblem> findProblem(const Strategy& strategy);

// The module of a parameter, and what overrules its sharding; null: none.
const Strategy::Module* moduleOf(const Strategy& strategy, const std::string& parameter);
const Strategy::Sharding* shardingOf(const Strategy& strategy, const std::string& parameter);

// Holds the patterns against the names of a model's parameters. InvalidArgument for a pattern that
// matches none, and for a parameter in two modules or with two shardings.
absl::Status checkPatterns(const Strategy& strategy, const std::vector<std::string>& parameters);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_STRATEGY_H_
