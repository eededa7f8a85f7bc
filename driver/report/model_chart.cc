#include "driver/report/model_chart.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/report/svg.h"

namespace oriel::driver {

namespace {

constexpr double kWidth = 1000;
constexpr int64_t kGridColors = 8;  // classes grid0, grid1, .. of the style sheet

std::string gridStyle(int64_t grid) { return absl::StrCat("grid", grid % kGridColors); }

// "llm.3" is number 3 of "llm"; a part between blocks has no number.
struct PartName {
  std::string tower, label;
};

PartName split(const SimulatedPart& part) {
  const size_t dot = part.name.rfind('.');
  if (dot == std::string::npos) return {"", part.name};
  return {part.isBlock ? part.name.substr(0, dot) : "", part.name.substr(dot + 1)};
}

class BlocksChart {
 public:
  BlocksChart(const std::vector<SimulatedPart>& parts, int64_t grids)
      : grids_(grids), shown_(std::min(parts.size(), kMaxParts)) {
    for (size_t i = 0; i < shown_; ++i) place(parts[i]);
    if (shown_ < parts.size()) {
      note_ = absl::StrCat("<p class=\"note\">The first ", shown_, " of ", parts.size(),
                           " parts.</p>\n");
    }
  }

  std::string text() {
    Svg picture(kWidth, static_cast<double>(row_ + 1) * kRow, "The model's parts and their stages");
    for (size_t i = 0; i < cells_.size(); ++i) draw(i, &picture);
    return picture.text() + note_;
  }

 private:
  static constexpr size_t kMaxParts = 400;
  static constexpr double kRow = 86, kTop = 18, kHeight = 34, kGap = 2, kCharacter = 7;

  struct Cell {
    PartName name;
    int64_t stage = 0;
    bool isBlock = false;
    int64_t row = 0;
    double x = 0, width = 0;
  };

  void place(const SimulatedPart& part) {
    Cell cell{split(part), part.stage, part.isBlock};
    constexpr size_t kLongest = 20;
    if (cell.name.label.size() > kLongest) {
      cell.name.label.resize(kLongest - 2);
      cell.name.label += "..";
    }
    const double least = part.isBlock ? 24 : 34;
    cell.width = std::max(least, kCharacter * static_cast<double>(cell.name.label.size()) + 8);
    if (x_ + cell.width > kWidth) {
      ++row_;
      x_ = 0;
    }
    cell.row = row_;
    cell.x = x_;
    x_ += cell.width + kGap;
    cells_.push_back(std::move(cell));
  }

  bool isFirst(size_t i, bool ofStage) const {
    if (i == 0 || cells_[i].row != cells_[i - 1].row) return true;
    return ofStage ? cells_[i].stage != cells_[i - 1].stage
                   : cells_[i].name.tower != cells_[i - 1].name.tower;
  }

  void draw(size_t i, Svg* picture) const {
    const Cell& cell = cells_[i];
    const double top = static_cast<double>(cell.row) * kRow + kTop;
    if (isFirst(i, false) && !cell.name.tower.empty()) {
      picture->label(cell.x, top - 5, cell.name.tower, Anchor::kStart, "strong");
    }
    picture->rect({cell.x, top, cell.width, kHeight},
                  absl::StrCat(gridStyle(cell.stage % grids_), cell.isBlock ? "" : " between"));
    picture->label(cell.x + cell.width / 2, top + kHeight / 2 + 4, cell.name.label, Anchor::kMiddle,
                   cell.isBlock ? "" : "small");
    if (isFirst(i, true)) drawStage(i, top + kHeight + 5, picture);
  }

