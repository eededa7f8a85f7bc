// Normalisations and softmax.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/log_softmax.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/positions.h"

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
  // Of operands that have more dimensions than are normalised: what the norm is multiplied with,
  // and what is added then; else null.
  Value factor, summand;

  // What is normed so, in the original shape.
  Value finish(NodeImporter& n, Value normed) const {
    Value result = n.reshape(normed, shape);
    if (factor) result = n.create<ir::MulOp>(result, factor);
    if (summand) result = n.create<ir::AddOp>(result, summand);
    return result;
  }
};

// Whether an operand is more than one vector: PyTorch writes the scale of a norm without weights
// as ones in the input's shape.
bool isWhole(Value operand, llvm::ArrayRef<int64_t> normalized) {
  llvm::ArrayRef<int64_t> shape = shapeOf(operand);
  return shape.size() > normalized.size() &&
         llvm::any_of(shape.drop_back(normalized.size()), [](int64_t size) { return size != 1; });
}

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
  if (isWhole(weight, normalized) || (bias && isWhole(bias, normalized))) {
    norm.factor = weight;
    norm.summand = bias;
    weight = n.scalarLike(input, 1);
    bias = Value();
  }
  norm.weight = asVector(n, weight, normalized, size);
  norm.bias = bias ? asVector(n, bias, normalized, size) : Value();
  if (!norm.rows || !norm.weight || (bias && !norm.bias)) {
    return failure();
  }
  return norm;
}

// 1 / √(variance + ε) over the last dimension, which stays with size 1; `mean` likewise.
Value inverseDeviation(NodeImporter& n, Value x, Value mean, double epsilon) {
  Value centered = n.create<ir::SubOp>(x, mean);
  Value squares = n.create<ir::MulOp>(centered, centered);
  Value variance = n.reduce<ir::ReduceMeanOp>(squares, {rankOf(x) - 1}, /*keepDims=*/true);
  return n.createLike<ir::RsqrtOp>(n.create<ir::AddOp>(variance, n.scalarLike(x, epsilon)));
}

LogicalResult importLayerNormalization(NodeImporter& n) {
  auto norm = readNorm(n);
  if (failed(norm)) {
    return failure();
  }
  double epsilon = n.attrFloat("epsilon", 1e-5f);
  Value result =
      n.create<ir::LayerNormOp>(norm->rows, norm->weight, OptionalValue{norm->bias}, epsilon);
  llvm::SmallVector<Value> results{norm->finish(n, result), Value(), Value()};
  if (n.hasResult(1) || n.hasResult(2)) {
    Value mean = n.reduce<ir::ReduceMeanOp>(norm->rows, {rankOf(norm->rows) - 1}, true);
    Value inverse = inverseDeviation(n, norm->rows, mean, epsilon);
    Ints shape(shapeOf(norm->rows).drop_back());
    shape.resize(norm->shape.size(), 1);
    results[1] = n.cast(n.reshape(mean, shape), n.builder().getF32Type());
    results[2] = n.cast(n.reshape(inverse, shape), n.builder().getF32Type());
  }
  return n.replace(results);
}

// A vector over the channels, dimension 1 of an input of this rank.
Value asChannels(NodeImporter& n, Value vector, int64_t rank) {
  if (!vector) {
    return {};
  }
  Ints shape(rank - 1, 1);
  shape[0] = tensorType(vector).getNumElements();
  return n.reshape(vector, shape);
}

// (x - mean) / √(var + ε) · scale + b with the statistics of training, which stay as they are.
LogicalResult importBatchNormalization(NodeImporter& n) {
  Value x = n.operand(0);
  if (!x || rankOf(x) < 2) {
    return x ? n.error() << "normalises " << x.getType() << ", expected rank 2 or more" : failure();
  }
  if (n.attrInt("training_mode", 0) != 0) {
    return n.error() << "runs in training mode; export the model in evaluation mode";
  }
  Value vectors[5];
  for (unsigned i = 1; i < 5; ++i) {
    Value vector = n.operand(i);
    if (!vector) {
      return failure();
    }
    if (rankOf(vector) != 1 || shapeOf(vector)[0] != shapeOf(x)[1]) {
      return n.error() << "operand " << i << " is " << vector.getType()
                       << ", expected a vector over the " << shapeOf(x)[1] << " channels";
    }
    vectors[i] = asChannels(n, vector, rankOf(x));
  }
  Value variance = vectors[4];
  Value deviation =
      n.create<ir::AddOp>(variance, n.scalarLike(variance, n.attrFloat("epsilon", 1e-5f)));
  Value factor = n.create<ir::MulOp>(vectors[1], n.createLike<ir::RsqrtOp>(deviation));
  Value scaled = n.create<ir::MulOp>(n.create<ir::SubOp>(x, vectors[3]), factor);
  return n.replace(n.create<ir::AddOp>(scaled, vectors[2]));
}

// A layer norm over all spatial dimensions, with a scale and a bias for each channel.
LogicalResult importInstanceNormalization(NodeImporter& n) {
  Value x = n.operand(0);
  if (!x || rankOf(x) < 3) {
    return x ? n.error() << "normalises " << x.getType() << ", expected rank 3 or more" : failure();
  }
  auto shape = shapeOf(x);
  int64_t size = 1;
  for (int64_t dim : shape.drop_front(2)) {
    size *= dim;
  }
  Value ones = n.splat(mlir::RankedTensorType::get({size}, elementOf(x)), 1);
  Value rows = n.create<ir::LayerNormOp>(n.reshape(x, {shape[0], shape[1], size}), ones,
                                         OptionalValue{}, n.attrFloat("epsilon", 1e-5f));
  Value scaled =
      n.create<ir::MulOp>(n.reshape(rows, shape), asChannels(n, n.operand(1), rankOf(x)));
  return n.replace(n.create<ir::AddOp>(scaled, asChannels(n, n.operand(2), rankOf(x))));
}

