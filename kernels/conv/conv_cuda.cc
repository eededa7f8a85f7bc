// Convolutions on a device, by patches (im2col) and products; see conv.h.
//
// A launch goes over pieces of the batch: without groups, as many samples as keep the patches
// within kMaxPatches, as a batch of products that share the weight; with groups, or where samples
// are summed, one sample, whose groups are the batch.
#include "absl/strings/str_cat.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_launch.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/elementwise/elementwise_launch.h"
#include "kernels/linear/gemm_cuda.h"

namespace oriel::kernels::cuda {
namespace {

// Bytes of scratch memory for patches, unless one sample needs more.
constexpr int64_t kMaxPatches = int64_t{256} << 20;

int64_t Aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// What the three launches share.
struct Conv {
  ConvShape shape;
  DType dtype, sums, result;
  ConvLaunch launch{};
  int64_t piece = 1;  // samples of a piece, but the last

  static Conv Make(const KernelSpec& spec, const ConvShape& s, DType patches, bool sums_samples) {
    Conv conv{s, spec.operands[0].dtype, ComputeDType(spec.operands[0].dtype),
              spec.results[0].dtype};
    const int64_t bytes = s.positions() * s.patch() * s.group * runtime::DTypeBytes(patches);
    if (s.group == 1 && !sums_samples) {
      conv.piece = std::clamp<int64_t>(kMaxPatches / std::max<int64_t>(bytes, 1), 1,
                                       std::max<int64_t>(s.batch, 1));
    }
    ConvLaunch& launch = conv.launch;
    launch.channels = s.channels;
    launch.group = s.group;
    launch.positions = s.positions();
    launch.patch = s.patch();
    for (int d = 0; d < 3; ++d) {
      launch.input[d] = s.input[d];
      launch.kernel[d] = s.kernel[d];
      launch.output[d] = s.output[d];
      launch.strides[d] = s.strides[d];
      launch.lows[d] = s.lows[d];
      launch.dilations[d] = s.dilations[d];
    }
    return conv;
  }

  int64_t patch_count(int64_t samples) const {
    return samples * shape.group * shape.positions() * shape.patch();
  }
  // Of a sample, in elements.
  int64_t input_size() const { return shape.channels * ConvShape::Product(shape.input); }
  int64_t output_size() const { return shape.outputs * shape.positions(); }
  // Samples of the piece that begins at `first`.
  int64_t samples(int64_t first) const { return std::min(piece, shape.batch - first); }

  ConvLaunch For(int64_t samples) const {
    ConvLaunch launch = this->launch;
    launch.samples = samples;
    return launch;
  }

  // The product of a piece, with what its operands' offsets are aligned to.
  DeviceGemmShape Product(int64_t m, int64_t n, int64_t k) const {
    GemmShape product;
    product.m = m;
    product.n = n;
    product.k = k;
    product.factors = dtype;
    DeviceGemmShape gemm(product);
    // Offsets are multiples of a group's, in each tensor.
    const int64_t sizes[] = {shape.group_outputs() * shape.positions(),
                             shape.group_outputs() * shape.patch(),
                             shape.positions() * shape.patch()};
    for (int64_t size : sizes) {
      while (size * runtime::DTypeBytes(dtype) % gemm.alignment != 0) gemm.alignment /= 2;
    }
    return gemm;
  }
};

// Products of whole pieces, and of a smaller last one.
struct PieceGemm {
  std::shared_ptr<DeviceGemm> whole, last;

