#include "runtime/doctor/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/backend/cuda_plugin.h"

namespace oriel::runtime {
namespace {

using Json = nlohmann::ordered_json;

// What the file holds; empty where it can't be read.
std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int count = sched_getaffinity(0, sizeof cores, &cores) == 0
                        ? CPU_COUNT(&cores)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, count);
}

MachineMemory MemoryOf(const std::string& meminfo, const std::string& limit) {
  MachineMemory memory;
  for (const absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &kib)) continue;
    if (words[0] == "MemTotal:") memory.total = kib * 1024;
    if (words[0] == "MemAvailable:") memory.available = kib * 1024;
  }
  // No limit is "max", or a number beyond all memory.
  uint64_t most = 0;
  const bool is_limited =
      absl::SimpleAtoi(limit, &most) && most < static_cast<uint64_t>(memory.total);
  memory.usable = is_limited ? static_cast<int64_t>(most) : memory.total;
  return memory;
}

MachineMemory ReadMemory() {
  std::string limit = TextOf("/sys/fs/cgroup/memory.max");
  if (limit.empty()) limit = TextOf("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  return MemoryOf(TextOf("/proc/meminfo"), limit);
}

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
