// attention and attention_grad on a device, by cuDNN; see attention.h. bf16 alone: f32 has no fused
// kernel there.
//
// Probabilities of the gradient come from the logsumexp, as in every flash attention: of a row
// whose keys are all hidden by large finite numbers they lose the digits that the logsumexp has
// lost.
#include "absl/strings/str_cat.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cudnn_attention_launch.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/libraries/cudnn.h"
#include "kernels/cuda/libraries/cudnn_graph.h"
#include "kernels/cuda/registry.h"

namespace oriel::kernels::cuda {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// How much of a launch a graph takes: some samples, or some groups of heads of one.
struct Piece {
  int64_t samples, groups;
};

// The piece of an operand, as it lies in the whole one.
CudnnTensor Operand(const AttentionShape& s, const Piece& piece, int64_t heads, int64_t rows,
                    int64_t columns) {
  const int64_t sample = heads * rows * columns;
  const int64_t taken = heads == s.groups ? piece.groups : s.heads_per_group() * piece.groups;
  CudnnTensor tensor{DType::kBF16, {piece.samples, taken, rows, columns}, {}};
  if (s.sequence_first) {
    tensor.strides = {sample, columns, heads * columns, 1};
  } else {
    tensor.strides = {sample, rows * columns, columns, 1};
  }
  return tensor;
}

// The largest divisor that is no larger than `most`, which is at least 1.
int64_t DivisorUpTo(int64_t most, int64_t of) {
  int64_t divisor = std::min(most, of);
  while (of % divisor != 0) --divisor;
  return divisor;
}

// What cuDNN is not asked, because it says so itself too late, or not at all.
absl::Status CheckTaken(const KernelSpec& spec, const AttentionShape& s, DType dtype) {
  if (dtype != DType::kBF16) return Unsupported(spec, "cuDNN: taken for bf16");
  if (s.softcap != 0) return Unsupported(spec, "cuDNN: not taken with a softcap");
  if (s.batch == 0 || s.heads == 0 || s.queries == 0 || s.keys == 0 || s.depth == 0 ||
      s.value_depth == 0) {
    return Unsupported(spec, "cuDNN: nothing to attend to");
  }
  if (s.causal && s.queries > s.keys) {
    return Unsupported(spec, "cuDNN: causal, with rows that see no key");
  }
  // An issue that the notes of cuDNN 9.18 list.
  if (s.causal && s.queries == 1 && s.heads != s.groups) {
    return Unsupported(spec, "cuDNN: not taken for one causal row of grouped heads");
  }
  if (s.window > INT32_MAX || s.batch * s.heads * s.queries > INT32_MAX) {
    return Unsupported(spec, "cuDNN: more rows than 32 bits count");
  }
  return absl::OkStatus();
}

// A last tile of keys that is half full makes NaN of the query's gradient where scores are low: the
// 64 keys that are not there take part as exp(0 - logsumexp) (pytorch#196678, on Hopper, where
// other last tiles were right; cudnn-frontend#628, of which version mends it is not certain, and
// whose cause needs no mask). The triangle of causal attention hides them, too.
// A single row of low scores gets NaN for gradients of its keys and values (cudnn-frontend#1072, on
// Hopper, still there in 9.26).
absl::Status CheckGradIsRight(const KernelSpec& spec, const AttentionShape& s) {
  constexpr int64_t kTile = 128;
  if (s.queries == 1) return Unsupported(spec, "cuDNN: not taken for the gradient of one row");
  const bool hidden = s.causal && s.mask == AttentionShape::Mask::kNone;
  if (hidden || s.keys % kTile != kTile / 2) return absl::OkStatus();
  return Unsupported(spec, absl::StrCat("cuDNN: not taken for the gradient over ", s.keys,
                                        " keys, half a tile more than a multiple of ", kTile));
}

// What both directions share: the graph of a piece, and the bias that is made of the mask.
struct Attention {
  AttentionShape shape{};  // of the whole
  Piece piece{};
  SdpaGraph graph{};
  std::shared_ptr<CudnnGraph> plan;
  Function make_bias;
  BiasLaunch bias{};
  Grid bias_blocks, bias_threads;
  int64_t bias_count = 0, bias_bytes = 0;

