// Times CUDA kernels at the sizes of a 7 B decoder, against what the device could do at best.
//
//   oriel_cuda_kernels_bench [--emulate] [--tiny] [--only WORD] [--json FILE [--from N]]
//   oriel_cuda_kernels_bench --estimates | --check-estimates FILE
//
//   --emulate  on the emulator, whose times mean nothing; with --tiny, a test of this program
//   --tiny     at sizes that take no time
//   --only     kernels with WORD in their names; "none": only what all are compared with
//   --from     leaves out the first N, of which FILE has what an earlier run wrote; the exit code
//   is
//              5 where the device has failed, so that another process must go on behind the last
//   --estimates        prints the least time that each could take on an H200, as a table in
//                      Markdown; needs no device
//   --check-estimates  whether FILE has that table (bench/results/README.md)
//
// A kernel's launches are recorded into a graph, each on other tensors than the one before, so many
// that they don't fit into the device's cache; the graph is replayed, and the fastest replay
// counts. Operands are random numbers, for a device is faster on zeros. Columns:
//
//   us        time of a launch
//   limit     of the bytes that it must move at the memory's nominal rate, or of its operations at
//             989 TFLOP/s, whichever takes longer, in us
//   of_limit  limit / us
//   of_rate   the same against what was measured in this run: a copy of 1 GiB (read and written),
//             or a product of 8192 x 8192 matrices in bf16
#include "kernels/cuda/kernels_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/registry.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr double kPeakFlops = 989e12;      // H100 and H200, dense bf16
constexpr double kEstimatedRate = 4.8e12;  // H200, of its memory
constexpr int64_t kRandomBytes = 4 << 20;  // that tensors are filled with, again and again

struct Options {
  bool emulate = false, tiny = false, estimates = false;
  std::string only, json, check_estimates;
  int from = 0;
};

