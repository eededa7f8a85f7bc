// How the axes of a grid cut one op.
#ifndef ORIEL_PASSES_PROPAGATE_OP_SPLIT_H_
#define ORIEL_PASSES_PROPAGATE_OP_SPLIT_H_

#include <vector>

#include "ir/interfaces/interfaces.h"
#include "passes/strategize/sharding.h"

namespace oriel {

// The axes that cut each factor of an op's rule, outermost first, and the axes over which pending
// sums pass through it.
struct OpSplit {
  struct Pass {
    int axis;
    unsigned group;  // of the rule's linear groups
  };

  std::vector<AxisList> factors;
  llvm::SmallVector<Pass, 2> passes;

  // What the op takes and gives; its rule is for whole tensors.
  Sharding operand(const ir::ShardingRule& rule, unsigned index) const;
  Sharding result(const ir::ShardingRule& rule, unsigned index) const;
  // Into how many pieces each factor is cut.
  llvm::SmallVector<int64_t> pieces(const AxisSizes& sizes) const;
  bool cutsAny() const { return !cutting().empty(); }
  // The axes that cut factors, sorted.
  AxisList cutting() const;

  // The op's attribute `oriel.split`: a list of axes for each factor, then passes as [axis, group].
  mlir::Attribute toAttr(mlir::MLIRContext* context, const AxisSizes& sizes) const;
  // What toAttr wrote. Fails, without a diagnostic, on anything else.
  static mlir::FailureOr<OpSplit> fromAttr(mlir::Attribute attribute, const ir::ShardingRule& rule,
                                           const AxisSizes& sizes);

  friend bool operator==(const OpSplit& a, const OpSplit& b);
};

// A wish for how one tensor of an op is cut.
struct Proposal {
  const ir::TensorFactors* dims;
  Sharding sharding;  // pending axes don't count
};

// The cuts of factors that give each proposal as far as the ones before it let it.
std::vector<AxisList> combineProposals(const ir::ShardingRule& rule, const AxisSizes& sizes,
                                       llvm::ArrayRef<Proposal> proposals);

// Whether a proposal would cut a factor of this kind.
bool wouldCut(const ir::ShardingRule& rule, const AxisSizes& sizes, const Proposal& proposal,
              ir::FactorKind kind);

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_OP_SPLIT_H_
