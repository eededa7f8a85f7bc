#include "runtime/launch/device.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/backend/cuda_plugin.h"
#include "runtime/base/status.h"
#include "runtime/plan/device.h"
#include "runtime/plan/memory_stats.h"

namespace oriel::runtime {
namespace {

// "3.2 GiB", "12.0 MiB"
std::string MemoryText(int64_t bytes) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  if (bytes < 1024 * kMiB) return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / kMiB);
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1024.0 * kMiB));
}

// "When most is in use, it holds 1.0 GiB of parameters, .."
std::string UseOfMemory(const plan::Program& program) {
  std::string text = "When most is in use, it holds";
  const char* separator = " ";
  for (const auto& [part, bytes] : ComputeMemoryStats(program).parts) {
    if (bytes == 0) continue;
    absl::StrAppend(&text, separator, MemoryText(bytes), " of ", MemoryPartName(part));
    separator = ", ";
  }
  return text;
}

}  // namespace

absl::Status CheckDevice(const plan::Plan& plan, const std::string& asked) {
  const std::string kind(DeviceKind(plan));
  if (asked.empty() || asked == kind) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the plan is compiled for the device ", kind, ", but --device asks for ", asked,
                   "; compile it again: oriel compile --device ", asked));
}

int64_t LocalRank(int64_t rank) {
  for (const char* name :
       {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    const char* text = std::getenv(name);
    int64_t value = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &value) && value >= 0) return value;
  }
  return rank;
}

absl::StatusOr<std::shared_ptr<Backend>> OpenDevice(const plan::Plan& plan, int64_t local_rank) {
  if (DeviceKind(plan) == kHostDevice) return std::shared_ptr<Backend>();
  ORIEL_ASSIGN_OR_RETURN(const int devices, CountCudaDevices());
  if (devices == 0) {
    return absl::UnavailableError(
        "the plan is for CUDA, but the driver shows no device; see what CUDA_VISIBLE_DEVICES says, "
        "and `oriel doctor --device cuda`");
  }
  const int ordinal = static_cast<int>(local_rank % devices);
  ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Backend> device, OpenCudaBackend(ordinal));
  if (!RunsOn(plan.device(), device->architecture())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the plan is for ", DeviceText(plan.device()), ", but device ", ordinal, " is ",
        device->architecture(), "; compile it again: oriel compile --device cuda:",
        device->architecture(), " (or cuda, for any)"));
  }
  return std::shared_ptr<Backend>(std::move(device));
}

absl::Status CheckDeviceMemory(const plan::Program& program, int64_t free_bytes) {
  if (program.arena_bytes() <= free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a rank needs ", MemoryText(program.arena_bytes()), " of the device's memory, of which ",
      MemoryText(free_bytes), " are free: ", MemoryText(program.arena_bytes() - free_bytes),
      " too few. ", UseOfMemory(program), "; `oriel compile --memory ", free_bytes >> 20,
      "MiB` says what would make it smaller"));
}

absl::Status ExplainDeviceMemory(const absl::Status& status, const plan::Program& program,
                                 int64_t free_bytes) {
  if (!IsDeviceMemoryError(status)) return status;
  return absl::ResourceExhaustedError(absl::StrCat(
      status.message(), ". The device had ", MemoryText(free_bytes),
      " free when this rank began, for the plan's own ", MemoryText(program.arena_bytes()),
      ", what communication and kernels need beside them, and other ranks on this device. ",
      UseOfMemory(program),
      "; `oriel compile --memory SIZE`, with less than that, says what would ", "make it smaller"));
}

}  // namespace oriel::runtime