  static absl::StatusOr<Attention> Make(const KernelSpec& spec, const AttentionShape& s,
                                        bool backward, const Piece& piece, Device& device) {
    Attention made;
    made.shape = s;
    made.piece = piece;
    SdpaGraph& graph = made.graph;
    graph.backward = backward;
    graph.query = Operand(s, piece, s.heads, s.queries, s.depth);
    graph.key = Operand(s, piece, s.groups, s.keys, s.depth);
    graph.value = Operand(s, piece, s.groups, s.keys, s.value_depth);
    graph.output = Operand(s, piece, s.heads, s.queries, s.value_depth);
    // Packed, as cudnn-frontend wants them before 9.26 (SDPA_backward_attributes' stats): of whole
    // samples that is the whole's stride, and of some of a sample's heads it is not read.
    const int64_t heads = graph.query.dims[1];
    graph.statistics = {
        DType::kF32, {piece.samples, heads, s.queries, 1}, {heads * s.queries, s.queries, 1, 1}};
    graph.scale = s.scale;
    graph.causal = s.causal;
    graph.window = s.window;
    if (s.mask != AttentionShape::Mask::kNone) {
      ORIEL_RETURN_IF_ERROR(made.MakeBias(spec, device));
    }
    if (!made.PiecesAreAligned()) return Unsupported(spec, "cuDNN: pieces would not be aligned");
    absl::StatusOr<std::shared_ptr<CudnnGraph>> plan = MakeCudnnGraph(graph, device);
    if (absl::IsUnimplemented(plan.status())) {
      return Unsupported(spec, std::string(plan.status().message()));
    }
    if (!plan.ok()) return plan.status();
    made.plan = *std::move(plan);
    return made;
  }

  // Rows and keys are written out where the mask is broadcast over them.
  absl::Status MakeBias(const KernelSpec& spec, Device& device) {
    const AttentionShape& s = shape;
    const bool wide = s.mask == AttentionShape::Mask::kFloat;
    const char* type = wide ? "f32" : s.mask == AttentionShape::Mask::kBool ? "bool" : "bf16";
    ORIEL_ASSIGN_OR_RETURN(make_bias, device.Find(absl::StrCat("oriel_attention_bias_", type)));
    const int64_t full[] = {s.batch, s.heads, s.queries, s.keys};
    CudnnTensor tensor{wide ? DType::kF32 : DType::kBF16, {}, {}};
    bias_count = 1;
    for (int d = 0; d < 4; ++d) {
      bias.strides[d] = s.mask_strides[d];
      bias.sizes[d] = d >= 2 || s.mask_strides[d] != 0 ? full[d] : 1;
      bias_count *= bias.sizes[d];
      tensor.dims.push_back(bias.sizes[d]);
    }
    // cuDNN 9.13 reads outside of a larger one (openxla#36454).
    if (bias_count > INT32_MAX) {
      return Unsupported(spec, "cuDNN: a mask of more elements than 32 bits count");
    }
    if (bias.sizes[0] != 1) tensor.dims[0] = piece.samples;
    if (bias.sizes[1] != 1) tensor.dims[1] = graph.query.dims[1];
    const int64_t taken = kBiasBytes / runtime::DTypeBytes(tensor.dtype);
    bias.packed = bias.strides[3] == 1 && s.keys % taken == 0;
    for (int d = 0; d < 3; ++d) bias.packed &= bias.strides[d] % taken == 0;
    unsigned x = 32, most = kCudnnAttentionThreads;
    while (x < most && x * (bias.packed ? taken : 1) < s.keys) x *= 2;
    bias_threads = {x, most / x};
    bias_blocks = BlocksFor(device, bias_count / s.keys, most / x);
    const int64_t matrix = s.queries * s.keys;
    tensor.strides = {bias.sizes[1] * matrix, matrix, s.keys, 1};
    bias_bytes = Aligned(bias_count * runtime::DTypeBytes(tensor.dtype));
    graph.bias = std::move(tensor);
    return absl::OkStatus();
  }

  // The gradient, in pieces where the whole one would take too large a workspace: a deterministic
  // one holds the slopes of all scores on Hopper, rounded up to tiles (the "dP workspace" of
  // cudnn-frontend's scaled_dot_product_flash_attention.h).
  static absl::StatusOr<Attention> MakeGradInPieces(const KernelSpec& spec, const AttentionShape& s,
                                                    Device& device) {
    const Piece whole = {s.batch, s.groups};
    absl::StatusOr<Attention> made = Make(spec, s, /*backward=*/true, whole, device);
    if (!absl::IsUnimplemented(made.status())) return made;
    const int64_t most = CudnnMaxWorkspace();
    const int64_t group = s.heads_per_group() * ((s.queries + 63) / 64 * 64) *
                          ((s.keys + 127) / 128 * 128) * runtime::DTypeBytes(DType::kBF16);
    // Of much less it is no reason to refuse.
    if (s.batch * s.groups * group < most / 2) return made;
    // An engine has a little more beside what grows so: how much is not known.
    const int64_t fit = (most - most / 8) / group;
    for (int64_t groups = std::min(fit, s.batch * s.groups - 1); groups > 0; groups /= 2) {
      const Piece piece = groups >= s.groups
                              ? Piece{DivisorUpTo(groups / s.groups, s.batch), s.groups}
                              : Piece{1, DivisorUpTo(groups, s.groups)};
      absl::StatusOr<Attention> pieces = Make(spec, s, /*backward=*/true, piece, device);
      if (pieces.ok() || !absl::IsUnimplemented(pieces.status())) return pieces;
    }
    return made;
  }

