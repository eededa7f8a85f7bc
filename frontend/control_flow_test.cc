// If, Loop and Scan, of which the nodes of branches and bodies stay. What is integers folds, so
// that the value shows that the import means what ONNX says.
#include "frontend/control_flow.h"

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using testing::errorsOf;
using ::testing::HasSubstr;
using testing::Imported;
using testing::importText;
using testing::modelText;
using ::testing::Not;
using testing::opsOf;
using testing::parseModel;
using testing::valueOf;

// What TorchScript's exporter writes for `x.squeeze(1)`; the branch not taken needs no support.
std::string squeezeIfOne(const std::string& shape) {
  return modelText("g (float" + shape + R"( x) => (float[A, B] y) {
      y = If(one) <
        then_branch = a () => (s) { axis = Constant<value_ints = [1]>()
                                    s = Squeeze(x, axis) },
        else_branch = b () => (s) { s = NonZero(x) }>
      shape = Shape(x)
      dim = Constant<value_int = 1>()
      size = Gather(shape, dim)
      one = Equal(size, dim)
    })");
}

TEST(ControlFlow, AnIfOfKnownConditionIsItsBranch) {
  EXPECT_EQ(opsOf(squeezeIfOne("[3, 1, 4]")), "reshape");
  EXPECT_THAT(opsOf(squeezeIfOne("[3, 2, 4]")), HasSubstr("NonZero"));
}

TEST(ControlFlow, BranchesReadWhatIsAroundThemAndMayShareNames) {
  EXPECT_EQ(
      opsOf(modelText(R"(g (float[2] x) => (float[2] y) <bool[1] yes = {1}, bool[1] no = {0}> {
      a = Neg(x)
      b = If(yes) <then_branch = t () => (s) { t = Exp(a)
                                               s = If(no) <then_branch = u () => (v) { v = Neg(t) },
                                                           else_branch = w () => (v) { v = Abs(t) }> },
                   else_branch = e () => (a) {}>
      y = If(no) <then_branch = f () => (s) { s = Neg(b) },
                  else_branch = h () => (s) { t = Sin(b)
                                              s = Cos(t) }>
    })")),
      "neg exp abs sin cos");
}

TEST(ControlFlow, BranchesMayHoldConstants) {
  EXPECT_EQ(opsOf(modelText(R"(g (float[2, 3] x) => (float[3, 2] y) <bool[1] yes = {1}> {
      y = If(yes) <then_branch = t () => (s) <int64[2] shape = {3, 2}> { s = Reshape(x, shape) },
                   else_branch = e () => (x) {}>
    })")),
            "reshape");
}

TEST(ControlFlow, IfOfUnknownCondition) {
  EXPECT_THAT(errorsOf(R"(g (float[2] x, bool c) => (float[2] y) {
      [choice] y = If(c) <then_branch = t () => (s) { s = Neg(x) },
                          else_branch = e () => (x) {}>
    })"),
              AllOf(HasSubstr("\"choice\" (If) chooses by \"c\""), HasSubstr("torch.where")));
}

TEST(ControlFlow, IfOfANumber) {
  EXPECT_THAT(errorsOf(R"(g (float[2] x) => (float[2] y) <int64[1] c = {2}> {
      y = If(c) <then_branch = t () => (s) { s = Neg(x) }, else_branch = e () => (x) {}>
    })"),
              HasSubstr("must be a boolean"));
}

