#include "runtime/doctor/doctor.h"

#include <nlohmann/json.hpp>

#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Finding* Find(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) return &finding;
  }
  return nullptr;
}

std::vector<std::string> Names(const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Finding& finding : findings) names.push_back(finding.name);
  return names;
}

constexpr char kGoodMachine[] = R"({
  "architectures": "sm_80, sm_90",
  "driver": {"ok": true, "version": "13.0"},
  "devices": [{"name": "NVIDIA H100", "architecture": "sm_90", "memory_bytes": 85899345920,
               "free_bytes": 42949672960}],
  "libraries": [{"name": "cuBLASLt", "file": "libcublasLt.so.13", "needed_for": "matrix products",
                 "ok": true, "version": "13.0.1"},
                {"name": "NCCL", "file": "libnccl.so.2", "needed_for": "several devices",
                 "ok": false, "problem": "libnccl.so.2: cannot open shared object file"}]
})";

TEST(DoctorTest, MachineWithADevice) {
  const std::vector<Finding> findings = CudaFindings(std::string(kGoodMachine));
  EXPECT_THAT(Names(findings),
              ElementsAre("CUDA plugin", "CUDA driver", "CUDA devices", "cuBLASLt", "NCCL"));
  EXPECT_EQ(Find(findings, "CUDA devices")->value,
            "NVIDIA H100 (sm_90, 40.0 GiB free of 80.0 GiB)");
  EXPECT_FALSE(Find(findings, "NCCL")->ok);
  EXPECT_THAT(Find(findings, "NCCL")->remedy,
              HasSubstr("for several devices: install libnccl.so.2"));
  // One device needs no NCCL.
  EXPECT_TRUE(Missing(findings, {"cuda", ""}).empty());
}

TEST(DoctorTest, MachineWithoutADriver) {
  const std::vector<Finding> findings = CudaFindings(std::string(R"({
    "architectures": "", "driver": {"ok": false, "problem": "libcuda.so.1 is not there"},
    "devices": [], "libraries": []})"));
  EXPECT_EQ(Find(findings, "CUDA driver")->value, "libcuda.so.1 is not there");
  EXPECT_THAT(Find(findings, "CUDA driver")->remedy, HasSubstr("--gpus all"));
  EXPECT_THAT(Names(Missing(findings, {"cuda", ""})), ElementsAre("CUDA driver", "CUDA devices"));
  EXPECT_TRUE(Missing(findings, {"host", ""}).empty());
}

TEST(DoctorTest, NoPluginOrOneOfAnotherBuild) {
  for (const absl::StatusOr<std::string>& description :
       {absl::StatusOr<std::string>(absl::UnavailableError("no CUDA backend: x.so is missing")),
        absl::StatusOr<std::string>("no json"), absl::StatusOr<std::string>("[]")}) {
    const std::vector<Finding> findings = CudaFindings(description);
    EXPECT_THAT(Names(findings), ElementsAre("CUDA plugin"));
    EXPECT_FALSE(findings[0].remedy.empty());
    EXPECT_THAT(Names(Missing(findings, {"cuda", ""})), ElementsAre("CUDA plugin"));
  }
  // Members of other types are as good as none.
  EXPECT_FALSE(Find(CudaFindings(std::string(R"({"driver": {}, "libraries": [{"name": 3}]})")),
                    "CUDA driver")
                   ->ok);
}

TEST(DoctorTest, MemoryOfTheMachineAndOfTheControlGroup) {
  constexpr int64_t kGiB = 1 << 30;
  EXPECT_EQ(MemoryFinding({16 * kGiB, 8 * kGiB, 16 * kGiB}).value, "8.0 GiB free of 16.0 GiB");
  EXPECT_EQ(MemoryFinding({16 * kGiB, 8 * kGiB, 4 * kGiB}).value,
            "8.0 GiB free of 16.0 GiB; this process may use 4.0 GiB");
  EXPECT_FALSE(MemoryFinding({}).ok);
}

TEST(DoctorTest, ThisMachine) {
  const std::vector<Finding> findings = Examine();
  for (const char* name : {"cores", "memory", "shared memory", "open files", "locked memory",
                           "oriel-run", "oneDNN", "MPI plugin", "mpirun", "CUDA plugin"}) {
    ASSERT_NE(Find(findings, name), nullptr) << name;
    EXPECT_FALSE(Find(findings, name)->value.empty()) << name;
  }
  EXPECT_TRUE(Find(findings, "memory")->ok);
  EXPECT_TRUE(Find(findings, "oneDNN")->ok);  // oriel-run links it
}

TEST(DoctorTest, TextAndJson) {
  const std::vector<Finding> findings = {{"cores", true, "2 of 2", ""},
                                         {"CUDA driver", false, "none", "install it"}};
  EXPECT_EQ(DoctorText(findings),
            "ok  cores          2 of 2\n"
            "--  CUDA driver    none\n"
            "                   install it\n");
  const auto json = nlohmann::json::parse(DoctorJson(findings, {findings[1]}));
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["missing"], nlohmann::json::array({"CUDA driver"}));
  EXPECT_EQ(json["findings"][1]["remedy"], "install it");
  EXPECT_EQ(nlohmann::json::parse(DoctorJson(findings, {}))["ok"], true);
}

}  // namespace
}  // namespace oriel::runtime
