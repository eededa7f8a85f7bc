#include "passes/generate/lower_rows.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "passes/generate/code.h"
#include "passes/generate/row_space.h"

namespace oriel {

namespace {

using mlir::Location;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::Value;
using mlir::ValueRange;
namespace arith = mlir::arith;
namespace gpu = mlir::gpu;
namespace linalg = mlir::linalg;
namespace memref = mlir::memref;
namespace scf = mlir::scf;

bool reduces(linalg::GenericOp op) { return op.getNumReductionLoops() > 0; }

// What the region does to an accumulator, its last argument: with the element that it computes, or
// with another accumulator.
class Combination {
 public:
  explicit Combination(linalg::GenericOp op) : body_(*op.getBody()) {
    accumulator_ = body_.getArguments().back();
    for (Operation& inner : body_.without_terminator()) {
      if (!llvm::any_of(inner.getOperands(), [&](Value v) { return depends(v); })) continue;
      ops_.push_back(&inner);
      for (Value operand : inner.getOperands()) {
        if (!depends(operand)) others_.insert(operand);
      }
    }
  }

  // Whether it takes one value of the accumulator's type besides the accumulator.
  bool isSimple() const {
    return !ops_.empty() && others_.size() == 1 &&
           others_.front().getType() == accumulator_.getType();
  }

  Value of(OpBuilder& builder, Value first, Value second) const {
    mlir::IRMapping mapping;
    mapping.map(accumulator_, first);
    mapping.map(others_.front(), second);
    for (Operation* op : ops_) builder.clone(*op, mapping);
    return mapping.lookup(body_.getTerminator()->getOperand(0));
  }

 private:
  bool depends(Value value) const {
    return value == accumulator_ ||
           (value.getDefiningOp() && llvm::is_contained(ops_, value.getDefiningOp()));
  }

  mlir::Block& body_;
  Value accumulator_;
  llvm::SmallVector<Operation*> ops_;
  llvm::SmallSetVector<Value, 2> others_;
};

// Loops over one row at a time, of a function in the form.
class Rows {
 public:
  Rows(mlir::func::FuncOp function, OpBuilder& builder)
      : function_(function), builder_(builder), loc_(function.getLoc()) {
    for (Operation& op : function.getBody().front()) {
      if (auto generic = llvm::dyn_cast<linalg::GenericOp>(op)) stages_.push_back(generic);
      auto fill = llvm::dyn_cast<linalg::FillOp>(op);
      if (fill) starts_[fill.getOutputs().front()] = fill.getInputs().front();
    }
    linalg::GenericOp first = stages_.front();
    llvm::SmallVector<int64_t> sizes = first.getStaticLoopRanges();
    const unsigned rank = first.getNumParallelLoops();
    rowSizes_.assign(sizes.begin(), sizes.begin() + rank);
    columnSizes_.assign(sizes.begin() + rank, sizes.end());
  }

  llvm::ArrayRef<linalg::GenericOp> stages() const { return stages_; }
  int64_t rows() const { return mlir::computeProduct(rowSizes_); }
  int64_t columns() const { return mlir::computeProduct(columnSizes_); }
  bool isPerRow(linalg::GenericOp stage) const { return stage.getNumLoops() == rowSizes_.size(); }

  Value number(int64_t value) const {
    return arith::ConstantIndexOp::create(builder_, loc_, value);
  }
  Value sum(Value a, Value b) const { return arith::AddIOp::create(builder_, loc_, a, b); }

  // A loop from `begin` to `end`; `body` builds in it. `before` and what `body` gives are carried.
  ValueRange loop(Value begin, Value end, Value step, ValueRange before,
                  llvm::function_ref<llvm::SmallVector<Value>(Value, ValueRange)> body) {
    auto made =
        scf::ForOp::create(builder_, loc_, begin, end, step, before,
                           [&](OpBuilder& inner, Location, Value index, ValueRange carried) {
                             const OpBuilder::InsertPoint outside = builder_.saveInsertionPoint();
                             builder_.restoreInsertionPoint(inner.saveInsertionPoint());
                             llvm::SmallVector<Value> after = body(index, carried);
                             scf::YieldOp::create(builder_, loc_, after);
                             builder_.restoreInsertionPoint(outside);
                           });
    return made.getResults();
  }

  // The values of a stage are now those of this row; `memory` has what the function's arguments
  // are.
  void setRow(Value row, ValueRange memories) {
    rowIndices_ = split(row, rowSizes_);
    memories_.assign(memories.begin(), memories.end());
  }
  void setReduced(linalg::GenericOp stage, Value value) {
    reduced_[stage.getOutputs().front()] = value;
  }
  Value start(linalg::GenericOp stage) {
    return builder_.clone(*starts_.lookup(stage.getOutputs().front()).getDefiningOp())
        ->getResult(0);
  }

