// Models of a few linear layers, as text, for tests of what is found in them.
#ifndef ORIEL_PASSES_STAGE_MODEL_TEXT_TESTING_H_
#define ORIEL_PASSES_STAGE_MODEL_TEXT_TESTING_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace oriel {

// Values are [samples, 8, 8], named as in IR.
//
//   ModelText model;
//   model.tower(model.input(2), {"vision.0", "vision.1"});
//   parse(model.text());
class ModelText {
 public:
  std::string input(int samples) {
    const std::string name = absl::StrCat("%x", values_++);
    samplesOf_[name] = samples;
    addArgument(name, type(samples), "input", name.substr(1));
    return name;
  }

  // Of [8, 8]; the same value for the same name.
  std::string parameter(const std::string& name) {
    const std::string symbol = absl::StrCat("p", symbols_.size());
    const auto [known, isNew] = symbols_.try_emplace(name, symbol);
    if (isNew) {
      absl::StrAppend(&parameters_, "  oriel.parameter @", symbol, " {onnx_name = \"", name,
                      "\", type = tensor<8x8xf32>}\n");
      addArgument("%" + symbol, kWeight, "parameter", symbol);
    }
    return "%" + known->second;
  }

  std::string linear(const std::string& value, const std::string& weight) {
    const int samples = samplesOf_.at(value);
    return op("oriel.linear", {value, weight}, {type(samples), kWeight}, samples);
  }

  // A layer for each name of a weight, one behind the other.
  std::string tower(std::string value, const std::vector<std::string>& weights) {
    for (const std::string& name : weights) value = linear(value, parameter(name));
    return value;
  }

  // The samples of both.
  std::string concat(const std::string& a, const std::string& b) {
    const int samples = samplesOf_.at(a) + samplesOf_.at(b);
    return op("oriel.concat", {a, b}, {type(samplesOf_.at(a)), type(samplesOf_.at(b))}, samples,
              " {dim = 0 : i64}");
  }

  // Of two of the parameters' size.
  std::string add(const std::string& a, const std::string& b) {
    const std::string name = absl::StrCat("%v", values_++);
    absl::StrAppend(&body_, "    ", name, " = oriel.add ", a, ", ", b, " : (", kWeight, ", ",
                    kWeight, ") -> ", kWeight, "\n");
    return name;
  }

  // What the model gives is the last value.
  std::string text() const {
    return absl::StrCat("module {\n", parameters_, "  func.func @main(", arguments_,
                        ")\n      -> (", type(samplesOf_.at(last_)),
                        " {oriel.kind = \"output\", oriel.ref = \"y\"}) {\n", body_, "    return ",
                        last_, " : ", type(samplesOf_.at(last_)), "\n  }\n}\n");
  }

 private:
  static constexpr char kWeight[] = "tensor<8x8xf32>";

  static std::string type(int samples) { return absl::StrCat("tensor<", samples, "x8x8xf32>"); }

  void addArgument(const std::string& name, const std::string& type, const std::string& kind,
                   const std::string& ref) {
    absl::StrAppend(&arguments_, arguments_.empty() ? "" : ",\n      ", name, ": ", type,
                    " {oriel.kind = \"", kind, "\", oriel.ref = \"", ref, "\"}");
  }

  std::string op(const std::string& kind, const std::vector<std::string>& operands,
                 const std::vector<std::string>& types, int samples,
                 const std::string& attributes = "") {
    last_ = absl::StrCat("%v", values_++);
    samplesOf_[last_] = samples;
    absl::StrAppend(&body_, "    ", last_, " = ", kind, " ", absl::StrJoin(operands, ", "),
                    attributes, " : (", absl::StrJoin(types, ", "), ") -> ", type(samples), "\n");
    return last_;
  }

  std::string parameters_, arguments_, body_, last_;
  std::map<std::string, std::string> symbols_;  // by the parameter's name
  std::map<std::string, int> samplesOf_;        // by value
  int values_ = 0;
};

class ModelTextTest : public ::testing::Test {
 protected:
  ModelTextTest() {
    mlir::DialectRegistry registry;
    registry.insert<ir::OrielDialect, mlir::func::FuncDialect>();
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  // Null, after a failure, if the text is no model. Lives as long as no other is parsed.
  mlir::func::FuncOp mainOf(const ModelText& model) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(model.text(), &context_);
    EXPECT_TRUE(module_) << model.text();
    return module_ ? module_->lookupSymbol<mlir::func::FuncOp>("main") : mlir::func::FuncOp();
  }

 private:
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_MODEL_TEXT_TESTING_H_
