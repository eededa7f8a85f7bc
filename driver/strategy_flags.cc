#include "driver/strategy_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/console.h"
#include "passes/search/candidate.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

// "the cluster h100 has 8 devices (1 node of 8)"
std::string devicesText(const std::string& fileOrName, const Cluster& cluster) {
  return absl::StrCat("the cluster ", fileOrName, " has ", cluster.devices(),
                      cluster.devices() == 1 ? " device" : " devices", " (", cluster.nodes,
                      cluster.nodes == 1 ? " node" : " nodes", " of ", cluster.devicesPerNode, ")");
}

// How to say the cluster with so many devices: "--cluster h100:2".
std::string largerText(const std::string& fileOrName, const Cluster& cluster, int64_t devices) {
  const int64_t nodes = (devices + cluster.devicesPerNode - 1) / cluster.devicesPerNode;
  const std::string name = fileOrName.substr(0, fileOrName.find(':'));
  return clusterPresetText(name) ? absl::StrCat("--cluster ", name, ":", nodes)
                                 : absl::StrCat("`nodes: ", nodes, "` in ", fileOrName);
}

}  // namespace

void addStrategyFlags(CLI::App* command, StrategyOptions* strategy, const std::string& worldAlone) {
  command
      ->add_option("--strategy", strategy->file,
                   "How to split the work over ranks (YAML, docs/strategy.md)")
      ->type_name("FILE");
  command->add_option("--mesh", strategy->mesh, "In place of a file: sizes of dp, fsdp, cp and tp")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("AXIS=N,..");
  command
      ->add_option("--zero", strategy->zero,
                   "Shard 1: optimizer state, 2: gradients too, 3: parameters too")
      ->type_name("0..3");
  command->add_option("--hsdp", strategy->hsdp, "Shard in groups of N ranks, which divides dp")
      ->type_name("N");
  command->add_flag("--sp", strategy->sequenceParallel,
                    "Split the sequence over tp between layers");
  command->add_flag("--padding", strategy->padding,
                    "Give heads and columns that tp does not divide zeros behind their end");
  command
      ->add_option("--memory", strategy->memory,
                   "What a rank has: fail, and say what would help, if one needs more. Units: B, "
                   "KB, KiB, MB, MiB, GB, GiB, TB, TiB")
      ->type_name("16GiB");
  command
      ->add_option("--stages", strategy->stages,
                   "Pipeline stages: how many, or what is in each: BLOCKS,..")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N");
  command->add_option("--schedule", strategy->schedule, "gpipe, 1f1b, interleaved or zb-h1")
      ->type_name("KIND");
  command->add_option("--interleave", strategy->interleave, "Stages on the same ranks")
      ->type_name("N");
  command
      ->add_option("--microbatches", strategy->microbatches,
                   "Of a step; batch.micro then follows from batch.global")
      ->type_name("N");
  command
      ->add_option("--balance", strategy->balance,
                   "What cuts into stages balance: time, or parameters to compare with")
      ->type_name("WHAT");
  command
      ->add_option("--placement", strategy->placement,
                   "What is farthest apart on the cluster: stages (pp_outermost, the default), or "
                   "data-parallel ranks (dp_outermost)")
      ->type_name("ORDER");
  command
      ->add_option("--overlap", strategy->overlap,
                   "Communication beside computing: on, off, or sizes of buckets and of what is "
                   "gathered ahead, e.g. bucket=25MiB,prefetch=50MiB")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("on|off|SIZES");
  command
      ->add_option(
          "--world", strategy->world,
          "Ranks. Alone: " + worldAlone +
              ". With stages and no mesh, all of a stage are data-parallel; beside a mesh, what it "
              "must have")
      ->type_name("N");
  command
      ->add_option("--remat", strategy->remat,
                   "What the backward computes again: none, full, selective, or auto, which is the "
                   "default with --memory (docs/remat.md)")
      ->type_name("POLICY");
}

CLI::Option* addClusterFlag(CLI::App* command, std::string* cluster, const std::string& use) {
  return command
      ->add_option("--cluster", *cluster,
                   "The machines: a file (docs/cluster.md) or " +
                       absl::StrJoin(clusterPresets(), ", ") + ", with nodes as in h100:4. " + use)
      ->type_name("FILE|NAME");
}

void addFixFlag(CLI::App* command, std::vector<std::string>* fix) {
  command->add_option("--fix", *fix, "Choices that the search is not to make: " + pinsHelp())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE,..");
}

absl::StatusOr<Cluster> clusterFor(const std::string& fileOrName, const Strategy& strategy) {
  ORIEL_ASSIGN_OR_RETURN(Cluster cluster, findCluster(fileOrName));
  const int64_t ranks = strategy.ranks();
  if (ranks <= cluster.devices()) return cluster;
  return absl::InvalidArgumentError(absl::StrCat(
      "the strategy has ", ranks, " ranks, but ", devicesText(fileOrName, cluster),
      ": give it more (", largerText(fileOrName, cluster, ranks), "), or use a smaller mesh"));
}

absl::StatusOr<Cluster> clusterForSearch(const std::string& fileOrName,
                                         std::optional<int64_t> world) {
  ORIEL_ASSIGN_OR_RETURN(Cluster cluster, findCluster(fileOrName));
  if (world.value_or(0) <= cluster.devices()) return cluster;
  return absl::InvalidArgumentError(
      absl::StrCat("--world ", *world, " is too many: ", devicesText(fileOrName, cluster),
                   "; ask for --world ", cluster.devices(), " at most, or for more devices (",
                   largerText(fileOrName, cluster, *world), ")"));
}

}  // namespace oriel::driver
