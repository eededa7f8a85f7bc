#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/multimodal/multimodal.h"

namespace oriel::kernels {

absl::Status CheckMergeMask(const char* kernel, const MergeShape& shape, const uint8_t* mask) {
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    const uint8_t* row = mask + sample * shape.length;
    int64_t count = 0;
    for (int64_t j = 0; j < shape.length; ++j) count += row[j] != 0;
    if (count > shape.features) {
      return absl::InvalidArgumentError(
          TooManyPositions(kernel, sample, absl::StrCat(count), absl::StrCat(shape.features)));
    }
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<KernelFn> MakeMergeFeatures(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const MergeShape shape, MergeShape::Make(spec));
  const int threads = spec.num_threads;
  return KernelFn([shape, threads](const KernelArgs& args) {
    const char* input = args.operand<char>(0);
    const uint8_t* mask = args.operand<uint8_t>(1);
    const char* features = args.operand<char>(2);
    char* result = args.result<char>(0);
    absl::Status status = CheckMergeMask("merge_features", shape, mask);
    if (!status.ok()) return status;
    ParallelFor(threads, shape.batch, shape.length * shape.width / 4,
                [=](int64_t begin, int64_t end) {
                  for (int64_t sample = begin; sample < end; ++sample) {
                    const char* feature = features + sample * shape.features * shape.width;
                    for (int64_t j = 0; j < shape.length; ++j) {
                      const int64_t row = sample * shape.length + j;
                      const bool image = mask[row] != 0;
                      std::memcpy(result + row * shape.width,
                                  image ? feature : input + row * shape.width, shape.width);
                      if (image) feature += shape.width;
                    }
                  }
                });
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeMergeFeaturesGrad(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const MergeShape shape, MergeShape::MakeGrad(spec));
  const int threads = spec.num_threads;
  return KernelFn([shape, threads](const KernelArgs& args) {
    const char* cotangent = args.operand<char>(0);
    const uint8_t* mask = args.operand<uint8_t>(1);
    char* input_grad = args.result<char>(0);
    char* features_grad = args.result<char>(1);
    absl::Status status = CheckMergeMask("merge_features_grad", shape, mask);
    if (!status.ok()) return status;
    ParallelFor(threads, shape.batch, shape.length * shape.width / 4,
                [=](int64_t begin, int64_t end) {
                  for (int64_t sample = begin; sample < end; ++sample) {
                    char* feature = features_grad + sample * shape.features * shape.width;
                    char* const last = feature + shape.features * shape.width;
                    for (int64_t j = 0; j < shape.length; ++j) {
                      const int64_t row = sample * shape.length + j;
                      const char* from = cotangent + row * shape.width;
                      char* to = input_grad + row * shape.width;
                      if (mask[row] != 0) {
                        std::memcpy(feature, from, shape.width);
                        std::memset(to, 0, shape.width);
                        feature += shape.width;
                      } else {
                        std::memcpy(to, from, shape.width);
                      }
                    }
                    std::memset(feature, 0,
                                last - feature);  // the dummy features of absent images
                  }
                });
    return absl::OkStatus();
  });
}

ORIEL_REGISTER_HOST_KERNEL("merge_features", 0, MakeMergeFeatures);
ORIEL_REGISTER_HOST_KERNEL("merge_features_grad", 0, MakeMergeFeaturesGrad);

}  // namespace
}  // namespace oriel::kernels
