// The only file that includes cudnn-frontend, whose headers take half a minute.
#include "kernels/cuda/libraries/cudnn_graph.h"

#include <cudnn_frontend.h>

#include <atomic>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "kernels/cuda/libraries/cudnn_in_use.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using runtime::DType;
using Tensor = std::shared_ptr<Tensor_attributes>;

// Somewhat more than 512 MiB: sizes are powers of two and a few bytes.
std::atomic<int64_t> max_workspace = int64_t{513} << 20;

absl::StatusOr<fe::DataType_t> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return fe::DataType_t::FLOAT;
    case DType::kBF16:
      return fe::DataType_t::BFLOAT16;
    case DType::kF16:
      return fe::DataType_t::HALF;
    default:
      return absl::UnimplementedError(
          absl::StrCat("cuDNN: not taken for ", std::string(runtime::DTypeName(dtype))));
  }
}

// What stands in its way, in one line.
std::string InOneLine(const std::string& message) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(message), {{"\n", "; "}});
}

// While a graph is made, every error is a reason to take another implementation.
absl::Status Refusal(const char* step, fe::error_t error) {
  if (error.is_good()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("cuDNN: ", step, ": ", InOneLine(error.get_message())));
}

absl::StatusOr<Tensor> AddTensor(Graph& graph, int64_t id, const CudnnTensor& tensor) {
  ORIEL_ASSIGN_OR_RETURN(const fe::DataType_t type, TypeOf(tensor.dtype));
  return graph.tensor(Tensor_attributes()
                          .set_uid(id)
                          .set_name(absl::StrCat("t", id))
                          .set_dim(tensor.dims)
                          .set_stride(tensor.strides)
                          .set_data_type(type));
}

// A result of an operation becomes a tensor of the caller's.
absl::Status SetResult(const Tensor& result, int64_t id, const CudnnTensor& tensor) {
  ORIEL_ASSIGN_OR_RETURN(const fe::DataType_t type, TypeOf(tensor.dtype));
  result->set_output(true)
      .set_uid(id)
      .set_dim(tensor.dims)
      .set_stride(tensor.strides)
      .set_data_type(type);
  return absl::OkStatus();
}

