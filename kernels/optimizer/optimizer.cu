// sgd, sgd_momentum, adamw and sum_squares; see optimizer.h for operands.
//
// Numbers: elements are computed in T, the parameter's type, a gradient of bf16 is widened; results
// are assigned, and rounded to bf16 once more where that is asked for. Coefficients of a step are
// taken in double by one thread of each block.
//   sgd    p' = p - rate (scale g + decay p)
//   sgd_momentum  d = scale g + decay p; b' = momentum b + d
//          p' = p - rate b', or p - rate (d + momentum b')
//          (Sutskever et al., On the importance of initialization and momentum in deep learning)
//   adamw  g' = scale g; m' = β1 m + (1 - β1) g'; v' = β2 v + (1 - β2) g'²
//          p' = (1 - rate decay) p - rate / (1 - β1^step) m' / (√v' / √(1 - β2^step) + ε)
//          (Loshchilov and Hutter, Decoupled Weight Decay Regularization, algorithm 2)
//   Of p in bf16 with a remainder, both are joined to f32 and split again
//   (runtime/base/remainder.h). sum_squares: a block sums a chunk of kSquaresChunk elements, each
//   thread its own in T, then
//          threads in double in the order of rows.cuh; one block sums the chunks in double.
// A block steps chunks of kStepChunk elements of all tensors of the launch in turn.
// Bytes over the memory, of f32 with a gradient of f32: sgd 12 per element, sgd_momentum 20, adamw
// 28, 2 more where it is rounded, as many with a remainder as without rounding; sum_squares 4.
#include "kernels/cuda/rows.cuh"
#include "kernels/optimizer/optimizer_args.h"
#include "runtime/base/remainder.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = 4;  // elements of a parameter in one access; of f64 in two

template <typename T>
struct Step {
  T scale, keep, b1, c1, b2, c2, step_size, root_scale, epsilon;
};

template <typename T>
__device__ void SetStep(const StepArgs& args, const T* scale, const T* learning_rate,
                        const T* step_number, Step<T>* step) {
  const double rate = static_cast<double>(*learning_rate);
  const double number = static_cast<double>(*step_number);
  step->scale = *scale;
  step->keep = static_cast<T>(1 - rate * args.weight_decay);
  step->b1 = static_cast<T>(args.beta1);
  step->c1 = static_cast<T>(1 - args.beta1);
  step->b2 = static_cast<T>(args.beta2);
  step->c2 = static_cast<T>(1 - args.beta2);
  step->step_size = static_cast<T>(rate / (1 - pow(args.beta1, number)));
  step->root_scale = static_cast<T>(1 / sqrt(1 - pow(args.beta2, number)));
  step->epsilon = static_cast<T>(args.epsilon);
}

template <typename T>
__device__ void Update(const Step<T>& c, T gradient, T& p, T& m, T& v) {
  const T g = c.scale * gradient;
  m = c.b1 * m + c.c1 * g;
  v = c.b2 * v + c.c2 * (g * g);
  p = c.keep * p - c.step_size * m / (sqrt(v) * c.root_scale + c.epsilon);
}

