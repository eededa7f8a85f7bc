#include "runtime/plan/device.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace oriel::runtime {
namespace {

// "sm_100a" names what only sm_100 has beside what is there later, too; devices don't say it.
std::string_view WithoutVariant(std::string_view architecture) {
  const char last = architecture.empty() ? ' ' : architecture.back();
  if (last == 'a' || last == 'f') architecture.remove_suffix(1);
  return architecture;
}

// "sm_90", "sm_100a"
bool IsArchitecture(std::string_view text) {
  constexpr std::string_view kPrefix = "sm_";
  if (text.substr(0, kPrefix.size()) != kPrefix) return false;
  text = WithoutVariant(text.substr(kPrefix.size()));
  return text.size() >= 2 && text.size() <= 3 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

}  // namespace

std::string_view DeviceKind(const plan::Plan& plan) {
  return plan.device().kind().empty() ? std::string_view(kHostDevice) : plan.device().kind();
}

absl::StatusOr<plan::Device> ParseDevice(std::string_view text) {
  plan::Device device;
  const size_t colon = text.find(':');
  device.set_kind(std::string(text.substr(0, colon)));
  if (colon != text.npos) {
    const std::string list(text.substr(colon + 1));
    for (const absl::string_view name : absl::StrSplit(list, ',')) {
      device.add_architectures(std::string(name));
    }
  }
  if (device.kind().empty() || !IsDevice(device)) {
    return absl::InvalidArgumentError(
        absl::StrCat("can't compile for the device '", std::string(text),
                     "'; give host, cuda, or cuda with architectures: cuda:sm_90,sm_100"));
  }
  return device;
}

std::string DeviceText(const plan::Device& device) {
  if (device.kind().empty()) return kHostDevice;
  return absl::StrCat(device.kind(), device.architectures().empty() ? "" : ":",
                      absl::StrJoin(device.architectures(), ","));
}

bool IsDevice(const plan::Device& device) {
  if (device.kind() != kCudaDevice) {
    return (device.kind() == kHostDevice || device.kind().empty()) &&
           device.architectures().empty();
  }
  return std::all_of(device.architectures().begin(), device.architectures().end(), IsArchitecture);
}

bool RunsOn(const plan::Device& device, std::string_view architecture) {
  return device.architectures().empty() ||
         std::any_of(device.architectures().begin(), device.architectures().end(),
                     [&](const std::string& of_plan) {
                       return WithoutVariant(of_plan) == WithoutVariant(architecture);
                     });
}

int64_t ArenaAlignment(std::string_view kind) { return kind == kCudaDevice ? 256 : 64; }

const std::vector<std::string_view>& CudaKernels() {
  static const auto* names = new std::vector<std::string_view>{
#include "runtime/plan/cuda_kernels.inc"
  };
  return *names;
}

}  // namespace oriel::runtime
