#include "runtime/backend/host/host_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace oriel::runtime {
namespace {

// From this size on, huge pages save TLB misses and cost no memory that matters.
constexpr int64_t kHugePageBytes = 2 << 20;

class HostBackend final : public Backend {
 public:
  std::string name() const override { return "host"; }

  absl::StatusOr<DeviceMemory> Allocate(int64_t bytes) override {
    const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
    }
    if (bytes >= 2 * kHugePageBytes) madvise(address, size, MADV_HUGEPAGE);  // a wish only
    return DeviceMemory(address, [size](void* memory) { munmap(memory, size); });
  }

  absl::StatusOr<kernels::KernelFn> Prepare(const kernels::KernelSpec& spec,
                                            int64_t /*launch*/) override {
    return kernels::KernelRegistry::Host().Prepare(spec);
  }

  absl::Status Copy(void* target, const void* source, int64_t bytes) override {
    if (bytes > 0) std::memcpy(target, source, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }

  absl::Status Upload(void* target, const void* source, int64_t bytes) override {
    return Copy(target, source, bytes);
  }

  absl::Status Download(void* target, const void* source, int64_t bytes) override {
    return Copy(target, source, bytes);
  }

  absl::Status CopyRuns(void* target, const void* source, int64_t run, int64_t stride,
                        int64_t count) override {
    for (int64_t i = 0; i < count && run > 0; ++i) {
      std::memcpy(static_cast<char*>(target) + i * run,
                  static_cast<const char*>(source) + i * stride, static_cast<size_t>(run));
    }
    return absl::OkStatus();
  }

  absl::Status Fill(void* target, uint8_t value, int64_t bytes) override {
    if (bytes > 0) std::memset(target, value, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Backend> MakeHostBackend() { return std::make_unique<HostBackend>(); }

}  // namespace oriel::runtime
