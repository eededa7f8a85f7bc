// Ordered implementations of kernels by name: what the registries of all devices share.
//
// With ORIEL_LOG=dispatch each prepared launch is one line on standard error: which implementation
// takes it, and why those before it do not.
#ifndef ORIEL_KERNELS_COMMON_DISPATCH_H_
#define ORIEL_KERNELS_COMMON_DISPATCH_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// Puts it behind those of the same or a higher priority.
template <typename Factory>
void Insert(Implementations<Factory>& all, const char* kernel, Implementation<Factory> one) {
  std::vector<Implementation<Factory>>& list = all[kernel];
  const auto place = std::find_if(list.begin(), list.end(),
                                  [&](const auto& other) { return other.priority < one.priority; });
  list.insert(place, one);
}

template <typename Factory>
std::vector<std::string> NamesOf(const Implementations<Factory>& all) {
  std::vector<std::string> names;
  for (const auto& entry : all) names.push_back(entry.first);
  return names;
}

// Whether ORIEL_LOG has it.
bool LogsDispatch();

// If ORIEL_LOG has it: "dispatch: cuda: softmax(f32[2, 8]): MakeBlock (MakeWarp: too wide)". No
// `taken`: none takes it.
void LogDispatch(const char* device, const KernelSpec& spec, const char* taken,
                 const std::string& refusals);

// "softmax(f32[2, 8])"
std::string LaunchName(const KernelSpec& spec);

// "kernel softmax(f32[2, 8]) has no implementation: .."
absl::Status NoImplementation(const KernelSpec& spec, const std::string& refusals);

// What the first implementation gives that takes the launch, or finds it malformed: `make(factory)`
// is not Unimplemented. Else Unimplemented, with all reasons.
template <typename Factory, typename Make>
absl::StatusOr<KernelFn> Ask(const std::vector<Implementation<Factory>>& implementations,
                             const char* device, const KernelSpec& spec, const Make& make) {
  std::string refusals;
  for (const Implementation<Factory>& implementation : implementations) {
    absl::StatusOr<KernelFn> function = make(implementation.factory);
    if (function.ok() || !absl::IsUnimplemented(function.status())) {
      LogDispatch(device, spec, implementation.name, refusals);
      return function;
    }
    absl::StrAppend(&refusals, refusals.empty() ? "" : "; ", function.status().message());
  }
  LogDispatch(device, spec, nullptr, refusals);
  return absl::UnimplementedError(refusals);
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_DISPATCH_H_
