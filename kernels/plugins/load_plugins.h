// Loads kernels from outside of Oriel (kernels/plugin.h).
#ifndef ORIEL_KERNELS_PLUGINS_LOAD_PLUGINS_H_
#define ORIEL_KERNELS_PLUGINS_LOAD_PLUGINS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace oriel::kernels {

// Adds the kernels of these libraries to the host's registry; before anything of this process
// prepares a launch. Errors are those of runtime::LoadPlugin, where `program` is who loads them.
absl::Status LoadPlugins(const std::vector<std::string>& paths, const char* program);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_PLUGINS_LOAD_PLUGINS_H_
