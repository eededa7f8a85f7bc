// Matrix products.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "ir/oriel/segment.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

using Sizes = llvm::ArrayRef<int64_t>;

Value linear(NodeImporter& n, Value input, Value weight, Value bias, bool transposeWeight) {
  return n.create<ir::LinearOp>(input, weight, OptionalValue{bias}, transposeWeight);
}

// Whether the value is known before any data is: constants and parameters, perhaps transposed.
bool isWeight(Value value) {
  while (auto transpose = value.getDefiningOp<ir::TransposeOp>()) {
    value = transpose.getInput();
  }
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
    return ir::isParameter(argument);
  }
  return value.getDefiningOp<ir::ConstantOp>() != nullptr;
}

// The common shape of two lists of batch dimensions; fails where they don't broadcast.
FailureOr<Ints> broadcastBatch(Sizes lhs, Sizes rhs) {
  Ints shape(std::max(lhs.size(), rhs.size()), 1);
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t a = i < lhs.size() ? lhs[lhs.size() - 1 - i] : 1;
    int64_t b = i < rhs.size() ? rhs[rhs.size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1) {
      return failure();
    }
    shape[shape.size() - 1 - i] = a == 1 ? b : a;
  }
  return shape;
}

// [.., r, c] with these dimensions before the last two.
Value withBatch(NodeImporter& n, Value value, Sizes batch) {
  Ints shape(batch);
  llvm::append_range(shape, shapeOf(value).take_back(2));
  return n.broadcast(value, shape);
}

// Both of rank 2 or more.
Value matrixProduct(NodeImporter& n, Value lhs, Value rhs) {
  bool innerIsOne = shapeOf(lhs).back() == 1 && shapeOf(rhs)[rankOf(rhs) - 2] == 1;
  bool isConstant = constantScalarOf(lhs) || lhs.getDefiningOp<ir::ConstantOp>();
  if (innerIsOne && isConstant && rhs.getDefiningOp<ir::ConstantOp>()) {
    return n.create<ir::MulOp>(lhs, rhs);  // an outer product, which folds (rotary angles)
  }
  if (rankOf(rhs) == 2 && (rankOf(lhs) > 2 || isWeight(rhs))) {
    return linear(n, lhs, rhs, {}, /*transposeWeight=*/false);
  }
  auto batch = broadcastBatch(shapeOf(lhs).drop_back(2), shapeOf(rhs).drop_back(2));
  if (failed(batch)) {
    n.error() << "the batch dimensions of " << lhs.getType() << " and " << rhs.getType()
              << " don't broadcast";
    return {};
  }
  return n.create<ir::MatmulOp>(withBatch(n, lhs, *batch), withBatch(n, rhs, *batch), false, false);
}

Value scaled(NodeImporter& n, Value value, double factor) {
  return factor == 1.0 ? value : n.create<ir::MulOp>(value, n.scalarLike(value, factor));
}

// As numpy.matmul: a vector counts as a row on the left, as a column on the right.
Value numpyProduct(NodeImporter& n, Value lhs, Value rhs) {
  if (rankOf(lhs) < 1 || rankOf(rhs) < 1) {
    n.error() << "multiplies a scalar";
    return {};
  }
  bool isRow = rankOf(lhs) == 1, isColumn = rankOf(rhs) == 1;
  if (isRow) {
    lhs = n.reshape(lhs, {1, shapeOf(lhs)[0]});
  }
  if (isColumn) {
    rhs = n.reshape(rhs, {shapeOf(rhs)[0], 1});
  }
  Value product = matrixProduct(n, lhs, rhs);
  if (product && (isRow || isColumn)) {
    Ints shape(shapeOf(product));
    if (isColumn) {
      shape.pop_back();
    }
    if (isRow) {
      shape.erase(shape.end() - (isColumn ? 1 : 2));
    }
    product = n.reshape(product, shape);
  }
  return product;
}

LogicalResult importMatMul(NodeImporter& n) {
  Value lhs = n.operand(0), rhs = n.operand(1);
  return lhs && rhs ? n.replace(numpyProduct(n, lhs, rhs)) : failure();
}

// com.microsoft: alpha op(A) op(B)
LogicalResult importFusedMatMul(NodeImporter& n) {
  Value lhs = n.operand(0), rhs = n.operand(1);
  if (!lhs || !rhs) {
    return failure();
  }
  if (n.attrInt("transBatchA", 0) != 0 || n.attrInt("transBatchB", 0) != 0) {
    return n.error() << "transposes batches, which Oriel does not import";
  }
  auto transposed = [&](Value x, const char* name) {
    return n.attrInt(name, 0) != 0 && rankOf(x) >= 2 ? n.swapLastTwo(x) : x;
  };
  Value product = numpyProduct(n, transposed(lhs, "transA"), transposed(rhs, "transB"));
  return n.replace(scaled(n, product, n.attrFloat("alpha", 1)));
}

// alpha op(A) op(B) + beta C
LogicalResult importGemm(NodeImporter& n) {
  Value a = n.operand(0), b = n.operand(1), c = n.optionalOperand(2);
  if (!a || !b) {
    return failure();
  }
  if (rankOf(a) != 2 || rankOf(b) != 2) {
    return n.error() << "multiplies " << a.getType() << " by " << b.getType()
                     << ", expected matrices";
  }
  double alpha = n.attrFloat("alpha", 1), beta = n.attrFloat("beta", 1);
  bool transposeB = n.attrInt("transB", 0) != 0;
  if (n.attrInt("transA", 0) != 0) {
    a = n.swapLastTwo(a);
  }
  int64_t columns = shapeOf(b)[transposeB ? 0 : 1];
  if (c && alpha == 1.0 && beta == 1.0 && shapeOf(c) == Sizes(columns)) {
    return n.replace(linear(n, a, b, c, transposeB));
  }
  Value product = scaled(n, linear(n, a, b, {}, transposeB), alpha);
  return n.replace(c ? n.create<ir::AddOp>(product, scaled(n, c, beta)) : product);
}

}  // namespace

void registerLinearOps(OpRegistry& registry) {
  registry.add("MatMul", 13, importMatMul);
  registry.add("Gemm", 13, importGemm);
  registry.add("FusedMatMul", 1, importFusedMatMul, "com.microsoft");
}

}  // namespace oriel
