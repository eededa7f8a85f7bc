#include "tests/onnx_conformance/run_case.h"

#include <cmath>
#include <cstring>
#include <map>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "frontend/frontend.h"
#include "ir/oriel/segment.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "onnx/onnx_pb.h"
#include "opcheck/interpreter.h"

namespace oriel::conformance {
namespace {

using Tensors = std::map<std::string, HostTensor>;

enum class Bound { kNothing, kIntegers, kAllButFirst, kAll };

// Of a tensor in scope.
runtime::DType dtypeOf(const TensorData& data) {
  switch (data.dataType) {
    case onnx::TensorProto::FLOAT:
      return runtime::DType::kF32;
    case onnx::TensorProto::DOUBLE:
      return runtime::DType::kF64;
    case onnx::TensorProto::INT64:
      return runtime::DType::kI64;
    case onnx::TensorProto::INT32:
      return runtime::DType::kI32;
    default:
      return runtime::DType::kBool;
  }
}

bool isBound(const TensorData& data, int index, Bound bound) {
  bool isFloat = dtypeOf(data) == runtime::DType::kF32 || dtypeOf(data) == runtime::DType::kF64;
  return data.numElements() == 0 || bound == Bound::kAll ||
         (bound == Bound::kAllButFirst && index > 0) || (bound != Bound::kNothing && !isFloat);
}

// The test's model with the inputs' shapes written down, and some inputs made constants.
std::unique_ptr<onnx::ModelProto> bindModel(const NodeCase& test, Bound bound) {
  auto model = std::make_unique<onnx::ModelProto>(*test.model);
  onnx::GraphProto& graph = *model->mutable_graph();
  graph.clear_input();
  for (int i = 0; i < test.model->graph().input_size(); ++i) {
    const TensorData& data = test.inputs[i].data;
    if (isBound(data, i, bound)) {
      onnx::NodeProto& constant = *graph.add_node();
      constant.set_op_type("Constant");
      constant.add_output(test.inputs[i].proto->name());
      onnx::AttributeProto& value = *constant.add_attribute();
      value.set_name("value");
      value.set_type(onnx::AttributeProto::TENSOR);
      *value.mutable_t() = *test.inputs[i].proto;
      continue;
    }
    auto* input = graph.add_input();
    *input = test.model->graph().input(i);
    auto* shape = input->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->clear_dim();
    for (int64_t size : data.shape) {
      shape->add_dim()->set_dim_value(size);
    }
  }
  return model;
}

HostTensor toHost(const TensorData& data, const runtime::TensorSpec& spec) {
  HostTensor tensor(spec);
  std::memcpy(tensor.data(), data.bytes.data(), data.bytes.size());
  return tensor;
}

absl::StatusOr<Tensors> interpret(const NodeCase& test, mlir::ModuleOp module) {
  auto function = module.lookupSymbol<mlir::func::FuncOp>("main");
  auto interpreter = Interpreter::create(function);
  if (!interpreter.ok()) {
    return interpreter.status();
  }
  std::vector<HostTensor> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string name = ir::argumentRole(function, i)->ref;
    for (const NodeTensor& input : test.inputs) {
      if (input.proto->name() == name) {
        auto spec = specOf(function.getArgumentTypes()[i]);
        if (!spec.ok()) {
          return spec.status();
        }
        arguments.push_back(toHost(input.data, *spec));
      }
    }
  }
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& argument : arguments) {
    pointers.push_back(&argument);
  }
  auto results = interpreter->run(pointers);
  if (!results.ok()) {
    return results.status();
  }
  Tensors outputs;
  for (auto [i, result] : llvm::enumerate(*results)) {
    outputs[ir::resultRole(function, i)->ref] = std::move(result);
  }
  return outputs;
}

// "node "n" (Op): why" and "'oriel.op' op why" less what only says where.
std::string withoutPlace(llvm::StringRef message) {
  if (message.starts_with("node \"")) {
    auto [place, rest] = message.split("): ");
    return rest.empty() ? message.str() : rest.str();
  }
  return message.str();
}

// Fails with the first error's message.
absl::StatusOr<Tensors> compute(const NodeCase& test, Bound bound) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string error;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && error.empty()) {
      error = withoutPlace(diagnostic.str());
    }
    return mlir::success();
  });
  auto model = ModelFile::fromProto(bindModel(test, bound), test.name, "");
  if (!model) {
    return absl::UnimplementedError(llvm::toString(model.takeError()));
  }
  ImportOptions options;
  options.floats = FloatTypes::asStored();
  auto module = importModel(context, *model, options);
  mlir::PassManager passes(&context);
  passes.addPass(createOrielSpecialize());
  if (!module || failed(mlir::verify(*module)) || failed(passes.run(*module))) {
    return absl::UnimplementedError(error.empty() ? "failed without an error" : error);
  }
  bool drops = false;
  module->walk([&](ir::DropoutOp) { drops = true; });
  if (drops) return absl::UnimplementedError("drops by Oriel's random numbers, not by ONNX's");
  return interpret(test, *module);
}

// The largest magnitude of what a float tensor holds, or 1 if that is larger.
double scaleOf(const HostTensor& tensor) {
  double scale = 1;
  if (!runtime::IsFloat(tensor.spec().dtype)) {
    return scale;
  }
  for (int64_t i = 0; i < tensor.spec().num_elements(); ++i) {
    double magnitude = std::abs(tensor.get(i));
    scale = std::isfinite(magnitude) ? std::max(scale, magnitude) : scale;
  }
  return scale;
}

// Where `actual` is not what ONNX's runner accepts (numpy.testing.assert_allclose with
// equal_nan); "" if nowhere. The absolute tolerance grows with the largest element: where terms of
// its size cancel (a Fourier transform), the expected value is rounding.
std::string difference(const HostTensor& actual, const TensorData& data) {
  runtime::TensorSpec spec = actual.spec();
  llvm::ArrayRef<int64_t> shape(spec.shape);
  if (shape != llvm::ArrayRef<int64_t>(data.shape)) {
    return absl::StrCat("has the shape ", runtime::ShapeToString(spec.shape));
  }
  if (spec.dtype != dtypeOf(data)) {
    return absl::StrCat("has the type ", spec.ToString());
  }
  HostTensor expected = toHost(data, spec);
  constexpr double kRelative = 1e-3;
  double absolute = 1e-7 * scaleOf(expected);
  for (int64_t i = 0; i < spec.num_elements(); ++i) {
    double a = actual.get(i), e = expected.get(i);
    bool same = a == e || (std::isnan(a) && std::isnan(e)) ||
                (std::isfinite(e) && std::abs(a - e) <= absolute + kRelative * std::abs(e));
    if (!same) {
      return absl::StrCat("element ", i, " is ", a, ", expected ", e);
    }
  }
  return "";
}

}  // namespace

CaseResult runCase(const NodeCase& test) {
  absl::StatusOr<Tensors> outputs;
  for (Bound bound : {Bound::kNothing, Bound::kIntegers, Bound::kAllButFirst, Bound::kAll}) {
    outputs = compute(test, bound);
    if (outputs.ok()) {
      break;
    }
  }
  if (!outputs.ok()) {
    return {Verdict::kRefused, std::string(outputs.status().message())};
  }
  for (const NodeTensor& expected : test.outputs) {
    const std::string& name = expected.proto->name();
    std::string wrong = difference((*outputs)[name], expected.data);
    if (!wrong.empty()) {
      return {Verdict::kWrong, absl::StrCat("\"", name, "\" ", wrong)};
    }
  }
  return {Verdict::kPass, ""};
}

}  // namespace oriel::conformance
