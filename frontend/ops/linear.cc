// Matrix products and convolution.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

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
    auto function = llvm::cast<mlir::func::FuncOp>(argument.getOwner()->getParentOp());
    auto kind = function.getArgAttrOfType<mlir::StringAttr>(argument.getArgNumber(), "oriel.kind");
    return kind && kind.getValue() == "parameter";
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

// As numpy.matmul: a vector counts as a row on the left, as a column on the right.
LogicalResult importMatMul(NodeImporter& n) {
  Value lhs = n.operand(0), rhs = n.operand(1);
  if (!lhs || !rhs) {
    return failure();
  }
  if (rankOf(lhs) < 1 || rankOf(rhs) < 1) {
    return n.error() << "multiplies a scalar";
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
  return n.replace(product);
}

Value scaled(NodeImporter& n, Value value, double factor) {
  return factor == 1.0 ? value : n.create<ir::MulOp>(value, n.scalarLike(value, factor));
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

// Padding that keeps the size divided by the stride (rounded up), the odd element at the end
// (SAME_UPPER) or at the start (SAME_LOWER).
Ints samePads(Sizes input, Sizes kernel, Sizes strides, Sizes dilations, bool upper) {
  Ints lows, highs;
  for (size_t i = 0; i < kernel.size(); ++i) {
    int64_t outputs = (input[i] + strides[i] - 1) / strides[i];
    int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    int64_t total = std::max<int64_t>(0, (outputs - 1) * strides[i] + reach - input[i]);
    lows.push_back(upper ? total / 2 : total - total / 2);
    highs.push_back(total - lows.back());
  }
  llvm::append_range(lows, highs);
  return lows;
}

LogicalResult importConv(NodeImporter& n) {
  Value input = n.operand(0), weight = n.operand(1), bias = n.optionalOperand(2);
  if (!input || !weight) {
    return failure();
  }
  if (rankOf(input) < 3 || rankOf(weight) != rankOf(input)) {
    return n.error() << "convolves " << input.getType() << " with " << weight.getType();
  }
  Sizes spatial = shapeOf(input).drop_front(2), kernel = shapeOf(weight).drop_front(2);
  if (auto given = n.attrInts("kernel_shape"); given && Sizes(*given) != kernel) {
    return n.error() << "kernel_shape differs from the weight's shape " << weight.getType();
  }
  Ints strides = n.attrInts("strides").value_or(Ints(spatial.size(), 1));
  Ints dilations = n.attrInts("dilations").value_or(Ints(spatial.size(), 1));
  Ints pads = n.attrInts("pads").value_or(Ints(2 * spatial.size(), 0));
  auto positive = [&](const Ints& sizes) {
    return sizes.size() == spatial.size() &&
           llvm::all_of(sizes, [](int64_t s) { return s > 0 && s < (int64_t{1} << 31); });
  };
  if (!positive(strides) || !positive(dilations)) {
    return n.error() << "needs one positive stride and dilation per spatial dimension";
  }
  std::string autoPad = n.attrString("auto_pad", "NOTSET");
  if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
    pads = samePads(spatial, kernel, strides, dilations, autoPad == "SAME_UPPER");
  } else if (autoPad == "VALID") {
    pads.assign(2 * spatial.size(), 0);
  } else if (autoPad != "NOTSET") {
    return n.error() << "does not know auto_pad \"" << autoPad << "\"";
  }
  return n.replace(n.create<ir::ConvOp>(input, weight, OptionalValue{bias}, Sizes(strides),
                                        Sizes(pads), Sizes(dilations), n.attrInt("group", 1)));
}

}  // namespace

void registerLinearOps(OpRegistry& registry) {
  registry.add("MatMul", 13, importMatMul);
  registry.add("Gemm", 13, importGemm);
  registry.add("Conv", 11, importConv);
}

}  // namespace oriel
