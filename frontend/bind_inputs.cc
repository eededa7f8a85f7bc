#include "frontend/bind_inputs.h"

#include <algorithm>
#include <vector>

#include "frontend/dimension_names.h"
#include "frontend/tensor_data.h"
#include "ir/interfaces/interfaces.h"
#include "ir/oriel/inference.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Diagnostics.h"
#include "onnx/onnx_pb.h"

namespace oriel {

using mlir::LogicalResult;
using mlir::success;

namespace {

// "a", "b" and "c"
std::string quotedList(llvm::ArrayRef<std::string> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "\"" : i + 1 == names.size() ? " and \"" : ", \"") + names[i] + "\"";
  }
  return text;
}

// A dimension with an operator: its names are the symbols of `size`.
struct Expression {
  std::vector<std::string> names;
  mlir::AffineMap size;
};

// Nothing for what is none, such as a name with a hyphen or a space.
std::optional<Expression> parseExpression(mlir::MLIRContext* context, llvm::StringRef dimension) {
  constexpr size_t kLongest = 256;  // MLIR's parser recurses
  constexpr llvm::StringLiteral kOperators = "+*/(";
  if (dimension.size() > kLongest ||
      (dimension.find_first_of(kOperators) == llvm::StringRef::npos &&
       !dimension.contains(" - "))) {
    return std::nullopt;
  }
  Expression expression;
  std::string text, symbols;
  while (!dimension.empty()) {
    const char first = dimension.front();
    if (const std::string name = leadingDimensionName(dimension).str(); !name.empty()) {
      auto known = llvm::find(expression.names, name);
      const std::string symbol = "s" + std::to_string(known - expression.names.begin());
      if (known == expression.names.end()) {
        symbols += (expression.names.empty() ? "" : ", ") + symbol;
        expression.names.push_back(name);
      }
      text += symbol;
      dimension = dimension.drop_front(name.size());
    } else if (dimension.consume_front("//")) {
      text += " floordiv ";
    } else if (llvm::isDigit(first) || llvm::StringRef(" +-*()").contains(first)) {
      text += first;
      dimension = dimension.drop_front();
    } else {
      return std::nullopt;
    }
  }
  mlir::ScopedDiagnosticHandler silent(context, [](mlir::Diagnostic&) { return success(); });
  auto map = llvm::dyn_cast_or_null<mlir::AffineMapAttr>(
      mlir::parseAttribute("affine_map<()[" + symbols + "] -> (" + text + ")>", context));
  if (!map || expression.names.empty() || map.getValue().getNumResults() != 1) {
    return std::nullopt;
  }
  expression.size = map.getValue();
  return expression;
}

// Nothing where it divides by what is not above 0, or does not fit into 64 bits.
std::optional<int64_t> evaluate(mlir::AffineExpr expression, llvm::ArrayRef<int64_t> symbols) {
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(expression)) {
    return constant.getValue();
  }
  if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(expression)) {
    return symbols[symbol.getPosition()];
  }
  auto binary = llvm::cast<mlir::AffineBinaryOpExpr>(expression);
  const auto left = evaluate(binary.getLHS(), symbols), right = evaluate(binary.getRHS(), symbols);
  if (!left || !right) {
    return std::nullopt;
  }
  switch (binary.getKind()) {
    case mlir::AffineExprKind::Add:
      return llvm::checkedAdd(*left, *right);
    case mlir::AffineExprKind::Mul:
      return llvm::checkedMul(*left, *right);
    case mlir::AffineExprKind::FloorDiv:
      return *right > 0 ? std::optional(llvm::divideFloorSigned(*left, *right)) : std::nullopt;
    default:
      return std::nullopt;  // nothing that parseExpression() takes
  }
}

}  // namespace

std::vector<std::string> namesInDimension(mlir::MLIRContext* context, llvm::StringRef dimension) {
  if (auto expression = parseExpression(context, dimension)) {
    return std::move(expression->names);
  }
  return {dimension.str()};
}

