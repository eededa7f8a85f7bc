#include "runtime/train/random_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/common/parallel.h"
#include "runtime/base/philox.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/convert.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kLanes = 4;     // elements that one call of the generator makes
constexpr int64_t kBlocks = 256;  // calls at a time, at most
constexpr int64_t kChunk = kLanes * kBlocks;

uint64_t HashOfName(const std::string& name) {  // FNV-1a, 64 bits
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Natural logarithm of a normal number above 0: x = m 2^e with m in [1/√2, √2), and
// ln m = 2 artanh(s), s = (m - 1) / (m + 1), whose series is good to 1e-9 behind s^9.
inline float Log(float x) {
  const int32_t bits = __builtin_bit_cast(int32_t, x);
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const int32_t exponent = (bits - kRootHalf) >> 23;
  const float m = __builtin_bit_cast(float, bits - exponent * (1 << 23));
  const float s = (m - 1.0f) / (m + 1.0f);
  const float z = s * s;
  float p = 2.0f / 9;
  p = p * z + 2.0f / 7;
  p = p * z + 2.0f / 5;
  p = p * z + 2.0f / 3;
  p = p * z + 2.0f;
  return static_cast<float>(exponent) * 0.69314718f + s * p;
}

// A word as a fraction of a turn: the quadrant is exact, and within it Taylor's series on
// [-π/4, π/4] are good to 2e-9.
inline void SinCosOfTurn(uint32_t turn, float* sine, float* cosine) {
  const uint32_t quadrant = (turn + (uint32_t{1} << 29)) >> 30;
  const auto rest = static_cast<int32_t>(turn - (quadrant << 30));
  const float x = static_cast<float>(rest) * (1.57079633f * 0x1p-30f);
  const float z = x * x;
  float s = 1.0f / 362880;
  s = s * z - 1.0f / 5040;
  s = s * z + 1.0f / 120;
  s = s * z - 1.0f / 6;
  s = x + x * (s * z);
  float c = -1.0f / 3628800;
  c = c * z + 1.0f / 40320;
  c = c * z - 1.0f / 720;
  c = c * z + 1.0f / 24;
  c = c * z - 0.5f;
  c = c * z + 1.0f;
  const bool swapped = (quadrant & 1) != 0;
  const float a = swapped ? c : s, b = swapped ? s : c;
  *sine = (quadrant & 2) != 0 ? -a : a;
  *cosine = ((quadrant + 1) & 2) != 0 ? -b : b;
}

// Words [lane][block] of consecutive blocks.
struct Words {
  uint32_t lane[kLanes][kBlocks];
};

void MakeWords(uint64_t seed, uint64_t name, uint64_t first_block, int64_t blocks, Words& words) {
  const PhiloxKey key = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int64_t i = 0; i < blocks; ++i) {
    const uint64_t block = first_block + i;
    const PhiloxCounter random =
        Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32)},
               key);
    for (int64_t j = 0; j < kLanes; ++j) words.lane[j][i] = random[j];
  }
}

void MakeNormals(const plan::InitialValue::Normal& normal, const Words& words, int64_t blocks,
                 float* values) {
  const auto mean = static_cast<float>(normal.mean());
  const auto deviation = static_cast<float>(normal.deviation());
  for (int64_t pair = 0; pair < kLanes; pair += 2) {
    for (int64_t i = 0; i < blocks; ++i) {
      // In (0, 1]: 31 bits and a half. Conversions from signed numbers are vector instructions.
      const auto bits = static_cast<int32_t>(words.lane[pair][i] >> 1);
      const float u = (static_cast<float>(bits) + 0.5f) * 0x1p-31f;
      // Rounding may make u 1, and its logarithm a little more than 0.
      const float radius = std::sqrt(std::max(0.0f, -2.0f * Log(u)));
      float sine, cosine;
      SinCosOfTurn(words.lane[pair + 1][i], &sine, &cosine);
      values[kLanes * i + pair] = mean + deviation * (radius * cosine);
      values[kLanes * i + pair + 1] = mean + deviation * (radius * sine);
    }
  }
}

void MakeUniforms(const plan::InitialValue::Uniform& uniform, const Words& words, int64_t blocks,
                  float* values) {
  const auto low = static_cast<float>(uniform.low()), high = static_cast<float>(uniform.high());
  // Rounding must not reach `high`.
  const float last = std::nextafter(high, low);
  for (int64_t j = 0; j < kLanes; ++j) {
    for (int64_t i = 0; i < blocks; ++i) {
      const float u = static_cast<float>(static_cast<int32_t>(words.lane[j][i] >> 8)) * 0x1p-24f;
      values[kLanes * i + j] = std::min(low + (high - low) * u, last);
    }
  }
}

// Makes elements of one parameter.
class Maker {
 public:
  Maker(const plan::InitialValue& initial, const std::string& parameter, DType dtype)
      : initial_(initial), name_(HashOfName(parameter)), dtype_(dtype) {
    if (initial.has_constant()) {
      std::fill_n(values_, kChunk, static_cast<float>(initial.constant()));
    }
  }

  // Elements [begin, end), of as many blocks as there is room for or fewer.
  void Make(int64_t begin, int64_t end, void* target) {
    const int64_t first = begin / kLanes, blocks = (end + kLanes - 1) / kLanes - first;
    if (!initial_.has_constant()) {
      MakeWords(initial_.seed(), name_, static_cast<uint64_t>(first), blocks, words_);
    }
    if (initial_.has_normal()) MakeNormals(initial_.normal(), words_, blocks, values_);
    if (initial_.has_uniform()) MakeUniforms(initial_.uniform(), words_, blocks, values_);
    // Floats into floats: can't fail.
    (void)ConvertElements(DType::kF32, values_ + (begin - first * kLanes), dtype_, target,
                          end - begin);
  }

 private:
  const plan::InitialValue& initial_;
  const uint64_t name_;
  const DType dtype_;
  Words words_;
  float values_[kChunk];
};

}  // namespace

absl::Status FillInitialValue(const plan::InitialValue& initial, const std::string& parameter,
                              const TensorSpec& spec, const Box& box, int num_threads,
                              void* target) {
  if (!IsMade(initial) || !IsConvertible(DType::kF32, spec.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("the initial value of ", parameter, " (",
                                                   std::string(DTypeName(spec.dtype)),
                                                   ") is not one to be made"));
  }
  const int64_t width = DTypeBytes(spec.dtype);
  const BoxRuns runs(WholeBox(spec.shape), box);
  // A run takes so many chunks, wherever in a chunk it begins.
  const int64_t chunks = (runs.length() + kChunk - 2) / kChunk + 1;
  kernels::ParallelFor(
      num_threads, runs.count() * chunks, std::min(runs.length(), kChunk) * 50,
      [&](int64_t from, int64_t to) {
        Maker maker(initial, parameter, spec.dtype);
        for (int64_t unit = from; unit < to; ++unit) {
          const auto [index, offset] = runs[unit / chunks];
          const int64_t chunk = index / kChunk + unit % chunks;
          const int64_t begin = std::max(index, chunk * kChunk);
          const int64_t end = std::min(index + runs.length(), (chunk + 1) * kChunk);
          if (begin >= end) continue;
          maker.Make(begin, end, static_cast<char*>(target) + (offset + begin - index) * width);
        }
      });
  return absl::OkStatus();
}

}  // namespace oriel::runtime
