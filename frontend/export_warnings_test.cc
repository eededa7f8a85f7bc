#include "frontend/export_warnings.h"

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Imported;
using testing::importText;
using testing::modelText;
using testing::parseModel;

TEST(ExportWarnings, OptimizedWeights) {
  auto model = parseModel(
      modelText("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] val_3 = {1, 2}> "
                "{ z = Mul(x, w)\n y = Mul(z, val_3) }"));
  auto* info = model->mutable_graph()->add_value_info();
  info->set_name("w");
  auto* entry = info->add_metadata_props();
  entry->set_key(kSignatureKindKey);
  entry->set_value("PARAMETER");
  auto file = ModelFile::fromProto(std::move(model), "test.onnx", "");
  Imported imported = testing::importFile(*file, {});
  EXPECT_THAT(imported.errors, AllOf(HasSubstr("\"val_3\""), HasSubstr("optimize=False")));
  EXPECT_NE(imported.ir, "");
}

// A gate, which a constant of the exporter or of a hand-written model does not look like.
TEST(ExportWarnings, NumbersWithAModulesName) {
  const auto warnings = [](const std::string& name, const std::string& kind,
                           const std::string& producer = "", const std::string& op = "Identity") {
    auto model =
        parseModel(modelText("g (float[2] x) => (float[2] y) <float[1] number = {1}> "
                             "{ gate = " +
                             op + "(number) y = Mul(x, gate) }"));
    model->set_producer_name(producer);
    model->mutable_graph()->mutable_initializer(0)->set_name(name);
    model->mutable_graph()->mutable_node(0)->set_input(0, name);
    if (!kind.empty()) {
      auto* info = model->mutable_graph()->add_value_info();
      info->set_name(name);
      auto* entry = info->add_metadata_props();
      entry->set_key(kSignatureKindKey);
      entry->set_value(kind);
    }
    auto file = ModelFile::fromProto(std::move(model), "test.onnx", "");
    EXPECT_TRUE(static_cast<bool>(file));
    return testing::importFile(*file, {}).errors;
  };
  EXPECT_THAT(warnings("layers.0.gate", ""), HasSubstr("\"layers.0.gate\" is a single number"));
  EXPECT_EQ(warnings("layers.0.gate", "PARAMETER"), "");
  EXPECT_EQ(warnings("one", ""), "");
  EXPECT_THAT(warnings("logit_scale", "", "pytorch"), HasSubstr("\"logit_scale\" is a single"));
  EXPECT_EQ(warnings("onnx::Mul_1", "", "pytorch"), "");
  EXPECT_EQ(warnings("onnx::Mul_1.0", ""), "");
  // Folded from a piece of a parameter: the function of a constant would have been, too.
  EXPECT_THAT(warnings("onnx::Tanh_1", "", "pytorch", "Tanh"), HasSubstr("\"onnx::Tanh_1\""));
}

TEST(ExportWarnings, MergedParameters) {
  // Nodes are named by their modules' paths.
  auto warnings = [](const std::string& second, const std::string& op) {
    auto model =
        parseModel(modelText("g (float[2] x, int64[2] i) => (float[2] y) <float[2] w = {1, 2}> "
                             "{ z = Mul(x, w)\n y = " +
                             op + " }"));
    model->mutable_graph()->mutable_node(0)->set_name("/first/Mul");
    model->mutable_graph()->mutable_node(1)->set_name(second);
    auto file = ModelFile::fromProto(std::move(model), "test.onnx", "");
    return testing::importFile(*file, {}).errors;
  };
  EXPECT_THAT(warnings("/second/Mul", "Mul(z, w)"),
              AllOf(HasSubstr("\"w\""), HasSubstr("first, second"), HasSubstr("optimize=False")));
  EXPECT_EQ(warnings("/first/Mul_1", "Mul(z, w)"), "");
  EXPECT_EQ(warnings("/first_1/Mul", "Mul(z, w)"), "");  // the same module, which runs again
  EXPECT_THAT(warnings("/second/Mul", "Mul(z, v)\n v = Identity(w)"), HasSubstr("first, second"));
  EXPECT_EQ(warnings("/second/Gather", "Gather(w, i)"), "");  // a tied embedding
}

std::string warningsOfHead(const std::string& head) {
  return importText(modelText("g (int64[2] i) => (float[2, 3] y) "
                              "<float[3, 2] e = {1, 2, 3, 4, 5, 6}, float[2, 3] h = {" +
                              head + "}> { x = Gather(e, i)\n y = MatMul(x, h) }"))
      .errors;
}

TEST(ExportWarnings, TransposedCopiesOfEmbeddings) {
  EXPECT_THAT(warningsOfHead("1, 3, 5, 2, 4, 6"),
              HasSubstr("\"h\" has the values of \"e\", transposed"));
  EXPECT_EQ(warningsOfHead("1, 2, 3, 4, 5, 6"), "");
}

TEST(ExportWarnings, ZerosAreNoCopies) {
  EXPECT_EQ(importText(modelText("g (int64[2] i) => (float[2, 2] y) <float[2, 2] e = {0, 0, 0, 0}, "
                                 "float[2, 2] h = {0, 0, 0, 0}> "
                                 "{ x = Gather(e, i)\n y = MatMul(x, h) }"))
                .errors,
            "");
}

TEST(ExportWarnings, WeightsThatAreNodes) {
  const Imported imported = importText(modelText(
      "g (float[2, 2] x) => (float[2, 2] z) { w = Constant<value = float[2, 2] {1, 2, 3, 4}>()\n "
      "y = MatMul(x, w)\n v = Constant<value = float[2, 2] {1, 2, 3, 4}>()\n "
      "t = Transpose(v)\n z = MatMul(y, t) }"));
  EXPECT_THAT(imported.errors,
              HasSubstr("\"w\" and 1 more are weights that the model writes as a Constant node"));
  EXPECT_NE(imported.ir, "");
}

}  // namespace
}  // namespace oriel
