// Low-rank adapters beside linear layers, and merged into them.
#include "frontend/adapters.h"

#include <cmath>
#include <map>
#include <set>

#include "frontend/merge_adapters.h"
#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::messageOf;
using testing::modelText;
using testing::parseModel;

// x U + b, then V^T, with the weight of V stored [outputs, inputs].
const char kMlp[] =
    "g (float[rows, 2] x) => (float[rows, 2] y) "
    "<float[2, 3] up__weight = {1, 2, 3, 4, 5, 6}, float[3] up__bias = {1, 1, 1}, "
    "float[2, 3] down__weight = {1, 0, 2, 0, 1, 0}> "
    "{ h = MatMul(x, up__weight) hb = Add(h, up__bias) y = Gemm<transB = 1>(hb, down__weight) }";

ModelFile open(std::unique_ptr<onnx::ModelProto> proto, const std::string& path = "model.onnx") {
  auto file = ModelFile::fromProto(std::move(proto), path, "");
  EXPECT_TRUE(static_cast<bool>(file));
  return std::move(*file);
}

// ONNX's text has no dots in names: "up__weight" is "up.weight".
std::unique_ptr<onnx::ModelProto> parseDotted(const std::string& graph) {
  auto dot = [](std::string& name) {
    for (size_t at; (at = name.find("__")) != std::string::npos;) name.replace(at, 2, ".");
  };
  auto proto = parseModel(modelText(graph));
  for (auto& tensor : *proto->mutable_graph()->mutable_initializer()) dot(*tensor.mutable_name());
  for (auto& node : *proto->mutable_graph()->mutable_node()) {
    for (std::string& operand : *node.mutable_input()) dot(operand);
  }
  return proto;
}
ModelFile openText(const std::string& graph) { return open(parseDotted(graph)); }

AdapterOptions rankOne() {
  AdapterOptions options;
  options.rank = 1;
  options.alpha = 2;
  options.fill = [](const LinearLayer&, const std::string&, float bound,
                    llvm::MutableArrayRef<float> values) {
    for (float& value : values) value = bound;
  };
  return options;
}

ModelFile adapted(const ModelFile& base, const AdapterOptions& options = rankOne()) {
  auto model = adaptModel(base, linearLayers(base), options, "adapted.onnx");
  EXPECT_TRUE(static_cast<bool>(model));
  auto proto = std::make_unique<onnx::ModelProto>();
  EXPECT_TRUE(proto->ParseFromString(model->bytes));
  return open(std::move(proto), "adapted.onnx");
}

std::vector<std::string> weightsOf(const std::vector<LinearLayer>& layers) {
  std::vector<std::string> names;
  for (const LinearLayer& layer : layers) names.push_back(layer.weight);
  return names;
}

TEST(Adapters, LayersAreFoundWithTheirSizes) {
  const std::vector<LinearLayer> layers = linearLayers(openText(kMlp));
  ASSERT_THAT(weightsOf(layers), ElementsAre("up.weight", "down.weight"));
  EXPECT_EQ(layers[0].module, "up");
  EXPECT_EQ(layers[0].inputs, 2);
  EXPECT_EQ(layers[0].outputs, 3);
  EXPECT_FALSE(layers[0].isOutputFirst);
  EXPECT_FALSE(layers[0].isOutputLayer);
  EXPECT_EQ(layers[1].inputs, 3);
  EXPECT_EQ(layers[1].outputs, 2);
  EXPECT_TRUE(layers[1].isOutputFirst);
  EXPECT_TRUE(layers[1].isOutputLayer);
}

// A head that is tied to an embedding: behind a transpose, and read by another node.
TEST(Adapters, SharedWeightsAreNoted) {
  const std::vector<LinearLayer> layers = linearLayers(
      openText("g (int64[rows] ids) => (float[rows, 3] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> "
               "{ x = Gather(w, ids) t = Transpose(w) y = MatMul(x, t) }"));
  ASSERT_THAT(weightsOf(layers), ElementsAre("w"));
  EXPECT_TRUE(layers[0].isShared);
  EXPECT_TRUE(layers[0].isOutputFirst);
}