// Not with those of the graph, of the same name.
TEST(ControlFlow, ValuesOfBranchesHaveShapesOfTheirOwn) {
  auto model = parseModel(modelText(R"(g (float[2, 3] x) => (float[6] y)
    <bool[1] yes = {1}, int64[1] all = {-1}> {
      b = If(yes) <then_branch = t () => (r) { s = Neg(x)
                                               r = Exp(s) }, else_branch = e () => (x) {}>
      s = Reshape(b, all)
      y = Neg(s)
    })"));
  auto* info = model->mutable_graph()->add_value_info();
  info->set_name("s");
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_value(6);
  auto file = ModelFile::fromProto(std::move(model), "test.onnx", "");
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_EQ(testing::importFile(*file, {}).errors, "");
}

TEST(ControlFlow, SettingsOfBranchesAreNoParameters) {
  const Imported imported = importText(modelText(R"(g (float[1, 2] x) => (float[1, 4] y)
    <float[2] s = {1.0, 2.0}, bool[1] yes = {1}> {
      y = If(yes) <then_branch = t () => (r) { r = Resize(x, , s) },
                   else_branch = e () => (x) {}>
    })"));
  EXPECT_EQ(imported.errors, "");
  EXPECT_THAT(imported.ir, Not(HasSubstr("oriel.parameter")));
}

TEST(ControlFlow, IfWithBadBranches) {
  auto errorsOfThen = [](const std::string& branch) {
    return errorsOf(
        "g (float[2] x) => (float[2] y) <bool[1] yes = {1}> {\n y = If(yes) <then_branch = " +
        branch + ", else_branch = e () => (x) {}>\n}");
  };
  EXPECT_THAT(errorsOfThen("t () => (s) { s = Neg(u)\n u = Neg(x) }"),
              HasSubstr("a reader of \"u\" before anything provides it"));
  EXPECT_THAT(errorsOfThen("t () => (s) { s = Neg(x)\n s = Exp(x) }"),
              HasSubstr("produces \"s\", which is known already"));
  EXPECT_THAT(errorsOfThen("t () => (s) { x = Neg(x)\n s = Neg(x) }"),
              HasSubstr("produces \"x\", which is known already"));
  EXPECT_THAT(errorsOfThen("t () => (s, u) { s = Neg(x)\n u = Neg(s) }"),
              HasSubstr("has 1 results, but its then_branch has 2"));
  EXPECT_THAT(errorsOfThen("t (float[2] u) => (s) { s = Neg(u) }"),
              HasSubstr("has a then_branch with inputs"));
  EXPECT_THAT(errorsOfThen("t () => (s) <float[2] w = {1, 2}> { s = Mul(x, w) }"),
              HasSubstr("the initializer \"w\", which may be a parameter"));
  EXPECT_THAT(errorsOfThen("t () => (s) <int64[1] x = {1}> { s = Neg(x) }"),
              HasSubstr("the initializer \"x\", which is known already"));
  EXPECT_THAT(errorsOfThen("t () => (s) { s = Mul(x, nothing) }"),
              HasSubstr("reads \"nothing\", which no node, input or initializer provides"));
  EXPECT_THAT(
      errorsOf("g (float[2] x) => (float[2] y) <bool[1] no = {0}> {\n y = If(no) <then_branch = "
               "t () => (x) {}>\n}"),
      HasSubstr("has no else_branch"));
}

// Sums i, 3 times; what each iteration has is stacked.
TEST(ControlFlow, LoopsCarryValuesAndStackOthers) {
  const std::string loop = R"(
      count = Constant<value_int = 3>()
      start = Constant<value_int = 10>()
      last_sum, sums = Loop(count, , start) <body = b (int64 turn, bool go, int64 sum)
        => (bool goes, int64 more, int64 each) {
          goes = Identity(go)
          more = Add(sum, turn)
          each = Mul(more, more) }>
    )";
  EXPECT_EQ(valueOf(loop + "y = Identity(last_sum)"), "dense<13> : tensor<i64>");
  EXPECT_EQ(valueOf(loop + "y = Identity(sums)"), "dense<[100, 121, 169]> : tensor<3xi64>");
}

TEST(ControlFlow, LoopsEndByTheirCondition) {
  auto doubled = [](const std::string& count) {
    return valueOf(R"(
      start = Constant<value_int = 1>()
      yes = Cast<to = 9>(one)
      limit = Constant<value_int = 100>()
      y = Loop()" + count +
                   R"(, yes, start) <body = b (int64 turn, bool go, int64 x)
        => (bool goes, int64 next) {
          next = Add(x, x)
          goes = Less(next, limit) }>
    )");
  };
  EXPECT_EQ(doubled(""), "dense<128> : tensor<i64>");
  EXPECT_EQ(doubled("two"), "dense<4> : tensor<i64>");
  EXPECT_EQ(doubled("zero"), "dense<1> : tensor<i64>");
}

TEST(ControlFlow, CarriedValuesMayGrow) {
  EXPECT_EQ(valueOf(R"(
      y = Loop(two, , i) <body = b (int64 turn, bool go, int64[N] x) => (bool go, int64[M] more) {
        more = Concat<axis = 0>(x, one) }>
    )"),
            "dense<[1, 2, 3, 4, 5, 6, 1, 1]> : tensor<8xi64>");
}

TEST(ControlFlow, LoopsWithinLoops) {
  EXPECT_EQ(valueOf(R"(
      start = Constant<value_int = 0>()
      y = Loop(two, , start) <body = b (int64 row, bool go, int64 sum) => (bool go, int64 more) {
        more = Loop(two, , sum) <body = c (int64 column, bool on, int64 x) => (bool on, int64 r) {
          product = Mul(row, column)
          shifted = Add(x, product)
          r = Add(shifted, row) }> }>
    )"),
            "dense<3> : tensor<i64>");
}

// Parameters and inputs are read from around the body.
TEST(ControlFlow, LoopsOverLayers) {
  EXPECT_EQ(opsOf(modelText(R"(g (float[2, 3] x) => (float[2, 3] y)
    <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64 depth = {2}> {
      y = Loop(depth, , x) <body = b (int64 turn, bool go, float[2, 3] h) => (bool go, float[2, 3] r)
        { p = MatMul(h, w)
          r = Tanh(p) }>
    })")),
            "linear tanh linear tanh");
}

TEST(ControlFlow, ScansTakeRowsAndCarryValues) {
  auto scan = [](const std::string& attributes, const std::string& wanted) {
    return valueOf(R"(
      start = Constant<value_ints = [0, 0]>()
      end, sums = Scan(start, n) <num_scan_inputs = 1)" +
                   attributes + R"(, body = b (int64[2] sum, int64[2] row)
        => (int64[2] more, int64[2] more) { more = Add(sum, row) }>
      y = Identity()" +
                   wanted + ")");
  };
  const std::string columns = ", scan_input_axes = [1]";
  EXPECT_EQ(scan(columns, "end"), "dense<[6, 15]> : tensor<2xi64>");
  EXPECT_EQ(scan(columns, "sums"), "dense<[[1, 4], [3, 9], [6, 15]]> : tensor<3x2xi64>");
  EXPECT_EQ(scan(", scan_input_axes = [-1], scan_input_directions = [1]", "sums"),
            "dense<[[3, 6], [5, 11], [6, 15]]> : tensor<3x2xi64>");
  EXPECT_EQ(scan(columns + ", scan_output_axes = [-1], scan_output_directions = [1]", "sums"),
            "dense<[[6, 3, 1], [15, 9, 4]]> : tensor<2x3xi64>");
  EXPECT_THAT(scan(columns + ", scan_output_axes = [0, 1]", "sums"),
              HasSubstr("has 2 scan_output_axes, one for each of 1"));
  EXPECT_THAT(scan(", scan_input_axes = [2]", "end"), HasSubstr("scans dimension 2 of"));
}

// A layer for each slice of the stacked weights.
TEST(ControlFlow, ScansOverWeights) {
  EXPECT_EQ(opsOf(modelText(R"(g (float[2, 3] x) => (float[2, 3] y)
    <float[2, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}> {
      y = Scan(x, w) <num_scan_inputs = 1,
        body = b (float[2, 3] h, float[3, 3] layer) => (float[2, 3] r)
        { p = MatMul(h, layer)
          r = Tanh(p) }>
    })")),
            "slice reshape matmul tanh slice reshape matmul tanh");
}

TEST(ControlFlow, NodesOfBodiesAreNamedByTheirIteration) {
  EXPECT_THAT(errorsOf(R"(g (float[2] x) => (float[2] y) <int64 depth = {3}> {
      y = Loop(depth, , x) <body = b (int64 turn, bool go, float[2] h) => (bool go, float[2] r)
        { two = Constant<value_int = 2>()
          shape = Sub(two, turn)
          one = Constant<value_ints = [1]>()
          sizes = Expand(shape, one)
          [narrow] s = Reshape(h, sizes)
          r = Identity(s) }>
    })"),
              HasSubstr("narrow[1]"));
}

TEST(ControlFlow, LoopsThatDependOnData) {
  EXPECT_THAT(errorsOf(R"(g (float[2] x, int64 n) => (float[2] y) {
      [times] y = Loop(n, , x) <body = b (int64 t, bool go, float[2] h) => (bool go, float[2] r)
        { r = Tanh(h) }>
    })"),
              AllOf(HasSubstr("\"times\" (Loop) iterates \"n\""),
                    HasSubstr("loop a fixed number of times")));
  EXPECT_THAT(errorsOf(R"(g (float x) => (float y) <int64 depth = {3}> {
      [until] y = Loop(depth, , x) <body = b (int64 t, bool go, float h) => (bool on, float r)
        { r = Tanh(h)
          on = Less(r, x) }>
    })"),
              HasSubstr("\"until\" (Loop) goes on by \"on\""));
}

