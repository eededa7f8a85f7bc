// The CPU as a backend.
#ifndef ORIEL_RUNTIME_BACKEND_HOST_HOST_BACKEND_H_
#define ORIEL_RUNTIME_BACKEND_HOST_HOST_BACKEND_H_

#include <memory>

#include "runtime/backend/backend.h"

namespace oriel::runtime {

// Kernels come from kernels::KernelRegistry::Host(). Memory is mapped, not touched: its pages
// belong to the thread that uses them first.
std::unique_ptr<Backend> MakeHostBackend();

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BACKEND_HOST_HOST_BACKEND_H_
