#include "ir/oriel/inference.h"
#include "ir/oriel/matmul_dims.h"
#include "ir/oriel/oriel.h"
#include "llvm/Support/CheckedArithmetic.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

namespace {

// Rows and columns of the matrices in the last two dimensions, as multiplied.
struct MatrixSizes {
  int64_t rows;
  int64_t columns;
};
MatrixSizes matrixSizes(Value value, bool transposed) {
  llvm::ArrayRef<int64_t> sizes = shapeOf(value).take_back(2);
  if (transposed) return {sizes[1], sizes[0]};
  return {sizes[0], sizes[1]};
}

// Two operations per multiply-add: each of `count` elements is a sum of `depth` products.
int64_t contractionFlops(int64_t count, int64_t depth) { return boundedProduct({2, count, depth}); }

}  // namespace

LogicalResult MatmulOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                         Adaptor adaptor,
                                         llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  auto product = MatmulDims::of(adaptor);
  if (!product) {
    return context.refuse(
        "expects operands with the same leading dimensions before ", adaptor.getRowDims(), " + ",
        adaptor.getSumDims(), " and ", adaptor.getSumDims(), " + ", adaptor.getColumnDims(),
        " others (row_dims + sum_dims, sum_dims + column_dims; each at least 1), got ",
        shapeText(shapeOf(adaptor.getLhs())), " and ", shapeText(shapeOf(adaptor.getRhs())));
  }
  if (product->sum != product->sumOfRhs) {
    return context.refuse("sums over ", shapeText(product->sum), " of lhs and ",
                          shapeText(product->sumOfRhs), " of rhs; the shapes are ",
                          shapeText(shapeOf(adaptor.getLhs())), " and ",
                          shapeText(shapeOf(adaptor.getRhs())));
  }
  llvm::SmallVector<int64_t> shape(product->batch);
  llvm::append_range(shape, product->rows);
  llvm::append_range(shape, product->columns);
  return context.addResult(shape, elementOf(adaptor.getLhs()), results);
}

int64_t MatmulOp::getFlops() {
  return contractionFlops(elementCount(getType().getShape()),
                          elementCount(MatmulDims::of(*this)->sum));
}

LogicalResult LinearOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                         Adaptor adaptor,
                                         llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  if (failed(context.expectRank("a weight", adaptor.getWeight(), 2))) return failure();
  MatrixSizes weight = matrixSizes(adaptor.getWeight(), adaptor.getTransposeWeight());
  if (input.empty() || input.back() != weight.rows) {
    return context.refuse("expects an input with a last dimension of ", weight.rows, ", got ",
                          shapeText(input));
  }
  if (adaptor.getBias() &&
      failed(context.expectShape("a bias", adaptor.getBias(), {weight.columns}))) {
    return failure();
  }
  llvm::SmallVector<int64_t> shape(input);
  shape.back() = weight.columns;
  return context.addResult(shape, elementOf(adaptor.getInput()), results);
}

int64_t LinearOp::getFlops() {
  return contractionFlops(elementCount(getType().getShape()), shapeOf(getInput()).back());
}

LogicalResult LinearWeightGradOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                   Adaptor adaptor,
                                                   llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  llvm::ArrayRef<int64_t> cotangent = shapeOf(adaptor.getCotangent());
  if (input.empty() || cotangent.empty() || input.drop_back() != cotangent.drop_back()) {
    return context.refuse(
        "expects an input and a cotangent that differ in their last dimension only, got ",
        shapeText(input), " and ", shapeText(cotangent));
  }
  llvm::SmallVector<int64_t> shape = {input.back(), cotangent.back()};
  if (adaptor.getTransposeWeight()) std::swap(shape[0], shape[1]);
  return context.addResult(shape, elementOf(adaptor.getInput()), results);
}

bool LinearWeightGradOp::isCompatibleReturnTypes(mlir::TypeRange inferred, mlir::TypeRange actual) {
  return areTypesOrWide(inferred, actual);
}

int64_t LinearWeightGradOp::getFlops() {
  return contractionFlops(elementCount(shapeOf(getCotangent())), shapeOf(getInput()).back());
}

LogicalResult TriangularSolveOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                  Adaptor adaptor,
                                                  llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> matrix = shapeOf(adaptor.getMatrix()), rhs = shapeOf(adaptor.getRhs());
  const bool isSquare = matrix.size() >= 2 && matrix.back() == matrix[matrix.size() - 2];
  if (!isSquare || rhs.size() != matrix.size() || rhs.drop_back() != matrix.drop_back()) {
    return context.refuse(
        "expects square matrices, and right-hand sides with as many rows and the same leading "
        "dimensions, got ",
        shapeText(matrix), " and ", shapeText(rhs));
  }
  return context.addResult(rhs, elementOf(adaptor.getRhs()), results);
}

// Half of a product with the whole matrix.
int64_t TriangularSolveOp::getFlops() {
  return contractionFlops(elementCount(getType().getShape()), shapeOf(getMatrix()).back()) / 2;
}

