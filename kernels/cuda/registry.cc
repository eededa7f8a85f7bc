#include "kernels/cuda/registry.h"

#include "absl/strings/str_cat.h"
#include "kernels/common/dispatch.h"

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
  absl::StatusOr<KernelFn> function = Ask(found->second, "cuda", spec, [&](Factory factory) {
    return factory(spec, device);
  });
  if (function.ok() || !absl::IsUnimplemented(function.status())) return function;
  return NoImplementation(spec, std::string(function.status().message()));
}

std::vector<std::string> Registry::Names() const { return NamesOf(implementations_); }

}  // namespace oriel::kernels::cuda
