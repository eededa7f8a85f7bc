// `oriel verify`: is a plan sound, and are its weights there?
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "driver/command.h"
#include "driver/weights.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify.h"

namespace oriel::driver {

namespace {

absl::Status verify(const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(plan::Plan plan, runtime::ReadPlan(path));
  if (absl::Status sound = runtime::VerifyPlan(plan); !sound.ok()) {
    return runtime::Annotate(sound, path);
  }
  ORIEL_RETURN_IF_ERROR(checkWeights(plan, path));
  int instructions = 0;
  for (const plan::Program& program : plan.programs()) {
    for (const plan::Segment& segment : program.segments()) {
      instructions += segment.instructions_size();
    }
  }
  std::printf("ok: %s: %s for %d rank%s, %d parameters, %d instructions\n", path.c_str(),
              plan.model_name().c_str(), static_cast<int>(plan.world_size()),
              plan.world_size() == 1 ? "" : "s", plan.parameters_size(), instructions);
  return absl::OkStatus();
}

}  // namespace

void addVerifyCommand(CLI::App& app, Run* run) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "verify", "Checks that a plan is sound and that its weights lie beside it, undamaged");
  command->add_option("PLAN", *path, "The plan (.oplan)")->required()->type_name("");
  command->footer("Example:\n  oriel verify model.oplan");
  command->callback([=] { *run = [path] { return verify(*path); }; });
}

}  // namespace oriel::driver
