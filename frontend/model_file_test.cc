// Reading files: what is accepted, and one clear error for each way to be broken.
#include "frontend/model_file.h"

#include <cmath>
#include <filesystem>

#include "frontend/model_inputs.h"
#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/ADT/StringExtras.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::messageOf;
using testing::modelText;
using testing::parseModel;
using testing::TemporaryFolder;
using testing::writeFile;

const char kScale[] = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }";

llvm::Expected<ModelFile> fromProto(std::unique_ptr<onnx::ModelProto> proto,
                                    const std::string& folder = "") {
  return ModelFile::fromProto(std::move(proto), "test.onnx", folder);
}

// A model whose initializer "w" is what the test makes of it.
std::unique_ptr<onnx::ModelProto> withTensor(onnx::TensorProto tensor) {
  auto model = parseModel(modelText(kScale));
  tensor.set_name("w");
  *model->mutable_graph()->mutable_initializer(0) = std::move(tensor);
  return model;
}

onnx::TensorProto floatTensor(std::vector<int64_t> dims, const std::string& raw) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : dims) {
    tensor.add_dims(dim);
  }
  tensor.set_raw_data(raw);
  return tensor;
}

std::string readError(onnx::TensorProto tensor, const std::string& folder = "") {
  auto model = fromProto(withTensor(std::move(tensor)), folder);
  EXPECT_TRUE(static_cast<bool>(model));
  return messageOf(model->initializer("w"));
}

onnx::TensorProto externalTensor(const std::string& location, const std::string& offset,
                                 const std::string& length) {
  onnx::TensorProto tensor = floatTensor({2}, "");
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (auto [key, value] : {std::pair("location", location), std::pair("offset", offset),
                            std::pair("length", length)}) {
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return tensor;
}

TEST(ModelFile, ReadsAFile) {
  TemporaryFolder folder;
  writeFile(folder.path("tiny/model.onnx"), testing::serialize(*parseModel(modelText(kScale))));
  auto model = ModelFile::open(folder.path("tiny/model.onnx"));
  ASSERT_TRUE(static_cast<bool>(model));
  EXPECT_EQ(model->name(), "tiny");
  EXPECT_EQ(model->opset(""), 20);
  EXPECT_EQ(model->opset("ai.onnx"), 20);
  EXPECT_EQ(model->opset("com.acme"), 0);
  EXPECT_THAT(model->initializerNames(), ElementsAre("w"));
  auto weight = model->initializer("w");
  ASSERT_TRUE(static_cast<bool>(weight));
  EXPECT_EQ(weight->numElements(), 2);
  EXPECT_EQ(reinterpret_cast<const float*>(weight->bytes.data())[1], 2.0f);
}

TEST(ModelFile, MissingFile) {
  EXPECT_THAT(messageOf(ModelFile::open("nowhere.onnx")),
              AllOf(HasSubstr("\"nowhere.onnx\""), HasSubstr("No such file")));
}

TEST(ModelFile, TruncatedFile) {
  TemporaryFolder folder;
  std::string bytes = testing::serialize(*parseModel(modelText(kScale)));
  // Wherever it ends, it is an error and never a crash.
  for (size_t size = 0; size < bytes.size(); ++size) {
    writeFile(folder.path("cut.onnx"), bytes.substr(0, size));
    EXPECT_NE(messageOf(ModelFile::open(folder.path("cut.onnx"))), "") << size;
  }
  writeFile(folder.path("cut.onnx"), bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(messageOf(ModelFile::open(folder.path("cut.onnx"))),
              AllOf(HasSubstr("cut.onnx"), HasSubstr("truncated"), HasSubstr("copy it again")));
}

TEST(ModelFile, NoModelAtAll) {
  TemporaryFolder folder;
  writeFile(folder.path("text.onnx"), "this is not a model, it is a sentence");
  EXPECT_THAT(messageOf(ModelFile::open(folder.path("text.onnx"))), HasSubstr("no ONNX model"));
}

TEST(ModelFile, UnsupportedVersions) {
  EXPECT_THAT(messageOf(fromProto(parseModel(modelText(kScale, 12)))),
              AllOf(HasSubstr("operator set 12"), HasSubstr("13 to 28")));
  EXPECT_THAT(messageOf(fromProto(parseModel(modelText(kScale, 99)))),
              HasSubstr("operator set 99"));
  auto future = parseModel(modelText(kScale));
  future->set_ir_version(1000);
  EXPECT_THAT(messageOf(fromProto(std::move(future))), HasSubstr("IR version 1000"));
}

TEST(ModelFile, TwoInitializersOfOneName) {
  auto model = parseModel(modelText(kScale));
  *model->mutable_graph()->add_initializer() = model->graph().initializer(0);
  EXPECT_THAT(messageOf(fromProto(std::move(model))), HasSubstr("two initializers named \"w\""));
}

TEST(ModelFile, TypedFieldsAreDecoded) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT16);
  tensor.add_dims(2);
  tensor.add_int32_data(0x3C00);  // 1.0
  tensor.add_int32_data(0xC000);  // -2.0
  auto model = fromProto(withTensor(tensor));
  auto data = model->initializer("w");
  ASSERT_TRUE(static_cast<bool>(data));
  EXPECT_EQ(data->bytes.size(), 4u);
  EXPECT_EQ(static_cast<unsigned char>(data->bytes[3]), 0xC0);
}