// What the attributes of both directions share.
template <typename Attributes>
void SetScores(const SdpaGraph& sdpa, const Tensor& bias, Attributes& attributes) {
  attributes.set_attn_scale(static_cast<float>(sdpa.scale));
  if (bias != nullptr) attributes.set_bias(bias);
  const bool square = sdpa.query.dims[2] == sdpa.key.dims[2];
  if (sdpa.causal || sdpa.window > 0) {
    attributes.set_diagonal_alignment(square ? fe::DiagonalAlignment_t::TOP_LEFT
                                             : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
  }
  if (sdpa.causal) attributes.set_diagonal_band_right_bound(0);
  if (sdpa.window > 0) attributes.set_diagonal_band_left_bound(static_cast<int>(sdpa.window));
}

absl::Status Describe(const SdpaGraph& sdpa, Graph& graph) {
  ORIEL_ASSIGN_OR_RETURN(const Tensor query, AddTensor(graph, SdpaGraph::kQuery, sdpa.query));
  ORIEL_ASSIGN_OR_RETURN(const Tensor key, AddTensor(graph, SdpaGraph::kKey, sdpa.key));
  ORIEL_ASSIGN_OR_RETURN(const Tensor value, AddTensor(graph, SdpaGraph::kValue, sdpa.value));
  Tensor bias;
  if (sdpa.bias.has_value()) {
    ORIEL_ASSIGN_OR_RETURN(bias, AddTensor(graph, SdpaGraph::kBias, *sdpa.bias));
  }
  if (!sdpa.backward) {
    auto attributes = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
    if (sdpa.of_operations) {
      attributes.set_implementation(fe::AttentionImplementation_t::COMPOSITE);
    }
    SetScores(sdpa, bias, attributes);
    const auto [output, statistics] = graph.sdpa(query, key, value, attributes);
    ORIEL_RETURN_IF_ERROR(SetResult(output, SdpaGraph::kOutput, sdpa.output));
    return SetResult(statistics, SdpaGraph::kStatistics, sdpa.statistics);
  }
  ORIEL_ASSIGN_OR_RETURN(const Tensor output, AddTensor(graph, SdpaGraph::kOutput, sdpa.output));
  ORIEL_ASSIGN_OR_RETURN(const Tensor cotangent,
                         AddTensor(graph, SdpaGraph::kCotangent, sdpa.output));
  ORIEL_ASSIGN_OR_RETURN(const Tensor statistics,
                         AddTensor(graph, SdpaGraph::kStatistics, sdpa.statistics));
  auto attributes = fe::graph::SDPA_backward_attributes().set_name("attention_grad");
  attributes.set_deterministic_algorithm(true);
  SetScores(sdpa, bias, attributes);
  const auto [query_grad, key_grad, value_grad] =
      graph.sdpa_backward(query, key, value, output, cotangent, statistics, attributes);
  ORIEL_RETURN_IF_ERROR(SetResult(query_grad, SdpaGraph::kQueryGrad, sdpa.query));
  ORIEL_RETURN_IF_ERROR(SetResult(key_grad, SdpaGraph::kKeyGrad, sdpa.key));
  return SetResult(value_grad, SdpaGraph::kValueGrad, sdpa.value);
}

template <typename Attributes>
Attributes ConvAttributes(const ConvGraph& conv) {
  Attributes attributes;
  attributes.set_name("conv")
      .set_pre_padding(conv.lows)
      .set_post_padding(conv.highs)
      .set_stride(conv.strides)
      .set_dilation(conv.dilations);
  return attributes;
}

absl::Status Describe(const ConvGraph& conv, Graph& graph) {
  const auto add = [&](ConvGraph::Id id, const CudnnTensor& tensor) {
    return AddTensor(graph, id, tensor);
  };
  switch (conv.kind) {
    case ConvGraph::Kind::kForward: {
      ORIEL_ASSIGN_OR_RETURN(const Tensor input, add(ConvGraph::kInput, conv.input));
      ORIEL_ASSIGN_OR_RETURN(const Tensor weight, add(ConvGraph::kWeight, conv.weight));
      return SetResult(
          graph.conv_fprop(input, weight, ConvAttributes<fe::graph::Conv_fprop_attributes>(conv)),
          ConvGraph::kOutput, conv.output);
    }
    case ConvGraph::Kind::kInputGrad: {
      ORIEL_ASSIGN_OR_RETURN(const Tensor output, add(ConvGraph::kOutput, conv.output));
      ORIEL_ASSIGN_OR_RETURN(const Tensor weight, add(ConvGraph::kWeight, conv.weight));
      return SetResult(
          graph.conv_dgrad(output, weight, ConvAttributes<fe::graph::Conv_dgrad_attributes>(conv)),
          ConvGraph::kInput, conv.input);
    }
    case ConvGraph::Kind::kWeightGrad: {
      ORIEL_ASSIGN_OR_RETURN(const Tensor output, add(ConvGraph::kOutput, conv.output));
      ORIEL_ASSIGN_OR_RETURN(const Tensor input, add(ConvGraph::kInput, conv.input));
      return SetResult(
          graph.conv_wgrad(output, input, ConvAttributes<fe::graph::Conv_wgrad_attributes>(conv)),
          ConvGraph::kWeight, conv.weight);
    }
  }
  return absl::InternalError("no such convolution");
}

// From a description to engines that support it. Needs tables in use, and either a handle or
// `properties`.
absl::Status FindEngines(const CudnnGraphSpec& spec, int architecture, cudnnHandle_t handle,
                         const std::shared_ptr<const fe::DeviceProperties>& properties,
                         Graph& graph) {
  graph.set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(architecture);
  // The graph outlives what is recorded of it (Library keeps it).
  graph.set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
  if (properties != nullptr) graph.set_device_properties(properties);
  const DType dtype = std::visit(
      [](const auto& s) {
        if constexpr (std::is_same_v<std::decay_t<decltype(s)>, SdpaGraph>) {
          return s.query.dtype;
        } else {
          return s.input.dtype;
        }
      },
      spec);
  ORIEL_ASSIGN_OR_RETURN(const fe::DataType_t type, TypeOf(dtype));
  graph.set_io_data_type(type);
  ORIEL_RETURN_IF_ERROR(std::visit([&](const auto& s) { return Describe(s, graph); }, spec));
  ORIEL_RETURN_IF_ERROR(Refusal("does not take the graph", graph.validate()));
  ORIEL_RETURN_IF_ERROR(Refusal("has no such graph", graph.build_operation_graph(handle)));
  ORIEL_RETURN_IF_ERROR(
      Refusal("has no engine", graph.create_execution_plans({fe::HeurMode_t::A})));
  graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC,
                                fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                                fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION});
  graph.deselect_workspace_greater_than(CudnnMaxWorkspace());
  return Refusal("has no engine", graph.check_support());
}

