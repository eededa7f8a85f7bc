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

TEST(Losses, CrossEntropy) {
  // Classes are the last dimension of ours.
  EXPECT_EQ(opsOfBody("float[2, 5, 3] x, int64[2, 3] l", "y = SoftmaxCrossEntropyLoss(x, l)"),
            "transpose cross_entropy div");
  EXPECT_THAT(irOfBody("float[2, 5] x, int64[2] l",
                       "y = SoftmaxCrossEntropyLoss<reduction = \"sum\", ignore_index = 3>(x, l)"),
              AllOf(HasSubstr("oriel.cross_entropy %arg0, %arg1 {ignore_index = 3"),
                    Not(HasSubstr("div"))));
  // No label is ignored.
  EXPECT_THAT(irOfBody("float[2, 5] x, int64[2] l", "y = SoftmaxCrossEntropyLoss(x, l)"),
              HasSubstr("ignore_index = -2147483648"));
  // Of each row, and with weights of the classes: the mean is one of these.
  EXPECT_EQ(opsOfBody("float[2, 5, 3] x, int64[2, 3] l",
                      "y = SoftmaxCrossEntropyLoss<reduction = \"none\">(x, l)"),
            "transpose token_losses");
  EXPECT_EQ(opsOfBody("float[2, 5] x, int64[2] l, float[5] w",
                      "y = SoftmaxCrossEntropyLoss<ignore_index = 3>(x, l, w)"),
            "token_losses equal select gather select mul reduce_sum reduce_sum div");
  EXPECT_EQ(opsOfBody("float[2, 5] x, int32[2] l, float[5] w",
                      "y = SoftmaxCrossEntropyLoss<reduction = \"sum\">(x, l, w)"),
            "token_losses cast equal select gather select mul reduce_sum");
  EXPECT_THAT(testing::errorsOf("g (float[2, 5] x, int64[2] l, float[4] w) => (float y) "
                                "{ y = SoftmaxCrossEntropyLoss(x, l, w) }"),
              HasSubstr("are not one for each of 5 classes"));
  // What ONNX defines it by, where its logarithms are read.
  EXPECT_THAT(opsOfBody("float[2, 5] x, int64[2] l", "z, y = SoftmaxCrossEntropyLoss(x, l)"),
              Not(HasSubstr("cross_entropy")));
  // PyTorch's exporters write probabilities in the place of labels.
  EXPECT_EQ(opsOfBody("float[2, 5] x, float[2, 5] p", "y = SoftmaxCrossEntropyLoss(x, p)"),
            "reduce_max sub exp reduce_sum log sub mul reduce_sum neg reduce_sum div");
  EXPECT_EQ(opsOfBody("float[2, 5] x, float[2, 5] p, float[5] w",
                      "y = SoftmaxCrossEntropyLoss<reduction = \"none\">(x, p, w)"),
            "reduce_max sub exp reduce_sum log sub mul reshape mul reduce_sum neg");
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

// --- Ops of ONNX Runtime's domain. Their values are compared in tests/e2e/contrib_ops_test.py.

// The IR, or the errors, of `y`, or of `results`, from inputs q, k and v of 4 heads of 8 columns, 2
// of keys.
std::string contrib(const std::string& node, const std::string& inputs = "",
                    const std::string& results = "y") {
  const testing::Imported imported = testing::importText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"com.microsoft\" : 1]> g (float[2, 6, 32] q, "
      "float[2, 6, 16] k, float[2, 6, 16] v, int32[2] lengths, int32 total" +
      inputs + ") => (float[2, 6, 32] y) { " + results + " = com.microsoft." + node + " }");
  return imported.ir + imported.errors;
}

