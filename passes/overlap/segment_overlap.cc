#include "passes/overlap/segment_overlap.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "ir/interfaces/view.h"
#include "ir/oriel/location.h"
#include "ir/oriel/segment.h"
#include "passes/cost/collective_time.h"
#include "passes/cost/op_time.h"
#include "passes/overlap/buckets.h"
#include "passes/overlap/list_scheduler.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;

bool isUsedByEnd(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation* user) {
    return user->hasTrait<mlir::OpTrait::IsTerminator>();
  });
}

// What is received is there early; only its first user waits for it. What is sent leaves as soon
// as it is there.
void placeTransfers(mlir::Block& block) {
  llvm::DenseMap<Operation*, size_t> places;
  llvm::SmallVector<ir::ReceiveOp> receives;
  llvm::SmallVector<ir::SendOp> sends;
  for (auto [place, op] : llvm::enumerate(block)) {
    places[&op] = place;
    if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op)) receives.push_back(receive);
    if (auto send = llvm::dyn_cast<ir::SendOp>(op)) sends.push_back(send);
  }
  for (ir::ReceiveOp receive : receives) {
    Operation* first = nullptr;
    for (Operation* user : receive->getUsers()) {
      if (!first || places.lookup(user) < places.lookup(first)) first = user;
    }
    if (first) receive->moveBefore(first);
  }
  // The last one first, so that those of one value keep their order.
  for (ir::SendOp send : llvm::reverse(sends)) {
    if (Operation* source = send.getInput().getDefiningOp()) {
      send->moveAfter(source);
    } else {
      send->moveBefore(&block.front());
    }
  }
}

// Each collective stands where its operands are there, so that buckets are filled in that order.
void placeCollectives(mlir::Block& block) {
  llvm::SmallVector<Operation*> collectives;
  for (Operation& op : block) {
    if (llvm::isa<ir::CollectiveOpInterface>(op)) collectives.push_back(&op);
  }
  llvm::SmallPtrSet<Operation*, 8> placed;
  for (Operation* op : collectives) {
    Operation* last = nullptr;
    for (Value operand : op->getOperands()) {
      Operation* source = operand.getDefiningOp();
      if (source && (!last || last->isBeforeInBlock(source))) last = source;
    }
    if (!last) continue;
    // Behind those that are there already.
    while (placed.contains(last->getNextNode())) last = last->getNextNode();
    op->moveAfter(last);
    placed.insert(op);
  }
}

class SegmentOverlap {
 public:
  SegmentOverlap(mlir::Block& block, const Grid& grid, const OverlapSizes& sizes,
                 CommunicationStreams& streams)
      : block_(block), grid_(grid), sizes_(sizes), streams_(streams) {
    for (Operation& op : block.without_terminator()) {
      placeOf_[&op] = static_cast<int>(ops_.size());
      ops_.push_back(&op);
    }
  }

  void run() {
    if (llvm::none_of(ops_, llvm::IsaPred<ir::CollectiveOpInterface>)) return;
    findTails();
    OverlapBounds bounds;
    std::vector<std::vector<int>> ahead = bucketsOf(/*ahead=*/true, &bounds.ahead);
    std::vector<std::vector<int>> behind = bucketsOf(/*ahead=*/false, &bounds.behind);
    makeNodes(ahead, behind);
    write(scheduleOverlap(scheduled(), bounds));
  }

 private:
  // Ops that are scheduled as one.
  struct Node {
    std::vector<int> ops;
    std::vector<Value> results;  // of collectives, once started
  };

  ir::CollectiveOpInterface collectiveAt(int place) const {
    return llvm::dyn_cast<ir::CollectiveOpInterface>(ops_[place]);
  }

  // A collective that only brings what the segment takes as it is: parameters.
  bool isAhead(int place) const {
    auto collective = collectiveAt(place);
    return collective && !collective.getReductionName() &&
           llvm::all_of(ops_[place]->getOperands(), llvm::IsaPred<mlir::BlockArgument>);
  }