  // What the stage yields for a column of the row (none for a stage of rows).
  llvm::SmallVector<Value> evaluate(linalg::GenericOp stage, Value column, Value accumulator) {
    llvm::SmallVector<Value> indices = rowIndices_;
    if (!isPerRow(stage)) indices.append(split(column, columnSizes_));
    mlir::Block& body = *stage.getBody();
    mlir::IRMapping mapping;
    for (auto [index, operand] : llvm::enumerate(stage.getInputs())) {
      auto reduced = reduced_.find(operand);
      Value element = reduced != reduced_.end()
                          ? reduced->second
                          : Value(memref::LoadOp::create(
                                builder_, loc_, memoryOf(operand),
                                placeOf(stage.getIndexingMapsArray()[index], indices)));
      mapping.map(body.getArgument(index), element);
    }
    if (accumulator) mapping.map(body.getArguments().back(), accumulator);
    for (Operation& op : body.without_terminator()) builder_.clone(op, mapping);
    llvm::SmallVector<Value> values;
    for (Value yielded : body.getTerminator()->getOperands()) {
      values.push_back(mapping.lookupOrDefault(yielded));
    }
    return values;
  }

  void store(linalg::GenericOp stage, Value column, ValueRange values) {
    llvm::SmallVector<Value> indices = rowIndices_;
    if (!isPerRow(stage)) indices.append(split(column, columnSizes_));
    for (auto [output, value] : llvm::zip_equal(stage.getOutputs(), values)) {
      memref::StoreOp::create(builder_, loc_, value, memoryOf(output), indices);
    }
  }

 private:
  llvm::SmallVector<Value> split(Value linear, llvm::ArrayRef<int64_t> sizes) {
    llvm::SmallVector<Value> indices(sizes.size());
    for (size_t dim = sizes.size(); dim-- > 0;) {
      if (dim == 0) {
        indices[dim] = linear;
        break;
      }
      Value size = number(sizes[dim]);
      indices[dim] = arith::RemUIOp::create(builder_, loc_, linear, size);
      linear = arith::DivUIOp::create(builder_, loc_, linear, size);
    }
    return indices;
  }
  static llvm::SmallVector<Value> placeOf(mlir::AffineMap map, ValueRange indices) {
    llvm::SmallVector<Value> place;
    for (mlir::AffineExpr dim : map.getResults()) {
      place.push_back(indices[llvm::cast<mlir::AffineDimExpr>(dim).getPosition()]);
    }
    return place;
  }
  Value memoryOf(Value argument) const {
    return memories_[llvm::cast<mlir::BlockArgument>(argument).getArgNumber()];
  }

  mlir::func::FuncOp function_;
  OpBuilder& builder_;
  const Location loc_;
  llvm::SmallVector<linalg::GenericOp> stages_;
  llvm::DenseMap<Value, Value> starts_, reduced_;
  llvm::SmallVector<int64_t> rowSizes_, columnSizes_;
  llvm::SmallVector<Value> rowIndices_, memories_;
};

// On the host: accumulators are in memory, so that loops over them become vector code.
class HostRows {
 public:
  explicit HostRows(mlir::func::FuncOp function)
      : builder_(&function.getBody().front(), function.getBody().front().end()),
        rows_(function, builder_),
        loc_(function.getLoc()),
        lanes_(lanesOf(rows_.columns())) {
    builder_.setInsertionPoint(function.getBody().front().getTerminator());
  }

  void build(ValueRange memories, Value begin, Value end) {
    llvm::DenseMap<mlir::Type, Value> accumulators;
    for (linalg::GenericOp stage : rows_.stages()) {
      if (!reduces(stage)) continue;
      mlir::Type type = stage.getBody()->getArguments().back().getType();
      Value& memory = accumulators[type];
      if (!memory) {
        memory = memref::AllocaOp::create(builder_, loc_, mlir::MemRefType::get({lanes_}, type));
      }
    }
    Value one = rows_.number(1);
    rows_.loop(begin, end, one, {}, [&](Value row, ValueRange) -> llvm::SmallVector<Value> {
      rows_.setRow(row, memories);
      for (linalg::GenericOp stage : rows_.stages()) {
        if (reduces(stage)) {
          mlir::Type type = stage.getBody()->getArguments().back().getType();
          rows_.setReduced(stage, reduce(stage, accumulators.lookup(type)));
        } else if (rows_.isPerRow(stage)) {
          rows_.store(stage, {}, rows_.evaluate(stage, {}, {}));
        } else {
          each(rows_.columns(), [&](Value column) {
            rows_.store(stage, column, rows_.evaluate(stage, column, {}));
          });
        }
      }
      return {};
    });
  }

