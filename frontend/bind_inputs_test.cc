// Sizes of symbolic dimensions.
#include "frontend/bind_inputs.h"

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
using testing::parseModel;

TEST(BindInputs, UnboundDimension) {
  EXPECT_THAT(errorsOf("g (float[batch, 2] pixel_values) => (float[batch, 2] y) "
                       "{ y = Neg(pixel_values) }"),
              HasSubstr("input \"pixel_values\" has the unbound dimension \"batch\": give --bind "
                        "batch=N or model.bind in the recipe"));
}

TEST(BindInputs, BoundNameThatNoInputHas) {
  EXPECT_THAT(
      errorsOf("g (float[batch, 2] x) => (float[batch, 2] y) { y = Neg(x) }", {{{"bacth", 2}}}),
      AllOf(HasSubstr("no input has a dimension named \"bacth\""),
            HasSubstr("did you mean \"batch\"")));
}

TEST(BindInputs, BoundWhereADimensionHasNoName) {
  EXPECT_THAT(errorsOf("g (float[?, 2] x) => (float[2] y) { y = ReduceSum<keepdims = 0>(x) }",
                       {{{"batch", 2}}}),
              HasSubstr("that of \"x\" has no name"));
}

TEST(BindInputs, BoundBelowNothing) {
  EXPECT_THAT(errorsOf("g (float[N] x) => (float[N] y) { y = Neg(x) }", {{{"N", -1}}}),
              HasSubstr("bound to -1; it must be at least 0"));
}

// The past of a key-value cache is no input of a training step.
TEST(BindInputs, AnInputBoundToNothingIsAConstant) {
  Imported imported = importText(modelText("g (float[past, 2] p, float[N, 2] x) => (float[M, 2] y) "
                                           "{ all = Concat<axis = 0>(p, x) y = Neg(all) }"),
                                 {{{"past", 0}, {"N", 3}}});
  EXPECT_EQ(imported.errors, "");
  EXPECT_EQ(imported.ops, "neg");
  EXPECT_THAT(imported.ir, Not(HasSubstr("oriel.ref = \"p\"")));
  EXPECT_THAT(errorsOf("g (float[N] x) => (float[N] y) { y = Neg(x) }", {{{"N", 0}}}),
              HasSubstr("no input has elements"));
}

// The size that a dimension of these bindings gets, or the errors.
std::string sizeOf(const std::string& dimension, const DimensionBindings& bind) {
  auto model =
      parseModel(modelText("g (float[N] x, float[A, B] z) => (float[N] y) { y = Neg(x) }"));
  model->mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param(dimension);
  auto file = ModelFile::fromProto(std::move(model), "test.onnx", "");
  DimensionBindings all = bind;
  all.emplace("A", 1);
  all.emplace("B", 1);
  Imported imported = testing::importFile(*file, {all});
  const size_t at = imported.ir.find("tensor<");
  return imported.errors.empty() ? imported.ir.substr(at, imported.ir.find('>') - at + 1)
                                 : imported.errors;
}

TEST(BindInputs, ADimensionIsWhatItsNamesSay) {
  EXPECT_EQ(sizeOf("past_sequence + sequence", {{"past_sequence", 3}, {"sequence", 4}}),
            "tensor<7xf32>");
  EXPECT_EQ(sizeOf("2*s0 - 1", {{"s0", 4}}), "tensor<7xf32>");
  EXPECT_EQ(sizeOf("(n + 1)//2*m", {{"n", 4}, {"m", 5}}), "tensor<10xf32>");
  // What is bound as a whole is no expression, nor is a name with a hyphen.
  EXPECT_EQ(sizeOf("a + b", {{"a + b", 9}}), "tensor<9xf32>");
  EXPECT_EQ(sizeOf("seq-len", {{"seq-len", 6}}), "tensor<6xf32>");
  EXPECT_EQ(sizeOf("my dim", {{"my dim", 6}}), "tensor<6xf32>");
}

TEST(BindInputs, DimensionsThatHaveNoSize) {
  EXPECT_THAT(sizeOf("past + sequence", {{"past", 3}}),
              HasSubstr("the unbound dimension \"past + sequence\": give --bind sequence=N or"));
  EXPECT_THAT(sizeOf("n - 5", {{"n", 4}}), HasSubstr("no size with what its names are bound to"));
  EXPECT_THAT(sizeOf("4//n", {{"n", 0}}), HasSubstr("no size with"));
  EXPECT_THAT(sizeOf("n*n*n", {{"n", int64_t{1} << 40}}), HasSubstr("no size with"));
  EXPECT_THAT(sizeOf("n + + )", {}),
              HasSubstr("the unbound dimension \"n + + )\": give --bind n + +"));
  EXPECT_THAT(sizeOf("s0)>, affine_map<(d0", {}), HasSubstr("unbound"));
  EXPECT_THAT(sizeOf(std::string(100000, '(') + "n", {}), HasSubstr("unbound"));
}

TEST(BindInputs, DimensionWithoutName) {
  EXPECT_THAT(errorsOf("g (float[?] x) => (float[?] y) { y = Neg(x) }"),
              HasSubstr("input \"x\" has no size and no name for dimension 0"));
}

}  // namespace
}  // namespace oriel
