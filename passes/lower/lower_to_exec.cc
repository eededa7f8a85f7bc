#include <map>
#include <set>
#include <tuple>

#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "passes/lower/arena_planner.h"
#include "passes/lower/fill_value.h"
#include "passes/lower/passes.h"
#include "passes/lower/storage.h"
#include "passes/stage/op_time.h"
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

int64_t totalBytes(const Storage& storage) {
  return storage.slots == 1
             ? storage.bytes
             : storage.slots * static_cast<int64_t>(llvm::alignTo(storage.bytes, kArenaAlignment));
}

// Writes the program for segments whose values have storage.
class ProgramWriter {
 public:
  ProgramWriter(const StorageAssignment& assignment, exec::ProgramOp program)
      : assignment_(assignment),
        builder_(program.getContext()),
        program_(program),
        buffers_(mlir::OpBuilder::atBlockBegin(&program.getBody().front())) {}

  // Offsets of all storages; returns the arena's size. What persists comes first, gradients
  // side by side, then the bytes that are shared by lifetime.
  int64_t place() {
    const std::vector<Storage>& storages = assignment_.storages();
    offsets_.assign(storages.size(), 0);
    int64_t top = 0;
    auto placePersistent = [&](bool gradients) {
      for (auto [id, storage] : llvm::enumerate(storages)) {
        bool isGradient = storage.role && storage.role->kind == ir::ValueKind::kGradient;
        if (!storage.persistent || isGradient != gradients) continue;
        offsets_[id] = top;
        top += llvm::alignTo(totalBytes(storage), kArenaAlignment);
      }
    };
    placePersistent(false);
    placePersistent(true);
    std::vector<ArenaBlock> blocks;
    std::vector<size_t> ids;
    for (auto [id, storage] : llvm::enumerate(storages)) {
      if (storage.persistent) continue;
      blocks.push_back({storage.begin, storage.end, storage.bytes});
      ids.push_back(id);
    }
    ArenaLayout layout = planArena(blocks);
    for (auto [id, offset] : llvm::zip_equal(ids, layout.offsets)) offsets_[id] = top + offset;
    for (size_t id = 0; id < storages.size(); ++id) {
      if (storages[id].role || storages[id].constant || storages[id].transfer) ownBuffer(id);
    }
    return top + layout.bytes;
  }