class Memory {
 public:
  explicit Memory(const Driver& driver) : driver_(driver) {}
  ~Memory() {
    if (address_ != 0) driver_.cuMemFree(address_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  absl::Status Allocate(int64_t bytes) {
    return ORIEL_CUDA(driver_, cuMemAlloc, &address_,
                      static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  }
  CUdeviceptr address() const { return address_; }
  void* pointer() const { return reinterpret_cast<void*>(address_); }

 private:
  const Driver& driver_;
  CUdeviceptr address_ = 0;
};

// A graph of what `launch` puts on the stream.
class Graph {
 public:
  explicit Graph(const Driver& driver) : driver_(driver) {}
  ~Graph() {
    if (exec_ != nullptr) driver_.cuGraphExecDestroy(exec_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  template <typename Launch>
  absl::Status Record(CUstream stream, const Launch& launch) {
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUDA(driver_, cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const absl::Status launched = launch();
    CUgraph graph = nullptr;
    const absl::Status ended = ORIEL_CUDA(driver_, cuStreamEndCapture, stream, &graph);
    ORIEL_RETURN_IF_ERROR(launched);
    ORIEL_RETURN_IF_ERROR(ended);
    absl::Status made = ORIEL_CUDA(driver_, cuGraphInstantiate, &exec_, graph, 0);
    driver_.cuGraphDestroy(graph);
    return made;
  }
  absl::Status Launch(CUstream stream) const {
    return ORIEL_CUDA(driver_, cuGraphLaunch, exec_, stream);
  }

 private:
  const Driver& driver_;
  CUgraphExec exec_ = nullptr;
};

// Bits that are floats around 0: normal numbers in f32 and in bf16, its upper half.
std::vector<float> RandomFloats(DType dtype) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.5);
  std::vector<float> block(kRandomBytes / sizeof(float));
  if (dtype != DType::kBF16) {
    for (float& value : block) value = normal(random);
    return block;
  }
  for (float& pair : block) {
    const float low = normal(random), high = normal(random);
    const uint32_t bits = __builtin_bit_cast(uint32_t, low) >> 16 |
                          (__builtin_bit_cast(uint32_t, high) & 0xffff0000u);
    pair = __builtin_bit_cast(float, bits);
  }
  return block;
}

class Bench {
 public:
  Bench(Device& device, const Options& options)
      : device_(device), driver_(device.driver()), options_(options) {}
  ~Bench() {
    for (const CUevent event : {begin_, end_}) {
      if (event != nullptr) driver_.cuEventDestroy(event);
    }
    if (stream_ != nullptr) driver_.cuStreamDestroy(stream_);
  }

  absl::Status Init() {
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUDA(driver_, cuStreamCreateWithPriority, &stream_, CU_STREAM_NON_BLOCKING, 0));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventCreate, &begin_, CU_EVENT_DEFAULT));
    return ORIEL_CUDA(driver_, cuEventCreate, &end_, CU_EVENT_DEFAULT);
  }

  // Whether the device still does what it is asked: behind a kernel's fault it does not.
  bool Works() const { return driver_.cuStreamSynchronize(stream_) == CUDA_SUCCESS; }

  // Bytes per second that a copy reads and writes.
  absl::StatusOr<double> CopyRate() {
    const int64_t bytes = options_.tiny ? 1 << 16 : 1 << 30;
    Memory source(driver_), target(driver_);
    ORIEL_RETURN_IF_ERROR(source.Allocate(bytes));
    ORIEL_RETURN_IF_ERROR(target.Allocate(bytes));
    ORIEL_RETURN_IF_ERROR(Fill({DType::kF32, {bytes / 4}}, 0, source));
    ORIEL_ASSIGN_OR_RETURN(const double seconds, Time(
                                                     [&] {
                                                       return ORIEL_CUDA(
                                                           driver_, cuMemcpyAsync, target.address(),
                                                           source.address(), bytes, stream_);
                                                     },
                                                     4));
    return 2 * static_cast<double>(bytes) / seconds;
  }

  // Seconds of a launch.
  absl::StatusOr<double> Measure(const BenchLaunch& launch) {
    const KernelSpec spec{launch.kernel, launch.operands, launch.results, launch.attributes};
    ORIEL_ASSIGN_OR_RETURN(const KernelFn function, Registry::Get().Prepare(spec, device_));
    const double bytes = launch.AllBytes();
    const int64_t sets =
        options_.tiny ? 2 : std::clamp<int64_t>(static_cast<int64_t>(256e6 / bytes), 2, 16);
    std::vector<std::vector<const void*>> operands(sets);
    std::vector<std::vector<void*>> results(sets);
    std::vector<std::unique_ptr<Memory>> memory;
    for (int64_t set = 0; set < sets; ++set) {
      for (size_t i = 0; i < launch.operands.size(); ++i) {
        memory.push_back(std::make_unique<Memory>(driver_));
        ORIEL_RETURN_IF_ERROR(memory.back()->Allocate(launch.operands[i].bytes()));
        const bool squares = absl::c_linear_search(launch.squares, static_cast<int>(i));
        ORIEL_RETURN_IF_ERROR(
            Fill(launch.operands[i], launch.index_limit, *memory.back(), squares));
        operands[set].push_back(memory.back()->pointer());
      }
      for (size_t i = 0; i < launch.results.size(); ++i) {
        if (i < launch.in_place.size()) {
          results[set].push_back(const_cast<void*>(operands[set][launch.in_place[i]]));
          continue;
        }
        memory.push_back(std::make_unique<Memory>(driver_));
        ORIEL_RETURN_IF_ERROR(memory.back()->Allocate(launch.results[i].bytes()));
        results[set].push_back(memory.back()->pointer());
      }
    }
    int64_t set = 0;
    absl::StatusOr<double> seconds = Time(
        [&] {
          const int64_t now = set++ % sets;
          return function({operands[now].data(), results[now].data(), stream_});
        },
        static_cast<int>(std::max<int64_t>(sets, 4)));
    ORIEL_ASSIGN_OR_RETURN(const Fault fault, device_.TakeFault(stream_));
    ORIEL_RETURN_IF_ERROR(device_.FaultStatus(fault));
    return seconds;
  }

 private:
  // Random floats, or f32 squares of such, numbers below `limit`, rows of a mask with that many
  // true, and 1 where it is a scalar.
  absl::Status Fill(const TensorSpec& spec, int64_t limit, const Memory& memory,
                    bool squares = false) {
    const int64_t bytes = spec.bytes();
    if (spec.dtype == DType::kBool) {
      const int64_t columns = spec.shape.back(), end = limit > 0 ? limit : columns;
      std::vector<char> mask(bytes);
      for (int64_t i = 0; i < bytes; ++i) mask[i] = i % columns < end ? 1 : 0;
      return Upload(memory.address(), mask.data(), bytes);
    }
    if (spec.dtype == DType::kI64) {
      std::mt19937_64 random(2);
      std::vector<int64_t> indices(spec.num_elements());
      for (int64_t& index : indices)
        index = static_cast<int64_t>(random() % std::max<int64_t>(limit, 1));
      return Upload(memory.address(), indices.data(), bytes);
    }
    if (spec.rank() == 0) {
      const float one = 1;
      return Upload(memory.address(), &one, bytes);
    }
    std::vector<float> block =
        blocks_.try_emplace(spec.dtype, RandomFloats(spec.dtype)).first->second;
    if (squares) absl::c_transform(block, block.begin(), [](float x) { return x * x; });
    int64_t done = std::min(bytes, kRandomBytes);
    ORIEL_RETURN_IF_ERROR(Upload(memory.address(), block.data(), done));
    for (; done < bytes; done *= 2) {
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemcpyAsync, memory.address() + done,
                                       memory.address(), std::min(done, bytes - done), stream_));
    }
    return ORIEL_CUDA(driver_, cuStreamSynchronize, stream_);
  }

  absl::Status Upload(CUdeviceptr target, const void* source, int64_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemcpyAsync, target,
                                     reinterpret_cast<CUdeviceptr>(source), bytes, stream_));
    return ORIEL_CUDA(driver_, cuStreamSynchronize, stream_);
  }

  // Seconds of one of `count` calls, of the fastest replay of all of them.
  template <typename Launch>
  absl::StatusOr<double> Time(const Launch& launch, int count) {
    const auto all = [&]() -> absl::Status {
      for (int i = 0; i < count; ++i) ORIEL_RETURN_IF_ERROR(launch());
      return absl::OkStatus();
    };
    ORIEL_RETURN_IF_ERROR(all());  // libraries load what they need
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuStreamSynchronize, stream_));
    Graph graph(driver_);
    ORIEL_RETURN_IF_ERROR(graph.Record(stream_, all));
    double best = HUGE_VAL;
    const auto start = std::chrono::steady_clock::now();
    const auto least = std::chrono::milliseconds(options_.tiny ? 0 : 60);
    for (int run = 0;
         run < (options_.tiny ? 1 : 5) || std::chrono::steady_clock::now() - start < least; ++run) {
      // Behind a replay that isn't timed, so that the device does not wait for the host's launch.
      ORIEL_RETURN_IF_ERROR(graph.Launch(stream_));
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventRecord, begin_, stream_));
      ORIEL_RETURN_IF_ERROR(graph.Launch(stream_));
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventRecord, end_, stream_));
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventSynchronize, end_));
      float milliseconds = 0;
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventElapsedTime, &milliseconds, begin_, end_));
      best = std::min(best, static_cast<double>(milliseconds) / 1e3 / count);
    }
    return best;
  }

  Device& device_;
  const Driver& driver_;
  const Options& options_;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr, end_ = nullptr;
  std::map<DType, std::vector<float>> blocks_;
};

