// The plugins as oriel-run loads them.
#include <dlfcn.h>

#include <memory>
#include <string>

#include "runtime/backend/backend.h"
#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<Backend>> Open(const std::string& plugin, int ordinal) {
  void* library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);  // for good
  if (library == nullptr) return absl::NotFoundError(dlerror());
  const auto entry =
      reinterpret_cast<Backend* (*)(int, absl::Status*)>(dlsym(library, "OrielOpenCudaBackend"));
  if (entry == nullptr) return absl::NotFoundError(dlerror());
  absl::Status status;
  std::unique_ptr<Backend> backend(entry(ordinal, &status));
  if (backend == nullptr) return status;
  return backend;
}

// It loads wherever it was built, and says what is missing.
TEST(CudaPlugin, OpensADeviceOrSaysWhyNot) {
  const auto backend = Open(ORIEL_CUDA_PLUGIN, 0);
  if (backend.ok()) {
    EXPECT_EQ((*backend)->name(), "cuda");
    return;
  }
  EXPECT_THAT(backend, StatusIs(absl::StatusCode::kUnavailable,
                                AllOf(HasSubstr("no CUDA device: "), HasSubstr("--device host"))));
}

TEST(CudaPlugin, OpensEmulatedDevices) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto backend, Open(ORIEL_CUDA_EMULATED_PLUGIN, 1));
  EXPECT_EQ(backend->name(), "cuda");
  EXPECT_EQ(backend->architecture(), "sm_90");
  ORIEL_ASSERT_OK_AND_ASSIGN(const DeviceMemory memory, backend->Allocate(4));
  const float written = 3;
  float read = 0;
  ORIEL_ASSERT_OK(backend->Upload(memory.get(), &written, 4));
  ORIEL_ASSERT_OK(backend->Download(&read, memory.get(), 4));
  EXPECT_EQ(read, 3);
  EXPECT_THAT(Open(ORIEL_CUDA_EMULATED_PLUGIN, 99).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no CUDA device 99")));
}

// Kernels are those of the registry: they come with the plugin, and not from oriel-run.
TEST(CudaPlugin, HasKernels) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto backend, Open(ORIEL_CUDA_EMULATED_PLUGIN, 0));
  kernels::KernelSpec spec;
  spec.kernel = "no_such_kernel";
  EXPECT_THAT(backend->Prepare(spec, 0).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no_such_kernel")));
}

}  // namespace
}  // namespace oriel::runtime
