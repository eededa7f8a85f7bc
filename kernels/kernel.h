// What a kernel is, and the registry that finds one by name.
//
// A kernel is prepared once for each launch of a plan: the factory sees the
// shapes, dtypes and attributes of that launch, and returns a function of the
// operand and result addresses. All shape-dependent work (primitive
// descriptors, loop bounds, scratch memory) belongs into the factory.
//
//   ORIEL_REGISTER_HOST_KERNEL("exp", 0, MakeExp);
#ifndef ORIEL_KERNELS_KERNEL_H_
#define ORIEL_KERNELS_KERNEL_H_

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"

namespace oriel::kernels {

using runtime::DType;
using runtime::Shape;
using runtime::TensorSpec;

// Booleans are integers.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

// One launch, as the plan has it. An absent optional operand has no entry in
// `operands`: optional operands come last, or are told apart by their number.
struct KernelSpec {
  std::string kernel;
  std::vector<TensorSpec> operands;
  std::vector<TensorSpec> results;
  std::map<std::string, Attribute> attributes;
  int num_threads = 1;  // that the kernel may use

  // Each gives InvalidArgument, naming kernel and attribute, if it is missing or
  // of another type.
  absl::StatusOr<int64_t> Int(const std::string& name) const;
  absl::StatusOr<double> Float(const std::string& name) const;
  absl::StatusOr<std::string> String(const std::string& name) const;
  absl::StatusOr<std::vector<int64_t>> Ints(const std::string& name) const;
};

// Addresses of one launch, 64-byte aligned, in the order of the spec. A result
// may be the same buffer as an operand only where the op's `mayOverwrite` says so.
struct KernelArgs {
  const void* const* operands;
  void* const* results;
  void* stream = nullptr;  // of a device: where the launch is put (CUstream); null on the host

  template <typename T>
  const T* operand(int i) const {
    return static_cast<const T*>(operands[i]);
  }
  template <typename T>
  T* result(int i) const {
    return static_cast<T*>(results[i]);
  }
};

// Runs the launch. Results don't depend on `num_threads` in any bit. An error is
// one of the data (an index out of range); the caller adds rank and location.
using KernelFn = std::function<absl::Status(const KernelArgs&)>;

// Prepares a launch, or says why this implementation does not take it
// (Unimplemented with the reason: the next implementation is asked).
using KernelFactory = absl::StatusOr<KernelFn> (*)(const KernelSpec&);

// One of a kernel's implementations; `name` is for messages.
template <typename Factory>
struct Implementation {
  int priority;
  Factory factory;
  const char* name;
};
template <typename Factory>
using Implementations = std::map<std::string, std::vector<Implementation<Factory>>>;

// Ordered implementations by kernel name: those with the higher priority are
// asked first. Registration happens before main() and as plugins load (plugin.h), look-ups are
// thread-safe.
class KernelRegistry {
 public:
  static KernelRegistry& Host();

  void Register(const char* kernel, int priority, KernelFactory factory, const char* name = "?");
  // NotFound for an unknown kernel; Unimplemented, with each refusal's reason,
  // if no implementation takes the launch. One with f16 or bf16 tensors that none takes as it
  // is, is made of one in f32 (common/widened.h).
  absl::StatusOr<KernelFn> Prepare(const KernelSpec& spec) const;
  // Sorted names.
  std::vector<std::string> Names() const;

 private:
  Implementations<KernelFactory> implementations_;
};

struct HostKernelRegistrar {
  HostKernelRegistrar(const char* kernel, int priority, KernelFactory factory, const char* name) {
    KernelRegistry::Host().Register(kernel, priority, factory, name);
  }
};

#define ORIEL_KERNEL_CONCAT_(a, b) a##b
#define ORIEL_KERNEL_CONCAT(a, b) ORIEL_KERNEL_CONCAT_(a, b)
#define ORIEL_REGISTER_HOST_KERNEL(name, priority, factory)               \
  static const ::oriel::kernels::HostKernelRegistrar ORIEL_KERNEL_CONCAT( \
      oriel_kernel_registrar_, __COUNTER__)(name, priority, factory, #factory)

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_KERNEL_H_
