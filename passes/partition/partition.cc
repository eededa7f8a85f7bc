#include <map>

#include "ir/interfaces/local_pieces.h"
#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/location.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "passes/partition/local_rule.h"
#include "passes/partition/passes.h"
#include "passes/propagate/op_split.h"
#include "passes/propagate/segment_sharding.h"
#include "passes/propagate/versions.h"

namespace oriel {

#define GEN_PASS_DEF_PARTITION
#include "passes/partition/passes.h.inc"

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

// Makes a segment of local ops of a segment of global ones.
class SegmentPartition {
 public:
  SegmentPartition(FuncOp global, ReshardPlanner& planner)
      : global_(global),
        planner_(planner),
        sizes_(planner.sizes()),
        context_(global.getContext()),
        builder_(context_),
        versions_(planner) {}

  LogicalResult run() {
    llvm::SmallVector<mlir::Type> arguments, results;
    llvm::SmallVector<Sharding> resultShardings;
    llvm::SmallVector<Sharding> argumentShardings;
    auto* terminator = global_.getBody().front().getTerminator();
    for (mlir::BlockArgument argument : global_.getArguments()) {
      FailureOr<Sharding> sharding = shardingOf(
          global_.getArgAttr(argument.getArgNumber(), ir::kShardingAttr), ir::tensorType(argument));
      if (failed(sharding)) return failure();
      arguments.push_back(sizes_.local(ir::tensorType(argument), *sharding));
      argumentShardings.push_back(*sharding);
    }
    for (mlir::OpOperand& result : terminator->getOpOperands()) {
      FailureOr<Sharding> sharding =
          shardingOf(global_.getResultAttr(result.getOperandNumber(), ir::kShardingAttr),
                     ir::tensorType(result.get()));
      if (failed(sharding)) return failure();
      results.push_back(sizes_.local(ir::tensorType(result.get()), *sharding));
      resultShardings.push_back(*sharding);
    }
    builder_.setInsertionPoint(global_);
    auto local = FuncOp::create(builder_, global_.getLoc(), global_.getSymName(),
                                builder_.getFunctionType(arguments, results));
    if (mlir::ArrayAttr attributes = global_.getArgAttrsAttr()) local.setArgAttrsAttr(attributes);
    if (mlir::ArrayAttr attributes = global_.getResAttrsAttr()) local.setResAttrsAttr(attributes);
    builder_.setInsertionPointToEnd(local.addEntryBlock());
    for (auto [argument, own, sharding] :
         llvm::zip_equal(global_.getArguments(), local.getArguments(), argumentShardings)) {
      versions_.define(argument, sharding, own);
      if (failed(setView(argument))) return failure();
    }
    for (Operation& op : global_.getBody().front().without_terminator()) {
      if (failed(partition(&op))) return failure();
    }
    llvm::SmallVector<Value> returned;
    for (auto [value, sharding] : llvm::zip_equal(terminator->getOperands(), resultShardings)) {
      FailureOr<Sharding> made = madeFor(value, versions_.defined(value), sharding);
      if (failed(made)) return failure();
      returned.push_back(localOf(value, *made, terminator));
    }
    mlir::func::ReturnOp::create(builder_, terminator->getLoc(), returned);
    global_.erase();
    return success();
  }

 private:
  FailureOr<Sharding> shardingOf(mlir::Attribute attribute, RankedTensorType type) {
    auto sharding = llvm::dyn_cast_or_null<ir::ShardingAttr>(attribute);
    if (!sharding) {
      return global_.emitError("has a value of type ")
             << type << " without a sharding: run propagate first";
    }
    std::string why;
    FailureOr<Sharding> result = sizes_.fromAttr(sharding, type, why);
    if (failed(result))
      return global_.emitError("has the sharding ") << sharding << ", which " << why;
    return result;
  }

  // What a segment uses in another sharding than it is kept in (see Propagate).
  LogicalResult setView(mlir::BlockArgument argument) {
    FailureOr<ValueRole> role = ir::argumentRole(global_, argument.getArgNumber());
    if (failed(role)) return failure();
    FailureOr<std::optional<Sharding>> view = viewOf(symbols_, global_, argument, *role, sizes_);
    if (failed(view)) return failure();
    if (!*view) return success();
    versions_.setView(argument, **view);
    // The update completes all sums first, so that they can travel together.
    if (isSum(*role)) localOf(argument, **view, global_);
    return success();
  }

