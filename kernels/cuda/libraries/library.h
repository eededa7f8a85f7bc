// A shared library that is loaded when it is first needed, by the functions that a table names.
//
//   ORIEL_ASSIGN_OR_RETURN(void* library, LoadLibrary({"libfoo.so.13", "cuFoo 13", "install it"}));
//   ORIEL_RETURN_IF_ERROR(FindSymbol(library, "fooCreate", &table.fooCreate));
#ifndef ORIEL_KERNELS_CUDA_LIBRARIES_LIBRARY_H_
#define ORIEL_KERNELS_CUDA_LIBRARIES_LIBRARY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::kernels::cuda {

struct LibraryName {
  const char* file;    // for dlopen
  const char* title;   // for people, with the version
  const char* remedy;  // what to do where it is missing
};

// Never closed. Unavailable, with the loader's reason and the remedy, if it can't be loaded.
absl::StatusOr<void*> LoadLibrary(const LibraryName& name);

absl::Status FindSymbolAddress(void* library, const LibraryName& name, const char* symbol,
                               void** address);

// `*function` becomes the library's. Unavailable if it has none of the name: it is too old.
template <typename Function>
absl::Status FindSymbol(void* library, const LibraryName& name, const char* symbol,
                        Function** function) {
  return FindSymbolAddress(library, name, symbol, reinterpret_cast<void**>(function));
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_LIBRARIES_LIBRARY_H_
