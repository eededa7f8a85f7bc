// Communicators of device memory, on the emulated driver.
//
// With ORIEL_CUDA_TEST_DEVICE=gpu, DeviceConformance runs on GPUs: staged communication for any
// number of ranks, NCCL's for no more ranks than there are GPUs.
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/conformance.h"
#include "runtime/comm/in_process.h"
#include "runtime/comm/nccl/emulated_nccl.h"
#include "runtime/comm/nccl/nccl_communicator.h"
#include "runtime/comm/nccl/on_device.h"
#include "runtime/comm/nccl/staged.h"

namespace oriel::runtime {
namespace {

using kernels::cuda::Device;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What a rank has.
struct Rank {
  Communicator* host;
  Device* device;
};

// Runs `body` on a thread for each rank; ranks take the devices in turn.
void RunRanksOn(const kernels::cuda::Driver& driver, int64_t size, int devices,
                const std::function<void(const Rank&)>& body) {
  std::vector<std::thread> threads;
  for (auto& host : MakeInProcessWorld(size)) {
    threads.emplace_back([&, host = std::move(host)] {
      const int ordinal = static_cast<int>(host->rank()) % devices;
      ORIEL_ASSERT_OK_AND_ASSIGN(auto device, Device::Open(driver, ordinal));
      body({host.get(), device.get()});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The same on emulated devices, one for each rank.
void RunRanks(int64_t size, const std::function<void(const Rank&)>& body, uint64_t seed = 1) {
  kernels::cuda::EmulatorOptions options;
  options.devices = static_cast<int>(size);
  options.seed = seed;
  RunRanksOn(kernels::cuda::EmulatedDriver(options), size, options.devices, body);
}

absl::StatusOr<std::unique_ptr<Communicator>> Open(
    const Rank& rank, bool staged, const Nccl& nccl = EmulatedNccl(),
    std::chrono::milliseconds timeout = std::chrono::seconds(50)) {
  if (staged) return OpenStagedWorld(*rank.host, *rank.device);
  NcclOptions options;
  options.timeout = timeout;
  return OpenNcclWorld(*rank.host, *rank.device, nccl, options);
}

bool OnGpus() {
  const char* device = std::getenv("ORIEL_CUDA_TEST_DEVICE");
  return device != nullptr && std::string(device) == "gpu";
}

using Parameters = std::tuple<ConformanceCase, bool, int64_t>;
class DeviceConformance : public ::testing::TestWithParam<Parameters> {};

TEST_P(DeviceConformance, Case) {
  const auto& [test, staged, size] = GetParam();
  const Nccl* nccl = &EmulatedNccl();
  const auto body = [run = test.run, staged = staged, &nccl](const Rank& rank) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, Open(rank, staged, *nccl));
    const auto communicator = OnDevice(std::move(world), *rank.device);
    run(*communicator);
  };
  if (!OnGpus()) return RunRanks(size, body);
  ORIEL_ASSERT_OK_AND_ASSIGN(const kernels::cuda::Driver* driver, kernels::cuda::SystemDriver());
  int devices = 0;
  ASSERT_EQ(driver->cuDeviceGetCount(&devices), CUDA_SUCCESS);
  if (!staged) {
    // "Fatal: host threads racing to launch NCCL on same device": a rank has one thread for that.
    if (std::string(test.name) == "GroupsAtTheSameTime") {
      GTEST_SKIP() << "NCCL refuses two threads that launch on one device";
    }
    if (size > devices) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << devices;
    ORIEL_ASSERT_OK_AND_ASSIGN(nccl, SystemNccl());
  }
  // Opened anew by each case, which takes a while where nobody else has it open.
  static std::set<int> kept;
  for (int device = 0; device < devices; ++device) {
    CUcontext context = nullptr;
    if (kept.insert(device).second) driver->cuDevicePrimaryCtxRetain(&context, device);
  }
  RunRanksOn(*driver, size, devices, body);
}

INSTANTIATE_TEST_SUITE_P(Device, DeviceConformance,
                         ::testing::Combine(::testing::ValuesIn(ConformanceCases()),
                                            ::testing::Bool(),
                                            ::testing::Values<int64_t>(1, 2, 3, 4)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name,
                                               std::get<1>(info.param) ? "Staged" : "Nccl", "On",
                                               std::get<2>(info.param));
                         });

// Floats of a device, of one value each.
class Floats {
 public:
  Floats(const Device& device, int64_t count, float value) : device_(device), count_(count) {
    EXPECT_EQ(driver().cuMemAlloc(&address_, count * sizeof(float)), CUDA_SUCCESS);
    const std::vector<float> values(count, value);
    EXPECT_EQ(driver().cuMemcpyAsync(address_, reinterpret_cast<CUdeviceptr>(values.data()),
                                     count * sizeof(float), nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(driver().cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }
  ~Floats() { driver().cuMemFree(address_); }

  void* get() const { return reinterpret_cast<void*>(address_); }
  CUdeviceptr address() const { return address_; }
  ReduceBuffer InPlace() const { return {get(), get(), count_, DType::kF32}; }
  // Behind what is on the stream.
  float First(CUstream stream) const {
    float value = 0;
    EXPECT_EQ(driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(&value), address_, sizeof value,
                                     stream),
              CUDA_SUCCESS);
    EXPECT_EQ(driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
    return value;
  }

 private:
  const kernels::cuda::Driver& driver() const { return device_.driver(); }

  const Device& device_;
  const int64_t count_;
  CUdeviceptr address_ = 0;
};

CUstream NewStream(const Device& device) {
  CUstream stream = nullptr;
  EXPECT_EQ(device.driver().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
            CUDA_SUCCESS);
  return stream;
}

// Calls return before they are done, and what is behind them on the stream sees their results;
// nothing else orders them.
TEST(Nccl, CollectivesAreWorkOnTheStream) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    RunRanks(
        2,
        [](const Rank& rank) {
          ORIEL_ASSERT_OK_AND_ASSIGN(auto world, Open(rank, /*staged=*/false));
          ASSERT_TRUE(world->IsAsynchronous());
          const CUstream stream = NewStream(*rank.device);
          world->SetStream(stream);
          const Floats sums(*rank.device, 100, static_cast<float>(rank.host->rank() + 1));
          for (int i = 0; i < 3; ++i) {
            const ReduceBuffer buffer = sums.InPlace();
            ORIEL_ASSERT_OK(world->AllReduce(Reduction::kSum, {&buffer, 1}));
          }
          EXPECT_EQ(sums.First(stream), 12);  // 3 doubled twice
          ORIEL_EXPECT_OK(world->Check());
        },
        seed);
  }
}

TEST(Nccl, CollectivesAreRecordedIntoGraphs) {
  RunRanks(2, [](const Rank& rank) {
    const kernels::cuda::Driver& driver = rank.device->driver();
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, Open(rank, /*staged=*/false));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto group, world->Group({0, 1}));
    const CUstream stream = NewStream(*rank.device);
    group->SetStream(stream);
    const Floats sums(*rank.device, 10, 1);
    ASSERT_EQ(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
    const ReduceBuffer buffer = sums.InPlace();
    ORIEL_ASSERT_OK(group->AllReduce(Reduction::kSum, {&buffer, 1}));
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    const int64_t recording = world->EndRecording();
    EXPECT_EQ(sums.First(stream), 1);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(driver.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
      ORIEL_ASSERT_OK(world->Watch(recording, stream, "a graph"));
    }
    EXPECT_EQ(sums.First(stream), 8);
    ORIEL_EXPECT_OK(world->Check());
    driver.cuGraphExecDestroy(exec);
    driver.cuGraphDestroy(graph);
  });
}

// A rank that does not come: the others get its absence, and who waits on the device goes on.
TEST(Nccl, TheWatchdogEndsWhatDoesNotEnd) {
  for (const bool blocking : {true, false}) {
    RunRanks(3, [blocking](const Rank& rank) {
      ORIEL_ASSERT_OK_AND_ASSIGN(auto world, Open(rank, /*staged=*/false, EmulatedNccl(),
                                                  std::chrono::milliseconds(1500)));
      ORIEL_ASSERT_OK_AND_ASSIGN(auto group, world->Group({0, 1, 2}));
      const auto late = [](absl::StatusCode code) {
        return StatusIs(code, AllOf(HasSubstr("segment forward, instruction 7 [from onnx node "
                                              "/layers.0/mlp]: all_reduce of 1 tensor (40 bytes) "
                                              "over ranks 0, 1, 2 has not ended within 1.5 s"),
                                    HasSubstr("another rank is late")));
      };
      if (rank.host->rank() == 2) {
        while (world->Check().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_THAT(world->Check(), late(absl::StatusCode::kAborted));
        return;
      }
      const CUstream stream = NewStream(*rank.device);
      if (!blocking) group->SetStream(stream);
      group->SetLabel("segment forward, instruction 7 [from onnx node /layers.0/mlp]");
      const Floats sums(*rank.device, 10, 1);
      const ReduceBuffer buffer = sums.InPlace();
      absl::Status status = group->AllReduce(Reduction::kSum, {&buffer, 1});
      if (!blocking) {
        ORIEL_EXPECT_OK(status);
        sums.First(stream);  // does not hang
        status = world->Check();
      }
      // Who finds it first tells the others.
      EXPECT_THAT(status, ::testing::AnyOf(late(absl::StatusCode::kAborted),
                                           late(absl::StatusCode::kDeadlineExceeded)));
      EXPECT_FALSE(group->AllReduce(Reduction::kSum, {&buffer, 1}).ok());
    });
  }
}

// Two groups, whose calls a rank puts in one order; the peer leaves out one of the second replay.
TEST(Nccl, TheWatchdogNamesTheCallOfAGraph) {
  RunRanks(2, [](const Rank& rank) {
    const kernels::cuda::Driver& driver = rank.device->driver();
    ORIEL_ASSERT_OK_AND_ASSIGN(
        auto world, Open(rank, /*staged=*/false, EmulatedNccl(), std::chrono::milliseconds(1500)));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto one, world->Group({0, 1}));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto other, world->Group({0, 1}));
    const CUstream stream = NewStream(*rank.device);
    const Floats sums(*rank.device, 10, 1);
    const ReduceBuffer buffer = sums.InPlace();
    const auto call = [&](Communicator& group, const char* label) {
      group.SetStream(stream);
      group.SetLabel(label);
      ORIEL_ASSERT_OK(group.AllReduce(Reduction::kSum, {&buffer, 1}));
    };
    if (rank.host->rank() == 1) {
      for (int replay = 0; replay < 2; ++replay) {
        call(*one, "first");
        if (replay == 0) call(*other, "second");
        if (replay == 0) call(*one, "third");
      }
      while (world->Check().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    ASSERT_EQ(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
    call(*one, "instruction 1 (all_reduce)");
    call(*other, "instruction 4 (all_reduce) from onnx node /layers.0/mlp");
    call(*one, "instruction 7 (all_reduce)");
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    const int64_t recording = world->EndRecording();
    for (int replay = 0; replay < 2; ++replay) {
      ASSERT_EQ(driver.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
      ORIEL_ASSERT_OK(world->Watch(recording, stream, "a graph"));
    }
    sums.First(stream);  // does not hang
    EXPECT_THAT(world->Check(),
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         HasSubstr("instruction 4 (all_reduce) from onnx node /layers.0/mlp: "
                                   "all_reduce of 1 tensor (40 bytes) over ranks 0, 1 has not "
                                   "ended within 1.5 s")));
    driver.cuGraphExecDestroy(exec);
    driver.cuGraphDestroy(graph);
  });
}

TEST(Nccl, ARankThatFailsEndsTheOthers) {
  RunRanks(3, [](const Rank& rank) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, Open(rank, /*staged=*/false));
    auto group = world->Group({0, 1, 2});
    if (rank.host->rank() == 1) {
      ORIEL_ASSERT_OK(group.status());
      (*group)->Abort(absl::InternalError("label 7 is not in the vocabulary"));
      return;
    }
    const Floats sums(*rank.device, 10, 1);
    const ReduceBuffer buffer = sums.InPlace();
    // Rank 1 may have a group before the others have theirs.
    const absl::Status status =
        group.ok() ? (*group)->AllReduce(Reduction::kSum, {&buffer, 1}) : group.status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                                 HasSubstr("rank 1 failed: label 7 is not in the vocabulary")));
  });
}

TEST(Nccl, AnErrorOfNcclEndsTheJob) {
  RunRanks(2, [](const Rank& rank) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, Open(rank, /*staged=*/false));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto group, world->Group({0, 1}));
    const Floats sums(*rank.device, 10, 1);
    const ReduceBuffer buffer = sums.InPlace();
    group->SetLabel("rank 1, segment backward, ..");
    ORIEL_ASSERT_OK(group->AllReduce(Reduction::kSum, {&buffer, 1}));
    ORIEL_ASSERT_OK(rank.host->Barrier());
    if (rank.host->rank() == 1) {
      SetEmulatedNcclError(1, ncclRemoteError);
      while (world->Check().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      SetEmulatedNcclError(1, ncclSuccess);
      return;
    }
    // While nothing fails on this rank, the next one may still come in time.
    absl::Status status;
    while (status.ok()) status = group->AllReduce(Reduction::kSum, {&buffer, 1});
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kAborted,
                         AllOf(HasSubstr("segment backward, ..: all_reduce of 1 tensor"),
                               HasSubstr("remote process exited or there was a network error"))));
  });
}

