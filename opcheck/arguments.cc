#include "opcheck/arguments.h"

#include "absl/strings/str_cat.h"
#include "mlir/IR/IRMapping.h"
#include "runtime/base/status.h"

namespace oriel {

using mlir::func::FuncOp;

namespace {

bool isFloat(mlir::Type type) {
  return llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
}

}  // namespace

double numberOr(mlir::Attribute attribute, double fallback) {
  auto number = llvm::dyn_cast_or_null<mlir::FloatAttr>(attribute);
  return number ? number.getValueAsDouble() : fallback;
}

HostTensor randomTensor(mlir::Type type, double low, double high, std::mt19937* random) {
  HostTensor tensor(*specOf(type));
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int64_t i = 0; i < tensor.spec().num_elements(); ++i) {
    tensor.set(i, low + (high - low) * uniform(*random));
  }
  return tensor;
}

absl::StatusOr<Tensors> randomArguments(FuncOp function, std::mt19937* random) {
  Tensors arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (auto spec = specOf(type); !spec.ok()) {
      return runtime::Annotate(spec.status(), absl::StrCat("argument ", i));
    }
    const double low = isFloat(type) ? -2 : 0;
    arguments.push_back(randomTensor(type, numberOr(function.getArgAttr(i, "check.low"), low),
                                     numberOr(function.getArgAttr(i, "check.high"), 2), random));
  }
  return arguments;
}

Tensors randomCotangents(FuncOp function, std::mt19937* random) {
  Tensors cotangents;
  for (mlir::Type type : function.getResultTypes()) {
    if (isFloat(type)) cotangents.push_back(randomTensor(type, -1, 1, random));
  }
  return cotangents;
}

std::vector<const HostTensor*> pointersTo(const Tensors& tensors) {
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

absl::StatusOr<Tensors> valuesOf(FuncOp function, llvm::ArrayRef<mlir::Value> values,
                                 const Tensors& arguments) {
  mlir::OpBuilder builder(function);
  mlir::IRMapping mapping;
  auto probe = llvm::cast<FuncOp>(builder.clone(*function, mapping));
  probe.setName("probe");
  llvm::SmallVector<mlir::Value> mapped;
  for (mlir::Value value : values) mapped.push_back(mapping.lookup(value));
  probe.getBody().front().getTerminator()->setOperands(mapped);
  auto interpreter = Interpreter::create(probe);
  probe.erase();
  if (!interpreter.ok()) return interpreter.status();
  return interpreter->run(pointersTo(arguments));
}

absl::StatusOr<Tensors> vjpArguments(FuncOp function, const VjpFunction& vjp,
                                     const Tensors& arguments, const Tensors& cotangents) {
  absl::StatusOr<Tensors> inputs = valuesOf(function, vjp.captured, arguments);
  if (!inputs.ok()) return inputs;
  for (const HostTensor& cotangent : cotangents) inputs->push_back(cotangent.copy());
  return inputs;
}

}  // namespace oriel
