// `oriel inspect`: what a plan holds and costs.
#include <cstdio>

#include "driver/command.h"
#include "driver/console.h"
#include "driver/plan_json.h"
#include "driver/plan_text.h"
#include "driver/schedule_chart.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify.h"

namespace oriel::driver {

namespace {

struct Arguments {
  std::string plan;
  bool json = false;
  bool segments = false;
  bool schedule = false;
};

std::string planText(const plan::Plan& plan, const runtime::PlanStats& stats, bool segments) {
  std::string text = provenanceText(plan) + trainingText(plan) + parametersText(plan, stats);
  text += programsText(stats) + transfersText(stats) + generatedText(plan);
  for (const runtime::ProgramStats& program : stats.programs) {
    if (stats.programs.size() > 1) text += programHeading(program);
    text += memoryText(program) + memoryPeakText(program);
    text += segmentsText(program, segments) + volumeText(program);
  }
  return text;
}

absl::StatusOr<std::string> scheduleOf(const plan::Plan& plan, bool json) {
  ORIEL_ASSIGN_OR_RETURN(PlanTimeline timeline, timelineOf(plan));
  return json ? scheduleJson(plan, timeline)
              : scheduleText(plan, timeline, outputColumns(), outputHasColor());
}

absl::Status inspect(const Arguments& arguments) {
  ORIEL_ASSIGN_OR_RETURN(plan::Plan plan, runtime::ReadPlan(arguments.plan));
  // Statistics are of sound plans only.
  if (absl::Status sound = runtime::VerifyPlan(plan); !sound.ok()) {
    return runtime::Annotate(sound, arguments.plan);
  }
  std::string text;
  if (arguments.schedule) {
    ORIEL_ASSIGN_OR_RETURN(text, scheduleOf(plan, arguments.json));
  } else {
    const runtime::PlanStats stats = runtime::ComputePlanStats(plan);
    text = arguments.json ? planJson(plan, stats) : planText(plan, stats, arguments.segments);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

void addInspectCommand(CLI::App& app, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("inspect", "Shows what a plan holds and costs");
  command->add_option("PLAN", arguments->plan, "The plan (.oplan)")->required()->type_name("");
  command->add_flag("--json", arguments->json, "For scripts: one JSON object with stable keys");
  command->add_flag("--segments", arguments->segments, "Also how often each kernel is launched");
  command->add_flag("--schedule", arguments->schedule,
                    "Only when each rank runs what in a step, as a chart; with --json, in numbers");
  command->footer(
      "Examples:\n"
      "  oriel inspect model.oplan --segments\n"
      "  oriel inspect model.oplan --schedule\n"
      "  oriel inspect model.oplan --json | jq '.programs[0].arena_bytes'");
  command->callback([=] { *run = [arguments] { return inspect(*arguments); }; });
}

}  // namespace oriel::driver
