#include "kernels/kernel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/common/widened.h"

namespace oriel::kernels {
namespace {

template <typename T>
absl::StatusOr<T> FindAttribute(const KernelSpec& spec, const std::string& name, const char* type) {
  auto found = spec.attributes.find(name);
  if (found == spec.attributes.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", spec.kernel, ": attribute '", name, "' is missing"));
  }
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", spec.kernel, ": attribute '", name, "' is not ", type));
  }
  return *value;
}

}  // namespace

absl::StatusOr<int64_t> KernelSpec::Int(const std::string& name) const {
  return FindAttribute<int64_t>(*this, name, "an integer");
}

absl::StatusOr<double> KernelSpec::Float(const std::string& name) const {
  return FindAttribute<double>(*this, name, "a float");
}

absl::StatusOr<std::string> KernelSpec::String(const std::string& name) const {
  return FindAttribute<std::string>(*this, name, "a string");
}

absl::StatusOr<std::vector<int64_t>> KernelSpec::Ints(const std::string& name) const {
  return FindAttribute<std::vector<int64_t>>(*this, name, "a list of integers");
}

KernelRegistry& KernelRegistry::Host() {
  static KernelRegistry* registry =
      new KernelRegistry;  // never destroyed: used by static registrars
  return *registry;
}

void KernelRegistry::Register(const char* kernel, int priority, KernelFactory factory) {
  std::vector<Implementation>& list = implementations_[kernel];
  auto place = std::find_if(list.begin(), list.end(),
                            [&](const Implementation& other) { return other.priority < priority; });
  list.insert(place, Implementation{priority, factory});
}

absl::StatusOr<KernelFn> KernelRegistry::Prepare(const KernelSpec& spec) const {
  auto found = implementations_.find(spec.kernel);
  if (found == implementations_.end()) {
    return absl::NotFoundError(absl::StrCat("no kernel is named '", spec.kernel, "'"));
  }
  const auto ask = [&](const KernelSpec& launch) { return Ask(found->second, launch); };
  absl::StatusOr<KernelFn> function = ask(spec);
  if (function.ok()) return function;
  std::string refusals(function.status().message());
  if (HasNarrowFloats(spec)) {
    absl::StatusOr<KernelFn> widened = PrepareWidened(spec, ask);
    // What is wrong in f32, too, is wrong.
    if (widened.ok() || !absl::IsUnimplemented(widened.status())) return widened;
    absl::StrAppend(&refusals, "; in f32: ", widened.status().message());
  }
  if (!absl::IsUnimplemented(function.status())) return function;
  std::string types;
  for (const TensorSpec& operand : spec.operands) {
    absl::StrAppend(&types, types.empty() ? "" : ", ", operand.ToString());
  }
  return absl::UnimplementedError(
      absl::StrCat("kernel ", spec.kernel, "(", types, ") has no implementation: ", refusals));
}

absl::StatusOr<KernelFn> KernelRegistry::Ask(const std::vector<Implementation>& implementations,
                                             const KernelSpec& spec) {
  std::string refusals;
  for (const Implementation& implementation : implementations) {
    absl::StatusOr<KernelFn> function = implementation.factory(spec);
    if (function.ok() || !absl::IsUnimplemented(function.status())) return function;
    const absl::string_view reason = function.status().message();
    absl::StrAppend(&refusals, refusals.empty() ? "" : "; ", reason);
  }
  return absl::UnimplementedError(refusals);
}

std::vector<std::string> KernelRegistry::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : implementations_) names.push_back(entry.first);
  return names;
}

}  // namespace oriel::kernels
