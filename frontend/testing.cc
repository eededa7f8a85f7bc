#include "frontend/testing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/oriel/oriel.h"
#include "llvm/Support/FileSystem.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "onnx/defs/parser.h"

namespace oriel::testing {

namespace {

const char kConstants[] = R"(
    f = Constant<value_floats = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0]>()
    i = Constant<value_ints = [1, 2, 3, 4, 5, 6]>()
    matrix = Constant<value_ints = [2, 3]>()
    m = Reshape(f, matrix)
    n = Reshape(i, matrix)
    zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>()
    two = Constant<value_ints = [2]>()
    last = Constant<value_ints = [-1]>()
)";

}  // namespace

std::unique_ptr<onnx::ModelProto> parseModel(const std::string& text) {
  auto model = std::make_unique<onnx::ModelProto>();
  onnx::OnnxParser parser(text.c_str());
  auto status = parser.Parse(*model);
  if (!status.IsOK()) {
    llvm::errs() << "bad test model: " << status.ErrorMessage() << "\n" << text << "\n";
    std::abort();
  }
  return model;
}

std::string modelText(const std::string& graph, int opset) {
  return "<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" + graph;
}

Imported importFile(const ModelFile& model, const ImportOptions& options, bool specialize) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Imported result;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    result.errors += diagnostic.str() + "\n";
    for (mlir::Diagnostic& note : diagnostic.getNotes()) {
      result.errors += "  " + note.str() + "\n";
    }
    return mlir::success();
  });
  auto module = importModel(context, model, options);
  if (!module || failed(mlir::verify(*module))) {
    return result;
  }
  if (specialize) {
    mlir::PassManager passes(&context);
    passes.addPass(createOrielSpecialize());
    if (failed(passes.run(*module))) {
      return result;
    }
  }
  llvm::raw_string_ostream(result.ir) << *module;
  module->walk([&](mlir::Operation* op) {
    if (op->getName().getDialectNamespace() == "oriel" &&
        !llvm::isa<ir::ConstantOp, ir::ParameterOp>(op)) {
      result.ops += (result.ops.empty() ? "" : " ") + op->getName().stripDialect().str();
    }
  });
  return result;
}

Imported importText(const std::string& text, const ImportOptions& options, bool specialize) {
  auto model = ModelFile::fromProto(parseModel(text), "test.onnx", "");
  if (!model) {
    return {"", "", llvm::toString(model.takeError())};
  }
  return importFile(*model, options, specialize);
}

std::string errorsOf(const std::string& graph, const ImportOptions& options) {
  Imported imported = importText(modelText(graph), options);
  EXPECT_EQ(imported.ir, "");
  return imported.errors;
}

std::string opsOf(const std::string& model, const ImportOptions& options) {
  Imported imported = importText(model, options);
  return imported.ir.empty() ? "failed: " + imported.errors : imported.ops;
}

std::string valueOf(const std::string& body, int opset) {
  Imported imported = importText(modelText(
      "g (float[1] unused) => (float[] y) {" + std::string(kConstants) + body + "}", opset));
  if (!imported.errors.empty()) {
    return imported.errors;
  }
  EXPECT_EQ(imported.ops, "") << imported.ir;
  auto start = imported.ir.find("value = ");
  auto end = imported.ir.find("} : ()");
  return start == std::string::npos || end == std::string::npos
             ? imported.ir
             : imported.ir.substr(start + 8, end - start - 8);
}

std::string opsOfBody(const std::string& inputs, const std::string& body, int opset) {
  return opsOf(modelText(
      "g (" + inputs + ") => (float[] y) {" + std::string(kConstants) + body + "}", opset));
}

std::string irOfBody(const std::string& inputs, const std::string& body, int opset) {
  Imported imported = importText(modelText(
      "g (" + inputs + ") => (float[] y) {" + std::string(kConstants) + body + "}", opset));
  return imported.ir + imported.errors;
}

TemporaryFolder::TemporaryFolder() {
  llvm::SmallString<128> made;
  if (llvm::sys::fs::createUniqueDirectory("oriel_frontend_test", made)) {
    std::abort();
  }
  path_ = made.str().str();
}
TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

std::string TemporaryFolder::path(const std::string& name) const { return path_ + "/" + name; }

void writeFile(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string serialize(const onnx::ModelProto& model) { return model.SerializeAsString(); }

}  // namespace oriel::testing
