// Models made to do harm: each is refused with one clear error, in bounded time and memory.
#include <string>

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::importText;
using testing::messageOf;
using testing::modelText;
using testing::opsOf;
using testing::parseModel;
using testing::TemporaryFolder;
using testing::writeFile;

std::string errorsOf(const std::string& model) { return importText(model).errors; }

std::string errorsOf(std::unique_ptr<onnx::ModelProto> model) {
  auto file = ModelFile::fromProto(std::move(model), "test.onnx", "");
  return file ? testing::importFile(*file, {}).errors : llvm::toString(file.takeError());
}

// --- Functions

// A model of the functions, in which `name` is called.
std::string withFunctions(const std::string& name, const std::string& functions) {
  return R"(<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
            g (float[2] x) => (float[2] y) { y = f.)" +
         name + "(x) }" + functions;
}

std::string function(const std::string& name, const std::string& body) {
  return "<domain: \"f\", opset_import: [\"\" : 20, \"f\" : 1]>" + name + " (a) => (b) { " + body +
         " }\n";
}

TEST(Hostile, FunctionThatCallsItself) {
  EXPECT_THAT(errorsOf(withFunctions("f", function("f", "b = f.f(a)"))),
              HasSubstr("must not be recursive"));
}

TEST(Hostile, FunctionsThatCallEachOther) {
  EXPECT_THAT(errorsOf(withFunctions(
                  "f", function("f", "c = f.h(a) b = f.h(c)") + function("h", "b = f.f(a)"))),
              HasSubstr("must not be recursive"));
}

TEST(Hostile, FunctionsThatDoubleEachTime) {
  std::string functions = function("f0", "b = Exp(a)");
  for (int i = 1; i < 60; ++i) {
    std::string below = "f.f" + std::to_string(i - 1);
    functions += function("f" + std::to_string(i), "c = " + below + "(a) b = " + below + "(c)");
  }
  EXPECT_THAT(errorsOf(withFunctions("f59", functions)),
              HasSubstr("they make more than 2097152 nodes"));
  EXPECT_EQ(opsOf(withFunctions("f2", functions)), "exp exp exp exp");
}

TEST(Hostile, FunctionsDeepInEachOther) {
  std::string functions = function("f0", "b = Neg(a)");
  for (int i = 1; i < 10000; ++i) {
    functions += function("f" + std::to_string(i), "b = f.f" + std::to_string(i - 1) + "(a)");
  }
  EXPECT_THAT(errorsOf(withFunctions("f9999", functions)), HasSubstr("depth exceeds"));
}

// --- Graphs

TEST(Hostile, LongChain) {
  auto model = parseModel(modelText("g (float[2] x) => (float[2] y) { y = Neg(x) }"));
  onnx::GraphProto& graph = *model->mutable_graph();
  graph.clear_node();
  constexpr int kNodes = 100000;
  // Last node first, so that the sort has to go all the way down.
  for (int i = kNodes; i > 0; --i) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Neg");
    node.add_input(i == 1 ? "x" : "v" + std::to_string(i - 1));
    node.add_output(i == kNodes ? "y" : "v" + std::to_string(i));
  }
  EXPECT_EQ(errorsOf(std::move(model)), "");
}

TEST(Hostile, GraphsDeepInEachOther) {
  // As bytes: no library would write it. Each level is a graph in an attribute of a node, which
  // is the fields 1 (node), 5 (attribute) and 6 (graph) around what is inside.
  std::string bytes;
  auto wrap = [&](char field) {
    std::string header(1, static_cast<char>(field << 3 | 2));
    size_t size = bytes.size();
    for (; size >= 128; size >>= 7) {
      header += static_cast<char>((size & 127) | 128);
    }
    bytes.insert(0, header + static_cast<char>(size));
  };
  for (int i = 0; i < 10000; ++i) {
    wrap(6);
    wrap(5);
    wrap(1);
  }
  wrap(7);
  TemporaryFolder folder;
  writeFile(folder.path("deep.onnx"), bytes);
  EXPECT_THAT(messageOf(ModelFile::open(folder.path("deep.onnx"))),
              AllOf(HasSubstr("deep.onnx"), HasSubstr("nested too deeply")));
}

TEST(Hostile, NodesWithoutOperands) {
  // Whatever looks at a node before it is checked: each of these is read by its structure, or by
  // the names of modules.
  for (const char* op : {"Identity", "Gather", "ScatterND", "SequenceAt", "Shape", "NonZero"}) {
    auto model = parseModel(modelText("g (float[2] x) => (float[2] y) { y = Neg(x) }"));
    auto* node = model->mutable_graph()->mutable_node(0);
    node->set_op_type(op);
    node->set_name("/layers.0/" + std::string(op));
    node->clear_input();
    EXPECT_THAT(errorsOf(std::move(model)), HasSubstr(op));
  }
}

