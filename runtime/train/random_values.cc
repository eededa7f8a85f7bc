#include "runtime/train/random_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/common/parallel.h"
#include "kernels/random/normal.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/philox.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/convert.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kLanes = 4;     // elements that one call of the generator makes
constexpr int64_t kBlocks = 256;  // calls at a time, at most
constexpr int64_t kChunk = kLanes * kBlocks;

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
      const float radius = std::sqrt(kernels::SquaredRadius(words.lane[pair][i]));
      float sine, cosine;
      kernels::SinCosOfTurn(words.lane[pair + 1][i], &sine, &cosine);
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
      const float u = kernels::UniformOf(words.lane[j][i]);
      values[kLanes * i + j] = std::min(low + (high - low) * u, last);
    }
  }
}

// Makes elements of one parameter.
class Maker {
 public:
  Maker(const plan::InitialValue& initial, const std::string& parameter, DType dtype)
      : initial_(initial), name_(Fnv1a(parameter)), dtype_(dtype) {
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

std::optional<kernels::KernelSpec> InitialValueOnDevice(const plan::InitialValue& initial,
                                                        const std::string& parameter,
                                                        const TensorSpec& spec, const Box& box) {
  const TensorSpec piece{spec.dtype, box.size};
  if (initial.has_constant()) {
    return kernels::KernelSpec{"fill", {}, {piece}, {{"value", initial.constant()}}};
  }
  if (!initial.has_normal() && !initial.has_uniform()) return std::nullopt;
  const bool normal = initial.has_normal();
  return kernels::KernelSpec{
      "initial_value",
      {},
      {piece},
      {{"kind", normal ? "normal" : "uniform"},
       {"first", normal ? initial.normal().mean() : initial.uniform().low()},
       {"second", normal ? initial.normal().deviation() : initial.uniform().high()},
       {"seed", static_cast<int64_t>(initial.seed())},
       {"name", static_cast<int64_t>(Fnv1a(parameter))},
       {"shape", std::vector<int64_t>(spec.shape.begin(), spec.shape.end())},
       {"start", std::vector<int64_t>(box.start.begin(), box.start.end())}}};
}

}  // namespace oriel::runtime
