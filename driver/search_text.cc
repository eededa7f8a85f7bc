#include "driver/search_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "driver/plan_text.h"
#include "driver/simulation_text.h"
#include "nlohmann/json.hpp"

namespace oriel::driver {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiB = int64_t{1} << 30;

// By program: "41.2 / 38.1", or the range of many.
std::string memoryText(const Evaluation& evaluation) {
  std::vector<double> sizes;
  for (const Evaluation::Program& program : evaluation.programs) {
    sizes.push_back(program.peakBytes() / kGiB);
  }
  constexpr size_t kShown = 4;
  if (sizes.size() > kShown) {
    const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
    return absl::StrFormat("%.1f to %.1f", *least, *most);
  }
  return absl::StrJoin(sizes, " / ", [](std::string* out, double size) {
    absl::StrAppendFormat(out, "%.1f", size);
  });
}

// What is different, in the words of --fix.
std::string changeText(const Candidate& from, const Candidate& to) {
  std::vector<std::string> changes;
  auto compare = [&](const char* key, int64_t before, int64_t after) {
    if (before != after) changes.push_back(absl::StrCat(key, "=", after));
  };
  compare("tp", from.tp, to.tp);
  compare("cp", from.cp, to.cp);
  compare("pp", from.pp, to.pp);
  compare("zero", from.zero, to.zero);
  if (from.dp == to.dp && from.zero > 0 && to.zero > 0 && from.shards != to.shards) {
    changes.push_back(absl::StrCat("hsdp=", to.shards < to.dp ? to.shards : 0));
  }
  compare("micro", from.micro, to.micro);
  if (from.pp > 1 && to.pp > 1) {
    if (from.schedule != to.schedule) {
      changes.push_back(absl::StrCat("schedule=", scheduleName(to.schedule)));
    }
    compare("interleave", from.interleave, to.interleave);
  }
  if (from.remat != to.remat) changes.push_back(absl::StrCat("remat=", rematName(to.remat)));
  if (from.tp > 1 && to.tp > 1 && from.sequenceParallel != to.sequenceParallel) {
    changes.push_back(absl::StrCat("sp=", to.sequenceParallel ? "on" : "off"));
  }
  if (from.tp == to.tp && from.padding != to.padding) {
    changes.push_back(absl::StrCat("padding=", to.padding ? "on" : "off"));
  }
  if (from.tp > 1 && to.tp > 1 && from.apart != to.apart) {
    changes.push_back(absl::StrCat("apart=", to.apart ? "on" : "off"));
  }
  if (from.pp > 1 && to.pp > 1 && from.dp > 1 && to.dp > 1 && from.placement != to.placement) {
    changes.push_back(absl::StrCat("placement=", placementName(to.placement)));
  }
  return absl::StrJoin(changes, ", ");
}

// The level of links that ranks use which are so far apart.
std::string linkName(const Cluster& cluster, int64_t distance) {
  for (const LinkLevel& level : cluster.links) {
    if (distance < level.devices) return absl::StrCat(" over ", level.name);
  }
  return "";
}

// The one that others wait for.
const Evaluation::Program& busiest(const Evaluation& evaluation) {
  return *std::min_element(evaluation.programs.begin(), evaluation.programs.end(),
                           [](const auto& a, const auto& b) { return a.idle < b.idle; });
}

// What makes up the difference between two steps: the largest part, and another that is a third of
// it at least.
std::string partsText(const TriedStrategy& best, const TriedStrategy& other,
                      const Cluster& cluster) {
  const Evaluation::Program& before = busiest(best.evaluation);
  const Evaluation::Program& after = busiest(other.evaluation);
  const Candidate& candidate = other.candidate;
  const int64_t ofSample = candidate.ofSample();
  const bool isLayers = ofSample > best.candidate.ofSample();
  const int64_t last = (isLayers ? ofSample : ofSample * candidate.dp) - 1;
  const int64_t apart = candidate.places().of(last);
  struct Part {
    std::string name;
    double before, after;
    double change() const { return after - before; }
  };
  std::vector<Part> parts = {{"computing", before.computing, after.computing},
                             {absl::StrCat("waits for collectives", linkName(cluster, apart)),
                              before.communicating, after.communicating},
                             {"waits for other stages", before.idle, after.idle}};
  const double sign = other.evaluation.seconds >= best.evaluation.seconds ? 1 : -1;
  std::sort(parts.begin(), parts.end(),
            [&](const Part& a, const Part& b) { return a.change() * sign > b.change() * sign; });
  constexpr double kWorthSaying = 1. / 3;
  std::vector<std::string> texts;
  for (const Part& part : parts) {
    if (part.change() * sign <= 0 || part.change() / parts.front().change() < kWorthSaying) break;
    texts.push_back(
        absl::StrCat(part.name, " ", secondsText(part.before), " to ", secondsText(part.after)));
  }
  return absl::StrJoin(texts, ", ");
}

std::string noFitText(const Evaluation& evaluation, const Cluster& cluster) {
  const Evaluation::Program* most = &evaluation.programs.front();
  for (const Evaluation::Program& program : evaluation.programs) {
    if (program.peakBytes() > most->peakBytes()) most = &program;
  }
  const size_t use = std::max_element(most->bytes.begin(), most->bytes.end()) - most->bytes.begin();
  const std::string what = absl::StrReplaceAll(memoryUseKey(use), {{"_", " "}});
  if (cluster.device.memory < static_cast<int64_t>(kGiB)) {
    return absl::StrFormat(
        "does not fit: %s of %s, %s of them %s", bytesText(static_cast<int64_t>(most->peakBytes())),
        bytesText(cluster.device.memory), bytesText(static_cast<int64_t>(most->bytes[use])), what);
  }
  return absl::StrFormat(
      "does not fit: %.1f GiB of %.1f, %.1f of them %s", most->peakBytes() / kGiB,
      static_cast<double>(cluster.device.memory) / kGiB, most->bytes[use] / kGiB, what);
}

Json programsJson(const Evaluation& evaluation) {
  Json programs = Json::array();
  for (const Evaluation::Program& program : evaluation.programs) {
    Json memory = {{"total", program.peakBytes()}};
    for (size_t use = 0; use < program.bytes.size(); ++use) {
      memory[memoryUseKey(use)] = program.bytes[use];
    }
    programs.push_back({{"program", program.name},
                        {"stages", program.stages},
                        {"ranks", program.ranks},
                        {"busy", program.computing},
                        {"exposed_communication", program.communicating},
                        {"idle", program.idle},
                        {"memory", std::move(memory)}});
  }
  return programs;
}

Json triedJson(const TriedStrategy& tried) {
  const Evaluation& evaluation = tried.evaluation;
  return {{"strategy", tried.candidate.shortText()},
          {"text", tried.candidate.strategy().text},
          {"fits", tried.fits},
          {"step_seconds", evaluation.seconds},
          {"at_least_seconds", tried.bound},
          {"mfu", evaluation.mfu},
          {"hfu", evaluation.hfu},
          {"bubble", evaluation.bubble},
          {"exposed_communication", evaluation.exposed},
          {"peak_memory", evaluation.peakBytes()},
          {"programs", programsJson(evaluation)}};
}

Json machineJson(const ThisMachine& machine) {
  return {{"device", machine.device},
          {"devices", machine.devices},
          {"ranks", machine.cluster.devices()},
          {"memory_per_rank", machine.cluster.device.memory},
          {"rates_of", machine.ratesOf}};
}

// Where the best is not the fastest.
std::string simplerText(const SearchResult& result) {
  if (result.tried.size() < 2 || !result.tried[1].fits) return "";
  const double more = result.tried[0].evaluation.seconds / result.tried[1].evaluation.seconds - 1;
  return more <= 0 ? ""
                   : absl::StrFormat(" It takes %.1f %% more than the fastest, and is simpler.",
                                     100 * more);
}

}  // namespace

