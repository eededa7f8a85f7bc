#include "passes/generate/linalg_form.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/scalar/scalar.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "passes/generate/code.h"
#include "passes/generate/elements.h"
#include "passes/generate/loops.h"
#include "passes/generate/lower_elements.h"
#include "passes/generate/row_space.h"

namespace oriel {

namespace {

using ir::RowReductionOpInterface;
using mlir::failure;
using mlir::FailureOr;
using mlir::Location;
using mlir::LogicalResult;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Type;
using mlir::Value;
using mlir::utils::IteratorType;

// The shape that the kernel loops over, and how many of its dimensions count rows: all, if none is
// reduced.
RowSpace spaceOf(exec::KernelOp kernel) {
  if (std::optional<RowSpace> space = rowSpaceOf(opsOf(kernel))) return *space;
  llvm::ArrayRef<int64_t> full =
      ir::shapeOf(kernel.getBody().front().getTerminator()->getOperand(0));
  return {llvm::SmallVector<int64_t>(full), static_cast<int64_t>(full.size())};
}

// What values are computed of, in a loop that has all that it reads: elements of the kernel's
// operands, and of what earlier loops have reduced.
struct Slice {
  llvm::SetVector<Operation*> ops;  // but reductions
  llvm::SetVector<Value> leaves;

  void add(Value value) {
    Operation* op = value.getDefiningOp();
    if (!op || llvm::isa<RowReductionOpInterface>(op)) {
      leaves.insert(value);
    } else if (ops.insert(op)) {
      for (Value operand : op->getOperands()) add(operand);
    }
  }
};

class Form {
 public:
  explicit Form(exec::KernelOp kernel)
      : context_(kernel.getContext()),
        block_(kernel.getBody().front()),
        space_(spaceOf(kernel)),
        loc_(mlir::UnknownLoc::get(context_)),
        builder_(context_) {
    const auto rank = static_cast<size_t>(space_.rank);
    rows_ = loopsOf(kernel, space_.full, 0, rank);
    all_ = rows_;
    if (rank == space_.full.size()) return;
    const Loops columns = loopsOf(kernel, space_.full, rank, space_.full.size());
    all_.sizes.append(columns.sizes);
    all_.varies.insert(all_.varies.end(), columns.varies.begin(), columns.varies.end());
  }

  FailureOr<mlir::func::FuncOp> build(llvm::StringRef name, mlir::ModuleOp module) {
    mlir::ValueRange results = block_.getTerminator()->getOperands();
    llvm::SmallVector<Type> types;
    for (mlir::BlockArgument argument : block_.getArguments()) {
      types.push_back(memoryOf(shapeOfLoops(mapOf(argument, all_)), ir::elementOf(argument)));
    }
    for (Value result : results) {
      types.push_back(memoryOf(loopsOfResult(result).sizes, ir::elementOf(result)));
    }
    builder_.setInsertionPointToEnd(module.getBody());
    auto function =
        mlir::func::FuncOp::create(builder_, loc_, name, builder_.getFunctionType(types, {}));
    builder_.setInsertionPointToStart(function.addEntryBlock());
    memories_.assign(function.getArguments().begin(), function.getArguments().end());
    for (Operation& op : block_.without_terminator()) {
      auto reduction = llvm::dyn_cast<RowReductionOpInterface>(op);
      if (reduction && failed(buildReduction(reduction))) return failure();
    }
    // Rows last: what lies in the place of an operand is written when all have read it.
    for (const Loops* loops : {&all_, &rows_}) {
      llvm::SmallVector<Value> made, memories;
      for (auto [index, result] : llvm::enumerate(results)) {
        if (&loopsOfResult(result) != loops) continue;
        made.push_back(result);
        memories.push_back(memories_[block_.getNumArguments() + index]);
      }
      if (!made.empty() && failed(buildMap(*loops, made, memories))) return failure();
    }
    mlir::func::ReturnOp::create(builder_, loc_);
    return function;
  }

 private:
  const Loops& loopsOfResult(Value result) const {
    const bool whole = !isReduced() || ir::shapeOf(result) == llvm::ArrayRef(space_.full);
    return whole ? all_ : rows_;
  }
  bool isReduced() const { return space_.rank < static_cast<int64_t>(space_.full.size()); }

