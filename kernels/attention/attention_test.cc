#include "kernels/attention/attention.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using testing::kFloats;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;
using Values = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Case {
  const char* name;
  int64_t b, h, g, s, t, d, e;
  bool causal = false;
  Shape mask = {};  // empty: none
  bool bool_mask = false;
  int64_t window = 0;
  double softcap = 0;
  bool sequence_first = false;
  bool sink = false;
};

const Case kCases[] = {
    {"plain", 2, 2, 2, 5, 5, 4, 4},
    {"one row and key", 1, 1, 1, 1, 1, 3, 2},
    {"blocks of rows and odd sizes", 2, 3, 3, 77, 77, 20, 12},
    {"whole vectors", 2, 2, 1, 64, 64, 16, 16},
    {"wide heads", 1, 2, 2, 40, 40, 64, 64, true},
    {"causal", 2, 2, 2, 70, 70, 16, 16, true},
    {"causal, more keys than queries", 1, 2, 2, 5, 9, 4, 4, true},
    {"causal, rows that see nothing", 1, 2, 2, 9, 5, 4, 4, true},
    {"grouped queries", 2, 6, 2, 33, 47, 8, 24},
    {"grouped, causal, boolean mask of keys", 3, 4, 2, 50, 50, 16, 16, true, {3, 1, 1, 50}, true},
    {"full boolean mask", 2, 2, 2, 20, 31, 8, 8, false, {2, 2, 20, 31}, true},
    {"boolean mask of queries", 2, 2, 2, 20, 31, 8, 8, false, {1, 1, 20, 1}, true},
    {"float mask over batch and heads", 2, 2, 2, 20, 31, 8, 8, false, {1, 1, 20, 31}},
    {"full float mask", 2, 3, 1, 20, 31, 8, 8, false, {2, 3, 20, 31}},
    {"float mask of one number per head", 2, 2, 2, 20, 31, 8, 8, false, {1, 2, 1, 1}},
    {"boolean mask of whole vectors", 2, 2, 2, 5, 296, 8, 8, false, {2, 1, 5, 296}, true},
    {"float mask of whole vectors", 1, 2, 2, 5, 304, 8, 8, false, {1, 2, 1, 304}},
    {"causal window", 1, 2, 2, 100, 100, 8, 8, true, {}, false, 40},
    {"window of one", 1, 2, 1, 40, 40, 8, 8, true, {}, false, 1},
    {"window, not causal, more keys", 1, 2, 2, 33, 90, 8, 8, false, {}, false, 20},
    {"window, mask, rows that see nothing", 2, 2, 2, 50, 30, 8, 8, true, {2, 1, 1, 30}, true, 5},
    {"capped", 2, 2, 2, 40, 40, 16, 16, false, {}, false, 0, 0.7},
    {"capped, window, float mask", 2, 2, 1, 70, 70, 8, 8, true, {1, 1, 70, 70}, false, 40, 0.7},
    {"sequence first", 2, 6, 2, 33, 47, 8, 24, false, {}, false, 0, 0, true},
    {"sequence first, one head", 2, 1, 1, 40, 40, 16, 16, true, {}, false, 0, 0, true},
    {"sequence first, all", 2, 4, 2, 70, 70, 20, 16, true, {2, 4, 70, 70}, true, 9, 0.7, true},
    {"sink", 2, 3, 3, 40, 40, 16, 16, false, {}, false, 0, 0, false, true},
    {"sink alone", 2, 4, 2, 9, 5, 8, 8, true, {2, 1, 9, 5}, true, 2, 0, false, true},
    {"sink, all", 2, 4, 2, 70, 70, 20, 16, true, {1, 4, 70, 70}, false, 9, 0.7, true, true},
    {"heads of 100 and 72", 1, 2, 1, 40, 70, 100, 72, true},
    {"heads of 72 and 128", 1, 2, 2, 33, 33, 72, 128, false, {1, 2, 33, 33}},
};

