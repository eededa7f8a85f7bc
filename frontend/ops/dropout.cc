// Random elements: of a model that is exported in training mode.
#include "frontend/node_importer.h"
#include "frontend/node_location.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "llvm/Support/xxhash.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

// Zeros `ratio` of the elements of `x`, and scales the others by 1 / (1 - ratio). Others for each
// node: its name tells them apart, and which of that name it is.
Value drop(NodeImporter& n, Value x, double ratio) {
  if (!x || ratio == 0) {
    return x;
  }
  const std::string node = nodeNameOf(n.location()) + "#" + std::to_string(n.occurrence());
  const auto site = static_cast<int64_t>(llvm::xxh3_64bits(node));
  Ints shape(shapeOf(x));
  Value rows = shape.empty() ? n.reshape(x, {1}) : x;
  return n.reshape(n.createLike<ir::DropoutOp>(rows, mlir::ValueRange(), ratio, site), shape);
}

// Whether elements of a tensor of ones are left.
Value isKept(NodeImporter& n, llvm::ArrayRef<int64_t> shape, double ratio) {
  Value ones = n.splat(n.tensorType(shape, n.builder().getF32Type()), 1);
  Value kept = drop(n, ones, ratio);
  return n.create<ir::GreaterOp>(kept, n.scalarLike(kept, 0));
}

// What part of the elements is dropped; fails, with an error, where that isn't known, or all.
FailureOr<double> ratioOf(NodeImporter& n) {
  Value given = n.optionalOperand(2);
  const std::optional<Ints> training = given ? constantIntsOf(given) : Ints{0};
  if (!training || training->size() != 1) {
    return n.error() << "is told by an input of the model whether it is in training mode: set that "
                        "input, `oriel compose MODEL --set INPUT=false` (or true), and import what "
                        "it writes";
  }
  if (!training->front()) {
    return 0.0;
  }
  const std::optional<double> ratio = n.hasOperand(1) ? constantScalarOf(n.operand(1)) : 0.5;
  if (!ratio) {
    return n.error() << "has a ratio that depends on the inputs' or parameters' values: it must be "
                        "known at compile time";
  }
  if (!(*ratio >= 0 && *ratio < 1)) {
    return n.error() << "has the ratio " << *ratio << ", expected one from 0 to below 1";
  }
  return *ratio;
}

LogicalResult importDropout(NodeImporter& n) {
  Value input = n.operand(0);
  auto ratio = ratioOf(n);
  if (!input || failed(ratio)) {
    return failure();
  }
  Value result = drop(n, input, *ratio);
  return n.numResults() < 2 || !n.hasResult(1)
             ? n.replace(result)
             : n.replace({result, isKept(n, shapeOf(input), *ratio)});
}

}  // namespace

void registerDropout(OpRegistry& registry) {
  registry.add("Dropout", 13, importDropout);
  registry.addConstantOperands("Dropout", {1});
}

}  // namespace oriel