// One handle of a device, and the graphs that were made for it, by their description.
struct Library;

class FrontendGraph : public CudnnGraph {
 public:
  explicit FrontendGraph(Library& library);
  ~FrontendGraph() override {
    const CudnnInUse in_use(table_, driver_);
    graph_.reset();
  }
  absl::Status Init(const CudnnGraphSpec& spec, int architecture);
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  const std::string& engine() const override { return engine_; }
  absl::Status Run(CUstream stream, const std::unordered_map<int64_t, void*>& tensors,
                   CUdeviceptr workspace) override;

 private:
  // The tables outlive the library, which a launch that is kept for too long may not.
  const Cudnn& table_;
  const Driver* const driver_;
  const cudnnHandle_t handle_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  int64_t workspace_bytes_ = 0;
  std::string engine_;
};

struct Library {
  static absl::StatusOr<std::unique_ptr<Library>> Open(Device& device) {
    auto library = std::make_unique<Library>();
    library->driver = &device.driver();
    ORIEL_ASSIGN_OR_RETURN(library->table, CudnnFor(device.driver()));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDNN(*library->table, cudnnCreate, &library->handle));
    return library;
  }
  ~Library() {
    graphs.clear();
    if (handle != nullptr) table->cudnnDestroy(handle);
  }

  const Cudnn* table = nullptr;
  const Driver* driver = nullptr;
  cudnnHandle_t handle = nullptr;
  // Refusals, too: asking again takes as long.
  std::map<std::string, absl::StatusOr<std::shared_ptr<CudnnGraph>>> graphs;
};

FrontendGraph::FrontendGraph(Library& library)
    : table_(*library.table), driver_(library.driver), handle_(library.handle) {}

absl::Status FrontendGraph::Init(const CudnnGraphSpec& spec, int architecture) {
  const CudnnInUse in_use(table_, driver_);
  ORIEL_RETURN_IF_ERROR(FindEngines(spec, architecture, handle_, nullptr, *graph_));
  ORIEL_RETURN_IF_ERROR(
      Refusal("has no plan", graph_->build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE)));
  ORIEL_RETURN_IF_ERROR(Refusal("has no workspace", graph_->get_workspace_size(workspace_bytes_)));
  return Refusal("has no name", graph_->get_plan_name(engine_));
}

absl::Status FrontendGraph::Run(CUstream stream, const std::unordered_map<int64_t, void*>& tensors,
                                CUdeviceptr workspace) {
  const CudnnInUse in_use(table_, driver_);
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDNN(table_, cudnnSetStream, handle_, stream));
  std::unordered_map<int64_t, void*> bound = tensors;
  fe::error_t error = graph_->execute(handle_, bound, reinterpret_cast<void*>(workspace));
  if (error.is_good()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("cuDNN: ", engine_, ": ", InOneLine(error.get_message())));
}