TEST(ModelFile, SizesAreNotTrusted) {
  EXPECT_THAT(readError(floatTensor({3}, "12345678")),
              HasSubstr("\"w\" holds 8 bytes, but its shape needs 12"));
  EXPECT_THAT(readError(floatTensor({-2}, "")), HasSubstr("negative size -2"));
  EXPECT_THAT(readError(floatTensor({int64_t{1} << 40, int64_t{1} << 40}, "")),
              HasSubstr("overflows 64 bits"));
  EXPECT_THAT(readError(floatTensor({0, int64_t{1} << 40, int64_t{1} << 40}, "")),
              HasSubstr("overflows 64 bits"));
  onnx::TensorProto strange = floatTensor({2}, "12345678");
  strange.set_data_type(onnx::TensorProto::STRING);
  EXPECT_THAT(readError(strange), HasSubstr("element type string"));
  strange.set_data_type(12345);
  EXPECT_THAT(readError(strange), HasSubstr("element type type 12345"));
}

TEST(ModelFile, ExternalData) {
  TemporaryFolder folder;
  writeFile(folder.path("m/weights/w.bin"), "....abcdefgh");
  auto model = fromProto(withTensor(externalTensor("weights/w.bin", "4", "8")), folder.path("m"));
  auto data = model->initializer("w");
  ASSERT_TRUE(static_cast<bool>(data)) << messageOf(std::move(data));
  EXPECT_EQ(std::string(data->bytes.data(), data->bytes.size()), "abcdefgh");
}

TEST(ModelFile, ExternalDataMustStayInTheFolder) {
  TemporaryFolder folder;
  writeFile(folder.path("secret"), "12345678");
  writeFile(folder.path("m/w.bin"), "12345678");
  std::string inside = folder.path("m");
  for (const std::string& location :
       {std::string("../secret"), std::string("x/../../secret"), folder.path("secret")}) {
    EXPECT_THAT(readError(externalTensor(location, "0", "8"), inside),
                HasSubstr("outside the model's folder"))
        << location;
  }
  for (const std::string& location : {std::string("./x/../w.bin"), std::string("w.bin")}) {
    EXPECT_EQ(readError(externalTensor(location, "0", "8"), inside), "") << location;
  }
  ASSERT_EQ(symlink(folder.path("secret").c_str(), folder.path("m/link").c_str()), 0);
  EXPECT_THAT(readError(externalTensor("link", "0", "8"), inside),
              HasSubstr("outside the model's folder"));
  EXPECT_THAT(readError(externalTensor("", "0", "8"), inside), HasSubstr("without a location"));
  EXPECT_THAT(readError(externalTensor(".", "0", "8"), inside), HasSubstr("tensor \"w\""));
}

TEST(ModelFile, ExternalRangesAreChecked) {
  TemporaryFolder folder;
  writeFile(folder.path("w.bin"), "12345678");
  std::string inside = folder.path("");
  EXPECT_THAT(readError(externalTensor("w.bin", "4", "8"), inside), HasSubstr("beyond the end"));
  EXPECT_THAT(readError(externalTensor("w.bin", "18446744073709551612", "8"), inside),
              HasSubstr("beyond the end"));
  EXPECT_THAT(readError(externalTensor("w.bin", "0", "4"), inside), HasSubstr("needs 8"));
  EXPECT_THAT(readError(externalTensor("w.bin", "-1", "8"), inside), HasSubstr("is no number"));
  EXPECT_THAT(readError(externalTensor("gone.bin", "0", "8"), inside),
              HasSubstr("copy it from beside the original model"));
}