TEST(Adapters, WhatIsNoLayerIsLeftOut) {
  // A weight both ways, one that is multiplied from the left, a product that is scaled.
  EXPECT_THAT(weightsOf(linearLayers(
                  openText("g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}, "
                           "float[2, 2] v = {1, 2, 3, 4}, float[2, 2] u = {1, 2, 3, 4}> "
                           "{ t = Transpose(w) a = MatMul(x, w) b = MatMul(a, t) c = MatMul(v, b) "
                           "y = Gemm<alpha = 2.0>(c, u) }"))),
              IsEmpty());
}

TEST(Adapters, ALayerInABranchIsFound) {
  const ModelFile model = openText(
      "g (bool which, float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> "
      "{ y = If(which) <then_branch = t () => (float[2, 2] a) { a = MatMul(x, w) }, "
      "else_branch = e () => (float[2, 2] b) { b = Identity(x) }> }");
  const std::vector<LinearLayer> layers = linearLayers(model);
  ASSERT_THAT(weightsOf(layers), ElementsAre("w"));
  EXPECT_TRUE(layers[0].isOutputLayer);
  auto branch = adapted(model).graph().node(2).attribute(0).g();
  EXPECT_EQ(branch.node_size(), 5);
  EXPECT_EQ(branch.node(4).output(0), "a");
}

// Each branch has values of its own, which may have the same names.
TEST(Adapters, BranchesMayUseNamesAgain) {
  const ModelFile model = openText(
      "g (bool which, float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> "
      "{ y = If(which) <then_branch = t () => (float[2, 2] a) { t = Transpose(w) a = MatMul(x, t) "
      "}, else_branch = e () => (float[2, 2] a) { t = Relu(x) a = MatMul(x, t) }> }");
  const ModelFile changed = adapted(model);
  std::vector<int> nodes;
  for (const auto& attribute : changed.graph().node(2).attribute()) {
    nodes.push_back(attribute.g().node_size());
  }
  EXPECT_THAT(nodes, ElementsAre(2 + 4, 2));
  const ModelFile both = openText(
      "g (bool which, float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> "
      "{ y = If(which) <then_branch = t () => (float[2, 2] a) { a = MatMul(x, w) }, "
      "else_branch = e () => (float[2, 2] a) { a = MatMul(x, w) }> }");
  const ModelFile changedBoth = adapted(both);
  std::set<std::string> values;
  for (const auto& attribute : changedBoth.graph().node(2).attribute()) {
    for (const auto& node : attribute.g().node()) values.insert(node.output(0));
  }
  EXPECT_EQ(values.size(), 4U * 2 + 1);  // but for the results
}

// A branch's own initializer is no parameter of the other one, whatever its name.
TEST(Adapters, BranchesMayNameTheirInitializersAlike) {
  const ModelFile model = openText(
      "g (bool which, float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> "
      "{ y = If(which) <then_branch = t () => (float[2, 2] a) { t = Transpose(w) a = MatMul(x, t) "
      "}, else_branch = e () => (float[2, 2] a) <float[2, 2] t = {1, 0, 0, 1}> { a = MatMul(x, t) "
      "}> }");
  EXPECT_FALSE(linearLayers(model).front().isShared);
  const ModelFile changed = adapted(model);
  std::vector<int> nodes;
  for (const auto& attribute : changed.graph().node(2).attribute()) {
    nodes.push_back(attribute.g().node_size());
  }
  EXPECT_THAT(nodes, ElementsAre(2 + 4, 1));
}