void AppendKey(const CudnnTensor& tensor, std::string& key) {
  absl::StrAppend(&key, std::string(runtime::DTypeName(tensor.dtype)), "[",
                  absl::StrJoin(tensor.dims, ","), "]", absl::StrJoin(tensor.strides, ","), ";");
}

std::string KeyOf(const SdpaGraph& sdpa) {
  std::string key = absl::StrCat("sdpa", sdpa.backward, ",", sdpa.causal, ",", sdpa.window, ",");
  // Every bit of the scale counts.
  const float scale = static_cast<float>(sdpa.scale);
  key.append(reinterpret_cast<const char*>(&scale), sizeof(scale));
  for (const CudnnTensor* tensor :
       {&sdpa.query, &sdpa.key, &sdpa.value, &sdpa.output, &sdpa.statistics}) {
    AppendKey(*tensor, key);
  }
  if (sdpa.bias.has_value()) AppendKey(*sdpa.bias, key);
  return key;
}

std::string KeyOf(const ConvGraph& conv) {
  std::string key = absl::StrCat("conv", static_cast<int>(conv.kind), ",");
  for (const CudnnTensor* tensor : {&conv.input, &conv.weight, &conv.output}) {
    AppendKey(*tensor, key);
  }
  for (const auto* list : {&conv.lows, &conv.highs, &conv.strides, &conv.dilations}) {
    absl::StrAppend(&key, absl::StrJoin(*list, ","), ";");
  }
  return key;
}

}  // namespace

int64_t CudnnMaxWorkspace() { return max_workspace; }
void SetCudnnMaxWorkspace(int64_t bytes) { max_workspace = bytes; }

absl::StatusOr<std::shared_ptr<CudnnGraph>> MakeCudnnGraph(const CudnnGraphSpec& spec,
                                                           Device& device) {
  const absl::StatusOr<Library*> library = device.Attached<Library>(&Library::Open);
  // It is faster, not needed.
  if (!library.ok()) return absl::UnimplementedError(library.status().message());
  const std::string key = absl::StrCat(CudnnMaxWorkspace(), ",",
                                       std::visit([](const auto& s) { return KeyOf(s); }, spec));
  const auto found = (*library)->graphs.find(key);
  if (found != (*library)->graphs.end()) return found->second;
  const DeviceProperties& properties = device.properties();
  const int architecture = properties.major * 10 + properties.minor;
  const auto make =
      [&](const CudnnGraphSpec& wanted) -> absl::StatusOr<std::shared_ptr<CudnnGraph>> {
    auto graph = std::make_shared<FrontendGraph>(**library);
    ORIEL_RETURN_IF_ERROR(graph->Init(wanted, architecture));
    return graph;
  };
  absl::StatusOr<std::shared_ptr<CudnnGraph>> result = make(spec);
  const auto* sdpa = std::get_if<SdpaGraph>(&spec);
  // cuDNN may refuse its one operation where it takes what that consists of (cudnn-frontend#621).
  if (absl::IsUnimplemented(result.status()) && sdpa != nullptr && !sdpa->backward) {
    SdpaGraph composed = *sdpa;
    composed.of_operations = true;
    if (auto other = make(composed); other.ok()) result = std::move(other);
  }
  (*library)->graphs.emplace(key, result);
  return result;
}

absl::Status CheckCudnnGraph(const CudnnGraphSpec& spec, const Cudnn& table,
                             const AbsentDevice& device) {
  const CudnnInUse in_use(table, /*driver=*/nullptr);
  auto properties = std::make_shared<fe::DeviceProperties>();
  ORIEL_RETURN_IF_ERROR(
      Refusal("does not take the properties",
              properties->deserialize({device.properties.begin(), device.properties.end()})));
  Graph graph;
  return FindEngines(spec, device.architecture, nullptr, properties, graph);
}

}  // namespace oriel::kernels::cuda
