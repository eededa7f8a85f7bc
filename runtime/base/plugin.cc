#include "runtime/base/plugin.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <exception>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

struct Marker {
  std::string kind, abi;
};

// Of the bytes of a library; empty fields if there is none.
Marker FindMarker(std::string_view bytes) {
  constexpr std::string_view kMagic = ORIEL_PLUGIN_MAGIC;
  for (size_t at = bytes.find(kMagic); at != bytes.npos; at = bytes.find(kMagic, at + 1)) {
    const std::string_view rest = bytes.substr(at + kMagic.size(), 200);
    const std::string_view text = rest.substr(0, rest.find('\0'));
    const size_t colon = text.find(':');
    if (text.size() == rest.size() || colon == text.npos) continue;
    return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
  }
  return {};
}

// The file without its links, which dlopen wants with a slash.
absl::StatusOr<std::string> RealPath(const std::string& path) {
  std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  if (real == nullptr) return ErrnoError(path, "load the plugin", errno);
  return std::string(real.get());
}

absl::StatusOr<Marker> MarkerOf(const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  Marker marker = FindMarker({file->data(), static_cast<size_t>(file->size())});
  if (!marker.kind.empty()) return marker;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is no plugin of Oriel; docs/adding_an_op.md says how to make one"));
}

absl::Status CheckMarker(const std::string& path, const PluginKind& kind) {
  ORIEL_ASSIGN_OR_RETURN(const Marker marker, MarkerOf(path));
  if (marker.kind != kind.name) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a plugin of the ", marker.kind,
                                                   ", but ", kind.loader, " loads those of the ",
                                                   kind.name));
  }
  if (marker.abi != kind.abi) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": was built against Oriel ", marker.abi, ", but this is Oriel ",
                     kind.abi, "; build the plugin again, against this one"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> KindOfPlugin(const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(const std::string real, RealPath(path));
  ORIEL_ASSIGN_OR_RETURN(const Marker marker, MarkerOf(real));
  return marker.kind;
}

absl::StatusOr<void*> LoadPlugin(const std::string& path, const PluginKind& kind) {
  ORIEL_ASSIGN_OR_RETURN(const std::string real, RealPath(path));
  ORIEL_RETURN_IF_ERROR(CheckMarker(real, kind));
  if (void* loaded = dlopen(real.c_str(), RTLD_NOW | RTLD_NOLOAD); loaded != nullptr) {
    dlclose(loaded);
    return absl::AlreadyExistsError(absl::StrCat(path, ": this plugin is loaded already"));
  }
  // Now: a missing symbol is an error here, not a crash in the middle of a job.
  void* library = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string why = dlerror();
    return absl::FailedPreconditionError(absl::StrCat(
        why,
        absl::StrContains(why, "undefined symbol")
            ? "; the plugin uses what it neither defines nor links, and what this program lacks"
            : ""));
  }
  void* entry = dlsym(library, kind.entry);
  if (entry == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": lacks the function ", kind.entry,
                                                   ", which every plugin of the ", kind.name,
                                                   " has"));
  }
  return entry;
}

absl::Status CallPlugin(const std::string& path, const std::function<void()>& entry) {
  try {
    entry();
  } catch (const std::exception& exception) {
    return absl::InternalError(
        absl::StrCat(path, ": the plugin failed to register: ", exception.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat(path, ": the plugin failed to register"));
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
