#include "passes/stage/sums.h"

#include <algorithm>
#include <map>

#include "ir/oriel/location.h"
#include "ir/oriel/oriel.h"
#include "passes/train/autodiff.h"

namespace oriel {

using mlir::Operation;
using mlir::Value;

void collectSummands(Value value, llvm::SmallVectorImpl<Value>& summands,
                     llvm::SmallVectorImpl<Operation*>& adds) {
  auto add = value.getDefiningOp<ir::AddOp>();
  bool isSum = add && (adds.empty() || value.hasOneUse()) &&
               add.getLhs().getType() == value.getType() &&
               add.getRhs().getType() == value.getType();
  if (!isSum) {
    summands.push_back(value);
    return;
  }
  adds.push_back(add);
  collectSummands(add.getLhs(), summands, adds);
  collectSummands(add.getRhs(), summands, adds);
}

Value addBefore(Operation* op, Value a, Value b, int part, ForcedParts& forced) {
  mlir::OpBuilder builder(op);
  auto made = ir::AddOp::create(builder, op->getLoc(), a, b);
  setOrigin(made, ir::originOf(op));
  forced[made] = part;
  return made;
}

void sumByProgram(Value total, int rootPart, const SegmentSplit& split,
                  llvm::function_ref<int(Operation*)> partOf, ForcedParts& forced) {
  llvm::SmallVector<Value> summands;
  llvm::SmallVector<Operation*> adds;
  collectSummands(total, summands, adds);
  struct Share {
    int part = 0;
    llvm::SmallVector<Value> values;
  };
  std::map<int, Share> shares;  // by program
  int root = split.programOf(rootPart);
  for (Value summand : summands) {
    Operation* producer = summand.getDefiningOp();
    int part = producer ? partOf(producer) : rootPart;
    Share& share = shares[split.programOf(part)];
    share.part = std::max(share.part, part);
    share.values.push_back(summand);
  }
  bool together = llvm::all_of(shares, [&](const auto& share) {
    return share.first == root || share.second.values.size() == 1;
  });
  if (adds.empty() || together) return;
  shares[root].part = rootPart;
  Operation* place = adds.front();
  Value sum;
  for (auto& [program, share] : shares) {
    Value own;
    for (Value value : share.values) {
      own = own ? addBefore(place, own, value, share.part, forced) : value;
    }
    if (own) sum = sum ? addBefore(place, sum, own, rootPart, forced) : own;
  }
  total.replaceAllUsesWith(sum);
  for (Operation* old : adds) old->erase();
}

}  // namespace oriel
