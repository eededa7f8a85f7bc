#include "kernels/cuda/emulator/block.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/fiber.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda::emulator {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr size_t kMaxShared = 227 * 1024;
constexpr size_t kSharedAlignment = 1024;
constexpr size_t kSharedGuard = 256;
constexpr unsigned char kPoison = 0xff, kGuard = 0xa5;

// splitmix64: small, and the same everywhere.
class Draw {
 public:
  void Seed(uint64_t seed) { state_ = seed; }
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t Below(size_t limit) { return static_cast<size_t>(Next() % limit); }

 private:
  uint64_t state_ = 0;
};

// What the lanes of a warp exchange. Two sets of slots are enough: a lane that is one exchange
// ahead waits there for those that have yet to read the last one.
struct Warp {
  unsigned char slots[2][kWarp * kExchangeBytes];
  const char* what = nullptr;
  std::vector<int> waiting;
};

struct Thread {
  uint3 index;
  Fiber* fiber = nullptr;
  const char* waits_at = nullptr;
  unsigned exchanges = 0;
};

// The grid that a thread of the host runs. One at a time; its stacks are kept for the next.
class Runner {
 public:
  absl::Status Run(const EmulatedKernel& kernel, const EmulatedLaunch& launch, void (*body)(void*),
                   void* context);
  int Barrier(const char* what, int value);
  const unsigned char* Exchange(const char* what, unsigned mask, const void* value, size_t bytes);
  [[noreturn]] void Fail(std::string what);

  Indices indices;
  int current = 0;  // the thread's number in its block
  unsigned char* shared = nullptr;
  Draw draw;

 private:
  absl::Status RunBlock();
  absl::Status CheckLaunch() const;
  absl::Status Error(const std::string& what) const;
  // Runs threads that have not begun, until one waits; then, on its stack, those who come later.
  static void FiberBody();
  void BeginThreads();
  void Wait(const char* what);
  void Enter(Fiber* fiber, int thread);
  std::string WhoWaits() const;

  const EmulatedKernel* kernel_ = nullptr;
  EmulatedLaunch launch_;
  void (*body_)(void*) = nullptr;
  void* context_ = nullptr;

  int count_ = 0;  // threads of the block
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<int> order_;  // in which they begin
  size_t begun_ = 0;
  int done_ = 0;
  std::vector<int> ready_;  // may go on
  std::vector<int> at_barrier_;
  const char* barrier_ = nullptr;
  int barrier_sum_ = 0, barrier_result_ = 0;
  bool failed_ = false;
  std::string failure_;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber* running_ = nullptr;
  Context scheduler_;
  std::vector<unsigned char> shared_memory_;
};

thread_local Runner runner;

absl::Status Runner::Error(const std::string& what) const {
  const uint3& block = indices.block;
  return absl::FailedPreconditionError(
      absl::StrCat(kernel_->name, ", block (", block.x, ", ", block.y, ", ", block.z, "): ", what));
}

absl::Status Runner::CheckLaunch() const {
  const Grid &blocks = launch_.blocks, &threads = launch_.threads;
  const uint64_t count = uint64_t{threads.x} * threads.y * threads.z;
  std::string wrong;
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || blocks.x > 0x7fffffffu ||
      blocks.y > 65535 || blocks.z > 65535) {
    wrong = absl::StrCat("a grid of ", blocks.x, " x ", blocks.y, " x ", blocks.z, " blocks");
  } else if (count == 0 || count > std::min(kMaxThreads, kernel_->max_threads) || threads.z > 64) {
    wrong = absl::StrCat("blocks of ", threads.x, " x ", threads.y, " x ", threads.z,
                         " threads, where it takes up to ", kernel_->max_threads);
  } else if (launch_.shared_bytes > kMaxShared) {
    wrong = absl::StrCat(launch_.shared_bytes, " bytes of shared memory");
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(kernel_->name, " is launched with ", wrong));
}

void Runner::FiberBody() {
  for (;;) {
    runner.BeginThreads();
    Fiber* own = runner.running_;
    runner.idle_.push_back(own);
    own->Leave(&runner.scheduler_);
  }
}