std::optional<int64_t> boundSize(mlir::MLIRContext* context, llvm::StringRef dimension,
                                 const DimensionBindings& bind) {
  if (auto whole = bind.find(dimension.str()); whole != bind.end()) {
    return whole->second;
  }
  auto expression = parseExpression(context, dimension);
  if (!expression) {
    return std::nullopt;
  }
  llvm::SmallVector<int64_t> sizes;
  for (const std::string& name : expression->names) {
    auto bound = bind.find(name);
    if (bound == bind.end()) {
      return std::nullopt;
    }
    sizes.push_back(bound->second);
  }
  const auto size = evaluate(expression->size.getResult(0), sizes);
  return size && *size >= 0 ? size : std::nullopt;
}

LogicalResult checkBindings(mlir::Location location, const onnx::GraphProto& graph,
                            const DimensionBindings& bind) {
  auto error = [&] { return mlir::emitError(location); };
  std::vector<std::string> symbols, whole;
  std::string unnamed;  // an input with a dimension that has neither a name nor a size
  for (const auto& input : graph.input()) {
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (dim.dim_param().empty() && !dim.has_dim_value()) unnamed = input.name();
      if (dim.dim_param().empty()) continue;
      whole.push_back(dim.dim_param());
      for (std::string& name : namesInDimension(location.getContext(), dim.dim_param())) {
        if (!llvm::is_contained(symbols, name)) symbols.push_back(std::move(name));
      }
    }
  }
  for (const auto& [name, size] : bind) {
    if (!llvm::is_contained(symbols, name) && !llvm::is_contained(whole, name)) {
      auto diagnostic = error();
      diagnostic << "no input has a dimension named \"" << name << "\"";
      if (symbols.empty() && !unnamed.empty()) {
        return diagnostic << ": that of \"" << unnamed
                          << "\" has no name; export the model with names for its dimensions";
      }
      if (symbols.empty()) {
        return diagnostic << ": all dimensions of this model have fixed sizes";
      }
      auto nearest = *std::min_element(
          symbols.begin(), symbols.end(), [&](const std::string& a, const std::string& b) {
            llvm::StringRef wanted(name);
            return wanted.edit_distance_insensitive(a) < wanted.edit_distance_insensitive(b);
          });
      return diagnostic << "; did you mean \"" << nearest << "\"? The model has "
                        << quotedList(symbols);
    }
    if (size < 0) {
      return error() << "the dimension \"" << name << "\" is bound to " << size
                     << "; it must be at least 0";
    }
  }
  return success();
}

mlir::FailureOr<mlir::RankedTensorType> bindInputType(mlir::Location location,
                                                      const onnx::ValueInfoProto& input,
                                                      const DimensionBindings& bind) {
  auto fail = [&]() -> mlir::InFlightDiagnostic {
    auto diagnostic = mlir::emitError(location);
    diagnostic << "input \"" << input.name() << "\" ";
    return diagnostic;
  };
  if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) {
    return fail() << "is no tensor of known rank";
  }
  const auto& tensor = input.type().tensor_type();
  mlir::Type element = elementTypeOf(location.getContext(), tensor.elem_type());
  if (!element) {
    return fail() << "has the element type " << dataTypeName(tensor.elem_type())
                  << ", which Oriel does not know";
  }
  llvm::SmallVector<int64_t> shape;
  for (const auto& dim : tensor.shape().dim()) {
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 1) {
        return fail() << "has the size " << dim.dim_value() << " in dimension " << shape.size();
      }
      shape.push_back(dim.dim_value());
      continue;
    }
    if (dim.dim_param().empty()) {
      return fail() << "has no size and no name for dimension " << shape.size()
                    << ", so it can't be bound: export the model with a named dimension";
    }
    const auto size = boundSize(location.getContext(), dim.dim_param(), bind);
    if (!size) {
      std::string unbound;
      for (const std::string& name : namesInDimension(location.getContext(), dim.dim_param())) {
        if (bind.count(name) == 0) unbound += (unbound.empty() ? "" : ",") + name + "=N";
      }
      if (unbound.empty()) {
        return fail() << "has the dimension \"" << dim.dim_param()
                      << "\", which is no size with what its names are bound to";
      }
      return fail() << "has the unbound dimension \"" << dim.dim_param() << "\": give --bind "
                    << unbound << " or model.bind in the recipe";
    }
    shape.push_back(*size);
  }
  if (std::string problem = ir::shapeProblem(shape); !problem.empty()) {
    return fail() << "has " << problem;
  }
  return mlir::RankedTensorType::get(shape, element);
}

}  // namespace oriel