TEST(Adapters, TheOutputLayerIsBehindWhatKeepsColumns) {
  for (const char* end : {"y = Softmax(h)", "i = Identity(b) y = Add(h, i)", "y = Transpose(h)",
                          "s = Shape(h) y = Reshape(h, s)"}) {
    const std::vector<LinearLayer> layers =
        linearLayers(openText(std::string("g (float[2, 2] x) => (float[2, 2] y) "
                                          "<float[2, 2] w = {1, 2, 3, 4}, float[2] b = {1, 2}> "
                                          "{ h = MatMul(x, w) ") +
                              end + " }"));
    EXPECT_TRUE(layers.at(0).isOutputLayer) << end;
  }
  // Keys that a decoder gives for its cache, and uses.
  const std::vector<LinearLayer> keys = linearLayers(
      openText("g (float[2, 2] x) => (float[2, 2] y, float[2, 2] present) "
               "<float[2, 2] w = {1, 2, 3, 4}> "
               "{ h = MatMul(x, w) present = Transpose(h) s = MatMul(x, present) y = Relu(s) }"));
  EXPECT_FALSE(keys.at(0).isOutputLayer);
  // Logits, and their probabilities.
  const std::vector<LinearLayer> both =
      linearLayers(openText("g (float[2, 2] x) => (float[2, 2] y, float[2, 2] p) "
                            "<float[2, 2] w = {1, 2, 3, 4}> { y = MatMul(x, w) p = Softmax(y) }"));
  EXPECT_TRUE(both.at(0).isOutputLayer);
  const std::vector<LinearLayer> residual =
      linearLayers(openText("g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> "
                            "{ h = MatMul(x, w) y = Add(h, x) }"));
  EXPECT_FALSE(residual.at(0).isOutputLayer);
}

TEST(Adapters, ProductsAreAddedBehindALayer) {
  const ModelFile model = adapted(openText(kMlp));
  std::string ops;
  for (const auto& node : model.graph().node()) ops += node.op_type() + " ";
  EXPECT_EQ(ops,
            "Transpose Transpose Transpose Transpose "
            "MatMul MatMul Mul MatMul Add Add Gemm MatMul Mul MatMul Add ");
  auto a = model.initializer("up.lora_A.weight"), b = model.initializer("down.lora_B.weight");
  ASSERT_TRUE(a && b);
  EXPECT_THAT(a->shape, ElementsAre(1, 2));
  EXPECT_THAT(decodeFloats(*a), ElementsAre(0.70710677F, 0.70710677F));
  EXPECT_THAT(b->shape, ElementsAre(2, 1));
  EXPECT_THAT(decodeFloats(*b), ElementsAre(0, 0));
  EXPECT_EQ(model.role("up.lora_A.weight"), InitializerRole::kParameter);
  EXPECT_EQ(model.role("down.lora_B.weight"), InitializerRole::kParameter);
  EXPECT_EQ(model.role("adapters/lora_scale"), InitializerRole::kConstant);
}

TEST(Adapters, AValueOfTheModelIsNotTakenForTheScale) {
  auto proto = parseDotted(
      "g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2] own = {5, 6}> "
      "{ h = MatMul(x, w) y = Mul(h, own) }");
  proto->mutable_graph()->mutable_initializer(1)->set_name("adapters/lora_scale");
  proto->mutable_graph()->mutable_node(1)->set_input(1, "adapters/lora_scale");
  const ModelFile model = adapted(open(std::move(proto)));
  auto scale = model.initializer("adapters/lora_scale/2");
  ASSERT_TRUE(static_cast<bool>(scale));
  EXPECT_THAT(decodeFloats(*scale), ElementsAre(2));
}

TEST(Adapters, NoScaleWhereAlphaIsTheRank) {
  AdapterOptions options = rankOne();
  options.alpha = 1;
  const ModelFile model = adapted(openText(kMlp), options);
  EXPECT_FALSE(model.hasInitializer("adapters/lora_scale"));
}

// As a converted weight is used, not as it is stored.
TEST(Adapters, AnAdapterHasTheTypeOfItsLayer) {
  const ModelFile model =
      adapted(openText("g (float[2, 2] x) => (float[2, 2] y) <float16[2, 2] w = {1, 2, 3, 4}> "
                       "{ c = Cast<to = 1>(w) y = MatMul(x, c) }"));
  auto header = model.initializerHeader("w.lora_A.weight");
  ASSERT_TRUE(static_cast<bool>(header));
  EXPECT_EQ(header->dataType, onnx::TensorProto::FLOAT);
}

