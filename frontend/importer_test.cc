// What the importer makes of graphs, and what it says about those that it refuses.
#include "frontend/importer.h"

#include <random>

#include "frontend/node_location.h"
#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "mlir/IR/MLIRContext.h"
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

std::string errorsOf(std::unique_ptr<onnx::ModelProto> proto) {
  auto model = ModelFile::fromProto(std::move(proto), "test.onnx", "");
  if (!model) {
    return llvm::toString(model.takeError());
  }
  Imported imported = testing::importFile(*model, {});
  EXPECT_EQ(imported.ir, "");
  return imported.errors;
}

TEST(Importer, ArgumentsAreInputsThenParameters) {
  Imported imported = importText(
      modelText("g (float[N, 2] x) => (float[N, 2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }"),
      {{{"N", 3}}});
  EXPECT_EQ(imported.errors, "");
  EXPECT_THAT(imported.ir, HasSubstr("oriel.parameter @p0 {onnx_name = \"w\""));
  EXPECT_THAT(imported.ir,
              HasSubstr("%arg0: tensor<3x2xf32> {oriel.kind = \"input\", oriel.ref = \"x\""));
  EXPECT_THAT(imported.ir, HasSubstr("%arg1: tensor<2xf32> {oriel.kind = \"parameter\""));
  EXPECT_THAT(imported.ir,
              HasSubstr("-> (tensor<3x2xf32> {oriel.kind = \"output\", oriel.ref = \"y\""));
  EXPECT_THAT(imported.ir, HasSubstr("oriel.bind = {N = 3 : i64}"));
  EXPECT_THAT(imported.ir, HasSubstr("oriel.model_name = \"test\""));
}

// The registry knows which operands are no weights.
TEST(Importer, SettingsAreNoParameters) {
  Imported imported =
      importText(modelText("g (float[1, 2] x) => (float[1, 4] y) <float[2] s = {1.0, 2.0}> "
                           "{ y = Resize(x, , s) }"));
  EXPECT_EQ(imported.errors, "");
  EXPECT_THAT(imported.ir, Not(HasSubstr("oriel.parameter")));
}

TEST(Importer, DeclaredShapesMustAgree) {
  EXPECT_THAT(errorsOf("g (float[2] x) => (float[3] y) { y = Neg(x) }"),
              HasSubstr("declares another shape for \"y\", [3], than 'tensor<2xf32>'"));
  // Within the graph its nodes have the last word.
  const Imported imported = importText(
      modelText("g (float[2] x) => (float[2] y) <float[3] z> { z = Neg(x)\n y = Exp(z) }"));
  EXPECT_THAT(imported.errors, HasSubstr("declares another shape for \"z\", [3], than"));
  EXPECT_EQ(imported.ops, "neg exp");
}

// The zeros that a recurrent layer starts with are no weights, if the model does not say so.
TEST(Importer, InitialStatesAreConstants) {
  Imported imported = importText(
      modelText("g (float[2, 1, 1] x) => (float[2, 1, 1, 2] y) <float[1, 2, 1] w = {1, 2}, "
                "float[1, 2, 2] r = {1, 2, 3, 4}, float[1, 1, 2] h = {0, 0}> "
                "{ y = RNN(x, w, r, , , h) }"));
  EXPECT_EQ(imported.errors, "");
  EXPECT_THAT(imported.ir, AllOf(HasSubstr("onnx_name = \"w\""), HasSubstr("onnx_name = \"r\"")));
  EXPECT_THAT(imported.ir, Not(HasSubstr("onnx_name = \"h\"")));
}

TEST(Importer, UnusedParametersAreDropped) {
  Imported imported = importText(
      modelText("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] u = {1, 2}> "
                "{ y = Mul(x, w) }"));
  EXPECT_THAT(imported.ir, AllOf(HasSubstr("\"w\""), Not(HasSubstr("\"u\""))));
}

TEST(Importer, ShapeArithmeticFolds) {
  EXPECT_EQ(opsOf(modelText(R"(
    g (float[N, 4, 6] x) => (float[N, M] y) {
      shape = Shape(x)
      zero = Constant<value_ints = [0]>()
      batch = Gather(shape, zero)
      rest = Constant<value_ints = [-1]>()
      wanted = Concat<axis = 0>(batch, rest)
      y = Reshape(x, wanted)
    })"),
                  {{{"N", 2}}}),
            "reshape");
}