// What the last iteration says of a next one is not asked for.
TEST(ControlFlow, TheLastConditionMayDependOnData) {
  EXPECT_EQ(opsOf(modelText(R"(g (float x) => (float y) <int64 depth = {1}> {
      y = Loop(depth, , x) <body = b (int64 t, bool go, float h) => (bool on, float r)
        { r = Tanh(h)
          on = Less(r, x) }>
    })")),
            "tanh");
}

TEST(ControlFlow, LoopsWithoutEnd) {
  EXPECT_THAT(errorsOf(R"(g (float[2] x) => (float[2] y) {
      y = Loop( , , x) <body = b (int64 t, bool go, float[2] h) => (bool go, float[2] h) {}>
    })"),
              HasSubstr("makes more than 32768 nodes"));
}

TEST(ControlFlow, LoopsWithoutIterations) {
  EXPECT_THAT(errorsOf(R"(g (float[2] x) => (float[N, 2] y) <int64 none = {0}> {
      y = Loop(none, ) <body = b (int64 t, bool go) => (bool go, float[2] h) { h = Neg(x) }>
    })"),
              HasSubstr("has no iteration"));
}

TEST(ControlFlow, LoopsWithBadBodies) {
  auto errorsOfBody = [](const std::string& body) {
    return errorsOf("g (float[2] x) => (float[2] y) <int64 n = {2}> { y = Loop(n, , x) <body = b " +
                    body + "> }");
  };
  EXPECT_THAT(errorsOfBody("(int64 t, bool go) => (bool go, float[2] x) {}"),
              HasSubstr("doesn't fit its body's 2 inputs and 2 results"));
  EXPECT_THAT(errorsOfBody("(int64 t, bool go, float[2] x) => (bool go, float[2] x) {}"),
              HasSubstr("gives its body \"x\", which is known already"));
  EXPECT_THAT(errorsOfBody("(int64 t, bool go, float[2] h) => (bool go, float[2] r) "
                           "{ r = NonZero(h) }"),
              HasSubstr("NonZero"));
  EXPECT_THAT(errorsOf("g (float[2] x) => (float[2] y) <int64 n = {2}> { y = Loop(n, , x) }"),
              HasSubstr("has no body"));
}