// A skeleton: the shapes are there, the values are not.
TEST(ModelFile, MissingWeights) {
  TemporaryFolder folder;
  auto model = fromProto(withTensor(externalTensor("gone.bin", "0", "8")), folder.path(""));
  ASSERT_TRUE(static_cast<bool>(model));
  EXPECT_THAT(model->missingWeights().parameters, ElementsAre("w"));
  EXPECT_THAT(model->missingWeights().files, ElementsAre(HasSubstr("gone.bin")));
  EXPECT_TRUE(model->isMissing("w"));
  auto header = model->initializerHeader("w");
  ASSERT_TRUE(static_cast<bool>(header));
  EXPECT_EQ(header->numElements(), 2);
  EXPECT_THAT(messageOf(model->initializer("w")), HasSubstr("can't be opened"));
}

// Parameters can be made; what the graph computes with can't.
TEST(ModelFile, MissingConstantIsAnErrorOfTheImport) {
  TemporaryFolder folder;
  auto model = withTensor(externalTensor("gone.bin", "0", "8"));
  auto* info = model->mutable_graph()->add_value_info();
  info->set_name("w");
  auto* entry = info->add_metadata_props();
  entry->set_key(kSignatureKindKey);
  entry->set_value("BUFFER");
  auto file = fromProto(std::move(model), folder.path(""));
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_THAT(file->missingWeights().parameters, ElementsAre());
  EXPECT_THAT(testing::importFile(*file, {}).errors,
              AllOf(HasSubstr("tensor \"w\" has its data in"), HasSubstr("gone.bin")));
}

// A file that is there but too short is damaged, not missing; so is a place that is not allowed.
TEST(ModelFile, WhatIsNotMissing) {
  TemporaryFolder folder;
  writeFile(folder.path("w.bin"), "1234");
  for (const char* location : {"w.bin", "../gone.bin", "/gone.bin", ""}) {
    auto model = fromProto(withTensor(externalTensor(location, "0", "8")), folder.path(""));
    ASSERT_TRUE(static_cast<bool>(model));
    EXPECT_THAT(model->missingWeights().parameters, ElementsAre()) << location;
    EXPECT_NE(messageOf(model->initializer("w")), "") << location;
  }
}

TEST(ModelFile, BeyondTwoGiB) {
  TemporaryFolder folder;
  writeFile(folder.path("large.onnx"), "");
  std::filesystem::resize_file(folder.path("large.onnx"), uint64_t{1} << 31);
  EXPECT_THAT(messageOf(ModelFile::open(folder.path("large.onnx"))),
              AllOf(HasSubstr("2147483648 bytes, and protobuf ends at 2 GiB"),
                    HasSubstr("save it with external data")));
}

