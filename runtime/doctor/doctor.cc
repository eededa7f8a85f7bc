#include "runtime/doctor/doctor.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/backend/cuda_plugin.h"
#include "runtime/base/cores.h"
#include "runtime/base/executable.h"

namespace oriel::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kPluginName[] = "CUDA plugin", kDriverName[] = "CUDA driver";
constexpr char kDevicesName[] = "CUDA devices", kMpiPluginName[] = "MPI plugin";
constexpr char kMpirunName[] = "mpirun", kRunName[] = "oriel-run";
constexpr char kCublasName[] = "cuBLASLt";

std::string GiB(double bytes) { return absl::StrFormat("%.1f GiB", bytes / (1 << 30)); }

Finding CoresFinding() {
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  const int usable = UsableCores();
  Finding finding{"cores", true, absl::StrCat(usable, " of ", std::max(all, usable)), ""};
  if (const char* threads = std::getenv("OMP_NUM_THREADS")) {
    absl::StrAppend(&finding.value, "; OMP_NUM_THREADS is ", threads,
                    ", which Oriel's kernels don't ask (--threads)");
  }
  return finding;
}

Finding LimitFinding(const std::string& name, __rlimit_resource_t resource, rlim_t enough,
                     const std::string& remedy) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0) return {name, false, "can't be read", ""};
  const bool ok = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= enough;
  return {name, ok,
          limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited")
                                          : absl::StrCat(static_cast<uint64_t>(limit.rlim_cur)),
          ok ? "" : remedy};
}

// Where MPI and NCCL pass messages between the processes of a machine.
Finding SharedMemoryFinding() {
  constexpr double kEnough = 1 << 28;
  struct statvfs info = {};
  Finding finding{"shared memory", true, "", ""};
  if (statvfs("/dev/shm", &info) != 0) {
    return {"shared memory", false, "/dev/shm is not there", "mount a tmpfs at /dev/shm"};
  }
  const double bytes = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
  finding.value = absl::StrCat(GiB(bytes), " free in /dev/shm");
  finding.ok = bytes >= kEnough;
  if (!finding.ok) finding.remedy = "give a container more: docker run --shm-size=8g";
  return finding;
}

// The path of a file in the executable's folder.
std::string Beside(const std::string& file) {
  return absl::StrCat(ExecutableFolder().value_or(""), file);
}

Finding FileFinding(const std::string& name, const std::string& file, const std::string& remedy) {
  const std::string path = Beside(file);
  const bool ok = access(path.c_str(), F_OK) == 0;
  return {name, ok, ok ? path : absl::StrCat(path, " is missing"), ok ? "" : remedy};
}

Finding OneDnnFinding() {
  for (const char* file : {"libdnnl.so.3", "libdnnl.so.2"}) {
    void* library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    struct Version {  // the beginning of dnnl_version_t, in every version
      int major, minor, patch;
    };
    const auto get = reinterpret_cast<const Version* (*)()>(dlsym(library, "dnnl_version"));
    if (get == nullptr) return {"oneDNN", false, absl::StrCat(file, " is no oneDNN"), ""};
    const Version* version = get();
    return {"oneDNN", true, absl::StrCat(version->major, ".", version->minor, ".", version->patch),
            ""};
  }
  return {"oneDNN", false, "libdnnl is missing",
          "install it for oriel-run on the host: apt-get install libdnnl2"};
}

// Whether a program of this name is on the PATH.
std::optional<std::string> FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string file = absl::StrCat(folder, "/", name);
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

// The library that the plugin links says its version before MPI is initialised.
void AddMpi(std::vector<Finding>& findings) {
  Finding plugin =
      FileFinding(kMpiPluginName, "liboriel_comm_mpi.so",
                  "for ranks as processes, build Oriel with MPI (-DORIEL_WITH_MPI=ON)");
  if (plugin.ok) {
    constexpr int kMaxVersion = 8192;
    void* library = dlopen(plugin.value.c_str(), RTLD_LAZY | RTLD_LOCAL);
    std::string version(kMaxVersion, '\0');
    int length = 0;
    if (library == nullptr) {
      plugin.ok = false;
      plugin.value = dlerror();
      plugin.remedy = "install Open MPI on this machine: apt-get install openmpi-bin";
    } else if (const auto get = reinterpret_cast<int (*)(char*, int*)>(
                   dlsym(library, "MPI_Get_library_version"));
               get != nullptr && get(version.data(), &length) == 0) {
      const std::vector<std::string> words = absl::StrSplit(
          absl::string_view(version.data(), static_cast<size_t>(length)), absl::ByAnyChar(",\n"));
      plugin.value = words.front();
    }
  }
  findings.push_back(std::move(plugin));
  const std::optional<std::string> mpirun = FindProgram("mpirun");
  findings.push_back({kMpirunName, mpirun.has_value(), mpirun.value_or("not on the PATH"),
                      mpirun ? "" : "for ranks as processes: apt-get install openmpi-bin"});
}

