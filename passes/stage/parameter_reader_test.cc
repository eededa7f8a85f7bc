#include "passes/stage/parameter_reader.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/stage/model_text_testing.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ParameterReaderTest : public ModelTextTest {
 protected:
  // Names of what each operand of the model's last op is made of.
  std::vector<std::vector<std::string>> readByLast(const ModelText& model) {
    mlir::func::FuncOp main = mainOf(model);
    if (!main) return {};
    const ModelParts parts = findParts(main, {}, Strategy());
    const ParameterReader reader(main, parts);
    std::vector<std::vector<std::string>> names;
    mlir::Operation* last = main.getBody().front().getTerminator()->getPrevNode();
    for (mlir::Value operand : last->getOperands()) {
      names.emplace_back();
      for (ir::ParameterOp parameter : reader.read(operand)) {
        names.back().push_back(parameter.getOnnxName().str());
      }
    }
    return names;
  }
};

TEST_F(ParameterReaderTest, AValueOfSeveralParameters) {
  ModelText model;
  const std::string both = model.add(model.parameter("b"), model.parameter("a"));
  model.linear(model.input(2), model.add(both, model.parameter("b")));
  EXPECT_THAT(readByLast(model), ElementsAre(IsEmpty(), ElementsAre("b", "a")));
}

// What comes from an input is not made of parameters alone.
TEST_F(ParameterReaderTest, AValueOfAnInputIsOfNone) {
  ModelText model;
  const std::string value = model.linear(model.input(2), model.parameter("a"));
  model.linear(value, model.parameter("b"));
  EXPECT_THAT(readByLast(model), ElementsAre(IsEmpty(), ElementsAre("b")));
}

// 2^40 ways lead from the last to the first.
TEST_F(ParameterReaderTest, AChainOfDiamonds) {
  ModelText model;
  std::string value = model.parameter("a");
  for (int i = 0; i < 40; ++i) value = model.add(value, value);
  model.linear(model.input(2), value);
  EXPECT_THAT(readByLast(model), ElementsAre(IsEmpty(), ElementsAre("a")));
}

}  // namespace
}  // namespace oriel
