// The way back: values change, nothing else does.
#include "frontend/export.h"

#include <filesystem>
#include <fstream>

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;
using testing::modelText;
using testing::parseModel;
using testing::readFile;
using testing::TemporaryFolder;
using testing::writeFile;

using Floats = std::vector<float>;

std::string exportError(const std::string& from, const std::map<std::string, Floats>& weights,
                        const std::string& to) {
  TrainedWeights trained;
  for (const auto& [name, values] : weights) {
    trained.elements[name] = static_cast<int64_t>(values.size());
  }
  trained.read = [&](const std::string& name, llvm::MutableArrayRef<float> values) {
    std::copy(weights.at(name).begin(), weights.at(name).end(), values.begin());
    return llvm::Error::success();
  };
  return llvm::toString(exportModel(from, trained, to));
}

std::string floatBytes(const Floats& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string textOf(const llvm::Expected<TensorData>& data) {
  return {data->bytes.data(), data->bytes.size()};
}

// w [2] as raw data, b [2] as packed floats, h [2] in half precision.
std::unique_ptr<onnx::ModelProto> makeModel() {
  auto model = parseModel(
      modelText("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] b = {3, 4}> "
                "{ z = Mul(x, w)\n y = Add(z, b) }"));
  auto* w = model->mutable_graph()->mutable_initializer(0);
  w->clear_float_data();
  w->set_raw_data(floatBytes({1, 2}));
  auto* h = model->mutable_graph()->add_initializer();
  h->set_name("h");
  h->set_data_type(onnx::TensorProto::FLOAT16);
  h->add_dims(2);
  h->set_raw_data(std::string(4, '\0'));
  model->set_producer_name("somebody");
  return model;
}

TEST(Export, ReplacesValuesAndNothingElse) {
  TemporaryFolder folder;
  std::string from = folder.path("in.onnx"), to = folder.path("out/new.onnx");
  // An unknown field: a newer writer's, which must survive.
  std::string bytes = testing::serialize(*makeModel()) +
                      "\xF2\x3F\x03"
                      "abc";
  writeFile(from, bytes);
  Floats w{5, 6}, b{7, 8}, h{1, -2};
  ASSERT_EQ(exportError(from, {{"w", w}, {"b", b}, {"h", h}}, to), "");
  std::string expected = bytes;
  auto swap = [&](const std::string& old, const std::string& fresh) {
    auto at = expected.find(old);
    ASSERT_NE(at, std::string::npos);
    expected.replace(at, old.size(), fresh);
  };
  swap(floatBytes({1, 2}), floatBytes({5, 6}));
  swap(floatBytes({3, 4}), floatBytes({7, 8}));
  swap(std::string(4, '\0'), std::string("\x00\x3C\x00\xC0", 4));
  EXPECT_EQ(readFile(to), expected);
  EXPECT_EQ(readFile(from), bytes);
}

// What an earlier plan may have trained: the checkpoint's, unless the file's are that but for
// rounding.
TEST(Export, UntrainedStayWhereTheyAreWhatThePlanMakesOfThem) {
  TemporaryFolder folder;
  std::string from = folder.path("in.onnx"), to = folder.path("out/new.onnx");
  writeFile(from, testing::serialize(*makeModel()));
  TrainedWeights weights;
  weights.elements = {{"w", 2}, {"b", 2}};
  auto half = [](float value) { return value / 2; };
  weights.untrained = {{"w", half}, {"b", half}};
  Floats values{0.5f, 1};
  weights.read = [&](const std::string&, llvm::MutableArrayRef<float> to) {
    std::copy(values.begin(), values.end(), to.begin());
    return llvm::Error::success();
  };
  ASSERT_EQ(llvm::toString(exportModel(from, weights, to)), "");
  auto model = ModelFile::open(to);
  ASSERT_TRUE(static_cast<bool>(model));
  EXPECT_EQ(textOf(model->initializer("w")), floatBytes({1, 2}));
  EXPECT_EQ(textOf(model->initializer("b")), floatBytes({0.5f, 1}));
}

TEST(Export, OverwritesAtomicallyAndLeavesNoTemporaries) {
  TemporaryFolder folder;
  std::string from = folder.path("in.onnx");
  writeFile(from, testing::serialize(*makeModel()));
  Floats w{5, 6};
  ASSERT_EQ(exportError(from, {{"w", w}}, from), "");
  auto model = ModelFile::open(from);
  ASSERT_TRUE(static_cast<bool>(model));
  EXPECT_EQ(reinterpret_cast<const float*>(model->initializer("w")->bytes.data())[1], 6.0f);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(""))) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 1);
}