  LogicalResult partitionSend(ir::SendOp send) {
    FailureOr<Sharding> sharding =
        shardingOf(send->getAttr(ir::kShardingAttr), ir::tensorType(send.getInput()));
    if (failed(sharding) ||
        failed(checkPath(send, versions_.defined(send.getInput()), *sharding))) {
      return failure();
    }
    auto local =
        ir::SendOp::create(builder_, send.getLoc(), localOf(send.getInput(), *sharding, send),
                           send.getChannel(), send.getPeer(), send.getOrigin());
    local->setAttr(ir::kShardingAttr, send->getAttr(ir::kShardingAttr));
    return success();
  }

  LogicalResult partitionReceive(ir::ReceiveOp receive) {
    RankedTensorType type = ir::tensorType(receive.getResult());
    auto shardings = receive->getAttrOfType<mlir::ArrayAttr>(ir::kShardingsAttr);
    FailureOr<Sharding> sharding =
        shardingOf(shardings && shardings.size() == 1 ? shardings[0] : mlir::Attribute(), type);
    if (failed(sharding)) return failure();
    auto local =
        ir::ReceiveOp::create(builder_, receive.getLoc(), sizes_.local(type, *sharding),
                              receive.getChannel(), receive.getPeer(), receive.getOrigin());
    local->setAttr(ir::kShardingsAttr, shardings);
    versions_.define(receive.getResult(), *sharding, local.getResult());
    if (mlir::Attribute seen = receive->getAttr(kViewAttr)) {
      FailureOr<Sharding> view = shardingOf(seen, type);
      if (failed(view)) return failure();
      versions_.setView(receive.getResult(), *view);
    }
    return success();
  }

