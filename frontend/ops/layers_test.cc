// Importers of norms, activations and attention. Where operands are constants the result folds, so
// the value shows that the import means what ONNX says; elsewhere the ops that were made do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/testing.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::irOfBody;
using ::testing::Not;
using testing::opsOfBody;

TEST(Normalization, OverTrailingDimensions) {
  EXPECT_EQ(opsOfBody("float[2, 3] x, float[3] w, float[3] b", "y = LayerNormalization(x, w, b)"),
            "layer_norm");
  EXPECT_EQ(opsOfBody("float[2, 3, 4] x, float[3, 4] w", "y = LayerNormalization<axis = 1>(x, w)"),
            "reshape reshape layer_norm reshape");
  EXPECT_EQ(opsOfBody("float[2, 3] x, float[3] w",
                      "r, mean = LayerNormalization(x, w)\n y = Add(r, mean)"),
            "layer_norm reduce_mean add");
  EXPECT_EQ(opsOfBody("float[2, 3] x, float[3] w", "y = RMSNormalization(x, w)", 23), "rms_norm");
  // Of more than a row: a factor of the norm without a weight.
  EXPECT_EQ(opsOfBody("float[2, 3] x, float[2, 3] w", "y = RMSNormalization(x, w)", 23),
            "rms_norm mul");
  EXPECT_EQ(
      opsOfBody("float[2, 3] x, float[2, 3] w, float[3] b", "y = LayerNormalization(x, w, b)", 17),
      "layer_norm mul add");
}

TEST(Normalization, BatchNormalizationOverChannels) {
  EXPECT_THAT(
      irOfBody("float[2, 3] x, float[3] w, float[2] v", "y = BatchNormalization(x, w, w, w, v)"),
      HasSubstr("operand 4 is 'tensor<2xf32>', expected a vector over the 3 channels"));
}

TEST(Normalization, Softmax) {
  EXPECT_THAT(irOfBody("float[2, 3] x", "y = Softmax<axis = -2>(x)"),
              HasSubstr("oriel.softmax %arg0 {dim = 0"));
  EXPECT_EQ(opsOfBody("float[2, 3] x", "y = LogSoftmax(x)"),
            "reduce_max sub exp reduce_sum log sub");
}

TEST(Activations, NamedAndComposed) {
  EXPECT_THAT(irOfBody("float[2] x", "y = Gelu<approximate = \"tanh\">(x)"),
              HasSubstr("kind = \"gelu_tanh\""));
  EXPECT_THAT(irOfBody("float[2] x", "y = Swish(x)", 24), HasSubstr("kind = \"silu\""));
  EXPECT_EQ(opsOfBody("float[2] x", "y = HardSwish(x)"), "mul add max min mul");
}

TEST(Attention, OfRank3And4) {
  const char kSmall[] = "float[2, 4, 8, 16] q, float[2, 2, 8, 16] k, float[2, 2, 8, 16] v";
  EXPECT_THAT(
      irOfBody(kSmall, "y = Attention<is_causal = 1>(q, k, v)", 23),
      HasSubstr("oriel.attention %arg0, %arg1, %arg2 {causal = true, scale = 2.500000e-01"));
  EXPECT_EQ(opsOfBody("float[2, 8, 64] q, float[2, 8, 32] k, float[2, 8, 32] v, bool[8, 8] keep",
                      "y = Attention<q_num_heads = 4, kv_num_heads = 2>(q, k, v, keep)", 23),
            "reshape transpose reshape transpose reshape transpose reshape attention transpose "
            "reshape");
  EXPECT_EQ(opsOfBody(kSmall, "y = Attention<softcap = 2.0>(q, k, v)", 23),
            "reshape broadcast reshape reshape broadcast reshape matmul mul mul tanh mul softmax "
            "matmul");
}

// ONNX aligns the first query with the first key, or with the first key after the cache; Oriel's
// op the last query with the last key.
TEST(Attention, CausalWithMoreKeysThanQueries) {
  const char kOne[] = "float[2, 4, 1, 16] q, float[2, 2, 3, 16] k, float[2, 2, 3, 16] v";
  EXPECT_THAT(
      irOfBody(kOne, "y = Attention<is_causal = 1>(q, k, v)", 23),
      AllOf(HasSubstr("dense<[[[[true, false, false]]]]>"), Not(HasSubstr("causal = true"))));
  EXPECT_THAT(irOfBody("float[2, 4, 1, 16] q, float[2, 2, 1, 16] k, float[2, 2, 1, 16] v, "
                       "float[2, 2, 2, 16] pk, float[2, 2, 2, 16] pv",
                       "y, kk, vv = Attention<is_causal = 1>(q, k, v, , pk, pv)", 23),
              HasSubstr("causal = true"));
  EXPECT_THAT(
      irOfBody(kOne, "y = Attention<left_window_size = 1, right_window_size = 1>(q, k, v)", 25),
      HasSubstr("dense<[[[[true, true, false]]]]>"));
}

TEST(Attention, RotaryEmbedding) {
  EXPECT_EQ(opsOfBody("float[2, 4, 8, 16] x, float[9, 8] c, float[9, 8] s, int64[2, 8] p",
                      "y = RotaryEmbedding(x, c, s, p)", 23),
            "gather reshape gather reshape rope");
  EXPECT_EQ(opsOfBody("float[2, 8, 64] x, float[2, 8, 4] c, float[2, 8, 4] s",
                      "y = RotaryEmbedding<num_heads = 4, rotary_embedding_dim = 8>(x, c, s)", 23),
            "reshape reshape reshape transpose rope transpose reshape");
}

// One mistake, one error.
TEST(Attention, Mistakes) {
  std::string heads = irOfBody("float[2, 8, 64] q", "y = Attention(q, q, q)", 23);
  EXPECT_THAT(heads, HasSubstr("into 0 heads"));
  EXPECT_EQ(heads.find("into 0 heads"), heads.rfind("into 0 heads"));
  std::string cache =
      irOfBody("float[2, 4, 8, 16] x, float[8] c", "y = RotaryEmbedding(x, c, c)", 23);
  EXPECT_THAT(cache, HasSubstr("cache of rank 1"));
  EXPECT_EQ(cache.find("cache of rank 1"), cache.rfind("cache of rank 1"));
  EXPECT_THAT(irOfBody("float[2, 4, 8, 16] q, float[2, 4, 8, 16] p, float[4] v",
                       "y, k, w = Attention(q, q, q, , p, v)", 23),
              HasSubstr("a past_value 'tensor<4xf32>', expected rank 4"));
}

}  // namespace
}  // namespace oriel
