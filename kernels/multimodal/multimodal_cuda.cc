// The merge of image features on a device; see multimodal.h.
#include "absl/strings/str_cat.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/multimodal/multimodal.h"
#include "kernels/multimodal/multimodal_launch.h"

namespace oriel::kernels::cuda {
namespace {

// Where the numbers of `slots` and `places` lie in scratch memory.
int32_t* Slots(const Device& device) { return reinterpret_cast<int32_t*>(device.scratch()); }

// What merge_features and its gradient share: the numbering of each sample's positions, and rows as
// elements of up to 16 bytes.
struct Merge {
  MergeLaunch launch;
  int64_t batch;
  int64_t unit_bytes;
  Function number;
  int32_t first_fault;

  static absl::StatusOr<Merge> Make(const KernelSpec& spec, const MergeShape& shape,
                                    Device& device) {
    // Positions of a sample are counted in 32 bits.
    if (shape.length > INT32_MAX || shape.features > INT32_MAX || shape.batch > INT32_MAX) {
      return Unsupported(spec, "too many positions");
    }
    Merge merge{};
    merge.batch = shape.batch;
    merge.unit_bytes = 16;
    while (shape.width % merge.unit_bytes != 0) merge.unit_bytes /= 2;
    merge.launch.units = shape.width / merge.unit_bytes;
    merge.launch.length = shape.length;
    merge.launch.features = shape.features;
    merge.launch.count = shape.batch * shape.length * merge.launch.units;
    merge.launch.feature_count = shape.batch * shape.features * merge.launch.units;
    ORIEL_ASSIGN_OR_RETURN(merge.number, device.Find("oriel_merge_slots"));
    ORIEL_RETURN_IF_ERROR(device.AddScratch(shape.batch * (shape.length + shape.features) *
                                            static_cast<int64_t>(sizeof(int32_t))));
    // A launch for each sample, whose numbers follow each other.
    for (int64_t sample = 0; sample < shape.batch; ++sample) {
      const int32_t launch =
          device.NextLaunch(TooManyPositions(spec.kernel, sample, "{value}", "{limit}"));
      if (sample == 0) merge.first_fault = launch;
    }
    return merge;
  }

  absl::StatusOr<Function> Find(const Device& device, const char* stem) const {
    return device.Find(absl::StrCat(stem, unit_bytes));
  }
  int32_t* Places(const Device& device) const { return Slots(device) + batch * launch.length; }

  absl::Status Number(const Device& device, CUstream stream, const void* mask) const {
    if (batch == 0) return absl::OkStatus();
    return number.Launch({static_cast<unsigned>(batch)}, {kMergeThreads}, stream, mask,
                         launch.length, launch.features, Slots(device), Places(device),
                         device.fault(), first_fault);
  }
};

absl::StatusOr<KernelFn> MakeMergeFeatures(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const MergeShape shape, MergeShape::Make(spec));
  ORIEL_ASSIGN_OR_RETURN(const Merge merge, Merge::Make(spec, shape, device));
  ORIEL_ASSIGN_OR_RETURN(const Function copy, merge.Find(device, "oriel_merge_"));
  const Grid blocks = BlocksFor(device, merge.launch.count, kMergeThreads);
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    ORIEL_RETURN_IF_ERROR(merge.Number(device, StreamOf(args), args.operands[1]));
    if (merge.launch.count == 0) return absl::OkStatus();
    return copy.Launch(blocks, {kMergeThreads}, StreamOf(args), merge.launch, args.operands[0],
                       args.operands[2], Slots(device), args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeMergeFeaturesGrad(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const MergeShape shape, MergeShape::MakeGrad(spec));
  ORIEL_ASSIGN_OR_RETURN(const Merge merge, Merge::Make(spec, shape, device));
  ORIEL_ASSIGN_OR_RETURN(const Function input, merge.Find(device, "oriel_merge_input_grad_"));
  ORIEL_ASSIGN_OR_RETURN(const Function features, merge.Find(device, "oriel_merge_features_grad_"));
  const Grid blocks = BlocksFor(device, merge.launch.count, kMergeThreads);
  const Grid feature_blocks = BlocksFor(device, merge.launch.feature_count, kMergeThreads);
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    ORIEL_RETURN_IF_ERROR(merge.Number(device, stream, args.operands[1]));
    if (merge.launch.count > 0) {
      ORIEL_RETURN_IF_ERROR(input.Launch(blocks, {kMergeThreads}, stream, merge.launch,
                                         args.operands[0], Slots(device), args.results[0]));
    }
    if (merge.launch.feature_count == 0) return absl::OkStatus();
    return features.Launch(feature_blocks, {kMergeThreads}, stream, merge.launch, args.operands[0],
                           merge.Places(device), args.results[1]);
  });
}

// The numbering of a flat mask's true elements.
struct Scatter {
  int64_t count, available, pieces;
  Function number, sum;