TEST(Importer, OurOwnDomainIsOurs) {
  auto model = parseModel(modelText("g (float[2] x) => (float[2] y) { y = Neg(x) }"));
  model->mutable_graph()->mutable_node(0)->set_domain("oriel");
  model->mutable_graph()->mutable_node(0)->set_op_type("SpreadRows");
  EXPECT_THAT(errorsOf(std::move(model)), HasSubstr("is of the domain \"oriel\""));
}

TEST(Importer, DeadNodesNeedNoSupport) {
  EXPECT_EQ(opsOf(modelText("g (float[2] x) => (float[2] y) { y = Neg(x)\n z = NonZero(x) }")),
            "neg");
}

TEST(Importer, LocationsNameNodeAndModule) {
  auto model = parseModel(modelText("g (float[2] x) => (float[2] y) { [n1] y = Neg(x) }"));
  auto* entry = model->mutable_graph()->mutable_node(0)->add_metadata_props();
  entry->set_key("pkg.torch.onnx.name_scopes");
  entry->set_value("['', 'model', \"model.layers.0\", 'neg_1']");
  auto file = ModelFile::fromProto(std::move(model), "test.onnx", "");
  mlir::MLIRContext context;
  auto module = importModel(context, *file, {});
  ASSERT_TRUE(module);
  mlir::Operation* neg = nullptr;
  module->walk([&](ir::NegOp op) { neg = op; });
  ASSERT_TRUE(neg);
  EXPECT_EQ(nodeNameOf(neg->getLoc()), "n1");
  EXPECT_EQ(modulePathOf(neg->getLoc()), "model.layers.0");
}

TEST(Importer, NodeNamesThatArePaths) {
  onnx::NodeProto node;
  node.set_name("/model/layers.0/attn/MatMul_1");
  EXPECT_EQ(modulePath(node), "model.layers.0.attn");
  node.set_name("MatMul_1");
  EXPECT_EQ(modulePath(node), "");
  auto* entry = node.add_metadata_props();
  entry->set_key("pkg.torch.onnx.name_scopes");
  for (const char* broken : {"", "[", "['a", "['a', 'b'", "[a, b]", "['a']", "[]", "['\\"}) {
    entry->set_value(broken);
    EXPECT_EQ(modulePath(node), "") << broken;
  }
}

TEST(Importer, LocalFunctionsAreInlined) {
  EXPECT_EQ(opsOf(R"(<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
    g (float[2] x) => (float[2] y) { y = local.twice(x) }
    <domain: "local", opset_import: ["" : 20]>
    twice (a) => (b) { b = Add(a, a) })"),
            "add");
}

// Also where another function calls it, or hands on an attribute that its own call doesn't give.
TEST(Importer, LocalFunctionsHaveDefaultsOfAttributes) {
  for (const char* called : {"scaled", "other", "handing_on"}) {
    EXPECT_EQ(opsOf(std::string(R"(<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
      g (float[2] x) => (float[2] y) { y = local.)") +
                    called + R"((x) }
      <domain: "local", opset_import: ["" : 20]>
      scaled <factor: float = 0.3> (a) => (b) {
        c = Constant<value_float: float = @factor>()
        b = Mul(a, c)
      }
      <domain: "local", opset_import: ["" : 20, "local" : 1]>
      other (a) => (b) { b = local.scaled(a) }
      <domain: "local", opset_import: ["" : 20, "local" : 1]>
      handing_on <factor> (a) => (b) { b = local.scaled<factor: float = @factor>(a) })"),
              "mul")
        << called;
  }
}

// One whose logarithms are read is no reason to inline the other.
TEST(Importer, BodiesOfSomeNodes) {
  EXPECT_THAT(opsOf(modelText("g (float[4, 5] x, int64[4] l) => (float y, float[4, 5] z) { "
                              "a = SoftmaxCrossEntropyLoss(x, l)\n"
                              "b, z = SoftmaxCrossEntropyLoss(x, l)\n y = Add(a, b) }")),
              AllOf(HasSubstr("cross_entropy div"), HasSubstr("gather")));
}

// Its body is what other tools know of it.
TEST(Importer, WhereAGradientStops) {
  const std::string call = R"(<ir_version: 10, opset_import: ["" : 20, "ai.oriel" : 1]>
    g (float[2] x) => (float[2] y) { y = ai.oriel.StopGradient(x) })";
  EXPECT_EQ(opsOf(call), "stop_gradient");
  EXPECT_EQ(opsOf(call + R"(<domain: "ai.oriel", opset_import: ["" : 20]>
    StopGradient (a) => (b) { b = Identity(a) })"),
            "stop_gradient");
}

