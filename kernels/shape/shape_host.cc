#include <cstring>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/shape/shape.h"

namespace oriel::kernels {
namespace {

template <typename T>
void FillSized(void* target, int64_t count, uint64_t bits, int num_threads) {
  T* to = static_cast<T*>(target);
  const T value = static_cast<T>(bits);
  ParallelForElements(num_threads, count, 1, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] = value;
  });
}

}  // namespace

void FillElements(void* target, int64_t count, int64_t element_bytes, uint64_t bits,
                  int num_threads) {
  switch (element_bytes) {
    case 8:
      return FillSized<uint64_t>(target, count, bits, num_threads);
    case 4:
      return FillSized<uint32_t>(target, count, bits, num_threads);
    case 2:
      return FillSized<uint16_t>(target, count, bits, num_threads);
    default:
      return FillSized<uint8_t>(target, count, bits, num_threads);
  }
}

namespace {

KernelFn LaunchCopy(const KernelSpec& spec, const CopyBox& box) {
  const StridedCopy copy(box.dims, box.source_offset, box.target_offset,
                         runtime::DTypeBytes(spec.results[0].dtype));
  return [copy, threads = spec.num_threads](const KernelArgs& args) {
    copy.Run(args.operands[0], args.results[0], threads);
    return absl::OkStatus();
  };
}

template <absl::StatusOr<CopyBox> (*kBox)(const KernelSpec&)>
absl::StatusOr<KernelFn> MakeCopy(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const CopyBox box, kBox(spec));
  return LaunchCopy(spec, box);
}

template <typename T>
KernelFn LaunchIota(const IotaShape& shape) {
  return [shape](const KernelArgs& args) {
    T* to = args.result<T>(0);
    for (int64_t o = 0; o < shape.outer; ++o) {
      for (int64_t i = 0; i < shape.size; ++i) {
        for (int64_t j = 0; j < shape.inner; ++j) *to++ = static_cast<T>(i);
      }
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<KernelFn> MakeIota(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const IotaShape shape, IotaShape::Make(spec));
  switch (spec.results[0].dtype) {
    case DType::kI64:
      return LaunchIota<int64_t>(shape);
    case DType::kI32:
      return LaunchIota<int32_t>(shape);
    case DType::kF32:
      return LaunchIota<float>(shape);
    case DType::kF64:
      return LaunchIota<double>(shape);
    default:
      return Unsupported(spec, "gives i64, i32, f32 and f64");
  }
}

absl::StatusOr<KernelFn> MakeFill(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const uint64_t bits, FillBits(spec));
  const int64_t count = spec.results[0].num_elements();
  const int64_t bytes = runtime::DTypeBytes(spec.results[0].dtype);
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    FillElements(args.results[0], count, bytes, bits, threads);
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeReshape(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckReshape(spec));
  return KernelFn([bytes = spec.results[0].bytes()](const KernelArgs& args) {
    if (args.operands[0] != args.results[0] && bytes > 0) {
      std::memcpy(args.results[0], args.operands[0], bytes);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakePad(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const CopyBox box, PadBox(spec));
  ORIEL_ASSIGN_OR_RETURN(const uint64_t bits, PadBits(spec));
  const int64_t bytes = runtime::DTypeBytes(spec.results[0].dtype);
  const int64_t count = spec.results[0].num_elements();
  const int threads = spec.num_threads;
  return KernelFn([=, copy = LaunchCopy(spec, box)](const KernelArgs& args) {
    FillElements(args.results[0], count, bytes, bits, threads);
    return copy(args);
  });
}

absl::StatusOr<KernelFn> MakeConcat(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const std::vector<CopyBox> boxes, ConcatBoxes(spec));
  std::vector<StridedCopy> copies;
  for (const CopyBox& box : boxes) {
    copies.emplace_back(box.dims, box.source_offset, box.target_offset,
                        runtime::DTypeBytes(spec.results[0].dtype));
  }
  const int threads = spec.num_threads;
  return KernelFn([copies, threads](const KernelArgs& args) {
    for (size_t i = 0; i < copies.size(); ++i) {
      copies[i].Run(args.operands[i], args.results[0], threads);
    }
    return absl::OkStatus();
  });
}

constexpr KernelFactory kTranspose = MakeCopy<TransposeBox>;
constexpr KernelFactory kBroadcast = MakeCopy<BroadcastBox>;
constexpr KernelFactory kSlice = MakeCopy<SliceBox>;
ORIEL_REGISTER_HOST_KERNEL("iota", 0, MakeIota);
ORIEL_REGISTER_HOST_KERNEL("fill", 0, MakeFill);
ORIEL_REGISTER_HOST_KERNEL("reshape", 0, MakeReshape);
ORIEL_REGISTER_HOST_KERNEL("transpose", 0, kTranspose);
ORIEL_REGISTER_HOST_KERNEL("broadcast", 0, kBroadcast);
ORIEL_REGISTER_HOST_KERNEL("slice", 0, kSlice);
ORIEL_REGISTER_HOST_KERNEL("pad", 0, MakePad);
ORIEL_REGISTER_HOST_KERNEL("concat", 0, MakeConcat);

}  // namespace
}  // namespace oriel::kernels
