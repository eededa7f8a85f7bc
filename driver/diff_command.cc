// `oriel diff`: what differs between two plans, or two strategies.
#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/plan_diff.h"
#include "driver/strategy_diff.h"
#include "passes/strategy/strategy_reader.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify.h"

namespace oriel::driver {

namespace {

struct Arguments {
  std::string a, b;
  bool all = false;
  bool json = false;
};

constexpr char kRemedy[] = "; give two plans (.oplan), or two strategies (.yaml)";

bool isStrategy(const std::string& path) {
  return absl::EndsWith(path, ".yaml") || absl::EndsWith(path, ".yml");
}

absl::Status checkFiles(const Arguments& arguments) {
  for (const std::string& path : {arguments.a, arguments.b}) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) continue;
    return absl::NotFoundError(absl::StrCat("there is no file '", path, "'", kRemedy));
  }
  if (isStrategy(arguments.a) == isStrategy(arguments.b)) return absl::OkStatus();
  const std::string& strategy = isStrategy(arguments.a) ? arguments.a : arguments.b;
  const std::string& plan = isStrategy(arguments.a) ? arguments.b : arguments.a;
  return usageError(absl::StrCat("'", strategy, "' is a strategy, '", plan,
                                 "' is none: give two of a kind; `oriel compile --strategy ",
                                 strategy, "` makes a plan to compare with"));
}

absl::StatusOr<plan::Plan> soundPlan(const std::string& path) {
  absl::StatusOr<plan::Plan> plan = runtime::ReadPlan(path);
  if (absl::IsInvalidArgument(plan.status())) {
    return absl::InvalidArgumentError(absl::StrCat(plan.status().message(), kRemedy));
  }
  if (!plan.ok()) return plan;
  if (absl::Status sound = runtime::VerifyPlan(*plan); !sound.ok()) {
    return runtime::Annotate(sound, path);
  }
  return plan;
}

absl::StatusOr<Comparison> compare(const Arguments& arguments) {
  ORIEL_RETURN_IF_ERROR(checkFiles(arguments));
  if (isStrategy(arguments.a)) {
    ORIEL_ASSIGN_OR_RETURN(const Strategy a, readStrategy(arguments.a, MemoryFrom::kCluster));
    ORIEL_ASSIGN_OR_RETURN(const Strategy b, readStrategy(arguments.b, MemoryFrom::kCluster));
    return compareStrategies(a, arguments.a, b, arguments.b);
  }
  ORIEL_ASSIGN_OR_RETURN(const plan::Plan a, soundPlan(arguments.a));
  ORIEL_ASSIGN_OR_RETURN(const plan::Plan b, soundPlan(arguments.b));
  return comparePlans(a, arguments.a, b, arguments.b);
}

absl::Status diff(const Arguments& arguments) {
  ORIEL_ASSIGN_OR_RETURN(const Comparison comparison, compare(arguments));
  const std::string text = arguments.json ? comparisonJson(comparison, arguments.all)
                                          : comparisonText(comparison, arguments.all);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

void addDiffCommand(CLI::App& app, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("diff", "Shows what differs between two plans, or two strategies");
  command->add_option("A", arguments->a, "A plan (.oplan), or a strategy (.yaml)")
      ->required()
      ->type_name("");
  command->add_option("B", arguments->b, "Another one of the same kind")->required()->type_name("");
  command->add_flag("--all", arguments->all, "Also what is the same in both");
  command->add_flag("--json", arguments->json, "For scripts: one JSON object with stable keys");
  command->footer(
      "Examples:\n"
      "  oriel diff zero1.oplan zero3.oplan\n"
      "  oriel diff --all strategy.yaml other.yaml\n"
      "  oriel diff a.oplan b.oplan --json | jq '.values[] | select(.section == \"memory\")'");
  command->callback([=] { *run = [arguments] { return diff(*arguments); }; });
}

}  // namespace oriel::driver
