#include "kernels/plugins/load_plugins.h"

#include "kernels/plugin.h"
#include "runtime/base/status.h"

namespace oriel::kernels {

using Entry = void (*)(KernelRegistry&);

absl::Status LoadPlugins(const std::vector<std::string>& paths, const char* program) {
  const runtime::PluginKind kind = {runtime::kKernelsPlugin, ORIEL_KERNELS_ABI, program,
                                    "OrielRegisterKernels"};
  for (const std::string& path : paths) {
    ORIEL_ASSIGN_OR_RETURN(void* entry, runtime::LoadPlugin(path, kind));
    ORIEL_RETURN_IF_ERROR(
        runtime::CallPlugin(path, [&] { reinterpret_cast<Entry>(entry)(KernelRegistry::Host()); }));
  }
  return absl::OkStatus();
}

}  // namespace oriel::kernels
