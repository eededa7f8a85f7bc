#include "runtime/measure/measure.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/aligned.h"
#include "kernels/kernel.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

using kernels::AlignedVector;
using kernels::KernelFn;
using kernels::KernelRegistry;
using kernels::KernelSpec;

// Enough for a machine's clocks to settle; a long run counts once.
constexpr double kSecondsPerMeasurement = 0.1;
constexpr int kLeastRuns = 5;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of one thread its own time, in which others that want the core have no part.
double KernelNow(int threads) {
  if (threads != 1) return Now();
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The largest of the ranks' numbers, on all of them.
absl::StatusOr<double> Slowest(double seconds, Communicator* world) {
  if (world == nullptr) return seconds;
  ORIEL_RETURN_IF_ERROR(world->AllReduce(Reduction::kMax, {{&seconds, &seconds, 1, DType::kF64}}));
  return seconds;
}

// A kernel with memory of its own; all zeros, so no value is out of its range.
class Launch {
 public:
  static absl::StatusOr<std::unique_ptr<Launch>> Make(const KernelSpec& spec) {
    auto launch = std::make_unique<Launch>();
    ORIEL_ASSIGN_OR_RETURN(launch->function_, KernelRegistry::Host().Prepare(spec));
    for (const TensorSpec& operand : spec.operands) {
      launch->operands_.push_back(launch->Allocate(operand));
    }
    for (const TensorSpec& result : spec.results) {
      launch->results_.push_back(launch->Allocate(result));
    }
    return launch;
  }

  absl::Status Run() const { return function_({operands_.data(), results_.data()}); }

 private:
  char* Allocate(const TensorSpec& tensor) {
    memory_.emplace_back(static_cast<size_t>(tensor.bytes()));
    return memory_.back().data();
  }

  KernelFn function_;
  std::vector<AlignedVector<char>> memory_;
  std::vector<const void*> operands_;
  std::vector<void*> results_;
};

absl::StatusOr<double> TimeKernel(const KernelSpec& spec, Communicator* world) {
  ORIEL_ASSIGN_OR_RETURN(const std::unique_ptr<Launch> launch, Launch::Make(spec));
  if (world != nullptr) ORIEL_RETURN_IF_ERROR(world->Barrier());
  std::optional<double> best;
  const double start = Now();
  for (int run = 0; run < kLeastRuns || Now() - start < kSecondsPerMeasurement; ++run) {
    const double before = KernelNow(spec.num_threads);
    ORIEL_RETURN_IF_ERROR(launch->Run());
    const double seconds = KernelNow(spec.num_threads) - before;
    // A clock that has not gone on says nothing.
    if (seconds > 0) best = std::min(best.value_or(seconds), seconds);
  }
  if (!best) {
    return absl::FailedPreconditionError(
        absl::StrCat("the machine's clock does not go on while '", spec.kernel, "' runs"));
  }
  return Slowest(*best, world);
}

KernelSpec Product(int64_t rows, int64_t columns, int64_t depth, DType dtype, int threads) {
  KernelSpec spec;
  spec.kernel = "linear";
  spec.operands = {{dtype, {rows, depth}}, {dtype, {depth, columns}}};
  spec.results = {{dtype, {rows, columns}}};
  spec.num_threads = threads;
  return spec;
}

absl::StatusOr<Measurement> MeasureProduct(int64_t rows, int64_t columns, int64_t depth,
                                           DType dtype, int threads, Communicator* world) {
  const KernelSpec spec = Product(rows, columns, depth, dtype, threads);
  ORIEL_ASSIGN_OR_RETURN(const double seconds, TimeKernel(spec, world));
  return Measurement{"product",
                     {{"rows", static_cast<double>(rows)},
                      {"columns", static_cast<double>(columns)},
                      {"depth", static_cast<double>(depth)},
                      {"element_bytes", dtype == DType::kF32 ? 4 : 2},
                      {"seconds", seconds}}};
}

absl::StatusOr<Measurement> MeasureAttention(int64_t heads, int64_t sequence, int64_t depth,
                                             bool backward, int threads, Communicator* world) {
  const TensorSpec q{DType::kF32, {1, heads, sequence, depth}};
  const TensorSpec sums{DType::kF32, {1, heads, sequence}};
  KernelSpec spec;
  spec.kernel = backward ? "attention_grad" : "attention";
  spec.operands = {q, q, q};
  spec.results = {q, sums};
  if (backward) {
    spec.operands = {q, q, q, q, q, sums};
    spec.results = {q, q, q};
  }
  spec.attributes = {{"scale", 0.125}, {"causal", int64_t{1}}};
  spec.num_threads = threads;
  ORIEL_ASSIGN_OR_RETURN(const double seconds, TimeKernel(spec, world));
  return Measurement{"attention",
                     {{"batch", 1},
                      {"heads", static_cast<double>(heads)},
                      {"sequence", static_cast<double>(sequence)},
                      {"depth", static_cast<double>(depth)},
                      {"causal", 1},
                      {"backward", backward ? 1 : 0},
                      {"seconds", seconds}}};
}

absl::StatusOr<Measurement> MeasureBytes(int64_t elements, int threads, Communicator* world) {
  const TensorSpec tensor{DType::kF32, {elements}};
  KernelSpec spec;
  spec.kernel = "add";
  spec.operands = {tensor, tensor};
  spec.results = {tensor};
  spec.num_threads = threads;
  ORIEL_ASSIGN_OR_RETURN(const double seconds, TimeKernel(spec, world));
  return Measurement{"bytes",
                     {{"bytes", static_cast<double>(3 * tensor.bytes())}, {"seconds", seconds}}};
}

// The mean of calls one behind the other, as often on every rank: of the fastest of some batches,
// since other processes take turns.
absl::StatusOr<double> TimeCalls(const std::function<absl::Status()>& call, Communicator* world) {
  constexpr int kBatches = 5;
  ORIEL_RETURN_IF_ERROR(call());
  double best = 0;
  int calls = 1;
  for (int batch = 0; batch < kBatches; ++batch) {
    ORIEL_RETURN_IF_ERROR(world->Barrier());
    const double before = Now();
    for (int i = 0; i < calls; ++i) ORIEL_RETURN_IF_ERROR(call());
    ORIEL_ASSIGN_OR_RETURN(const double seconds, Slowest((Now() - before) / calls, world));
    best = batch == 0 ? seconds : std::min(best, seconds);
    calls = static_cast<int>(
        std::clamp(kSecondsPerMeasurement / kBatches / std::max(seconds, 1e-9), 1.0, 200.0));
  }
  return best;
}

// Of a call as training has it: ranks come to it from computing, not always at the same time, and
// who waits may sleep and must be woken. Of every other call, in turn, a rank of the group comes
// later by a small product; the time is from there on.
absl::StatusOr<double> TimeCallsOfTraining(const std::function<absl::Status()>& call,
                                           const Communicator& group, Communicator* world) {
  ORIEL_ASSIGN_OR_RETURN(const std::unique_ptr<Launch> product,
                         Launch::Make(Product(64, 256, 256, DType::kF32, /*threads=*/1)));
  ORIEL_ASSIGN_OR_RETURN(const double once, TimeCalls([&] { return product->Run(); }, world));
  int64_t turn = 0;
  const auto compute_and_call = [&]() -> absl::Status {
    ORIEL_RETURN_IF_ERROR(product->Run());
    ++turn;
    if (turn % 2 == 0 && turn / 2 % group.size() == group.rank()) {
      ORIEL_RETURN_IF_ERROR(product->Run());
    }
    return call();
  };
  ORIEL_ASSIGN_OR_RETURN(const double both, TimeCalls(compute_and_call, world));
  constexpr double kLeast = 1e-7;
  return std::max(both - 1.5 * once, kLeast);
}

// `bytes` are of what is reduced, of what is gathered, and of a message.
absl::Status MeasureGroup(Communicator* group, Communicator* world, int64_t bytes,
                          std::vector<Measurement>* found) {
  const int64_t ranks = group->size(), piece = std::max<int64_t>(bytes / ranks / 4, 1);
  AlignedVector<char> source(static_cast<size_t>(std::max(bytes, 4 * piece * ranks)));
  AlignedVector<char> target(source.size());
  const auto add = [&](const char* what, double sent, double seconds) {
    found->push_back(
        {what,
         {{"ranks", static_cast<double>(ranks)}, {"sent_bytes", sent}, {"seconds", seconds}}});
  };
  const auto time = [&](const std::function<absl::Status()>& call) {
    return TimeCallsOfTraining(call, *group, world);
  };
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  ORIEL_ASSIGN_OR_RETURN(double seconds, time([&] {
                           return group->AllReduce(Reduction::kSum, {{source.data(), target.data(),
                                                                      bytes / 4, DType::kF32}});
                         }));
  add("all_reduce", 2 * share * static_cast<double>(bytes), seconds);
  ORIEL_ASSIGN_OR_RETURN(
      seconds, time([&] { return group->AllGather(source.data(), 4 * piece, target.data()); }));
  add("all_gather", static_cast<double>(4 * piece * (ranks - 1)), seconds);
  if (ranks != 2) return absl::OkStatus();
  ORIEL_ASSIGN_OR_RETURN(seconds, time([&]() -> absl::Status {
                           // There and back, so that the other side has it.
                           for (const int64_t sender : {0, 1}) {
                             const bool sends = group->rank() == sender;
                             ORIEL_ASSIGN_OR_RETURN(
                                 std::unique_ptr<Message> message,
                                 sends ? group->Send(1 - sender, 0, source.data(), bytes)
                                       : group->Receive(sender, 0, target.data(), bytes));
                             ORIEL_RETURN_IF_ERROR(message->Wait());
                           }
                           return absl::OkStatus();
                         }));
  add("transfer", static_cast<double>(bytes), seconds / 2);
  return absl::OkStatus();
}

// An all-gather beside products that take about as long, in a thread of its own as executors have
// one. Several of each at a time, so that making the thread counts little.
absl::StatusOr<Measurement> MeasureOverlap(Communicator* world) {
  constexpr int kGathers = 8;
  const int64_t piece = std::max<int64_t>(4 << 10, (1 << 20) / world->size());
  AlignedVector<char> source(static_cast<size_t>(piece));
  AlignedVector<char> target(static_cast<size_t>(piece * world->size()));
  const auto gather = [&]() -> absl::Status {
    for (int i = 0; i < kGathers; ++i) {
      ORIEL_RETURN_IF_ERROR(world->AllGather(source.data(), piece, target.data()));
    }
    return absl::OkStatus();
  };
  ORIEL_ASSIGN_OR_RETURN(const std::unique_ptr<Launch> product,
                         Launch::Make(Product(64, 256, 256, DType::kF32, /*threads=*/1)));
  ORIEL_ASSIGN_OR_RETURN(const double once, TimeCalls([&] { return product->Run(); }, world));
  ORIEL_ASSIGN_OR_RETURN(const double gathering, TimeCalls(gather, world));
  const auto times = static_cast<int>(std::max(1., gathering / once));
  const auto compute = [&]() -> absl::Status {
    for (int i = 0; i < times; ++i) ORIEL_RETURN_IF_ERROR(product->Run());
    return absl::OkStatus();
  };
  ORIEL_ASSIGN_OR_RETURN(const double computing, TimeCalls(compute, world));
  ORIEL_ASSIGN_OR_RETURN(const double both, TimeCalls(
                                                [&] {
                                                  absl::Status gathered;
                                                  std::thread beside([&] { gathered = gather(); });
                                                  const absl::Status computed = compute();
                                                  beside.join();
                                                  return computed.ok() ? gathered : computed;
                                                },
                                                world));
  return Measurement{"overlap",
                     {{"computing", computing}, {"communicating", gathering}, {"seconds", both}}};
}

}  // namespace