TEST(Hostile, TextDeepBehindManyArrows) {
  std::string functions;
  for (int i = 0; i < 1000; ++i) {
    functions += function("f" + std::to_string(i), "b = Neg(a)");
  }
  for (int i = 0; i < 500; ++i) {
    functions += "<domain: \"f\", opset_import: [\"\" : 20]> g (a) => (b) { b = If<then_branch = ";
  }
  TemporaryFolder folder;
  writeFile(folder.path("deep.onnxtxt"), withFunctions("f0", functions));
  EXPECT_THAT(messageOf(ModelFile::open(folder.path("deep.onnxtxt"))),
              HasSubstr("nested more than 200 deep"));
}

TEST(Hostile, UnknownDomain) {
  EXPECT_THAT(errorsOf(modelText("g (float[2] x) => (float[2] y) { y = com.acme.Frob(x) }")),
              AllOf(HasSubstr("Frob (domain \"com.acme\""), HasSubstr("does not import")));
  EXPECT_THAT(errorsOf("<ir_version: 8, opset_import: [\"\" : 13]> g (float[2, 2] x) => "
                       "(float[2, 2] y) { y = Trilu(x) }"),
              AllOf(HasSubstr("Trilu (opset 13), which Oriel imports from opset 14 on"),
                    Not(HasSubstr("nearest"))));
}

TEST(Hostile, ThreeGigabytesInASmallFile) {
  auto model = parseModel(
      modelText("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }"));
  auto* tensor = model->mutable_graph()->mutable_initializer(0);
  tensor->clear_float_data();
  tensor->clear_raw_data();
  tensor->set_dims(0, 805306368);
  EXPECT_THAT(errorsOf(std::move(model)),
              HasSubstr("holds 0 bytes, but its shape needs 3221225472: the file is damaged"));
}

TEST(Hostile, TensorOfManyDimensions) {
  auto model = parseModel(
      modelText("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }"));
  for (int i = 0; i < 1000; ++i) {
    model->mutable_graph()->mutable_initializer(0)->add_dims(1);
  }
  EXPECT_THAT(errorsOf(std::move(model)), HasSubstr("has 1001 dimensions; Oriel reads up to 32"));
}

// --- Ops that ask for too much

// Errors of a node on x (float[2]), with a constant operand k.
std::string errorsOfNode(const std::string& node, const std::string& k) {
  return errorsOf(modelText("g (float[2] x) => (float[] y) <" + k + "> { [n] y = " + node + " }"));
}

TEST(Hostile, TerabytesFromOneNode) {
  const std::string tera = "= {17592186044417}";
  EXPECT_THAT(errorsOfNode("Expand(x, k)", "int64[2] k = {17592186044417, 2}"),
              HasSubstr("outside 0 to 17592186044416"));
  EXPECT_THAT(errorsOfNode("Tile(x, k)", "int64[1] k " + tera), HasSubstr("outside 0 to"));
  EXPECT_THAT(errorsOfNode("Pad(x, k)", "int64[2] k = {17592186044416, 17592186044416}"),
              HasSubstr("outside 0 to"));
  EXPECT_THAT(errorsOfNode("ConstantOfShape(k)", "int64[1] k " + tera), HasSubstr("outside 0 to"));
  EXPECT_THAT(errorsOfNode("ConstantOfShape(k)", "int64[1] k = {-2}"), HasSubstr("the size -2"));
}

TEST(Hostile, ResultOfManyDimensions) {
  std::string ones = "int64[40] k = {1";
  for (int i = 1; i < 40; ++i) {
    ones += ", 1";
  }
  EXPECT_THAT(errorsOfNode("Expand(x, k)", ones + "}"), HasSubstr("more than 32 dimensions"));
  EXPECT_THAT(errorsOfNode("ConstantOfShape(k)", ones + "}"), HasSubstr("more than 32 dimensions"));
}

TEST(Hostile, NumberThatNoIntegerHolds) {
  EXPECT_THAT(
      errorsOf(modelText("g (int64[2] x) => (int64[2] y) { y = HardSigmoid<alpha = 3.0e38>(x) }")),
      HasSubstr("with elements of type"));
}

TEST(Hostile, RangesWithoutEnd) {
  auto errors = [](const std::string& limit, const std::string& delta) {
    return errorsOf(
        modelText("g (float[1] x) => (float[] y) <float a = {0.0}> {"
                  "big = Constant<value_float = 3.0e38>() inf = Add(big, big)"
                  "nan = Sub(inf, inf) one = Constant<value_float = 1.0>()"
                  "small = Constant<value_float = 1.0e-38>()"
                  "y = Range(a, " +
                  limit + ", " + delta + ") }"));
  };
  EXPECT_THAT(errors("inf", "one"), HasSubstr("elements, more than 16777216"));
  EXPECT_THAT(errors("nan", "one"), HasSubstr("elements, more than 16777216"));
  EXPECT_THAT(errors("one", "nan"), HasSubstr("elements, more than 16777216"));
  EXPECT_THAT(errors("one", "small"), HasSubstr("elements, more than 16777216"));
}

}  // namespace
}  // namespace oriel