std::string secondsText(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.3g s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g us", seconds * 1e6);
}

std::string percentText(double share) { return absl::StrFormat("%.1f", 100 * share); }

std::string reasonText(const TriedStrategy& best, const TriedStrategy& other,
                       const Cluster& cluster) {
  std::string text = absl::StrCat(changeText(best.candidate, other.candidate), ": ");
  const double slower = other.evaluation.seconds / best.evaluation.seconds - 1;
  if (!other.fits) {
    absl::StrAppend(&text, noFitText(other.evaluation, cluster));
    if (slower < 0) absl::StrAppendFormat(&text, " (else %.1f %%)", 100 * slower);
    return text;
  }
  constexpr double kSame = 5e-4;
  if (slower > -kSame && slower < kSame) return text + "the same time";
  absl::StrAppendFormat(&text, "%+.1f %%", 100 * slower);
  const std::string parts = partsText(best, other, cluster);
  return parts.empty() ? text : absl::StrCat(text, " (", parts, ")");
}

std::string choiceText(const FoundStrategies& found) {
  const SearchResult& result = found.result;
  return absl::StrFormat(
      "%s: %s a step, MFU %s %%; of %d strategies on %d %s, %d were simulated in %.1f s%s",
      found.best().candidate.shortText(), secondsText(found.best().evaluation.seconds),
      percentText(found.best().evaluation.mfu), result.candidates, found.problem.ranks,
      found.problem.ranks == 1 ? "device" : "devices", result.simulated, found.seconds,
      result.isWhole ? "" : ", and a faster one may be left");
}