// [b, h, s, d] as [b, s, h, d], and back.
Tensor SwapHeads(const Tensor& x) {
  const Shape& shape = x.shape();
  const Values values = x.values();
  Values swapped;
  for (int64_t b = 0; b < shape[0]; ++b) {
    for (int64_t s = 0; s < shape[2]; ++s) {
      for (int64_t h = 0; h < shape[1]; ++h) {
        const auto row = values.begin() + ((b * shape[1] + h) * shape[2] + s) * shape[3];
        swapped.insert(swapped.end(), row, row + shape[3]);
      }
    }
  }
  return Tensor({x.spec().dtype, {shape[0], shape[2], shape[1], shape[3]}}, swapped);
}

double MaskAt(const Tensor& mask, const Values& values, int64_t b, int64_t h, int64_t i,
              int64_t j) {
  const int64_t index[] = {b, h, i, j};
  int64_t at = 0;
  for (int d = 0; d < 4; ++d) {
    const int64_t size = mask.shape()[d];
    at = at * size + (size == 1 ? 0 : index[d]);
  }
  return values[at];
}

struct Reference {
  Values result, logsumexp, dq, dk, dv;
};

Reference Compute(const Case& c, double scale, const Values& q, const Values& k, const Values& v,
                  const Tensor* mask, const Values& dy, const Values& sinks = {}) {
  Reference r;
  r.result.resize(c.b * c.h * c.s * c.e);
  r.logsumexp.resize(c.b * c.h * c.s);
  r.dq.resize(q.size());
  r.dk.resize(k.size());
  r.dv.resize(v.size());
  const Values mask_values = mask != nullptr ? mask->values() : Values();
  for (int64_t b = 0; b < c.b; ++b) {
    for (int64_t h = 0; h < c.h; ++h) {
      const int64_t kv = b * c.g + h / (c.h / c.g);
      for (int64_t i = 0; i < c.s; ++i) {
        const int64_t row = (b * c.h + h) * c.s + i;
        Values p(c.t), cap_slope(c.t, 1.0);
        double max = -kInfinity, sum = 0;
        for (int64_t j = 0; j < c.t; ++j) {
          for (int64_t x = 0; x < c.d; ++x) p[j] += q[row * c.d + x] * k[(kv * c.t + j) * c.d + x];
          p[j] *= scale;
          if (c.softcap > 0) {
            const double t = std::tanh(p[j] / c.softcap);
            p[j] = c.softcap * t;
            cap_slope[j] = 1 - t * t;
          }
          if (mask != nullptr) {
            const double m = MaskAt(*mask, mask_values, b, h, i, j);
            if (c.bool_mask) {
              if (m == 0) p[j] = -kInfinity;
            } else {
              p[j] += m;
            }
          }
          if (c.causal && j > i + c.t - c.s) p[j] = -kInfinity;
          if (c.window > 0 && j <= i + c.t - c.s - c.window) p[j] = -kInfinity;
          max = std::max(max, p[j]);
        }
        if (!sinks.empty()) max = std::max(max, sinks[h]);
        for (double& x : p) {
          x = max == -kInfinity ? 0 : std::exp(x - max);
          sum += x;
        }
        if (!sinks.empty()) sum += std::exp(sinks[h] - max);
        r.logsumexp[row] = max == -kInfinity ? -kInfinity : max + std::log(sum);
        for (double& x : p) x = sum > 0 ? x / sum : 0;
        double dot = 0;
        Values dp(c.t);
        for (int64_t j = 0; j < c.t; ++j) {
          for (int64_t x = 0; x < c.e; ++x) {
            const double value = v[(kv * c.t + j) * c.e + x];
            r.result[row * c.e + x] += p[j] * value;
            dp[j] += dy[row * c.e + x] * value;
            r.dv[(kv * c.t + j) * c.e + x] += p[j] * dy[row * c.e + x];
          }
          dot += p[j] * dp[j];
        }
        for (int64_t j = 0; j < c.t; ++j) {
          const double ds = scale * p[j] * (dp[j] - dot) * cap_slope[j];
          for (int64_t x = 0; x < c.d; ++x) {
            r.dq[row * c.d + x] += ds * k[(kv * c.t + j) * c.d + x];
            r.dk[(kv * c.t + j) * c.d + x] += ds * q[row * c.d + x];
          }
        }
      }
    }
  }
  return r;
}

struct Range {
  double low = -1, high = 1;
};