 private:
  void each(int64_t count, llvm::function_ref<void(Value)> body) {
    if (count == 0) return;
    rows_.loop(rows_.number(0), rows_.number(count), rows_.number(1), {},
               [&](Value index, ValueRange) -> llvm::SmallVector<Value> {
                 body(index);
                 return {};
               });
  }

  Value reduce(linalg::GenericOp stage, Value lanes) {
    Value start = rows_.start(stage);
    auto load = [&](Value lane) -> Value {
      return memref::LoadOp::create(builder_, loc_, lanes, lane);
    };
    auto store = [&](Value lane, Value value) {
      memref::StoreOp::create(builder_, loc_, value, lanes, lane);
    };
    each(lanes_, [&](Value lane) { store(lane, start); });
    auto take = [&](Value first, int64_t count) {
      each(count, [&](Value lane) {
        store(lane, rows_.evaluate(stage, rows_.sum(first, lane), load(lane)).front());
      });
    };
    const int64_t whole = rows_.columns() / lanes_ * lanes_;
    rows_.loop(rows_.number(0), rows_.number(whole), rows_.number(lanes_), {},
               [&](Value first, ValueRange) -> llvm::SmallVector<Value> {
                 take(first, lanes_);
                 return {};
               });
    take(rows_.number(whole), rows_.columns() - whole);
    const Combination combination(stage);
    for (int64_t half = lanes_ / 2; half > 0; half /= 2) {
      each(half, [&](Value lane) {
        Value other = load(rows_.sum(lane, rows_.number(half)));
        store(lane, combination.of(builder_, load(lane), other));
      });
    }
    return load(rows_.number(0));
  }

  OpBuilder builder_;
  Rows rows_;
  const Location loc_;
  const int64_t lanes_;
};

// On CUDA: a thread for each lane; what they have accumulated is combined in shared memory.
class CudaRows {
 public:
  CudaRows(mlir::func::FuncOp function, gpu::GPUModuleOp module)
      : builder_(OpBuilder::atBlockEnd(module.getBody())),
        rows_(function, builder_),
        loc_(function.getLoc()),
        lanes_(lanesOf(rows_.columns())) {
    llvm::SmallVector<mlir::Type> shared;
    auto space = gpu::AddressSpaceAttr::get(builder_.getContext(), gpu::AddressSpace::Workgroup);
    for (linalg::GenericOp stage : rows_.stages()) {
      if (!reduces(stage)) continue;
      mlir::Type type = stage.getBody()->getArguments().back().getType();
      if (!shared_.try_emplace(type, static_cast<unsigned>(shared.size())).second) continue;
      shared.push_back(
          mlir::MemRefType::get({kThreadsOfBlock}, type, mlir::MemRefLayoutAttrInterface(), space));
    }
    kernel_ = gpu::GPUFuncOp::create(builder_, loc_, function.getSymName(),
                                     function.getFunctionType(), shared);
    kernel_->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder_.getUnitAttr());
    kernel_.setKnownBlockSizeAttr(builder_.getDenseI32ArrayAttr({kThreadsOfBlock, 1, 1}));
    builder_.setInsertionPointToStart(&kernel_.getBody().front());
  }

  void build() {
    Value block = gpu::BlockIdOp::create(builder_, loc_, gpu::Dimension::x);
    thread_ = gpu::ThreadIdOp::create(builder_, loc_, gpu::Dimension::x);
    lane_ = arith::RemUIOp::create(builder_, loc_, thread_, rows_.number(lanes_));
    Value group = arith::DivUIOp::create(builder_, loc_, thread_, rows_.number(lanes_));
    Value first =
        arith::MulIOp::create(builder_, loc_, block, rows_.number(kThreadsOfBlock / lanes_));
    Value row = rows_.sum(first, group);
    // What is beyond the last row computes that, too, for all threads to meet; it writes nothing.
    Value count = rows_.number(rows_.rows());
    isRow_ = arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::ult, row, count);
    Value last = rows_.number(rows_.rows() - 1);
    row = arith::SelectOp::create(builder_, loc_, isRow_, row, last);
    rows_.setRow(row, kernel_.getArguments());
    for (linalg::GenericOp stage : rows_.stages()) {
      if (reduces(stage)) {
        rows_.setReduced(stage, reduce(stage));
      } else if (rows_.isPerRow(stage)) {
        buildPerRow(stage);
      } else {
        rows_.loop(lane_, rows_.number(rows_.columns()), rows_.number(lanes_), {},
                   [&](Value column, ValueRange) -> llvm::SmallVector<Value> {
                     llvm::SmallVector<Value> values = rows_.evaluate(stage, column, {});
                     guarded(isRow_, [&] { rows_.store(stage, column, values); });
                     return {};
                   });
      }
    }
    gpu::ReturnOp::create(builder_, loc_);
  }

