#include <map>
#include <tuple>

#include "ir/interfaces/kernel_attributes.h"
#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/IRMapping.h"
#include "passes/cost/segment_time.h"
#include "passes/lower/fill_value.h"
#include "passes/lower/passes.h"
#include "passes/lower/program_memory.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/programs.h"
#include "passes/strategize/schedule.h"
#include "passes/strategize/sharding.h"

namespace oriel {

#define GEN_PASS_DEF_LOWERTOEXEC
#include "passes/lower/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;

// Writes the program for segments whose values have storage.
class ProgramWriter {
 public:
  ProgramWriter(ProgramMemory& memory, exec::ProgramOp program)
      : assignment_(memory.assignment()),
        builder_(program.getContext()),
        program_(program),
        buffers_(mlir::OpBuilder::atBlockBegin(&program.getBody().front())) {
    MemoryLayout arena = memory.place();
    program.setArenaBytes(arena.bytes);
    offsets_ = std::move(arena.offsets);
    for (auto [id, storage] : llvm::enumerate(assignment_.storages())) {
      if (storage.role || storage.constant || storage.transfer) ownBuffer(id);
    }
  }

  LogicalResult writeSegment(mlir::func::FuncOp function) {
    builder_.setInsertionPointToEnd(&program_.getBody().front());
    auto segment = exec::SegmentOp::create(builder_, function.getLoc(), function.getSymName(),
                                           llvm::APFloat(0.0));
    builder_.setInsertionPointToEnd(&segment.getBody().emplaceBlock());
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (failed(writeOp(op))) return failure();
    }
    mlir::FailureOr<PredictedTime> time = predictedTime(function);
    if (failed(time)) return failure();
    segment.setPredictedMs(llvm::APFloat(time->all() * 1e3));
    for (const ResultMove& move : assignment_.movesOf(function)) writeMove(function, move);
    numberWaits(segment);
    return success();
  }

