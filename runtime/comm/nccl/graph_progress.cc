#include "runtime/comm/nccl/graph_progress.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<std::unique_ptr<GraphProgress>> GraphProgress::Create(
    const kernels::cuda::Device& device) {
  constexpr size_t kBytes = kMaxCalls * sizeof(uint32_t);
  ORIEL_RETURN_IF_ERROR(device.MakeCurrent());
  ORIEL_ASSIGN_OR_RETURN(kernels::cuda::PassCounter counter,
                         kernels::cuda::PassCounter::Find(device));
  std::unique_ptr<GraphProgress> made(new GraphProgress(device, std::move(counter)));
  const kernels::cuda::Driver& driver = device.driver();
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuMemAlloc, &made->counted_, kBytes));
  void* seen = nullptr;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuMemAllocHost, &seen, kBytes));
  made->seen_ = static_cast<uint32_t*>(seen);
  // A kernel's code may be loaded when it is first launched, which no capture should have to do.
  const auto clear = [&] {
    return ORIEL_CUDA(driver, cuMemsetD8Async, made->counted_, 0, kBytes, nullptr);
  };
  ORIEL_RETURN_IF_ERROR(clear());
  ORIEL_RETURN_IF_ERROR(
      made->counter_.Put(reinterpret_cast<uint32_t*>(made->counted_), made->seen_, nullptr));
  ORIEL_RETURN_IF_ERROR(clear());
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuStreamSynchronize, nullptr));
  std::fill_n(made->seen_, kMaxCalls, 0u);
  return made;
}

GraphProgress::~GraphProgress() {
  if (!device_.MakeCurrent().ok()) return;
  if (counted_ != 0) device_.driver().cuMemFree(counted_);
  if (seen_ != nullptr) device_.driver().cuMemFreeHost(seen_);
}

absl::Status GraphProgress::Add(std::string what, CUstream stream) {
  Call call{std::move(what)};
  if (used_ < kMaxCalls) {
    auto* const counted = reinterpret_cast<uint32_t*>(counted_) + used_;
    ORIEL_RETURN_IF_ERROR(counter_.Put(counted, seen_ + used_, stream));
    call.seen = seen_ + used_++;
  }
  open_.push_back(std::move(call));
  return absl::OkStatus();
}

int64_t GraphProgress::EndGraph() {
  graphs_.push_back(std::make_shared<Graph>(Graph{std::exchange(open_, {})}));
  return static_cast<int64_t>(graphs_.size()) - 1;
}

std::function<std::string()> GraphProgress::Replay(int64_t graph) {
  const std::shared_ptr<Graph>& replayed = graphs_[graph];
  const uint32_t number = ++replayed->replays;
  return [replayed, number]() -> std::string {
    for (const Call& call : replayed->calls) {
      // Behind the last one that is counted.
      if (call.seen == nullptr) return call.what + ", or one behind it,";
      const uint32_t passed = __atomic_load_n(call.seen, __ATOMIC_RELAXED);
      if (static_cast<int32_t>(passed - number) < 0) return call.what;
    }
    return "";
  };
}

}  // namespace oriel::runtime