  // The line under the cells of a stage, with its number.
  void drawStage(size_t first, double y, Svg* picture) const {
    size_t last = first;
    while (last + 1 < cells_.size() && !isFirst(last + 1, true)) ++last;
    const double from = cells_[first].x, to = cells_[last].x + cells_[last].width;
    picture->line(from, y, to, y, "stage");
    picture->line(from, y - 4, from, y, "stage");
    picture->line(to, y - 4, to, y, "stage");
    const int64_t stage = cells_[first].stage;
    std::string text = absl::StrCat("stage ", stage);
    constexpr double kRoomForProgram = 130;
    if (grids_ > 1 && to - from > kRoomForProgram) {
      absl::StrAppend(&text, ", program p", stage % grids_);
    }
    const bool isNarrow = to - from < kCharacter * static_cast<double>(text.size());
    picture->label((from + to) / 2, y + 14, isNarrow ? absl::StrCat(stage) : text, Anchor::kMiddle,
                   "small");
  }

  const int64_t grids_;
  const size_t shown_;
  std::vector<Cell> cells_;
  int64_t row_ = 0;
  double x_ = 0;
  std::string note_;
};

// The level that has all of these consecutive devices in one domain.
size_t levelOf(const Cluster& cluster, int64_t first, int64_t last) {
  size_t level = 0;
  while (level + 1 < cluster.links.size() &&
         first / cluster.links[level].devices != last / cluster.links[level].devices) {
    ++level;
  }
  return level;
}

std::string shardedText(int zero) {
  std::string text = "optimizer state";
  if (zero >= 2) absl::StrAppend(&text, ", gradients");
  if (zero >= 3) absl::StrAppend(&text, ", parameters");
  return text;
}

}  // namespace

std::string blocksChart(const Simulation& simulation, int64_t grids) {
  if (simulation.parts.empty()) {
    return "<p class=\"note\">No blocks of the model are alike, so its parts have no names.</p>\n";
  }
  return BlocksChart(simulation.parts, grids).text();
}

std::string ranksChart(const Candidate& candidate, const Cluster& cluster) {
  constexpr double kCell = 25, kBetween = 4, kNodeGap = 14, kRow = 58, kTop = 16;
  constexpr int64_t kMaxDevices = 256;
  const int64_t perNode = cluster.devicesPerNode, perGrid = candidate.ofSample() * candidate.dp;
  const int64_t used = (candidate.ranks() + perNode - 1) / perNode;
  const int64_t nodes = std::clamp<int64_t>(kMaxDevices / perNode, 1, used);
  const int64_t devices = std::min(perNode, kMaxDevices);  // of a node that are drawn
  const RankPlaces places = candidate.places();
  auto gapsBefore = [&](int64_t device) { return device / candidate.ofSample(); };
  const double nodeWidth = static_cast<double>(devices) * kCell +
                           static_cast<double>(gapsBefore(devices - 1)) * kBetween + 12;
  const double scale = std::max(nodeWidth, kWidth);
  const auto columns = static_cast<int64_t>((scale + kNodeGap) / (nodeWidth + kNodeGap));
  const int64_t rows = (nodes + columns - 1) / columns;
  Svg picture(scale, static_cast<double>(rows) * kRow, "Ranks on the nodes");
  for (int64_t node = 0; node < nodes; ++node) {
    const double left = static_cast<double>(node % columns) * (nodeWidth + kNodeGap);
    const double top = static_cast<double>(node / columns) * kRow + kTop;
    picture.label(left, top - 4, absl::StrCat("node ", node), Anchor::kStart, "small");
    picture.rect({left, top, nodeWidth, kCell + 10}, "node");
    for (int64_t device = 0; device < devices; ++device) {
      const int64_t place = node * perNode + device;
      const double x = left + 6 + static_cast<double>(device) * kCell +
                       static_cast<double>(gapsBefore(device)) * kBetween;
      const bool isUsed = place < candidate.ranks();
      const int64_t rank = isUsed ? places.rankAt(place) : place;
      picture.rect({x, top + 5, kCell, kCell}, isUsed ? gridStyle(rank / perGrid) : "unused");
      picture.label(x + kCell / 2, top + 5 + kCell / 2 + 3.5, absl::StrCat(rank), Anchor::kMiddle,
                    "small");
    }
  }
  std::string text = picture.text();
  absl::StrAppend(&text, "<p class=\"note\">Each box is a rank");
  if (candidate.ofSample() > 1) {
    absl::StrAppend(&text, "; ranks that touch ",
                    candidate.cp == 1 ? "split the same layers" : "have the same samples");
  }
  if (candidate.pp > 1) {
    absl::StrAppend(&text, "; the colours are those of the stages above (", perGrid,
                    perGrid == 1 ? " rank" : " ranks", " each)");
    if (!places.areRanks()) absl::StrAppend(&text, ", which lie side by side");
  }
  absl::StrAppend(&text, ".");
  if (nodes < used) {
    absl::StrAppend(&text, " The first ", nodes, " of ", used, " nodes; the others go on so.");
  }
  if (devices < perNode) {
    absl::StrAppend(&text, " The first ", devices, " of a node's ", perNode, " devices.");
  }
  return absl::StrCat(text, "</p>\n");
}

std::string linksOfGroups(const Cluster& cluster, int64_t ranks, int64_t size, int64_t apart) {
  if (size < 2 || cluster.links.empty()) return "";
  size_t worst = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (rank / apart % size != 0) continue;
    const int64_t last = std::min(rank + (size - 1) * apart, ranks - 1);
    worst = std::max(worst, levelOf(cluster, rank, last));
  }
  return cluster.links[worst].name;
}