TEST(Importer, LocalFunctionsThatCallEachOther) {
  EXPECT_THAT(testing::importText(R"(<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
    g (float[2] x) => (float[2] y) { y = local.ping(x) }
    <domain: "local", opset_import: ["" : 20, "local" : 1]>
    ping (a) => (b) { b = local.pong(a) }
    <domain: "local", opset_import: ["" : 20, "local" : 1]>
    pong (a) => (b) { b = local.ping(a) })")
                  .errors,
              HasSubstr("can't inline the functions"));
}

TEST(Importer, OpsDefinedByOthersAreInlined) {
  // Oriel has none of its own; ONNX defines it by a body, whose attributes have defaults.
  EXPECT_THAT(opsOf(modelText("g (float[2] x) => (float[2] y) { y = ThresholdedRelu(x) }")),
              HasSubstr("select"));
}

TEST(Importer, BodyOfFloatsForIntegers) {
  EXPECT_THAT(errorsOf("g (float[4, 5] x, float[4, 5] p) => (float loss) { q = Softmax(p) "
                       "[far] loss = NegativeLogLikelihoodLoss(x, q) }"),
              AllOf(HasSubstr("node \"far\" (NegativeLogLikelihoodLoss): its target, \"q\", is "
                              "tensor(float), where ONNX has tensor(int32), tensor(int64) alone"),
                    HasSubstr("docs/import.md")));
}

// --- Graphs that can't be

TEST(Importer, UnsupportedOp) {
  EXPECT_THAT(errorsOf("g (float[2, 3] x) => (float[2, 3] y) { [far] y = Det(x) }"),
              AllOf(HasSubstr("node \"far\" uses the op Det (opset 20)"),
                    HasSubstr("ops are supported, docs/generated/onnx_ops.md")));
  EXPECT_THAT(testing::importText("<ir_version: 10, opset_import: [\"\" : 20, \"com.acme\" : 1]>"
                                  "g (float[2] x) => (float[2] y) { y = com.acme.Sofmax(x) }")
                  .errors,
              AllOf(HasSubstr("domain \"com.acme\""), HasSubstr("nearest by name is Softmax")));
}

TEST(Importer, UnsupportedOpNamesItsModule) {
  auto model = parseModel(modelText("g (float[2, 2] x) => (float y) { [far] y = Det(x) }"));
  auto* entry = model->mutable_graph()->mutable_node(0)->add_metadata_props();
  entry->set_key("pkg.torch.onnx.name_scopes");
  entry->set_value("['', 'model.tower', 'det']");
  EXPECT_THAT(errorsOf(std::move(model)), HasSubstr("in the module model.tower"));
}

TEST(Importer, MissingInitializer) {
  auto model = parseModel(
      modelText("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [n] y = Mul(x, w) }"));
  model->mutable_graph()->clear_initializer();
  EXPECT_THAT(errorsOf(std::move(model)),
              HasSubstr("node \"n\" reads \"w\", which no node, input or initializer provides"));
}

TEST(Importer, CyclicGraph) {
  EXPECT_THAT(
      errorsOf("g (float[2] x) => (float[2] y) { [a] y = Add(x, z)\n [b] z = Neg(y) }"),
      AllOf(HasSubstr("a cycle through the nodes"), HasSubstr("\"a\""), HasSubstr("\"b\"")));
}

TEST(Importer, UnsortedGraphIsSorted) {
  EXPECT_EQ(opsOf(modelText("g (float[2] x) => (float[2] y) { y = Neg(z)\n z = Exp(x) }")),
            "exp neg");
}

