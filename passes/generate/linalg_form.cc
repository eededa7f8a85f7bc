#include "passes/generate/linalg_form.h"

#include "ir/scalar/scalar.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace oriel {

namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::Location;
using mlir::OpBuilder;
using mlir::RankedTensorType;
using mlir::Type;
using mlir::Value;
namespace arith = mlir::arith;

// Loops over the results' shape, and which of them each operand goes along with.
struct Loops {
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<llvm::SmallVector<bool>> varies;  // by loop, by operand
};

Loops loopsOf(exec::KernelOp kernel) {
  mlir::Block& block = kernel.getBody().front();
  auto result = llvm::cast<RankedTensorType>(block.getTerminator()->getOperand(0).getType());
  Loops loops;
  for (auto [dim, size] : llvm::enumerate(result.getShape())) {
    if (size == 1) continue;
    llvm::SmallVector<bool> varies;
    for (Type type : block.getArgumentTypes()) {
      auto operand = llvm::cast<RankedTensorType>(type);
      const int64_t own = static_cast<int64_t>(dim) - (result.getRank() - operand.getRank());
      varies.push_back(own >= 0 && operand.getDimSize(own) == size);
    }
    if (!loops.sizes.empty() && loops.varies.back() == varies) {
      loops.sizes.back() *= size;
    } else {
      loops.sizes.push_back(size);
      loops.varies.push_back(std::move(varies));
    }
  }
  if (loops.sizes.empty()) {
    loops.sizes.push_back(1);
    loops.varies.emplace_back(block.getNumArguments(), true);
  }
  return loops;
}

Type storedType(Type element) {
  if (element.isBF16()) return mlir::IntegerType::get(element.getContext(), 16);
  if (element.isInteger(1)) return mlir::IntegerType::get(element.getContext(), 8);
  return element;
}

Type elementOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType()).getElementType();
}

// Elements as they are stored, and as they are computed with.
class Elements {
 public:
  Elements(OpBuilder& builder, Location loc) : builder_(builder), loc_(loc) {}

  Value load(Value stored, Type element) {
    if (element.isBF16()) return widen(stored);
    if (!element.isInteger(1)) return stored;
    return arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::ne, stored,
                                 constant(stored.getType(), 0));
  }
  Value store(Value computed, Type element) {
    if (element.isBF16()) return narrow(computed);
    if (!element.isInteger(1)) return computed;
    return arith::ExtUIOp::create(builder_, loc_, builder_.getI8Type(), computed);
  }
  // What another op finds in the value.
  Value rounded(Value computed, Type element) {
    return element.isBF16() ? widen(narrow(computed)) : computed;
  }

 private:
  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(builder_, loc_, builder_.getIntegerAttr(type, value));
  }
  Value widen(Value half) {
    Type i32 = builder_.getI32Type();
    Value bits = arith::ExtUIOp::create(builder_, loc_, i32, half);
    Value high = arith::ShLIOp::create(builder_, loc_, bits, constant(i32, 16));
    return arith::BitcastOp::create(builder_, loc_, builder_.getF32Type(), high);
  }
  // As FloatToBFloat16 (runtime/base/float16.h), NaN too, on every target.
  Value narrow(Value value) {
    Type i32 = builder_.getI32Type();
    Value bits = arith::BitcastOp::create(builder_, loc_, i32, value);
    Value high = arith::ShRUIOp::create(builder_, loc_, bits, constant(i32, 16));
    Value odd = arith::AndIOp::create(builder_, loc_, high, constant(i32, 1));
    Value up = arith::AddIOp::create(builder_, loc_, bits, constant(i32, 0x7fff));
    Value sum = arith::AddIOp::create(builder_, loc_, up, odd);
    Value number = arith::ShRUIOp::create(builder_, loc_, sum, constant(i32, 16));
    Value quiet = arith::OrIOp::create(builder_, loc_, high, constant(i32, 0x40));
    Value isNan = arith::CmpFOp::create(builder_, loc_, arith::CmpFPredicate::UNE, value, value);
    Value chosen = arith::SelectOp::create(builder_, loc_, isNan, quiet, number);
    return arith::TruncIOp::create(builder_, loc_, builder_.getI16Type(), chosen);
  }

  OpBuilder& builder_;
  const Location loc_;
};