std::string splitsTable(const Candidate& candidate, const Cluster& cluster) {
  std::string text =
      "<table>\n<tr><th>what is split</th><th>over</th><th>ranks</th><th>links</th></tr>\n";
  const RankPlaces places = candidate.places();
  auto row = [&](const std::string& what, const std::string& over, int64_t size, int64_t apart,
                 const std::string& alone) {
    const int64_t between = places.of(apart);  // devices
    const std::string links = linksOfGroups(cluster, candidate.ranks(), size, between);
    std::string ranks = alone;
    if (size > 1) {
      ranks = between == 1 ? absl::StrCat(size, " neighbours")
                           : absl::StrCat(size, ", ", apart, " apart: 0, ", apart,
                                          size > 3    ? absl::StrCat(", .., ", (size - 1) * apart)
                                          : size == 3 ? absl::StrCat(", ", 2 * apart)
                                                      : "");
    }
    absl::StrAppend(&text, "<tr><td>", escapeMarkup(what), "</td><td>", escapeMarkup(over),
                    "</td><td>", escapeMarkup(ranks), "</td><td>", escapeMarkup(links),
                    "</td></tr>\n");
  };
  const bool isSplit = candidate.tp > 1;
  row(isSplit && candidate.sequenceParallel ? "each layer, and what is between layers by sequence"
                                            : "each layer",
      absl::StrCat("tp = ", candidate.tp), candidate.tp, 1, "not split");
  if (candidate.cp > 1) {
    row("positions of a sample", absl::StrCat("cp = ", candidate.cp), candidate.cp, candidate.tp,
        "not split");
  }
  row("samples of a microbatch", absl::StrCat("dp = ", candidate.dp), candidate.dp,
      candidate.ofSample(), "not split");
  if (candidate.zero > 0) {
    row(shardedText(candidate.zero),
        absl::StrCat(
            "zero = ", candidate.zero,
            candidate.shards < candidate.dp ? absl::StrCat(", hsdp = ", candidate.shards) : ""),
        candidate.sharing(), candidate.tp, "not split");
  } else {
    row("optimizer state, gradients, parameters", "zero = 0", 1, 1,
        candidate.dp * candidate.cp > 1 ? "a copy on each" : "not split");
  }
  row(candidate.interleave > 1
          ? absl::StrCat("the model's blocks, ", candidate.interleave, " stages on each")
          : "the model's blocks",
      absl::StrCat("pp = ", candidate.pp), candidate.pp, candidate.ofSample() * candidate.dp,
      "not split");
  return text + "</table>\n";
}

}  // namespace oriel::driver
