// Random elements: of a model that is exported in training mode.
#include <algorithm>

#include "frontend/node_importer.h"
#include "frontend/node_location.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/random_choices.h"
#include "llvm/Support/xxhash.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

// Zeros `ratio` of the elements of `x`, and scales the others by 1 / (1 - ratio): others for each
// name and for each occurrence of a node of that name.
Value drop(NodeImporter& n, Value x, double ratio, llvm::StringRef name) {
  if (!x || ratio == 0) {
    return x;
  }
  const std::string place = name.str() + "#" + std::to_string(n.occurrence());
  const auto site = static_cast<int64_t>(llvm::xxh3_64bits(place));
  Ints shape(shapeOf(x));
  Value rows = shape.empty() ? n.reshape(x, {1}) : x;
  return n.reshape(n.createLike<ir::DropoutOp>(rows, mlir::ValueRange(), ratio, site), shape);
}

// Whether elements of a tensor of ones are left.
Value isKept(NodeImporter& n, llvm::ArrayRef<int64_t> shape, double ratio) {
  Value ones = n.splat(n.tensorType(shape, n.builder().getF32Type()), 1);
  Value kept = drop(n, ones, ratio, nodeNameOf(n.location()));
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
  Value result = drop(n, input, *ratio, nodeNameOf(n.location()));
  return n.numResults() < 2 || !n.hasResult(1)
             ? n.replace(result)
             : n.replace({result, isKept(n, shapeOf(input), *ratio)});
}

// 1 with this probability, and 0 else; in an evaluation its mean.
Value choose(NodeImporter& n, mlir::RankedTensorType type, double probability,
             llvm::StringRef name) {
  probability = std::clamp(probability, 0.0, 1.0);
  if (probability == 0) {
    return n.splat(type, 0);
  }
  Value chosen = drop(n, n.splat(type, 1), 1 - probability, name);
  return n.create<ir::MulOp>(chosen, n.scalarLike(chosen, probability));
}

// Whether it is a constant 0, repeated or not.
bool isZero(Value value) {
  while (llvm::isa_and_nonnull<ir::BroadcastOp, ir::ReshapeOp, ir::CastOp>(value.getDefiningOp())) {
    value = value.getDefiningOp()->getOperand(0);
  }
  return constantScalarOf(value) == 0.0;
}

mlir::InFlightDiagnostic refusal(NodeImporter& n) {
  return n.error() << "makes random numbers, which Oriel knows where elements are kept at random "
                      "(as stochastic depth does) by a number that is known at compile time: ";
}

// See random_choices.h.
LogicalResult importRandomChoice(NodeImporter& n) {
  Value threshold = n.operand(0);
  const std::optional<double> number = threshold ? constantScalarOf(threshold) : std::nullopt;
  if (!number) {
    return refusal(n) << "this one depends on the inputs' or parameters' values";
  }
  const double low = n.attrFloat("low", 0), high = n.attrFloat("high", 1);
  if (!(high > low)) {
    return n.error() << "makes random numbers from " << low << " to " << high
                     << ", expected the second to be larger";
  }
  if (n.attrInt("of_sum", 0) != 0 && !(*number >= 0 && *number <= 1)) {
    return refusal(n) << "of the sum with " << *number << " the whole part is more than a choice";
  }
  double below = (*number - low) / (high - low);
  bool above = n.attrInt("above", 0) != 0;
  Ints shape = n.hasOperand(1) ? Ints(shapeOf(n.operand(1))) : n.attrInts("shape").value_or(Ints());
  const std::string site = n.attrString("site", "");
  auto chosen = [&](mlir::Type element) {
    return choose(n, n.tensorType(shape, element), above ? 1 - below : below, site);
  };
  if (n.numOperands() < 4) {
    mlir::Type element = elementOf(n.hasOperand(2) ? n.operand(2) : threshold);
    if (n.hasAttr("to") && !(element = n.attrType("to", "casts to"))) {
      return failure();
    }
    Value choice = chosen(llvm::isa<mlir::FloatType>(element) ? element : n.builder().getF32Type());
    return n.replace(n.cast(choice, element));
  }
  Value kept = n.operand(2), other = n.operand(3);
  if (!kept || !other) {
    return failure();
  }
  if (!isZero(other)) {
    std::swap(kept, other);
    above = !above;
  }
  if (!isZero(other)) {
    return refusal(n) << "the others must be 0 then";
  }
  return n.replace(n.create<ir::MulOp>(kept, chosen(elementOf(kept))));
}

LogicalResult importBernoulli(NodeImporter& n) {
  Value given = n.operand(0);
  const std::optional<double> probability = given ? constantScalarOf(given) : std::nullopt;
  if (!probability) {
    return refusal(n) << "this one depends on the inputs' or parameters' values";
  }
  mlir::Type element = elementOf(given);
  if (n.hasAttr("dtype") && !(element = n.attrType("dtype", "gives"))) {
    return failure();
  }
  Value choice = choose(n, tensorType(given), *probability, nodeNameOf(n.location()));
  return n.replace(n.cast(choice, element));
}

LogicalResult refuseRandom(NodeImporter& n) {
  return refusal(n) << "export the model in evaluation mode, or leave the noise out";
}

}  // namespace

void registerDropout(OpRegistry& registry) {
  registry.add("Dropout", 13, importDropout);
  registry.addConstantOperands("Dropout", {1});
  registry.add("Bernoulli", 15, importBernoulli);
  registry.add(kRandomChoice, 1, importRandomChoice, kOrielDomain);
  for (llvm::StringRef op : {"RandomUniform", "RandomUniformLike"}) {
    registry.add(op, 1, refuseRandom);  // where it is no choice
  }
}

}  // namespace oriel
