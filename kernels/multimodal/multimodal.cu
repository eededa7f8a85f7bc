// The merge of image features into text embeddings, see multimodal.h. Values are copied by bytes.
//
// Where a true position finds its feature row depends on how many are before it: one block counts a
// sample's positions (or one of many pieces of a flat mask), in order, and writes the numbers into
// scratch memory; what copies comes after.
#include "kernels/cuda/elements.cuh"
#include "kernels/multimodal/multimodal_launch.h"

namespace oriel::kernels::cuda {
namespace {

// How many of the block's threads before this one have `flag`, and `*all` of all. For all threads.
__device__ int CountBefore(bool flag, int* all) {
  __shared__ int warps[kMergeThreads / 32];
  const unsigned ballot = __ballot_sync(kWholeWarp, flag);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) warps[warp] = __popc(ballot);
  __syncthreads();
  int before = __popc(ballot & ((1u << lane) - 1));
  int total = 0;
  for (int i = 0; i < kMergeThreads / 32; ++i) {
    if (i < warp) before += warps[i];
    total += warps[i];
  }
  __syncthreads();
  *all = total;
  return before;
}

// Writes, for each element of mask[begin, end), how many true ones [begin, it) has. Gives the
// number of all. For all threads.
__device__ int64_t Number(const uint8_t* mask, int64_t begin, int64_t end, int32_t* numbers) {
  int64_t base = 0;
  for (int64_t first = begin; first < end; first += kMergeThreads) {
    const int64_t i = first + threadIdx.x;
    int all;
    const int before = CountBefore(i < end && mask[i] != 0, &all);
    if (i < end) numbers[i] = static_cast<int32_t>(base + before);
    base += all;
  }
  return base;
}

template <typename T>
__device__ void ZeroOr(bool keeps, const T* from, T* to) {
  *to = keeps ? *from : T{};
}

}  // namespace

// One block per sample: slots[b, s] is the feature row of a true position, -1 of others, and
// places[b, n] the position of a feature row, or -1. Rows beyond `features` are reported as of
// launch + sample and left alone.
ORIEL_CUDA_KERNEL(kMergeThreads, oriel_merge_slots, const uint8_t* mask, int64_t length,
                  int64_t features, int32_t* slots, int32_t* places, Fault* fault, int32_t launch) {
  const int64_t sample = blockIdx.x;
  mask += sample * length;
  slots += sample * length;
  places += sample * features;
  const int64_t count = Number(mask, 0, length, slots);
  if (count > features && threadIdx.x == 0) {
    ReportFault(fault, launch + static_cast<int32_t>(sample), kCountMismatch, count, features);
  }
  for (int64_t i = count + threadIdx.x; i < features; i += kMergeThreads) places[i] = -1;
  // Each thread goes on with the numbers that it wrote itself.
  for (int64_t i = threadIdx.x; i < length; i += kMergeThreads) {
    const int32_t slot = slots[i];
    const bool fits = mask[i] != 0 && slot < features;
    if (fits) places[slot] = static_cast<int32_t>(i);
    if (!fits) slots[i] = -1;
  }
}

// result[row] = slots[row] < 0 ? input[row] : features[sample, slots[row]], rows of `units`
// elements.
#define ORIEL_MERGE(bytes, T)                                                              \
  ORIEL_CUDA_KERNEL(kMergeThreads, oriel_merge_##bytes, MergeLaunch merge, const T* input, \
                    const T* features, const int32_t* slots, T* result) {                  \
    for (int64_t i = GlobalThread(); i < merge.count; i += GlobalThreads()) {              \
      const int64_t row = i / merge.units, unit = i - row * merge.units;                   \
      const int64_t slot = slots[row];                                                     \
      const int64_t feature = row / merge.length * merge.features + slot;                  \
      result[i] = slot < 0 ? input[i] : features[feature * merge.units + unit];            \
    }                                                                                      \
  }                                                                                        \
  /* The cotangent of rows that were not replaced; zero of others. */                      \
  ORIEL_CUDA_KERNEL(kMergeThreads, oriel_merge_input_grad_##bytes, MergeLaunch merge,      \
                    const T* cotangent, const int32_t* slots, T* grad) {                   \
    for (int64_t i = GlobalThread(); i < merge.count; i += GlobalThreads()) {              \
      ZeroOr(slots[i / merge.units] < 0, cotangent + i, grad + i);                         \
    }                                                                                      \
  }                                                                                        \
  /* The cotangent of where each feature row went; zero of those that went nowhere. */     \
  ORIEL_CUDA_KERNEL(kMergeThreads, oriel_merge_features_grad_##bytes, MergeLaunch merge,   \
                    const T* cotangent, const int32_t* places, T* grad) {                  \
    for (int64_t i = GlobalThread(); i < merge.feature_count; i += GlobalThreads()) {      \
      const int64_t row = i / merge.units, unit = i - row * merge.units;                   \
      const int64_t place = places[row];                                                   \
      const int64_t from = row / merge.features * merge.length + (place < 0 ? 0 : place);  \
      ZeroOr(place >= 0, cotangent + from * merge.units + unit, grad + i);                 \
    }                                                                                      \
  }