std::string searchText(const FoundStrategies& found, int64_t rows) {
  const SearchResult& result = found.result;
  std::vector<std::vector<std::string>> table = {
      {"", "step", "MFU %", "GiB per stage", "bubble %", "waits %", "strategy"}};
  for (const TriedStrategy& tried : result.tried) {
    if (!tried.fits || static_cast<int64_t>(table.size()) > rows) break;
    const Evaluation& evaluation = tried.evaluation;
    table.push_back({absl::StrCat(table.size()), secondsText(evaluation.seconds),
                     percentText(evaluation.mfu), memoryText(evaluation),
                     percentText(evaluation.bubble), percentText(evaluation.exposed),
                     tried.candidate.shortText()});
  }
  std::vector<size_t> widths(table.front().size(), 0);
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppendFormat(&text, "%*s  ", static_cast<int>(widths[i]), row[i]);
    }
    absl::StrAppend(&text, row.back(), "\n");
  }
  const int64_t memory = found.problem.cluster.device.memory;
  absl::StrAppendFormat(&text, "of %s per device. %s.%s\n",
                        memory < static_cast<int64_t>(kGiB)
                            ? bytesText(memory)
                            : absl::StrFormat("%.4g GiB", static_cast<double>(memory) / kGiB),
                        choiceText(found), simplerText(result));
  if (result.refused > 0) {
    absl::StrAppend(&text, result.refused,
                    " of these can't be compiled; the first: ", result.firstRefusal.message(),
                    "\n");
  }
  if (!result.neighbours.empty()) absl::StrAppend(&text, "beside the first:\n");
  for (const TriedStrategy& other : result.neighbours) {
    absl::StrAppend(&text, "  ", reasonText(found.best(), other, found.problem.cluster), "\n");
  }
  return text;
}

std::string searchJson(const FoundStrategies& found, int64_t rows,
                       const std::optional<ThisMachine>& machine) {
  const SearchResult& result = found.result;
  Json strategies = Json::array(), neighbours = Json::array();
  for (const TriedStrategy& tried : result.tried) {
    if (!tried.fits || static_cast<int64_t>(strategies.size()) == rows) break;
    strategies.push_back(triedJson(tried));
  }
  for (const TriedStrategy& other : result.neighbours) {
    Json json = triedJson(other);
    json["reason"] = reasonText(found.best(), other, found.problem.cluster);
    neighbours.push_back(std::move(json));
  }
  const Json json = {{"machine", machine ? machineJson(*machine) : Json()},
                     {"ranks", found.problem.ranks},
                     {"candidates", result.candidates},
                     {"impossible", result.impossible},
                     {"simulated", result.simulated},
                     {"refused", result.refused},
                     {"first_refusal", std::string(result.firstRefusal.message())},
                     {"whole", result.isWhole},
                     {"seconds", found.seconds},
                     {"strategies", std::move(strategies)},
                     {"neighbours", std::move(neighbours)}};
  return json.dump(2) + "\n";
}

}  // namespace oriel::driver