// Runs both kernels, the gradient on the forward's own results. Numbers of bf16 have a logsumexp of
// f32; their gradients see an output that is rounded, and are compared within `slack` roundings.
void Check(const Case& c, DType dtype, double scale, const Tensor* mask, double slack,
           Range queries = {}, Range keys = {}, Range sinks = {}) {
  const DType computed = dtype == DType::kBF16 ? DType::kF32 : dtype;
  const auto expect_gradient = [&](const Tensor& actual, const Values& expected) {
    if (dtype != DType::kBF16) return ExpectClose(actual, expected, slack);
    const Values values = actual.values();
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], slack * 0x1p-8 * std::max(1.0, std::fabs(expected[i])))
          << "element " << i;
    }
  };
  const Tensor q = Tensor::Random(dtype, {c.b, c.h, c.s, c.d}, 1, queries.low, queries.high);
  const Tensor k = Tensor::Random(dtype, {c.b, c.g, c.t, c.d}, 2, keys.low, keys.high);
  const Tensor v = Tensor::Random(dtype, {c.b, c.g, c.t, c.e}, 3);
  const Tensor dy = Tensor::Random(dtype, {c.b, c.h, c.s, c.e}, 4);
  Tensor sink;
  if (c.sink) sink = Tensor::Random(dtype, {c.h}, 6, sinks.low, sinks.high);
  const Reference expected = Compute(c, scale, q.values(), k.values(), v.values(), mask,
                                     dy.values(), c.sink ? sink.values() : Values());
  const Attributes attributes = {{"scale", scale},
                                 {"causal", int64_t{c.causal}},
                                 {"window", c.window},
                                 {"softcap", c.softcap},
                                 {"sequence_first", int64_t{c.sequence_first}}};
  const auto laid_out = [&](const Tensor& x) { return c.sequence_first ? SwapHeads(x) : x; };
  std::vector<Tensor> operands = {laid_out(q), laid_out(k), laid_out(v)};
  const std::vector<runtime::TensorSpec> specs = {operands[0].spec(), operands[1].spec(),
                                                  operands[2].spec()};
  if (mask != nullptr) operands.push_back(*mask);
  if (c.sink) operands.push_back(sink);
  const Tensor cotangent = laid_out(dy);
  const auto forward =
      RunKernel("attention", operands, {cotangent.spec(), {computed, {c.b, c.h, c.s}}}, attributes);
  ExpectClose(laid_out(forward[0]), expected.result, slack);
  ExpectClose(forward[1], expected.logsumexp, slack);
  operands.insert(operands.begin(), cotangent);
  operands.insert(operands.begin() + 4, {forward[0], forward[1]});
  const auto grads = RunKernel("attention_grad", operands, specs, attributes);
  expect_gradient(laid_out(grads[0]), expected.dq);
  expect_gradient(laid_out(grads[1]), expected.dk);
  expect_gradient(laid_out(grads[2]), expected.dv);
}

TEST(AttentionTest, ForwardAndGradient) {
  for (const Case& c : kCases) {
    for (DType dtype : kFloats) {
      SCOPED_TRACE(c.name);
      if (c.mask.empty()) {
        Check(c, dtype, 0.3, nullptr, 3);
      } else {
        const Tensor mask = Tensor::Random(c.bool_mask ? DType::kBool : dtype, c.mask, 5, -1, 1);
        Check(c, dtype, 0.3, &mask, 3);
      }
    }
  }
}

TEST(AttentionTest, BFloat16) {
  for (const Case& c : kCases) {
    if (c.b * c.h * c.s * c.t > 8000 && c.d < 100) continue;  // f32 has them
    SCOPED_TRACE(c.name);
    if (c.mask.empty()) {
      Check(c, DType::kBF16, 0.3, nullptr, 3);
    } else {
      const DType dtype = c.bool_mask ? DType::kBool : DType::kBF16;
      const Tensor mask = Tensor::Random(dtype, c.mask, 5, -1, 1);
      Check(c, DType::kBF16, 0.3, &mask, 3);
    }
  }
}

// Wider than any tile of columns that a product of registers has.
TEST(AttentionTest, HeadsOf200) {
  const Case c = {"", 1, 2, 1, 37, 37, 200, 160, true};
  Check(c, DType::kF32, 0.1, nullptr, 5);
  Check(c, DType::kBF16, 0.1, nullptr, 5);
}