// The body of the linalg.generic: `stored` are elements of the operands.
mlir::LogicalResult buildBody(exec::KernelOp kernel, OpBuilder& builder, Location loc,
                              mlir::ValueRange stored) {
  mlir::Block& block = kernel.getBody().front();
  Elements elements(builder, loc);
  mlir::IRMapping computed;
  for (auto [argument, element] : llvm::zip(block.getArguments(), stored)) {
    computed.map(argument, elements.load(element, elementOf(argument)));
  }
  for (mlir::Operation& op : block.without_terminator()) {
    auto scalar = llvm::dyn_cast<ir::ScalarOpInterface>(op);
    if (!scalar) return op.emitOpError("does not say how it computes an element");
    llvm::SmallVector<Value> operands, results;
    for (Value operand : op.getOperands()) operands.push_back(computed.lookup(operand));
    if (failed(scalar.buildScalar(builder, loc, operands, results))) {
      return op.emitOpError("has no generated code");
    }
    for (auto [result, value] : llvm::zip_equal(op.getResults(), results)) {
      computed.map(result, elements.rounded(value, elementOf(result)));
    }
  }
  llvm::SmallVector<Value> yielded;
  for (Value result : block.getTerminator()->getOperands()) {
    yielded.push_back(elements.store(computed.lookup(result), elementOf(result)));
  }
  mlir::linalg::YieldOp::create(builder, loc, yielded);
  return mlir::success();
}

}  // namespace

llvm::SmallVector<int64_t> loopSizes(exec::KernelOp kernel) { return loopsOf(kernel).sizes; }

FailureOr<mlir::func::FuncOp> buildLinalgForm(exec::KernelOp kernel, llvm::StringRef name,
                                              mlir::ModuleOp module) {
  mlir::MLIRContext* context = kernel.getContext();
  const Location loc = mlir::UnknownLoc::get(context);
  mlir::Block& block = kernel.getBody().front();
  const Loops loops = loopsOf(kernel);
  const auto rank = static_cast<unsigned>(loops.sizes.size());

  llvm::SmallVector<Type> types;
  llvm::SmallVector<mlir::AffineMap> maps;
  for (auto [index, argument] : llvm::enumerate(block.getArguments())) {
    llvm::SmallVector<int64_t> shape;
    llvm::SmallVector<mlir::AffineExpr> dims;
    for (unsigned loop = 0; loop < rank; ++loop) {
      if (!loops.varies[loop][index]) continue;
      shape.push_back(loops.sizes[loop]);
      dims.push_back(mlir::getAffineDimExpr(loop, context));
    }
    types.push_back(mlir::MemRefType::get(shape, storedType(elementOf(argument))));
    maps.push_back(mlir::AffineMap::get(rank, 0, dims, context));
  }
  const size_t inputs = types.size();
  for (Value result : block.getTerminator()->getOperands()) {
    types.push_back(mlir::MemRefType::get(loops.sizes, storedType(elementOf(result))));
    maps.push_back(mlir::AffineMap::getMultiDimIdentityMap(rank, context));
  }

  auto builder = OpBuilder::atBlockEnd(module.getBody());
  auto function =
      mlir::func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  mlir::Block* entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  mlir::ValueRange arguments = entry->getArguments();
  llvm::SmallVector<mlir::utils::IteratorType> iterators(rank, mlir::utils::IteratorType::parallel);
  mlir::LogicalResult built = mlir::success();
  mlir::linalg::GenericOp::create(
      builder, loc, mlir::TypeRange{}, arguments.take_front(inputs), arguments.drop_front(inputs),
      maps, iterators, [&](OpBuilder& body, Location at, mlir::ValueRange elements) {
        built = buildBody(kernel, body, at, elements.take_front(inputs));
      });
  if (failed(built)) return failure();
  mlir::func::ReturnOp::create(builder, loc);
  return function;
}

}  // namespace oriel
