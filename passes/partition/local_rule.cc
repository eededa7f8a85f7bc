#include "passes/partition/local_rule.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinTypes.h"

namespace oriel {

namespace {

using ir::FactorKind;
using ir::FactorList;
using ir::TensorFactors;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

llvm::StringRef kindName(FactorKind kind) {
  switch (kind) {
    case FactorKind::kParallel:
      return "parallel";
    case FactorKind::kSum:
      return "sum";
    case FactorKind::kMax:
      return "max";
    case FactorKind::kSteps:
      return "whole";
  }
  llvm_unreachable("all kinds are listed");
}

TensorFactors wholeDims(Value value) { return TensorFactors(ir::rankOf(value)); }

bool isCut(const TensorFactors& dims, const OpSplit& split) {
  return llvm::any_of(dims, [&](const FactorList& factors) {
    return llvm::any_of(factors, [&](int factor) { return !split.factors[factor].empty(); });
  });
}

// Describes the ops built for one op.
class Describer {
 public:
  Describer(mlir::ValueRange operands, const llvm::DenseMap<Value, int>& firsts,
            const ir::ShardingRule& rule, const OpSplit& split, const AxisSizes& sizes)
      : operands_(operands), firsts_(firsts), rule_(rule), split_(split), sizes_(sizes) {
    for (auto [operand, dims] : llvm::zip_equal(operands, rule.operands)) {
      dims_.try_emplace(operand, dims);
    }
  }

  // An op that takes the operands as the global one does, and perhaps beginnings of pieces.
  bool takesOperands(Operation* op) const {
    return op->getNumOperands() >= operands_.size() &&
           llvm::equal(op->getOperands().take_front(operands_.size()), operands_);
  }

  void describeWhole(Operation* op) {
    LocalRule rule{rule_.factors, {}, rule_.results, rule_.linear};
    for (const TensorFactors& dims : rule_.operands) rule.operands.emplace_back(dims);
    for (Value extra : op->getOperands().drop_front(operands_.size())) {
      rule.operands.push_back(operandOf(extra));
    }
    bool first = op->getNumOperands() > operands_.size();
    if (first || split_.cutsAny() || !split_.passes.empty()) set(op, rule);
  }

  // A step of several; `last` makes the results.
  void describeStep(Operation* op, Operation* last) {
    LocalRule rule{rule_.factors, {}, {}, {}};
    bool pieces = false;
    for (Value operand : op->getOperands()) {
      rule.operands.push_back(operandOf(operand));
      const auto* dims = std::get_if<TensorFactors>(&rule.operands.back());
      pieces |= !dims || isCut(*dims, split_);
    }
    if (!pieces) return;
    llvm::SmallVector<mlir::Attribute> shardings;
    for (Value result : op->getResults()) {
      TensorFactors dims = wholeDims(result);
      for (auto [own, made] : llvm::zip_equal(rule_.results, last->getResultTypes())) {
        auto type = ir::tensorType(result);
        if (llvm::cast<RankedTensorType>(made).getShape() == type.getShape()) dims = own;
      }
      dims_[result] = dims;
      rule.results.push_back(dims);
      Sharding sharding;
      for (const FactorList& factors : dims) {
        AxisList& axes = sharding.dims.emplace_back();
        for (int factor : factors) axes.append(split_.factors[factor]);
      }
      shardings.push_back(sizes_.toAttr(op->getContext(), sharding));
    }
    op->setAttr(ir::kShardingsAttr, mlir::ArrayAttr::get(op->getContext(), shardings));
    set(op, rule);
  }

 private:
  LocalOperand operandOf(Value value) const {
    if (auto first = firsts_.find(value); first != firsts_.end()) return FirstOf{first->second};
    auto dims = dims_.find(value);
    return dims == dims_.end() ? wholeDims(value) : dims->second;
  }

  void set(Operation* op, const LocalRule& rule) const {
    op->setAttr(kRuleAttr, rule.toAttr(op->getContext()));
    op->setAttr(kSplitAttr, OpSplit{split_.factors, {}}.toAttr(op->getContext(), sizes_));
  }

  mlir::ValueRange operands_;
  const llvm::DenseMap<Value, int>& firsts_;
  const ir::ShardingRule& rule_;
  const OpSplit& split_;
  const AxisSizes& sizes_;
  llvm::DenseMap<Value, TensorFactors> dims_;
};

}  // namespace

mlir::DictionaryAttr LocalRule::toAttr(mlir::MLIRContext* context) const {
  mlir::Builder builder(context);
  auto tensor = [&](const TensorFactors& dims) -> mlir::Attribute {
    llvm::SmallVector<mlir::Attribute> lists;
    for (const FactorList& factors : dims) {
      lists.push_back(
          builder.getI64ArrayAttr(llvm::SmallVector<int64_t>(factors.begin(), factors.end())));
    }
    return builder.getArrayAttr(lists);
  };
  llvm::SmallVector<mlir::Attribute> factorList, operandList, resultList, linearList;
  for (const ir::Factor& factor : factors) {
    factorList.push_back(builder.getArrayAttr(
        {builder.getI64IntegerAttr(factor.size), builder.getStringAttr(kindName(factor.kind))}));
  }
  for (const LocalOperand& operand : operands) {
    const auto* first = std::get_if<FirstOf>(&operand);
    operandList.push_back(first ? builder.getI64IntegerAttr(first->factor)
                                : tensor(std::get<TensorFactors>(operand)));
  }
  for (const TensorFactors& result : results) resultList.push_back(tensor(result));
  for (const auto& group : linear) {
    linearList.push_back(
        builder.getI64ArrayAttr(llvm::SmallVector<int64_t>(group.begin(), group.end())));
  }
  auto named = [&](llvm::StringRef name, llvm::ArrayRef<mlir::Attribute> list) {
    return builder.getNamedAttr(name, builder.getArrayAttr(list));
  };
  return builder.getDictionaryAttr({named("factors", factorList), named("operands", operandList),
                                    named("results", resultList), named("linear", linearList)});
}

void describeLocalOps(llvm::ArrayRef<Operation*> ops, mlir::ValueRange operands,
                      const llvm::DenseMap<Value, int>& firsts, const ir::ShardingRule& rule,
                      const OpSplit& split, const AxisSizes& sizes) {
  Describer describer(operands, firsts, rule, split, sizes);
  for (Operation* op : ops) {
    if (op->hasTrait<mlir::OpTrait::ConstantLike>()) continue;
    if (op == ops.back() && describer.takesOperands(op)) {
      describer.describeWhole(op);
    } else {
      describer.describeStep(op, ops.back());
    }
  }
}

}  // namespace oriel
