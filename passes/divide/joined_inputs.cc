#include "passes/divide/joined_inputs.h"

#include <string>
#include <vector>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/strategize/blocks/block_candidate.h"
#include "passes/strategize/blocks/tensor_blocks.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

namespace {

using mlir::Value;

class JoinedInputs {
 public:
  JoinedInputs(mlir::func::FuncOp main, const Strategy& strategy)
      : main_(main),
        strategy_(strategy),
        values_(readValues(main)),
        options_(blockOptionsOf(strategy)),
        upToLastWeights_(opsUpToLastWeights(main, values_)) {}

  // One layer, for it may be what another one has joined. Whether there was one.
  bool run() {
    for (auto linear : main_.getOps<ir::LinearOp>()) {
      const std::vector<Part> parts = partsOf(linear);
      if (parts.size() < 2) continue;
      replace(linear, parts);
      return true;
    }
    return false;
  }

 private:
  // Neighbours in a concatenation: one whose pieces are made of parameters', or some that are not.
  struct Part {
    llvm::SmallVector<Value> operands;
    int64_t columns = 0;
    bool comesInPieces = false;
  };

  // One, or none, where the layer stays as it is.
  std::vector<Part> partsOf(ir::LinearOp linear) {
    std::vector<Part> parts;
    auto joined = linear.getInput().getDefiningOp<ir::ConcatOp>();
    auto weight = values_.parameters.find(linear.getWeight());
    if (!joined || weight == values_.parameters.end() || !linear.getWeight().hasOneUse() ||
        shardingOf(strategy_, ir::ParameterOp(weight->second).getOnnxName().str())) {
      return parts;
    }
    const int64_t ranks = options_.ranks(weight->second), last = ir::rankOf(joined) - 1;
    if (ranks == 1 || static_cast<int64_t>(joined.getDim()) != last) return parts;
    const bool pads = strategy_.padding;
    const BlockScope scope{values_, options_, upToLastWeights_, rules_, /*takesIndivisible=*/pads};
    for (Value operand : joined.getInputs()) {
      const int64_t columns = ir::shapeOf(operand)[last];
      const bool inPieces = (pads || columns % ranks == 0) &&
                            comesInPieces(scope, operand, last, ranks, /*reader=*/joined);
      if (parts.empty() || inPieces || parts.back().comesInPieces) parts.emplace_back();
      parts.back().operands.push_back(operand);
      parts.back().columns += columns;
      parts.back().comesInPieces = inPieces;
    }
    return parts;
  }

  static void replace(ir::LinearOp linear, llvm::ArrayRef<Part> parts) {
    mlir::OpBuilder builder(linear);
    mlir::Location loc = linear.getLoc();
    auto joined = linear.getInput().getDefiningOp<ir::ConcatOp>();
    const int64_t rows = linear.getTransposeWeight() ? 1 : 0;
    Value sum;
    int64_t start = 0;
    for (const Part& part : parts) {
      Value input = part.operands.front();
      if (part.operands.size() > 1) {
        input = ir::ConcatOp::create(builder, joined.getLoc(), part.operands, joined.getDim());
      }
      Value weight = ir::sliceDim(builder, loc, linear.getWeight(), rows, start, part.columns);
      start += part.columns;
      Value product =
          ir::LinearOp::create(builder, loc, input, weight, sum ? Value() : linear.getBias(),
                               linear.getTransposeWeight());
      sum = sum ? Value(ir::AddOp::create(builder, loc, sum, product)) : product;
    }
    linear.getResult().replaceAllUsesWith(sum);
    linear.erase();
    if (joined->use_empty()) joined->erase();
  }

  mlir::func::FuncOp main_;
  const Strategy& strategy_;
  const SegmentValues values_;
  const TensorBlockOptions options_;
  const llvm::DenseSet<mlir::Operation*> upToLastWeights_;
  RuleCache rules_;
};

}  // namespace

bool splitJoinedInputs(mlir::func::FuncOp main, const Strategy& strategy) {
  bool isAny = false;
  while (JoinedInputs(main, strategy).run()) isAny = true;
  return isAny;
}

}  // namespace oriel
