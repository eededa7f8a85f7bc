// Normalisations and softmax.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

// An input normalised over its dimensions from `axis` on, which are made one.
struct NormInput {
  Value rows;    // [.., k]
  Value weight;  // [k]
  Value bias;    // [k], or null
  Ints shape;    // of the original input
};

// The operand as a vector over the normalised dimensions, which it may broadcast to.
Value asVector(NodeImporter& n, Value operand, llvm::ArrayRef<int64_t> normalized, int64_t size) {
  return n.reshape(n.broadcast(operand, normalized), {size});
}

FailureOr<NormInput> readNorm(NodeImporter& n) {
  Value input = n.operand(0), weight = n.operand(1), bias = n.optionalOperand(2);
  if (!input || !weight) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", -1), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  NormInput norm;
  norm.shape = Ints(shapeOf(input));
  llvm::ArrayRef<int64_t> normalized = shapeOf(input).drop_front(*axis);
  int64_t size = 1;
  for (int64_t dim : normalized) {
    size *= dim;
  }
  Ints rows(shapeOf(input).take_front(*axis));
  rows.push_back(size);
  norm.rows = n.reshape(input, rows);
  norm.weight = asVector(n, weight, normalized, size);
  norm.bias = bias ? asVector(n, bias, normalized, size) : Value();
  if (!norm.rows || !norm.weight || (bias && !norm.bias)) {
    return failure();
  }
  return norm;
}

LogicalResult importLayerNormalization(NodeImporter& n) {
  auto norm = readNorm(n);
  if (failed(norm)) {
    return failure();
  }
  Value result = n.create<ir::LayerNormOp>(norm->rows, norm->weight, OptionalValue{norm->bias},
                                           n.attrFloat("epsilon", 1e-5f));
  return n.replace(n.reshape(result, norm->shape));
}

LogicalResult importRmsNormalization(NodeImporter& n) {
  auto norm = readNorm(n);
  if (failed(norm)) {
    return failure();
  }
  Value result = n.create<ir::RmsNormOp>(norm->rows, norm->weight, n.attrFloat("epsilon", 1e-5f));
  return n.replace(n.reshape(result, norm->shape));
}

FailureOr<int64_t> softmaxDim(NodeImporter& n, Value input) {
  return input ? n.normalizeAxis(n.attrInt("axis", -1), rankOf(input))
               : FailureOr<int64_t>(failure());
}

LogicalResult importSoftmax(NodeImporter& n) {
  Value input = n.operand(0);
  auto dim = softmaxDim(n, input);
  return failed(dim) ? failure() : n.replace(n.createLike<ir::SoftmaxOp>(input, *dim));
}

// (x - max) - log Σ exp(x - max)
LogicalResult importLogSoftmax(NodeImporter& n) {
  Value input = n.operand(0);
  auto dim = softmaxDim(n, input);
  if (failed(dim)) {
    return failure();
  }
  Value shifted =
      n.create<ir::SubOp>(input, n.reduce<ir::ReduceMaxOp>(input, {*dim}, /*keepDims=*/true));
  Value sum = n.reduce<ir::ReduceSumOp>(n.createLike<ir::ExpOp>(shifted), {*dim}, true);
  return n.replace(n.create<ir::SubOp>(shifted, n.createLike<ir::LogOp>(sum)));
}

}  // namespace

void registerNormalizationOps(OpRegistry& registry) {
  registry.add("LayerNormalization", 17, importLayerNormalization);
  registry.add("RMSNormalization", 23, importRmsNormalization);
  registry.add("Softmax", 13, importSoftmax);
  registry.add("LogSoftmax", 13, importLogSoftmax);
  // ONNX Runtime's name for it.
  registry.add("SimplifiedLayerNormalization", 1, importRmsNormalization, "com.microsoft");
}

}  // namespace oriel