// Two messages in two directions. In one order they arrive, whichever streams they are on; where
// each rank sends first, on one stream, neither send ends: it needs the receive behind the other.
TEST(Nccl, LinksWantOneOrder) {
  const std::vector<LinkEnds> ends = {{0, 1}, {1, 0}};
  for (const bool one_stream : {true, false}) {
    for (const bool one_order : {true, false}) {
      RunRanks(2, [&](const Rank& rank) {
        ORIEL_ASSERT_OK_AND_ASSIGN(auto world, Open(rank, /*staged=*/false, EmulatedNccl(),
                                                    std::chrono::milliseconds(400)));
        ASSERT_TRUE(world->HasLinks());
        ORIEL_ASSERT_OK_AND_ASSIGN(const auto links, world->OpenLinks(ends));
        const int64_t me = rank.host->rank();
        const CUstream streams[2] = {NewStream(*rank.device), NewStream(*rank.device)};
        const Floats sent(*rank.device, 100, static_cast<float>(me + 1)), got(*rank.device, 100, 0);
        const auto put = [&](int link) {
          const bool sends = ends[link].sender == me;
          ORIEL_EXPECT_OK(links[link]->Put(sends ? sent.get() : got.get(), 400,
                                           streams[one_stream ? 0 : link], "segment forward.1"));
        };
        const bool swap = !one_order && me == 1;
        put(swap ? 1 : 0);
        put(swap ? 0 : 1);
        const float value = got.First(streams[one_stream ? 0 : 1 - me]);
        if (one_order || !one_stream) {
          EXPECT_EQ(value, static_cast<float>(2 - me));
          ORIEL_EXPECT_OK(world->Check());
        } else {
          EXPECT_THAT(std::string(world->Check().message()),
                      AllOf(HasSubstr("segment forward.1: send to rank "),
                            HasSubstr(" (400 bytes) has not ended within 0.4 s")));
        }
        static_cast<void>(rank.host->Barrier());
      });
    }
  }
}