TEST(Export, ExternalDataGoesBesideTheOutput) {
  TemporaryFolder folder;
  auto model = makeModel();
  auto* w = model->mutable_graph()->mutable_initializer(0);
  w->clear_raw_data();
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  for (auto [key, value] : {std::pair("location", "data/w.bin"), std::pair("offset", "4")}) {
    auto* entry = w->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  std::string from = folder.path("in/m.onnx"), data = "head" + floatBytes({1, 2}) + "tail";
  writeFile(from, testing::serialize(*model));
  writeFile(folder.path("in/data/w.bin"), data);
  Floats values{5, 6};
  ASSERT_EQ(exportError(from, {{"w", values}}, folder.path("out/m.onnx")), "");
  EXPECT_EQ(readFile(folder.path("out/data/w.bin")), "head" + floatBytes({5, 6}) + "tail");
  EXPECT_EQ(readFile(folder.path("out/m.onnx")), readFile(from));
  EXPECT_THAT(exportError(from, {{"w", values}}, folder.path("in/other.onnx")),
              HasSubstr("write to another folder"));
  EXPECT_EQ(readFile(folder.path("in/data/w.bin")), data);
}

// A model whose float initializers lie in "w.bin", 8 bytes each, at these offsets.
std::unique_ptr<onnx::ModelProto> withExternal(const std::map<std::string, uint64_t>& offsets) {
  auto model = makeModel();
  for (auto& tensor : *model->mutable_graph()->mutable_initializer()) {
    if (offsets.count(tensor.name()) == 0) continue;
    tensor.clear_raw_data();
    tensor.clear_float_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (auto [key, value] : {std::pair("location", std::string("w.bin")),
                              std::pair("offset", std::to_string(offsets.at(tensor.name())))}) {
      auto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  }
  return model;
}

// A second export into the folder would change what the first one refers to.
TEST(Export, ExternalDataOfAnotherModelStays) {
  TemporaryFolder folder;
  std::string from = folder.path("in/m.onnx");
  writeFile(from, testing::serialize(*withExternal({{"w", 0}})));
  ASSERT_EQ(exportError(from, {{"w", {5, 6}}}, folder.path("out/first.onnx")), "");
  EXPECT_THAT(exportError(from, {{"w", {7, 8}}}, folder.path("out/second.onnx")),
              HasSubstr("w.bin\" is there already"));
  EXPECT_EQ(readFile(folder.path("out/w.bin")), floatBytes({5, 6}));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/second.onnx")));
  // Nor where a model without such data is.
  writeFile(folder.path("out/second.onnx"), testing::serialize(*makeModel()));
  EXPECT_THAT(exportError(from, {{"w", {7, 8}}}, folder.path("out/second.onnx")),
              HasSubstr("w.bin\" is there already"));
  EXPECT_EQ(readFile(folder.path("out/w.bin")), floatBytes({5, 6}));
  // To the same place it is the same model's.
  ASSERT_EQ(exportError(from, {{"w", {7, 8}}}, folder.path("out/first.onnx")), "");
  EXPECT_EQ(readFile(folder.path("out/w.bin")), floatBytes({7, 8}));
}

TEST(Export, MissingExternalDataIsMade) {
  TemporaryFolder folder;
  std::string from = folder.path("in/m.onnx");
  writeFile(from, testing::serialize(*withExternal({{"w", 0}, {"b", 12}})));
  ASSERT_EQ(exportError(from, {{"w", {5, 6}}, {"b", {7, 8}}}, folder.path("out/m.onnx")), "");
  EXPECT_EQ(readFile(folder.path("out/w.bin")),
            floatBytes({5, 6}) + std::string(4, '\0') + floatBytes({7, 8}));
  EXPECT_FALSE(std::filesystem::exists(folder.path("in/w.bin")));
  // What is in no checkpoint can't be made.
  EXPECT_THAT(exportError(from, {{"w", {5, 6}}}, folder.path("out2/m.onnx")),
              HasSubstr("tensor \"b\" has its data in"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out2/m.onnx")));
}

// Two initializers of one place are tied in the file, but were trained apart.
TEST(Export, SharedBytesAreRefused) {
  TemporaryFolder folder;
  std::string from = folder.path("in/m.onnx");
  writeFile(from, testing::serialize(*withExternal({{"w", 0}, {"b", 4}})));
  writeFile(folder.path("in/w.bin"), std::string(12, 'x'));
  EXPECT_THAT(exportError(from, {{"w", {5, 6}}, {"b", {7, 8}}}, folder.path("out/m.onnx")),
              HasSubstr("\"b\" and \"w\" share bytes"));
  // A frozen one would change with the trained one.
  EXPECT_THAT(exportError(from, {{"w", {5, 6}}}, folder.path("out/m.onnx")),
              HasSubstr("\"b\" and \"w\" share bytes"));
  EXPECT_THAT(exportError(from, {{"b", {5, 6}}}, folder.path("out/m.onnx")),
              HasSubstr("\"b\" and \"w\" share bytes"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/m.onnx")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/w.bin")));
}

// Beyond what 31 and 32 bits count; the files are sparse.
TEST(Export, OffsetsBeyondFourGiB) {
  TemporaryFolder folder;
  const uint64_t far = (uint64_t{1} << 32) + 4, middle = (uint64_t{1} << 31) + 4;
  std::string from = folder.path("in/m.onnx");
  writeFile(from, testing::serialize(*withExternal({{"w", far}, {"b", middle}})));
  writeFile(folder.path("in/w.bin"), "");
  std::filesystem::resize_file(folder.path("in/w.bin"), far + 8);
  {
    std::fstream file(folder.path("in/w.bin"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(far));
    file << floatBytes({1, 2});
    file.seekp(static_cast<std::streamoff>(middle));
    file << floatBytes({3, 4});
  }
  auto model = ModelFile::open(from);
  ASSERT_TRUE(static_cast<bool>(model));
  EXPECT_EQ(textOf(model->initializer("w")), floatBytes({1, 2}));
  EXPECT_EQ(textOf(model->initializer("b")), floatBytes({3, 4}));
  // Without the file, which it would copy: zeros between the weights take no room.
  std::filesystem::remove(folder.path("in/w.bin"));
  ASSERT_EQ(exportError(from, {{"w", {5, 6}}, {"b", {7, 8}}}, folder.path("out/m.onnx")), "");
  auto exported = ModelFile::open(folder.path("out/m.onnx"));
  ASSERT_TRUE(static_cast<bool>(exported));
  EXPECT_EQ(textOf(exported->initializer("w")), floatBytes({5, 6}));
  EXPECT_EQ(textOf(exported->initializer("b")), floatBytes({7, 8}));
  EXPECT_EQ(std::filesystem::file_size(folder.path("out/w.bin")), far + 8);
}

TEST(Export, CheckpointOfAnotherModel) {
  TemporaryFolder folder;
  std::string from = folder.path("in.onnx"), to = folder.path("out.onnx");
  writeFile(from, testing::serialize(*makeModel()));
  Floats three{1, 2, 3};
  EXPECT_THAT(exportError(from, {{"w", three}}, to), HasSubstr("checkpoint is of another model"));
  EXPECT_THAT(exportError(from, {{"q", three}}, to), HasSubstr("has no initializer \"q\""));
  EXPECT_FALSE(std::filesystem::exists(to));
}

TEST(Export, UnwritablePlace) {
  TemporaryFolder folder;
  writeFile(folder.path("in.onnx"), testing::serialize(*makeModel()));
  EXPECT_THAT(exportError(folder.path("in.onnx"), {}, folder.path("in.onnx/below.onnx")),
              HasSubstr("can't write"));
}

TEST(Export, TextIsRefused) {
  TemporaryFolder folder;
  writeFile(folder.path("m.onnxtxt"),
            testing::modelText("g (float[2] x) => (float[2] y) { y = Exp(x) }"));
  EXPECT_THAT(exportError(folder.path("m.onnxtxt"), {}, folder.path("out.onnx")),
              HasSubstr("compile it from .onnx"));
}

}  // namespace
}  // namespace oriel