  // Where the piece that begins at this sample and head lies in a tensor of the graph, in bytes.
  static int64_t OffsetIn(const CudnnTensor& tensor, int64_t sample, int64_t head) {
    return (sample * tensor.strides[0] + head * tensor.strides[1]) *
           runtime::DTypeBytes(tensor.dtype);
  }
  int64_t OffsetInStatistics(int64_t sample, int64_t head) const {
    return (sample * shape.heads + head) * shape.queries * runtime::DTypeBytes(DType::kF32);
  }
  int64_t OffsetInBias(int64_t sample, int64_t head) const {
    return OffsetIn(*graph.bias, bias.sizes[0] == 1 ? 0 : sample, bias.sizes[1] == 1 ? 0 : head);
  }
  bool PiecesAreAligned() const {
    const int64_t samples = piece.samples % shape.batch, groups = piece.groups % shape.groups;
    const int64_t heads = groups * shape.heads_per_group();
    int64_t offsets = 0;  // a bit of any of them
    for (const CudnnTensor* tensor : {&graph.key, &graph.value}) {
      offsets |= OffsetIn(*tensor, samples, 0) | OffsetIn(*tensor, 0, groups);
    }
    for (const CudnnTensor* tensor : {&graph.query, &graph.output}) {
      offsets |= OffsetIn(*tensor, samples, 0) | OffsetIn(*tensor, 0, heads);
    }
    offsets |= OffsetInStatistics(samples, 0) | OffsetInStatistics(0, heads);
    if (graph.bias.has_value()) offsets |= OffsetInBias(samples, 0) | OffsetInBias(0, heads);
    return offsets % 16 == 0;
  }

  // Puts all pieces on the stream; `tensors` are the whole ones.
  absl::Status Run(CUstream stream, const std::unordered_map<int64_t, void*>& tensors,
                   CUdeviceptr workspace) const {
    for (int64_t sample = 0; sample < shape.batch; sample += piece.samples) {
      for (int64_t group = 0; group < shape.groups; group += piece.groups) {
        std::unordered_map<int64_t, void*> pieces;
        for (const auto& [id, address] : tensors) {
          pieces[id] = static_cast<char*>(address) + Offset(id, sample, group);
        }
        ORIEL_RETURN_IF_ERROR(plan->Run(stream, pieces, workspace));
      }
    }
    return absl::OkStatus();
  }

  // Of the piece that begins at this sample and group in the tensor `id`, in bytes.
  int64_t Offset(int64_t id, int64_t sample, int64_t group) const {
    const int64_t head = group * shape.heads_per_group();
    switch (id) {
      case SdpaGraph::kKey:
      case SdpaGraph::kKeyGrad:
        return OffsetIn(graph.key, sample, group);
      case SdpaGraph::kValue:
      case SdpaGraph::kValueGrad:
        return OffsetIn(graph.value, sample, group);
      case SdpaGraph::kQuery:
      case SdpaGraph::kQueryGrad:
        return OffsetIn(graph.query, sample, head);
      case SdpaGraph::kStatistics:
        return OffsetInStatistics(sample, head);
      case SdpaGraph::kBias:
        return OffsetInBias(sample, head);
      default:  // output and cotangent
        return OffsetIn(graph.output, sample, head);
    }
  }