// Streams alone are not enough: what a rank puts begins in the order in which it was put. Here a
// second receive of a link, which its first holds up, holds up the send that the peer waits for.
TEST(Nccl, LinksHoldUpTheDevice) {
  const std::vector<LinkEnds> ends = {{0, 1}, {1, 0}};
  for (const bool early : {true, false}) {
    RunRanks(2, [&](const Rank& rank) {
      ORIEL_ASSERT_OK_AND_ASSIGN(
          auto world, Open(rank, /*staged=*/false, EmulatedNccl(), std::chrono::milliseconds(400)));
      ORIEL_ASSERT_OK_AND_ASSIGN(const auto links, world->OpenLinks(ends));
      const CUstream streams[2] = {NewStream(*rank.device), NewStream(*rank.device)};
      const Floats data(*rank.device, 100, 1);
      const auto put = [&](int link) {
        const absl::Status status =
            links[link]->Put(data.get(), 400, streams[link], "segment forward.1");
        EXPECT_TRUE(early || status.ok()) << status;
      };
      if (rank.host->rank() == 0) {
        // Answers twice, each time when it has been asked.
        for (int i = 0; i < 2; ++i) {
          put(1);
          data.First(streams[1]);
          if (world->Check().ok()) put(0);
        }
        data.First(streams[0]);
      } else {
        // Asks twice, ready for the answers early or in the order in which they come.
        if (early) put(0);
        if (early) put(0);
        for (int i = 0; i < 2; ++i) {
          if (world->Check().ok()) put(1);
          if (!early && world->Check().ok()) put(0);
        }
        data.First(streams[0]);
      }
      EXPECT_EQ(world->Check().ok(), !early);
      static_cast<void>(rank.host->Barrier());
    });
  }
}