// A weight in two types: the adapter's values are converted for the second.
TEST(Adapters, AWeightThatIsUsedInTwoTypes) {
  const ModelFile model =
      adapted(openText("g (float[2, 2] x, float16[2, 2] z) => (float[2, 2] y, float16[2, 2] v) "
                       "<float16[2, 2] w = {1, 2, 3, 4}> "
                       "{ c = Cast<to = 1>(w) y = MatMul(x, c) v = MatMul(z, w) }"));
  std::string ops;
  for (const auto& node : model.graph().node()) ops += node.op_type() + " ";
  EXPECT_EQ(ops,
            "Transpose Transpose Cast Cast Cast MatMul MatMul Mul MatMul Add "
            "MatMul MatMul Cast Mul Cast MatMul Add ");
}

TEST(Adapters, NamesThatTheMetadataCanNotHave) {
  auto proto = parseModel(modelText(
      "g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul(x, w) }"));
  proto->mutable_graph()->mutable_initializer(0)->set_name("a\tb");
  proto->mutable_graph()->mutable_node(0)->set_input(1, "a\tb");
  const ModelFile model = open(std::move(proto));
  EXPECT_THAT(messageOf(adaptModel(model, linearLayers(model), rankOne(), "adapted.onnx")),
              HasSubstr("a tab or a newline"));
}

// Where the exporter says what tensors are, it would not be one otherwise.
TEST(Adapters, AreParametersWhereTheExporterSaysWhatTensorsAre) {
  auto proto = parseDotted(kMlp);
  for (auto& tensor : *proto->mutable_graph()->mutable_initializer()) {
    auto* entry = tensor.add_metadata_props();
    entry->set_key(kSignatureKindKey);
    entry->set_value(kParameterKind);
  }
  const ModelFile model = adapted(open(std::move(proto)));
  EXPECT_TRUE(model.describes("up.lora_A.weight"));
  EXPECT_EQ(model.role("up.lora_B.weight"), InitializerRole::kParameter);
}

TEST(Adapters, TheModelSaysWhatItHas) {
  auto adapters = adaptersOf(adapted(openText(kMlp)));
  ASSERT_TRUE(static_cast<bool>(adapters));
  EXPECT_EQ(adapters->base, "model.onnx");
  EXPECT_EQ(adapters->rank, 1);
  EXPECT_EQ(adapters->alpha, 2);
  ASSERT_EQ(adapters->all.size(), 2U);
  EXPECT_EQ(adapters->all[1].weight, "down.weight");
  EXPECT_EQ(adapters->all[1].a, "down.lora_A.weight");
  EXPECT_TRUE(adapters->all[1].isOutputFirst);
  auto none = adaptersOf(openText(kMlp));
  ASSERT_TRUE(static_cast<bool>(none));
  EXPECT_THAT(none->all, IsEmpty());
}

TEST(Adapters, ErrorsNameWhatToDo) {
  const ModelFile base = openText(kMlp), once = adapted(base);
  EXPECT_THAT(messageOf(adaptModel(once, linearLayers(once), rankOne(), "twice.onnx")),
              HasSubstr("has adapters already: adapt the model that it was made of"));
  const ModelFile taken = openText(
      "g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}, "
      "float[2] w__lora_A__weight = {1, 2}> "
      "{ h = MatMul(x, w) y = Add(h, w__lora_A__weight) }");
  EXPECT_THAT(messageOf(adaptModel(taken, linearLayers(taken), rankOne(), "adapted.onnx")),
              HasSubstr("has a value \"w.lora_A.weight\" already"));
  auto proto = parseDotted(kMlp);
  auto* entry = proto->add_metadata_props();
  entry->set_key("oriel.adapters");
  entry->set_value("model.onnx\tdeadbeef");
  EXPECT_THAT(messageOf(adaptersOf(open(std::move(proto)))),
              HasSubstr("that `oriel adapt` does not write"));
}