  static absl::StatusOr<Scatter> Make(int64_t count, int64_t available, Device& device) {
    Scatter scatter{count, available, (count + kScatterPiece - 1) / kScatterPiece, {}, {}};
    ORIEL_ASSIGN_OR_RETURN(scatter.number, device.Find("oriel_scatter_number"));
    ORIEL_ASSIGN_OR_RETURN(scatter.sum, device.Find("oriel_scatter_sum"));
    ORIEL_RETURN_IF_ERROR(device.AddScratch((scatter.pieces + 1) * 8 + count * 4));
    return scatter;
  }
  static int64_t* Pieces(const Device& device) {
    return reinterpret_cast<int64_t*>(device.scratch());
  }
  int32_t* Numbers(const Device& device) const {
    return reinterpret_cast<int32_t*>(Pieces(device) + pieces + 1);
  }
  absl::Status Run(const Device& device, CUstream stream, const void* mask, CUdeviceptr fault,
                   int32_t launch) const {
    if (pieces > 0) {
      ORIEL_RETURN_IF_ERROR(number.Launch({static_cast<unsigned>(pieces)}, {kMergeThreads}, stream,
                                          mask, count, Numbers(device), Pieces(device)));
    }
    return sum.Launch({1}, {kMergeThreads}, stream, Pieces(device), pieces, available, fault,
                      launch);
  }
};

absl::StatusOr<KernelFn> MakeMaskedScatter(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckMaskedScatter(spec));
  ORIEL_ASSIGN_OR_RETURN(
      const Scatter scatter,
      Scatter::Make(spec.operands[0].num_elements(), spec.operands[2].num_elements(), device));
  ORIEL_ASSIGN_OR_RETURN(
      const Function copy,
      device.Find(absl::StrCat("oriel_scatter_", runtime::DTypeBytes(spec.operands[0].dtype))));
  const int32_t launch = device.NextLaunch(
      "masked_scatter: the mask selects {value} elements, but the source has {limit}");
  const Grid blocks = BlocksFor(device, scatter.count, kMergeThreads);
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    ORIEL_RETURN_IF_ERROR(scatter.Run(device, stream, args.operands[1], device.fault(), launch));
    if (scatter.count == 0) return absl::OkStatus();
    return copy.Launch(blocks, {kMergeThreads}, stream, scatter.count, scatter.available,
                       args.operands[0], args.operands[1], args.operands[2],
                       scatter.Numbers(device), Scatter::Pieces(device), args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeMaskedScatterGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckMaskedScatterGrad(spec));
  const TensorSpec& cotangent = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(
      const Scatter scatter,
      Scatter::Make(cotangent.num_elements(), spec.results[1].num_elements(), device));
  ORIEL_ASSIGN_OR_RETURN(
      const Function copy,
      device.Find(absl::StrCat("oriel_scatter_grad_", runtime::DTypeBytes(cotangent.dtype))));
  const Grid blocks = BlocksFor(device, std::max(scatter.count, scatter.available), kMergeThreads);
  return KernelFn([=, &device](const KernelArgs& args) -> absl::Status {
    const CUstream stream = StreamOf(args);
    // A mask that selects too much was refused by masked_scatter.
    ORIEL_RETURN_IF_ERROR(scatter.Run(device, stream, args.operands[1], CUdeviceptr{0}, 0));
    return copy.Launch(blocks, {kMergeThreads}, stream, scatter.count, scatter.available,
                       args.operands[0], args.operands[1], scatter.Numbers(device),
                       Scatter::Pieces(device), scatter.pieces, args.results[0], args.results[1]);
  });
}

absl::StatusOr<KernelFn> MakeCheckImageSlots(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const int64_t rows, RowsPerImage(spec));
  const int64_t samples = spec.operands[0].shape[0], length = spec.operands[0].shape[1];
  ORIEL_ASSIGN_OR_RETURN(const Function check, device.Find("oriel_check_image_slots"));
  int32_t first = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int32_t launch = device.NextLaunch(
        absl::StrCat("sample ", sample,
                     " of the microbatch has {value} image positions, but it brought {limit} "
                     "images of ",
                     rows, " positions each"));
    if (sample == 0) first = launch;
  }
  return KernelFn([=, fault = device.fault()](const KernelArgs& args) -> absl::Status {
    if (samples == 0) return absl::OkStatus();
    return check.Launch({static_cast<unsigned>(samples)}, {kMergeThreads}, StreamOf(args),
                        args.operands[0], length, args.operands[1], rows, args.results[0], fault,
                        first);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("masked_scatter", 0, MakeMaskedScatter);
ORIEL_REGISTER_CUDA_KERNEL("masked_scatter_grad", 0, MakeMaskedScatterGrad);
ORIEL_REGISTER_CUDA_KERNEL("merge_features", 0, MakeMergeFeatures);
ORIEL_REGISTER_CUDA_KERNEL("merge_features_grad", 0, MakeMergeFeaturesGrad);
ORIEL_REGISTER_CUDA_KERNEL("check_image_slots", 0, MakeCheckImageSlots);

}  // namespace
}  // namespace oriel::kernels::cuda
