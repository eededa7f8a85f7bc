// Losses.
#include <algorithm>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/log_softmax.h"
#include "frontend/ops/ops.h"
#include "ir/oriel/labels.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

// Those whose log-probabilities are read.
bool isOfItsBody(const onnx::NodeProto& node) {
  return node.output_size() > 1 && !node.output(1).empty();
}

enum class Reduction { kNone, kSum, kMean };

mlir::FailureOr<Reduction> readReduction(NodeImporter& n) {
  const std::string name = n.attrString("reduction", "mean");
  if (name == "none") return Reduction::kNone;
  if (name == "sum") return Reduction::kSum;
  if (name == "mean") return Reduction::kMean;
  return n.error() << "the reduction '" << name << "' is not 'mean', 'sum' or 'none'";
}

Value sumOfAll(NodeImporter& n, Value value) {
  Ints dims = llvm::to_vector(llvm::seq<int64_t>(rankOf(value)));
  return dims.empty() ? value : n.reduce<ir::ReduceSumOp>(value, dims, /*keepDims=*/false);
}

// Of labels [n, c, d..] that are the classes' probabilities, which PyTorch's exporters write so,
// though no label is a number of a class: -Σ p log softmax(scores), times the classes' weights. The
// mean is by rows, with weights, too.
Value ofProbabilities(NodeImporter& n, Value scores, Value probabilities, Value weights,
                      Reduction reduction) {
  Value logs = n.create<ir::MulOp>(logSoftmax(n, scores, /*dim=*/1), probabilities);
  if (weights) {
    Ints column(rankOf(scores), 1);
    column[1] = shapeOf(scores)[1];
    logs = n.create<ir::MulOp>(logs, n.reshape(weights, column));
  }
  Value losses = n.createLike<ir::NegOp>(n.reduce<ir::ReduceSumOp>(logs, {1}, /*keepDims=*/false));
  if (!losses || reduction == Reduction::kNone) return losses;
  const auto rows = static_cast<double>(std::max<int64_t>(tensorType(losses).getNumElements(), 1));
  Value sum = sumOfAll(n, losses);
  return reduction == Reduction::kMean ? n.create<ir::DivOp>(sum, n.scalarLike(sum, rows)) : sum;
}

// Of each label its class's weight, 0 of an ignored one.
Value weightsOf(NodeImporter& n, Value weights, Value labels, int64_t ignored) {
  labels = n.cast(labels, n.builder().getI64Type());
  Value isIgnored = n.create<ir::EqualOp>(labels, n.constantOf({ignored}, {}));
  Value classes = n.create<ir::SelectOp>(isIgnored, n.scalarLike(labels, 0), labels);
  Value own = n.gather(weights, classes, 0);
  return own ? n.create<ir::SelectOp>(isIgnored, n.scalarLike(own, 0), own) : own;
}

// Scores [n, c, d..], labels [n, d..].
LogicalResult importSoftmaxCrossEntropyLoss(NodeImporter& n) {
  Value scores = n.operand(0), labels = n.operand(1);
  if (!scores || !labels) return failure();
  const int64_t rank = rankOf(scores);
  if (rank < 2) return n.error() << "its scores " << scores.getType() << " have no classes";
  mlir::FailureOr<Reduction> reduction = readReduction(n);
  if (failed(reduction)) return failure();
  Value weights = n.optionalOperand(2);
  const int64_t classes = shapeOf(scores)[1];
  if (weights && shapeOf(weights) != llvm::ArrayRef<int64_t>{classes}) {
    return n.error() << "its weights " << weights.getType() << " are not one for each of "
                     << classes << " classes";
  }
  if (llvm::isa<mlir::FloatType>(elementOf(labels)) && shapeOf(labels) == shapeOf(scores)) {
    Value probabilities = n.cast(labels, elementOf(scores));
    return n.replace(ofProbabilities(n, scores, probabilities, weights, *reduction));
  }
  // [n, d.., c].
  Ints classesLast = {0};
  for (int64_t dim = 2; dim < rank; ++dim) classesLast.push_back(dim);
  classesLast.push_back(1);
  const int64_t ignored = n.attrInt("ignore_index", ir::kNoLabel);
  Value logits = n.transpose(scores, classesLast);
  if (!weights && *reduction != Reduction::kNone) {
    Value loss = n.create<ir::CrossEntropyOp>(logits, labels, ignored);
    if (!loss) return failure();
    if (*reduction == Reduction::kMean) {
      loss = n.create<ir::DivOp>(loss, loss.getDefiningOp<ir::CrossEntropyOp>().getTokenCount());
    }
    return n.replace(n.cast(loss, elementOf(scores)));
  }
  Value losses = n.create<ir::TokenLossesOp>(logits, labels, ignored), ofRows;
  if (!losses) return failure();
  if (weights) {
    ofRows = n.cast(weightsOf(n, weights, labels, ignored), elementOf(losses));
    losses = n.create<ir::MulOp>(losses, ofRows);
  }
  if (*reduction != Reduction::kNone) losses = sumOfAll(n, losses);
  // Without weights it is none.
  if (*reduction == Reduction::kMean) losses = n.create<ir::DivOp>(losses, sumOfAll(n, ofRows));
  return n.replace(n.cast(losses, elementOf(scores)));
}

}  // namespace

void registerLosses(OpRegistry& registry) {
  registry.add("SoftmaxCrossEntropyLoss", 12, importSoftmaxCrossEntropyLoss);
  registry.addConstantOperands("SoftmaxCrossEntropyLoss", {2});
  registry.leaveToBody("SoftmaxCrossEntropyLoss", isOfItsBody);
}

}  // namespace oriel
