#include "kernels/cuda/libraries/library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace oriel::kernels::cuda {

absl::StatusOr<void*> LoadLibrary(const LibraryName& name) {
  void* library = dlopen(name.file, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* reason = dlerror();
  return absl::UnavailableError(absl::StrCat(
      name.title, " can't be loaded: ", reason != nullptr ? reason : name.file, "; ", name.remedy));
}

absl::Status FindSymbolAddress(void* library, const LibraryName& name, const char* symbol,
                               void** address) {
  *address = dlsym(library, symbol);
  if (*address != nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(name.file, " has no ", symbol, ": it is older than ",
                                             name.title, "; ", name.remedy));
}

}  // namespace oriel::kernels::cuda
