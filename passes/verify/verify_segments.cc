#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/oriel/segment_roles.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/propagate/op_split.h"
#include "passes/propagate/segment_sharding.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/schedule.h"
#include "passes/verify/passes.h"

namespace oriel {

#define GEN_PASS_DEF_VERIFYSEGMENTS
#include "passes/verify/passes.h.inc"

namespace {

using ir::SegmentRoles;
using ir::ValueKind;
using ir::ValueRole;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::ModuleOp;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Type;
using mlir::func::FuncOp;

enum class Values { kWhole, kGlobal, kLocal };

class ProgramVerifier {
 public:
  ProgramVerifier(ModuleOp program, Values values)
      : program_(program), symbols_(program), values_(values) {}

  LogicalResult run() {
    if (values_ != Values::kWhole) {
      FailureOr<Grid> grid = getGrid(program_);
      if (failed(grid)) return failure();
      sizes_.emplace(*grid);
    }
    for (FuncOp function : program_.getOps<FuncOp>()) {
      FailureOr<SegmentRoles> roles = SegmentRoles::read(function);
      if (failed(roles) || failed(ir::checkOrigins(function))) return failure();
      segments_.push_back(*std::move(roles));
    }
    for (const SegmentRoles& segment : segments_) {
      if (failed(checkValues(segment)) || failed(checkOps(segment.function()))) return failure();
    }
    return success(succeeded(checkStash()) && succeeded(checkSchedule()));
  }

 private:
  // What all that has one role agrees on.
  struct Agreed {
    Type type;
    ir::ShardingAttr sharding;  // null before propagate
  };

