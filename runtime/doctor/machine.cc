#include "runtime/doctor/machine.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/backend/cuda_plugin.h"
#include "runtime/base/control_group.h"
#include "runtime/base/files.h"

namespace oriel::runtime {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

MachineMemory MemoryOf(const std::string& meminfo, std::optional<int64_t> limit) {
  MachineMemory memory;
  for (const absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &kib)) continue;
    if (words[0] == "MemTotal:") memory.total = kib * 1024;
    if (words[0] == "MemAvailable:") memory.available = kib * 1024;
  }
  memory.usable = std::min(memory.total, limit.value_or(memory.total));
  return memory;
}

MachineMemory ReadMemory() { return MemoryOf(ReadSystemText("/proc/meminfo"), MemoryQuota()); }

absl::StatusOr<std::vector<CudaDevice>> CudaDevicesOf(
    const absl::StatusOr<std::string>& description) {
  if (!description.ok()) return absl::UnavailableError(description.status().message());
  const Json json = Json::parse(*description, nullptr, /*allow_exceptions=*/false);
  try {
    const Json& driver = json.at("driver");
    if (!driver.at("ok").get<bool>()) {
      return absl::UnavailableError(driver.at("problem").get<std::string>());
    }
    std::vector<CudaDevice> devices;
    for (const Json& device : json.at("devices")) {
      if (device.contains("problem")) {
        return absl::UnavailableError(device.at("problem").get<std::string>());
      }
      devices.push_back(
          {device.at("name").get<std::string>(), device.at("memory_bytes").get<int64_t>()});
    }
    if (devices.empty()) return absl::UnavailableError("the CUDA driver shows no device");
    return devices;
  } catch (const Json::exception&) {
    return absl::UnavailableError("the CUDA plugin says nothing that this program understands");
  }
}

absl::StatusOr<std::vector<CudaDevice>> VisibleCudaDevices() {
  return CudaDevicesOf(DescribeCuda());
}

}  // namespace oriel::runtime
