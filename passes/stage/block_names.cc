#include "passes/stage/block_names.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace oriel {

namespace {

using Words = std::vector<std::string>;

Words wordsOf(const std::string& name) { return absl::StrSplit(name, '.'); }

bool isNumber(const std::string& word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "3" or "0-15".
std::optional<std::pair<int64_t, int64_t>> rangeOf(const std::string& word) {
  const Words ends = absl::StrSplit(word, '-');
  if (ends.size() > 2 || !std::all_of(ends.begin(), ends.end(), isNumber)) return std::nullopt;
  int64_t first = 0, last = 0;
  if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last)) {
    return std::nullopt;
  }
  return std::pair(first, last);
}

// "vision" for "vision" and "vision_tower".
bool isLike(const std::string& word, const std::string& whole) {
  return whole == word || (!word.empty() && absl::StartsWith(whole, absl::StrCat(word, "_")));
}

// Whether `name` has the words, one behind the other.
bool hasWords(const Words& name, const Words& words) {
  return std::search(name.begin(), name.end(), words.begin(), words.end(),
                     [](const std::string& whole, const std::string& word) {
                       return isLike(word, whole);
                     }) != name.end();
}

std::string countText(size_t count) {
  return absl::StrCat(count, count == 1 ? " block" : " blocks");
}

}  // namespace

std::string commonPrefix(const std::vector<std::string>& names) {
  std::optional<Words> common;
  for (const std::string& name : names) {
    Words words = wordsOf(name);
    if (words.size() < 2) continue;
    if (!common) {
      words.pop_back();
      common = std::move(words);
      continue;
    }
    const auto differ =
        std::mismatch(common->begin(), common->end(), words.begin(), words.end()).first;
    common->erase(differ, common->end());
  }
  return common ? absl::StrJoin(*common, ".") : "";
}

std::vector<std::string> patternsOf(const std::vector<std::string>& own,
                                    const std::vector<std::string>& others) {
  std::string common, begin;
  const std::string prefix = commonPrefix(own);
  for (const std::string& word : prefix.empty() ? Words() : wordsOf(prefix)) {
    absl::StrAppend(&common, word, ".");
    const bool isShared = std::any_of(others.begin(), others.end(), [&](const std::string& other) {
      return absl::StartsWith(other, common);
    });
    if (isShared) continue;
    begin = common;
    break;
  }
  std::vector<std::string> patterns;
  if (!begin.empty()) patterns.push_back(begin + "*");
  for (const std::string& name : own) {
    if (begin.empty() || !absl::StartsWith(name, begin)) patterns.push_back(name);
  }
  return patterns;
}

BlockNames::BlockNames(const std::vector<std::string>& towers) {
  for (const std::string& name : towers) {
    auto tower = std::find_if(towers_.begin(), towers_.end(),
                              [&](const Tower& known) { return known.name == name; });
    if (tower == towers_.end()) tower = towers_.insert(tower, Tower{name, name, {}});
    towerOf_.push_back(static_cast<int>(tower - towers_.begin()));
    numberOf_.push_back(static_cast<int64_t>(tower->blocks.size()));
    tower->blocks.push_back(count() - 1);
  }
  for (Tower& tower : towers_) {
    const int own = static_cast<int>(&tower - towers_.data());
    std::string longest;
    for (const std::string& word : wordsOf(tower.name)) {
      if (isNumber(word) || towersLike(word) != std::vector<int>{own}) continue;
      if (word.size() > longest.size()) longest = word;
    }
    if (!longest.empty()) tower.shortName = longest;
  }
}

std::string BlockNames::nameOf(int64_t block) const {
  return absl::StrCat(shortName(block), ".", numberOf_[block]);
}

std::string BlockNames::describe(const std::vector<int64_t>& blocks) const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < blocks.size();) {
    size_t end = i + 1;
    auto follows = [&](size_t next) {
      return towerOf_[blocks[next]] == towerOf_[blocks[i]] &&
             numberOf_[blocks[next]] == numberOf_[blocks[next - 1]] + 1;
    };
    while (end < blocks.size() && follows(end)) ++end;
    const Tower& tower = towers_[towerOf_[blocks[i]]];
    if (end - i == tower.blocks.size()) {
      parts.push_back(tower.shortName);
    } else if (end - i == 1) {
      parts.push_back(nameOf(blocks[i]));
    } else {
      parts.push_back(absl::StrCat(nameOf(blocks[i]), "-", numberOf_[blocks[end - 1]]));
    }
    i = end;
  }
  return absl::StrJoin(parts, " + ");
}

std::string BlockNames::list() const {
  return absl::StrJoin(towers_, ", ", [](std::string* out, const Tower& tower) {
    absl::StrAppend(out, "'", tower.name, "' (", countText(tower.blocks.size()), ")");
  });
}

std::vector<int> BlockNames::towersLike(const std::string& name) const {
  std::vector<int> like;
  for (size_t i = 0; i < towers_.size(); ++i) {
    if (towers_[i].name == name) return {static_cast<int>(i)};
    if (hasWords(wordsOf(towers_[i].name), wordsOf(name))) like.push_back(static_cast<int>(i));
  }
  return like;
}