TEST(Importer, ValueProducedTwice) {
  EXPECT_THAT(errorsOf("g (float[2] x) => (float[2] y) { [a] y = Neg(x)\n [b] y = Exp(x) }"),
              HasSubstr("\"y\" is produced twice, by the nodes \"a\" and \"b\""));
}

TEST(Importer, OutputThatNothingProduces) {
  EXPECT_THAT(errorsOf("g (float[2] x) => (float[2] y) { z = Neg(x) }"), HasSubstr("\"y\""));
}

TEST(Importer, InvalidNode) {
  EXPECT_THAT(errorsOf("g (float[2] x) => (float[2] y) { [n] y = Neg(x, x) }"),
              AllOf(HasSubstr("node \"n\" (Neg)"), HasSubstr("not valid ONNX")));
}

TEST(Importer, OperandsThatDoNotFit) {
  EXPECT_THAT(
      errorsOf("g (float[2] x, float[3] z) => (float[2] y) { [n] y = Add(x, z) }"),
      AllOf(HasSubstr("oriel.add"), HasSubstr("while importing the node \"n\" (Add, opset 20)")));
}

TEST(Importer, ShapeThatDependsOnData) {
  EXPECT_THAT(errorsOf("g (float[4] x, int64[1] s) => (float[4] y) { [n] y = Reshape(x, s) }"),
              AllOf(HasSubstr("node \"n\" (Reshape)"), HasSubstr("known at compile time")));
  EXPECT_THAT(errorsOf("g (float[4] x) => (int64[1, N] y) { [n] y = NonZero(x) }"),
              HasSubstr("depends on the data"));
}

TEST(Importer, ReshapeToAnOverflowingShape) {
  EXPECT_THAT(errorsOf("g (float[4] x) => (float[4] y) "
                       "<int64[3] s = {4611686018427387904, 4611686018427387904, 4}> "
                       "{ y = Reshape(x, s) }"),
              HasSubstr("the shape has the size"));
}

TEST(Importer, HugeResultsAreRefused) {
  EXPECT_NE(errorsOf("g (float[4] x) => (float[4] y) "
                     "<int64[3] s = {1099511627776, 1099511627776, 4}> { y = Expand(x, s) }"),
            "");
  EXPECT_NE(errorsOf("g (float[4] x) => (float[4] y) <int64[1] s = {4611686018427387904}> "
                     "{ y = Tile(x, s) }"),
            "");
}

// --- The merge of image features

// Parts as PyTorch's exporter writes x.masked_scatter(mask, source).
const char kMaskedScatter[] = R"(
  g (float[2, 4, 3] x, bool[2, 4] m, float[2, 2, 3] source) => (float[2, 4, 3] y)
  <int64[1] zero = {0}, int64[1] last = {-1}, int64[3] full = {2, 4, 3}> {
    column = Unsqueeze(m, last)
    mask = Expand(column, full)
    positions = NonZero(mask)
    indices = Transpose<perm = [1, 0]>(positions)
    flat = Reshape(source, last)
    shape = Shape(indices)
    count = Gather(shape, zero)
    rows = Slice(flat, zero, count, zero)
    y = ScatterND(x, indices, rows)
  })";

TEST(MaskedScatter, OfElements) {
  Imported imported = importText(modelText(kMaskedScatter));
  EXPECT_EQ(imported.errors, "");
  EXPECT_EQ(imported.ops, "reshape broadcast masked_scatter");
  EXPECT_THAT(imported.ir, HasSubstr("(tensor<2x4x3xf32>, tensor<2x4x3xi1>, tensor<2x2x3xf32>)"));
}