  static mlir::MemRefType memoryOf(llvm::ArrayRef<int64_t> shape, Type element) {
    return mlir::MemRefType::get(shape, storedType(element));
  }
  llvm::SmallVector<int64_t> shapeOfLoops(mlir::AffineMap map) const {
    llvm::SmallVector<int64_t> shape;
    for (mlir::AffineExpr dim : map.getResults()) {
      shape.push_back(all_.sizes[llvm::cast<mlir::AffineDimExpr>(dim).getPosition()]);
    }
    return shape;
  }

  // Which of the loops a leaf goes along with.
  mlir::AffineMap mapOf(Value leaf, const Loops& loops) const {
    llvm::SmallVector<mlir::AffineExpr> dims;
    auto argument = llvm::dyn_cast<mlir::BlockArgument>(leaf);
    for (unsigned loop = 0; loop < loops.sizes.size(); ++loop) {
      const bool varies =
          argument ? loops.varies[loop][argument.getArgNumber()] : loop < rows_.sizes.size();
      if (varies) dims.push_back(mlir::getAffineDimExpr(loop, context_));
    }
    return mlir::AffineMap::get(loops.sizes.size(), 0, dims, context_);
  }
  Value memoryOf(Value leaf) const {
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(leaf)) {
      return memories_[argument.getArgNumber()];
    }
    return reduced_.lookup(leaf);
  }

  // A linalg.generic over the loops, the last of them with iterators of `inner`. `body` gets the
  // values computed from the leaves, and the elements of `outputs`; it yields.
  LogicalResult buildGeneric(
      const Loops& loops, IteratorType inner, llvm::ArrayRef<Value> values,
      llvm::ArrayRef<Value> outputs, mlir::AffineMap outputMap,
      llvm::function_ref<void(OpBuilder&, llvm::ArrayRef<Value>, mlir::ValueRange)> body) {
    Slice slice;
    for (Value value : values) slice.add(value);
    llvm::SmallVector<Value> inputs;
    llvm::SmallVector<mlir::AffineMap> maps;
    for (Value leaf : slice.leaves) {
      inputs.push_back(memoryOf(leaf));
      maps.push_back(mapOf(leaf, loops));
    }
    maps.append(outputs.size(), outputMap);
    llvm::SmallVector<IteratorType> iterators(rows_.sizes.size(), IteratorType::parallel);
    iterators.append(loops.sizes.size() - rows_.sizes.size(), inner);
    LogicalResult built = success();
    mlir::linalg::GenericOp::create(
        builder_, loc_, mlir::TypeRange{}, inputs, outputs, maps, iterators,
        [&](OpBuilder& at, Location, mlir::ValueRange elements) {
          mlir::IRMapping computed;
          built = compute(slice, at, elements.take_front(inputs.size()), computed);
          llvm::SmallVector<Value> made;
          for (Value value : values) made.push_back(computed.lookupOrNull(value));
          if (succeeded(built)) body(at, made, elements.drop_front(inputs.size()));
        });
    return built;
  }

  LogicalResult compute(const Slice& slice, OpBuilder& at, mlir::ValueRange stored,
                        mlir::IRMapping& computed) const {
    Elements elements(at, loc_);
    for (auto [leaf, element] : llvm::zip_equal(slice.leaves, stored)) {
      auto reduction = leaf.getDefiningOp<RowReductionOpInterface>();
      Value value = !reduction ? elements.load(element, ir::elementOf(leaf))
                               : elements.rounded(
                                     reduction.buildFinished(at, loc_, element, space_.columns()),
                                     ir::elementOf(leaf));
      computed.map(leaf, value);
    }
    for (Operation& op : block_.without_terminator()) {
      if (!slice.ops.contains(&op)) continue;
      auto scalar = llvm::dyn_cast<ir::ScalarOpInterface>(op);
      if (!scalar) return op.emitOpError("does not say how it computes an element");
      llvm::SmallVector<Value> operands, results;
      for (Value operand : op.getOperands()) operands.push_back(computed.lookup(operand));
      if (failed(scalar.buildScalar(at, loc_, operands, results))) {
        return op.emitOpError("has no generated code");
      }
      for (auto [result, value] : llvm::zip_equal(op.getResults(), results)) {
        computed.map(result, elements.rounded(value, ir::elementOf(result)));
      }
    }
    return success();
  }

