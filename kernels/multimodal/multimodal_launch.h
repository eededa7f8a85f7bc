// What the device code of multimodal/ is launched with.
#ifndef ORIEL_KERNELS_MULTIMODAL_MULTIMODAL_LAUNCH_H_
#define ORIEL_KERNELS_MULTIMODAL_MULTIMODAL_LAUNCH_H_

#include <cstdint>

namespace oriel::kernels::cuda {

inline constexpr int kMergeThreads = 256;
// Elements of a flat mask that one block numbers.
inline constexpr int64_t kScatterPiece = 4096;

struct MergeLaunch {
  int64_t count;          // elements of the sequences
  int64_t feature_count;  // elements of the features
  int64_t length;         // positions of a sample
  int64_t features;       // feature rows of a sample
  int64_t units;          // elements of a row
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_MULTIMODAL_MULTIMODAL_LAUNCH_H_