 private:
  void guarded(Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(builder_, loc_, condition, /*withElseRegion=*/false);
    const OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(branch.thenBlock());
    body();
  }
  void meet() { gpu::BarrierOp::create(builder_, loc_); }

  // Others may still read what lies there.
  void buildPerRow(linalg::GenericOp stage) {
    llvm::SmallVector<Value> values = rows_.evaluate(stage, {}, {});
    meet();
    Value isFirst =
        arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::eq, lane_, rows_.number(0));
    guarded(arith::AndIOp::create(builder_, loc_, isRow_, isFirst),
            [&] { rows_.store(stage, {}, values); });
  }

  Value reduce(linalg::GenericOp stage) {
    mlir::Type type = stage.getBody()->getArguments().back().getType();
    Value shared = kernel_.getWorkgroupAttributions()[shared_.lookup(type)];
    auto load = [&](Value place) -> Value {
      return memref::LoadOp::create(builder_, loc_, shared, place);
    };
    auto store = [&](Value value) {
      memref::StoreOp::create(builder_, loc_, value, shared, thread_);
    };
    Value own =
        rows_
            .loop(lane_, rows_.number(rows_.columns()), rows_.number(lanes_), rows_.start(stage),
                  [&](Value column, ValueRange before) -> llvm::SmallVector<Value> {
                    return rows_.evaluate(stage, column, before.front());
                  })
            .front();
    store(own);
    meet();
    const Combination combination(stage);
    for (int64_t half = lanes_ / 2; half > 0; half /= 2) {
      Value isOurs = arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::ult, lane_,
                                           rows_.number(half));
      guarded(isOurs, [&] {
        Value other = load(rows_.sum(thread_, rows_.number(half)));
        store(combination.of(builder_, load(thread_), other));
      });
      meet();
    }
    Value total = load(arith::SubIOp::create(builder_, loc_, thread_, lane_));
    meet();
    return total;
  }

  OpBuilder builder_;
  Rows rows_;
  const Location loc_;
  const int64_t lanes_;
  llvm::DenseMap<mlir::Type, unsigned> shared_;
  gpu::GPUFuncOp kernel_;
  Value thread_, lane_, isRow_;
};

}  // namespace

bool isRowForm(mlir::func::FuncOp function) {
  if (!llvm::hasSingleElement(function.getBody())) return false;
  llvm::DenseSet<Value> filled;
  llvm::SmallVector<int64_t> sizes;
  for (Operation& op : function.getBody().front().without_terminator()) {
    if (llvm::isa<arith::ConstantOp, memref::AllocaOp>(op)) continue;
    if (auto fill = llvm::dyn_cast<linalg::FillOp>(op)) {
      if (!fill.getInputs().front().getDefiningOp<arith::ConstantOp>()) return false;
      filled.insert(fill.getOutputs().front());
      continue;
    }
    auto stage = llvm::dyn_cast<linalg::GenericOp>(op);
    if (!stage || !llvm::all_of(stage.getIndexingMapsArray(),
                                [](mlir::AffineMap map) { return map.isProjectedPermutation(); })) {
      return false;
    }
    const bool placed = llvm::all_of(stage->getOperands(), [&](Value operand) {
      auto memory = llvm::dyn_cast<mlir::MemRefType>(operand.getType());
      return memory && memory.hasStaticShape() && memory.getLayout().isIdentity() &&
             (llvm::isa<mlir::BlockArgument>(operand) || filled.contains(operand));
    });
    if (!placed) return false;
    if (sizes.empty()) {
      if (!reduces(stage)) return false;
      sizes = stage.getStaticLoopRanges();
    }
    if (reduces(stage) &&
        (!filled.contains(stage.getOutputs().front()) || stage.getStaticLoopRanges() != sizes ||
         !Combination(stage).isSimple())) {
      return false;
    }
  }
  return !sizes.empty();
}

void rowsToRange(mlir::func::FuncOp function) {
  HostRows host(function);
  llvm::SmallVector<Operation*> before;
  for (Operation& op : function.getBody().front().without_terminator()) before.push_back(&op);
  mlir::Type index = mlir::IndexType::get(function.getContext());
  const unsigned count = function.getNumArguments();
  (void)function.insertArgument(count, index, {}, function.getLoc());
  (void)function.insertArgument(count + 1, index, {}, function.getLoc());
  host.build(function.getArguments().take_front(count), function.getArgument(count),
             function.getArgument(count + 1));
  for (Operation* op : llvm::reverse(before)) op->erase();
}

void rowsToKernel(mlir::func::FuncOp function, gpu::GPUModuleOp module) {
  CudaRows(function, module).build();
  function.erase();
}

}  // namespace oriel