  // Where all that is computed of an op's results is pointwise, and for the end of the segment
  // only: sums of gradients.
  void findTails() {
    isTail_.assign(ops_.size(), true);
    for (size_t i = ops_.size(); i-- > 0;) {
      isTail_[i] = llvm::all_of(ops_[i]->getUsers(), [&](Operation* user) {
        auto place = placeOf_.find(user);
        if (place == placeOf_.end()) return true;  // the end
        return isTail_[place->second] && (llvm::isa<ir::CollectiveOpInterface>(user) ||
                                          user->hasTrait<ir::Pointwise>() || ir::isView(user));
      });
    }
  }

  // Of those that are ahead, or of those that only the end needs; and how many bytes may be on
  // their way.
  std::vector<std::vector<int>> bucketsOf(bool ahead, int64_t* bound) const {
    using Key = std::tuple<const void*, const void*, const void*, const void*>;
    std::map<Key, int> kinds;
    std::vector<BucketItem> items(ops_.size());
    int64_t total = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      Operation* op = ops_[i];
      const int place = static_cast<int>(i);
      for (Value operand : op->getOperands()) {
        if (Operation* source = operand.getDefiningOp()) {
          items[i].operands.push_back(placeOf_.at(source));
        }
      }
      auto collective = collectiveAt(place);
      if (!collective || isAhead(place) != ahead || (!ahead && !isTail_[i])) continue;
      mlir::Type element =
          llvm::cast<mlir::ShapedType>(op->getOperand(0).getType()).getElementType();
      const Key key{op->getName().getAsOpaquePointer(), collective.getAxes().getAsOpaquePointer(),
                    collective.getReductionName().getAsOpaquePointer(),
                    element.getAsOpaquePointer()};
      items[i].kind = kinds.try_emplace(key, kinds.size()).first->second;
      items[i].bytes =
          std::max(ir::typesBytes(op->getOperandTypes()), ir::typesBytes(op->getResultTypes()));
      total += items[i].bytes;
    }
    int64_t limit = sizes_.bucketBytes(total);
    *bound = limit;
    if (ahead) {
      *bound = sizes_.prefetchBytes(total);
      limit = std::min(limit, *bound / 2);  // one is used while the next is on its way
    }
    return fillBuckets(items, limit);
  }

  // A bucket of what is ahead has the place of its first op, another one that of its last.
  void makeNodes(const std::vector<std::vector<int>>& ahead,
                 const std::vector<std::vector<int>>& behind) {
    std::map<int, std::vector<int>> bucketAt;
    std::vector<bool> inBucket(ops_.size());
    for (const auto* buckets : {&ahead, &behind}) {
      for (const std::vector<int>& bucket : *buckets) {
        for (int op : bucket) inBucket[op] = true;
        bucketAt[buckets == &ahead ? bucket.front() : bucket.back()] = bucket;
      }
    }
    nodeOf_.assign(ops_.size(), 0);
    for (size_t i = 0; i < ops_.size(); ++i) {
      const int place = static_cast<int>(i);
      auto bucket = bucketAt.find(place);
      if (bucket == bucketAt.end() && inBucket[i]) continue;
      Node& node = nodes_.emplace_back();
      node.ops = bucket == bucketAt.end() ? std::vector<int>{place} : bucket->second;
      for (int op : node.ops) nodeOf_[op] = static_cast<int>(nodes_.size() - 1);
    }
  }

  std::vector<OverlapOp> scheduled() {
    std::vector<OverlapOp> result;
    const OpTimes times(block_.getParentOp());
    CollectiveTimes collectiveTimes(block_.getParentOp(), grid_);
    // No receive passes a send: what it waits for may wait for that.
    std::vector<int> sends;
    for (const Node& node : nodes_) {
      OverlapOp& scheduled = result.emplace_back();
      double sent = 0;
      ir::CollectiveOpInterface last;
      for (int place : node.ops) {
        Operation* op = ops_[place];
        for (Value operand : op->getOperands()) {
          Operation* source = operand.getDefiningOp();
          if (!source) continue;
          const int sourceNode = nodeOf_[placeOf_.at(source)];
          if (!llvm::is_contained(scheduled.operands, sourceNode)) {
            scheduled.operands.push_back(sourceNode);
          }
        }
        scheduled.leaves |= llvm::isa<ir::SendOp>(op);
        if (scheduled.leaves) sends.push_back(static_cast<int>(result.size()) - 1);
        if (llvm::isa<ir::ReceiveOp>(op)) llvm::append_range(scheduled.operands, sends);
        auto collective = collectiveAt(place);
        if (!collective) {
          scheduled.seconds = times.seconds(op);
          continue;
        }
        last = collective;
        sent += sentBytes(collective, grid_);
        scheduled.stream = static_cast<int>(streams_.of(collective.getAxes()));
        scheduled.bytes += bytesOnTheWay(place);
      }
      if (scheduled.stream > 0) scheduled.seconds = collectiveTimes.seconds(last, sent);
    }
    return result;
  }

  // That would be free otherwise, or not yet in use.
  int64_t bytesOnTheWay(int place) const {
    Operation* op = ops_[place];
    const bool inPlace = collectiveAt(place).mayReduceInPlace();
    if (!isTail_[place] && !isAhead(place)) return 0;  // for a short while only
    int64_t bytes = 0;
    for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
      if (operand.getDefiningOp() && !isUsedByEnd(inPlace ? Value(result) : operand)) {
        bytes += ir::typeBytes(operand.getType());
      }
      if (!inPlace && !isUsedByEnd(result)) bytes += ir::typeBytes(result.getType());
    }
    return bytes;
  }

  void write(const OverlapSchedule& schedule) {
    Operation* end = block_.getTerminator();
    mlir::OpBuilder builder(end);
    int64_t buckets = 0;
    for (const OverlapStep& step : schedule.steps) {
      Node& node = nodes_[step.op];
      if (step.kind == OverlapStep::Kind::kWait) {
        wait(builder, node);
        continue;
      }
      for (int place : node.ops) ops_[place]->moveBefore(end);
      if (step.kind == OverlapStep::Kind::kRun) continue;
      for (int place : node.ops) {
        Operation* op = ops_[place];
        op->setAttr(ir::kStreamAttr,
                    builder.getI64IntegerAttr(streams_.of(collectiveAt(place).getAxes())));
        if (node.ops.size() > 1) op->setAttr(ir::kBucketAttr, builder.getI64IntegerAttr(buckets));
        llvm::append_range(node.results, op->getResults());
      }
      if (node.ops.size() > 1) ++buckets;
    }
  }

  void wait(mlir::OpBuilder& builder, const Node& node) {
    Operation* first = ops_[node.ops.front()];
    const mlir::ValueRange results(node.results);
    auto wait = ir::WaitOp::create(builder, first->getLoc(), mlir::TypeRange(results), results,
                                   ir::originOf(first));
    llvm::SmallVector<mlir::Attribute> shardings;
    for (auto [started, result] : llvm::zip_equal(node.results, wait.getResults())) {
      mlir::Value value = started;
      value.replaceAllUsesExcept(result, wait);
      if (auto sharding = ir::shardingOf(value)) shardings.push_back(sharding);
    }
    if (shardings.size() == node.results.size()) {
      wait->setAttr(ir::kShardingsAttr, builder.getArrayAttr(shardings));
    }
  }

  mlir::Block& block_;
  const Grid& grid_;
  const OverlapSizes& sizes_;
  CommunicationStreams& streams_;
  std::vector<Operation*> ops_;  // in order, before anything moves
  llvm::DenseMap<Operation*, int> placeOf_;
  std::vector<bool> isTail_;
  std::vector<Node> nodes_;
  std::vector<int> nodeOf_;  // of each op
};

}  // namespace

void overlapSegment(mlir::func::FuncOp segment, const Grid& grid, const OverlapSizes& sizes,
                    CommunicationStreams& streams) {
  mlir::Block& block = segment.getBody().front();
  placeTransfers(block);
  placeCollectives(block);
  SegmentOverlap(block, grid, sizes, streams).run();
}

}  // namespace oriel
