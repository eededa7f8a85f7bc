// The strategy: how the work is split over the ranks, as the user writes it (docs/strategy.md).
#ifndef ORIEL_PASSES_STRATEGY_STRATEGY_H_
#define ORIEL_PASSES_STRATEGY_STRATEGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "passes/strategy/pipeline_schedule.h"
#include "passes/strategy/placement.h"
#include "passes/strategy/remat_policy.h"

namespace oriel {

// The share of the parameters of meshes with tp that may stay whole where tp doesn't divide it.
inline constexpr double kLittleWhole = 0.03;

// Sizes of the mesh axes; kMeshAxes has their order.
struct Mesh {
  int64_t dp = 1;    // different samples, the same parameters
  int64_t fsdp = 1;  // different samples; what `zero` says is sharded
  int64_t tp = 1;    // the same samples, different pieces of each layer
  int64_t cp = 1;    // the same samples and parameters, different positions

  // Of sizes that are not checked yet, at most the largest number.
  int64_t ranks() const;
  // Ranks with different samples.
  int64_t dataParallel() const { return dp * fsdp; }
  // Ranks with the same samples.
  int64_t ofSample() const { return cp * tp; }
  // Numbers of groups of ranks, up to each axis: {dp, dp fsdp, ..}.
  std::vector<int64_t> cuts() const;
};

struct NamedMeshAxis {
  const char* name;
  int64_t Mesh::*size;
};
// Outermost first: neighbouring ranks differ in tp.
inline constexpr NamedMeshAxis kMeshAxes[] = {
    {"dp", &Mesh::dp}, {"fsdp", &Mesh::fsdp}, {"cp", &Mesh::cp}, {"tp", &Mesh::tp}};

// The cuts of the model into stages, and the order in which they run. Stage s is on grid
// s mod (stages / interleave), and each grid has ranks of its own.
struct Pipeline {
  // What auto cuts balance between the grids.
  enum class Balance { kTime, kParameters };

  struct Stage {
    // Blocks of a tower ("vision", "llm.3", "llm.0-15") or of all towers in a row ("0-11").
    std::vector<std::string> blocks;
    std::optional<Mesh> mesh;  // in place of the strategy's
  };

  int64_t stages = 1;
  std::vector<Stage> named;  // in order; none: the cuts are found
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  int64_t interleave = 1;               // stages on a grid
  std::optional<int64_t> microbatches;  // of a step; none: as the recipe's batch says
  Balance balance = Balance::kTime;
  Placement placement = Placement::kPpOutermost;

  // What is not given goes with the other: the interleaved schedule is that of several stages on a
  // grid, and then two; else it is 1F1B with one.
  void setSchedule(std::optional<ScheduleKind> kind, std::optional<int64_t> stagesOnGrid);
};

// The number of stages in "4" or "auto 4"; none for another text and a number out of range.
std::optional<int64_t> stageCountOf(const std::string& text);

constexpr int64_t kMaxMicrobatches = int64_t{1} << 20;

// Communication that runs beside computing. Bytes; none: found, by what a segment moves.
struct Overlap {
  std::optional<int64_t> bucket;    // most of collectives that travel as one
  std::optional<int64_t> prefetch;  // most of parameters that are gathered ahead of their use

  // Of a segment whose collectives of that sort move so many bytes.
  int64_t bucketBytes(int64_t total) const;
  int64_t prefetchBytes(int64_t total) const;
};

struct Strategy {
  Mesh mesh;     // of each grid without one, and of all that is in no module below
  int zero = 0;  // sharded: 1 optimizer state, 2 gradients too, 3 parameters too
  // Ranks of a group that shards, where dp is split into groups that are copies of each other.
  std::optional<int64_t> hsdp;
  bool sequenceParallel = false;
  bool padding = false;           // heads and columns that tp does not divide get zeros
  std::optional<int64_t> memory;  // bytes that a rank has; none: whatever the plan needs

  // Another mesh on the same ranks; without one, a name for its blocks.
  struct Module {
    std::string name;
    std::vector<std::string> parameters;  // patterns over ONNX initializer names
    std::optional<Mesh> mesh;
  };
  std::vector<Module> modules;

  // Overrules what is found from structure.
  struct Sharding {
    std::vector<std::string> parameters;  // patterns
    std::optional<int64_t> tp;            // the dimension that is split over tp; none: not split
  };
  std::vector<Sharding> shardings;

  std::optional<Pipeline> pipeline;            // none: one stage
  std::optional<Overlap> overlap = Overlap();  // none: every rank waits for its collectives

  std::optional<RematPolicy> remat;  // none: `auto` where there is a budget of memory, else `none`

  std::string text;  // as read; made up where the strategy came from options

  RematPolicy rematPolicy() const {
    return remat.value_or(memory ? RematPolicy::kAuto : RematPolicy::kNone);
  }
  int64_t stageCount() const { return pipeline ? pipeline->stages : 1; }
  // Grids of ranks, each of which has one stage or, interleaved, several.
  int64_t grids() const { return pipeline ? pipeline->stages / pipeline->interleave : 1; }
  const Mesh& meshOfGrid(int64_t grid) const;
  // Of all grids.
  int64_t ranks() const;
  RankPlaces places() const;
  // With `hsdp` resolved: the dp of a mesh is the number of copies, its fsdp the group that shards.
  Mesh resolved(const Mesh& mesh) const;
  // Ranks that get different samples whatever the grid and the module: the smallest
  // dataParallel() of a mesh.
  int64_t dataParallel() const;
  // What divides over the tensor-parallel ranks that a parameter of this module (null: of none) may
  // be on: tp of the module's mesh, or the least common multiple of all grids'.
  int64_t commonTensorParallel(const Module* module) const;
  // The least common multiple of an axis' sizes, or the largest number; up to kMaxRanks for tp and
  // cp of a strategy that is sound.
  int64_t commonOfGrids(int64_t Mesh::*axis) const;
};

// All but the text.
bool operator==(const Mesh& a, const Mesh& b);
bool operator==(const Pipeline::Stage& a, const Pipeline::Stage& b);
bool operator==(const Pipeline& a, const Pipeline& b);
bool operator==(const Overlap& a, const Overlap& b);
bool operator==(const Strategy::Module& a, const Strategy::Module& b);
bool operator==(const Strategy::Sharding& a, const Strategy::Sharding& b);
bool operator==(const Strategy& a, const Strategy& b);

// Values that are possible each, but not together.
struct StrategyProblem {
  std::string key;      // of the file: "hsdp", "modules.vision.mesh", "stages[1].mesh"
  std::string message;  // goes on after the key: "needs .."
};
// Who says what memory a rank has, where the strategy does not.
enum class MemoryFrom { kStrategy, kCluster };
// None if the strategy is sound. Sizes and counts are at least 1 and at most kMaxRanks, zero is 0
// to 3, and where stages are named, there are as many names as stages.
std::optional<StrategyProblem> findProblem(const Strategy& strategy,
                                           MemoryFrom memory = MemoryFrom::kStrategy);

// The module of a parameter, and what overrules its sharding; null: none.
const Strategy::Module* moduleOf(const Strategy& strategy, const std::string& parameter);
const Strategy::Sharding* shardingOf(const Strategy& strategy, const std::string& parameter);

// Holds the patterns against the names of a model's parameters. InvalidArgument for a pattern that
// matches none, and for a parameter in two modules or with two shardings.
absl::Status checkPatterns(const Strategy& strategy, const std::vector<std::string>& parameters);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGY_STRATEGY_H_