void Runner::BeginThreads() {
  // The stack may belong to another thread when the body returns than when it was called.
  while (begun_ < order_.size()) {
    current = order_[begun_++];
    indices.thread = threads_[current].index;
    threads_[current].fiber = running_;
    body_(context_);
    threads_[current].fiber = nullptr;
    ++done_;
  }
}

void Runner::Enter(Fiber* fiber, int thread) {
  running_ = fiber;
  current = thread;
  if (thread >= 0) indices.thread = threads_[thread].index;
  fiber->Enter(&scheduler_);
}

void Runner::Wait(const char* what) {
  Thread& own = threads_[current];
  own.waits_at = what;
  own.fiber->Leave(&scheduler_);
  own.waits_at = nullptr;
}

int Runner::Barrier(const char* what, int value) {
  if (barrier_ != nullptr && std::strcmp(barrier_, what) != 0) {
    Fail(absl::StrCat("threads meet at ", barrier_, " and at ", what));
  }
  barrier_ = what;
  barrier_sum_ += value;
  at_barrier_.push_back(current);
  if (static_cast<int>(at_barrier_.size()) == count_) {
    ready_.insert(ready_.end(), at_barrier_.begin(), at_barrier_.end());
    at_barrier_.clear();
    barrier_ = nullptr;
    barrier_result_ = std::exchange(barrier_sum_, 0);
  }
  Wait(what);
  return barrier_result_;
}

const unsigned char* Runner::Exchange(const char* what, unsigned mask, const void* value,
                                      size_t bytes) {
  if (mask != 0xffffffffu) Fail(absl::StrCat(what, " of a part of a warp"));
  if (count_ % kWarp != 0) Fail(absl::StrCat(what, " in a block of ", count_, " threads"));
  if (bytes > kExchangeBytes) Fail(absl::StrCat(what, " of ", bytes, " bytes"));
  Warp& warp = warps_[current / kWarp];
  if (!warp.waiting.empty() && std::strcmp(warp.what, what) != 0) {
    Fail(absl::StrCat("lanes of a warp meet at ", warp.what, " and at ", what));
  }
  unsigned char* slots = warp.slots[threads_[current].exchanges++ % 2];
  std::memcpy(slots + (current % kWarp) * kExchangeBytes, value, bytes);
  warp.what = what;
  warp.waiting.push_back(current);
  if (warp.waiting.size() == kWarp) {
    ready_.insert(ready_.end(), warp.waiting.begin(), warp.waiting.end());
    warp.waiting.clear();
  }
  Wait(what);
  return slots;
}

void Runner::Fail(std::string what) {
  failed_ = true;
  failure_ = std::move(what);
  running_->Leave(&scheduler_);
  __builtin_unreachable();
}

std::string Runner::WhoWaits() const {
  std::string text;
  std::vector<std::pair<const char*, int>> places;
  for (const Thread& thread : threads_) {
    if (thread.waits_at == nullptr) continue;
    const auto same = [&](const auto& place) {
      return std::strcmp(place.first, thread.waits_at) == 0;
    };
    const auto found = std::find_if(places.begin(), places.end(), same);
    if (found == places.end()) {
      places.emplace_back(thread.waits_at, 1);
    } else {
      ++found->second;
    }
  }
  for (const auto& [place, threads] : places) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", threads, " wait at ", place);
  }
  return absl::StrCat("of ", count_, " threads ", text, ", ", done_, " have returned");
}

