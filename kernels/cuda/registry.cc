#include "kernels/cuda/registry.h"

#include "absl/strings/str_cat.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/widened.h"
#include "kernels/cuda/widened.h"

namespace oriel::kernels::cuda {

Registry& Registry::Get() {
  static Registry* registry = new Registry;  // never destroyed: used by static registrars
  return *registry;
}

void Registry::Register(const char* kernel, int priority, Factory factory, const char* name) {
  Insert(implementations_, kernel, {priority, factory, name});
}

absl::StatusOr<KernelFn> Registry::Prepare(const KernelSpec& spec, Device& device) const {
  const auto found = implementations_.find(spec.kernel);
  if (found == implementations_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no kernel for CUDA devices is named '", spec.kernel, "'"));
  }
  const auto ask = [&](const KernelSpec& launch) {
    return Ask(found->second, "cuda", launch,
               [&](Factory factory) { return factory(launch, device); });
  };
  absl::StatusOr<KernelFn> function = ask(spec);
  if (function.ok()) return function;
  std::string refusals(function.status().message());
  if (HasNarrowFloats(spec) && spec.kernel != "cast") {
    absl::StatusOr<KernelFn> widened = PrepareWidenedOn(device, spec, ask);
    // What is wrong in f32, too, is wrong.
    if (widened.ok() || !absl::IsUnimplemented(widened.status())) return widened;
    absl::StrAppend(&refusals, "; in f32: ", widened.status().message());
  }
  if (!absl::IsUnimplemented(function.status())) return function;
  return NoImplementation(spec, refusals);
}

std::vector<std::string> Registry::Names() const { return NamesOf(implementations_); }

}  // namespace oriel::kernels::cuda
