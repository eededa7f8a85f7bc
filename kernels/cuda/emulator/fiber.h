// Stacks to run the threads of a block on, each until it switches away.
//
// A switch saves the registers that a call preserves, and no more: no signal mask, so that it costs
// a few nanoseconds. It stays within one thread of the host.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_FIBER_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_FIBER_H_

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace oriel::kernels::cuda::emulator {

// Where a stack was left.
#if defined(__x86_64__)
using Context = void*;
#else
using Context = ucontext_t;
#endif

// A stack of kStackBytes with a page below that must not be touched: what overflows it faults.
class Fiber {
 public:
  static constexpr size_t kStackBytes = 256 * 1024;

  // ResourceExhausted without address space for the stack.
  static absl::StatusOr<std::unique_ptr<Fiber>> Make();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Lets the next Enter begin with `body`, which must not return. What ran on the stack before is
  // forgotten, without destructors.
  void Reset(void (*body)());
  // Leaves the caller's stack for this one, until it leaves for `caller`.
  void Enter(Context* caller);
  // Leaves this stack, on which the caller is.
  void Leave(Context* caller);

 private:
  explicit Fiber(char* memory) : memory_(memory) {}

  char* const memory_;
  Context context_;
};

}  // namespace oriel::kernels::cuda::emulator

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_FIBER_H_