  static absl::StatusOr<PieceGemm> Make(const Conv& conv, DeviceGemmShape gemm, bool same_a,
                                        bool same_b, Device& device) {
    PieceGemm made;
    const bool grouped = conv.shape.group > 1;
    gemm.same_a = same_a && !grouped;
    gemm.same_b = same_b && !grouped;
    gemm.batch = grouped ? conv.shape.group : conv.piece;
    ORIEL_ASSIGN_OR_RETURN(made.whole, MakeDeviceGemm(gemm, device));
    made.last = made.whole;
    const int64_t rest = conv.shape.batch % conv.piece;
    if (rest != 0) {
      gemm.batch = rest;
      ORIEL_ASSIGN_OR_RETURN(made.last, MakeDeviceGemm(gemm, device));
    }
    return made;
  }
  int64_t workspace_bytes() const {
    return std::max(whole->workspace_bytes(), last->workspace_bytes());
  }
  DeviceGemm& For(const Conv& conv, int64_t samples) const {
    return samples == conv.piece ? *whole : *last;
  }
};

absl::StatusOr<KernelFn> MakeForward(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  ORIEL_RETURN_IF_ERROR(CheckConvTypes(spec));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[0],
                                                            spec.operands[1], spec.results[0]));
  const bool has_bias = spec.operands.size() == 3;
  const DType dtype = spec.operands[0].dtype;
  if (has_bias) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, dtype, {s.outputs}));
  }
  const Conv conv = Conv::Make(spec, s, dtype, /*sums_samples=*/false);
  ORIEL_ASSIGN_OR_RETURN(const Function unfold, FindTyped(spec, device, "oriel_unfold", {dtype}));
  DeviceGemmShape product = conv.Product(s.group_outputs(), s.positions(), s.patch());
  product.transpose_b = true;
  // Sums that the bias is added to before they are rounded wait in scratch memory.
  const bool rounds_later = has_bias && conv.result != conv.sums;
  product.result = rounds_later ? conv.sums : conv.result;
  ORIEL_ASSIGN_OR_RETURN(const PieceGemm gemm,
                         PieceGemm::Make(conv, product, /*same_a=*/true, false, device));
  Function add_bias;
  if (has_bias) {
    ORIEL_ASSIGN_OR_RETURN(add_bias,
                           FindTyped(spec, device, "oriel_conv_bias", {dtype, conv.result}));
  }
  const int64_t bytes = runtime::DTypeBytes(dtype);
  const int64_t patches_end = Aligned(conv.patch_count(conv.piece) * bytes);
  const int64_t sums_end =
      patches_end + (rounds_later
                         ? Aligned(conv.piece * conv.output_size() * runtime::DTypeBytes(conv.sums))
                         : 0);
  ORIEL_RETURN_IF_ERROR(device.AddScratch(sums_end + gemm.workspace_bytes()));
  const int64_t result_bytes = runtime::DTypeBytes(conv.result);
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    for (int64_t first = 0; first < s.batch; first += conv.piece) {
      const int64_t samples = conv.samples(first);
      const void* input = args.operand<char>(0) + first * conv.input_size() * bytes;
      void* result = args.result<char>(0) + first * conv.output_size() * result_bytes;
      void* patches = reinterpret_cast<void*>(device.scratch());
      void* sums = rounds_later ? reinterpret_cast<void*>(device.scratch() + patches_end) : result;
      const int64_t count = conv.patch_count(samples);
      if (count > 0) {
        ORIEL_RETURN_IF_ERROR(unfold.Launch(BlocksFor(device, count, kConvThreads), {kConvThreads},
                                            stream, conv.For(samples), input, patches));
      }
      ORIEL_RETURN_IF_ERROR(
          gemm.For(conv, samples)
              .Run(stream, args.operands[1], patches, nullptr, sums, device.scratch() + sums_end));
      const int64_t outputs = samples * conv.output_size();
      if (!has_bias || outputs == 0) continue;
      ORIEL_RETURN_IF_ERROR(add_bias.Launch(BlocksFor(device, outputs, kConvThreads),
                                            {kConvThreads}, stream, outputs, s.positions(),
                                            s.outputs, sums, args.operands[2], result));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeInputGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  ORIEL_RETURN_IF_ERROR(CheckConvTypes(spec));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.results[0], spec.operands[1],
                                                            spec.operands[0]));
  const DType dtype = spec.operands[0].dtype;
  const Conv conv = Conv::Make(spec, s, ComputeDType(dtype), /*sums_samples=*/false);
  ORIEL_ASSIGN_OR_RETURN(const Function fold, FindTyped(spec, device, "oriel_fold", {conv.result}));
  DeviceGemmShape product = conv.Product(s.positions(), s.patch(), s.group_outputs());
  product.transpose_a = true;
  product.result = conv.sums;
  ORIEL_ASSIGN_OR_RETURN(const PieceGemm gemm,
                         PieceGemm::Make(conv, product, false, /*same_b=*/true, device));
  const int64_t patches_end =
      Aligned(conv.patch_count(conv.piece) * runtime::DTypeBytes(conv.sums));
  ORIEL_RETURN_IF_ERROR(device.AddScratch(patches_end + gemm.workspace_bytes()));
  const int64_t bytes = runtime::DTypeBytes(dtype);
  const int64_t result_bytes = runtime::DTypeBytes(conv.result);
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    for (int64_t first = 0; first < s.batch; first += conv.piece) {
      const int64_t samples = conv.samples(first);
      const void* cotangent = args.operand<char>(0) + first * conv.output_size() * bytes;
      void* grad = args.result<char>(0) + first * conv.input_size() * result_bytes;
      void* patches = reinterpret_cast<void*>(device.scratch());
      ORIEL_RETURN_IF_ERROR(gemm.For(conv, samples)
                                .Run(stream, cotangent, args.operands[1], nullptr, patches,
                                     device.scratch() + patches_end));
      const int64_t count = samples * conv.input_size();
      if (count == 0) continue;
      ORIEL_RETURN_IF_ERROR(fold.Launch(BlocksFor(device, count, kConvThreads), {kConvThreads},
                                        stream, conv.For(samples), patches, grad));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeWeightGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  ORIEL_RETURN_IF_ERROR(CheckConvTypes(spec));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[1], spec.results[0],
                                                            spec.operands[0]));
  const DType dtype = spec.operands[0].dtype;
  const Conv conv = Conv::Make(spec, s, dtype, /*sums_samples=*/true);
  ORIEL_ASSIGN_OR_RETURN(const Function unfold, FindTyped(spec, device, "oriel_unfold", {dtype}));
  DeviceGemmShape product = conv.Product(s.group_outputs(), s.patch(), s.positions());
  product.result = conv.sums;
  ORIEL_ASSIGN_OR_RETURN(const PieceGemm first_gemm,
                         PieceGemm::Make(conv, product, false, false, device));
  product.accumulate = true;
  ORIEL_ASSIGN_OR_RETURN(const PieceGemm next_gemm,
                         PieceGemm::Make(conv, product, false, false, device));
  // A gradient of bf16 is summed over the samples in f32.
  const bool rounds_later = conv.result != conv.sums;
  Function round;
  if (rounds_later) {
    ORIEL_ASSIGN_OR_RETURN(round, device.Find("oriel_cast_f32"));
  }
  const int64_t bytes = runtime::DTypeBytes(dtype);
  const int64_t weights = s.outputs * s.patch();
  const int64_t patches_end = Aligned(conv.patch_count(1) * bytes);
  const int64_t sums_end =
      patches_end + (rounds_later ? Aligned(weights * runtime::DTypeBytes(conv.sums)) : 0);
  ORIEL_RETURN_IF_ERROR(device.AddScratch(
      sums_end + std::max(first_gemm.workspace_bytes(), next_gemm.workspace_bytes())));
  const size_t result_bytes = static_cast<size_t>(spec.results[0].bytes());
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    if (weights == 0) return absl::OkStatus();
    if (s.batch == 0) {
      return ORIEL_CUDA(device.driver(), cuMemsetD8Async,
                        reinterpret_cast<CUdeviceptr>(args.results[0]), 0, result_bytes, stream);
    }
    void* patches = reinterpret_cast<void*>(device.scratch());
    void* sums =
        rounds_later ? reinterpret_cast<void*>(device.scratch() + patches_end) : args.results[0];
    for (int64_t sample = 0; sample < s.batch; ++sample) {
      const void* cotangent = args.operand<char>(0) + sample * conv.output_size() * bytes;
      const void* input = args.operand<char>(1) + sample * conv.input_size() * bytes;
      const int64_t count = conv.patch_count(1);
      if (count > 0) {
        ORIEL_RETURN_IF_ERROR(unfold.Launch(BlocksFor(device, count, kConvThreads), {kConvThreads},
                                            stream, conv.For(1), input, patches));
      }
      ORIEL_RETURN_IF_ERROR(
          (sample == 0 ? first_gemm : next_gemm)
              .whole->Run(stream, cotangent, patches, nullptr, sums, device.scratch() + sums_end));
    }
    if (!rounds_later) return absl::OkStatus();
    const CastTo to = CastTo::kBF16;
    return round.Launch(BlocksFor(device, weights / 4, kElementwiseThreads), {kElementwiseThreads},
                        stream, to, sums, args.results[0], weights);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("conv", 0, MakeForward);
ORIEL_REGISTER_CUDA_KERNEL("conv_input_grad", 0, MakeInputGrad);
ORIEL_REGISTER_CUDA_KERNEL("conv_weight_grad", 0, MakeWeightGrad);

}  // namespace
}  // namespace oriel::kernels::cuda
