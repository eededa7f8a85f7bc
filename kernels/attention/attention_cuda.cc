// attention and attention_grad on a device, by Oriel's own kernels; see attention.h.
#include "absl/strings/str_cat.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_launch.h"
#include "kernels/common/dispatch.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/plain_arithmetic.h"
#include "kernels/cuda/registry.h"

namespace oriel::kernels::cuda {
namespace {

AttentionLaunch::Strides StridesOf(const AttentionShape& s, int64_t heads, int64_t rows,
                                   int64_t columns) {
  const int64_t sample = heads * rows * columns;
  if (s.sequence_first) return {sample, columns, heads * columns};
  return {sample, rows * columns, columns};
}

AttentionLaunch LaunchOf(const AttentionShape& s) {
  AttentionLaunch a{};
  a.heads = s.heads;
  a.groups = s.groups;
  a.queries = s.queries;
  a.keys = s.keys;
  a.depth = s.depth;
  a.value_depth = s.value_depth;
  a.scale = s.scale;
  a.softcap = s.softcap;
  a.window = s.window;
  a.causal = s.causal;
  switch (s.mask) {
    case AttentionShape::Mask::kNone:
      a.mask = AttentionLaunch::Mask::kNone;
      break;
    case AttentionShape::Mask::kBool:
      a.mask = AttentionLaunch::Mask::kBool;
      break;
    case AttentionShape::Mask::kFloat:
      a.mask = AttentionLaunch::Mask::kComputed;
      break;
    case AttentionShape::Mask::kBFloat16:
      a.mask = AttentionLaunch::Mask::kBFloat16;
      break;
  }
  a.narrow_sink = s.narrow_sink;
  for (int d = 0; d < 4; ++d) a.mask_strides[d] = s.mask_strides[d];
  a.query = StridesOf(s, s.heads, s.queries, s.depth);
  a.key = StridesOf(s, s.groups, s.keys, s.depth);
  a.value = StridesOf(s, s.groups, s.keys, s.value_depth);
  a.output = StridesOf(s, s.heads, s.queries, s.value_depth);
  return a;
}

// Device code for heads of `depth` columns.
struct Code {
  int depth;
  int element_bytes;  // of what it computes in
  int columns() const { return AttentionColumns(depth, element_bytes); }

  static absl::StatusOr<Code> For(const KernelSpec& spec, const AttentionShape& shape,
                                  DType dtype) {
    const int64_t widest = std::max(shape.depth, shape.value_depth);
    if (dtype == DType::kF64) {
      if (widest <= 128) return Code{128, 8};
      return Unsupported(spec, absl::StrCat("own kernel: f64 heads of ", widest, ", 128 at most"));
    }
    for (int depth : {64, 128, 256}) {
      if (widest <= depth) return Code{depth, 4};
    }
    return Unsupported(spec, absl::StrCat("own kernel: heads of ", widest, ", 256 at most"));
  }

  // The function <stem>_<type>_<depth>, allowed to use so many elements of shared memory.
  absl::StatusOr<Function> Find(const KernelSpec& spec, const Device& device,
                                const std::string& stem, DType dtype, int elements) const {
    const int bytes = elements * element_bytes;
    if (bytes > device.properties().max_shared_bytes) {
      return Unsupported(spec, absl::StrCat("own kernel: needs ", bytes,
                                            " bytes of shared memory, the device has ",
                                            device.properties().max_shared_bytes));
    }
    const std::string type(runtime::DTypeName(dtype));
    absl::StatusOr<Function> function = device.Find(absl::StrCat(stem, "_", type, "_", depth));
    if (absl::IsNotFound(function.status())) {
      return Unsupported(spec, "own kernel: takes f32, f64 and bf16");
    }
    if (!function.ok()) return function;
    ORIEL_RETURN_IF_ERROR(function->AllowShared(bytes));
    return function;
  }
};

// A block of device code with dynamic shared memory.
template <typename... Args>
absl::Status LaunchShared(const Function& function, int64_t blocks, int shared_bytes,
                          CUstream stream, const Args&... args) {
  void* addresses[] = {const_cast<void*>(static_cast<const void*>(&args))...};
  return function.LaunchArray({static_cast<unsigned>(blocks)}, {kAttentionThreads},
                              static_cast<unsigned>(shared_bytes), stream, addresses);
}

void WarnIfLarge(const KernelSpec& spec, const AttentionShape& s, DType dtype) {
  if (dtype != DType::kBF16) return;
  const double scores = static_cast<double>(s.batch) * s.heads * s.queries * s.keys;
  WarnOfPlainArithmetic(LaunchName(spec), scores * (s.depth + s.value_depth), "cuDNN");
}

int64_t TilesOf(int64_t rows) { return (rows + kAttentionTile - 1) / kAttentionTile; }

absl::StatusOr<KernelFn> MakeAttention(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const AttentionShape s, AttentionShape::Make(spec));
  const DType dtype = spec.operands[0].dtype;
  ORIEL_ASSIGN_OR_RETURN(const Code code, Code::For(spec, s, dtype));
  // As attention.cu lays them out: query, scores, keys or values.
  const int tile = std::max(code.depth * PaddedTile(code.columns()), code.columns() * code.depth);
  const int shared =
      code.depth * PaddedTile(kAttentionTile) + code.columns() * PaddedTile(kAttentionTile) + tile;
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         code.Find(spec, device, "oriel_attention", dtype, shared));
  WarnIfLarge(spec, s, dtype);
  const AttentionLaunch launch = LaunchOf(s);
  const int64_t blocks = s.batch * s.heads * TilesOf(s.queries);
  if (blocks > INT32_MAX) return Unsupported(spec, "own kernel: too many rows for one grid");
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (blocks == 0) return absl::OkStatus();
    return LaunchShared(function, blocks, shared * code.element_bytes, StreamOf(args), launch,
                        args.operands[0], args.operands[1], args.operands[2], s.MaskOf(args),
                        s.SinkOf(args), args.results[0], args.results[1]);
  });
}