// Bytes per second, by the clock and the width of the memory; 0 where the driver does not say.
double NominalRate(const Driver& driver) {
  CUdevice device = 0;
  int kilohertz = 0, bits = 0;
  if (driver.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      driver.cuDeviceGetAttribute(&kilohertz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) !=
          CUDA_SUCCESS ||
      driver.cuDeviceGetAttribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) !=
          CUDA_SUCCESS) {
    return 0;
  }
  return 2e3 * kilohertz * bits / 8;
}

std::string Shapes(const std::vector<TensorSpec>& specs) {
  return absl::StrJoin(specs, " ", [](std::string* out, const TensorSpec& spec) {
    absl::StrAppend(out, spec.ToString());
  });
}

// "bf16[8, 4] f32[4] -> bf16[8, 4], kind silu"
std::string Describe(const BenchLaunch& launch) {
  std::string text = absl::StrCat(Shapes(launch.operands), launch.operands.empty() ? "" : " ",
                                  "-> ", Shapes(launch.results));
  for (const auto& [name, value] : launch.attributes) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      absl::StrAppend(&text, ", ", name, " ", *number);
    } else if (const auto* word = std::get_if<std::string>(&value)) {
      absl::StrAppend(&text, ", ", name, " ", *word);
    }
  }
  return text;
}