  LogicalResult writeSegment(mlir::func::FuncOp function) {
    builder_.setInsertionPointToEnd(&program_.getBody().front());
    auto segment = exec::SegmentOp::create(builder_, function.getLoc(), function.getSymName(),
                                           llvm::APFloat(0.0));
    builder_.setInsertionPointToEnd(&segment.getBody().emplaceBlock());
    double seconds = 0;
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (failed(writeOp(op))) return failure();
      seconds += predictedSeconds(&op);
    }
    segment.setPredictedMs(llvm::APFloat(seconds * 1e3));
    for (const ResultMove& move : assignment_.movesOf(function)) writeMove(function, move);
    return success();
  }

 private:
  LogicalResult writeOp(Operation& op) {
    if (llvm::isa<ir::ConstantOp>(op)) return checkConstant(op);
    if (auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(op)) {
      exec::CollectiveOp::create(
          builder_, op.getLoc(), symbols(op.getOperands()), symbols(op.getResults()),
          builder_.getStringAttr(op.getName().stripDialect()), collective.getReductionName(),
          collective.getAxes(), integer(collective.getSplitDimension()),
          integer(collective.getJoinedDimension()), sourceOf(op));
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
    exec::LaunchOp::create(
        builder_, op.getLoc(), symbols(op.getOperands()), symbols(op.getResults()),
        kernel.getKernelName(), *attributes, op.getAttrOfType<mlir::DictionaryAttr>(kRuleAttr),
        op.getAttrOfType<mlir::ArrayAttr>(kSplitAttr), op.getName().getStringRef());
    return success();
  }

  mlir::StringAttr sourceOf(Operation& op) {
    return builder_.getStringAttr(op.getName().getStringRef());
  }

  // Null for none.
  mlir::IntegerAttr integer(std::optional<int64_t> value) {
    return value ? builder_.getI64IntegerAttr(*value) : mlir::IntegerAttr();
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
                           /*rule=*/nullptr, /*split=*/nullptr, "return");
  }

  // The op's attributes less what only the compiler reads.
  mlir::FailureOr<mlir::DictionaryAttr> kernelAttributes(Operation& op) {
    llvm::SmallVector<mlir::NamedAttribute> result;
    for (mlir::NamedAttribute attribute : op.getAttrDictionary()) {
      llvm::StringRef name = attribute.getName();
      if (name == "origin" || name == "operandSegmentSizes" || name.starts_with("oriel.")) continue;
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
      names.push_back(bufferOf(*assignment_.storageOf(value),
                               llvm::cast<mlir::RankedTensorType>(value.getType()),
                               ir::shardingOf(value)));
    }
    return builder_.getArrayAttr(names);
  }

  mlir::Attribute ownBuffer(StorageId id) {
    const Storage& storage = assignment_.storages()[id];
    return bufferOf(id, storage.type, storage.sharding);
  }

  // The buffer of this type and sharding in a storage. That of the storage's own ones bears its
  // role, others are views of it.
  mlir::Attribute bufferOf(StorageId id, mlir::RankedTensorType type, ir::ShardingAttr sharding) {
    mlir::FlatSymbolRefAttr& symbol = symbols_[{id, type, sharding}];
    if (symbol) return symbol;
    const Storage& storage = assignment_.storages()[id];
    bool own = storage.type == type && storage.sharding == sharding;
    llvm::StringRef kind = "temporary";
    std::string ref, slot;
    mlir::ElementsAttr value;
    if (own && storage.role) {
      kind = ir::stringifyValueKind(storage.role->kind);
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
    exec::BufferOp::create(buffers_, program_.getLoc(), name, type, kind, offsets_[id], ref, slot,
                           value, sharding, storage.slots);
    symbol = mlir::FlatSymbolRefAttr::get(builder_.getContext(), name);
    return symbol;
  }

  const StorageAssignment& assignment_;
  mlir::OpBuilder builder_;
  exec::ProgramOp program_;
  mlir::OpBuilder buffers_;
  std::vector<int64_t> offsets_;
  llvm::DenseMap<std::tuple<StorageId, mlir::Type, mlir::Attribute>, mlir::FlatSymbolRefAttr>
      symbols_;
  int next_ = 0;
};

// What storage assignment relies on: one block of ops that become instructions, on tensors.
LogicalResult checkSegment(mlir::func::FuncOp segment) {
  if (!llvm::hasSingleElement(segment.getBody()) ||
      !llvm::isa<mlir::func::ReturnOp>(segment.getBody().front().back())) {
    return segment.emitOpError("is no straight line of ops");
  }
  for (mlir::Type type : segment.getArgumentTypes()) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat()) {
      return segment.emitOpError("takes ") << type << ", expected static tensors of numbers";
    }
  }
  for (Operation& op : segment.getBody().front().without_terminator()) {
    if (auto constant = llvm::dyn_cast<ir::ConstantOp>(op)) {
      if (llvm::isa<mlir::DenseElementsAttr>(constant.getValue())) continue;
      return op.emitOpError("has a value that is not dense");
    }
    if (!llvm::isa<ir::CollectiveOpInterface, ir::SliceLocalOp, ir::SendOp, ir::ReceiveOp,
                   ir::KernelOpInterface>(op)) {
      return op.emitOpError("has no kernel and can't be lowered");
    }
  }
  return success();
}

// Offsets are below 2^62, so that no sum of two overflows.
LogicalResult checkSize(mlir::ModuleOp module, const StorageAssignment& assignment) {
  constexpr int64_t kLargest = int64_t{1} << 62;
  int64_t left = kLargest;
  for (const Storage& storage : assignment.storages()) {
    if (storage.bytes > (left - kArenaAlignment) / storage.slots) {
      return module.emitError("needs more memory than can be addressed, for a value of type ")
             << storage.type;
    }
    left -= llvm::alignTo(totalBytes(storage), kArenaAlignment);
  }
  return success();
}