absl::StatusOr<std::vector<Measurement>> MeasureKernels(int threads, Communicator* world) {
  std::vector<Measurement> found;
  constexpr int64_t kProducts[][3] = {{512, 512, 512}, {1024, 1024, 128}, {128, 1024, 1024},
                                      {64, 256, 256},  {256, 64, 64},     {64, 64, 256},
                                      {32, 128, 32},   {8, 512, 512},     {512, 32, 1024}};
  for (const auto& [rows, columns, depth] : kProducts) {
    ORIEL_ASSIGN_OR_RETURN(found.emplace_back(),
                           MeasureProduct(rows, columns, depth, DType::kF32, threads, world));
  }
  for (const int i : {0, 3}) {
    const auto& [rows, columns, depth] = kProducts[i];
    ORIEL_ASSIGN_OR_RETURN(found.emplace_back(),
                           MeasureProduct(rows, columns, depth, DType::kBF16, threads, world));
  }
  for (const bool backward : {false, true}) {
    for (const auto& [heads, sequence, depth] :
         std::initializer_list<std::array<int64_t, 3>>{{4, 64, 16}, {4, 256, 64}, {8, 512, 32}}) {
      ORIEL_ASSIGN_OR_RETURN(found.emplace_back(),
                             MeasureAttention(heads, sequence, depth, backward, threads, world));
    }
  }
  for (const int64_t elements : {16, 4096, 65536, 1 << 20, 1 << 23}) {
    ORIEL_ASSIGN_OR_RETURN(found.emplace_back(), MeasureBytes(elements, threads, world));
  }
  return found;
}