TEST(ModelFile, RolesOfInitializers) {
  auto model = parseModel(modelText(R"(
    g (float[2] x) => (float[2] y)
    <float[2] w = {1, 2}, float[1] one = {1}, float s = {1}, int64[2] i = {1, 2},
     float[2] freq = {1, 2}, float[1] gate = {1}> { y = Mul(x, w) })"));
  auto say = [&](const std::string& name, const std::string& kind) {
    auto* info = model->mutable_graph()->add_value_info();
    info->set_name(name);
    auto* entry = info->add_metadata_props();
    entry->set_key(kSignatureKindKey);
    entry->set_value(kind);
  };
  say("freq", "BUFFER");
  say("gate", "PARAMETER");
  auto file = fromProto(std::move(model));
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_EQ(file->role("w"), InitializerRole::kParameter);
  EXPECT_EQ(file->role("one"), InitializerRole::kConstant);
  EXPECT_EQ(file->role("s"), InitializerRole::kConstant);
  EXPECT_EQ(file->role("i"), InitializerRole::kConstant);
  EXPECT_EQ(file->role("freq"), InitializerRole::kConstant);   // as the exporter says
  EXPECT_EQ(file->role("gate"), InitializerRole::kParameter);  // as the exporter says
}

// What optimizers make of TorchScript's Constant nodes: the ones of a GroupNorm are no parameter.
TEST(ModelFile, NamesOfConstantNodes) {
  auto roleOf = [](const std::string& name) {
    auto model = parseModel(
        modelText("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }"));
    model->mutable_graph()->mutable_initializer(0)->set_name(name);
    model->mutable_graph()->mutable_node(0)->set_input(1, name);
    auto file = fromProto(std::move(model));
    EXPECT_TRUE(static_cast<bool>(file));
    return file->role(name);
  };
  EXPECT_EQ(roleOf("/norm/Constant_output_0"), InitializerRole::kConstant);
  EXPECT_EQ(roleOf("/norm/Constant_12_output_0"), InitializerRole::kConstant);
  EXPECT_EQ(roleOf("Constant_output_0"), InitializerRole::kConstant);
  EXPECT_EQ(roleOf("/head/Transpose_output_0"), InitializerRole::kParameter);
  EXPECT_EQ(roleOf("Constant_weight"), InitializerRole::kParameter);
}

TEST(ModelFile, TablesOfAnglesAreConstants) {
  auto roleOf = [](const std::string& name, const std::string& body, bool says = false) {
    auto model = parseModel(modelText(R"(
      g (float[2, 3] x, float[2, 1] at) => (float[2, 3] y)
      <float[1, 3] f = {1, 2, 3}, float[2, 3] t = {1, 2, 3, 4, 5, 6}, float[3] w = {1, 2, 3}> {)" +
                                      body + "}"));
    if (says) {
      auto* info = model->mutable_graph()->add_value_info();
      info->set_name("w");
      auto* entry = info->add_metadata_props();
      entry->set_key(kSignatureKindKey);
      entry->set_value("PARAMETER");
    }
    auto file = fromProto(std::move(model));
    return file->role(name);
  };
  const std::string angles = "a = MatMul(at, f)\n c = Cos(a)\n s = Sin(a)\n b = Mul(c, s)\n";
  EXPECT_EQ(roleOf("f", angles + "y = Mul(x, b)"), InitializerRole::kConstant);
  // Read elsewhere too, or with a bias in between: a weight.
  EXPECT_EQ(roleOf("f", angles + "d = Mul(x, b)\n y = Add(d, f)"), InitializerRole::kParameter);
  EXPECT_EQ(roleOf("f", "a = Add(x, f)\n y = Sin(a)"), InitializerRole::kParameter);
  // A factor of two dimensions, of which the exporter that labels its parameters says nothing.
  EXPECT_EQ(roleOf("t", "y = Mul(x, t)", true), InitializerRole::kConstant);
  EXPECT_EQ(roleOf("t", "y = Add(x, t)", true), InitializerRole::kParameter);
  EXPECT_EQ(roleOf("t", "y = Mul(x, t)"), InitializerRole::kParameter);
  EXPECT_EQ(roleOf("f", "y = Mul(x, f)", true), InitializerRole::kParameter);
}

// A graph whose scores, [2, 4, 4] and behind softmax, are the product of x and what `body` makes.
InitializerRole roleOfTable(const std::string& type, std::vector<double> values,
                            const std::string& body, const std::string& more = "") {
  std::vector<std::string> texts;
  for (double value : values) texts.push_back(std::to_string(value));
  auto file = fromProto(parseModel(
      modelText("g (float[2, 4, 4] x, float[4] at) => (float[2, 4, 4] y) <float[" + type +
                "] t = {" + llvm::join(texts, ", ") + "}" + more + "> {" + body + "}")));
  if (!file) ADD_FAILURE() << messageOf(std::move(file));
  return file ? file->role("t") : InitializerRole::kParameter;
}

TEST(ModelFile, MasksAreConstants) {
  const std::string added = "s = Add(x, t)\n y = Softmax(s)",
                    factor = "p = Softmax(x)\n y = Mul(p, t)";
  EXPECT_EQ(roleOfTable("2, 2", {0, -1e9, 0, 0}, added), InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("2", {0, -1e9}, added), InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("2, 2", {0, 0, 0, 0}, added), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2, 2", {0, -1e9, 0, 1}, added), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2, 2", {1, 0, 1, 1}, factor), InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("2, 2", {1, 1, 1, 1}, factor), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2", {1, 0}, factor), InitializerRole::kParameter);
  // Of anything else it may be a gate.
  EXPECT_EQ(roleOfTable("2, 2", {1, 0, 1, 1}, "y = Mul(x, t)"), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2, 2", {0, -100, 0, 0}, added), InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("2, 2", {0, -10, 0, 0}, added), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2, 2", {0, 0, 0, 0}, "c = Cast<to = 9>(x)\n y = Where(c, x, t)"),
            InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("2", {0, 0}, "c = Cast<to = 9>(x)\n y = Where(c, x, t)"),
            InitializerRole::kParameter);  // a token for what is masked
  // The identity as the initial value of a matrix.
  EXPECT_EQ(roleOfTable("2, 2", {1, 0, 0, 1}, "y = MatMul(x, t)"), InitializerRole::kParameter);
}

