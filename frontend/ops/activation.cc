// Activation functions. Those that `oriel.activation` knows keep their name, others are composed.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

Value activation(NodeImporter& n, Value x, llvm::StringRef kind) {
  return n.createLike<ir::ActivationOp>(x, kind);
}

Value scale(NodeImporter& n, Value x, double factor) {
  return factor == 1.0 ? x : n.create<ir::MulOp>(x, n.scalarLike(x, factor));
}

// max(x, 0), and min(x, 0). At 0 the first has the derivative 0 and the second 1, as PyTorch's
// activations count 0 among the numbers that are not positive.
Value positivePart(NodeImporter& n, Value x) { return n.createLike<ir::ReluOp>(x); }
Value negativePart(NodeImporter& n, Value x) {
  Value zero = n.scalarLike(x, 0);
  return n.create<ir::SelectOp>(n.create<ir::GreaterOp>(x, zero), zero, x);
}

LogicalResult importGelu(NodeImporter& n) {
  std::string approximate = n.attrString("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return n.error() << "knows the approximations \"none\" and \"tanh\", not \"" << approximate
                     << "\"";
  }
  return n.replace(activation(n, n.operand(0), approximate == "tanh" ? "gelu_tanh" : "gelu"));
}

// com.microsoft: x sigmoid(alpha x)
LogicalResult importQuickGelu(NodeImporter& n) {
  Value x = n.operand(0);
  double alpha = n.attrFloat("alpha", 1.702f);
  if (static_cast<float>(alpha) == 1.702f) {
    return n.replace(activation(n, x, "gelu_quick"));
  }
  return n.replace(n.create<ir::MulOp>(x, n.createLike<ir::SigmoidOp>(scale(n, x, alpha))));
}

// com.microsoft: gelu(x + bias), by the hyperbolic tangent.
LogicalResult importFastGelu(NodeImporter& n) {
  Value x = n.operand(0), bias = n.optionalOperand(1);
  x = bias ? n.create<ir::AddOp>(x, bias) : x;
  return n.replace(activation(n, x, "gelu_tanh"));
}

// com.microsoft: gelu(x + bias)
LogicalResult importBiasGelu(NodeImporter& n) {
  return n.replace(activation(n, n.create<ir::AddOp>(n.operand(0), n.operand(1)), "gelu"));
}

LogicalResult importSwish(NodeImporter& n) {
  Value x = n.operand(0);
  double alpha = n.attrFloat("alpha", 1.0);
  if (alpha == 1.0) {
    return n.replace(activation(n, x, "silu"));
  }
  return n.replace(n.create<ir::MulOp>(x, n.createLike<ir::SigmoidOp>(scale(n, x, alpha))));
}

// clamp(alpha x + beta, 0, 1)
Value hardSigmoid(NodeImporter& n, Value x, double alpha, double beta) {
  return n.clamp(n.create<ir::AddOp>(scale(n, x, alpha), n.scalarLike(x, beta)), 0, 1);
}

LogicalResult importHardSigmoid(NodeImporter& n) {
  return n.replace(
      hardSigmoid(n, n.operand(0), n.attrFloat("alpha", 0.2), n.attrFloat("beta", 0.5)));
}

LogicalResult importHardSwish(NodeImporter& n) {
  Value x = n.operand(0);
  return n.replace(n.create<ir::MulOp>(x, hardSigmoid(n, x, 1.0 / 6, 0.5)));
}

LogicalResult importLeakyRelu(NodeImporter& n) {
  Value x = n.operand(0);
  Value negative = scale(n, negativePart(n, x), n.attrFloat("alpha", 0.01));
  return n.replace(n.create<ir::AddOp>(positivePart(n, x), negative));
}

LogicalResult importPRelu(NodeImporter& n) {
  Value x = n.operand(0);
  Value negative = n.create<ir::MulOp>(negativePart(n, x), n.operand(1));
  return n.replace(n.create<ir::AddOp>(positivePart(n, x), negative));
}

// x for x > 0, else alpha (exp(x) - 1); the exponent never sees a large x.
Value elu(NodeImporter& n, Value x, double alpha) {
  Value grown =
      n.create<ir::SubOp>(n.createLike<ir::ExpOp>(negativePart(n, x)), n.scalarLike(x, 1));
  return n.create<ir::AddOp>(positivePart(n, x), scale(n, grown, alpha));
}

LogicalResult importElu(NodeImporter& n) {
  return n.replace(elu(n, n.operand(0), n.attrFloat("alpha", 1.0)));
}

// gamma elu(x). ONNX's own body of it counts 0 among the positive numbers.
LogicalResult importSelu(NodeImporter& n) {
  Value y = elu(n, n.operand(0), n.attrFloat("alpha", 1.67326319217681884765625));
  return n.replace(scale(n, y, n.attrFloat("gamma", 1.05070102214813232421875)));
}

// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow. At 0, where the
// derivatives of both summands jump, it is 1/2, as half of the maximum's: not relu's.
Value softplus(NodeImporter& n, Value x) {
  Value small = n.createLike<ir::ExpOp>(n.createLike<ir::NegOp>(n.createLike<ir::AbsOp>(x)));
  Value log = n.createLike<ir::LogOp>(n.create<ir::AddOp>(small, n.scalarLike(x, 1)));
  return n.create<ir::AddOp>(n.create<ir::MaxOp>(x, n.scalarLike(x, 0)), log);
}

LogicalResult importSoftplus(NodeImporter& n) { return n.replace(softplus(n, n.operand(0))); }

LogicalResult importMish(NodeImporter& n) {
  Value x = n.operand(0);
  return n.replace(n.create<ir::MulOp>(x, n.createLike<ir::TanhOp>(softplus(n, x))));
}

// x + bias below -lambd, x - bias above lambd, 0 between.
LogicalResult importShrink(NodeImporter& n) {
  Value x = n.operand(0);
  double bias = n.attrFloat("bias", 0), lambd = n.attrFloat("lambd", 0.5);
  Value isLow = n.create<ir::LessOp>(x, n.scalarLike(x, -lambd));
  Value isHigh = n.create<ir::GreaterOp>(x, n.scalarLike(x, lambd));
  Value high = n.create<ir::SelectOp>(isHigh, n.create<ir::SubOp>(x, n.scalarLike(x, bias)),
                                      n.scalarLike(x, 0));
  return n.replace(
      n.create<ir::SelectOp>(isLow, n.create<ir::AddOp>(x, n.scalarLike(x, bias)), high));
}

}  // namespace

void registerActivationOps(OpRegistry& registry) {
  registry.add("Gelu", 20, importGelu);
  registry.add("Swish", 24, importSwish);
  registry.add("HardSigmoid", 6, importHardSigmoid);
  registry.add("HardSwish", 14, importHardSwish);
  registry.add("LeakyRelu", 6, importLeakyRelu);
  registry.add("PRelu", 9, importPRelu);
  registry.add("Elu", 6, importElu);
  registry.add("Selu", 6, importSelu);
  registry.add("Softplus", 1, importSoftplus);
  registry.add("Mish", 18, importMish);
  registry.add("Shrink", 9, importShrink);
  registry.add("QuickGelu", 1, importQuickGelu, "com.microsoft");
  registry.add("Gelu", 1, importGelu, "com.microsoft");
  registry.add("FastGelu", 1, importFastGelu, "com.microsoft");
  registry.add("BiasGelu", 1, importBiasGelu, "com.microsoft");
}

}  // namespace oriel
