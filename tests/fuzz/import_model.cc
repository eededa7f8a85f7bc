#include "tests/fuzz/import_model.h"

#include <string>

#include "frontend/frontend.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "onnx/onnx_pb.h"
#include "passes/raise/passes.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input_folder.h"

namespace oriel::fuzz {
namespace {

constexpr size_t kWeightsBytes = size_t{64} << 20;

const std::string& modelFolder() {
  static InputFolder folder;
  static std::string path = [] {
    folder.write("weights.bin", nullptr, 0, kWeightsBytes);
    return folder.path();
  }();
  return path;
}

// Every named dimension of an input gets a size.
DimensionBindings bindAll(const onnx::GraphProto& graph) {
  DimensionBindings bind;
  for (const auto& input : graph.input()) {
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) {
        bind[dim.dim_param()] = 2;
      }
    }
  }
  return bind;
}

void addPasses(mlir::PassManager& passes) {
  passes.addPass(createOrielSpecialize());
  mlir::OpPassManager& function = passes.nest<mlir::func::FuncOp>();
  function.addPass(createRaiseLinear());
  function.addPass(createRaiseNormalization());
  function.addPass(createRaiseActivation());
  function.addPass(createRaiseRope());
  function.addPass(createRaiseAttention());
  function.addPass(createRaiseMerge(RaiseMergeOptions{}));
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
}

}  // namespace

void importModelOf(std::unique_ptr<onnx::ModelProto> proto) {
  auto model = ModelFile::fromProto(std::move(proto), "model.onnx", modelFolder());
  if (!model) {
    check(!llvm::toString(model.takeError()).empty(), "an error says why");
    return;
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  int errors = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  auto module = importModel(context, *model, {bindAll(model->graph())});
  if (!module) {
    check(errors > 0, "a failed import says why");
    return;
  }
  accepted();
  check(succeeded(mlir::verify(*module)), "what was imported is valid");
  mlir::PassManager passes(&context);
  addPasses(passes);
  if (failed(passes.run(*module))) {
    check(errors > 0, "a failed pass says why");
  }
}

}  // namespace oriel::fuzz