TEST(ModelFile, CosinesAndSinesAreConstants) {
  std::vector<double> cosines, sines, both, others;
  for (int i = 0; i < 8; ++i) {
    cosines.push_back(std::cos(0.7 * i));
    sines.push_back(std::sin(0.7 * i));
    others.push_back(0.1 * i);
  }
  both.insert(both.end(), cosines.begin(), cosines.end());
  both.insert(both.end(), sines.begin(), sines.end());
  auto text = [](const std::vector<double>& values) {
    std::vector<std::string> texts;
    for (double value : values) texts.push_back(std::to_string(value));
    return ", float[2, 4] u = {" + llvm::join(texts, ", ") + "}";
  };
  const std::string rotates = "r = Unsqueeze(t, at)\n z = Mul(x, r)\n n = Neg(u)\n y = Mul(z, n)";
  EXPECT_EQ(roleOfTable("2, 4", cosines, rotates, text(sines)), InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("2, 4", cosines, rotates, text(others)), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2, 4", cosines, "y = Mul(x, t)"), InitializerRole::kParameter);
  // Of random signs the squares add up as well.
  const std::vector<double> signs = {1, -1, 1, 1, -1, -1, 1, -1};
  EXPECT_EQ(roleOfTable("2, 4", signs, rotates, text(signs)), InitializerRole::kParameter);
  const std::vector<double> ones(8, 1.0);  // they add up to two
  EXPECT_EQ(roleOfTable("2, 4", ones, rotates, text(ones)), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2, 2, 4", both, "a, b = Split(t)\n z = Mul(x, a)\n y = Mul(z, b)"),
            InitializerRole::kConstant);
}

TEST(ModelFile, BiasesOfPositionsAreConstants) {
  const std::string bias = "b = Mul(t, at)\n s = Add(x, b)\n y = Softmax(s)";
  EXPECT_EQ(roleOfTable("4, 1", {0.25, 0.0625, 0.015625, 0.00390625}, bias),
            InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("4, 1", {0.25, 0.07, 0.015625, 0.00390625}, bias),
            InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("4, 1", {0.25, 0.25, 0.25, 0.25}, bias), InitializerRole::kParameter);
  // Outside of scores, they are anything.
  EXPECT_EQ(roleOfTable("4, 1", {0.25, 0.0625, 0.015625, 0.00390625}, "y = Mul(x, t)"),
            InitializerRole::kParameter);
  const std::string added = "s = Add(x, t)\n y = Softmax(s)";
  const std::vector<double> grows = {0, 1, 2, 3, 0, 2, 4, 6};
  EXPECT_EQ(roleOfTable("2, 4", grows, added), InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("2, 4", {0, 1, 2, 3, 0, 2, 1, 7}, added), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2, 5", {0, -1, -2, -3, -4, -2, -1, 0, -1, -2}, added),
            InitializerRole::kConstant);  // by distance
  EXPECT_EQ(roleOfTable("2, 5", {0, 1, 2, 3, -1e9, 0, 2, 4, -1e9, -1e9}, added),
            InitializerRole::kConstant);
  EXPECT_EQ(roleOfTable("2, 4", grows, "y = Add(x, t)"), InitializerRole::kParameter);
  for (const char* attention :
       {"y = Attention(x, x, x, t)", "m = Add(t, x)\n y = Attention(x, x, x, m)",
        "y = com.microsoft.MultiHeadAttention(x, x, x, , , t)"}) {
    EXPECT_EQ(roleOfTable("2, 4", grows, attention), InitializerRole::kConstant) << attention;
  }
  EXPECT_EQ(roleOfTable("2, 4", grows, "y = Attention(x, x, t)"), InitializerRole::kParameter);
  EXPECT_EQ(roleOfTable("2, 4", grows, "s = Sin(t)\n y = Mul(x, s)"), InitializerRole::kConstant);
}

std::string openText(const std::string& text) {
  TemporaryFolder folder;
  writeFile(folder.path("m.onnxtxt"), text);
  return messageOf(ModelFile::open(folder.path("m.onnxtxt")));
}

TEST(ModelText, IsReadAsItsBinaryForm) {
  TemporaryFolder folder;
  writeFile(folder.path("m.onnxtxt"), "# two floats\n" + modelText(kScale));
  auto model = ModelFile::open(folder.path("m.onnxtxt"));
  ASSERT_TRUE(static_cast<bool>(model)) << messageOf(std::move(model));
  EXPECT_EQ(model->proto().SerializeAsString(), parseModel(modelText(kScale))->SerializeAsString());
}

TEST(ModelText, ErrorNamesTheLine) {
  EXPECT_THAT(openText(modelText("g (float[2] x) => (float[2] y) {\n  y = Mul(x x)\n}")),
              AllOf(HasSubstr("m.onnxtxt"), HasSubstr("line: 3")));
}

TEST(ModelText, NumberOutOfRange) {
  EXPECT_THAT(openText("<ir_version: 99999999999999999999999>\n" + std::string(kScale)),
              HasSubstr("out of range"));
}

TEST(ModelText, NestingIsBounded) {
  std::string types;
  for (int i = 0; i < 100000; ++i) types += "seq(";
  EXPECT_THAT(openText(modelText("g (" + types)), HasSubstr("nested more than 200 deep"));
}

TEST(ModelInputs, DimensionsAreSizesOrNames) {
  auto model = parseModel(
      modelText("g (float[batch, 2] x, float s, float[2] w, float[N] z) => (float[batch, 2] y) "
                "<float[2] w = {1, 2}> { y = Mul(x, w) }"));
  model->mutable_graph()
      ->mutable_input(3)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("past + batch*heads");
  auto file = fromProto(std::move(model));
  ASSERT_TRUE(static_cast<bool>(file));
  // Without w, an initializer that is listed as an input.
  const std::vector<ModelInput> inputs = modelInputs(*file);
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].name, "x");
  ASSERT_EQ(inputs[0].shape.size(), 2u);
  EXPECT_EQ(inputs[0].shape[0].size, 0);
  EXPECT_THAT(inputs[0].shape[0].names, ElementsAre("batch"));
  EXPECT_EQ(inputs[0].shape[1].size, 2);
  EXPECT_THAT(inputs[0].shape[1].names, IsEmpty());
  EXPECT_TRUE(inputs[1].shape.empty());
  EXPECT_THAT(inputs[2].shape[0].names, ElementsAre("past", "batch", "heads"));
}

// What the user asks for is a parameter, whatever its use and its values are; integers can't be.
TEST(ModelFile, TablesAndNumbersThatAreAskedFor) {
  auto opened = ModelFile::fromProto(
      parseModel(modelText(
          "g (float[2, 4] x) => (float[2, 4] y) "
          "<float[4] slopes = {0.5, 0.25, 0.125, 0.0625}, float scale = {2}, int64 n = {1}> "
          "{ a = Mul(x, slopes) b = Softmax(a) y = Mul(b, scale) }")),
      "model.onnx", "");
  ASSERT_TRUE(static_cast<bool>(opened));
  ModelFile model = std::move(*opened);
  EXPECT_EQ(model.role("scale"), InitializerRole::kConstant);
  model.treatAsParameters({"slopes", "scale", "n"});
  EXPECT_EQ(model.role("slopes"), InitializerRole::kParameter);
  EXPECT_EQ(model.role("scale"), InitializerRole::kParameter);
  EXPECT_EQ(model.role("n"), InitializerRole::kConstant);
  EXPECT_TRUE(model.tables().empty());
}

}  // namespace
}  // namespace oriel