// Weights by name, as a checkpoint of the adapted model has them.
TrainedWeights trained(std::map<std::string, std::vector<float>> values) {
  TrainedWeights weights;
  for (const auto& [name, own] : values) weights.elements[name] = own.size();
  weights.read = [values](const std::string& name, llvm::MutableArrayRef<float> target) {
    llvm::copy(values.at(name), target.begin());
    return llvm::Error::success();
  };
  return weights;
}

std::vector<float> valuesOf(const TrainedWeights& weights, const std::string& name) {
  std::vector<float> values(weights.elements.at(name));
  EXPECT_FALSE(static_cast<bool>(weights.read(name, values)));
  return values;
}

// Both ways to store a weight; the scale is 2.
TEST(MergeAdapters, ProductsAreAddedToWeights) {
  auto proto = parseDotted(kMlp);
  proto->mutable_graph()->mutable_initializer(0)->set_float_data(0, 1.25F);
  const ModelFile base = open(std::move(proto));
  auto adapters = adaptersOf(adapted(base));
  ASSERT_TRUE(static_cast<bool>(adapters));
  TrainedWeights weights = trained({{"up.weight", {1, 2, 3, 4, 5, 6}},
                                    {"up.bias", {5, 5, 5}},
                                    {"up.lora_A.weight", {1, 10}},
                                    {"up.lora_B.weight", {1, 2, 3}},
                                    {"down.weight", {1, 1, 1, 1, 1, 1}},
                                    {"down.lora_A.weight", {1, 2, 3}},
                                    {"down.lora_B.weight", {1, 10}}});
  // Frozen in a plan that rounds to whole numbers: the checkpoint has the file's values, rounded.
  weights.untrained["up.weight"] = [](float value) { return std::round(value); };
  auto merged = mergeAdapters(*adapters, base, weights);
  ASSERT_TRUE(static_cast<bool>(merged));
  EXPECT_EQ(merged->elements.count("up.lora_A.weight"), 0U);
  EXPECT_THAT(valuesOf(*merged, "up.weight"),
              ElementsAre(1.25F + 2, 2 + 4, 3 + 6, 4 + 20, 5 + 40, 6 + 60));
  EXPECT_THAT(valuesOf(*merged, "down.weight"),
              ElementsAre(1 + 2, 1 + 4, 1 + 6, 1 + 20, 1 + 40, 1 + 60));
  EXPECT_THAT(valuesOf(*merged, "up.bias"), ElementsAre(5, 5, 5));
}

TEST(MergeAdapters, ErrorsNameWhatToDo) {
  const ModelFile base = openText(kMlp);
  auto adapters = adaptersOf(adapted(base));
  ASSERT_TRUE(static_cast<bool>(adapters));
  const TrainedWeights half = trained({{"up.lora_A.weight", {1, 2}}});
  EXPECT_THAT(messageOf(mergeAdapters(*adapters, base, half)),
              HasSubstr("does not have \"up.lora_B.weight\""));
  // The loss does not reach any.
  auto none = mergeAdapters(*adapters, base, trained({}));
  ASSERT_TRUE(static_cast<bool>(none));
  EXPECT_THAT(none->elements, IsEmpty());
  const ModelFile other = openText(
      "g (float[rows, 2] x) => (float[rows, 2] y) <float[2, 2] up__weight = {1, 2, 3, 4}> "
      "{ y = MatMul(x, up__weight) }");
  EXPECT_THAT(messageOf(mergeAdapters(*adapters, other, trained({}))),
              HasSubstr("is not the file that was adapted"));
  adapters->all[0].isShared = true;
  EXPECT_THAT(messageOf(mergeAdapters(*adapters, base, half)),
              HasSubstr("something else reads that weight, too"));
}

}  // namespace
}  // namespace oriel