// Scripted modules of PyTorch append to a list and stack it.
TEST(Sequences, GrowInLoops) {
  EXPECT_EQ(opsOf(modelText(R"(g (float[2] x) => (float[3, 2] y) <int64 depth = {3}> {
      none = SequenceEmpty()
      all, end = Loop(depth, , none, x) <body = b (int64 turn, bool go, seq(float[2]) s, float[2] h)
        => (bool go, seq(float[2]) more, float[2] r)
        { r = Tanh(h)
          more = SequenceInsert(s, r) }>
      y = ConcatFromSequence<axis = 0, new_axis = 1>(all)
    })")),
            "tanh tanh tanh reshape reshape reshape concat");
}

TEST(Sequences, AreListsOfTensors) {
  const std::string list =
      "a = Constant<value_int = 5>()\n b = Constant<value_int = 6>()\n"
      "c = Constant<value_int = 7>()\n s = SequenceConstruct(a, b)\n";
  auto joined = [&](const std::string& change) {
    return valueOf(list + change + "\ny = ConcatFromSequence<axis = 0, new_axis = 1>(t)");
  };
  EXPECT_EQ(joined("t = SequenceInsert(s, c)"), "dense<[5, 6, 7]> : tensor<3xi64>");
  EXPECT_EQ(joined("t = SequenceInsert(s, c, two)"), "dense<[5, 6, 7]> : tensor<3xi64>");
  EXPECT_EQ(joined("t = SequenceInsert(s, c, last)"), "dense<[5, 7, 6]> : tensor<3xi64>");
  EXPECT_EQ(joined("t = SequenceErase(s)"), "dense<5> : tensor<1xi64>");
  EXPECT_EQ(joined("t = SequenceErase(s, zero)"), "dense<6> : tensor<1xi64>");
  EXPECT_EQ(valueOf(list + "y = SequenceLength(s)"), "dense<2> : tensor<i64>");
  EXPECT_EQ(valueOf(list + "y = SequenceAt(s, last)"), "dense<6> : tensor<i64>");
  EXPECT_THAT(valueOf(list + "y = SequenceAt(s, two)"), HasSubstr("takes place 2 of 2"));
}

