// `oriel doctor`: what this machine has of what Oriel needs, and what to do about the rest.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/command.h"
#include "driver/version.h"
#include "runtime/doctor/doctor.h"

namespace oriel::driver {

namespace {

struct Arguments {
  runtime::DoctorRequest request;
  bool json = false;
};

absl::Status examine(const Arguments& arguments) {
  std::vector<runtime::Finding> findings = {{"oriel", true, kVersion, ""}};
  for (runtime::Finding& finding : runtime::Examine()) findings.push_back(std::move(finding));
  const std::vector<runtime::Finding> missing = runtime::Missing(findings, arguments.request);
  const std::string text =
      arguments.json ? runtime::DoctorJson(findings, missing) : runtime::DoctorText(findings);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (missing.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const runtime::Finding& finding : missing) names.push_back(finding.name);
  return absl::FailedPreconditionError(
      absl::StrCat("what was asked for can't run here without: ", absl::StrJoin(names, ", ")));
}

}  // namespace

void addDoctorCommand(CLI::App& app, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("doctor", "Says what this machine has and lacks, and what to do about it");
  command->add_option("--device", arguments->request.device, "Fail unless plans for it can run")
      ->type_name("host|cuda")
      ->check(CLI::IsMember({"host", "cuda"}));
  command->add_option("--comm", arguments->request.comm, "Fail unless ranks can talk by it")
      ->type_name("in_process|mpi")
      ->check(CLI::IsMember({"in_process", "mpi"}));
  command->add_flag("--json", arguments->json, "For scripts: one JSON object with stable keys");
  command->footer(
      "Examples:\n"
      "  oriel doctor\n"
      "  oriel doctor --device cuda --comm mpi\n"
      "  oriel doctor --json | jq '.findings[] | select(.ok | not)'");
  command->callback([=] { *run = [arguments] { return examine(*arguments); }; });
}

}  // namespace oriel::driver