ORIEL_MERGE(1, uint8_t)
ORIEL_MERGE(2, uint16_t)
ORIEL_MERGE(4, uint32_t)
ORIEL_MERGE(8, uint64_t)
ORIEL_MERGE(16, uint4)

// One block per piece of a flat mask: the numbers within the piece, and how many it has.
ORIEL_CUDA_KERNEL(kMergeThreads, oriel_scatter_number, const uint8_t* mask, int64_t count,
                  int32_t* numbers, int64_t* pieces) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kScatterPiece;
  const int64_t end = begin + kScatterPiece < count ? begin + kScatterPiece : count;
  const int64_t selected = Number(mask, begin, end, numbers);
  if (threadIdx.x == 0) pieces[blockIdx.x] = selected;
}

// One block: what each piece has becomes what is before it; behind them, the sum of all.
ORIEL_CUDA_KERNEL(kMergeThreads, oriel_scatter_sum, int64_t* pieces, int64_t count,
                  int64_t available, Fault* fault, int32_t launch) {
  __shared__ int64_t warps[kMergeThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t sum = 0;
  for (int64_t first = 0; first < count; first += kMergeThreads) {
    const int64_t i = first + threadIdx.x;
    const int64_t own = i < count ? pieces[i] : 0;
    int64_t before = own;  // and up to it, of the warp's
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      const int64_t other = __shfl_up_sync(kWholeWarp, before, lanes);
      if (lane >= lanes) before += other;
    }
    if (lane == 31) warps[warp] = before;
    __syncthreads();
    before += sum - own;
    for (int w = 0; w < kMergeThreads / 32; ++w) {
      if (w < warp) before += warps[w];
      sum += warps[w];
    }
    if (i < count) pieces[i] = before;
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  pieces[count] = sum;
  if (fault != nullptr && sum > available) {
    ReportFault(fault, launch, kCountMismatch, sum, available);
  }
}

#define ORIEL_SCATTER(bytes, T)                                                                   \
  ORIEL_CUDA_KERNEL(kMergeThreads, oriel_scatter_##bytes, int64_t count, int64_t available,       \
                    const T* input, const uint8_t* mask, const T* source, const int32_t* numbers, \
                    const int64_t* pieces, T* result) {                                           \
    for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {                           \
      const int64_t from = pieces[i / kScatterPiece] + numbers[i];                                \
      result[i] = mask[i] != 0 && from < available ? source[from] : input[i];                     \
    }                                                                                             \
  }                                                                                               \
  /* input_grad of all elements, source_grad of those that were selected, and zeros behind. */    \
  ORIEL_CUDA_KERNEL(kMergeThreads, oriel_scatter_grad_##bytes, int64_t count, int64_t available,  \
                    const T* cotangent, const uint8_t* mask, const int32_t* numbers,              \
                    const int64_t* pieces, int64_t piece_count, T* input_grad, T* source_grad) {  \
    for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {                           \
      const int64_t to = pieces[i / kScatterPiece] + numbers[i];                                  \
      ZeroOr(mask[i] == 0, cotangent + i, input_grad + i);                                        \
      if (mask[i] != 0 && to < available) source_grad[to] = cotangent[i];                         \
    }                                                                                             \
    const int64_t taken = pieces[piece_count];                                                    \
    for (int64_t i = taken + GlobalThread(); i < available; i += GlobalThreads()) {               \
      source_grad[i] = T{};                                                                       \
    }                                                                                             \
  }
ORIEL_SCATTER(1, uint8_t)
ORIEL_SCATTER(2, uint16_t)
ORIEL_SCATTER(4, uint32_t)
ORIEL_SCATTER(8, uint64_t)

// One block per sample: its positions against the images it brought.
ORIEL_CUDA_KERNEL(kMergeThreads, oriel_check_image_slots, const uint8_t* mask, int64_t length,
                  const int64_t* images, int64_t rows, uint8_t* result, Fault* fault,
                  int32_t launch) {
  const int64_t sample = blockIdx.x;
  mask += sample * length;
  result += sample * length;
  int64_t slots = 0;
  for (int64_t first = 0; first < length; first += kMergeThreads) {
    const int64_t i = first + threadIdx.x;
    const uint8_t value = i < length ? mask[i] : uint8_t{0};
    int all;
    CountBefore(value != 0, &all);
    slots += all;
    if (i < length) result[i] = value;
  }
  // Divided rather than multiplied: the number may be anything.
  const int64_t declared = images[sample];
  if (threadIdx.x == 0 && (slots % rows != 0 || slots / rows != declared)) {
    ReportFault(fault, launch + static_cast<int32_t>(sample), kCountMismatch, slots, declared);
  }
}

}  // namespace oriel::kernels::cuda