  // An accumulator for each row, filled with what it begins with.
  LogicalResult buildReduction(RowReductionOpInterface reduction) {
    Value operand = reduction->getOperand(0), result = reduction->getResult(0);
    Value start = reduction.buildStart(builder_, loc_, ir::computeType(ir::elementOf(operand)));
    if (!start) return reduction->emitOpError("has no generated code");
    auto type = mlir::MemRefType::get(rows_.sizes, start.getType());
    Value memory = mlir::memref::AllocaOp::create(builder_, loc_, type);
    mlir::linalg::FillOp::create(builder_, loc_, start, memory);
    reduced_[result] = memory;
    return buildGeneric(all_, IteratorType::reduction, operand, memory, mapOf(result, all_),
                        [&](OpBuilder& at, llvm::ArrayRef<Value> made, mlir::ValueRange before) {
                          Value combined =
                              reduction.buildCombined(at, loc_, before.front(), made.front());
                          mlir::linalg::YieldOp::create(at, loc_, combined);
                        });
  }

  LogicalResult buildMap(const Loops& loops, llvm::ArrayRef<Value> values,
                         llvm::ArrayRef<Value> memories) {
    auto map = mlir::AffineMap::getMultiDimIdentityMap(loops.sizes.size(), context_);
    return buildGeneric(loops, IteratorType::parallel, values, memories, map,
                        [&](OpBuilder& at, llvm::ArrayRef<Value> made, mlir::ValueRange) {
                          Elements elements(at, loc_);
                          llvm::SmallVector<Value> stored;
                          for (auto [value, computed] : llvm::zip_equal(values, made)) {
                            stored.push_back(elements.store(computed, ir::elementOf(value)));
                          }
                          mlir::linalg::YieldOp::create(at, loc_, stored);
                        });
  }

  mlir::MLIRContext* context_;
  mlir::Block& block_;
  const RowSpace space_;
  const Location loc_;
  OpBuilder builder_;
  Loops rows_, all_;
  llvm::SmallVector<Value> memories_;  // the function's arguments
  llvm::DenseMap<Value, Value> reduced_;
};

}  // namespace

LaunchUnits unitsOf(exec::KernelOp kernel) {
  const RowSpace space = spaceOf(kernel);
  if (space.rank < static_cast<int64_t>(space.full.size())) {
    return {space.rows(), space.columns(), kThreadsOfBlock / lanesOf(space.columns()), 1};
  }
  const Loops loops = loopsOf(kernel, space.full, 0, space.full.size());
  mlir::Block& block = kernel.getBody().front();
  llvm::SmallVector<Type> along;
  for (mlir::BlockArgument argument : block.getArguments()) {
    if (!argument.use_empty() && loops.varies.back()[argument.getArgNumber()]) {
      along.push_back(storedType(ir::elementOf(argument)));
    }
  }
  for (Value result : block.getTerminator()->getOperands()) {
    along.push_back(storedType(ir::elementOf(result)));
  }
  return {loops.sizes.front(), mlir::computeProduct(llvm::ArrayRef(loops.sizes).drop_front()), 0,
          threadElementsOf(loops.sizes.back(), along)};
}

FailureOr<mlir::func::FuncOp> buildLinalgForm(exec::KernelOp kernel, llvm::StringRef name,
                                              mlir::ModuleOp module) {
  FailureOr<mlir::func::FuncOp> function = Form(kernel).build(name, module);
  if (failed(function)) return failure();
  // Launches count on it.
  if (const int64_t elements = unitsOf(kernel).threadElements; elements > 1) {
    (*function)->setAttr(kThreadElements, mlir::OpBuilder(kernel).getI64IntegerAttr(elements));
  }
  return function;
}

}  // namespace oriel