// The last tensor that begins at or before the chunk.
__device__ int TensorOf(const int32_t* first_chunk, int used, int32_t chunk) {
  int low = 0, high = used;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first_chunk[middle] <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Calls step(tensor, begin, end) for the block's chunks.
template <typename F>
__device__ void ForEachChunk(const StepArgs& args, F step) {
  for (int32_t chunk = static_cast<int32_t>(blockIdx.x); chunk < args.first_chunk[args.used];
       chunk += static_cast<int32_t>(gridDim.x)) {
    const int i = TensorOf(args.first_chunk, args.used, chunk);
    const int64_t begin = static_cast<int64_t>(chunk - args.first_chunk[i]) * kStepChunk;
    const int64_t count = args.tensors[i].count;
    step(args.tensors[i], begin, begin + kStepChunk < count ? begin + kStepChunk : count);
  }
}

// What is stepped: a parameter of S, of bf16 with a remainder.
template <typename S>
struct Stepped {
  static constexpr bool kJoined = std::is_same_v<S, __nv_bfloat16>;
  using Bits = std::conditional_t<kJoined, uint16_t, S>;

  explicit __device__ Stepped(const StepTensor& tensor)
      : p(static_cast<const Bits*>(tensor.p)),
        new_p(static_cast<Bits*>(tensor.new_p)),
        remainder(static_cast<const int16_t*>(tensor.remainder)),
        behind(tensor.behind) {}

  template <int kCount>
  __device__ void Load(int64_t at, Compute<S> (&to)[kCount]) const {
    if constexpr (kJoined) {
      uint16_t rounded[kCount];
      int16_t rest[kCount];
      LoadPack(p + at, rounded);
      LoadPack(remainder + at, rest);
#pragma unroll
      for (int i = 0; i < kCount; ++i) to[i] = runtime::JoinRemainder(rounded[i], rest[i]);
    } else {
      LoadPack(p + at, to);
    }
  }

  template <int kCount>
  __device__ void Store(int64_t at, const Compute<S> (&from)[kCount]) const {
    if constexpr (kJoined) {
      uint16_t rounded[kCount];
      int16_t rest[kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        rounded[i] = runtime::RoundedAway(from[i]);
        rest[i] = runtime::RemainderOf(from[i]);
      }
      StorePack(new_p + at, rounded);
      StorePack(static_cast<int16_t*>(behind) + at, rest);
    } else {
      StorePack(new_p + at, from);
      if constexpr (std::is_same_v<S, float>) {
        if (behind != nullptr) StorePack(static_cast<__nv_bfloat16*>(behind) + at, from);
      }
    }
  }

  const Bits* p;
  Bits* new_p;
  const int16_t* remainder;
  void* behind;
};

// Results may be the operands' buffers: an element is read and written by one thread.
template <typename S, typename G>
__device__ void AdamW(const StepArgs& args, const Compute<S>* scale, const Compute<S>* rate,
                      const Compute<S>* number) {
  using T = Compute<S>;
  __shared__ Step<T> shared;
  if (threadIdx.x == 0) SetStep(args, scale, rate, number, &shared);
  __syncthreads();
  const Step<T> c = shared;
  ForEachChunk(args, [&](const StepTensor& tensor, int64_t begin, int64_t end) {
    const Stepped<S> p(tensor);
    const T *m = static_cast<const T*>(tensor.m), *v = static_cast<const T*>(tensor.v);
    const G* g = static_cast<const G*>(tensor.gradient);
    T *new_m = static_cast<T*>(tensor.new_m), *new_v = static_cast<T*>(tensor.new_v);
    const int64_t packed = begin + (end - begin) / kWidth * kWidth;
    for (int64_t at = begin + threadIdx.x * kWidth; at < packed; at += blockDim.x * kWidth) {
      T ps[kWidth], gs[kWidth], ms[kWidth], vs[kWidth];
      p.Load(at, ps);
      LoadPack(g + at, gs);
      LoadPack(m + at, ms);
      LoadPack(v + at, vs);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) Update(c, gs[i], ps[i], ms[i], vs[i]);
      StorePack(new_m + at, ms);
      StorePack(new_v + at, vs);
      p.Store(at, ps);
    }
    for (int64_t i = packed + threadIdx.x; i < end; i += blockDim.x) {
      T one_p[1], one_m = m[i], one_v = v[i];
      p.Load(i, one_p);
      Update(c, static_cast<T>(Widen(g[i])), one_p[0], one_m, one_v);
      new_m[i] = one_m;
      new_v[i] = one_v;
      p.Store(i, one_p);
    }
  });
}

