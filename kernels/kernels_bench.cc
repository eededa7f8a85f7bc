// Times single kernels at the shapes of a transformer layer, one JSON object per line.
//
//   oriel_kernels_bench [--bf16] [threads] [batch length hidden heads feed_forward vocabulary]
//
// With --bf16 activations and weights are bf16; statistics, gradients of weights and what the
// optimizer steps stay f32.
//
//   us       smallest wall time of a launch
//   gflops   multiply-adds of the product or attention, counted twice, over `us`; 0 for others
//   gbps     bytes of operands and results over `us`
//   widened  bytes of scratch memory for operands and results in f32
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/common/aligned.h"
#include "kernels/common/bfloat16.h"
#include "kernels/common/widened.h"
#include "kernels/kernel.h"

namespace oriel::kernels {
namespace {

using Ints = std::vector<int64_t>;

struct Launch {
  std::string kernel;
  std::vector<TensorSpec> operands;
  std::vector<TensorSpec> results;
  std::map<std::string, Attribute> attributes;
  double flops = 0;
};

// Memory of one tensor: small positive floats, zeros for integers.
template <typename S>
void FillFloats(int64_t count, char* memory) {
  S* values = reinterpret_cast<S*>(memory);
  for (int64_t i = 0; i < count; ++i) values[i] = 0.1f + 0.001f * static_cast<float>(i % 997);
}

AlignedVector<char> Allocate(const TensorSpec& spec) {
  AlignedVector<char> memory(spec.bytes());
  if (spec.dtype == DType::kF32) FillFloats<float>(spec.num_elements(), memory.data());
  if (spec.dtype == DType::kBF16) FillFloats<BFloat16>(spec.num_elements(), memory.data());
  return memory;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int Measure(const Launch& launch, int threads) {
  const KernelSpec spec{launch.kernel, launch.operands, launch.results, launch.attributes, threads};
  absl::StatusOr<KernelFn> function = KernelRegistry::Host().Prepare(spec);
  std::vector<AlignedVector<char>> memory;
  std::vector<const void*> operands;
  std::vector<void*> results;
  double bytes = 0;
  std::string shapes;
  for (const TensorSpec& operand : launch.operands) {
    memory.push_back(Allocate(operand));
    operands.push_back(memory.back().data());
    bytes += static_cast<double>(operand.bytes());
    shapes += (shapes.empty() ? "" : " ") + operand.ToString();
  }
  for (const TensorSpec& result : launch.results) {
    memory.push_back(Allocate(result));
    results.push_back(memory.back().data());
    bytes += static_cast<double>(result.bytes());
  }
  absl::Status status = function.status();
  double best = 1e9;
  const double start = Seconds();
  for (int run = 0; status.ok() && (run < 10 || Seconds() - start < 0.1); ++run) {
    const double before = Seconds();
    status = (*function)({operands.data(), results.data()});
    best = std::min(best, Seconds() - before);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\n", launch.kernel.c_str(), status.ToString().c_str());
    return 1;
  }
  std::printf(
      "{\"kernel\": \"%s\", \"operands\": \"%s\", \"us\": %.1f, \"gflops\": %.0f, \"gbps\": "
      "%.1f, \"widened\": %lld}\n",
      launch.kernel.c_str(), shapes.c_str(), best * 1e6, launch.flops / best * 1e-9,
      bytes / best * 1e-9, static_cast<long long>(WidenedBytes(*function)));
  return 0;
}

TensorSpec F32(const Shape& shape) { return {DType::kF32, shape}; }

// Activations and weights are of `dtype`.
std::vector<Launch> LayerLaunches(DType dtype, int64_t batch, int64_t length, int64_t hidden,
                                  int64_t heads, int64_t wide, int64_t vocabulary) {
  const auto of = [dtype](const Shape& shape) { return TensorSpec{dtype, shape}; };
  const int64_t rows = batch * length;
  const TensorSpec x = of({rows, hidden}), y = of({rows, wide}), w = of({hidden});
  const TensorSpec row = F32({rows}), scalar = F32({}), logits = of({rows, vocabulary});
  const TensorSpec labels{DType::kI64, {rows}};
  const TensorSpec q = of({batch, heads, length, hidden / heads}), dw = F32({hidden});
  const TensorSpec angles = F32({1, 1, length, hidden / heads});
  const TensorSpec lse = F32({batch, heads, length});
  const TensorSpec p = F32({hidden * wide});
  const std::map<std::string, Attribute> stored = {{"transpose_weight", int64_t{1}}};
  const std::map<std::string, Attribute> epsilon = {{"epsilon", 1e-5}};
  const std::map<std::string, Attribute> causal = {{"scale", 0.125}, {"causal", int64_t{1}}};
  const std::map<std::string, Attribute> silu = {{"kind", "silu"}};
  const double product = 2.0 * static_cast<double>(rows * hidden * wide);
  const double scores = 2.0 * static_cast<double>(rows * length * hidden);
  return {
      {"add", {x, x}, {x}, {}},
      {"linear", {x, of({wide, hidden})}, {y}, stored, product},
      {"linear", {y, of({wide, hidden})}, {x}, {}, product},
      {"linear_weight_grad", {x, y}, {F32({wide, hidden})}, stored, product},
      {"rms_norm", {x, w}, {x, row}, epsilon},
      {"rms_norm_grad", {x, x, w, row}, {x, dw}, {}},
      {"layer_norm", {x, w, w}, {x, row, row}, epsilon},
      {"layer_norm_grad", {x, x, w, row, row}, {x, dw, dw}, {}},
      // Causality halves the work: two products forward, five backward.
      {"attention", {q, q, q}, {q, lse}, causal, scores},
      {"attention_grad", {q, q, q, q, q, lse}, {q, q, q}, causal, 2.5 * scores},
      {"rope", {q, angles, angles}, {q}, {}},
      {"transpose",
       {of({batch, length, heads, hidden / heads})},
       {q},
       {{"permutation", Ints{0, 2, 1, 3}}}},
      {"gated_activation", {y, y}, {y}, silu},
      {"gated_activation_grad", {y, y, y}, {y, y}, silu},
      {"activation", {y}, {y}, {{"kind", "gelu"}}},
      {"softmax", {x}, {x}, {{"dim", int64_t{1}}}},
      {"reduce_sum", {x}, {dw}, {{"dims", Ints{0}}}},
      {"gather", {of({vocabulary, hidden}), labels}, {x}, {{"dim", int64_t{0}}}},
      {"scatter_add", {labels, x}, {F32({vocabulary, hidden})}, {{"dim", int64_t{0}}}},
      {"cross_entropy", {logits, labels}, {scalar, scalar, row}, {}},
      {"token_losses", {logits, labels}, {row, row}, {}},
      {"cross_entropy_grad", {scalar, logits, labels, row}, {logits}, {}},
      {"adamw",
       {p, p, p, p, scalar, scalar, scalar},
       {p, p, p},
       {{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-8}, {"weight_decay", 0.01}}},
      {"sum_squares", {p}, {scalar}, {}},
  };
}

}  // namespace
}  // namespace oriel::kernels

int main(int argc, char** argv) {
  int64_t sizes[] = {1, 16, 64, 64, 4, 172, 256};
  auto dtype = oriel::kernels::DType::kF32;
  if (argc > 1 && std::strcmp(argv[1], "--bf16") == 0) {
    dtype = oriel::kernels::DType::kBF16;
    --argc;
    ++argv;
  }
  if (argc > 8) {
    std::fprintf(stderr,
                 "usage: oriel_kernels_bench [--bf16] [threads] [batch length hidden heads "
                 "feed_forward vocabulary]\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    sizes[i - 1] = std::atoll(argv[i]);
    if (sizes[i - 1] < 1) {
      std::fprintf(stderr, "%s is no size\n", argv[i]);
      return 2;
    }
  }
  int failures = 0;
  for (const auto& launch : oriel::kernels::LayerLaunches(dtype, sizes[1], sizes[2], sizes[3],
                                                          sizes[4], sizes[5], sizes[6])) {
    failures += oriel::kernels::Measure(launch, static_cast<int>(sizes[0]));
  }
  return failures == 0 ? 0 : 1;
}
