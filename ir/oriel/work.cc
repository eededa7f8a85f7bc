// The work of ops that are made of matrix products or attention.
#include "ir/interfaces/work.h"

#include <cmath>

#include "ir/oriel/attach_work.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/matmul_dims.h"
#include "ir/oriel/oriel.h"
#include "mlir/IR/TypeUtilities.h"

namespace oriel::ir {

namespace {

using mlir::Value;

int64_t leading(llvm::ArrayRef<int64_t> shape) { return elementCount(shape.drop_back()); }

Work workOf(MatmulOp op) {
  MatmulDims dims = *MatmulDims::of(op);
  return {{{elementCount(dims.batch), elementCount(dims.rows), elementCount(dims.columns),
            elementCount(dims.sum)}},
          std::nullopt};
}

Work workOf(LinearOp op) {
  llvm::ArrayRef<int64_t> input = shapeOf(op.getInput());
  return {{{1, leading(input), op.getType().getShape().back(), input.back()}}, std::nullopt};
}

Work workOf(LinearWeightGradOp op) {
  llvm::ArrayRef<int64_t> input = shapeOf(op.getInput());
  return {{{1, input.back(), shapeOf(op.getCotangent()).back(), leading(input)}}, std::nullopt};
}

Work workOf(LinearAddOp op) {
  llvm::ArrayRef<int64_t> input = shapeOf(op.getInput());
  return {{{1, leading(input), op.getType().getShape().back(), input.back()}}, std::nullopt};
}

Work workOf(LinearWeightGradAddOp op) {
  llvm::ArrayRef<int64_t> input = shapeOf(op.getInput());
  return {{{1, input.back(), shapeOf(op.getCotangent()).back(), leading(input)}}, std::nullopt};
}

Work workOf(LinearActivationOp op) {
  llvm::ArrayRef<int64_t> input = shapeOf(op.getInput());
  return {{{1, leading(input), shapeOf(op.getResult()).back(), input.back()}}, std::nullopt};
}

Work workOf(LinearActivationGradOp op) {
  llvm::ArrayRef<int64_t> cotangent = shapeOf(op.getCotangent());
  return {{{1, leading(cotangent), op.getType().getShape().back(), cotangent.back()}},
          std::nullopt};
}

Work workOf(LinearGradsOp op) {
  llvm::ArrayRef<int64_t> input = shapeOf(op.getInput());
  return {{{1, input.back(), shapeOf(op.getCotangent()).back(), leading(input)}}, std::nullopt};
}

// As if rows chose their experts evenly: as many products as experts are chosen then.
Work expertWork(int64_t choices, int64_t experts, int64_t allExperts, int64_t columns,
                int64_t depth) {
  const int64_t all = std::max<int64_t>(allExperts == 0 ? experts : allExperts, 1);
  const int64_t count = std::min(experts, std::max<int64_t>(choices, 1));
  const double rows = static_cast<double>(choices) * experts / all / std::max<int64_t>(count, 1);
  return {{{count, static_cast<int64_t>(std::ceil(rows)), columns, depth}}, std::nullopt};
}

Work workOf(ExpertLinearOp op) {
  return expertWork(elementCount(shapeOf(op.getChoice())), shapeOf(op.getWeight())[0],
                    op.getExperts(), op.getType().getShape().back(), shapeOf(op.getInput()).back());
}

template <typename Op>
Work expertGradWork(Op op) {
  Work work =
      expertWork(elementCount(shapeOf(op.getChoice())), op.getType().getShape()[0], op.getExperts(),
                 shapeOf(op.getCotangent()).back(), shapeOf(op.getInput()).back());
  std::swap(work.products[0].rows, work.products[0].depth);
  return work;
}
Work workOf(ExpertLinearWeightGradOp op) { return expertGradWork(op); }
Work workOf(ExpertLinearWeightGradAddOp op) { return expertGradWork(op); }

// Shapes of a convolution's weight and of its result, [b, o, e..]. As a product of patches.
MatrixProduct convProduct(llvm::ArrayRef<int64_t> weight, llvm::ArrayRef<int64_t> result,
                          int64_t groups) {
  return {groups, boundedProduct({result[0], elementCount(result.drop_front(2))}),
          weight[0] / groups, elementCount(weight.drop_front())};
}

Work workOf(ConvOp op) {
  return {{convProduct(shapeOf(op.getWeight()), op.getType().getShape(), op.getGroup())},
          std::nullopt};
}

Work workOf(ConvInputGradOp op) {
  MatrixProduct product =
      convProduct(shapeOf(op.getWeight()), shapeOf(op.getCotangent()), op.getGroup());
  std::swap(product.columns, product.depth);
  return {{product}, std::nullopt};
}

Work workOf(ConvWeightGradOp op) {
  MatrixProduct product =
      convProduct(op.getType().getShape(), shapeOf(op.getCotangent()), op.getGroup());
  std::swap(product.rows, product.depth);
  return {{product}, std::nullopt};
}

template <typename Op>
AttentionWork attentionWork(Op op) {
  const int head = op.getSequenceFirst() ? 2 : 1, row = 3 - head;
  llvm::ArrayRef<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey());
  AttentionWork work;
  work.batch = query[0];
  work.heads = query[head];
  work.queries = query[row];
  work.groups = key[head];
  work.keys = key[row];
  work.depth = query[3];
  work.valueDepth = shapeOf(op.getValue())[3];
  work.isCausal = op.getCausal();
  work.window = op.getWindow();
  return work;
}

Work workOf(AttentionOp op) { return {{}, attentionWork(op)}; }

Work workOf(AttentionGradOp op) {
  AttentionWork work = attentionWork(op);
  work.isGradient = true;
  return {{}, work};
}

// What is read of each state and written into it, as if all of them were there at once.
Work workOf(DeltaScanOp op) {
  llvm::ArrayRef<int64_t> values = shapeOf(op.getValues());
  const int64_t chunks = elementCount(values.drop_back(2)), keys = shapeOf(op.getReadKeys()).back();
  const int64_t positions = values[values.size() - 2];
  return {{{chunks, positions, values.back(), keys}, {chunks, keys, values.back(), positions}},
          std::nullopt};
}

// The product that gives the logits.
template <typename Op>
MatrixProduct logitsProduct(Op op) {
  llvm::ArrayRef<int64_t> input = shapeOf(op.getInput()), weight = shapeOf(op.getWeight());
  return {1, leading(input), weight[op.getTransposeWeight() ? 0 : 1], input.back()};
}

Work workOf(LinearCrossEntropyOp op) { return {{logitsProduct(op)}, std::nullopt}; }
Work workOf(LinearLogsumexpOp op) { return {{logitsProduct(op)}, std::nullopt}; }

// The logits again, and the cotangents of the input and, where wanted, of the weight.
Work workOf(LinearCrossEntropyGradOp op) {
  const MatrixProduct logits = logitsProduct(op);
  Work work{{logits, {1, logits.rows, logits.depth, logits.columns}}, std::nullopt};
  if (op.getCotangents().size() > 1) {
    work.products.push_back({1, logits.depth, logits.columns, logits.rows});
  }
  return work;
}

// One of the tensors that are multiplied; others of an op may be wider.
template <typename Op>
Value multiplied(Op op) {
  return op.getInput();
}
Value multiplied(MatmulOp op) { return op.getLhs(); }
Value multiplied(DeltaScanOp op) { return op.getValues(); }
Value multiplied(ConvInputGradOp op) { return op.getCotangent(); }
Value multiplied(LinearActivationGradOp op) { return op.getCotangent(); }
Value multiplied(AttentionOp op) { return op.getQuery(); }
Value multiplied(AttentionGradOp op) { return op.getQuery(); }

template <typename Op>
struct Model : WorkOpInterface::ExternalModel<Model<Op>, Op> {
  Work getWork(mlir::Operation* op) const {
    Work work = workOf(llvm::cast<Op>(op));
    work.operandType = mlir::getElementTypeOrSelf(multiplied(llvm::cast<Op>(op)));
    return work;
  }
};

template <typename... Ops>
void attach(mlir::MLIRContext& context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}

}  // namespace

void attachWork(mlir::Dialect& dialect) {
  attach<MatmulOp, LinearOp, LinearWeightGradOp, ExpertLinearOp, ExpertLinearWeightGradOp, ConvOp,
         ConvInputGradOp, ConvWeightGradOp, AttentionOp, AttentionGradOp, LinearAddOp,
         LinearWeightGradAddOp, LinearActivationOp, LinearActivationGradOp, LinearGradsOp,
         ExpertLinearWeightGradAddOp, LinearCrossEntropyOp, LinearLogsumexpOp,
         LinearCrossEntropyGradOp, DeltaScanOp>(*dialect.getContext());
}

}  // namespace oriel::ir
