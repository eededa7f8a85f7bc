// Names of blocks, and what the list of stages in a strategy says with them.
#ifndef ORIEL_PASSES_STAGE_BLOCK_NAMES_H_
#define ORIEL_PASSES_STAGE_BLOCK_NAMES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// What the dotted names that have one have in common, in whole parts: "a.layers" of "a.layers.0.w",
// "a.layers.1.w" and "MatMul_7"; "" if that is nothing.
std::string commonPrefix(const std::vector<std::string>& names);

// Patterns over names that match all of `own` and none of `others`, where these share no name: one
// for what begins with as few words as that takes, and each other name as it is.
std::vector<std::string> patternsOf(const std::vector<std::string>& own,
                                    const std::vector<std::string>& others);

// In a list of stages: what is in front of the first block (in the first stage), and what is behind
// the last one (in the last), where no tower is called so.
inline constexpr char kBegin[] = "begin";
inline constexpr char kEnd[] = "end";

// The names of a model's blocks, which are numbered from 0 in their order, and within each tower.
class BlockNames {
 public:
  // By block, the name of its tower. Blocks of the same name are one tower to users.
  explicit BlockNames(const std::vector<std::string>& towers);

  int64_t count() const { return static_cast<int64_t>(towerOf_.size()); }
  // The longest word of the tower's name that no other tower has, or else the whole name.
  const std::string& shortName(int64_t block) const { return towers_[towerOf_[block]].shortName; }
  // "llm.3"
  std::string nameOf(int64_t block) const;
  // Blocks in ascending order: "vision.0-3 + llm.0", and "vision" for all of a tower.
  std::string describe(const std::vector<int64_t>& blocks) const;
  // "'model.vision.layers' (4 blocks), 'model.layers' (32 blocks)"
  std::string list() const;

  // The stage of each block. InvalidArgument, with the place in the strategy, for a name that no
  // tower or more than one has, a number that no block has, a part of a block, and for stages that
  // do not have every block once and in order; kBegin and kEnd are no blocks.
  absl::StatusOr<std::vector<int64_t>> stagesOf(const std::vector<Pipeline::Stage>& stages) const;
  // Whether the stage has nothing but what that word stands for.
  bool isOnly(const Pipeline::Stage& stage, const std::string& word) const;

 private:
  struct Tower {
    std::string name, shortName;
    std::vector<int64_t> blocks;
  };

  // Whether the text is kBegin or kEnd, and no name. InvalidArgument in a stage that can't have it.
  absl::StatusOr<bool> isPlace(const std::string& text, size_t stage, size_t stages) const;
  // Towers that a user may mean by this name: the one of this very name, or those with its words
  // in theirs.
  std::vector<int> towersLike(const std::string& name) const;
  absl::StatusOr<int> towerNamed(const std::string& name) const;
  // First and last of the blocks that the text names, in a tower (or, -1, of all).
  struct Range {
    int tower;
    int64_t first, last;
  };
  absl::StatusOr<Range> parse(const std::string& text) const;
  absl::Status insideBlock(const std::string& text) const;
  absl::Status checkOrder(const std::vector<std::vector<int64_t>>& stages) const;

  std::vector<Tower> towers_;
  std::vector<int> towerOf_;       // by block
  std::vector<int64_t> numberOf_;  // in its tower
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_BLOCK_NAMES_H_