TEST(AttentionTest, InfiniteAndHugeFloatMasks) {
  const Case c = {"", 1, 2, 2, 6, 6, 4, 4, false, {1, 1, 6, 6}};
  for (DType dtype : kFloats) {
    for (double hidden : {-kInfinity, -3.4e38, -1e9}) {
      Values values(36);
      for (int64_t i = 0; i < 36; ++i) values[i] = (i / 6 == 2 || i % 6 > i / 6) ? hidden : 0;
      const Tensor mask({dtype, c.mask}, values);  // row 2 is hidden altogether
      SCOPED_TRACE(hidden);
      if (hidden == -kInfinity) {
        Check(c, dtype, 0.5, &mask, 3);
      } else {
        // A row in which all scores are equally hidden attends evenly, as in PyTorch, but for
        // scores that f64 resolves; its probabilities don't come from a rounded logsumexp.
        const Tensor q = Tensor::Random(dtype, {1, 2, 6, 4}, 1),
                     v = Tensor::Random(dtype, {1, 2, 6, 4}, 2);
        const auto forward = RunKernel("attention", {q, q, v, mask}, {v.spec(), {dtype, {1, 2, 6}}},
                                       {{"scale", 0.0}, {"causal", int64_t{0}}});
        const auto grads =
            RunKernel("attention_grad", {v, q, q, v, forward[0], forward[1], mask},
                      {q.spec(), q.spec(), v.spec()}, {{"scale", 0.0}, {"causal", int64_t{0}}});
        const Values value = v.values(), out = forward[0].values(), dv = grads[2].values();
        double mean = 0, sum_in = 0, sum_out = 0;
        for (int64_t j = 0; j < 6; ++j) mean += value[j * 4] / 6;
        EXPECT_NEAR(out[2 * 4], mean, 1e-6);
        // Rows of probabilities add up to 1: so cotangents are neither lost nor multiplied.
        for (int64_t j = 0; j < 6; ++j) {
          sum_in += value[j * 4];
          sum_out += dv[j * 4];
        }
        EXPECT_NEAR(sum_in, sum_out, 1e-5);
      }
    }
  }
}

// Scores near -120, of which exp gives 0 where the logsumexp is not subtracted: some cuDNN makes
// NaN of the gradient then, over 64 keys more than a multiple of 128 (pytorch#196678).
TEST(AttentionTest, ScoresFarBelowZero) {
  for (const int64_t keys : {64, 128, 192, 576}) {
    for (const bool masked : {false, true}) {
      SCOPED_TRACE(absl::StrCat(keys, masked ? " keys, masked" : " keys"));
      Case c = {"", 1, 1, 1, 64, keys, 64, 64};
      Tensor mask;
      if (masked) {
        c.mask = {1, 1, 64, keys};
        mask = Tensor::Random(DType::kBF16, c.mask, 5, -1, 1);
      }
      Check(c, DType::kBF16, 1.875, masked ? &mask : nullptr, 8, {-1.1, -0.9}, {0.9, 1.1});
    }
  }
}

TEST(AttentionTest, LargeScoresKeepTheirDigits) {
  const Case c = {"", 1, 1, 1, 8, 40, 16, 16};
  Check(c, DType::kF64, 400, nullptr, 1e3);
  const Tensor q = Tensor::Random(DType::kF32, {1, 1, 8, 16}, 1, 90, 110);
  const Tensor v = Tensor::Random(DType::kF32, {1, 1, 8, 16}, 2);
  const Attributes attributes = {{"scale", 1e-3}, {"causal", int64_t{0}}};  // scores near 160
  const auto forward =
      RunKernel("attention", {q, q, v}, {v.spec(), {DType::kF32, {1, 1, 8}}}, attributes);
  const auto grads = RunKernel("attention_grad", {v, q, q, v, forward[0], forward[1]},
                               {q.spec(), q.spec(), v.spec()}, attributes);
  Case same = {"", 1, 1, 1, 8, 8, 16, 16};
  const Reference expected =
      Compute(same, 1e-3, q.values(), q.values(), v.values(), nullptr, v.values());
  ExpectClose(grads[2], expected.dv, 20);
}

