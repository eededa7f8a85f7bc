#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/checks.h"
#include "kernels/generated/generated.h"
#include "runtime/base/status.h"

namespace oriel::kernels {
namespace {

constexpr char kImage[] = "image.";

// Code that is loaded, by its bytes and entry.
struct Loaded {
  std::mutex mutex;
  std::map<std::pair<std::string, int64_t>, std::weak_ptr<const HostCode>> code;
};
Loaded& TheLoaded() {
  static auto* loaded = new Loaded;
  return *loaded;
}

// Best first.
std::vector<std::string> ProcessorTargets() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // What the level x86-64-v3 is made of, as far as LLVM makes use of it.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("sse4.2");
  if (v3) return {"x86-64-v3", "x86-64"};
  return {"x86-64"};
#else
  return {};
#endif
}

}  // namespace

absl::StatusOr<std::shared_ptr<const HostCode>> HostCode::Load(const std::string& code,
                                                               int64_t entry) {
  if (entry < 0 || entry >= static_cast<int64_t>(code.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("generated code of ", code.size(), " bytes can't begin at byte ", entry));
  }
  Loaded& loaded = TheLoaded();
  const std::lock_guard<std::mutex> lock(loaded.mutex);
  std::weak_ptr<const HostCode>& slot = loaded.code[{code, entry}];
  if (std::shared_ptr<const HostCode> known = slot.lock()) return known;
  // Never writable and executable at a time.
  void* memory =
      mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", code.size(), " bytes of generated code"));
  }
  std::shared_ptr<HostCode> made(new HostCode(memory, code.size()));
  std::memcpy(memory, code.data(), code.size());
  if (mprotect(memory, code.size(), PROT_READ | PROT_EXEC) != 0) {
    return absl::FailedPreconditionError(
        "this system does not let a program run code that it has written, as generated kernels "
        "are; compile the plan with --generated-kernels off");
  }
  made->function_ = reinterpret_cast<Function>(static_cast<char*>(memory) + entry);
  slot = made;
  return made;
}

HostCode::~HostCode() { munmap(memory_, bytes_); }

absl::StatusOr<GeneratedUnits> UnitsOf(const KernelSpec& spec) {
  GeneratedUnits result;
  ORIEL_ASSIGN_OR_RETURN(result.units, spec.Int("units"));
  ORIEL_ASSIGN_OR_RETURN(result.unit_elements, spec.Int("unit_elements"));
  ORIEL_ASSIGN_OR_RETURN(result.block_units, spec.Int("block_units"));
  ORIEL_ASSIGN_OR_RETURN(result.thread_elements, spec.Int("thread_elements"));
  if (result.thread_elements < 1) return Malformed(spec, "has threads of no elements");
  for (const TensorSpec& tensor : spec.results) {
    const int64_t count = tensor.num_elements();
    if (result.units > 0 && result.unit_elements > 0 && count % result.units == 0 &&
        (count / result.units == result.unit_elements ||
         (result.block_units > 0 && count == result.units))) {
      continue;
    }
    return Malformed(spec, absl::StrCat("has a result of ", count, " elements, but ", result.units,
                                        " units of ", result.unit_elements));
  }
  return result;
}

absl::StatusOr<std::shared_ptr<const HostCode>> LoadForThisProcessor(const KernelSpec& spec) {
  for (const std::string& target : ProcessorTargets()) {
    if (spec.attributes.count(absl::StrCat(kImage, target)) == 0) continue;
    ORIEL_ASSIGN_OR_RETURN(const std::string code, spec.String(absl::StrCat(kImage, target)));
    ORIEL_ASSIGN_OR_RETURN(const int64_t entry, spec.Int(absl::StrCat("entry.", target)));
    return HostCode::Load(code, entry);
  }
  std::vector<std::string> targets;
  for (const auto& [name, attribute] : spec.attributes) {
    if (absl::StartsWith(name, kImage)) targets.push_back(name.substr(sizeof kImage - 1));
  }
  return absl::UnimplementedError(
      absl::StrCat("the plan has code for ", absl::StrJoin(targets, ", "),
                   ", none of which this processor runs; compile it on a machine of this kind, or "
                   "with --generated-kernels off"));
}

}  // namespace oriel::kernels
