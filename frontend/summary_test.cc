// What `oriel import` prints.
#include "frontend/summary.h"

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string printed(const ModelSummary& summary) {
  std::string text;
  llvm::raw_string_ostream out(text);
  printSummary(summary, out);
  return text;
}

ModelSummary summaryOf(const ModelFile& model, const ImportOptions& options) {
  mlir::MLIRContext context;
  auto module = importModel(context, model, options);
  EXPECT_TRUE(module);
  mlir::PassManager passes(&context);
  passes.addPass(createOrielSpecialize());
  EXPECT_TRUE(module && succeeded(passes.run(*module)));
  return module ? summarize(*module) : ModelSummary();
}

ModelSummary summaryOfText(const std::string& graph, const ImportOptions& options = {}) {
  auto model =
      ModelFile::fromProto(testing::parseModel(testing::modelText(graph)), "nets/small.onnx", "");
  EXPECT_TRUE(static_cast<bool>(model));
  return summaryOf(*model, options);
}

TEST(Summary, CountsAndFlops) {
  ModelSummary summary = summaryOfText(
      "g (float[N, 2] x) => (float[N, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}> "
      "{ y = MatMul(x, w) }",
      {{{"N", 4}}});
  EXPECT_EQ(summary.name, "small");
  EXPECT_EQ(summary.parameters, 6);
  EXPECT_EQ(summary.parameterBytes, 24);
  EXPECT_EQ(summary.samples, 4);
  EXPECT_EQ(summary.flopsPerSample, 2 * 2 * 3);
  EXPECT_THAT(summary.inputs, ElementsAre("x f32[4, 2]"));
  EXPECT_THAT(summary.outputs, ElementsAre("y f32[4, 3]"));
  EXPECT_THAT(printed(summary), AllOf(HasSubstr("model small"), HasSubstr("12 FLOP per sample"),
                                      HasSubstr("1  linear")));
}

TEST(Summary, TextAndVisionModelsAreOnePart) {
  ModelSummary text = summaryOfText(
      "g (int64[4] ids) => (float[4, 2] y) <float[3, 2] table = {1, 2, 3, 4, 5, 6}> "
      "{ y = Gather(table, ids) }");
  ASSERT_EQ(text.parts.size(), 1u);
  EXPECT_EQ(text.parts[0].kind, "language");
  ModelSummary vision = summaryOfText(
      "g (float[1, 2] x) => (float[1, 1] y) <float[2, 1] w = {1, 2}> { y = MatMul(x, w) }");
  ASSERT_EQ(vision.parts.size(), 1u);
  EXPECT_EQ(vision.parts[0].kind, "vision");
}

TEST(Summary, PartsOfAVisionLanguageModel) {
  auto model = ModelFile::open(ORIEL_SOURCE_DIR "/models/llava_tiny/model.onnx");
  ASSERT_TRUE(static_cast<bool>(model)) << llvm::toString(model.takeError());
  ModelSummary summary = summaryOf(*model, {{{"batch", 2}}});
  ASSERT_EQ(summary.parts.size(), 3u);
  EXPECT_EQ(summary.parts[0].kind, "vision");
  EXPECT_EQ(summary.parts[0].label, "model.vision_tower");
  EXPECT_EQ(summary.parts[1].kind, "projector");
  EXPECT_EQ(summary.parts[1].label, "model.multi_modal_projector");
  EXPECT_EQ(summary.parts[2].kind, "language");
  EXPECT_EQ(summary.parts[2].label, "lm_head, model.language_model");
  int64_t parameters = 0;
  double flops = 0;
  for (const ModelPart& part : summary.parts) {
    parameters += part.parameters;
    flops += part.flops;
  }
  EXPECT_EQ(parameters, summary.parameters);
  EXPECT_DOUBLE_EQ(flops, summary.flopsPerSample * 2);
  EXPECT_EQ(summary.opCounts["masked_scatter"], 1);
  // The batch is only a size: work per sample hardly depends on it.
  EXPECT_NEAR(summaryOf(*model, {{{"batch", 5}}}).flopsPerSample / summary.flopsPerSample, 1, 1e-2);
}

}  // namespace
}  // namespace oriel
