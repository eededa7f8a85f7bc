#include "driver/this_machine.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "driver/plan_text.h"
#include "runtime/base/cores.h"
#include "runtime/base/status.h"
#include "runtime/plan/device.h"

namespace oriel::driver {

namespace {

constexpr char kCore[] = "core";
constexpr char kRemedy[] = ": say which machines the strategy is for (--cluster FILE|NAME)";

std::string countText(int64_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// What is inside a node, with a device for each rank.
Cluster oneNode(Cluster preset, int64_t ranks) {
  preset.name = "this machine";
  preset.nodes = 1;
  preset.devicesPerNode = ranks;
  preset.links.resize(1);
  preset.links.front().devices = ranks;
  return preset;
}

// Of a core, where ranks take turns on it; several cores only compute and read faster.
void share(double cores, Cluster* cluster) {
  ClusterDevice& device = cluster->device;
  for (std::optional<double>* rate :
       {&device.flops.bf16, &device.flops.f16, &device.flops.f32, &device.flops.f64}) {
    if (*rate) **rate *= cores;
  }
  device.memoryBandwidth *= cores;
  if (cores >= 1) return;
  device.efficiency.memoryRamp /= cores;
  device.efficiency.kernelFloor /= cores;
  for (LinkLevel& level : cluster->links) {
    level.bandwidth *= cores;
    level.latency /= cores;
    level.ramp /= cores;
  }
}

// "A100", "SXM4", "40GB" of "NVIDIA A100-SXM4-40GB".
std::vector<std::string> wordsOf(const std::string& name) {
  return absl::StrSplit(absl::AsciiStrToUpper(name), absl::ByAnyChar(" -"), absl::SkipEmpty());
}

// By the silicon's name and the memory, of which drivers keep some for themselves. Cards for a slot
// have less power and other links than the presets.
bool isLike(const ClusterDevice& known, const runtime::CudaDevice& device) {
  constexpr double kSameMemory = 0.15;
  const std::vector<std::string> words = wordsOf(device.name);
  const double memory =
      static_cast<double>(device.memory) / static_cast<double>(known.memory + known.reserved);
  return absl::c_linear_search(words, wordsOf(known.name).front()) &&
         !absl::c_linear_search(words, "PCIE") && !absl::c_linear_search(words, "NVL") &&
         std::abs(memory - 1) < kSameMemory;
}

// "2 cores for 4 ranks, 7.83 GiB for each"
std::string hardwareText(const ThisMachine& machine, int64_t memory) {
  return absl::StrCat(
      machine.device == kCore ? countText(machine.devices, kCore)
                              : absl::StrCat(machine.devices, " x ", machine.device),
      " for ", countText(machine.cluster.devices(), "rank"), ", ", bytesText(memory), " for each");
}

}  // namespace

std::string ThisMachine::text(int64_t memory) const {
  const std::string rates =
      device == kCore
          ? "those of any core: `oriel doctor --measure FILE` measures them for --cluster FILE"
          : absl::StrCat("those of --cluster ", ratesOf,
                         "; if they are others, give --cluster FILE");
  return absl::StrCat("machine ", hardwareText(*this, memory), "; rates are ", rates, "\n");
}

std::string ThisMachine::comment(int64_t memory) const {
  return absl::StrCat("# Searched for a machine with ", hardwareText(*this, memory),
                      "; rates of --cluster ", ratesOf, ".\n");
}

absl::StatusOr<ThisMachine> hostMachine(int64_t cores, int64_t memory, int64_t ranks) {
  if (memory <= 0) {
    return absl::UnavailableError(
        absl::StrCat("this machine does not say what memory it has", kRemedy));
  }
  ORIEL_ASSIGN_OR_RETURN(const Cluster preset, findCluster("cpu"));
  ThisMachine machine;
  machine.cluster = oneNode(preset, ranks);
  machine.cluster.device.memory = std::max<int64_t>(1, memory / ranks);
  share(ranks <= cores ? static_cast<double>(cores / ranks)
                       : static_cast<double>(cores) / static_cast<double>(ranks),
        &machine.cluster);
  machine.device = kCore;
  machine.devices = cores;
  machine.ratesOf = "cpu";
  return machine;
}

absl::StatusOr<ThisMachine> cudaMachine(const std::vector<runtime::CudaDevice>& devices,
                                        std::optional<int64_t> ranks) {
  const auto count = static_cast<int64_t>(devices.size());
  const runtime::CudaDevice& first = devices.front();
  if (ranks.value_or(count) > count) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there are ", *ranks, " ranks, but this machine has ", countText(count, "GPU"), kRemedy));
  }
  int64_t memory = first.memory;
  for (const runtime::CudaDevice& device : devices) {
    memory = std::min(memory, device.memory);
    if (device.name == first.name) continue;
    return absl::FailedPreconditionError(absl::StrCat("this machine's GPUs differ ('", first.name,
                                                      "', '", device.name, "')", kRemedy));
  }
  for (const std::string& name : clusterPresets()) {
    ORIEL_ASSIGN_OR_RETURN(const Cluster preset, findCluster(name));
    if (!isLike(preset.device, first)) continue;
    ThisMachine machine;
    machine.cluster = oneNode(preset, ranks.value_or(count));
    machine.cluster.device.memory = memory - preset.device.reserved;
    machine.device = first.name;
    machine.devices = count;
    machine.ratesOf = name;
    return machine;
  }
  return absl::FailedPreconditionError(absl::StrCat("Oriel knows no rates of this machine's '",
                                                    first.name, "' (", bytesText(first.memory), ")",
                                                    kRemedy));
}

absl::StatusOr<ThisMachine> thisMachine(const std::string& deviceKind,
                                        std::optional<int64_t> ranks) {
  if (deviceKind == runtime::kHostDevice) {
    const int64_t cores = runtime::UsableCores();
    return hostMachine(cores, runtime::ReadMemory().usable, ranks.value_or(cores));
  }
  absl::StatusOr<std::vector<runtime::CudaDevice>> devices = runtime::VisibleCudaDevices();
  if (devices.ok()) return cudaMachine(*devices, ranks);
  return absl::UnavailableError(absl::StrCat("this machine has no GPU that could be looked at (",
                                             devices.status().message(), ")", kRemedy));
}

}  // namespace oriel::driver