absl::Status Runner::RunBlock() {
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[draw.Below(i)]);
  begun_ = 0;
  done_ = 0;
  for (Thread& thread : threads_) thread.exchanges = 0;
  std::memset(shared, kPoison, launch_.shared_bytes);
  std::memset(shared + launch_.shared_bytes, kGuard, kSharedGuard);
  while (done_ < count_ && !failed_) {
    const bool may_begin = begun_ < order_.size();
    if (!ready_.empty() && (!may_begin || draw.Below(4) == 0)) {
      std::swap(ready_[draw.Below(ready_.size())], ready_.back());
      const int thread = ready_.back();
      ready_.pop_back();
      Enter(threads_[thread].fiber, thread);
    } else if (may_begin) {
      if (idle_.empty()) {
        ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Fiber> fiber, Fiber::Make());
        fiber->Reset(&FiberBody);
        idle_.push_back(fiber.get());
        fibers_.push_back(std::move(fiber));
      }
      Fiber* fiber = idle_.back();
      idle_.pop_back();
      Enter(fiber, -1);
    } else {
      return Error(WhoWaits());
    }
  }
  if (failed_) return Error(failure_);
  for (size_t i = 0; i < kSharedGuard; ++i) {
    if (shared[launch_.shared_bytes + i] != kGuard) {
      return Error(absl::StrCat("byte ", launch_.shared_bytes + i,
                                " of shared memory is written, of which the launch has ",
                                launch_.shared_bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status Runner::Run(const EmulatedKernel& kernel, const EmulatedLaunch& launch,
                         void (*body)(void*), void* context) {
  kernel_ = &kernel;
  launch_ = launch;
  body_ = body;
  context_ = context;
  ORIEL_RETURN_IF_ERROR(CheckLaunch());
  const Grid &blocks = launch.blocks, &threads = launch.threads;
  count_ = static_cast<int>(threads.x * threads.y * threads.z);
  threads_.assign(count_, Thread{});
  order_.resize(count_);
  std::iota(order_.begin(), order_.end(), 0);
  for (int i = 0; i < count_; ++i) {
    const unsigned at = static_cast<unsigned>(i);
    threads_[i].index = {at % threads.x, at / threads.x % threads.y, at / (threads.x * threads.y)};
  }
  warps_.resize((count_ + kWarp - 1) / kWarp);
  shared_memory_.resize(launch.shared_bytes + kSharedAlignment + kSharedGuard);
  const size_t misaligned = reinterpret_cast<uintptr_t>(shared_memory_.data()) % kSharedAlignment;
  shared = shared_memory_.data() + (kSharedAlignment - misaligned) % kSharedAlignment;
  indices.threads = dim3(threads.x, threads.y, threads.z);
  indices.blocks = dim3(blocks.x, blocks.y, blocks.z);

  // i -> a i + c visits each block once.
  const uint64_t total = uint64_t{blocks.x} * blocks.y * blocks.z;
  uint64_t factor = draw.Next() % total | 1;
  while (std::gcd(factor, total) != 1) factor += 2;
  factor %= total;
  uint64_t block = draw.Next() % total;
  absl::Status status;
  for (uint64_t i = 0; i < total && status.ok(); ++i) {
    indices.block = {static_cast<unsigned>(block % blocks.x),
                     static_cast<unsigned>(block / blocks.x % blocks.y),
                     static_cast<unsigned>(block / (uint64_t{blocks.x} * blocks.y))};
    status = RunBlock();
    block = (block + factor) % total;
  }
  if (!status.ok()) {
    // Threads that wait are given up: their stacks begin anew.
    idle_.clear();
    for (const std::unique_ptr<Fiber>& fiber : fibers_) {
      fiber->Reset(&FiberBody);
      idle_.push_back(fiber.get());
    }
    ready_.clear();
    at_barrier_.clear();
    for (Warp& warp : warps_) warp.waiting.clear();
    barrier_ = nullptr;
    barrier_sum_ = 0;
    failed_ = false;
  }
  return status;
}

}  // namespace

absl::Status RunGrid(const EmulatedKernel& kernel, const EmulatedLaunch& launch,
                     void (*body)(void* context), void* context) {
  return runner.Run(kernel, launch, body, context);
}

void SetSeed(uint64_t seed) { runner.draw.Seed(seed); }

const Indices& This() { return runner.indices; }

int Lane() { return runner.current % kWarp; }

int Barrier(const char* what, int value) { return runner.Barrier(what, value); }

const unsigned char* Exchange(const char* what, unsigned mask, const void* value, size_t bytes) {
  return runner.Exchange(what, mask, value, bytes);
}

void* DynamicShared() { return runner.shared; }

void Fail(const char* what) { runner.Fail(what); }

}  // namespace oriel::kernels::cuda::emulator