// A member that may not be there, or of another type.
std::string Text(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}
double Number(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number() ? it->get<double>() : 0;
}
Json Member(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() ? *it : Json();
}
bool IsOk(const Json& json) { return Member(json, "ok") == Json(true); }

}  // namespace

Finding MemoryFinding(const MachineMemory& memory) {
  if (memory.total == 0) return {"memory", false, "can't be read from /proc/meminfo", ""};
  std::string value = absl::StrCat(GiB(static_cast<double>(memory.available)), " free of ",
                                   GiB(static_cast<double>(memory.total)));
  if (memory.usable < memory.total) {
    absl::StrAppend(&value, "; this process may use ", GiB(static_cast<double>(memory.usable)));
  }
  return {"memory", true, value, ""};
}

std::vector<Finding> CudaFindings(const absl::StatusOr<std::string>& description) {
  if (!description.ok()) {
    return {{kPluginName, false, std::string(description.status().message()),
             "for plans for CUDA, build Oriel where the CUDA toolkit is installed: cmake --preset "
             "cuda"}};
  }
  const Json json = Json::parse(*description, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return {{kPluginName, false, "it says nothing that this program understands",
             "install oriel and its plugin from one build"}};
  }
  std::vector<Finding> findings;
  const std::string architectures = Text(json, "architectures");
  findings.push_back({kPluginName, true,
                      architectures.empty() ? "there" : absl::StrCat("for ", architectures), ""});
  const Json driver = Member(json, "driver");
  const bool has_driver = IsOk(driver);
  findings.push_back(
      {kDriverName, has_driver,
       has_driver ? absl::StrCat("CUDA ", Text(driver, "version")) : Text(driver, "problem"),
       has_driver
           ? ""
           : "install NVIDIA's driver for CUDA 13; in a container, start it with --gpus all"});
  const Json devices = Member(json, "devices");
  std::vector<std::string> names;
  bool all_ok = !devices.empty();
  for (const Json& device : devices) {
    const std::string problem = Text(device, "problem");
    all_ok = all_ok && problem.empty();
    names.push_back(problem.empty()
                        ? absl::StrCat(Text(device, "name"), " (", Text(device, "architecture"),
                                       ", ", GiB(Number(device, "free_bytes")), " free of ",
                                       GiB(Number(device, "memory_bytes")), ")")
                        : problem);
  }
  findings.push_back(
      {kDevicesName, all_ok, names.empty() ? "none" : absl::StrJoin(names, "; "),
       all_ok || !has_driver ? "" : "see what CUDA_VISIBLE_DEVICES says, and nvidia-smi"});
  for (const Json& library : Member(json, "libraries")) {
    const bool ok = IsOk(library);
    findings.push_back(
        {Text(library, "name"), ok, ok ? Text(library, "version") : Text(library, "problem"),
         ok ? ""
            : absl::StrCat("for ", Text(library, "needed_for"), ": install ", Text(library, "file"),
                           ", or name its folder in LD_LIBRARY_PATH")});
  }
  return findings;
}

std::vector<Finding> Examine() {
  std::vector<Finding> findings = {
      CoresFinding(),
      MemoryFinding(ReadMemory()),
      SharedMemoryFinding(),
      LimitFinding("open files", RLIMIT_NOFILE, 1024, "ulimit -n 65536"),
      LimitFinding("locked memory", RLIMIT_MEMLOCK, RLIM_INFINITY,
                   "for MPI and NCCL over InfiniBand: ulimit -l unlimited"),
      FileFinding(kRunName, "oriel-run", "install it beside oriel: it runs the plans"),
      OneDnnFinding(),
  };
  AddMpi(findings);
  for (Finding& finding : CudaFindings(DescribeCuda())) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> Missing(const std::vector<Finding>& findings, const DoctorRequest& request) {
  std::vector<std::string> needed;
  if (request.device == "cuda") {
    needed = {kPluginName, kDriverName, kDevicesName, kCublasName};
  }
  if (request.comm == "mpi") needed.insert(needed.end(), {kMpiPluginName, kMpirunName});
  std::vector<Finding> missing;
  for (const Finding& finding : findings) {
    if (!finding.ok && std::count(needed.begin(), needed.end(), finding.name) > 0) {
      missing.push_back(finding);
    }
  }
  return missing;
}

std::string DoctorText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppendFormat(&text, "%s  %-14s %s\n", finding.ok ? "ok" : "--", finding.name,
                          finding.value);
    if (!finding.remedy.empty()) absl::StrAppendFormat(&text, "    %-14s %s\n", "", finding.remedy);
  }
  return text;
}

std::string DoctorJson(const std::vector<Finding>& findings, const std::vector<Finding>& missing) {
  Json names = Json::array(), all = Json::array();
  for (const Finding& finding : missing) names.push_back(finding.name);
  for (const Finding& finding : findings) {
    all.push_back({{"name", finding.name},
                   {"ok", finding.ok},
                   {"value", finding.value},
                   {"remedy", finding.remedy}});
  }
  const Json json = {
      {"ok", missing.empty()}, {"missing", std::move(names)}, {"findings", std::move(all)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace oriel::runtime
