#include "runtime/exec/kernel_spec.h"

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {

kernels::KernelSpec MakeKernelSpec(const plan::Plan& plan, const plan::Program& program,
                                   const plan::Launch& launch, int num_threads) {
  kernels::KernelSpec spec;
  spec.kernel = launch.kernel();
  for (const int index : launch.operands()) {
    spec.operands.push_back(FromPlan(program.buffers(index).local()));
  }
  for (const int index : launch.results()) {
    spec.results.push_back(FromPlan(program.buffers(index).local()));
  }
  for (const auto& [name, attribute] : launch.attributes()) {
    switch (attribute.value_case()) {
      case plan::Attribute::kI:
        spec.attributes[name] = static_cast<int64_t>(attribute.i());
        break;
      case plan::Attribute::kF:
        spec.attributes[name] = attribute.f();
        break;
      case plan::Attribute::kS:
        spec.attributes[name] = attribute.s();
        break;
      case plan::Attribute::kInts:
        spec.attributes[name] = std::vector<int64_t>(attribute.ints().values().begin(),
                                                     attribute.ints().values().end());
        break;
      case plan::Attribute::VALUE_NOT_SET:
        break;  // the verifier refuses it
    }
  }
  if (launch.has_generated()) {
    const plan::GeneratedKernel& kernel = plan.generated(launch.generated());
    spec.attributes["name"] = kernel.name();
    spec.attributes["units"] = static_cast<int64_t>(kernel.units());
    spec.attributes["unit_elements"] = static_cast<int64_t>(kernel.unit_elements());
    spec.attributes["block_units"] = static_cast<int64_t>(kernel.block_units());
    spec.attributes["thread_elements"] = std::max<int64_t>(1, kernel.thread_elements());
    for (const auto& image : kernel.images()) {
      spec.attributes[absl::StrCat("image.", image.target())] = image.code();
      spec.attributes[absl::StrCat("entry.", image.target())] = static_cast<int64_t>(image.entry());
    }
  }
  spec.num_threads = num_threads;
  return spec;
}

}  // namespace oriel::runtime