absl::StatusOr<int> BlockNames::towerNamed(const std::string& name) const {
  const std::vector<int> like = towersLike(name);
  if (like.size() == 1) return like.front();
  if (like.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' could be '", towers_[like[0]].name,
                                                   "' or '", towers_[like[1]].name,
                                                   "': write more of the name"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no blocks are called '", name, "': the model has ", list(), "; `", kBegin,
                   "` is what is in front of them, `", kEnd,
                   "` what is behind them. Blocks are layers of one kind in a row; a tower without "
                   "such a row is with what reads it"));
}

// "llm.3.mlp" is in a block: what is in front of a number is a tower.
absl::Status BlockNames::insideBlock(const std::string& text) const {
  const Words words = wordsOf(text);
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    int64_t number = 0;
    if (!isNumber(words[i]) || !absl::SimpleAtoi(words[i], &number)) continue;
    const std::string name = absl::StrJoin(words.begin(), words.begin() + i, ".");
    const std::vector<int> like = towersLike(name);
    if (like.size() != 1) continue;
    const Tower& tower = towers_[like.front()];
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is inside of block ", number, " of '", tower.name,
                     "', and a stage has whole blocks: write '", name, ".", number, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<BlockNames::Range> BlockNames::parse(const std::string& text) const {
  for (size_t i = 0; i < towers_.size(); ++i) {
    if (towers_[i].name != text) continue;
    return Range{static_cast<int>(i), 0, static_cast<int64_t>(towers_[i].blocks.size()) - 1};
  }
  Words words = wordsOf(text);
  const std::optional<std::pair<int64_t, int64_t>> range = rangeOf(words.back());
  if (range) words.pop_back();
  const std::string name = absl::StrJoin(words, ".");
  int tower = -1;
  if (!name.empty() || !range) {
    if (absl::Status inside = insideBlock(text); !inside.ok()) return inside;
    absl::StatusOr<int> found = towerNamed(name);
    if (!found.ok()) return found.status();
    tower = *found;
  }
  const int64_t blocks = tower < 0 ? count() : static_cast<int64_t>(towers_[tower].blocks.size());
  if (!range) return Range{tower, 0, blocks - 1};
  if (range->first > range->second) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' ends before it begins: write the smaller number first"));
  }
  if (range->second >= blocks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no block ", range->second, " for '", text,
        "': ", tower < 0 ? std::string("the model") : absl::StrCat("'", towers_[tower].name, "'"),
        " has ", countText(blocks), ", from 0"));
  }
  return Range{tower, range->first, range->second};
}

absl::Status BlockNames::checkOrder(const std::vector<std::vector<int64_t>>& stages) const {
  std::vector<int64_t> stageOf(count(), -1);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int64_t block : stages[stage]) {
      int64_t& known = stageOf[block];
      if (known >= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", nameOf(block), "' is in ",
                         known == static_cast<int64_t>(stage)
                             ? absl::StrCat("stages[", stage, "] twice")
                             : absl::StrCat("both stages[", known, "] and stages[", stage, "]"),
                         ": a block is in one stage"));
      }
      known = static_cast<int64_t>(stage);
    }
  }
  for (int64_t block = 0; block < count(); ++block) {
    if (stageOf[block] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", nameOf(block), "' is in none of the stages: the model has ", list()));
    }
    if (block > 0 && stageOf[block] < stageOf[block - 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", nameOf(block), "' is in stages[", stageOf[block], "] and '",
                       nameOf(block - 1), "', which comes before it, in stages[",
                       stageOf[block - 1], "]: stages are in the order of the model, ", list()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> BlockNames::isPlace(const std::string& text, size_t stage,
                                         size_t stages) const {
  const bool isBegin = text == kBegin;
  if ((!isBegin && text != kEnd) || !towersLike(text).empty()) return false;
  if (stage == (isBegin ? 0 : stages - 1)) return true;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is what is ", isBegin ? "in front of" : "behind",
                   " all blocks, and belongs to the ", isBegin ? "first" : "last", " stage"));
}

bool BlockNames::isOnly(const Pipeline::Stage& stage, const std::string& word) const {
  return towersLike(word).empty() &&
         absl::c_all_of(stage.blocks, [&](const std::string& text) { return text == word; });
}

absl::StatusOr<std::vector<int64_t>> BlockNames::stagesOf(
    const std::vector<Pipeline::Stage>& stages) const {
  std::vector<std::vector<int64_t>> blocks(stages.size());
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const auto failed = [&](const absl::Status& status) {
      return absl::InvalidArgumentError(absl::StrCat("stages[", stage, "]: ", status.message()));
    };
    for (const std::string& text : stages[stage].blocks) {
      const absl::StatusOr<bool> isAround = isPlace(text, stage, stages.size());
      if (!isAround.ok()) return failed(isAround.status());
      if (*isAround) continue;
      const absl::StatusOr<Range> range = parse(text);
      if (!range.ok()) return failed(range.status());
      for (int64_t i = range->first; i <= range->last; ++i) {
        blocks[stage].push_back(range->tower < 0 ? i : towers_[range->tower].blocks[i]);
      }
    }
  }
  if (absl::Status sound = checkOrder(blocks); !sound.ok()) return sound;
  std::vector<int64_t> stageOf(count());
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int64_t block : blocks[stage]) stageOf[block] = static_cast<int64_t>(stage);
  }
  return stageOf;
}

}  // namespace oriel