 private:
  LogicalResult writeOp(Operation& op) {
    if (llvm::isa<ir::ConstantOp>(op)) return checkConstant(op);
    if (auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(op)) {
      return writeCollective(collective);
    }
    if (auto wait = llvm::dyn_cast<ir::WaitOp>(op)) {
      // All that it waits for travels as one.
      Operation* started = wait.getInputs().front().getDefiningOp();
      waits_.emplace_back(exec::WaitOp::create(builder_, op.getLoc(), /*collective=*/0),
                          collectives_.lookup(started));
      return success();
    }
    if (auto slice = llvm::dyn_cast<ir::SliceLocalOp>(op)) {
      exec::SliceOp::create(builder_, op.getLoc(), symbols(op.getOperands()),
                            symbols(op.getResults()), builder_.getI64IntegerAttr(slice.getDim()),
                            slice.getAxes(), sourceOf(op));
      return success();
    }
    if (auto send = llvm::dyn_cast<ir::SendOp>(op)) {
      auto target = builder_.getArrayAttr({ownBuffer(assignment_.sentFrom(&op))});
      exec::CopyOp::create(builder_, op.getLoc(), symbols(op.getOperands()), target, sourceOf(op));
      exec::SendOp::create(builder_, op.getLoc(), target, builder_.getArrayAttr({}),
                           send.getChannelAttr(), send.getPeerAttr(), sourceOf(op));
      return success();
    }
    if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op)) {
      exec::ReceiveOp::create(builder_, op.getLoc(), builder_.getArrayAttr({}),
                              symbols(op.getResults()), receive.getChannelAttr(),
                              receive.getPeerAttr(), sourceOf(op));
      return success();
    }
    auto kernel = llvm::cast<ir::KernelOpInterface>(op);
    if (kernel.isView()) return success();
    mlir::FailureOr<mlir::DictionaryAttr> attributes = kernelAttributes(op);
    if (failed(attributes)) return failure();
    auto generated = llvm::dyn_cast<exec::GeneratedOp>(op);
    exec::LaunchOp::create(builder_, op.getLoc(), symbols(op.getOperands()),
                           symbols(op.getResults()), kernel.getKernelName(), *attributes,
                           op.getAttrOfType<mlir::DictionaryAttr>(kRuleAttr),
                           op.getAttrOfType<mlir::ArrayAttr>(kSplitAttr),
                           generated ? kernelOf(generated) : mlir::FlatSymbolRefAttr(),
                           generated ? bodyText(generated) : op.getName().getStringRef().str());
    return success();
  }

  // The kernel with this body: one for all that are equal.
  mlir::FlatSymbolRefAttr kernelOf(exec::GeneratedOp generated) {
    auto kernel = exec::KernelOp::create(buffers_, program_.getLoc(), "generated");
    mlir::IRMapping mapping;
    generated.getBody().cloneInto(&kernel.getBody(), mapping);
    std::string text;
    llvm::raw_string_ostream stream(text);
    kernel->print(stream, mlir::OpPrintingFlags().useLocalScope());
    mlir::FlatSymbolRefAttr& symbol = kernels_[text];
    if (symbol) {
      kernel->erase();
    } else {
      kernel.setSymName("generated" + std::to_string(kernels_.size() - 1));
      symbol = mlir::FlatSymbolRefAttr::get(kernel.getSymNameAttr());
    }
    return symbol;
  }

  // "oriel.add, oriel.cast"
  static std::string bodyText(exec::GeneratedOp generated) {
    std::string text;
    for (Operation& op : generated.getBody().front().without_terminator()) {
      text += (text.empty() ? "" : ", ") + op.getName().getStringRef().str();
    }
    return text;
  }

  // One instruction for all of a bucket, where its first stands.
  LogicalResult writeCollective(ir::CollectiveOpInterface first) {
    if (collectives_.count(first)) return success();
    llvm::SmallVector<mlir::Attribute> inputs, outputs;
    llvm::SmallVector<int64_t> splitDims, concatDims;
    llvm::SmallVector<Operation*> bucket;
    for (Operation* op = first; op; op = op->getNextNode()) {
      auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(op);
      if (op != first && (!collective || !ir::travelTogether(first, collective))) break;
      bucket.push_back(op);
      llvm::append_range(inputs, symbols(op->getOperands()));
      llvm::append_range(outputs, symbols(op->getResults()));
      size_t count = op->getNumOperands();
      if (auto dim = collective.getSplitDimension()) splitDims.append(count, *dim);
      if (auto dim = collective.getJoinedDimension()) concatDims.append(count, *dim);
    }
    auto dims = [&](llvm::ArrayRef<int64_t> list) {
      return list.empty() ? mlir::DenseI64ArrayAttr() : builder_.getDenseI64ArrayAttr(list);
    };
    auto stream = first->getAttrOfType<mlir::IntegerAttr>(ir::kStreamAttr);
    auto instruction = exec::CollectiveOp::create(
        builder_, first.getLoc(), builder_.getArrayAttr(inputs), builder_.getArrayAttr(outputs),
        builder_.getStringAttr(first->getName().stripDialect()), first.getReductionName(),
        first.getAxes(), dims(splitDims), dims(concatDims),
        builder_.getI64IntegerAttr(stream ? stream.getInt() : 0), sourceOf(*first));
    for (Operation* op : bucket) collectives_[op] = instruction;
    return success();
  }

  // Once all instructions of a segment have their places.
  void numberWaits(exec::SegmentOp segment) {
    llvm::DenseMap<Operation*, int64_t> places;
    for (auto [place, op] : llvm::enumerate(segment.getBody().front())) places[&op] = place;
    for (auto [wait, collective] : waits_) wait.setCollective(places.lookup(collective));
    waits_.clear();
  }

  mlir::StringAttr sourceOf(Operation& op) {
    return builder_.getStringAttr(op.getName().getStringRef());
  }

  // A constant's bytes are in the plan, also those of a splat, which takes none in the IR.
  LogicalResult checkConstant(Operation& op) const {
    constexpr int64_t kLargest = int64_t{1} << 31;
    std::optional<StorageId> id = assignment_.storageOf(op.getResult(0));
    if (id && assignment_.storages()[*id].bytes >= kLargest) {
      return op.emitOpError("takes ")
             << assignment_.storages()[*id].bytes << " bytes, and a plan holds less than "
             << kLargest << "; compute the value in the model, or make it smaller";
    }
    return success();
  }

  void writeMove(mlir::func::FuncOp function, const ResultMove& move) {
    auto target = builder_.getArrayAttr({ownBuffer(move.target)});
    mlir::Location loc = function.getLoc();
    if (assignment_.storageOf(move.source)) {
      exec::CopyOp::create(builder_, loc, symbols(move.source), target, "return");
      return;
    }
    auto constant = move.source.getDefiningOp<ir::ConstantOp>();
    double value = *fillValue(constant.getValue());
    auto attributes =
        builder_.getDictionaryAttr(builder_.getNamedAttr("value", builder_.getF64FloatAttr(value)));
    exec::LaunchOp::create(builder_, loc, builder_.getArrayAttr({}), target, "fill", attributes,
                           /*rule=*/nullptr, /*split=*/nullptr, /*generated=*/nullptr, "return");
  }

  // The op's attributes less what only the compiler reads.
  mlir::FailureOr<mlir::DictionaryAttr> kernelAttributes(Operation& op) {
    llvm::SmallVector<mlir::NamedAttribute> result;
    for (mlir::NamedAttribute attribute : op.getAttrDictionary()) {
      llvm::StringRef name = attribute.getName();
      if (ir::isOfCompiler(name)) continue;
      if (!llvm::isa<mlir::IntegerAttr, mlir::FloatAttr, mlir::StringAttr, mlir::DenseI64ArrayAttr>(
              attribute.getValue())) {
        op.emitOpError("has the attribute ") << name << ", which a kernel can't take";
        return failure();
      }
      result.push_back(attribute);
    }
    return builder_.getDictionaryAttr(result);
  }

  mlir::ArrayAttr symbols(mlir::ValueRange values) {
    llvm::SmallVector<mlir::Attribute> names;
    for (Value value : values) {
      names.push_back(bufferOf(*assignment_.storageOf(value), ir::tensorType(value),
                               ir::shardingOf(value), assignment_.isOverStash(value)));
    }
    return builder_.getArrayAttr(names);
  }

  mlir::Attribute ownBuffer(StorageId id) {
    const Storage& storage = assignment_.storages()[id];
    return bufferOf(id, storage.type, storage.sharding);
  }

  // The buffer of this type and sharding in a storage. That of the storage's own ones bears its
  // role, others, and what lies there when the stash is spent, are views of it.
  mlir::Attribute bufferOf(StorageId id, mlir::RankedTensorType type, ir::ShardingAttr sharding,
                           bool isOverStash = false) {
    mlir::FlatSymbolRefAttr& symbol = symbols_[{id, type, sharding, isOverStash}];
    if (symbol) return symbol;
    const Storage& storage = assignment_.storages()[id];
    bool own = storage.type == type && storage.sharding == sharding && !isOverStash;
    llvm::StringRef kind = "temporary";
    std::string ref, slot;
    mlir::ElementsAttr value;
    if (own && storage.role) {
      kind = storage.isGradient() && !storage.persistent
                 ? "step_gradient"
                 : ir::stringifyValueKind(storage.role->kind);
      ref = storage.role->ref;
      slot = storage.role->slot;
    } else if (own && storage.constant) {
      kind = "constant";
      value = storage.constant;
    }
    // All views of what has several copies do.
    if (storage.transfer) kind = "transfer";
    if (storage.slots > 1 && storage.role) kind = ir::stringifyValueKind(storage.role->kind);
    std::string name = "b" + std::to_string(next_++);
    llvm::ArrayRef<int64_t> offsets = offsets_[id];
    exec::BufferOp::create(buffers_, program_.getLoc(), name, type, kind, offsets.front(), ref,
                           slot, value, sharding, offsets.drop_front());
    symbol = mlir::FlatSymbolRefAttr::get(builder_.getContext(), name);
    return symbol;
  }

  llvm::StringMap<mlir::FlatSymbolRefAttr> kernels_;  // by their text
  const StorageAssignment& assignment_;
  mlir::OpBuilder builder_;
  exec::ProgramOp program_;
  mlir::OpBuilder buffers_;
  std::vector<std::vector<int64_t>> offsets_;  // of the copies of each storage
  llvm::DenseMap<Operation*, exec::CollectiveOp> collectives_;
  llvm::SmallVector<std::pair<exec::WaitOp, exec::CollectiveOp>> waits_;  // of the segment
  llvm::DenseMap<std::tuple<StorageId, mlir::Type, mlir::Attribute, unsigned>,
                 mlir::FlatSymbolRefAttr>
      symbols_;
  int next_ = 0;
};