// x / ‖x‖ along an axis; a row of zeros stays.
LogicalResult importLpNormalization(NodeImporter& n) {
  Value x = n.operand(0);
  auto axis = x ? n.normalizeAxis(n.attrInt("axis", -1), rankOf(x)) : FailureOr<int64_t>(failure());
  if (failed(axis)) {
    return failure();
  }
  int64_t p = n.attrInt("p", 2);
  if (p != 1 && p != 2) {
    return n.error() << "knows the norms 1 and 2, not " << p;
  }
  Value powers = p == 1 ? n.createLike<ir::AbsOp>(x) : n.create<ir::MulOp>(x, x);
  Value norm = n.reduce<ir::ReduceSumOp>(powers, {*axis}, /*keepDims=*/true);
  Value isZero = n.create<ir::EqualOp>(norm, n.scalarLike(x, 0));
  norm = n.create<ir::SelectOp>(isZero, n.scalarLike(x, 1), norm);
  return n.replace(n.create<ir::DivOp>(x, p == 1 ? norm : n.createLike<ir::SqrtOp>(norm)));
}

LogicalResult importRmsNormalization(NodeImporter& n) {
  auto norm = readNorm(n);
  if (failed(norm)) {
    return failure();
  }
  Value result = n.create<ir::RmsNormOp>(norm->rows, norm->weight, n.attrFloat("epsilon", 1e-5f));
  return n.replace(norm->finish(n, result));
}

// com.microsoft: norm(x + skip + bias), and that sum. The Simplified one is an RMSNorm, without
// beta.
LogicalResult importSkipNorm(NodeImporter& n) {
  const bool isSimplified = n.opType() == "SkipSimplifiedLayerNormalization";
  const unsigned biasAt = isSimplified ? 3 : 4;
  if (n.hasResult(1) || n.hasResult(2)) {
    return n.error() << "gives mean or deviation, which Oriel does not import";
  }
  Value sum = n.create<ir::AddOp>(n.operand(0), n.operand(1));
  if (Value bias = n.optionalOperand(biasAt)) {
    sum = n.create<ir::AddOp>(sum, bias);
  }
  Value gamma = n.operand(2);
  if (!sum || !gamma) {
    return failure();
  }
  const double epsilon = n.attrFloat("epsilon", 1e-12f);
  Value normed = isSimplified ? n.create<ir::RmsNormOp>(sum, gamma, epsilon)
                              : n.create<ir::LayerNormOp>(
                                    sum, gamma, OptionalValue{n.optionalOperand(3)}, epsilon);
  return n.replace({normed, Value(), Value(), n.hasResult(3) ? sum : Value()});
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

LogicalResult importLogSoftmax(NodeImporter& n) {
  Value input = n.operand(0);
  auto dim = softmaxDim(n, input);
  return failed(dim) ? failure() : n.replace(logSoftmax(n, input, *dim));
}

// 1 at the first largest element along the axis, 0 elsewhere.
LogicalResult importHardmax(NodeImporter& n) {
  Value input = n.operand(0);
  auto dim = softmaxDim(n, input);
  if (failed(dim)) {
    return failure();
  }
  Value largest = n.create<ir::ArgmaxOp>(input, *dim, /*keepDims=*/true);
  Value position = iotaLike(n, largest, shapeOf(input), *dim);
  return n.replace(n.cast(n.create<ir::EqualOp>(position, largest), elementOf(input)));
}

}  // namespace

Value logSoftmax(ValueBuilder& n, Value input, int64_t dim) {
  Value shifted =
      n.create<ir::SubOp>(input, n.reduce<ir::ReduceMaxOp>(input, {dim}, /*keepDims=*/true));
  Value sum = n.reduce<ir::ReduceSumOp>(n.createLike<ir::ExpOp>(shifted), {dim}, true);
  return n.create<ir::SubOp>(shifted, n.createLike<ir::LogOp>(sum));
}

void registerNormalizationOps(OpRegistry& registry) {
  registry.add("LayerNormalization", 17, importLayerNormalization);
  registry.add("RMSNormalization", 23, importRmsNormalization);
  registry.add("BatchNormalization", 9, importBatchNormalization);
  registry.addConstantOperands("BatchNormalization", {3, 4});
  registry.add("InstanceNormalization", 6, importInstanceNormalization);
  registry.add("LpNormalization", 1, importLpNormalization);
  registry.add("Softmax", 13, importSoftmax);
  registry.add("Hardmax", 13, importHardmax);
  registry.add("LogSoftmax", 13, importLogSoftmax);
  // ONNX Runtime's name for it, which its optimizer writes in either domain.
  registry.add("SimplifiedLayerNormalization", 1, importRmsNormalization, "com.microsoft");
  registry.add("SimplifiedLayerNormalization", 1, importRmsNormalization);
  registry.add("SkipLayerNormalization", 1, importSkipNorm, "com.microsoft");
  registry.add("SkipSimplifiedLayerNormalization", 1, importSkipNorm, "com.microsoft");
}

}  // namespace oriel
