// Copies, fill and iota on a device; see shape.h.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/shape/shape.h"
#include "kernels/shape/shape_launch.h"

namespace oriel::kernels::cuda {
namespace {

using Dims = std::vector<StridedCopy::Dim>;

// A prepared copy of one box.
class DeviceCopy {
 public:
  static absl::StatusOr<DeviceCopy> Make(const KernelSpec& spec, const CopyBox& box, DType dtype,
                                         const Device& device) {
    DeviceCopy copy;
    int64_t bytes = runtime::DTypeBytes(dtype);
    copy.source_offset_ = box.source_offset * bytes;
    copy.target_offset_ = box.target_offset * bytes;
    CopyLaunch& launch = copy.launch_;
    launch.count = 1;
    for (const auto& dim : box.dims) launch.count *= dim.size;
    if (launch.count == 0) return copy;
    Dims dims = StridedCopy::Merge(box.dims);
    if (dims.empty()) dims.push_back({1, 1, 1});
    bool transposes = false;
    if (dims.back().target == 1 && dims.back().source == 1) {
      bytes *= Widen(box, bytes, &dims);
    } else {
      transposes = copy.TakeTranspose(bytes, &dims);
    }
    if (dims.size() > CopyLaunch::kDims) return Unsupported(spec, "more than 16 dimensions");
    launch.dims = static_cast<int32_t>(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      launch.sizes[d] = Divisor::By(dims[d].size);
      launch.source[d] = dims[d].source;
      launch.target[d] = dims[d].target;
    }
    launch.count = transposes ? launch.squares.size : 1;
    // A square may reach over the edges.
    const int64_t rows = launch.rows + CopyTile(bytes), columns = launch.columns + CopyTile(bytes);
    int64_t source = transposes ? rows + columns * launch.column_source : 0;
    int64_t target = transposes ? columns + rows * launch.row_target : 0;
    for (const auto& dim : dims) {
      launch.count *= dim.size;
      source += (dim.size - 1) * std::abs(dim.source);
      target += (dim.size - 1) * std::abs(dim.target);
    }
    launch.small = std::max({launch.count, source, target}) < kSmallIndices;
    ORIEL_ASSIGN_OR_RETURN(
        copy.function_,
        device.Find(absl::StrCat(transposes ? "oriel_transpose_" : "oriel_copy_", bytes)));
    copy.blocks_ = BlocksFor(device, launch.count, transposes ? 1 : kCopyThreads);
    return copy;
  }

  absl::Status Run(CUstream stream, const void* source, void* target) const {
    if (launch_.count == 0) return absl::OkStatus();
    const void* from = static_cast<const char*>(source) + source_offset_;
    void* to = static_cast<char*>(target) + target_offset_;
    return function_.Launch(blocks_, {kCopyThreads}, stream, launch_, from, to);
  }

 private:
  // Rows that lie alike on both sides are copied by elements as large as divide them: how many of
  // `bytes` each. Buffers are aligned to 64 bytes.
  static int64_t Widen(const CopyBox& box, int64_t bytes, Dims* dims) {
    int64_t wide = 16 / bytes;
    const auto divides = [&](int64_t wide) {
      bool all = box.source_offset % wide == 0 && box.target_offset % wide == 0 &&
                 dims->back().size % wide == 0;
      for (size_t d = 0; d + 1 < dims->size(); ++d) {
        all = all && (*dims)[d].source % wide == 0 && (*dims)[d].target % wide == 0;
      }
      return all;
    };
    while (!divides(wide)) wide /= 2;
    dims->back().size /= wide;
    for (size_t d = 0; d + 1 < dims->size(); ++d) {
      (*dims)[d].source /= wide;
      (*dims)[d].target /= wide;
    }
    return wide;
  }

  // If another dimension than the target's last is contiguous in the source, takes both off `dims`.
  bool TakeTranspose(int64_t bytes, Dims* dims) {
    if (dims->back().target != 1 || dims->back().source == 0) return false;
    for (size_t d = 0; d + 1 < dims->size(); ++d) {
      if ((*dims)[d].source != 1) continue;
      launch_.rows = (*dims)[d].size;
      launch_.row_target = (*dims)[d].target;
      launch_.columns = dims->back().size;
      launch_.column_source = dims->back().source;
      const int64_t tile = CopyTile(bytes);
      const int64_t across = (launch_.columns + tile - 1) / tile;
      launch_.across = Divisor::By(across);
      launch_.squares = Divisor::By((launch_.rows + tile - 1) / tile * across);
      dims->pop_back();
      dims->erase(dims->begin() + static_cast<int64_t>(d));
      return true;
    }
    return false;
  }

