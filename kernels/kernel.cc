#include "kernels/kernel.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "kernels/common/dispatch.h"
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

namespace {

// A factory may be a plugin's.
absl::StatusOr<KernelFn> Make(KernelFactory factory, const KernelSpec& launch) {
  auto fails = [&](const std::string& why) {
    return absl::InternalError(absl::StrCat("the kernel '", launch.kernel, "' ", why));
  };
  if (factory == nullptr) return fails("is registered without a factory");
  try {
    absl::StatusOr<KernelFn> function = factory(launch);
    if (function.ok() && !*function) return fails("has a factory that makes no function");
    return function;
  } catch (const std::exception& exception) {
    return fails(absl::StrCat("can't be prepared: ", exception.what()));
  }
}

}  // namespace

void KernelRegistry::Register(const char* kernel, int priority, KernelFactory factory,
                              const char* name) {
  Insert(implementations_, kernel, {priority, factory, name});
}

absl::StatusOr<KernelFn> KernelRegistry::Prepare(const KernelSpec& spec) const {
  auto found = implementations_.find(spec.kernel);
  if (found == implementations_.end()) {
    return absl::NotFoundError(absl::StrCat("no kernel is named '", spec.kernel, "'"));
  }
  const auto ask = [&](const KernelSpec& launch) {
    return Ask(found->second, "host", launch,
               [&](KernelFactory factory) { return Make(factory, launch); });
  };
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
  return NoImplementation(spec, refusals);
}

std::vector<std::string> KernelRegistry::Names() const { return NamesOf(implementations_); }

}  // namespace oriel::kernels
