// Which importer is found for an op.
#include "frontend/op_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/testing.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;

TEST(Registry, VersionsAndNearestNames) {
  const OpRegistry& registry = OpRegistry::standard();
  EXPECT_NE(registry.find("", "ReduceMax", 13), registry.find("", "ReduceMax", 18));
  EXPECT_EQ(registry.find("", "ReduceMax", 18), registry.find("ai.onnx", "ReduceMax", 24));
  EXPECT_EQ(registry.find("", "Gelu", 19), nullptr);
  EXPECT_EQ(registry.find("com.acme", "Gelu", 20), nullptr);
  EXPECT_EQ(registry.nearest("Softmx"), "Softmax");
  EXPECT_EQ(registry.nearest("QuickGel"), "com.microsoft::QuickGelu");
  EXPECT_EQ(registry.nearest("Qqqqqqq"), "");
}

mlir::LogicalResult first(NodeImporter&) { return mlir::failure(); }
mlir::LogicalResult second(NodeImporter&) { return mlir::success(); }

TEST(Registry, VersionsOfAnotherDomain) {
  OpRegistry registry;
  registry.add("Snake", 1, first, "com.acme");
  registry.add("Snake", 3, second, "com.acme");
  EXPECT_EQ(registry.find("com.acme", "Snake", 2), first);
  EXPECT_EQ(registry.find("com.acme", "Snake", 3), second);
  EXPECT_EQ(registry.find("com.acme", "Snake", 0), second);  // the model doesn't say
}

// A plugin's handlers, from their versions on.
TEST(Registry, HandlersOfAPluginTakeOver) {
  OpRegistry registry;
  registry.add("Relu", 6, first);
  registry.add("Relu", 13, first);
  registry.add("Gelu", 20, first);
  const OpRegistry before = registry;
  registry.add("Relu", 7, second);
  registry.takeOver(before);
  EXPECT_EQ(registry.find("", "Relu", 6), first);
  EXPECT_EQ(registry.find("", "Relu", 7), second);
  EXPECT_EQ(registry.find("", "Relu", 14), second);
  EXPECT_EQ(registry.find("", "Gelu", 20), first);
}

TEST(Registry, DocumentationListsEveryOp) {
  std::string page = testing::readFile(ORIEL_SOURCE_DIR "/docs/generated/onnx_ops.md");
  ASSERT_NE(page, "");
  for (const std::string& name : OpRegistry::standard().names()) {
    EXPECT_THAT(page, HasSubstr("`" + name + "`"));
  }
}

}  // namespace
}  // namespace oriel