TEST(MaskedScatter, OfRows) {
  // x[mask] = source
  EXPECT_EQ(opsOf(modelText(R"(
    g (float[2, 4, 3] x, bool[2, 4] m, float[5, 3] source) => (float[2, 4, 3] y) {
      positions = NonZero(m)
      indices = Transpose(positions)
      y = ScatterND(x, indices, source)
    })")),
            "reshape broadcast masked_scatter");
}

// x[mask] = source, as PyTorch's newer exporter writes it.
std::string indexPut(const std::string& source) {
  return R"(
  g (float[2, 4, 3] x, bool[2, 4] m, float[)" +
         source + R"(] source) => (float[2, 4, 3] y)
  <int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}, int64[1] last = {-1}> {
    column = Unsqueeze(m, last)
    shape = Shape(x)
    mask = Expand(column, shape)
    positions = NonZero(mask)
    indices = Transpose<perm = [1, 0]>(positions)
    flat = Reshape(m, last)
    ones = Cast<to = 7>(flat)
    count = ReduceSum(ones)
    row = Slice(shape, two, three, zero)
    wanted = Concat<axis = 0>(count, row)
    rows = Expand(source, wanted)
    updates = Reshape(rows, last)
    y = ScatterND(x, indices, updates)
  })";
}

// The same with a count that another op gives a dimension.
std::string indexPutByScalar(const std::string& source, const std::string& rows) {
  std::string text = indexPut(source);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"count = ReduceSum(ones)",
                                            "sum = ReduceSum<keepdims = 0>(ones)\n"
                                            "    count = Unsqueeze(sum, zero)"},
        {"row = Slice(shape, two, three, zero)", rows}}) {
    text.replace(text.find(from), from.size(), to);
  }
  return text;
}

TEST(MaskedScatter, OfRowsByAnyCount) {
  const std::string known = "row = Gather(shape, two)", unknown = "row = Shape<start = 2>(x)";
  EXPECT_EQ(opsOf(modelText(indexPutByScalar("3", known))), "reshape broadcast select");
  EXPECT_EQ(opsOf(modelText(indexPutByScalar("5, 3", known))), "reshape broadcast masked_scatter");
  EXPECT_EQ(opsOf(modelText(indexPutByScalar("1, 3", unknown))), "reshape broadcast select");
  EXPECT_EQ(opsOf(modelText(indexPutByScalar("5, 3", unknown))),
            "reshape broadcast masked_scatter");
  EXPECT_THAT(errorsOf(indexPutByScalar("3", unknown)), HasSubstr("does not fit"));
}

TEST(MaskedScatter, OfExpandedRows) {
  EXPECT_EQ(opsOf(modelText(indexPut("5, 3"))), "reshape broadcast masked_scatter");
  // One row for all positions needs no count.
  EXPECT_EQ(opsOf(modelText(indexPut("1, 3"))), "reshape broadcast select");
  EXPECT_EQ(opsOf(modelText(indexPut("3"))), "reshape broadcast select");
  EXPECT_EQ(opsOf(modelText(indexPut("1"))), "reshape broadcast select");
  EXPECT_THAT(errorsOf(indexPut("4")), HasSubstr("does not fit"));
  EXPECT_THAT(errorsOf(indexPut("5, 1")), HasSubstr("does not fit"));
}

TEST(Importer, NamesThatNoShardCanHold) {
  EXPECT_THAT(importText(modelText("g (float[2] x) => (float[2] y) { y = Neg(x) }")).errors, "");
  auto model = parseModel(modelText("g (float[2] x) => (float[2] y) { y = Neg(x) }"));
  model->mutable_graph()->mutable_input(0)->set_name("a/x");
  model->mutable_graph()->mutable_node(0)->set_input(0, "a/x");
  auto file = ModelFile::fromProto(std::move(model), "test.onnx", "");
  EXPECT_THAT(testing::importFile(*file, {}).errors, HasSubstr("the input \"a/x\" has a '/'"));
}

// ONNX Runtime's optimizer writes it as if it were ONNX's.
TEST(Importer, OpsThatOnnxDoesNotDefine) {
  EXPECT_EQ(opsOf(modelText("g (float[2, 4] x) => (float[2, 4] y) <float[4] w = {1, 2, 3, 4}> "
                            "{ y = SimplifiedLayerNormalization<axis = -1>(x, w) }")),
            "rms_norm");
}

TEST(Importer, QuantizedModelsHaveARemedy) {
  EXPECT_THAT(errorsOf("g (int8[2] x, float s) => (float[2] y) "
                       "<int8 z = {0}> { y = DequantizeLinear(x, s, z) }"),
              HasSubstr("quantized for inference"));
  EXPECT_THAT(errorsOf("g (float[2] x, float s) => (int8[2] y) "
                       "<int8 z = {0}> { y = QuantizeLinear(x, s, z) }"),
              HasSubstr("quantized for inference: train the one from before"));
}

