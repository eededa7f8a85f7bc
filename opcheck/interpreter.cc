#include "opcheck/interpreter.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/kernel_attributes.h"
#include "kernels/common/bfloat16.h"
#include "mlir/IR/Matchers.h"

namespace oriel {
namespace {

using kernels::KernelSpec;
using runtime::DType;
using runtime::TensorSpec;

// Calls `f` with a null pointer of the element type.
template <typename F>
auto dispatch(DType dtype, F f) {
  switch (dtype) {
    case DType::kF32:
      return f(static_cast<float*>(nullptr));
    case DType::kF64:
      return f(static_cast<double*>(nullptr));
    case DType::kI64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::kI32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::kBF16:
      return f(static_cast<kernels::BFloat16*>(nullptr));
    default:
      return f(static_cast<uint8_t*>(nullptr));
  }
}

std::string nameOf(mlir::Operation& op) { return op.getName().getStringRef().str(); }

absl::StatusOr<std::map<std::string, kernels::Attribute>> kernelAttributes(mlir::Operation& op) {
  std::map<std::string, kernels::Attribute> attributes;
  for (mlir::NamedAttribute named : op.getAttrs()) {
    std::string name = named.getName().str();
    if (ir::isOfCompiler(name)) continue;
    if (auto boolean = llvm::dyn_cast<mlir::BoolAttr>(named.getValue())) {
      attributes[name] = static_cast<int64_t>(boolean.getValue());
    } else if (auto integer = llvm::dyn_cast<mlir::IntegerAttr>(named.getValue())) {
      attributes[name] = integer.getInt();
    } else if (auto number = llvm::dyn_cast<mlir::FloatAttr>(named.getValue())) {
      attributes[name] = number.getValueAsDouble();
    } else if (auto text = llvm::dyn_cast<mlir::StringAttr>(named.getValue())) {
      attributes[name] = text.str();
    } else if (auto list = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(named.getValue())) {
      attributes[name] = std::vector<int64_t>(list.asArrayRef());
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(nameOf(op), ": no kernel can take the attribute ", name));
    }
  }
  return attributes;
}

}  // namespace

void HostTensor::Free::operator()(void* data) const { std::free(data); }

HostTensor::HostTensor(TensorSpec spec) : spec_(std::move(spec)) {
  size_t bytes = (static_cast<size_t>(spec_.bytes()) / 64 + 1) * 64;
  data_.reset(std::aligned_alloc(64, bytes));
  std::memset(data_.get(), 0, bytes);
}

HostTensor::HostTensor(TensorSpec spec, const std::vector<double>& values)
    : HostTensor(std::move(spec)) {
  for (size_t i = 0; i < values.size(); ++i) set(i, values[i]);
}

double HostTensor::get(int64_t index) const {
  return dispatch(spec_.dtype, [&](auto* type) {
    return static_cast<double>(static_cast<decltype(type)>(data_.get())[index]);
  });
}

void HostTensor::set(int64_t index, double value) {
  dispatch(spec_.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    static_cast<T*>(data_.get())[index] = static_cast<T>(value);
  });
}

HostTensor HostTensor::copy() const {
  HostTensor copy(spec_);
  std::memcpy(copy.data(), data(), static_cast<size_t>(spec_.bytes()));
  return copy;
}

absl::StatusOr<TensorSpec> specOf(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape()) {
    return absl::InvalidArgumentError("a value is not a static tensor");
  }
  TensorSpec spec;
  spec.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  mlir::Type element = tensor.getElementType();
  if (element.isF32()) {
    spec.dtype = DType::kF32;
  } else if (element.isF64()) {
    spec.dtype = DType::kF64;
  } else if (element.isBF16()) {
    spec.dtype = DType::kBF16;
  } else if (element.isInteger(64)) {
    spec.dtype = DType::kI64;
  } else if (element.isInteger(32)) {
    spec.dtype = DType::kI32;
  } else if (element.isInteger(1)) {
    spec.dtype = DType::kBool;
  } else {
    return absl::InvalidArgumentError("the interpreter takes f32, f64, bf16, i64, i32 and i1 only");
  }
  return spec;
}

absl::StatusOr<Interpreter> Interpreter::create(mlir::func::FuncOp function) {
  Interpreter interpreter;
  mlir::Block& block = function.getBody().front();
  for (mlir::BlockArgument argument : block.getArguments()) {
    absl::StatusOr<int> slot = interpreter.addSlot(argument);
    if (!slot.ok()) return slot.status();
    interpreter.arguments_.push_back(*slot);
  }
  for (mlir::Operation& op : block.without_terminator()) {
    if (absl::Status status = interpreter.addOp(op); !status.ok()) return status;
  }
  for (mlir::Value result : block.getTerminator()->getOperands()) {
    interpreter.results_.push_back(interpreter.slot_of_.lookup(result));
  }
  return interpreter;
}