TEST(Contrib, GroupQueryAttention) {
  const std::string op = "GroupQueryAttention<num_heads = 4, kv_num_heads = 2";
  EXPECT_THAT(contrib(op + ", local_window_size = 3, softcap = 2.0>(q, k, v, , , lengths, total)"),
              AllOf(HasSubstr("causal = true"), HasSubstr("window = 3"), HasSubstr("softcap = 2"),
                    HasSubstr("scale = 0.35355")));
  // A window that hides nothing is none.
  EXPECT_THAT(contrib(op + ", local_window_size = 6>(q, k, v, , , lengths, total)"),
              Not(HasSubstr("window")));
  EXPECT_THAT(contrib(op + ">(q, k, v, past, past, lengths, total)", ", float[2, 2, 1, 8] past"),
              AllOf(HasSubstr("has a past 'tensor<2x2x1x8xf32>'"),
                    HasSubstr("--bind past_sequence_length=0")));
  EXPECT_THAT(contrib(op + ", local_window_size = 0>(q, k, v, , , lengths, total)"),
              HasSubstr("a local_window_size of 0; -1 is for none"));
  const std::string sink = ">(q, k, v, , , lengths, total, , , , , sink)";
  EXPECT_THAT(contrib(op + sink, ", float[4] sink"), HasSubstr(" sink %arg5 {"));
  EXPECT_THAT(contrib(op + ", smooth_softmax = 1>(q, k, v, , , lengths, total)"),
              AllOf(HasSubstr("dense<0.000000e+00> : tensor<4xf32>"), HasSubstr(" sink %")));
  EXPECT_THAT(contrib(op + sink, ", float[5] sink"),
              HasSubstr("a head_sink 'tensor<5xf32>', expected one number for each of 4 heads"));
  EXPECT_THAT(contrib(op + ", smooth_softmax = 1" + sink, ", float[4] sink"),
              HasSubstr("has both a smooth softmax and a head_sink"));
  EXPECT_THAT(contrib(op + ">(q, , v, , , lengths, total)"), HasSubstr("4 heads and 2 of keys"));
  EXPECT_THAT(contrib("GroupQueryAttention<num_heads = 3, kv_num_heads = 2>(q, k, v)"),
              HasSubstr("3 heads and 2 of keys"));
  EXPECT_THAT(contrib("GroupQueryAttention<num_heads = 5, kv_num_heads = 5>(q, q, q)"),
              HasSubstr("can't split 'tensor<2x6x32xf32>' into 5 heads"));
  const std::string rotary = op + ", do_rotary = 1>(q, k, v, , , lengths, total, c, s)";
  EXPECT_THAT(contrib(rotary, ", float[6, 4] c, float[6, 4] s"), HasSubstr("oriel.rope"));
  EXPECT_THAT(contrib(rotary, ", float[5, 4] c, float[5, 4] s"),
              HasSubstr("a table of angles 'tensor<5x4xf32>' for 6 tokens"));
  EXPECT_THAT(contrib(rotary, ", float[6, 5] c, float[6, 5] s"),
              HasSubstr("a table of 5 angles for heads of 8"));
  EXPECT_THAT(contrib(rotary, ", float[6] c, float[6] s"), HasSubstr("expected rank 2"));
  EXPECT_THAT(contrib(rotary, ", float c, float s"), HasSubstr("expected rank 2"));
  EXPECT_THAT(contrib(op + ", do_rotary = 1>(q, k, v, , , lengths, total)"),
              HasSubstr("operand 7"));
}

TEST(Contrib, AttentionOfAllHeads) {
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 4>(q, q, q, , shown)", ", int32[2, 5] shown"),
              HasSubstr("expected one number for each of 2 x 6 keys"));
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 4>(p)", ", float[2, 6, 4, 3, 8] p"),
              HasSubstr("oriel.attention"));
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 4>(q, p)", ", float[2, 6, 4, 3, 8] p"),
              HasSubstr("has no values, and does not pack them: that is a key [batch, keys, 4, "
                        "2, channels], not 'tensor<2x6x4x3x8xf32>'"));
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 2>(p)", ", float[2, 6, 4, 3, 8] p"),
              HasSubstr("that is a query [batch, positions, 2, 3, channels]"));
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 4>(q)"),
              HasSubstr("has no keys and values, and does not pack them"));
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 4>(q, q, q, b)", ", float[95] b"),
              HasSubstr("can't split 'tensor<95xf32>' into query, key and value of 32, 32 and 32"));
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 4>(q, q, q, , , m)", ", float[6, 6] m"),
              HasSubstr("an attention bias 'tensor<6x6xf32>', expected rank 4"));
  EXPECT_THAT(contrib("Attention<num_heads = 4>(q, w)", ", float[32, 95] w"),
              HasSubstr("can't split 'tensor<2x6x95xf32>' into query, key and value of 31, 31"));
  EXPECT_THAT(contrib("Attention<num_heads = 4, do_rotary = 1>(q, w)", ", float[32, 96] w"),
              HasSubstr("a cache of fixed size or a rotary embedding"));
  EXPECT_THAT(contrib("Attention<num_heads = 4>(q, w)", ", float[32, 96] w", "y, present"),
              HasSubstr("oriel.attention"));
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 4, unidirectional = 1>(q, c, c)",
                      ", float[2, 9, 32] c"),
              HasSubstr("is causal, with 6 queries and 9 keys: they must be as many"));
  EXPECT_THAT(contrib("MultiHeadAttention<num_heads = 4, mask_filter_value = -1.0>(q, q, q)"),
              HasSubstr("a mask_filter_value above -1.000000e+03"));
}