  LogicalResult partition(Operation* op) {
    if (auto send = llvm::dyn_cast<ir::SendOp>(op)) return partitionSend(send);
    if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op)) return partitionReceive(receive);
    ir::ShardingRule rule = ruleOf(op);
    FailureOr<OpSplit> split = OpSplit::fromAttr(op->getAttr(kSplitAttr), rule, sizes_);
    auto shardings = op->getAttrOfType<mlir::ArrayAttr>(ir::kShardingsAttr);
    if (failed(split) || !shardings || shardings.size() != op->getNumResults()) {
      return op->emitOpError("does not say how it is split: run propagate first");
    }
    llvm::SmallVector<Sharding> finals;
    for (auto [result, attribute] : llvm::zip_equal(op->getResults(), shardings)) {
      FailureOr<Sharding> sharding = shardingOf(attribute, ir::tensorType(result));
      if (failed(sharding)) return failure();
      finals.push_back(*sharding);
    }
    if (op->getNumOperands() == 0 && op->getNumResults() == 1) {
      // It is made where it is used, of the size that is used.
      versions_.define(op->getResult(0), finals[0]);
      return success();
    }
    llvm::SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      const Sharding taken = split->operand(rule, i);
      if (failed(checkPath(op, versions_.defined(operand), taken))) return failure();
      operands.push_back(localOf(operand, taken, op));
    }
    Operation* local = buildLocal(op, rule, *split, operands);
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      Sharding natural = split->result(rule, i);
      if (failed(checkPath(op, natural, finals[i]))) return failure();
      Value value = local->getResult(i);
      for (const ReshardStep& step :
           planner_.plan(ir::tensorType(result), natural, finals[i]).steps) {
        value = emit(step, value, op);
      }
      versions_.define(result, finals[i], value);
    }
    return success();
  }

  LogicalResult checkPath(Operation* op, const Sharding& from, const Sharding& to) {
    if (canBecome(from, to)) return success();
    return op->emitOpError("needs a value in the sharding ")
           << sizes_.text(to) << ", which no collectives make of " << sizes_.text(from);
  }

  Operation* buildLocal(Operation* op, const ir::ShardingRule& rule, const OpSplit& split,
                        mlir::ValueRange operands) {
    llvm::DenseMap<Value, int> firsts;
    auto makeFirst = [&](mlir::OpBuilder&, mlir::Location loc, int factor) {
      Value first = firstOf(loc, split.factors[factor], rule.factors[factor].size);
      firsts[first] = factor;
      return first;
    };
    mlir::Block* block = builder_.getBlock();
    Operation* before = block->empty() ? nullptr : &block->back();
    ir::LocalPieces pieces(split.pieces(sizes_), makeFirst);
    auto shardable = llvm::dyn_cast<ir::ShardableOpInterface>(op);
    Operation* local = shardable ? shardable.buildLocal(builder_, operands, pieces)
                                 : ir::cloneLocal(op, builder_, operands, rule, pieces);
    local->removeAttr(kSplitAttr);
    llvm::SmallVector<Operation*> built;
    for (Operation* next = before ? before->getNextNode() : &block->front(); next;
         next = next->getNextNode()) {
      if (!firstOps_.contains(next)) built.push_back(next);
    }
    describeLocalOps(built, operands, firsts, rule, split, sizes_);
    llvm::SmallVector<mlir::Attribute> shardings;
    for (unsigned i = 0; i < op->getNumResults(); ++i) {
      shardings.push_back(sizes_.toAttr(context_, split.result(rule, i)));
    }
    local->setAttr(ir::kShardingsAttr, mlir::ArrayAttr::get(context_, shardings));
    return local;
  }

  // The value in this sharding; made here, if it is needed for the first time.
  Value localOf(Value value, const Sharding& to, Operation* user) {
    Operation* source = value.getDefiningOp();
    bool isMade = source && source->getNumOperands() == 0 && mlir::isPure(source);
    if (isMade && !makeLocally(source, to)) {
      makeLocally(source, versions_.defined(value));
    }
    return versions_.take(
        value, to, [&](const ReshardStep& step, Value from) { return emit(step, from, user); });
  }

  // Makes the result of an op without operands in this sharding, if the op can be split so.
  bool makeLocally(Operation* op, const Sharding& to) {
    Value value = op->getResult(0);
    if (versions_.local(value, to)) return true;
    ir::ShardingRule rule = ruleOf(op);
    OpSplit split{combineProposals(rule, sizes_, Proposal{&rule.results[0], to}), {}};
    if (split.result(rule, 0) != to) return false;
    versions_.set(value, to, buildLocal(op, rule, split, {})->getResult(0));
    return true;
  }

  Value emit(const ReshardStep& step, Value from, Operation* user) {
    using Kind = ReshardStep::Kind;
    mlir::Location loc = user->getLoc();
    int64_t origin = ir::originOf(user);
    mlir::ArrayAttr axes = sizes_.namesOf(context_, step.axes);
    llvm::StringRef reduction = step.max ? "max" : "sum";
    llvm::SmallVector<int64_t> shape(ir::shapeOf(from));
    int64_t ranks = sizes_.product(step.axes);
    if (step.kind == Kind::kAllGather) shape[step.dim] *= ranks;
    if (step.kind == Kind::kAllToAll) shape[step.joinedDim] *= ranks;
    if (step.kind == Kind::kReduceScatter || step.kind == Kind::kSlice ||
        step.kind == Kind::kAllToAll) {
      shape[step.dim] /= ranks;
    }
    auto type = ir::tensorType(from).clone(shape);
    Operation* op = nullptr;
    switch (step.kind) {
      case Kind::kAllReduce:
        op = ir::AllReduceOp::create(builder_, loc, mlir::TypeRange(type), mlir::ValueRange(from),
                                     axes, reduction, origin);
        break;
      case Kind::kReduceScatter:
        op = ir::ReduceScatterOp::create(builder_, loc, type, from, axes, step.dim, reduction,
                                         origin);
        break;
      case Kind::kAllGather:
        op = ir::AllGatherOp::create(builder_, loc, type, from, axes, step.dim, origin);
        break;
      case Kind::kAllToAll:
        op = ir::AllToAllOp::create(builder_, loc, type, from, axes, step.dim, step.joinedDim,
                                    origin);
        break;
      case Kind::kSlice:
        op = ir::SliceLocalOp::create(builder_, loc, type, from, axes, step.dim, origin);
        break;
    }
    op->setAttr(ir::kShardingsAttr,
                mlir::ArrayAttr::get(context_, {sizes_.toAttr(context_, step.result)}));
    return op->getResult(0);
  }

  // The index of the first element of a rank's piece, when axes cut `size` elements.
  Value firstOf(mlir::Location loc, const AxisList& axes, int64_t size) {
    Value& first = firsts_[{axes, size}];
    if (first) return first;
    int64_t ranks = sizes_.product(axes);
    llvm::SmallVector<int64_t> table;
    for (int64_t i = 0; i < ranks; ++i) table.push_back(i * (size / ranks));
    auto type = RankedTensorType::get({ranks}, builder_.getI64Type());
    Sharding sharding = Sharding::replicated(1);
    auto made = [&](Value value) {
      value.getDefiningOp()->setAttr(
          ir::kShardingsAttr, mlir::ArrayAttr::get(context_, {sizes_.toAttr(context_, sharding)}));
      firstOps_.insert(value.getDefiningOp());
      return value;
    };
    first = made(ir::ConstantOp::create(
        builder_, loc, mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int64_t>(table))));
    for (int axis : axes) {
      ranks /= sizes_[axis];
      sharding.dims[0].push_back(axis);
      first = made(ir::SliceLocalOp::create(builder_, loc, type.clone({ranks}), first,
                                            sizes_.namesOf(context_, {axis}), 0));
    }
    // A number of each rank's own, which no sharding describes.
    first = ir::ReshapeOp::create(builder_, loc, type.clone(llvm::ArrayRef<int64_t>()), first);
    firstOps_.insert(first.getDefiningOp());
    return first;
  }

  FuncOp global_;
  const mlir::SymbolTable symbols_ = symbolsOf(global_);
  ReshardPlanner& planner_;
  const AxisSizes& sizes_;
  mlir::MLIRContext* context_;
  mlir::OpBuilder builder_;
  Versions versions_;
  std::map<std::pair<AxisList, int64_t>, Value> firsts_;
  llvm::SmallPtrSet<Operation*, 8> firstOps_;  // that made those
};