// What a launch can't do without, in seconds.
struct Limit {
  double seconds;
  bool computes;  // by its operations, not by the bytes that it moves
};

Limit LimitOf(const BenchLaunch& launch, double flop_rate, double byte_rate) {
  const double computing = launch.flops / flop_rate, moving = launch.MovedBytes() / byte_rate;
  return {std::max(computing, moving), computing > moving};
}

// NotFound if a kernel is neither among the launches nor benched with one of them.
absl::Status CheckAllAreThere(const std::vector<BenchLaunch>& launches) {
  for (const std::string& name : Registry::Get().Names()) {
    if (!BenchedWith(name).empty()) continue;
    if (std::none_of(launches.begin(), launches.end(),
                     [&](const BenchLaunch& launch) { return launch.kernel == name; })) {
      return absl::NotFoundError(
          absl::StrCat("no launch of the kernel ", name, ": add one to bench_launches.cc"));
    }
  }
  return absl::OkStatus();
}

std::string Estimates() {
  std::string table =
      "| kernel | operands and results | at least | estimate |\n|---|---|---|---|\n";
  for (const BenchLaunch& launch : DecoderLaunches()) {
    const Limit limit = LimitOf(launch, kPeakFlops, kEstimatedRate);
    const double micros = limit.seconds * 1e6;
    absl::StrAppendFormat(&table, "| `%s` | %s | %s | %.*f µs |\n", launch.kernel, Describe(launch),
                          limit.computes ? absl::StrFormat("%.4g GFLOP", launch.flops / 1e9)
                                         : absl::StrFormat("%.4g MB", launch.MovedBytes() / 1e6),
                          micros < 10 ? 1 : 0, micros);
  }
  table += "\n| kernels | benched with |\n|---|---|\n";
  std::map<std::string, std::string> others;
  for (const std::string& name : Registry::Get().Names()) {
    if (const std::string with = BenchedWith(name); !with.empty()) {
      absl::StrAppend(&others[with], others[with].empty() ? "" : ", ", "`", name, "`");
    }
  }
  for (const auto& [with, names] : others) {
    absl::StrAppend(&table, "| ", names, " | ", with, " |\n");
  }
  return table;
}

absl::Status CheckEstimates(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file.good()) return absl::NotFoundError(absl::StrCat("can't read ", path));
  if (absl::StrContains(text.str(), Estimates())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " has not the estimates of this program: put in what --estimates prints"));
}

// The first `count` kernels that a file of an earlier run has, as it was written.
std::string RowsOf(const std::string& path, int count) {
  std::ifstream file(path);
  std::string line, rows;
  while (count > 0 && std::getline(file, line)) {
    if (absl::StartsWith(line, "    {\"kernel\"")) {
      --count;
      absl::StrAppend(&rows, rows.empty() ? "" : ",", "\n", absl::StripSuffix(line, ","));
    }
  }
  return rows;
}