template <typename S, typename G>
__device__ void Sgd(const StepArgs& args, const Compute<S>* scale,
                    const Compute<S>* learning_rate) {
  using T = Compute<S>;
  const T factor = *scale, rate = *learning_rate, decay = static_cast<T>(args.weight_decay);
  ForEachChunk(args, [&](const StepTensor& tensor, int64_t begin, int64_t end) {
    const Stepped<S> p(tensor);
    const G* g = static_cast<const G*>(tensor.gradient);
    const int64_t packed = begin + (end - begin) / kWidth * kWidth;
    for (int64_t at = begin + threadIdx.x * kWidth; at < packed; at += blockDim.x * kWidth) {
      T ps[kWidth], gs[kWidth];
      p.Load(at, ps);
      LoadPack(g + at, gs);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) ps[i] -= rate * (factor * gs[i] + decay * ps[i]);
      p.Store(at, ps);
    }
    for (int64_t i = packed + threadIdx.x; i < end; i += blockDim.x) {
      T one[1];
      p.Load(i, one);
      one[0] -= rate * (factor * static_cast<T>(Widen(g[i])) + decay * one[0]);
      p.Store(i, one);
    }
  });
}

template <typename T>
__device__ void Move(T gradient, T rate, T momentum, T own, T past, T& p, T& buffer) {
  buffer = momentum * buffer + gradient;
  p -= rate * (own * gradient + past * buffer);
}

template <typename S, typename G>
__device__ void SgdMomentum(const StepArgs& args, const Compute<S>* scale,
                            const Compute<S>* learning_rate) {
  using T = Compute<S>;
  const T factor = *scale, rate = *learning_rate, decay = static_cast<T>(args.weight_decay);
  const T momentum = static_cast<T>(args.momentum);
  const T own = args.nesterov != 0 ? T(1) : T(0), past = args.nesterov != 0 ? momentum : T(1);
  ForEachChunk(args, [&](const StepTensor& tensor, int64_t begin, int64_t end) {
    const Stepped<S> p(tensor);
    const T* buffer = static_cast<const T*>(tensor.m);
    const G* g = static_cast<const G*>(tensor.gradient);
    T* new_buffer = static_cast<T*>(tensor.new_m);
    const int64_t packed = begin + (end - begin) / kWidth * kWidth;
    for (int64_t at = begin + threadIdx.x * kWidth; at < packed; at += blockDim.x * kWidth) {
      T ps[kWidth], gs[kWidth], bs[kWidth];
      p.Load(at, ps);
      LoadPack(g + at, gs);
      LoadPack(buffer + at, bs);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        Move(factor * gs[i] + decay * ps[i], rate, momentum, own, past, ps[i], bs[i]);
      }
      StorePack(new_buffer + at, bs);
      p.Store(at, ps);
    }
    for (int64_t i = packed + threadIdx.x; i < end; i += blockDim.x) {
      T one[1], moved = buffer[i];
      p.Load(i, one);
      Move(factor * static_cast<T>(Widen(g[i])) + decay * one[0], rate, momentum, own, past, one[0],
           moved);
      new_buffer[i] = moved;
      p.Store(i, one);
    }
  });
}

template <typename S>
__device__ double ChunkSquares(const S* x, int64_t begin, int64_t end) {
  constexpr int kPack = kPackOf<S>;
  constexpr int kAhead = 4;  // packs that are under way at a time
  Compute<S> sum = 0;
  const int64_t packs = (end - begin) / kPack, step = blockDim.x;
  const auto add = [&](const Compute<S>(&v)[kPack]) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum += v[i] * v[i];
  };
  int64_t pack = threadIdx.x;
  for (; pack + (kAhead - 1) * step < packs; pack += kAhead * step) {
    Compute<S> v[kAhead][kPack];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) LoadPack(x + begin + (pack + k * step) * kPack, v[k]);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) add(v[k]);
  }
  for (; pack < packs; pack += step) {
    Compute<S> v[kPack];
    LoadPack(x + begin + pack * kPack, v);
    add(v);
  }
  for (int64_t i = begin + packs * kPack + threadIdx.x; i < end; i += blockDim.x) {
    const Compute<S> v = Widen(x[i]);
    sum += v * v;
  }
  return static_cast<double>(sum);
}