TEST(Sequences, AreNoTensors) {
  const std::string list = "s = SequenceConstruct(x, x)\n";
  auto errorsOfBody = [&](const std::string& body) {
    return errorsOf("g (float[2] x) => (float[2] y) {" + list + body + "}");
  };
  EXPECT_THAT(errorsOfBody("y = Neg(s)"), HasSubstr("which is a sequence of tensors"));
  EXPECT_THAT(errorsOfBody("y = SequenceInsert(s, s)"), HasSubstr("inserts a sequence"));
  EXPECT_THAT(errorsOfBody("y = SequenceConstruct(s, x)"), HasSubstr("is a sequence of tensors"));
  EXPECT_THAT(errorsOfBody("y = SequenceLength(x)"), HasSubstr("needs a sequence"));
  EXPECT_THAT(errorsOfBody("y = Identity(s)"), HasSubstr("the output \"y\" is a sequence"));
}

TEST(Sequences, PiecesOfASplit) {
  Imported imported = importText(modelText(R"(
    g (float[2, 7] x) => (float[2, 3] a, float[2, 1] b)
    <int64 size = {3}, int64 first = {0}, int64 last = {-1}> {
      s = SplitToSequence<axis = 1>(x, size)
      a = SequenceAt(s, first)
      b = SequenceAt(s, last)
    })"));
  EXPECT_EQ(imported.errors, "");
  EXPECT_EQ(imported.ops, "slice slice");
  EXPECT_THAT(imported.ir, HasSubstr("starts = array<i64: 0, 6>"));
}

}  // namespace
}  // namespace oriel