TEST(Contrib, OthersThatAreRefused) {
  EXPECT_THAT(contrib("SkipLayerNormalization(q, q, g)", ", float[32] g", "y, mean"),
              HasSubstr("gives mean or deviation, which Oriel does not import"));
  EXPECT_THAT(contrib("RotaryEmbedding<scale = 2.0>(q, p, c, c)", ", int64[2, 6] p, float[6, 4] c"),
              HasSubstr("scales positions"));
  EXPECT_THAT(contrib("RotaryEmbedding(q, p, c, c)", ", int64[2, 5] p, float[6, 4] c"),
              HasSubstr("has positions 'tensor<2x5xi64>' for 6 tokens"));
  EXPECT_THAT(contrib("RotaryEmbedding<rotary_embedding_dim = 6, num_heads = 4>(q, p, c, c)",
                      ", int64[2, 6] p, float[6, 4] c"),
              HasSubstr("turns 6 elements of a head by a table for 8"));
  EXPECT_THAT(contrib("FusedMatMul<transBatchA = 1>(q, q)"), HasSubstr("transposes batches"));
}

TEST(Dropout, OfTrainingMode) {
  auto dropout = [](const std::string& ratio, const std::string& training,
                    const std::string& results = "y = Dropout") {
    return irOfBody("float[2, 3] x", "r = Constant<value_float = " + ratio +
                                         ">()\n t = Constant<value_int = " + training +
                                         ">()\n b = Cast<to = 9>(t)\n" + results + "(x, r, b)");
  };
  EXPECT_THAT(dropout("0.25", "1"), HasSubstr("oriel.dropout %arg0 {ratio = 2.500000e-01 : f64"));
  EXPECT_THAT(dropout("0.25", "0"), Not(HasSubstr("oriel.dropout")));
  EXPECT_THAT(dropout("0.0", "1"), Not(HasSubstr("oriel.dropout")));
  EXPECT_THAT(dropout("1.0", "1"), HasSubstr("has the ratio 1.000000e+00"));
  EXPECT_THAT(dropout("0.25", "1", "z, y = Dropout"), HasSubstr("oriel.greater"));
  EXPECT_THAT(irOfBody("float[2, 3] x, float p",
                       "t = Constant<value_int = 1>()\n b = Cast<to = 9>(t)\n"
                       "y = Dropout(x, p, b)"),
              HasSubstr("has a ratio that depends on the inputs'"));
  EXPECT_THAT(
      irOfBody("float[2, 3] x, bool t", "r = Constant<value_float = 0.5>()\n y = Dropout(x, r, t)"),
      HasSubstr("set that input, `oriel compose MODEL --set INPUT=false`"));
}

// Two of one value are not one: each node has a site of its own.
TEST(Dropout, NodesDropOthers) {
  EXPECT_EQ(opsOfBody("float[2, 3] x",
                      "r = Constant<value_float = 0.5>()\n t = Constant<value_int = 1>()\n"
                      "b = Cast<to = 9>(t)\n p = Dropout(x, r, b)\n q = Dropout(x, r, b)\n"
                      "y = Add(p, q)"),
            "dropout dropout add");
}

// So have nodes of one name, in graphs side by side or in one.
TEST(Dropout, NodesOfOneNameDropOthers) {
  const std::string branch =
      "= If(b) <then_branch = t () => (s) { s = Dropout(x, r, b) }, else_branch = e () => (x) "
      "{}>\n";
  const std::string inputs =
      "r = Constant<value_float = 0.5>()\n t = Constant<value_int = 1>()\n"
      "b = Cast<to = 9>(t)\n";
  EXPECT_EQ(opsOfBody("float[2, 3] x", inputs + "p " + branch + "q " + branch + "y = Add(p, q)"),
            "dropout dropout add");
  EXPECT_EQ(opsOfBody("float[2, 3] x", inputs + "[same] p = Dropout(x, r, b)\n"
                                                "[same] q = Dropout(x, r, b)\n y = Add(p, q)"),
            "dropout dropout add");
}