// The segment that writes each stash value and those that read it.
struct StashUse {
  std::string writer;
  std::set<std::string> readers;
};

mlir::FailureOr<std::map<std::string, StashUse>> stashUses(
    llvm::ArrayRef<mlir::func::FuncOp> segments) {
  std::map<std::string, StashUse> uses;
  for (mlir::func::FuncOp segment : segments) {
    for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
      mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(segment, i);
      if (failed(role)) return failure();
      if (role->kind == ir::ValueKind::kStash) {
        uses[role->ref].readers.insert(segment.getSymName().str());
      }
    }
    for (unsigned i = 0; i < segment.getNumResults(); ++i) {
      mlir::FailureOr<ir::ValueRole> role = ir::resultRole(segment, i);
      if (failed(role)) return failure();
      if (role->kind == ir::ValueKind::kStash) uses[role->ref].writer = segment.getSymName().str();
    }
  }
  return uses;
}

// The fewest copies such that no microbatch writes one that an earlier one still reads, when
// microbatch m uses copy m modulo their number.
int64_t copiesOf(const StashUse& use, llvm::ArrayRef<ScheduleEntry> schedule) {
  std::vector<int64_t> written;        // the largest microbatch until each time
  std::map<int64_t, size_t> lastRead;  // by microbatch
  for (auto [time, entry] : llvm::enumerate(schedule)) {
    int64_t before = written.empty() ? -1 : written.back();
    written.push_back(entry.segment == use.writer ? std::max(before, entry.microbatch) : before);
    if (use.readers.count(entry.segment)) lastRead[entry.microbatch] = time;
  }
  int64_t copies = 1;
  for (auto [microbatch, time] : lastRead) {
    copies = std::max(copies, written[time] - microbatch + 1);
  }
  return copies;
}

struct LowerToExec : impl::LowerToExecBase<LowerToExec> {
  void runOnOperation() override {
    llvm::SmallVector<mlir::ModuleOp> programs = ir::programsOf(getOperation());
    for (mlir::ModuleOp program : programs) {
      if (failed(lower(program, program != getOperation()))) return signalPassFailure();
    }
  }

  static LogicalResult lower(mlir::ModuleOp module, bool isPipeline) {
    mlir::FailureOr<Grid> grid = getGrid(module);
    mlir::FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(module);
    if (failed(grid) || failed(schedule)) return failure();
    llvm::SmallVector<mlir::func::FuncOp> segments(module.getOps<mlir::func::FuncOp>());
    if (segments.empty()) return module.emitError("has no segment to lower");
    for (mlir::func::FuncOp segment : segments) {
      if (failed(checkSegment(segment))) return failure();
    }

    MicrobatchesInFlight inFlight;
    if (isPipeline) {
      mlir::FailureOr<std::map<std::string, StashUse>> uses = stashUses(segments);
      if (failed(uses)) return failure();
      inFlight.stash.emplace();
      std::map<std::pair<std::string, std::set<std::string>>, int64_t> known;
      for (const auto& [ref, use] : *uses) {
        auto [copies, isNew] = known.try_emplace({use.writer, use.readers}, 0);
        if (isNew) copies->second = copiesOf(use, *schedule);
        (*inFlight.stash)[ref] = copies->second;
      }
      for (const ScheduleEntry& entry : *schedule) {
        if (entry.microbatch > 0) inFlight.transfers = 2;
      }
    }
    StorageAssignment assignment;
    if (failed(assignment.run(segments, std::move(inFlight))) ||
        failed(checkSize(module, assignment))) {
      return failure();
    }
    auto builder = mlir::OpBuilder::atBlockEnd(module.getBody());
    auto first = module->getAttrOfType<mlir::IntegerAttr>(kFirstRankAttr);
    auto program =
        exec::ProgramOp::create(builder, module.getLoc(), "ranks", first ? first.getInt() : 0,
                                grid->worldSize(), /*arena_bytes=*/0);
    program.getBody().emplaceBlock();
    ProgramWriter writer(assignment, program);
    program.setArenaBytes(writer.place());
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