// All-reduces over the same axes whose operands are there travel together, at the place of the
// first one.
void mergeAllReduces(FuncOp segment) {
  std::map<std::pair<const void*, const void*>, ir::AllReduceOp> last;
  for (Operation& op : llvm::make_early_inc_range(segment.getBody().front())) {
    auto reduce = llvm::dyn_cast<ir::AllReduceOp>(op);
    if (!reduce) continue;
    ir::AllReduceOp& first = last[{reduce.getAxes().getAsOpaquePointer(),
                                   reduce.getReductionAttr().getAsOpaquePointer()}];
    bool joins = first && llvm::all_of(reduce.getInputs(), [&](Value input) {
                   Operation* source = input.getDefiningOp();
                   return !source || source->isBeforeInBlock(first);
                 });
    if (!joins) {
      first = reduce;
      continue;
    }
    mlir::OpBuilder builder(first);
    llvm::SmallVector<Value> inputs(first.getInputs());
    llvm::append_range(inputs, reduce.getInputs());
    auto merged =
        ir::AllReduceOp::create(builder, first.getLoc(), mlir::ValueRange(inputs).getTypes(),
                                inputs, first.getAxes(), first.getReduction(), first.getOrigin());
    llvm::SmallVector<mlir::Attribute> shardings(
        first->getAttrOfType<mlir::ArrayAttr>(ir::kShardingsAttr).getValue());
    llvm::append_range(shardings, reduce->getAttrOfType<mlir::ArrayAttr>(ir::kShardingsAttr));
    merged->setAttr(ir::kShardingsAttr, builder.getArrayAttr(shardings));
    first->replaceAllUsesWith(merged.getResults().take_front(first.getNumResults()));
    reduce->replaceAllUsesWith(merged.getResults().drop_front(first.getNumResults()));
    reduce.erase();
    first.erase();
    first = merged;
  }
}

struct Partition : impl::PartitionBase<Partition> {
  void runOnOperation() override {
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) {
      FailureOr<Grid> grid = getGrid(program);
      if (failed(grid)) return signalPassFailure();
      AxisSizes sizes(*grid);
      ReshardPlanner planner(sizes);
      for (FuncOp segment : llvm::make_early_inc_range(program.getOps<FuncOp>())) {
        llvm::StringRef name = segment.getSymName();
        if (failed(SegmentPartition(segment, planner).run())) return signalPassFailure();
        mergeAllReduces(program.lookupSymbol<FuncOp>(name));
      }
    }
  }
};

}  // namespace
}  // namespace oriel