absl::StatusOr<KernelFn> MakeAttentionGrad(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const AttentionShape s, AttentionShape::MakeGrad(spec));
  const DType dtype = spec.operands[1].dtype;
  ORIEL_ASSIGN_OR_RETURN(const Code code, Code::For(spec, s, dtype));
  // As attention_grad.cu lays them out: two tiles of rows, two of columns, one or two of slopes.
  const int tiles = 2 * code.depth * (PaddedTile(kAttentionTile) + PaddedTile(code.columns()));
  const int slopes = code.columns() * PaddedTile(kAttentionTile);
  const int query_shared = tiles + slopes, key_shared = tiles + 2 * slopes;
  ORIEL_ASSIGN_OR_RETURN(const Function prepare,
                         FindTyped(spec, device, "oriel_attention_prepare", {dtype}));
  ORIEL_ASSIGN_OR_RETURN(
      const Function query_grad,
      code.Find(spec, device, "oriel_attention_query_grad", dtype, query_shared));
  ORIEL_ASSIGN_OR_RETURN(const Function key_grad,
                         code.Find(spec, device, "oriel_attention_key_grad", dtype, key_shared));
  WarnIfLarge(spec, s, dtype);
  const AttentionLaunch launch = LaunchOf(s);
  const int64_t rows = s.batch * s.heads * s.queries;
  const int64_t prepare_blocks = (rows * 32 + kPrepareThreads - 1) / kPrepareThreads;
  const int64_t query_blocks = s.batch * s.heads * TilesOf(s.queries);
  const int64_t key_blocks = s.batch * s.groups * TilesOf(s.keys);
  if (std::max({prepare_blocks, query_blocks, key_blocks}) > INT32_MAX) {
    return Unsupported(spec, "own kernel: too many rows for one grid");
  }
  ORIEL_RETURN_IF_ERROR(device.AddScratch(rows * 3 * code.element_bytes));
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    const void* const* in = args.operands;
    const void* mask = s.MaskOf(args);
    const CUdeviceptr prepared = device.scratch();
    if (rows > 0) {
      ORIEL_RETURN_IF_ERROR(prepare.Launch({static_cast<unsigned>(prepare_blocks)},
                                           {kPrepareThreads}, stream, launch, rows, in[0], in[1],
                                           in[2], in[4], in[5], mask, s.SinkOf(args), prepared));
      ORIEL_RETURN_IF_ERROR(LaunchShared(query_grad, query_blocks,
                                         query_shared * code.element_bytes, stream, launch, in[0],
                                         in[1], in[2], in[3], mask, prepared, args.results[0]));
    }
    if (key_blocks == 0) return absl::OkStatus();
    return LaunchShared(key_grad, key_blocks, key_shared * code.element_bytes, stream, launch,
                        in[0], in[1], in[2], in[3], mask, prepared, args.results[1],
                        args.results[2]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("attention", 0, MakeAttention);
ORIEL_REGISTER_CUDA_KERNEL("attention_grad", 0, MakeAttentionGrad);

}  // namespace
}  // namespace oriel::kernels::cuda
