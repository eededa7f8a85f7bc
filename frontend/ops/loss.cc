// Losses.
#include <algorithm>
#include <limits>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/log_softmax.h"
#include "frontend/ops/ops.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

// Those with weights of the classes, of each row, and whose log-probabilities are read.
bool isOfItsBody(const onnx::NodeProto& node) {
  const bool isWeighted = node.input_size() > 2 && !node.input(2).empty();
  const bool givesLogs = node.output_size() > 1 && !node.output(1).empty();
  const bool isOfRows = llvm::any_of(node.attribute(), [](const onnx::AttributeProto& attribute) {
    return attribute.name() == "reduction" && attribute.s() == "none";
  });
  return isWeighted || givesLogs || isOfRows;
}

// Of labels [n, c, d..] that are the classes' probabilities, which PyTorch's exporters write so,
// though no label is a number of a class: -Σ p log softmax(scores).
Value ofProbabilities(NodeImporter& n, Value scores, Value probabilities, bool isMean) {
  Value logs = n.create<ir::MulOp>(logSoftmax(n, scores, /*dim=*/1), probabilities);
  Ints dims = llvm::to_vector(llvm::seq<int64_t>(rankOf(scores)));
  Value loss = n.createLike<ir::NegOp>(n.reduce<ir::ReduceSumOp>(logs, dims, /*keepDims=*/false));
  llvm::ArrayRef<int64_t> shape = shapeOf(scores);
  const int64_t rows = ir::elementCount(shape) / std::max<int64_t>(shape[1], 1);
  return isMean ? n.create<ir::DivOp>(loss, n.scalarLike(loss, static_cast<double>(rows))) : loss;
}

// Scores [n, c, d..], labels [n, d..].
LogicalResult importSoftmaxCrossEntropyLoss(NodeImporter& n) {
  Value scores = n.operand(0), labels = n.operand(1);
  if (!scores || !labels) return failure();
  const int64_t rank = rankOf(scores);
  if (rank < 2) return n.error() << "its scores " << scores.getType() << " have no classes";
  const std::string reduction = n.attrString("reduction", "mean");
  const bool isMean = reduction == "mean";
  if (!isMean && reduction != "sum") {
    return n.error() << "the reduction '" << reduction << "' is not 'mean', 'sum' or 'none'";
  }
  if (llvm::isa<mlir::FloatType>(elementOf(labels)) && shapeOf(labels) == shapeOf(scores)) {
    Value probabilities = n.cast(labels, elementOf(scores));
    return n.replace(ofProbabilities(n, scores, probabilities, isMean));
  }
  // [n, d.., c].
  Ints classesLast = {0};
  for (int64_t dim = 2; dim < rank; ++dim) classesLast.push_back(dim);
  classesLast.push_back(1);
  // Without it every label counts: one that no label is.
  const int64_t ignored = n.attrInt("ignore_index", std::numeric_limits<int64_t>::min());
  Value loss = n.create<ir::CrossEntropyOp>(n.transpose(scores, classesLast), labels, ignored);
  if (!loss) return failure();
  if (isMean) {
    loss = n.create<ir::DivOp>(loss, loss.getDefiningOp<ir::CrossEntropyOp>().getTokenCount());
  }
  return n.replace(n.cast(loss, elementOf(scores)));
}

}  // namespace

void registerLosses(OpRegistry& registry) {
  registry.add("SoftmaxCrossEntropyLoss", 12, importSoftmaxCrossEntropyLoss);
  registry.leaveToBody("SoftmaxCrossEntropyLoss", isOfItsBody);
}

}  // namespace oriel