absl::StatusOr<std::vector<Measurement>> MeasureCollectives(Communicator* world) {
  std::vector<Measurement> found;
  if (world == nullptr || world->size() < 2) return found;
  for (int64_t size = 2;; size = std::min(2 * size, world->size())) {
    // All ranks are in some group, or the ranks' calls would not be as many.
    if (world->size() % size == 0) {
      std::vector<int64_t> ranks(static_cast<size_t>(size));
      std::iota(ranks.begin(), ranks.end(), world->rank() / size * size);
      ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> group, world->Group(ranks));
      for (const int64_t bytes : {64, 16 << 10, 256 << 10, 4 << 20}) {
        ORIEL_RETURN_IF_ERROR(MeasureGroup(group.get(), world, bytes, &found));
      }
    }
    if (size < world->size()) continue;
    ORIEL_ASSIGN_OR_RETURN(found.emplace_back(), MeasureOverlap(world));
    return found;
  }
}

std::string MeasurementJson(const Measurement& measurement) {
  std::string text = absl::StrCat("{\"measure\": \"", measurement.what, "\"");
  for (const auto& [name, value] : measurement.numbers) {
    // Counts whole.
    const bool is_count = value == std::floor(value) && value < 1e18;
    absl::StrAppend(
        &text, ", \"", name, "\": ",
        is_count ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrFormat("%.6g", value));
  }
  return text + "}";
}

}  // namespace oriel::runtime
