#include "ir/interfaces/interfaces.h"

#include <limits>

#include "ir/interfaces/view.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/BuiltinTypes.h"

namespace oriel::ir {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t boundedSum(int64_t a, int64_t b) { return a > kMax - b ? kMax : a + b; }

}  // namespace

int64_t boundedProduct(llvm::ArrayRef<int64_t> factors) {
  // A zero anywhere makes the product zero, however large the others are.
  if (llvm::is_contained(factors, 0)) return 0;
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (llvm::MulOverflow(product, factor, product)) return kMax;
  }
  return product;
}

int64_t elementCount(llvm::ArrayRef<int64_t> shape) {
  for (int64_t size : shape) {
    if (size < 0) return 0;
  }
  return boundedProduct(shape);
}

int64_t typeBytes(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isIntOrFloat()) return 0;
  int64_t bytes = (tensor.getElementTypeBitWidth() + 7) / 8;
  return boundedProduct({elementCount(tensor.getShape()), bytes});
}

int64_t typesBytes(mlir::TypeRange types) {
  int64_t bytes = 0;
  for (mlir::Type type : types) bytes = boundedSum(bytes, typeBytes(type));
  return bytes;
}

bool isView(mlir::Operation* op) {
  auto kernel = llvm::dyn_cast<KernelOpInterface>(op);
  return kernel && kernel.isView();
}

int64_t defaultFlops(mlir::Operation* op) {
  if (isView(op)) return 0;
  int64_t flops = 0;
  for (mlir::Type type : op->getResultTypes()) {
    if (auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type)) {
      flops = boundedSum(flops, elementCount(tensor.getShape()));
    }
  }
  return flops;
}

llvm::StringRef shortName(mlir::OperationName name) {
  return name.getDialectNamespace() == "oriel" ? name.stripDialect() : name.getStringRef();
}

llvm::StringRef defaultKernelName(mlir::Operation* op) { return shortName(op->getName()); }

Precision defaultPrecision(mlir::Operation* op) {
  if (isView(op)) return Precision::kMove;
  return op->hasTrait<Pointwise>() ? Precision::kFollow : Precision::kWide;
}

mlir::LogicalResult checkShardingRules(mlir::Operation* root) {
  const mlir::WalkResult walked = root->walk([](ShardableOpInterface op) {
    std::optional<std::string> why =
        misfitOf(op.getShardingRule(), op->getOperandTypes(), op->getResultTypes());
    if (!why) return mlir::WalkResult::advance();
    op->emitOpError("has a sharding rule that ") << *why;
    return mlir::WalkResult::interrupt();
  });
  return mlir::failure(walked.wasInterrupted());
}

ShardingRule wholeRule(mlir::Operation* op) {
  ShardingRule rule;
  for (mlir::Type type : op->getOperandTypes()) {
    rule.operands.emplace_back(llvm::cast<mlir::RankedTensorType>(type).getRank());
  }
  for (mlir::Type type : op->getResultTypes()) {
    rule.results.emplace_back(llvm::cast<mlir::RankedTensorType>(type).getRank());
  }
  return rule;
}

ShardingRule pointwiseRule(mlir::Operation* op, llvm::ArrayRef<int64_t> whole) {
  ShardingRule rule = wholeRule(op);
  llvm::ArrayRef<int64_t> shape =
      llvm::cast<mlir::RankedTensorType>(op->getResultTypes().front()).getShape();
  llvm::SmallVector<FactorList> factors(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (llvm::is_contained(whole, static_cast<int64_t>(i))) continue;
    factors[i].push_back(static_cast<int>(rule.factors.size()));
    rule.factors.push_back({shape[i], FactorKind::kParallel});
  }
  auto align = [&](TensorFactors& dims, mlir::Type type) {
    llvm::ArrayRef<int64_t> own = llvm::cast<mlir::RankedTensorType>(type).getShape();
    size_t offset = shape.size() - own.size();
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i] == shape[offset + i]) dims[i] = factors[offset + i];
    }
  };
  for (auto [dims, type] : llvm::zip_equal(rule.operands, op->getOperandTypes())) align(dims, type);
  for (auto [dims, type] : llvm::zip_equal(rule.results, op->getResultTypes())) align(dims, type);
  return rule;
}

ShardingRule defaultShardingRule(mlir::Operation* op) {
  return op->hasTrait<Pointwise>() ? pointwiseRule(op) : wholeRule(op);
}

mlir::Operation* cloneLocal(mlir::Operation* op, mlir::OpBuilder& builder,
                            mlir::ValueRange operands, const ShardingRule& rule,
                            const LocalPieces& pieces) {
  mlir::OperationState state(op->getLoc(), op->getName(), operands, {}, op->getAttrs());
  for (auto [type, factors] : llvm::zip_equal(op->getResultTypes(), rule.results)) {
    auto tensor = llvm::cast<mlir::RankedTensorType>(type);
    state.addTypes(tensor.clone(localShape(tensor.getShape(), factors, pieces.counts())));
  }
  return builder.create(state);
}

mlir::Operation* cloneLocalAt(mlir::Operation* op, mlir::OpBuilder& builder,
                              mlir::ValueRange operands, const ShardingRule& rule,
                              const LocalPieces& pieces, const FactorList& dim,
                              llvm::StringRef whole) {
  if (dim.empty() || pieces[dim.front()] == 1) {
    return cloneLocal(op, builder, operands, rule, pieces);
  }
  llvm::SmallVector<mlir::Value> withFirst(operands);
  withFirst.push_back(pieces.first(builder, op->getLoc(), dim.front()));
  mlir::Operation* local = cloneLocal(op, builder, withFirst, rule, pieces);
  local->setAttr(whole, builder.getI64IntegerAttr(rule.factors[dim.front()].size));
  return local;
}

}  // namespace oriel::ir

#include "ir/interfaces/collective.cc.inc"
#include "ir/interfaces/cost.cc.inc"
#include "ir/interfaces/differentiable.cc.inc"
#include "ir/interfaces/kernel.cc.inc"
#include "ir/interfaces/precision.cc.inc"
#include "ir/interfaces/sharding.cc.inc"
