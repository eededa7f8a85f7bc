// NCCL, emulated, where ranks meet over TCP as those of a job do; and what the environment asks
// for.
#include "runtime/comm/nccl/cuda_communicator.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/conformance.h"
#include "runtime/comm/nccl/emulated_nccl.h"
#include "runtime/comm/nccl/nccl_communicator.h"
#include "runtime/comm/nccl/on_device.h"
#include "runtime/comm/tcp/tcp_testing.h"

namespace oriel::runtime {
namespace {

using kernels::cuda::Device;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<const Nccl*> Emulated() { return &EmulatedNccl(); }

// An environment variable while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* const name_;
};

// A thread for each rank, with a device of its own.
void RunRanks(int64_t size,
              const std::function<void(std::unique_ptr<Communicator>, const Device&)>& body) {
  kernels::cuda::EmulatorOptions options;
  options.devices = static_cast<int>(size);
  const kernels::cuda::Driver& driver = kernels::cuda::EmulatedDriver(options);
  RunTcpRanks(size, [&](std::unique_ptr<Communicator> host) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto device, Device::Open(driver, static_cast<int>(host->rank())));
    body(std::move(host), *device);
  });
}

using Parameters = std::tuple<ConformanceCase, int64_t>;
class NcclOverTcp : public ::testing::TestWithParam<Parameters> {};

TEST_P(NcclOverTcp, Case) {
  const auto& [test, size] = GetParam();
  RunRanks(size, [run = test.run](std::unique_ptr<Communicator> host, const Device& device) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, OpenCudaCommunicator(*host, device, Emulated));
    EXPECT_EQ(world->name(), "nccl");
    run(*OnDevice(std::move(world), device));
  });
}

INSTANTIATE_TEST_SUITE_P(Tcp, NcclOverTcp,
                         ::testing::Combine(::testing::ValuesIn(ConformanceCases()),
                                            ::testing::Values<int64_t>(2, 3)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "On",
                                               std::get<1>(info.param));
                         });

// A process is killed while a rank waits on its device for another one, which is alive.
TEST(CudaCommunicator, AKilledRankEndsTheOthers) {
  const int port = FreePort();
  kernels::cuda::EmulatorOptions options;
  options.devices = 3;
  const kernels::cuda::Driver& driver = kernels::cuda::EmulatedDriver(options);
  const auto open = [&](int rank, const std::function<void(Communicator&, const Device&)>& body) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto host, OpenTcpWorld(LocalRank(port, rank, 3)));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto device, Device::Open(driver, rank));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, OpenCudaCommunicator(*host, *device, Emulated));
    body(*world, *device);
  };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    open(2, [](Communicator&, const Device&) { pause(); });
    _exit(1);
  }
  std::thread other([&] {
    open(1, [&](Communicator& world, const Device&) {
      ORIEL_ASSERT_OK(world.Group({0, 1}).status());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(child, SIGKILL);
      while (world.Check().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
  });
  open(0, [&](Communicator& world, const Device& device) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto group, world.Group({0, 1}));
    CUdeviceptr memory = 0;
    ASSERT_EQ(device.driver().cuMemAlloc(&memory, sizeof(float)), CUDA_SUCCESS);
    void* const data = reinterpret_cast<void*>(memory);
    const ReduceBuffer buffer{data, data, 1, DType::kF32};
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(group->AllReduce(Reduction::kSum, {&buffer, 1}),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 2 (at 127.0.0.1) was lost")));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    device.driver().cuMemFree(memory);
  });
  other.join();
  waitpid(child, nullptr, 0);
}

TEST(CudaCommunicator, TheEnvironmentChooses) {
  const Variable kind("ORIEL_DEVICE_COMM", "staged");
  RunRanks(2, [](std::unique_ptr<Communicator> host, const Device& device) {
    const auto no_nccl = []() -> absl::StatusOr<const Nccl*> {
      return absl::InternalError("asked for");
    };
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, OpenCudaCommunicator(*host, device, no_nccl));
    EXPECT_NE(world->name(), "nccl");
  });
}

TEST(CudaCommunicator, BadVariables) {
  const struct {
    const char *name, *value, *message;
  } cases[] = {
      {"ORIEL_DEVICE_COMM", "mpi", "ORIEL_DEVICE_COMM is 'mpi'; it may be nccl or staged"},
      {"ORIEL_NCCL_TIMEOUT", "soon", "ORIEL_NCCL_TIMEOUT is 'soon', which is no number of seconds"},
      {"ORIEL_NCCL_TIMEOUT", "0", "ORIEL_NCCL_TIMEOUT is '0'"},
  };
  for (const auto& test : cases) {
    const Variable variable(test.name, test.value);
    RunRanks(2, [&](std::unique_ptr<Communicator> host, const Device& device) {
      EXPECT_THAT(OpenCudaCommunicator(*host, device, Emulated).status(),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.message)));
    });
  }
}

// Each rank hears of it, and none waits for the one without.
TEST(CudaCommunicator, ARankWithoutNccl) {
  RunRanks(3, [](std::unique_ptr<Communicator> host, const Device& device) {
    const int64_t rank = host->rank();
    const auto load = [rank]() -> absl::StatusOr<const Nccl*> {
      if (rank == 1) return absl::UnavailableError("no NCCL: it is not installed");
      return &EmulatedNccl();
    };
    const absl::Status status = OpenCudaCommunicator(*host, device, load).status();
    if (rank == 1) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                   AllOf(HasSubstr("it is not installed"),
                                         HasSubstr("or set ORIEL_DEVICE_COMM=staged"))));
    } else {
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1 has no communicator")));
    }
  });
}

}  // namespace
}  // namespace oriel::runtime