  LogicalResult checkValues(const SegmentRoles& segment) {
    FuncOp function = segment.function();
    // A new parameter may be made of its master alone.
    if (failed(segment.checkReplaces({ValueKind::kGradient, ValueKind::kAccumulator})) ||
        (!ir::isUpdate(function) && failed(segment.checkStepsNothing()))) {
      return failure();
    }
    for (auto [i, role] : llvm::enumerate(segment.arguments())) {
      if (failed(checkValue(function, role, function.getArgumentTypes()[i],
                            function.getArgAttr(i, ir::kShardingAttr)))) {
        return failure();
      }
    }
    for (auto [i, role] : llvm::enumerate(segment.results())) {
      if (failed(checkValue(function, role, function.getResultTypes()[i],
                            function.getResultAttr(i, ir::kShardingAttr)))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult checkValue(FuncOp function, const ValueRole& role, Type type,
                           mlir::Attribute attribute) {
    auto tensor = llvm::dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape()) {
      return function.emitError("has type ")
             << type << " for " << roleText(role) << ", expected a tensor of a static shape";
    }
    auto sharding = llvm::dyn_cast_if_present<ir::ShardingAttr>(attribute);
    if (sizes_) {
      std::string why = "has no sharding";
      if (!sharding || !fits(sharding, tensor, why)) {
        return function.emitError() << roleText(role) << " of type " << type << ": " << why;
      }
    }
    if (role.isParameterBound() && failed(checkParameter(function, role, tensor, sharding))) {
      return failure();
    }
    // What a gradient is does not change its name when the last backward reduces it (overlap).
    const bool mayDiffer = role.kind == ValueKind::kOutput ||
                           (role.kind == ValueKind::kGradient && values_ == Values::kLocal);
    if (mayDiffer) return success();
    const Agreed& agreed = agreed_.try_emplace(role, Agreed{type, sharding}).first->second;
    if (agreed.type != type) {
      return function.emitError("has type ")
             << type << " for " << roleText(role) << ", which is " << agreed.type << " elsewhere";
    }
    if (agreed.sharding != sharding) {
      return function.emitError("has the sharding ")
             << sharding << " for " << roleText(role) << ", which is " << agreed.sharding
             << " elsewhere";
    }
    return success();
  }

  // Its value has its type, its gradient and states have its shape; or a rank's piece of them.
  LogicalResult checkParameter(FuncOp function, const ValueRole& role, RankedTensorType type,
                               ir::ShardingAttr sharding) {
    FailureOr<ir::ParameterOp> parameter = parameterOf(symbols_, function, role);
    if (failed(parameter)) return failure();
    RankedTensorType own = parameter->getTensorType();
    RankedTensorType expected = own;
    if (values_ == Values::kLocal) {
      std::string why;
      FailureOr<Sharding> cut = sizes_->fromAttr(sharding, own, why);
      if (failed(cut)) return function.emitError() << roleText(role) << ": the sharding " << why;
      expected = sizes_->local(own, *cut);
    }
    const bool mayBeWider = role.kind != ValueKind::kParameter;
    if (mayBeWider ? type.getShape() == expected.getShape() : type == expected) return success();
    return function.emitError("has type ")
           << type << " for " << roleText(role) << ", expected " << expected;
  }

  bool fits(ir::ShardingAttr sharding, RankedTensorType type, std::string& why) const {
    // That of a rank's piece divides what it is a piece of, which is not known here.
    if (values_ == Values::kLocal) {
      llvm::SmallVector<int64_t> zeros(type.getRank(), 0);
      type = type.clone(zeros);
    }
    if (succeeded(sizes_->fromAttr(sharding, type, why))) return true;
    why = "the sharding " + why;
    return false;
  }

  LogicalResult checkOps(FuncOp function) {
    for (Operation& op : function.getBody().front().without_terminator()) {
      // Later phases take a rule at its word. That of a local op is in its attributes.
      if (auto shardable = llvm::dyn_cast<ir::ShardableOpInterface>(op);
          shardable && values_ != Values::kLocal) {
        const std::optional<std::string> why =
            ir::misfitOf(shardable.getShardingRule(), op.getOperandTypes(), op.getResultTypes());
        if (why) return op.emitOpError("has a sharding rule that ") << *why;
      }
      if (!sizes_) continue;
      auto shardings = op.getAttrOfType<mlir::ArrayAttr>(ir::kShardingsAttr);
      const bool mustSay = values_ == Values::kGlobal && op.getNumResults() > 0;
      if (mustSay && !shardings) return op.emitOpError("has no shardings");
      if (!shardings) continue;
      for (auto [attribute, type] : llvm::zip_equal(shardings, op.getResultTypes())) {
        std::string why;
        if (!fits(llvm::cast<ir::ShardingAttr>(attribute), llvm::cast<RankedTensorType>(type),
                  why)) {
          return op.emitOpError("has a result of type ") << type << ": " << why;
        }
      }
      if (values_ != Values::kGlobal || llvm::isa<ir::ReceiveOp>(op)) continue;
      if (failed(OpSplit::fromAttr(op.getAttr(kSplitAttr), ruleOf(&op), *sizes_))) {
        return op.emitOpError("does not say how it is cut, or not by its rule: ")
               << op.getAttr(kSplitAttr);
      }
    }
    return success();
  }

  // Stages of one program hand values on as stash, too.
  LogicalResult checkStash() {
    std::map<ValueRole, FuncOp> written, read;
    auto note = [](auto& segments, FuncOp function, llvm::ArrayRef<ValueRole> roles) {
      for (const ValueRole& role : roles) {
        if (role.kind == ValueKind::kStash) segments[role] = function;
      }
    };
    for (const SegmentRoles& segment : segments_) {
      note(written, segment.function(), segment.results());
      note(read, segment.function(), segment.arguments());
    }
    for (auto& [role, function] : read) {
      if (written.count(role) > 0) continue;
      return function.emitError("reads ") << roleText(role) << ", which no segment writes";
    }
    for (auto& [role, function] : written) {
      if (read.count(role) > 0) continue;
      return function.emitError("writes ") << roleText(role) << ", which no segment reads";
    }
    return success();
  }

  LogicalResult checkSchedule() {
    FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program_);
    if (failed(schedule)) return failure();
    for (const ScheduleEntry& entry : *schedule) {
      if (symbols_.lookup<FuncOp>(entry.segment)) continue;
      return program_.emitError("the schedule runs @") << entry.segment << ", which is not there";
    }
    return success();
  }

  ModuleOp program_;
  mlir::SymbolTable symbols_;
  const Values values_;
  std::optional<AxisSizes> sizes_;  // of the program's grid, from propagate on
  std::vector<SegmentRoles> segments_;
  std::map<ValueRole, Agreed> agreed_;
};

// By channel, and from which program to which: the type of what it carries.
using Ends =
    std::map<std::tuple<std::string, std::string, std::string>, std::pair<Operation*, Type>>;

LogicalResult checkBehind(const Ends& ends, const Ends& others, llvm::StringRef what,
                          llvm::StringRef missing, bool hasTypes) {
  for (const auto& [key, end] : ends) {
    const auto& [channel, from, to] = key;
    auto other = others.find(key);
    if (other == others.end()) {
      return end.first->emitOpError(what)
             << " \"" << channel << "\" from " << from << " to " << to << ", " << missing;
    }
    if (!hasTypes || other->second.second == end.second) continue;
    auto diagnostic = end.first->emitOpError("carries ")
                      << end.second << " over the channel \"" << channel << "\"";
    diagnostic.attachNote(other->second.first->getLoc())
        << "its other end carries " << other->second.second;
    return diagnostic;
  }
  return success();
}

LogicalResult checkChannels(ModuleOp module, bool hasTypes) {
  Ends sent, received;
  for (ModuleOp program : ir::programsOf(module)) {
    const std::string own = program.getSymName().value_or("").str();
    program.walk([&](Operation* op) {
      if (auto send = llvm::dyn_cast<ir::SendOp>(op)) {
        sent.try_emplace({send.getChannel().str(), own, send.getPeer().str()}, op,
                         send.getInput().getType());
      } else if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op)) {
        received.try_emplace({receive.getChannel().str(), receive.getPeer().str(), own}, op,
                             receive.getResult().getType());
      }
    });
  }
  return success(succeeded(checkBehind(sent, received, "sends over the channel",
                                       "which nobody receives", hasTypes)) &&
                 succeeded(checkBehind(received, sent, "receives over the channel",
                                       "which nobody sends", hasTypes)));
}

struct VerifySegments : impl::VerifySegmentsBase<VerifySegments> {
  using VerifySegmentsBase::VerifySegmentsBase;

  void runOnOperation() override {
    const std::map<std::string, Values> known = {
        {"whole", Values::kWhole}, {"global", Values::kGlobal}, {"local", Values::kLocal}};
    const auto kind = known.find(values);
    if (kind == known.end()) {
      getOperation().emitError("values are whole, global or local, not '") << values << "'";
      return signalPassFailure();
    }
    for (ModuleOp program : ir::programsOf(getOperation())) {
      if (failed(ProgramVerifier(program, kind->second).run())) return signalPassFailure();
    }
    if (failed(checkChannels(getOperation(), kind->second != Values::kLocal))) {
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};

}  // namespace
}  // namespace oriel