  CopyLaunch launch_{};
  int64_t source_offset_ = 0, target_offset_ = 0;  // bytes
  Function function_;
  Grid blocks_;
};

template <absl::StatusOr<CopyBox> (*kBox)(const KernelSpec&)>
absl::StatusOr<KernelFn> MakeCopy(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const CopyBox box, kBox(spec));
  ORIEL_ASSIGN_OR_RETURN(const DeviceCopy copy,
                         DeviceCopy::Make(spec, box, spec.results[0].dtype, device));
  return KernelFn([copy](const KernelArgs& args) {
    return copy.Run(StreamOf(args), args.operands[0], args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeConcat(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const std::vector<CopyBox> boxes, ConcatBoxes(spec));
  std::vector<DeviceCopy> copies;
  for (const CopyBox& box : boxes) {
    ORIEL_ASSIGN_OR_RETURN(DeviceCopy copy,
                           DeviceCopy::Make(spec, box, spec.results[0].dtype, device));
    copies.push_back(std::move(copy));
  }
  return KernelFn([copies](const KernelArgs& args) -> absl::Status {
    for (size_t i = 0; i < copies.size(); ++i) {
      ORIEL_RETURN_IF_ERROR(copies[i].Run(StreamOf(args), args.operands[i], args.results[0]));
    }
    return absl::OkStatus();
  });
}

// A launch that fills result 0 with elements of these bits.
absl::StatusOr<KernelFn> LaunchFill(const TensorSpec& result, uint64_t bits, const Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const Function function, device.Find("oriel_fill"));
  const int64_t bytes = result.bytes();
  const int64_t element_bits = 8 * runtime::DTypeBytes(result.dtype);
  if (element_bits < 64) bits &= (uint64_t{1} << element_bits) - 1;
  for (int64_t have = element_bits; have < 64; have *= 2) bits |= bits << have;
  const Grid blocks = BlocksFor(device, bytes / 16, kCopyThreads);
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (bytes == 0) return absl::OkStatus();
    return function.Launch(blocks, {kCopyThreads}, StreamOf(args), args.results[0], bytes, bits);
  });
}

absl::StatusOr<KernelFn> MakeFill(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const uint64_t bits, FillBits(spec));
  return LaunchFill(spec.results[0], bits, device);
}

absl::StatusOr<KernelFn> MakePad(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const KernelFn copy, MakeCopy<PadBox>(spec, device));
  ORIEL_ASSIGN_OR_RETURN(const uint64_t bits, PadBits(spec));
  ORIEL_ASSIGN_OR_RETURN(const KernelFn fill, LaunchFill(spec.results[0], bits, device));
  return KernelFn([copy, fill](const KernelArgs& args) -> absl::Status {
    ORIEL_RETURN_IF_ERROR(fill(args));
    return copy(args);
  });
}

absl::StatusOr<KernelFn> MakeIota(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const IotaShape shape, IotaShape::Make(spec));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_iota", {spec.results[0].dtype}));
  const int64_t count = spec.results[0].num_elements();
  const Grid blocks = BlocksFor(device, count, kCopyThreads);
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (count == 0) return absl::OkStatus();
    return function.Launch(blocks, {kCopyThreads}, StreamOf(args), args.results[0], count,
                           shape.size, shape.inner);
  });
}

absl::StatusOr<KernelFn> MakeReshape(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckReshape(spec));
  const int64_t bytes = spec.results[0].bytes();
  return KernelFn([bytes, &device](const KernelArgs& args) -> absl::Status {
    if (args.operands[0] == args.results[0] || bytes == 0) return absl::OkStatus();
    return ORIEL_CUDA(device.driver(), cuMemcpyAsync,
                      reinterpret_cast<CUdeviceptr>(args.results[0]),
                      reinterpret_cast<CUdeviceptr>(args.operands[0]), static_cast<size_t>(bytes),
                      StreamOf(args));
  });
}

constexpr Factory kTranspose = MakeCopy<TransposeBox>;
constexpr Factory kBroadcast = MakeCopy<BroadcastBox>;
constexpr Factory kSlice = MakeCopy<SliceBox>;
ORIEL_REGISTER_CUDA_KERNEL("iota", 0, MakeIota);
ORIEL_REGISTER_CUDA_KERNEL("fill", 0, MakeFill);
ORIEL_REGISTER_CUDA_KERNEL("reshape", 0, MakeReshape);
ORIEL_REGISTER_CUDA_KERNEL("transpose", 0, kTranspose);
ORIEL_REGISTER_CUDA_KERNEL("broadcast", 0, kBroadcast);
ORIEL_REGISTER_CUDA_KERNEL("slice", 0, kSlice);
ORIEL_REGISTER_CUDA_KERNEL("pad", 0, MakePad);
ORIEL_REGISTER_CUDA_KERNEL("concat", 0, MakeConcat);

}  // namespace
}  // namespace oriel::kernels::cuda
