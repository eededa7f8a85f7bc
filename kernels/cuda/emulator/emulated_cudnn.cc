// cuDNN for the emulator: descriptors, heuristics and plans of its backend, over operations that
// run on the CPU (cudnn_graph_run.h).
//
// Its heuristics propose three engines: one that is not deterministic, one that needs a workspace
// of terabytes, and one that works; the first two fail when they run. It is stricter than the
// library: what is set must be finalized, types and counts are checked, every tensor must lie
// within an allocation at its alignment, and the workspace is overwritten.
#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/cudnn_graph_run.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/libraries/cudnn.h"

namespace oriel::kernels::cuda {
namespace {

using emulator::Descriptor;
using emulator::GraphTensor;

constexpr int64_t kEngines = 3;
enum Engine : int64_t { kRandomEngine, kHugeEngine, kEngine };
constexpr int64_t kWorkspace = 4096;

struct Handle {
  cudaStream_t stream = nullptr;
};

// What the last failing call of this thread says.
std::string& LastError() {
  thread_local std::string error;
  return error;
}
cudnnStatus_t Fail(cudnnStatus_t status, const std::string& why) {
  LastError() = why;
  return status;
}
cudnnStatus_t Fail(const absl::Status& status) {
  return Fail(absl::IsUnimplemented(status) ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM,
              std::string(status.message()));
}

// Of which nothing is known that would have to be refused.
size_t GetVersion() { return 92600; }
size_t GetCudartVersion() { return 13000; }

const char* GetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
void GetLastErrorString(char* message, size_t size) {
  if (size == 0) return;
  const std::string& error = LastError();
  const size_t count = std::min(size - 1, error.size());
  std::copy_n(error.data(), count, message);
  message[count] = '\0';
  LastError().clear();
}

cudnnStatus_t Create(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t Destroy(cudnnHandle_t handle) {
  delete reinterpret_cast<Handle*>(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetStream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<Handle*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t GetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = reinterpret_cast<Handle*>(handle)->stream;
  return CUDNN_STATUS_SUCCESS;
}

Descriptor* As(cudnnBackendDescriptor_t descriptor) { return static_cast<Descriptor*>(descriptor); }

cudnnStatus_t CreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  *made = new Descriptor{type, false, {}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t DestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete As(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

size_t BytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_FRACTION:
      return 16;
    default:
      return 4;  // enumerations, 32-bit numbers
  }
}

cudnnStatus_t SetAttribute(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int64_t count, const void* elements) {
  Descriptor& descriptor = *As(to);
  if (descriptor.finalized) return Fail(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
  if (count < 0 || (count > 0 && elements == nullptr)) {
    return Fail(CUDNN_STATUS_BAD_PARAM, "no elements");
  }
  Descriptor::Attribute attribute{type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      const Descriptor* element = As(static_cast<const cudnnBackendDescriptor_t*>(elements)[i]);
      if (element == nullptr || !element->finalized) {
        return Fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                    absl::StrCat("attribute ", static_cast<int>(name)));
      }
      attribute.descriptors.push_back(std::make_shared<const Descriptor>(*element));
    }
  } else {
    const char* bytes = static_cast<const char*>(elements);
    attribute.bytes.assign(bytes, bytes + static_cast<size_t>(count) * BytesOf(type));
  }
  descriptor.attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

int64_t EngineOf(const Descriptor& engine) {
  return engine.Value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
}
// An engine's for its graph. Gradients of attention, which have more products than two, take the
// largest of what lies between, in two bytes: as on Hopper.
int64_t WorkspaceOf(const Descriptor& engine) {
  if (EngineOf(engine) == kHugeEngine) return int64_t{1} << 44;
  const auto graph = engine.One(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  int64_t products = 0, between = 0;
  for (const auto& op : OperationsOf(*graph).descriptors) {
    products += op->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
  }
  std::map<int64_t, GraphTensor> tensors;
  if (products <= 2 || !TensorsOf(*graph, &tensors).ok()) return kWorkspace;
  for (const auto& [id, tensor] : tensors) {
    if (tensor.is_virtual) between = std::max(between, tensor.span());
  }
  return kWorkspace + 2 * between;
}
// The engine of an engine configuration, or of a plan.
std::shared_ptr<const Descriptor> EngineBehind(const Descriptor& descriptor) {
  if (descriptor.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const auto config = descriptor.One(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    return config == nullptr ? nullptr : config->One(CUDNN_ATTR_ENGINECFG_ENGINE);
  }
  return descriptor.One(CUDNN_ATTR_ENGINECFG_ENGINE);
}

// An engine's configuration for a graph.
Descriptor ConfigOf(const std::shared_ptr<const Descriptor>& graph, int64_t index) {
  auto engine = std::make_shared<Descriptor>();
  engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  engine->finalized = true;
  engine->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {graph}};
  std::vector<char> bytes(sizeof(index));
  std::memcpy(bytes.data(), &index, sizeof(index));
  engine->attributes[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = {CUDNN_TYPE_INT64, 1, bytes, {}};
  Descriptor config{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, true, {}};
  config.attributes[CUDNN_ATTR_ENGINECFG_ENGINE] = {
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {std::move(engine)}};
  return config;
}

// Returns `value` as the library does: how many there are, and those that were asked for.
template <typename T>
cudnnStatus_t Give(const std::vector<T>& values, int64_t requested, int64_t* count,
                   void* elements) {
  if (count != nullptr) *count = static_cast<int64_t>(values.size());
  if (elements == nullptr) return CUDNN_STATUS_SUCCESS;
  const size_t given =
      std::min(values.size(), static_cast<size_t>(std::max<int64_t>(requested, 0)));
  std::copy_n(values.data(), given, static_cast<T*>(elements));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetAttribute(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t, int64_t requested, int64_t* count,
                           void* elements) {
  const Descriptor& descriptor = *As(of);
  if (!descriptor.finalized) return Fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "get of attribute");
  // The caller's descriptors become what is asked for.
  const auto give = [&](const std::vector<Descriptor>& values) {
    auto* to = static_cast<cudnnBackendDescriptor_t*>(elements);
    if (count != nullptr) *count = static_cast<int64_t>(values.size());
    for (int64_t i = 0; to != nullptr && i < std::min<int64_t>(requested, values.size()); ++i) {
      *As(to[i]) = values[i];
    }
    return CUDNN_STATUS_SUCCESS;
  };
  switch (name) {
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
      return Give<int64_t>({kEngines}, requested, count, elements);
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const auto graph = descriptor.One(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      std::vector<Descriptor> configs;
      for (int64_t engine = 0; engine < kEngines; ++engine) {
        configs.push_back(ConfigOf(graph, engine));
      }
      return give(configs);
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      return give({*EngineBehind(descriptor)});
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG:
      return give({*descriptor.One(name)});
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
    case CUDNN_ATTR_ENGINE_KNOB_INFO:
      return give({});
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      if (EngineOf(descriptor) != kRandomEngine) {
        return Give<cudnnBackendNumericalNote_t>({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, requested,
                                                 count, elements);
      }
      return Give<cudnnBackendNumericalNote_t>(
          {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, requested,
          count, elements);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return Give<cudnnBackendBehaviorNote_t>({}, requested, count, elements);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return Give<int64_t>({EngineOf(descriptor)}, requested, count, elements);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return Give<int64_t>({WorkspaceOf(*EngineBehind(descriptor))}, requested, count, elements);
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return Give<int32_t>({48 << 10}, requested, count, elements);
    default:
      return Fail(CUDNN_STATUS_NOT_SUPPORTED, absl::StrCat("attribute ", static_cast<int>(name)));
  }
}

cudnnStatus_t Finalize(cudnnBackendDescriptor_t of) {
  Descriptor& descriptor = *As(of);
  const auto needs = [&](cudnnBackendAttributeName_t name) {
    return descriptor.Find(name) == nullptr;
  };
  switch (descriptor.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      if (needs(CUDNN_ATTR_TENSOR_UNIQUE_ID) || needs(CUDNN_ATTR_TENSOR_DATA_TYPE) ||
          needs(CUDNN_ATTR_TENSOR_DIMENSIONS) || needs(CUDNN_ATTR_TENSOR_STRIDES) ||
          needs(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)) {
        return Fail(CUDNN_STATUS_BAD_PARAM, "a tensor lacks an attribute");
      }
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: {
      std::map<int64_t, GraphTensor> tensors;
      const absl::Status status = TensorsOf(descriptor, &tensors);
      if (needs(CUDNN_ATTR_OPERATIONGRAPH_HANDLE)) {
        return Fail(CUDNN_STATUS_BAD_PARAM, "a graph without a handle");
      }
      if (!status.ok()) return Fail(status);
      break;
    }
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      if (needs(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) || needs(CUDNN_ATTR_ENGINEHEUR_MODE)) {
        return Fail(CUDNN_STATUS_BAD_PARAM, "heuristics lack an attribute");
      }
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      if (needs(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)) {
        return Fail(CUDNN_STATUS_BAD_PARAM, "a plan without an engine's configuration");
      }
      break;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      if (needs(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) ||
          needs(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) ||
          needs(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)) {
        return Fail(CUDNN_STATUS_BAD_PARAM, "a variant pack lacks an attribute");
      }
      break;
    default:
      break;
  }
  descriptor.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                      cudnnBackendDescriptor_t pack) {
  if (!As(plan)->finalized || !As(pack)->finalized) {
    return Fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "execute");
  }
  const auto engine = EngineBehind(*As(plan));
  if (EngineOf(*engine) != kEngine) {
    return Fail(CUDNN_STATUS_EXECUTION_FAILED, "an engine that should not have been chosen");
  }
  const auto graph = engine->One(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  const auto ids = As(pack)->List<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto addresses = As(pack)->List<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  void* const workspace = As(pack)->Value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  std::map<int64_t, GraphTensor> tensors;
  if (const absl::Status status = TensorsOf(*graph, &tensors); !status.ok()) return Fail(status);
  std::map<int64_t, void*> memory;
  // What is given by value is read now.
  std::map<int64_t, std::vector<char>> by_value;
  for (const auto& [id, tensor] : tensors) {
    if (tensor.is_virtual) continue;
    const auto found = std::find(ids.begin(), ids.end(), id);
    if (found == ids.end() || ids.size() != addresses.size()) {
      return Fail(CUDNN_STATUS_BAD_PARAM, absl::StrCat("tensor ", id, " is not given"));
    }
    void* const address = addresses[found - ids.begin()];
    if (tensor.by_value) {
      const char* bytes = static_cast<const char*>(address);
      by_value[id].assign(bytes, bytes + tensor.element_bytes());
      continue;
    }
    if (reinterpret_cast<uintptr_t>(address) % tensor.alignment != 0) {
      return Fail(CUDNN_STATUS_BAD_PARAM, absl::StrCat("tensor ", id, " is not aligned"));
    }
    if (!IsEmulatedMemory(address, tensor.span() * tensor.element_bytes())) {
      return Fail(CUDNN_STATUS_BAD_PARAM, absl::StrCat("tensor ", id, " is not in memory"));
    }
    memory[id] = address;
  }
  const int64_t workspace_bytes = WorkspaceOf(*engine);
  if (!IsEmulatedMemory(workspace, workspace_bytes)) {
    return Fail(CUDNN_STATUS_BAD_PARAM, "the workspace is not in memory");
  }
  const CUresult result =
      EnqueueEmulated(reinterpret_cast<Handle*>(handle)->stream, "cudnnBackendExecute", [=](bool) {
        std::memset(workspace, 0xa5, workspace_bytes);
        std::map<int64_t, std::vector<char>> values = by_value;
        std::map<int64_t, void*> all = memory;
        for (auto& [id, bytes] : values) all[id] = bytes.data();
        const absl::Status run = RunGraph(*graph, tensors, all);
        if (!run.ok()) std::fprintf(stderr, "emulated cuDNN: %s\n", run.ToString().c_str());
        return run.ok() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
      });
  if (result != CUDA_SUCCESS) return Fail(CUDNN_STATUS_EXECUTION_FAILED, EmulatorError());
  return CUDNN_STATUS_SUCCESS;
}

struct Provider {
  Provider() {
    static Cudnn table;
    table.cudnnGetVersion = GetVersion;
    table.cudnnGetCudartVersion = GetCudartVersion;
    table.cudnnGetErrorString = GetErrorString;
    table.cudnnGetLastErrorString = GetLastErrorString;
    table.cudnnCreate = Create;
    table.cudnnDestroy = Destroy;
    table.cudnnSetStream = SetStream;
    table.cudnnGetStream = GetStream;
    table.cudnnBackendCreateDescriptor = CreateDescriptor;
    table.cudnnBackendDestroyDescriptor = DestroyDescriptor;
    table.cudnnBackendSetAttribute = SetAttribute;
    table.cudnnBackendGetAttribute = GetAttribute;
    table.cudnnBackendFinalize = Finalize;
    table.cudnnBackendExecute = Execute;
    ProvideCudnn(EmulatedDriver(), table);
  }
};
// Linked whole: with the emulator comes its library.
const Provider provider;

}  // namespace
}  // namespace oriel::kernels::cuda