absl::StatusOr<int> Interpreter::addSlot(mlir::Value value) {
  absl::StatusOr<TensorSpec> spec = specOf(value.getType());
  if (!spec.ok()) return spec.status();
  slots_.emplace_back(*std::move(spec));
  return slot_of_[value] = static_cast<int>(slots_.size()) - 1;
}

absl::Status Interpreter::addConstant(mlir::Operation& op) {
  absl::StatusOr<int> slot = addSlot(op.getResult(0));
  if (!slot.ok()) return slot.status();
  mlir::DenseElementsAttr value;
  if (!mlir::matchPattern(&op, mlir::m_Constant(&value))) {
    return absl::InvalidArgumentError(absl::StrCat(nameOf(op), ": the value is not dense"));
  }
  HostTensor& tensor = slots_[*slot];
  int64_t i = 0;
  if (llvm::isa<mlir::FloatType>(value.getElementType())) {
    for (const mlir::APFloat& x : value.getValues<mlir::APFloat>())
      tensor.set(i++, x.convertToDouble());
  } else {
    bool boolean = value.getElementType().isInteger(1);
    for (const mlir::APInt& x : value.getValues<mlir::APInt>()) {
      tensor.set(i++, boolean ? static_cast<double>(x.getZExtValue())
                              : static_cast<double>(x.getSExtValue()));
    }
  }
  return absl::OkStatus();
}

absl::Status Interpreter::addOp(mlir::Operation& op) {
  if (op.hasTrait<mlir::OpTrait::ConstantLike>()) return addConstant(op);
  auto kernel = llvm::dyn_cast<ir::KernelOpInterface>(op);
  if (!kernel) return absl::UnimplementedError(absl::StrCat(nameOf(op), " has no kernel"));
  KernelSpec spec;
  Step step;
  step.op = nameOf(op);
  for (mlir::Value operand : op.getOperands()) {
    step.operands.push_back(slot_of_.lookup(operand));
    spec.operands.push_back(slots_[step.operands.back()].spec());
  }
  for (mlir::Value result : op.getResults()) {
    absl::StatusOr<int> slot = addSlot(result);
    if (!slot.ok()) return slot.status();
    step.results.push_back(*slot);
    spec.results.push_back(slots_[*slot].spec());
  }
  if (kernel.isView()) {
    int64_t bytes = spec.results[0].bytes();
    step.kernel = [bytes](const kernels::KernelArgs& args) {
      std::memcpy(args.results[0], args.operands[0], bytes);
      return absl::OkStatus();
    };
    steps_.push_back(std::move(step));
    return absl::OkStatus();
  }
  spec.kernel = kernel.getKernelName().str();
  auto attributes = kernelAttributes(op);
  if (!attributes.ok()) return attributes.status();
  spec.attributes = *std::move(attributes);
  absl::StatusOr<kernels::KernelFn> prepared = kernels::KernelRegistry::Host().Prepare(spec);
  if (!prepared.ok()) {
    return absl::Status(prepared.status().code(),
                        absl::StrCat(step.op, ": ", std::string(prepared.status().message())));
  }
  step.kernel = *std::move(prepared);
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostTensor>> Interpreter::run(
    const std::vector<const HostTensor*>& arguments) {
  if (arguments.size() != arguments_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the function takes ", arguments_.size(),
                                                   " arguments, not ", arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    HostTensor& slot = slots_[arguments_[i]];
    if (slot.spec() != arguments[i]->spec()) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", i, " is ",
                                                     arguments[i]->spec().ToString(), ", not ",
                                                     slot.spec().ToString()));
    }
    std::memcpy(slot.data(), arguments[i]->data(), slot.spec().bytes());
  }
  for (const Step& step : steps_) {
    std::vector<const void*> operands;
    std::vector<void*> results;
    for (int slot : step.operands) operands.push_back(slots_[slot].data());
    for (int slot : step.results) results.push_back(slots_[slot].data());
    absl::Status status = step.kernel({operands.data(), results.data()});
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(step.op, ": ", std::string(status.message())));
    }
  }
  std::vector<HostTensor> results;
  for (int slot : results_) {
    results.push_back(slots_[slot].copy());
  }
  return results;
}

}  // namespace oriel