TEST(Nccl, RanksThatDisagreeGetAnError) {
  RunRanks(2, [](const Rank& rank) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, Open(rank, /*staged=*/false));
    const Floats sums(*rank.device, 10, 1);
    ReduceBuffer buffer = sums.InPlace();
    buffer.count -= rank.host->rank();
    EXPECT_FALSE(world->AllReduce(Reduction::kSum, {&buffer, 1}).ok());
    EXPECT_THAT(std::string(world->Check().message()), HasSubstr("ranks disagree"));
  });
}

TEST(Nccl, VersionsMustAgree) {
  RunRanks(3, [](const Rank& rank) {
    Nccl nccl = EmulatedNccl();
    if (rank.host->rank() == 1) {
      nccl.ncclGetVersion = [](int* version) {
        *version = 22703;
        return ncclSuccess;
      };
    }
    EXPECT_THAT(OpenNcclWorld(*rank.host, *rank.device, nccl).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("rank 1 has 2.27.3; ranks 0, 2 have 2."),
                               HasSubstr("install the same on all machines"))));
  });
}

TEST(Nccl, TwoRanksOnOneDevice) {
  kernels::cuda::EmulatorOptions options;
  const kernels::cuda::Driver& driver = kernels::cuda::EmulatedDriver(options);
  std::vector<std::thread> threads;
  for (auto& host : MakeInProcessWorld(2)) {
    threads.emplace_back([&driver, host = std::move(host)] {
      ORIEL_ASSERT_OK_AND_ASSIGN(auto device, Device::Open(driver, 0));
      ORIEL_ASSERT_OK_AND_ASSIGN(auto world, OpenNcclWorld(*host, *device, EmulatedNccl()));
      const auto group = world->Group({0, 1});
      EXPECT_FALSE(group.ok());
      if (!absl::IsAborted(group.status())) {
        EXPECT_THAT(group.status(),
                    StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Duplicate GPU")));
        world->Abort(group.status());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Nccl, MapsErrors) {
  const auto code = [](ncclResult_t result) {
    return NcclStatus(EmulatedNccl(), result, "ncclAllReduce").code();
  };
  EXPECT_EQ(code(ncclSuccess), absl::StatusCode::kOk);
  EXPECT_EQ(code(ncclInProgress), absl::StatusCode::kOk);
  EXPECT_EQ(code(ncclRemoteError), absl::StatusCode::kAborted);
  EXPECT_EQ(code(ncclInvalidArgument), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(ncclInvalidUsage), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(ncclUnhandledCudaError), absl::StatusCode::kInternal);
  EXPECT_EQ(NcclVersionName(22809), "2.28.9");
  EXPECT_EQ(NcclVersionName(2708), "2.7.8");
}

// Where the library is installed it has all that is called; where not, the error says what to do.
TEST(Nccl, LoadsTheLibrary) {
  const absl::StatusOr<const Nccl*> nccl = SystemNccl();
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    EXPECT_THAT(nccl, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("no NCCL:"), HasSubstr("LD_LIBRARY_PATH"))));
    return;
  }
  ORIEL_ASSERT_OK(nccl);
  int version = 0;
  EXPECT_EQ((*nccl)->ncclGetVersion(&version), ncclSuccess);
  EXPECT_GE(version, NCCL_VERSION(2, 26, 0));
}

}  // namespace
}  // namespace oriel::runtime