  // Writes the bias to `to`, if there is one.
  absl::Status RunBias(CUstream stream, const void* mask, CUdeviceptr to) const {
    if (bias_count == 0) return absl::OkStatus();
    return make_bias.Launch(bias_blocks, bias_threads, stream, bias, mask, to);
  }
};

void* Address(const void* address) { return const_cast<void*>(address); }

absl::StatusOr<KernelFn> MakeCudnnAttention(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const AttentionShape s, AttentionShape::Make(spec));
  const DType dtype = spec.operands[0].dtype;
  ORIEL_RETURN_IF_ERROR(CheckTaken(spec, s, dtype));
  ORIEL_ASSIGN_OR_RETURN(const Attention attention,
                         Attention::Make(spec, s, /*backward=*/false, {s.batch, s.groups}, device));
  ORIEL_ASSIGN_OR_RETURN(const Function unseen, device.Find("oriel_attention_unseen"));
  ORIEL_ASSIGN_OR_RETURN(const Function add_sink, device.Find("oriel_attention_sink"));
  const std::vector<int64_t>& strides = attention.graph.output.strides;
  const OutputLaunch output{s.batch * s.heads * s.queries,
                            s.heads,
                            s.queries,
                            s.value_depth,
                            strides[0],
                            strides[1],
                            strides[2]};
  const int64_t bias_end = attention.bias_bytes;
  ORIEL_RETURN_IF_ERROR(device.AddScratch(bias_end + attention.plan->workspace_bytes()));
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    const CUdeviceptr bias = device.scratch();
    const bool masked = attention.bias_count > 0;
    ORIEL_RETURN_IF_ERROR(attention.RunBias(stream, s.MaskOf(args), bias));
    std::unordered_map<int64_t, void*> tensors = {{SdpaGraph::kQuery, Address(args.operands[0])},
                                                  {SdpaGraph::kKey, Address(args.operands[1])},
                                                  {SdpaGraph::kValue, Address(args.operands[2])},
                                                  {SdpaGraph::kOutput, args.results[0]},
                                                  {SdpaGraph::kStatistics, args.results[1]}};
    if (masked) tensors[SdpaGraph::kBias] = reinterpret_cast<void*>(bias);
    ORIEL_RETURN_IF_ERROR(attention.Run(stream, tensors, bias + bias_end));
    const Grid threads = {kCudnnAttentionThreads};
    if (masked) {
      ORIEL_RETURN_IF_ERROR(unseen.Launch(BlocksFor(device, output.rows, kCudnnAttentionThreads),
                                          threads, stream, output, args.results[0],
                                          args.results[1]));
    }
    const void* sink = s.SinkOf(args);
    if (sink == nullptr) return absl::OkStatus();
    return add_sink.Launch(BlocksFor(device, output.rows * 32, kCudnnAttentionThreads), threads,
                           stream, output, s.narrow_sink, sink, args.results[0], args.results[1]);
  });
}

absl::StatusOr<KernelFn> MakeCudnnAttentionGrad(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const AttentionShape s, AttentionShape::MakeGrad(spec));
  ORIEL_RETURN_IF_ERROR(CheckTaken(spec, s, spec.operands[1].dtype));
  ORIEL_RETURN_IF_ERROR(CheckGradIsRight(spec, s));
  ORIEL_ASSIGN_OR_RETURN(const Attention attention, Attention::MakeGradInPieces(spec, s, device));
  ORIEL_ASSIGN_OR_RETURN(const Function make_shifts, device.Find("oriel_attention_shifts"));
  const int64_t rows = s.batch * s.heads * s.queries;
  const int64_t bias_end = attention.bias_bytes;
  const bool masked = attention.bias_count > 0;
  const int64_t shifts_end = bias_end + (masked ? Aligned(rows * 4) : 0);
  ORIEL_RETURN_IF_ERROR(device.AddScratch(shifts_end + attention.plan->workspace_bytes()));
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    const void* const* in = args.operands;
    const CUdeviceptr bias = device.scratch(), shifts = bias + bias_end;
    std::unordered_map<int64_t, void*> tensors = {
        {SdpaGraph::kCotangent, Address(in[0])},  {SdpaGraph::kQuery, Address(in[1])},
        {SdpaGraph::kKey, Address(in[2])},        {SdpaGraph::kValue, Address(in[3])},
        {SdpaGraph::kOutput, Address(in[4])},     {SdpaGraph::kStatistics, Address(in[5])},
        {SdpaGraph::kQueryGrad, args.results[0]}, {SdpaGraph::kKeyGrad, args.results[1]},
        {SdpaGraph::kValueGrad, args.results[2]}};
    if (masked) {
      ORIEL_RETURN_IF_ERROR(attention.RunBias(stream, s.MaskOf(args), bias));
      ORIEL_RETURN_IF_ERROR(make_shifts.Launch(BlocksFor(device, rows, kCudnnAttentionThreads),
                                               {kCudnnAttentionThreads}, stream, rows, in[5],
                                               shifts));
      tensors[SdpaGraph::kBias] = reinterpret_cast<void*>(bias);
      tensors[SdpaGraph::kStatistics] = reinterpret_cast<void*>(shifts);
    }
    return attention.Run(stream, tensors, bias + shifts_end);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("attention", 10, MakeCudnnAttention);
ORIEL_REGISTER_CUDA_KERNEL("attention_grad", 10, MakeCudnnAttentionGrad);

}  // namespace
}  // namespace oriel::kernels::cuda
