#include "kernels/cuda/emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#if defined(__x86_64__)
// Pushes what a call preserves, leaves the stack's top in *save, and takes `load` for the stack.
extern "C" void oriel_switch_stack(void** save, void* load);
asm(R"(
.text
.globl oriel_switch_stack
.hidden oriel_switch_stack
.type oriel_switch_stack, @function
.align 16
oriel_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size oriel_switch_stack, .-oriel_switch_stack
)");
#endif

namespace oriel::kernels::cuda::emulator {
namespace {

size_t GuardBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

absl::StatusOr<std::unique_ptr<Fiber>> Fiber::Make() {
  const size_t guard = GuardBytes();
  void* memory = mmap(nullptr, kStackBytes + guard, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) {
    return absl::ResourceExhaustedError("emulator: no memory for the stack of a thread");
  }
  return std::unique_ptr<Fiber>(new Fiber(static_cast<char*>(memory)));
}

Fiber::~Fiber() { munmap(memory_, kStackBytes + GuardBytes()); }

#if defined(__x86_64__)

void Fiber::Reset(void (*body)()) {
  void** top = reinterpret_cast<void**>(memory_ + GuardBytes() + kStackBytes);
  *--top = nullptr;  // where the body would return to; also aligns the stack as a call does
  *--top = reinterpret_cast<void*>(body);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  context_ = top;
}

void Fiber::Enter(Context* caller) { oriel_switch_stack(caller, context_); }

void Fiber::Leave(Context* caller) { oriel_switch_stack(&context_, *caller); }

#else

void Fiber::Reset(void (*body)()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = memory_ + GuardBytes();
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  makecontext(&context_, body, 0);
}

void Fiber::Enter(Context* caller) { swapcontext(caller, &context_); }

void Fiber::Leave(Context* caller) { swapcontext(&context_, caller); }

#endif

}  // namespace oriel::kernels::cuda::emulator
