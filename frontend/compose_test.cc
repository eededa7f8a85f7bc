// Models of several files.
#include "frontend/compose.h"

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::messageOf;
using testing::modelText;
using ::testing::Not;
using testing::parseModel;

const char kVision[] =
    "g (float[images, 4] pixels) => (float[images, 2] image_features) "
    "<float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> { image_features = MatMul(pixels, w) }";
const char kEmbed[] =
    "g (int64[batch, sequence] input_ids) => (float[batch, sequence, 2] inputs_embeds) "
    "<float[3, 2] w = {1, 2, 3, 4, 5, 6}> { inputs_embeds = Gather(w, input_ids) }";
const char kDecoder[] =
    "g (float[batch, sequence, 2] inputs_embeds, float[batch, past, 2] cache) "
    "=> (float[batch, sequence, 3] logits, float[batch, total, 2] present) "
    "<float[2, 3] w = {1, 3, 5, 2, 4, 6}> "
    "{ present = Concat<axis = 1>(cache, inputs_embeds) logits = MatMul(inputs_embeds, w) }";

ModelFile part(const std::string& name, std::unique_ptr<onnx::ModelProto> proto,
               const std::string& folder = "") {
  auto file = ModelFile::fromProto(std::move(proto), folder + name + ".onnx", folder);
  EXPECT_TRUE(static_cast<bool>(file));
  return std::move(*file);
}

std::vector<ModelFile> parts(std::vector<std::pair<std::string, std::string>> graphs) {
  std::vector<ModelFile> files;
  for (const auto& [name, graph] : graphs)
    files.push_back(part(name, parseModel(modelText(graph))));
  return files;
}

std::vector<ModelFile> visionModel() {
  return parts({{"vision", kVision}, {"embed", kEmbed}, {"decoder", kDecoder}});
}

ComposeOptions merging() {
  ComposeOptions options;
  options.merges = {{"image_features", 2}};
  return options;
}

ModelFile opened(const ComposedModel& composed) {
  auto proto = std::make_unique<onnx::ModelProto>();
  EXPECT_TRUE(proto->ParseFromString(composed.bytes));
  return part("model", std::move(proto));
}

std::string errorOf(const std::vector<ModelFile>& files, const ComposeOptions& options = {},
                    const std::string& to = "model.onnx") {
  return messageOf(composeModels(files, options, to));
}

