#include "ir/oriel/matmul_dims.h"
#include "passes/raise/expert_region.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEEXPERTS
#include "passes/raise/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

// Puts the sum over the choices of a row in the place of one over all experts.
class SumRaiser {
 public:
  SumRaiser(const ExpertZeros& zeros, const ExpertSum& sum)
      : sum_(sum),
        known_(*zeros.of(sum.summed)),
        region_(zeros, known_.choices, mlir::OpBuilder(sum.op)),
        rowRank_(static_cast<int64_t>(known_.choices.rows.size())) {}

  void run() {
    Value result = make();
    if (!result || !region_.hasProducts() || result.getType() != sum_.op->getResult(0).getType()) {
      return region_.undo();
    }
    sum_.op->getResult(0).replaceAllUsesWith(result);
  }

 private:
  Value make() {
    if (auto linear = llvm::dyn_cast<ir::LinearOp>(sum_.op)) return ofLinear(linear);
    if (auto matmul = llvm::dyn_cast<ir::MatmulOp>(sum_.op)) return ofMatmul(matmul);
    Value few = region_.convert(sum_.summed, known_.roles);
    return few ? inPlace(sumOverChoices(few)) : Value();
  }

  mlir::Location loc() const { return sum_.op->getLoc(); }
  mlir::OpBuilder& builder() { return region_.builder(); }

  // [r.., k, f..] -> [r.., f..]
  Value sumOverChoices(Value few) {
    return region_.made(ir::ReduceSumOp::create(builder(), loc(), few, Ints{rowRank_}));
  }

  // Rows and features in the order of the operand's dimensions, as the sum has them.
  Value inPlace(Value sum) {
    llvm::ArrayRef<int64_t> shape = shapeOf(sum_.op->getResult(0));
    Ints permutation;
    int64_t feature = rowRank_;
    for (int role : known_.roles) {
      if (role >= 0) permutation.push_back(role);
      if (role == kFeatureDim) permutation.push_back(feature++);
    }
    if (static_cast<int64_t>(permutation.size()) != rankOf(sum)) return {};
    if (!llvm::is_sorted(permutation)) {
      sum = region_.made(ir::TransposeOp::create(builder(), loc(), sum, permutation));
    }
    return reshapeTo(sum, shape);
  }

  Value reshapeTo(Value value, llvm::ArrayRef<int64_t> shape) {
    if (tensorType(value).getNumElements() != ir::elementCount(shape)) return {};
    return region_.reshape(loc(), value, shape);
  }

  // Σ_e,f h[r.., e, f] w[e f, n]: the experts' products, and the sum over choices.
  Value ofLinear(ir::LinearOp op) {
    Value few = region_.convert(sum_.summed, known_.roles);
    if (!few) return {};
    llvm::ArrayRef<int64_t> shape = shapeOf(few);
    const int64_t depth = ir::elementCount(shape.drop_front(rowRank_ + 1)),
                  columns = op.getType().getShape().back();
    Ints rows(shape.take_front(rowRank_ + 1));
    rows.push_back(depth);
    few = reshapeTo(few, rows);
    // As stored: [e f, n], or [n, e f].
    Ints stored = {known_.choices.experts, depth, columns};
    Value weight = op.getWeight();
    if (op.getTransposeWeight()) {
      weight = reshapeTo(weight, Ints{columns, known_.choices.experts, depth});
      weight = region_.made(ir::TransposeOp::create(builder(), loc(), weight, Ints{1, 0, 2}));
    } else {
      weight = reshapeTo(weight, stored);
    }
    Value products = region_.multiply(loc(), few, weight, op.getTransposeWeight());
    if (!products) return {};
    Value sum = sumOverChoices(products);
    if (op.getBias()) {
      sum = region_.made(ir::AddOp::create(builder(), loc(), sum, op.getBias()));
    }
    return reshapeTo(sum, op.getType().getShape());
  }

  // Σ_e g[r.., m, e] h[r.., e, n], where rows are the batch: of one operand m or n are 1.
  Value ofMatmul(ir::MatmulOp op) {
    ir::MatmulDims dims = *ir::MatmulDims::of(op);
    if (op.getSumDims() != 1 || dims.batch.empty()) return {};
    auto isOne = [](llvm::ArrayRef<int64_t> sizes) {
      return llvm::all_of(sizes, [](int64_t size) { return size == 1; });
    };
    if (!isOne(dims.rows) && !isOne(dims.columns)) return {};
    const auto batch = static_cast<int64_t>(dims.batch.size());
    llvm::ArrayRef<int> given = known_.roles;
    const bool isLeft = sum_.summed == op.getLhs();
    auto rolesOf = [&](int64_t own, bool sumIsFirst) {
      DimRoles roles(given.take_front(batch));
      if (sumIsFirst) roles.push_back(kExpertDim);
      roles.append(own, kFeatureDim);
      if (!sumIsFirst) roles.push_back(kExpertDim);
      return roles;
    };
    const DimRoles left = rolesOf(op.getRowDims(), op.getTransposeLhs());
    const DimRoles right = rolesOf(op.getColumnDims(), !op.getTransposeRhs());
    if ((isLeft ? left : right) != known_.roles) return {};
    Value lhs = region_.convert(op.getLhs(), left), rhs = region_.convert(op.getRhs(), right);
    if (!lhs || !rhs) return {};
    // The features of the one that has some.
    auto flat = [&](Value few) {
      Ints shape(shapeOf(few).take_front(rowRank_ + 1));
      shape.push_back(ir::elementCount(shapeOf(few).drop_front(rowRank_ + 1)));
      return reshapeTo(few, shape);
    };
    // Batches in the rows' order.
    llvm::SmallVector<int> order;
    for (auto [role, size] : llvm::zip_equal(given.take_front(batch), dims.batch)) {
      if (role < 0 && size != 1) return {};
      if (role >= 0) order.push_back(role);
    }
    if (!llvm::is_sorted(order) || static_cast<int64_t>(order.size()) != rowRank_) return {};
    Value gated = region_.made(ir::MulOp::create(builder(), loc(), flat(lhs), flat(rhs)));
    return reshapeTo(sumOverChoices(gated), op.getType().getShape());
  }

  const ExpertSum& sum_;
  const ChosenOnly& known_;
  ExpertRegion region_;
  const int64_t rowRank_;
};

// Whether fewer products are worth it: half as many at most.
bool pays(const ChosenOnly& known) {
  return 2 * known.choices.count <= known.choices.experts &&
         !llvm::is_contained(known.roles, kChoiceDim);
}

struct RaiseExperts : impl::RaiseExpertsBase<RaiseExperts> {
  void runOnOperation() override {
    ExpertZeros zeros(getOperation());
    for (const ExpertSum& sum : zeros.sums()) {
      if (!sum.op->use_empty() && pays(*zeros.of(sum.summed))) SumRaiser(zeros, sum).run();
    }
  }
};

}  // namespace

}  // namespace oriel