namespace {

struct ConvAttributes {
  llvm::ArrayRef<int64_t> strides;
  llvm::ArrayRef<int64_t> pads;
  llvm::ArrayRef<int64_t> dilations;
  int64_t group;
};
template <typename OpOrAdaptor>
ConvAttributes convAttributes(OpOrAdaptor op) {
  return {op.getStrides(), op.getPads(), op.getDilations(), op.getGroup()};
}

bool allWithin(llvm::ArrayRef<int64_t> values, int64_t low) {
  return llvm::all_of(values, [&](int64_t v) { return v >= low && v <= kMaxElements; });
}

LogicalResult checkConvAttributes(const InferenceContext& context, const ConvAttributes& conv,
                                  size_t spatialRank) {
  if (conv.strides.size() != spatialRank || !allWithin(conv.strides, 1)) {
    return context.refuse("expects ", spatialRank, " strides of at least 1, got ",
                          shapeText(conv.strides));
  }
  if (conv.dilations.size() != spatialRank || !allWithin(conv.dilations, 1)) {
    return context.refuse("expects ", spatialRank, " dilations of at least 1, got ",
                          shapeText(conv.dilations));
  }
  if (conv.pads.size() != 2 * spatialRank || !allWithin(conv.pads, 0)) {
    return context.refuse("expects ", 2 * spatialRank, " pads of at least 0, got ",
                          shapeText(conv.pads));
  }
  return success();
}

// Positions of the kernel along one spatial dimension; none if the kernel is larger than the
// padded input or a count does not fit.
std::optional<int64_t> convPositions(int64_t size, int64_t kernel, int64_t low, int64_t high,
                                     int64_t stride, int64_t dilation) {
  if (kernel < 1) return std::nullopt;
  std::optional<int64_t> reach = llvm::checkedMul(kernel - 1, dilation);
  std::optional<int64_t> padded = llvm::checkedAdd(size, low + high);
  if (!reach || !padded || *reach >= *padded) return std::nullopt;
  return (*padded - *reach - 1) / stride + 1;
}

// The result's shape; fails with a diagnostic.
mlir::FailureOr<llvm::SmallVector<int64_t>> convShape(const InferenceContext& context,
                                                      llvm::ArrayRef<int64_t> input,
                                                      llvm::ArrayRef<int64_t> weight,
                                                      const ConvAttributes& conv) {
  if (input.size() < 3 || weight.size() != input.size()) {
    return context.refuse("expects an input and a weight of one rank of at least 3, got ",
                          shapeText(input), " and ", shapeText(weight));
  }
  size_t spatialRank = input.size() - 2;
  if (failed(checkConvAttributes(context, conv, spatialRank))) return failure();
  std::optional<int64_t> channels = llvm::checkedMul(weight[1], conv.group);
  if (conv.group < 1 || channels != input[1] || weight[0] % conv.group != 0) {
    return context.refuse("expects a weight of ", conv.group,
                          " equal groups that cover the input's channels, got the input ",
                          shapeText(input), " and the weight ", shapeText(weight));
  }
  llvm::SmallVector<int64_t> shape = {input[0], weight[0]};
  for (size_t i = 0; i < spatialRank; ++i) {
    std::optional<int64_t> positions =
        convPositions(input[i + 2], weight[i + 2], conv.pads[i], conv.pads[i + spatialRank],
                      conv.strides[i], conv.dilations[i]);
    if (!positions) {
      return context.refuse("has no position for the kernel in spatial dimension ", i,
                            "; the shapes are ", shapeText(input), " and ", shapeText(weight));
    }
    shape.push_back(*positions);
  }
  return shape;
}

int64_t convFlops(llvm::ArrayRef<int64_t> result, llvm::ArrayRef<int64_t> weight) {
  return contractionFlops(elementCount(result), elementCount(weight.drop_front()));
}

// A derivative of the convolution of `input` with `weight`, whose result has the cotangent's
// type.
template <typename OpTy>
LogicalResult verifyConvGrad(OpTy op, Value input, Value weight, Value cotangent) {
  InferenceContext context(op.getLoc(), OpTy::getOperationName());
  auto shape = convShape(context, shapeOf(input), shapeOf(weight), convAttributes(op));
  if (failed(shape) || failed(context.expectShape("a cotangent", cotangent, *shape))) {
    return failure();
  }
  return success();
}

}  // namespace

LogicalResult ConvOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location, Adaptor adaptor,
                                       llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  auto shape = convShape(context, shapeOf(adaptor.getInput()), shapeOf(adaptor.getWeight()),
                         convAttributes(adaptor));
  if (failed(shape)) return failure();
  mlir::Type elementType = elementOf(adaptor.getInput());
  if (failed(context.expectElementType("a weight", adaptor.getWeight(), elementType))) {
    return failure();
  }
  if (adaptor.getBias() &&
      (failed(context.expectShape("a bias", adaptor.getBias(), {(*shape)[1]})) ||
       failed(context.expectElementType("a bias", adaptor.getBias(), elementType)))) {
    return failure();
  }
  return context.addResult(*shape, elementType, results);
}

int64_t ConvOp::getFlops() { return convFlops(getType().getShape(), shapeOf(getWeight())); }

LogicalResult ConvInputGradOp::verify() {
  if (failed(verifyConvGrad(*this, getResult(), getWeight(), getCotangent()))) return failure();
  InferenceContext context(getLoc(), getOperationName());
  mlir::Type elementType = elementOf(getCotangent());
  if (failed(context.expectElementType("an input", getResult(), elementType))) return failure();
  return context.expectElementType("a weight", getWeight(), elementType);
}

int64_t ConvInputGradOp::getFlops() {
  return convFlops(shapeOf(getCotangent()), shapeOf(getWeight()));
}

LogicalResult ConvWeightGradOp::verify() {
  if (failed(verifyConvGrad(*this, getInput(), getResult(), getCotangent()))) return failure();
  InferenceContext context(getLoc(), getOperationName());
  mlir::Type elementType = elementOf(getCotangent());
  if (failed(context.expectElementType("an input", getInput(), elementType))) return failure();
  if (getType().getElementType() == wideType(elementType)) return success();
  return context.expectElementType("a weight", getResult(), elementType);
}

int64_t ConvWeightGradOp::getFlops() {
  return convFlops(shapeOf(getCotangent()), getType().getShape());
}

}  // namespace oriel::ir