TEST(Compose, EqualNamesAreConnectedAndFeaturesAreMerged) {
  auto composed = composeModels(visionModel(), merging(), "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_THAT(composed->inputs, ElementsAre("pixels", "input_ids", "cache"));
  EXPECT_THAT(composed->outputs, ElementsAre("logits", "present"));
  EXPECT_THAT(composed->notes,
              ElementsAre("vision.image_features -> embed.inputs_embeds, where input_ids is 2",
                          "embed.inputs_embeds -> decoder.inputs_embeds",
                          "decoder.w is embed.w, transposed: tied (--no-tie trains them apart)"));
  const ModelFile model = opened(*composed);
  EXPECT_THAT(model.parts(), ElementsAre("vision", "embed", "decoder"));
  std::vector<ModelFile> again;
  again.push_back(opened(*composed));
  EXPECT_THAT(errorOf(again), HasSubstr("is composed already: give the files that it was made of"));
  const testing::Imported imported =
      testing::importFile(model, {{{"images", 1}, {"batch", 2}, {"sequence", 3}, {"past", 0}}});
  EXPECT_EQ(imported.errors, "");
  EXPECT_THAT(imported.ir, AllOf(HasSubstr("oriel.masked_scatter"), HasSubstr("\"vision.w\""),
                                 HasSubstr("\"embed.w\""), Not(HasSubstr("\"decoder.w\""))));
}

TEST(Compose, TiedWeightsAreSaid) {
  auto composed = composeModels(visionModel(), merging(), "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  auto tied = tiedWeights(opened(*composed));
  ASSERT_TRUE(static_cast<bool>(tied));
  ASSERT_EQ(tied->size(), 1u);
  EXPECT_EQ(tied->front().name, "decoder.w");
  EXPECT_EQ(tied->front().source, "embed.w");
  EXPECT_TRUE(tied->front().isTransposed);

  ComposeOptions apart = merging();
  apart.tie = false;
  composed = composeModels(visionModel(), apart, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  const ModelFile model = opened(*composed);
  EXPECT_TRUE(model.hasInitializer("decoder.w"));
  tied = tiedWeights(model);
  ASSERT_TRUE(static_cast<bool>(tied));
  EXPECT_THAT(*tied, IsEmpty());

  auto damaged = parseModel(modelText(kVision));
  auto* entry = damaged->add_metadata_props();
  entry->set_key("oriel.tied");
  entry->set_value("a b");
  EXPECT_THAT(messageOf(tiedWeights(part("vision", std::move(damaged)))),
              HasSubstr("compose it again"));
}

// Values of zero are equal before training only.
TEST(Compose, ZerosAreNotTied) {
  auto files = parts({{"a",
                       "g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {0, 0, 0, 0}> "
                       "{ y = MatMul(x, w) }"},
                      {"b",
                       "g (float[2, 2] y) => (float[2, 2] z) <float[2, 2] w = {0, 0, 0, 0}> "
                       "{ z = MatMul(y, w) }"}});
  auto composed = composeModels(files, {}, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_THAT(composed->notes, ElementsAre("a.y -> b.y"));
}

// What an exporter's folding took apart; matrices that are equal as they are may be so by chance.
TEST(Compose, OneModelIsTiedWithItself) {
  auto composed = composeModels(
      parts({{"gpt",
              "g (int64[N] ids) => (float[N, 3] logits) <float[3, 2] table = {1, 2, 3, 4, 5, "
              "6}, float[2, 3] head = {1, 3, 5, 2, 4, 6}, float[2, 2] a = {1, 2, 3, 4}, "
              "float[2, 2] b = {1, 2, 3, 4}> { x = Gather(table, ids) y = MatMul(x, a) "
              "z = MatMul(y, b) logits = MatMul(z, head) }"}}),
      {}, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_THAT(composed->notes, ElementsAre(HasSubstr("gpt.head is gpt.table, transposed: tied")));
}

TEST(Compose, AnOutputOfAnotherNameIsConnected) {
  const std::string encoder = "g (float[N] x) => (float[N] last) { last = Neg(x) }";
  const std::string decoder = "g (float[N] states) => (float[N] y) { y = Exp(states) }";
  ComposeOptions options;
  options.connections = {{"last", "states"}};
  auto files = parts({{"encoder", encoder}, {"decoder", decoder}});
  auto composed = composeModels(files, options, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_EQ(testing::importFile(opened(*composed), {{{"N", 2}}}).ops, "neg exp");
  options.connections = {{"encoder.last", "decoder.states"}};
  EXPECT_EQ(errorOf(files, options), "");

  EXPECT_THAT(errorOf(files), AllOf(HasSubstr("no part reads an output of \"encoder\" (last)"),
                                    HasSubstr("--connect"), HasSubstr("left: x, states")));
  options.connections = {{"lost", "states"}};
  EXPECT_THAT(errorOf(files, options),
              AllOf(HasSubstr("can't compose \"decoder.onnx\": no part before it has the output "
                              "\"lost\", for its input \"states\""),
                    HasSubstr("they have encoder.last")));
  options.connections = {{"last", "states"}, {"last", "other"}};
  EXPECT_THAT(errorOf(files, options), HasSubstr("no part has the input \"other\""));
}

TEST(Compose, AnOutputThatTwoPartsHaveMustBeNamed) {
  auto files = parts({{"a", "g (float[N] x) => (float[N] z) { z = Neg(x) }"},
                      {"b", "g (float[N] x) => (float[N] z) { z = Exp(x) }"},
                      {"c", "g (float[N] z, float[N] u) => (float[N] y) { y = Sub(z, u) }"}});
  EXPECT_THAT(errorOf(files), HasSubstr("\"z\" is an output of \"a\" and of \"b\": say which with "
                                        "a.z or b.z (--connect OUTPUT=INPUT)"));
  ComposeOptions options;
  options.connections = {{"b.z", "z"}, {"a.z", "u"}};
  auto composed = composeModels(files, options, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  // The same input of both.
  EXPECT_THAT(composed->inputs, ElementsAre("x"));
  EXPECT_EQ(testing::importFile(opened(*composed), {{{"N", 2}}}).ops, "neg exp sub");
}

TEST(Compose, DimensionsGetNamesOfTheirOwn) {
  auto files = parts({{"a", "g (float[N, 2] x, float[N] v) => (float[N, 2] z) { z = Neg(x) }"},
                      {"b", "g (float[M, 2] z, float[N] u) => (float[M, 2] y) { y = Exp(z) }"}});
  ComposeOptions options;
  options.dimensions = {{"a.N", "images"}};
  auto composed = composeModels(files, options, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  const testing::Imported imported =
      testing::importFile(opened(*composed), {{{"images", 4}, {"N", 3}}});
  EXPECT_EQ(imported.errors, "");
  EXPECT_THAT(imported.ir, AllOf(HasSubstr("tensor<4x2xf32>"), HasSubstr("tensor<3xf32>")));
  // In expressions, too.
  auto proto = std::make_unique<onnx::ModelProto>(files[0].proto());
  proto->mutable_graph()
      ->mutable_input(1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("N + past");
  files[0] = part("a", std::move(proto));
  composed = composeModels(files, options, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_EQ(opened(*composed).graph().input(1).type().tensor_type().shape().dim(0).dim_param(),
            "images + past");
  options.dimensions = {{"a.K", "images"}};
  EXPECT_THAT(errorOf(files, options),
              HasSubstr("no part has the dimension \"a.K\": write PART.DIMENSION"));
}

TEST(Compose, AnInputHasAlwaysTheSameValue) {
  auto files = parts(
      {{"a",
        "g (float[N] x, bool cached, int64[1] keep, float c) => (float[N] y) "
        "{ s = Mul(x, c) y = If(cached) <then_branch = g1 () => (float[N] r) { r = Sqrt(s) }, "
        "else_branch = g2 () => (float[M] r) { r = Slice(s, keep, keep) }> }"}});
  ComposeOptions options;
  options.constants = {{"cached", "true"}, {"keep", "-2"}, {"c", "0.5"}};
  auto composed = composeModels(files, options, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_THAT(composed->inputs, ElementsAre("x"));
  EXPECT_EQ(testing::importFile(opened(*composed), {{{"N", 2}}}).ops, "mul sqrt");
  auto refused = [&](const std::string& input, const std::string& value) {
    options.constants = {{input, value}};
    return errorOf(files, options);
  };
  EXPECT_THAT(refused("cached", "1"),
              HasSubstr("can't set its input \"cached\" to \"1\": write true"));
  EXPECT_THAT(refused("keep", "two"), HasSubstr("write a whole number"));
  EXPECT_THAT(refused("c", "half"), HasSubstr("write a number"));
  EXPECT_THAT(refused("x", "1"), HasSubstr("it has more than one element, or may have"));
  // Of one part, of which another has its own.
  auto both = parts({{"a", "g (float[N] x, float c) => (float[N] z) { z = Mul(x, c) }"},
                     {"b", "g (float[N] z, float c) => (float[N] y) { y = Add(z, c) }"}});
  options.constants = {{"b.c", "2"}};
  composed = composeModels(both, options, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_THAT(composed->inputs, ElementsAre("x", "c"));
  EXPECT_THAT(refused("z", "1"), HasSubstr("no part has the input \"z\", which is to be 1"));
}

// What branches read from around them has other names, too.
TEST(Compose, BranchesAreRenamed) {
  auto files = parts({{"a", "g (float[N] x) => (float[N] z) { z = Neg(x) }"},
                      {"b",
                       "g (float[N] z) => (float[N] y) <int64 one = {1}, int64 two = {2}> "
                       "{ t = Exp(z) c = Less(one, two) y = If(c) <"
                       "then_branch = g1 () => (float[N] r) { r = Sqrt(t) }, "
                       "else_branch = g2 () => (float[N] r) { r = Abs(t) }> }"}});
  auto composed = composeModels(files, {}, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_EQ(testing::importFile(opened(*composed), {{{"N", 2}}}).ops, "neg exp sqrt");
}

TEST(Compose, MergesThatCannotBe) {
  ComposeOptions options = merging();
  options.merges.front().features = "pixel_features";
  EXPECT_THAT(errorOf(visionModel(), options),
              AllOf(HasSubstr("no part has the output \"pixel_features\""),
                    HasSubstr("vision.image_features, embed.inputs_embeds")));
  options = merging();
  options.into = "embeddings";
  EXPECT_THAT(errorOf(visionModel(), options),
              AllOf(HasSubstr("no part has the output \"embeddings\""), HasSubstr("--into")));
  EXPECT_THAT(
      errorOf(parts({{"embed", kEmbed}, {"decoder", kDecoder}, {"vision", kVision}}), merging()),
      HasSubstr("\"image_features\" is made when \"inputs_embeds\" has been read"));
  options = merging();
  options.tokens = "tokens";
  EXPECT_THAT(errorOf(visionModel(), options),
              AllOf(HasSubstr("no part has the input \"tokens\""), HasSubstr("--tokens")));
  EXPECT_THAT(errorOf(parts({{"embed", kEmbed},
                             {"decoder", kDecoder},
                             {"vision", kVision},
                             {"last", "g (float[N] logits) => (float[N] y) { y = Neg(logits) }"}}),
                      merging()),
              HasSubstr("\"inputs_embeds\" is read before \"image_features\" is there"));
}

// One whose rows, types or tokens are not those of what it is merged into.
TEST(Compose, MergesAreOfOneTypeAndWidth) {
  auto errorWith = [&](const std::string& features, const std::string& tokens) {
    return errorOf(
        parts({{"vision", features},
               {"embed", "g (" + tokens +
                             "[batch, sequence] input_ids) => (float[batch, "
                             "sequence, 2] inputs_embeds) <float[3, 2] w = {1, 2, 3, 4, 5, "
                             "6}> { t = Cast<to = 7>(input_ids) inputs_embeds = Gather(w, t) }"},
               {"decoder", kDecoder}}),
        merging());
  };
  const std::string start = "g (float[images, 4] pixels) => (", end = " image_features) {";
  EXPECT_EQ(errorWith(start + "float[images, 2]" + end +
                          " image_features = Slice(pixels, pixels, pixels) }",
                      "int32"),
            "");
  EXPECT_THAT(
      errorWith(start + "float[images, 4]" + end + " image_features = Neg(pixels) }", "int64"),
      HasSubstr("rows have 4 elements, the others 2"));
  EXPECT_THAT(
      errorWith(start + "float16[images, 2]" + end + " image_features = Neg(pixels) }", "int64"),
      HasSubstr("one is float16, the other float"));
  EXPECT_THAT(errorWith(kVision, "float"), HasSubstr("\"input_ids\" is float, expected int32 or"));
}

TEST(Compose, NamesThatMeet) {
  auto files = parts(
      {{"a", "g (float[N] x) => (float[N] z, float[N] y) { t = Neg(x) z = Exp(t) y = Abs(t) }"},
       {"b", "g (float[N] z, float[N] u) => (float[N] y) { y = Sub(z, u) }"}});
  // Both have a result y.
  auto composed = composeModels(files, {}, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_THAT(composed->outputs, ElementsAre("y", "b.y"));
  files = parts({{"a", "g (float[N] x) => (float[N] z) { t = Neg(x) z = Exp(t) }"},
                 {"b", "g (float[N] z, float[N] a_t) => (float[N] y) { y = Sub(z, a_t) }"}});
  auto proto = std::make_unique<onnx::ModelProto>(files[1].proto());
  proto->mutable_graph()->mutable_input(1)->set_name("a/t");
  proto->mutable_graph()->mutable_node(0)->set_input(1, "a/t");
  files[1] = part("b", std::move(proto));
  EXPECT_THAT(errorOf(files), HasSubstr("two values would be named \"a/t\""));
  ComposeOptions twice = merging();
  twice.merges.push_back({"image_features", 1});
  EXPECT_EQ(errorOf(visionModel(), twice), "");
  twice.merges.back().id = 2;
  EXPECT_THAT(errorOf(visionModel(), twice), HasSubstr("merged twice into the tokens 2"));
}

TEST(Compose, ValuesWithoutAShape) {
  auto model = parseModel(modelText("g (float[N] x) => (float[N] y) { y = Neg(x) }"));
  model->mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  std::vector<ModelFile> files;
  files.push_back(part("a", std::move(model)));
  auto composed = composeModels(files, {}, "model.onnx");
  ASSERT_TRUE(static_cast<bool>(composed));
  EXPECT_EQ(testing::importFile(opened(*composed), {{{"N", 2}}}).ops, "neg");
}

TEST(Compose, PartsThatDoNotFit) {
  EXPECT_THAT(errorOf(parts({{"a", kVision}}), {}, "model.onnxtxt"), HasSubstr("name it .onnx"));
  ComposeOptions twice;
  twice.constants = {{"pixels", "1"}, {"pixels", "2"}};
  EXPECT_THAT(errorOf(parts({{"a", kVision}}), twice), HasSubstr("\"pixels\" is given twice"));
  EXPECT_THAT(errorOf(parts({{"a", kEmbed}, {"a", kDecoder}})),
              HasSubstr("files named \"a\" and \"a\""));
  EXPECT_THAT(errorOf(parts({{"a.b", kEmbed}, {"a", kDecoder}})),
              HasSubstr("files named \"a.b\" and \"a\""));
  std::vector<ModelFile> files = parts({{"embed", kEmbed}});
  files.push_back(part("decoder", parseModel(modelText(kDecoder, 21))));
  EXPECT_THAT(errorOf(files), HasSubstr("it has version 21 of the operator set \"ai.onnx\", an "
                                        "earlier part version 20"));
  EXPECT_THAT(errorOf(parts({{"a", "g (float[N] x) => (float[N] z) { z = Neg(x) }"},
                             {"b", "g (float[M] x, float[N] z) => (float[N] y) { y = Neg(z) }"}})),
              HasSubstr("its input \"x\" has another type or shape than that of an earlier part"));
  EXPECT_THAT(errorOf(parts({{"a", "g (float[N] x) => (float[N] z) { z = Neg(x) }"},
                             {"b", "g (float16[N] z) => (float16[N] y) { y = Neg(z) }"}})),
              HasSubstr("its input \"z\" is float16, but a.z is float"));
}

TEST(Compose, ExternalDataStaysWhereItIs) {
  auto external = parseModel(modelText(
      "g (float[2, 2] z) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul(z, w) }"));
  onnx::TensorProto& w = *external->mutable_graph()->mutable_initializer(0);
  w.clear_float_data();
  w.clear_raw_data();
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = w.add_external_data();
  location->set_key("location");
  location->set_value("w.data");
  auto files = parts({{"a", "g (float[2, 2] x) => (float[2, 2] z) { z = Neg(x) }"}});
  files.push_back(part("b", std::move(external), "models/onnx/"));

  auto locationIn = [&](const std::string& to) {
    auto composed = composeModels(files, {}, to);
    if (!composed) return llvm::toString(composed.takeError());
    return opened(*composed).graph().initializer(0).external_data(0).value();
  };
  EXPECT_EQ(locationIn("models/onnx/model.onnx"), "w.data");
  EXPECT_EQ(locationIn("models/model.onnx"), "onnx/w.data");
  EXPECT_THAT(locationIn("models/other/model.onnx"), HasSubstr("must be in that folder, or above"));
  EXPECT_THAT(locationIn("models/on/model.onnx"), HasSubstr("must be in that folder, or above"));
}

}  // namespace
}  // namespace oriel