// A block for each chunk.
template <typename T>
__device__ void Squares(const SquaresArgs& args, double* sums) {
  const int32_t block = static_cast<int32_t>(blockIdx.x);
  const int low = TensorOf(args.first_block, args.used, block);
  const int64_t begin = static_cast<int64_t>(block - args.first_block[low]) * kSquaresChunk;
  const int64_t count = args.counts[low];
  const int64_t end = begin + kSquaresChunk < count ? begin + kSquaresChunk : count;
  const void* x = args.tensors[low];
  const bool is_bf16 = (args.is_bf16[low / 32] >> (low % 32) & 1) != 0;
  const double sum = is_bf16 ? ChunkSquares(static_cast<const __nv_bfloat16*>(x), begin, end)
                             : ChunkSquares(static_cast<const T*>(x), begin, end);
  const double total = GroupSum(sum);
  if (threadIdx.x == 0) sums[block] = total;
}

template <typename T>
__device__ void FinishSquares(const double* sums, int64_t count, T* result) {
  constexpr int kLoaded = 8;  // at a time
  double sum = 0;
  for (int64_t begin = threadIdx.x; begin < count; begin += kLoaded * blockDim.x) {
    double part[kLoaded];
#pragma unroll
    for (int i = 0; i < kLoaded; ++i) {
      const int64_t at = begin + i * blockDim.x;
      part[i] = at < count ? sums[at] : 0.0;
    }
#pragma unroll
    for (int i = 0; i < kLoaded; ++i) sum += part[i];
  }
  sum = GroupSum(sum);
  if (threadIdx.x == 0) *result = static_cast<T>(sum);
}

}  // namespace

#define ORIEL_STEP_KERNELS(S, type, G, gradient)                                                 \
  ORIEL_CUDA_KERNEL(kThreads, oriel_adamw_##type##_##gradient, const StepArgs args,              \
                    const Compute<S>* scale, const Compute<S>* rate, const Compute<S>* number) { \
    AdamW<S, G>(args, scale, rate, number);                                                      \
  }                                                                                              \
  ORIEL_CUDA_KERNEL(kThreads, oriel_sgd_##type##_##gradient, const StepArgs args,                \
                    const Compute<S>* scale, const Compute<S>* rate) {                           \
    Sgd<S, G>(args, scale, rate);                                                                \
  }                                                                                              \
  ORIEL_CUDA_KERNEL(kThreads, oriel_sgd_momentum_##type##_##gradient, const StepArgs args,       \
                    const Compute<S>* scale, const Compute<S>* rate) {                           \
    SgdMomentum<S, G>(args, scale, rate);                                                        \
  }
ORIEL_STEP_KERNELS(float, f32, float, f32)
ORIEL_STEP_KERNELS(float, f32, __nv_bfloat16, bf16)
ORIEL_STEP_KERNELS(__nv_bfloat16, bf16, float, f32)
ORIEL_STEP_KERNELS(__nv_bfloat16, bf16, __nv_bfloat16, bf16)
ORIEL_STEP_KERNELS(double, f64, double, f64)

ORIEL_CUDA_KERNEL(kThreads, oriel_sum_squares_f32, const SquaresArgs args, double* sums) {
  Squares<float>(args, sums);
}
ORIEL_CUDA_KERNEL(kThreads, oriel_sum_squares_f64, const SquaresArgs args, double* sums) {
  Squares<double>(args, sums);
}
ORIEL_CUDA_KERNEL(kMaxGroup, oriel_finish_squares_f32, const double* sums, int64_t count,
                  float* result) {
  FinishSquares(sums, count, result);
}
ORIEL_CUDA_KERNEL(kMaxGroup, oriel_finish_squares_f64, const double* sums, int64_t count,
                  double* result) {
  FinishSquares(sums, count, result);
}

}  // namespace oriel::kernels::cuda
