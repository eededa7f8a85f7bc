#include "driver/report/html_report.h"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "driver/plan_text.h"
#include "driver/report/frontier_chart.h"
#include "driver/report/memory_chart.h"
#include "driver/report/model_chart.h"
#include "driver/report/step_chart.h"
#include "driver/report/svg.h"
#include "driver/search_text.h"
#include "driver/strategy_evaluator.h"

namespace oriel::driver {

namespace {

constexpr const char kTemplate[] =
#include "driver/html_report.inc"
    ;

std::string code(const std::string& text) {
  return absl::StrCat("<code>", escapeMarkup(text), "</code>");
}

std::string sizeText(double bytes) { return bytesText(static_cast<int64_t>(bytes)); }

// Three digits at least, and no exponents.
std::string rateText(double rate) {
  return rate < 100 ? absl::StrFormat("%.3g", rate) : absl::StrFormat("%.0f", rate);
}

class Report {
 public:
  Report(const FoundStrategies& found, const Simulation& best, const ReportInputs& inputs)
      : found_(found), best_(best), inputs_(inputs), evaluation_(evaluationOf(best)) {
    for (const Evaluation::Program& program : evaluation_.programs) {
      names_.push_back(program.name.empty() ? "all" : program.name);
    }
  }

  std::string text() const {
    const Cluster& cluster = found_.problem.cluster;
    const Candidate& candidate = found_.best().candidate;
    const auto limit = static_cast<double>(cluster.device.memory);
    return absl::StrReplaceAll(
        kTemplate, {{"{{title}}", escapeMarkup(title())},
                    {"{{inputs}}", inputsText()},
                    {"{{facts}}", facts()},
                    {"{{space}}", escapeMarkup(choiceText(found_)) + "."},
                    {"{{strategy}}", escapeMarkup(candidate.strategy().text)},
                    {"{{model}}",
                     absl::StrCat(blocksChart(best_, candidate.pp), ranksChart(candidate, cluster),
                                  splitsTable(candidate, cluster))},
                    {"{{memory}}", memoryChart(evaluation_.programs, names_, limit)},
                    {"{{timeline}}", timesText() + stepChart(best_.step, names_)},
                    {"{{frontier}}", frontierChart(allTried(), limit)},
                    {"{{table}}", fastest() + neighbours()}});
  }

 private:
  std::string title() const {
    const std::string& path = inputs_.model;
    // "folder/model.onnx": models are told apart by their folders.
    const size_t name = path.rfind('/', path.rfind('/') - 1);
    return absl::StrCat(path.find('/') == std::string::npos || name == std::string::npos
                            ? path
                            : path.substr(name + 1),
                        " on ", found_.problem.ranks, " x ", deviceName());
  }

  std::string deviceName() const {
    const Cluster& cluster = found_.problem.cluster;
    return cluster.device.name.empty() ? cluster.name : cluster.device.name;
  }

  std::string inputsText() const {
    const Cluster& cluster = found_.problem.cluster;
    return absl::StrCat("Model ", code(inputs_.model), ", recipe ", code(inputs_.recipe),
                        ", cluster ", code(inputs_.cluster), " (", cluster.nodes,
                        cluster.nodes == 1 ? " node of " : " nodes of ", cluster.devicesPerNode,
                        " ", escapeMarkup(deviceName()), ", ", bytesText(cluster.device.memory),
                        " each), ", found_.problem.globalBatch, " samples a step.");
  }

  std::string facts() const {
    std::string text;
    auto fact = [&](const std::string& value, const std::string& meaning) {
      absl::StrAppend(&text, "<div><b>", escapeMarkup(value), "</b><span>", meaning,
                      "</span></div>\n");
    };
    fact(secondsText(evaluation_.seconds), "a step");
    fact(rateText(best_.samples / evaluation_.seconds), "samples/s");
    if (best_.tokens > 0) {
      fact(rateText(best_.tokens / evaluation_.seconds), "tokens/s");
    }
    fact(percentText(evaluation_.mfu) + " %", "MFU");
    fact(sizeText(evaluation_.peakBytes()), "peak memory of a rank");
    fact(percentText(evaluation_.bubble) + " %", "bubble");
    fact(percentText(evaluation_.exposed) + " %", "waits for collectives");
    return text;
  }

  std::string timesText() const {
    return absl::StrFormat(
        "<p>%d %s of %d %s on a rank, then the update.</p>\n", best_.microbatches,
        best_.microbatches == 1 ? "microbatch" : "microbatches", found_.best().candidate.micro,
        found_.best().candidate.micro == 1 ? "sample" : "samples");
  }

  // The neighbours too, which may not be in the space.
  std::vector<TriedStrategy> allTried() const {
    std::vector<TriedStrategy> all = found_.result.tried;
    std::set<Candidate> known;
    for (const TriedStrategy& tried : all) known.insert(tried.candidate);
    for (const TriedStrategy& other : found_.result.neighbours) {
      if (known.insert(other.candidate).second) all.push_back(other);
    }
    return all;
  }

  std::string fastest() const {
    std::string text =
        "<table class=\"numbers\">\n<tr><th></th><th>step</th><th>MFU %</th>"
        "<th>memory</th><th>bubble %</th><th>waits %</th>"
        "<th class=\"words\">strategy</th></tr>\n";
    int64_t row = 0;
    for (const TriedStrategy& tried : found_.result.tried) {
      if (!tried.fits || ++row > inputs_.rows) break;
      const Evaluation& evaluation = tried.evaluation;
      absl::StrAppend(&text, row == 1 ? "<tr class=\"chosen\">" : "<tr>", "<td>", row, "</td><td>",
                      secondsText(evaluation.seconds), "</td><td>", percentText(evaluation.mfu),
                      "</td><td>", sizeText(evaluation.peakBytes()), "</td><td>",
                      percentText(evaluation.bubble), "</td><td>", percentText(evaluation.exposed),
                      "</td><td class=\"words\">", escapeMarkup(tried.candidate.shortText()),
                      "</td></tr>\n");
    }
    return text + "</table>\n";
  }

  std::string neighbours() const {
    if (found_.result.neighbours.empty()) return "";
    std::string text = "<p>With one choice changed:</p>\n<ul>\n";
    for (const TriedStrategy& other : found_.result.neighbours) {
      absl::StrAppend(&text, "<li>",
                      escapeMarkup(reasonText(found_.best(), other, found_.problem.cluster)),
                      "</li>\n");
    }
    return text + "</ul>\n";
  }

  const FoundStrategies& found_;
  const Simulation& best_;
  const ReportInputs& inputs_;
  const Evaluation evaluation_;
  std::vector<std::string> names_;  // of programs
};

}  // namespace

std::string htmlReport(const FoundStrategies& found, const Simulation& best,
                       const ReportInputs& inputs) {
  return Report(found, best, inputs).text();
}

}  // namespace oriel::driver
