// Convolutions on a device, by cuDNN; see conv.h. bf16 alone, with results of bf16, for which cuDNN
// has engines: what is rounded later (a bias, gradients that are summed in f32) and f32, which is
// never rounded to TF32, is left to products of patches (conv_cuda.cc).
#include "absl/strings/str_cat.h"
#include "kernels/conv/conv.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/libraries/cudnn_graph.h"
#include "kernels/cuda/registry.h"

namespace oriel::kernels::cuda {
namespace {

absl::Status CheckTaken(const KernelSpec& spec, const ConvShape& s) {
  const DType dtype = spec.operands[0].dtype;
  if (dtype != DType::kBF16) return Unsupported(spec, "cuDNN: taken for bf16");
  for (size_t i = 1; i < spec.operands.size(); ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, dtype, spec.operands[i].shape));
  }
  if (spec.results[0].dtype != DType::kBF16) {
    return Unsupported(spec, "cuDNN: rounds its results to bf16");
  }
  if (s.batch == 0 || s.outputs == 0 || s.positions() == 0 || s.patch() == 0 ||
      ConvShape::Product(s.input) == 0) {
    return Unsupported(spec, "cuDNN: nothing to multiply");
  }
  return absl::OkStatus();
}

// Dense [outer, inner, spatial..].
CudnnTensor Dense(int64_t outer, int64_t inner, const ConvShape::Extents& extents, int first) {
  CudnnTensor tensor{DType::kBF16, {outer, inner}, {}};
  for (int d = first; d < ConvShape::kSpatial; ++d) tensor.dims.push_back(extents[d]);
  tensor.strides.assign(tensor.dims.size(), 1);
  for (size_t d = tensor.dims.size() - 1; d > 0; --d) {
    tensor.strides[d - 1] = tensor.strides[d] * tensor.dims[d];
  }
  return tensor;
}

// Leading spatial dimensions that do nothing are left out, but two stay.
absl::StatusOr<std::shared_ptr<CudnnGraph>> MakeGraph(const KernelSpec& spec, const ConvShape& s,
                                                      ConvGraph::Kind kind, Device& device) {
  const bool flat = s.input[0] == 1 && s.kernel[0] == 1 && s.output[0] == 1 && s.lows[0] == 0;
  const int first = flat ? 1 : 0;
  ConvGraph graph;
  graph.kind = kind;
  graph.input = Dense(s.batch, s.channels, s.input, first);
  graph.weight = Dense(s.outputs, s.group_channels(), s.kernel, first);
  graph.output = Dense(s.batch, s.outputs, s.output, first);
  for (int d = first; d < ConvShape::kSpatial; ++d) {
    graph.lows.push_back(s.lows[d]);
    // As much as the output's last element reaches over the input's end.
    const int64_t reach = (s.output[d] - 1) * s.strides[d] + (s.kernel[d] - 1) * s.dilations[d] + 1;
    graph.highs.push_back(std::max<int64_t>(0, reach - s.input[d] - s.lows[d]));
    graph.strides.push_back(s.strides[d]);
    graph.dilations.push_back(s.dilations[d]);
  }
  absl::StatusOr<std::shared_ptr<CudnnGraph>> made = MakeCudnnGraph(graph, device);
  if (absl::IsUnimplemented(made.status())) {
    return Unsupported(spec, std::string(made.status().message()));
  }
  return made;
}

// All three: two operands and a result, with these ids.
absl::StatusOr<KernelFn> MakeCudnnConv(const KernelSpec& spec, const ConvShape& s,
                                       ConvGraph::Kind kind, ConvGraph::Id first,
                                       ConvGraph::Id second, ConvGraph::Id result, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckTaken(spec, s));
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<CudnnGraph> graph, MakeGraph(spec, s, kind, device));
  ORIEL_RETURN_IF_ERROR(device.AddScratch(graph->workspace_bytes()));
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    return graph->Run(StreamOf(args),
                      {{first, const_cast<void*>(args.operands[0])},
                       {second, const_cast<void*>(args.operands[1])},
                       {result, args.results[0]}},
                      device.scratch());
  });
}

absl::StatusOr<KernelFn> MakeCudnnForward(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[0],
                                                            spec.operands[1], spec.results[0]));
  if (spec.operands.size() == 3) return Unsupported(spec, "cuDNN: rounds before it adds a bias");
  return MakeCudnnConv(spec, s, ConvGraph::Kind::kForward, ConvGraph::kInput, ConvGraph::kWeight,
                       ConvGraph::kOutput, device);
}

absl::StatusOr<KernelFn> MakeCudnnInputGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.results[0], spec.operands[1],
                                                            spec.operands[0]));
  return MakeCudnnConv(spec, s, ConvGraph::Kind::kInputGrad, ConvGraph::kOutput, ConvGraph::kWeight,
                       ConvGraph::kInput, device);
}

absl::StatusOr<KernelFn> MakeCudnnWeightGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[1], spec.results[0],
                                                            spec.operands[0]));
  return MakeCudnnConv(spec, s, ConvGraph::Kind::kWeightGrad, ConvGraph::kOutput, ConvGraph::kInput,
                       ConvGraph::kWeight, device);
}

ORIEL_REGISTER_CUDA_KERNEL("conv", 10, MakeCudnnForward);
ORIEL_REGISTER_CUDA_KERNEL("conv_input_grad", 10, MakeCudnnInputGrad);
ORIEL_REGISTER_CUDA_KERNEL("conv_weight_grad", 10, MakeCudnnWeightGrad);

}  // namespace
}  // namespace oriel::kernels::cuda
