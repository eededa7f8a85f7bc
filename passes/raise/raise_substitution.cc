#include "passes/raise/passes.h"
#include "passes/raise/substitution.h"

namespace oriel {

#define GEN_PASS_DEF_RAISESUBSTITUTION
#include "passes/raise/passes.h.inc"

namespace {

using mlir::Value;

// X = B ± B X solves (1 ∓ B) X = B; of the matrix only what is below the diagonal counts.
void raise(Substitution substitution) {
  const mlir::Location loc = substitution.result.getLoc();
  mlir::OpBuilder builder(substitution.result.getDefiningOp());
  Value matrix = substitution.base;
  if (!substitution.negative) {
    auto negative = matrix.getDefiningOp<ir::NegOp>();
    matrix = negative ? negative.getInput() : ir::NegOp::create(builder, loc, matrix).getResult();
  }
  Value solution = ir::TriangularSolveOp::create(builder, loc, matrix, substitution.base,
                                                 /*upper=*/false, /*transpose=*/false,
                                                 /*unit_diagonal=*/true);
  substitution.result.replaceAllUsesWith(solution);
}

struct RaiseSubstitution : impl::RaiseSubstitutionBase<RaiseSubstitution> {
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    for (const Substitution& substitution : findSubstitutions(getOperation().getBody().front())) {
      raise(substitution);
    }
  }
};

}  // namespace

}  // namespace oriel
