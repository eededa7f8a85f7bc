// `oriel doctor`: what this machine has of what Oriel needs, and what to do about the rest.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/command.h"
#include "driver/measure.h"
#include "driver/version.h"
#include "runtime/doctor/doctor.h"

namespace oriel::driver {

namespace {

struct Arguments {
  runtime::DoctorRequest request;
  bool json = false;
  std::string cluster;  // file to write, or empty
  int64_t ranks = 0;    // 0: one per core
  int64_t threads = 0;  // of each; 0: the cores divided by the ranks
  std::string linkDelay;
};

absl::Status measure(const Arguments& arguments) {
  std::vector<std::string> words;
  if (arguments.ranks > 0) words.insert(words.end(), {"-n", absl::StrCat(arguments.ranks)});
  if (arguments.threads > 0) {
    words.insert(words.end(), {"--threads", absl::StrCat(arguments.threads)});
  }
  if (!arguments.linkDelay.empty()) {
    words.insert(words.end(), {"--link-delay", arguments.linkDelay});
  }
  return measureCluster(arguments.cluster, words);
}

absl::Status examine(const Arguments& arguments) {
  if (!arguments.cluster.empty()) return measure(arguments);
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
      ->type_name("in_process|processes|mpi")
      ->check(CLI::IsMember({"in_process", "processes", "mpi"}));
  command->add_flag("--json", arguments->json, "For scripts: one JSON object with stable keys");
  CLI::Option* cluster =
      command
          ->add_option("--measure", arguments->cluster,
                       "Measure cores, memory and communication instead, and write a cluster file")
          ->type_name("FILE.yaml");
  command->add_option("-n,--ranks", arguments->ranks, "Ranks that measure (default: the cores)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""))
      ->needs(cluster);
  command->add_option("--threads", arguments->threads, "Per rank (default: cores / ranks)")
      ->type_name("T")
      ->check(CLI::Range(1, 1024).description(""))
      ->needs(cluster);
  command->add_option("--link-delay", arguments->linkDelay, "As for oriel-run")
      ->type_name("latency=50us,bandwidth=1GB/s")
      ->needs(cluster);
  command->footer(
      "Examples:\n"
      "  oriel doctor\n"
      "  oriel doctor --device cuda --comm mpi\n"
      "  oriel doctor --measure cluster.yaml -n 2\n"
      "  oriel doctor --json | jq '.findings[] | select(.ok | not)'");
  command->callback([=] { *run = [arguments] { return examine(*arguments); }; });
}

}  // namespace oriel::driver