absl::Status Run(const Options& options) {
  ORIEL_RETURN_IF_ERROR(CheckAllAreThere(DecoderLaunches()));
  if (options.estimates) {
    std::fputs(Estimates().c_str(), stdout);
    return absl::OkStatus();
  }
  if (!options.check_estimates.empty()) return CheckEstimates(options.check_estimates);
  const Driver* driver = &EmulatedDriver();
  if (!options.emulate) {
    ORIEL_ASSIGN_OR_RETURN(driver, SystemDriver());
  }
  ORIEL_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Device::Open(*driver, 0));
  Bench bench(*device, options);
  ORIEL_RETURN_IF_ERROR(bench.Init());
  ORIEL_ASSIGN_OR_RETURN(const double copy_rate, bench.CopyRate());
  const BenchLaunch product = SquareProduct(options.tiny ? 64 : 8192);
  ORIEL_ASSIGN_OR_RETURN(const double product_seconds, bench.Measure(product));
  const double gemm_rate = product.flops / product_seconds;
  double nominal = NominalRate(*driver);
  if (nominal <= 0) nominal = copy_rate;
  std::printf("%s: memory %.2f TB/s, copy %.2f TB/s, product %.0f TFLOP/s\n",
              device->properties().name.c_str(), nominal / 1e12, copy_rate / 1e12,
              gemm_rate / 1e12);
  std::string rows = options.from > 0 ? RowsOf(options.json, options.from) : "";
  const auto save = [&]() -> absl::Status {
    if (options.json.empty()) return absl::OkStatus();
    std::ofstream file(options.json);
    file << absl::StrFormat(
        "{\n  \"device\": \"%s\",\n  \"nominal_tbps\": %.4g,\n  \"copy_tbps\": %.4g,\n  "
        "\"product_tflops\": %.4g,\n"
        "  \"kernels\": [%s\n  ]\n}\n",
        device->properties().name, nominal / 1e12, copy_rate / 1e12, gemm_rate / 1e12, rows);
    file.close();
    if (!file.good()) return absl::InternalError(absl::StrCat("writing ", options.json, " failed"));
    return absl::OkStatus();
  };
  int failed = 0, number = 0;
  for (const BenchLaunch& launch : options.tiny ? TinyLaunches() : DecoderLaunches()) {
    if (!options.only.empty() && !absl::StrContains(launch.kernel, options.only)) continue;
    if (number++ < options.from) continue;
    const absl::StatusOr<double> seconds = bench.Measure(launch);
    const std::string shapes = Describe(launch);
    if (!seconds.ok()) {
      ++failed;
      std::printf("%-22s failed: %s\n", launch.kernel.c_str(),
                  std::string(seconds.status().message()).c_str());
      absl::StrAppend(&rows, rows.empty() ? "" : ",", "\n    {\"kernel\": \"", launch.kernel,
                      "\", \"shapes\": \"", shapes, "\", \"failed\": true}");
      ORIEL_RETURN_IF_ERROR(save());
      if (!bench.Works()) {
        return absl::DataLossError("the device does nothing more for this process");
      }
      continue;
    }
    const auto [limit, computes] = LimitOf(launch, kPeakFlops, nominal);
    const double rate = computes ? launch.flops / gemm_rate : launch.MovedBytes() / copy_rate;
    std::printf("%-22s %9.1f us  limit %9.1f  %5.1f %% of it, %5.1f %% of the %s's rate  %s\n",
                launch.kernel.c_str(), *seconds * 1e6, limit * 1e6, 100 * limit / *seconds,
                100 * rate / *seconds, computes ? "product" : "copy", shapes.c_str());
    absl::StrAppendFormat(
        &rows,
        "%s\n    {\"kernel\": \"%s\", \"shapes\": \"%s\", \"us\": %.2f, \"bytes\": %.0f, "
        "\"flops\": %.0f, \"limit_us\": %.2f, \"of_limit\": %.4f, \"of_rate\": %.4f, "
        "\"rate\": \"%s\"}",
        rows.empty() ? "" : ",", launch.kernel, shapes, *seconds * 1e6, launch.MovedBytes(),
        launch.flops, limit * 1e6, limit / *seconds, rate / *seconds,
        computes ? "product" : "copy");
    ORIEL_RETURN_IF_ERROR(save());
  }
  ORIEL_RETURN_IF_ERROR(save());  // also where there were none
  if (failed > 0) return absl::InternalError(absl::StrCat(failed, " kernels failed"));
  return absl::OkStatus();
}

}  // namespace
}  // namespace oriel::kernels::cuda

int main(int argc, char** argv) {
  oriel::kernels::cuda::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--emulate") {
      options.emulate = true;
    } else if (word == "--tiny") {
      options.tiny = true;
    } else if (word == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (word == "--json" && i + 1 < argc) {
      options.json = argv[++i];
    } else if (word == "--from" && i + 1 < argc) {
      options.from = std::atoi(argv[++i]);
    } else if (word == "--estimates") {
      options.estimates = true;
    } else if (word == "--check-estimates" && i + 1 < argc) {
      options.check_estimates = argv[++i];
    } else {
      std::fprintf(stderr,
                   "usage: oriel_cuda_kernels_bench [--emulate] [--tiny] [--only WORD] [--json "
                   "FILE [--from N]]\n"
                   "       oriel_cuda_kernels_bench --estimates | --check-estimates FILE\n");
      return 2;
    }
  }
  // What is known is seen, should it end here.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const absl::Status status = oriel::kernels::cuda::Run(options);
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  constexpr int kDeviceFailed = 5;
  return status.ok() ? 0 : absl::IsDataLoss(status) ? kDeviceFailed : 1;
}