struct LowerToExec : impl::LowerToExecBase<LowerToExec> {
  using LowerToExecBase::LowerToExecBase;

  void runOnOperation() override {
    const int64_t multiple = alignment;
    if (multiple < kArenaAlignment || !llvm::isPowerOf2_64(static_cast<uint64_t>(multiple))) {
      getOperation().emitError("values can't lie at multiples of ")
          << multiple << " bytes; give a power of two from " << kArenaAlignment << " on";
      return signalPassFailure();
    }
    llvm::SmallVector<mlir::ModuleOp> programs = ir::programsOf(getOperation());
    for (mlir::ModuleOp program : programs) {
      if (failed(lower(program))) return signalPassFailure();
    }
  }

  LogicalResult lower(mlir::ModuleOp module) const {
    mlir::FailureOr<Grid> grid = getGrid(module);
    mlir::FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(module);
    if (failed(grid) || failed(schedule)) return failure();
    llvm::SmallVector<mlir::func::FuncOp> segments(module.getOps<mlir::func::FuncOp>());
    mlir::FailureOr<ProgramMemory> memory = ProgramMemory::of(module, alignment);
    if (failed(memory)) return failure();
    auto builder = mlir::OpBuilder::atBlockEnd(module.getBody());
    auto first = module->getAttrOfType<mlir::IntegerAttr>(kFirstRankAttr);
    auto program =
        exec::ProgramOp::create(builder, module.getLoc(), "ranks", first ? first.getInt() : 0,
                                grid->worldSize(), /*arena_bytes=*/0);
    program.getBody().emplaceBlock();
    ProgramWriter writer(*memory, program);
    for (mlir::func::FuncOp segment : segments) {
      if (failed(writer.writeSegment(segment))) return failure();
    }
    builder.setInsertionPointToEnd(&program.getBody().front());
    for (const ScheduleEntry& entry : *schedule) {
      exec::RunOp::create(builder, program.getLoc(), entry.segment, entry.microbatch);
    }
    for (mlir::func::FuncOp segment : segments) segment.erase();
    return success();
  }
};

}  // namespace
}  // namespace oriel