// Rows whose logsumexp is too large to subtract get their share of the sink all the same.
TEST(AttentionTest, LargeScoresBesideSinks) {
  Case c = {"", 1, 2, 1, 8, 40, 16, 16};
  c.sink = true;
  const Range sinks = {100, 120};
  Check(c, DType::kF64, 20, nullptr, 1e2, {}, {}, sinks);  // scores up to some 100
  Check(c, DType::kF32, 20, nullptr, 50, {}, {}, sinks);
}

// A sink of bf16 numbers may be f32, and one of -infinity is none.
TEST(AttentionTest, WideSinksAndNone) {
  const Tensor q = Tensor::Random(DType::kBF16, {1, 2, 8, 16}, 1);
  const std::vector<runtime::TensorSpec> results = {q.spec(), {DType::kF32, {1, 2, 8}}};
  const Attributes attributes = {{"scale", 0.25}};
  const auto run = [&](const std::vector<Tensor>& operands) {
    return RunKernel("attention", operands, results, attributes);
  };
  const Values sinks = {0.5, -1.25};  // of bf16, too
  const auto narrow = run({q, q, q, Tensor({DType::kBF16, {2}}, sinks)});
  const auto wide = run({q, q, q, Tensor({DType::kF32, {2}}, sinks)});
  const auto off = run({q, q, q, Tensor({DType::kF32, {2}}, {-kInfinity, -kInfinity})});
  const auto none = run({q, q, q});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(narrow[i].values(), wide[i].values());
    EXPECT_EQ(off[i].values(), none[i].values());
    EXPECT_NE(wide[i].values(), none[i].values());
  }
}

TEST(AttentionTest, SinksOfOtherHeadsAndInFrontOfMasksAreInvalid) {
  const Tensor q = Tensor::Random(DType::kF32, {1, 2, 2, 4}, 1);
  const Tensor other = Tensor::Random(DType::kF32, {3}, 2), sink({DType::kF32, {2}}, {0, 1});
  const Tensor mask = Tensor::Random(DType::kF32, {1, 1, 2, 2}, 3);
  const auto code = [&](const std::vector<Tensor>& operands) {
    const std::vector<runtime::TensorSpec> results = {q.spec(), {DType::kF32, {1, 2, 2}}};
    return TryKernel("attention", operands, results, {{"scale", 1.0}}).status().code();
  };
  EXPECT_EQ(code({q, q, q, mask, sink}), absl::StatusCode::kOk);
  EXPECT_EQ(code({q, q, q, other}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({q, q, q, sink, mask}), absl::StatusCode::kInvalidArgument);
}

TEST(AttentionTest, NaNIsNotLost) {
  Tensor q = Tensor::Random(DType::kF32, {1, 1, 2, 4}, 1);
  static_cast<float*>(q.data())[0] = std::nanf("");
  const Tensor k = Tensor::Random(DType::kF32, {1, 1, 2, 4}, 2);
  const auto out = RunKernel("attention", {q, k, k}, {k.spec(), {DType::kF32, {1, 1, 2}}},
                             {{"scale", 1.0}, {"causal", int64_t{0}}});
  EXPECT_TRUE(std::isnan(out[0].values()[0]));
  EXPECT_FALSE(std::isnan(out[0].values()[4]));
}

TEST(AttentionTest, NegativeWindowIsInvalid) {
  const Tensor q = Tensor::Random(DType::kF32, {1, 1, 2, 4}, 1);
  EXPECT_EQ(TryKernel("attention", {q, q, q}, {q.spec(), {DType::kF32, {1, 1, 2}}},
                      {{"scale", 1.0}, {"window", int64_t{-1}}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AttentionTest, HeadsThatDoNotDivideAreInvalid) {
  const Tensor q = Tensor::Random(DType::kF32, {1, 3, 2, 4}, 1),
               k = Tensor::Random(DType::kF32, {1, 2, 2, 4}, 2);
  EXPECT_EQ(
      TryKernel("attention", {q, k, k}, {q.spec(), {DType::kF32, {1, 3, 2}}}, {{"scale", 1.0}})
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace oriel::kernels