TEST(MaskedScatter, NamesDoNotMatterButStructureDoes) {
  std::string text = kMaskedScatter;
  // The slice ends at the count of another mask.
  auto at = text.find("shape = Shape(indices)");
  text.replace(at, 22, "np = NonZero(m)\n ni = Transpose(np)\n shape = Shape(ni)");
  EXPECT_THAT(errorsOf(text), HasSubstr("NonZero"));
}

TEST(MaskedScatter, OtherScattersAreRefused) {
  EXPECT_THAT(errorsOf("g (float[4] x, int64[2, 1] i, float[2] u) => (float[4] y) "
                       "{ [n] y = ScatterND<reduction = \"max\">(x, i, u) }"),
              HasSubstr("the reduction \"max\" is not supported"));
  EXPECT_THAT(errorsOf("g (float[4] x, bool[4, 2] m, float[2] u) => (float[4] y) "
                       "{ p = NonZero(m)\n i = Transpose(p)\n [n] y = ScatterND(x, i, u) }"),
              HasSubstr("does not fit"));
}

// --- Damage

TEST(Importer, DeclaredSizesAreNotEnumerated) {
  EXPECT_THAT(errorsOf("g (float[4194304, 8388608] x) => (float[] y) { y = Trilu(x) }"),
              HasSubstr("more than"));
  EXPECT_NE(errorsOf("g (float[4] x) => (float[] y) <int64[1] n = {1099511627776}> "
                     "{ s = ConstantOfShape<value = int64[1] {1}>(n)\n y = Reshape(x, s) }"),
            "");
  EXPECT_NE(errorsOf("g (float[4] x) => (float[] a) "
                     "{ a = Split<num_outputs = 4611686018427387904>(x) }"),
            "");
}

TEST(Importer, FlippedBytesNeverCrash) {
  const std::string models[] = {
      modelText(kMaskedScatter),
      modelText("g (float[2, 3, 8, 8] x) => (float[] y) <float[4, 3, 3, 3] w, float[6] b> {"
                "c = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w)"
                "s = Constant<value_ints = [2, 4, -1]>() r = Reshape(c, s)"
                "t = Transpose<perm = [0, 2, 1]>(r) z = Softmax<axis = -1>(t)"
                "p = Constant<value_ints = [1, 1, 1, 1, 1, 1]>() y = Pad(z, p) }"),
  };
  std::mt19937 random(7);
  int imported = 0;
  for (const std::string& text : models) {
    auto proto = parseModel(text);
    for (const auto& info : proto->graph().value_info()) {  // declared without values: a weight
      auto* tensor = proto->mutable_graph()->add_initializer();
      tensor->set_name(info.name());
      tensor->set_data_type(onnx::TensorProto::FLOAT);
      int64_t size = sizeof(float);
      for (const auto& dim : info.type().tensor_type().shape().dim()) {
        tensor->add_dims(dim.dim_value());
        size *= dim.dim_value();
      }
      tensor->set_raw_data(std::string(size, '\1'));
    }
    const std::string whole = testing::serialize(*proto);
    auto intact = ModelFile::fromProto(std::move(proto), "test.onnx", "");
    ASSERT_TRUE(static_cast<bool>(intact));
    ASSERT_EQ(testing::importFile(*intact, {}).errors, "");
    for (int round = 0; round < 1500; ++round) {
      std::string bytes = whole;
      for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
        bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
      }
      auto damaged = std::make_unique<onnx::ModelProto>();
      if (!damaged->ParseFromString(bytes)) {
        continue;
      }
      auto model = ModelFile::fromProto(std::move(damaged), "test.onnx", "");
      if (!model) {
        EXPECT_NE(llvm::toString(model.takeError()), "");
        continue;
      }
      Imported result = testing::importFile(*model, {});
      EXPECT_TRUE(!result.ir.empty() || !result.errors.empty());
      imported += !result.ir.empty();
    }
  }
  EXPECT_GT(imported, 100);  // most flips hit names
}

}  // namespace
}  // namespace oriel
