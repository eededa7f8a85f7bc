// Plugins: shared libraries that bring kernels to oriel-run (kernels/plugin.h), or ops and passes
// to the compiler (driver/plugin.h).
//
// A plugin bears a marker, text in its file that says what it is for and against which headers of
// Oriel it was built. Loading reads the marker before the dynamic linker sees the file: of a plugin
// that does not fit, nothing is run.
#ifndef ORIEL_RUNTIME_BASE_PLUGIN_H_
#define ORIEL_RUNTIME_BASE_PLUGIN_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"

#define ORIEL_PLUGIN_MAGIC "ORIEL-PLUGIN:"

// Of literals. `abi` changes whenever the headers do.
#define ORIEL_PLUGIN_MARKER(kind, abi)                                                \
  extern "C" {                                                                        \
  extern __attribute__((visibility("default"), used)) const char OrielPluginMarker[]; \
  const char OrielPluginMarker[] = ORIEL_PLUGIN_MAGIC kind ":" abi;                   \
  }

namespace oriel::runtime {

inline constexpr char kKernelsPlugin[] = "kernels", kCompilerPlugin[] = "compiler";

struct PluginKind {
  const char* name;    // the `kind` of the marker
  const char* abi;     // what this binary was built with
  const char* loader;  // who loads this kind, for the user
  const char* entry;   // an extern "C" function of the plugin
};

// What the marker of a library says, for what loads several kinds. An error if it has none.
absl::StatusOr<std::string> KindOfPlugin(const std::string& path);

// Loads the library for good and returns the address of its entry. The error names the file and
// says what to do: it can't be read, is no plugin, is one of another kind or of another Oriel,
// needs symbols that are not there, or was loaded before.
absl::StatusOr<void*> LoadPlugin(const std::string& path, const PluginKind& kind);

// Calls what registers a plugin's contents; an exception is an error that names the file.
absl::Status CallPlugin(const std::string& path, const std::function<void()>& entry);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_PLUGIN_H_