// Stochastic depth, as the exporters of PyTorch write it: of ones for each sample.
TEST(RandomChoice, IsADropoutOfOnes) {
  auto ops = [](const std::string& body) {
    return opsOfBody("float[2, 1] x, float[2, 3] z",
                     "p = Constant<value_float = 0.75>()\n u = RandomUniformLike(x)\n" + body);
  };
  const std::string mask = "dropout mul";
  EXPECT_EQ(ops("b = Less(u, p)\n y = Cast<to = 1>(b)"), mask);
  EXPECT_EQ(ops("c = CastLike(p, u)\n b = Greater(c, u)\n y = CastLike(b, z)"), mask);
  EXPECT_EQ(ops("b = GreaterOrEqual(u, p)\n o = Not(b)\n y = Cast<to = 1>(o)"), mask);
  EXPECT_EQ(ops("s = Add(p, u)\n y = Floor(s)"), mask);
  EXPECT_EQ(ops("b = Less(u, p)\n o = Cast<to = 1>(zero)\n y = Where(b, z, o)"), "dropout mul mul");
  EXPECT_EQ(ops("b = Less(u, p)\n o = Cast<to = 1>(zero)\n y = Where(b, o, z)"), "dropout mul mul");
}

TEST(RandomChoice, KeepsWithTheProbabilityOfTheComparison) {
  auto ir = [](const std::string& random, const std::string& body) {
    return irOfBody("float[2, 1] x",
                    "p = Constant<value_float = 0.75>()\n u = " + random + "\n" + body);
  };
  const std::string like = "RandomUniformLike(x)", below = "b = Less(u, p)\n y = Cast<to = 1>(b)",
                    above = "b = Less(p, u)\n y = Cast<to = 1>(b)";
  EXPECT_THAT(ir(like, below), HasSubstr("ratio = 2.500000e-01"));
  EXPECT_THAT(ir(like, above), HasSubstr("ratio = 7.500000e-01"));
  EXPECT_THAT(ir("RandomUniform<shape = [2, 1], high = 1.5>()", below),
              HasSubstr("ratio = 5.000000e-01"));
  EXPECT_THAT(ir("RandomUniform<shape = [2, 1], high = 0.5>()", below),
              HasSubstr("value = dense<1.000000e+00>"));
  EXPECT_THAT(ir("RandomUniform<shape = [2, 1], high = 0.0>()", below),
              HasSubstr("makes random numbers from 0.000000e+00 to 0.000000e+00"));
}

// What is no choice is refused.
TEST(RandomChoice, OtherRandomNumbers) {
  auto ir = [](const std::string& body) {
    return irOfBody("float[2, 1] x, float q", "p = Constant<value_float = 0.75>()\n" + body);
  };
  const std::string random = "u = RandomUniformLike(x)\n";
  EXPECT_THAT(ir(random + "y = Add(x, u)"), HasSubstr("makes random numbers, which Oriel knows"));
  EXPECT_THAT(ir(random + "b = Less(u, q)\n y = Cast<to = 1>(b)"),
              HasSubstr("this one depends on the inputs'"));
  EXPECT_THAT(ir(random + "b = Less(u, p)\n y = Where(b, x, x)"),
              HasSubstr("the others must be 0"));
  // Three parts of one number.
  EXPECT_THAT(ir(random + "a = Less(u, p)\n c = Cast<to = 1>(a)\n b = Greater(u, p)\n"
                          "d = Cast<to = 1>(b)\n y = Sub(c, d)"),
              HasSubstr("makes random numbers, which Oriel knows"));
  // Each element is of one of two values.
  EXPECT_THAT(ir(random + "b = Less(u, p)\n o = Cast<to = 1>(zero)\n c = Where(b, x, o)\n"
                          "d = Where(b, o, x)\n y = Add(c, d)"),
              HasSubstr("makes random numbers, which Oriel knows"));
  EXPECT_THAT(ir(random + "w = Cast<to = 7>(u)\n g = Cast<to = 7>(p)\n b = Less(w, g)\n"
                          "y = Cast<to = 1>(b)"),
              HasSubstr("makes random numbers, which Oriel knows"));
  EXPECT_THAT(ir(random + "t = Constant<value_float = 1.7>()\n s = Add(t, u)\n y = Floor(s)"),
              HasSubstr("the whole part is more than a choice"));
  EXPECT_THAT(ir("y = Bernoulli(x)"), HasSubstr("this one depends on the inputs'"));
  EXPECT_EQ(opsOfBody("float[2, 1] x",
                      "s = Constant<value_ints = [2, 3]>()\n"
                      "h = Constant<value_float = 0.5>()\n e = Expand(h, s)\n"
                      "b = Bernoulli(e)\n y = Add(x, b)"),
            "dropout mul add");
}

}  // namespace
}  // namespace oriel
