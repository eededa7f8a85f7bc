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

// Fewer experts for each row than this share are worth their products one by one.
constexpr int64_t kLeastShare = 2;

// A sum over experts of what is 0 for those that a row does not choose.
struct ExpertSum {
  Operation* op;
  Value summed;    // its operand
  DimRoles roles;  // of the operand
};

// Follows gates to the sums over experts that they end in: through what is 0 where they are.
class SumFinder {
 public:
  // Adds gates with other rows, for what is behind them.
  SumFinder(const ExpertGates& gates, llvm::SmallVector<ExpertGates>& others)
      : gates_(gates), others_(others) {}

  llvm::SmallVector<ExpertSum> find() {
    follow(gates_.value, gates_.roles);
    return std::move(sums_);
  }

 private:
  void follow(Value value, const DimRoles& roles) {
    if (!seen_.insert(value).second) return;
    for (mlir::OpOperand& use : value.getUses()) followInto(use, roles);
  }

  void followInto(mlir::OpOperand& use, const DimRoles& roles) {
    Operation* op = use.getOwner();
    const unsigned operand = use.getOperandNumber();
    if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(op)) {
      if (auto behind = rolesBehind(reshape, roles)) return follow(reshape, *behind);
      if (auto regrouped = regroupRows(gates_, roles, reshape)) {
        others_.push_back(std::move(*regrouped));
        return;
      }
      return followMerged(reshape, roles);
    }
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(op)) {
      DimRoles behind;
      for (int64_t dim : transpose.getPermutation()) behind.push_back(roles[dim]);
      return follow(transpose, behind);
    }
    if (auto sum = llvm::dyn_cast<ir::ReduceSumOp>(op)) {
      if (sum.getDims().size() == 1 && roles[sum.getDims().front()] == kExpertDim) {
        sums_.push_back({op, sum.getInput(), roles});
      }
      return;
    }
    if (auto matmul = llvm::dyn_cast<ir::MatmulOp>(op)) return followProduct(matmul, use, roles);
    // 0 times anything, over anything, and in another type.
    const bool vanishes = llvm::isa<ir::MulOp, ir::CastOp, ir::BroadcastOp>(op) ||
                          (llvm::isa<ir::DivOp>(op) && operand == 0);
    if (!vanishes) return;
    const int64_t rank = tensorType(op->getResult(0)).getRank();
    DimRoles behind(rank - static_cast<int64_t>(roles.size()), kFeatureDim);
    llvm::append_range(behind, roles);
    follow(op->getResult(0), behind);
  }

  // Experts merged with features, which a linear layer sums over.
  void followMerged(ir::ReshapeOp reshape, const DimRoles& roles) {
    llvm::ArrayRef<int64_t> from = tensorType(reshape.getInput()).getShape();
    llvm::ArrayRef<int64_t> to = reshape.getType().getShape();
    const auto expert = llvm::find(roles, kExpertDim) - roles.begin();
    bool isFirst = true;
    for (auto [role, size] :
         llvm::zip_equal(llvm::ArrayRef(roles).take_front(expert), from.take_front(expert))) {
      isFirst &= role >= 0 || size == 1;
    }
    const bool merges = llvm::all_of(llvm::ArrayRef(roles).drop_front(expert + 1),
                                     [](int role) { return role == kFeatureDim; });
    if (!isFirst || !merges || to.empty()) return;
    int64_t columns = 1;
    for (int64_t size : from.drop_front(expert)) columns *= size;
    if (to.back() != columns) return;
    for (Operation* user : reshape->getUsers()) {
      auto linear = llvm::dyn_cast<ir::LinearOp>(user);
      if (linear && linear.getInput() == reshape.getResult()) {
        sums_.push_back({linear, reshape.getInput(), roles});
      }
    }
  }

  // A product with a matrix for each expert goes on; one that sums over them ends here.
  void followProduct(ir::MatmulOp op, mlir::OpOperand& use, const DimRoles& roles) {
    const int64_t m = static_cast<int64_t>(op.getRowDims()), n = op.getColumnDims(),
                  sum = op.getSumDims();
    const int64_t batch = op.getType().getRank() - m - n;
    const bool isLeft = use.getOperandNumber() == 0;
    const bool sumIsFirst = isLeft ? op.getTransposeLhs() : !op.getTransposeRhs();
    const int64_t own = isLeft ? m : n;
    llvm::ArrayRef<int> all(roles);
    llvm::ArrayRef<int> ownRoles = sumIsFirst ? all.take_back(own) : all.slice(batch, own);
    llvm::ArrayRef<int> sumRoles = sumIsFirst ? all.slice(batch, sum) : all.take_back(sum);
    if (llvm::any_of(sumRoles, [](int role) { return role != kFeatureDim; })) {
      // Rows are batches: the gates' row times what is for each expert.
      sums_.push_back({op, use.get(), roles});
      return;
    }
    DimRoles behind(all.take_front(batch));
    if (isLeft) llvm::append_range(behind, ownRoles);
    behind.append(isLeft ? n : m, kFeatureDim);
    if (!isLeft) llvm::append_range(behind, ownRoles);
    follow(op, behind);
  }

  const ExpertGates& gates_;
  llvm::SmallVector<ExpertGates>& others_;
  llvm::DenseSet<Value> seen_;
  llvm::SmallVector<ExpertSum> sums_;
};

class SumRaiser {
 public:
  SumRaiser(const ExpertGates& gates, const ExpertSum& sum)
      : gates_(gates),
        sum_(sum),
        region_(gates, mlir::OpBuilder(sum.op)),
        rowRank_(static_cast<int64_t>(gates.rows.size())) {}

  bool run() {
    Value result = make();
    if (!result || !region_.hasProducts() || result.getType() != sum_.op->getResult(0).getType()) {
      region_.undo();
      return false;
    }
    sum_.op->getResult(0).replaceAllUsesWith(result);
    return true;
  }

 private:
  Value make() {
    if (auto linear = llvm::dyn_cast<ir::LinearOp>(sum_.op)) return ofLinear(linear);
    if (auto matmul = llvm::dyn_cast<ir::MatmulOp>(sum_.op)) return ofMatmul(matmul);
    Value few = region_.convert(sum_.summed, sum_.roles);
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
    llvm::ArrayRef<int64_t> shape = tensorType(sum_.op->getResult(0)).getShape();
    Ints permutation;
    int64_t feature = rowRank_;
    for (int role : sum_.roles) {
      if (role >= 0) permutation.push_back(role);
      if (role == kFeatureDim) permutation.push_back(feature++);
    }
    if (static_cast<int64_t>(permutation.size()) == tensorType(sum).getRank() &&
        !llvm::is_sorted(permutation)) {
      sum = region_.made(ir::TransposeOp::create(builder(), loc(), sum, permutation));
    }
    return reshapeTo(sum, shape);
  }

  Value reshapeTo(Value value, llvm::ArrayRef<int64_t> shape) {
    mlir::RankedTensorType type = tensorType(value);
    if (type.getShape() == shape) return value;
    if (type.getNumElements() != type.clone(shape).getNumElements()) return {};
    return region_.made(ir::ReshapeOp::create(builder(), loc(), type.clone(shape), value));
  }

  // Σ_e,f h[r.., e, f] w[e f, n]: the experts' products, and the sum over choices.
  Value ofLinear(ir::LinearOp op) {
    Value few = region_.convert(sum_.summed, sum_.roles);
    if (!few) return {};
    llvm::ArrayRef<int64_t> shape = tensorType(few).getShape();
    int64_t depth = 1;
    for (int64_t size : shape.drop_front(rowRank_ + 1)) depth *= size;
    const int64_t columns = op.getType().getShape().back();
    Ints rows(shape.take_front(rowRank_ + 1));
    rows.push_back(depth);
    few = reshapeTo(few, rows);
    // As stored: [e f, n], or [n, e f].
    Ints stored = {gates_.experts, depth, columns};
    Value weight = op.getWeight();
    if (op.getTransposeWeight()) {
      weight = reshapeTo(weight, Ints{columns, gates_.experts, depth});
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
    llvm::ArrayRef<int> given = sum_.roles;
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
    if ((isLeft ? left : right) != sum_.roles) return {};
    Value lhs = region_.convert(op.getLhs(), left), rhs = region_.convert(op.getRhs(), right);
    if (!lhs || !rhs) return {};
    // The features of the one that has some.
    auto flat = [&](Value few) {
      Ints shape(tensorType(few).getShape().take_front(rowRank_ + 1));
      int64_t features = 1;
      for (int64_t size : tensorType(few).getShape().drop_front(rowRank_ + 1)) features *= size;
      shape.push_back(features);
      return reshapeTo(few, shape);
    };
    // Batches in the rows' order.
    llvm::SmallVector<int> order;
    for (auto [role, size] : llvm::zip_equal(given.take_front(batch), dims.batch)) {
      if (role < 0 && size != 1) return {};
      if (role >= 0) order.push_back(role);
    }
    if (!llvm::is_sorted(order) || static_cast<int64_t>(order.size()) != rowRank_) return {};
    Value product = region_.made(ir::MulOp::create(builder(), loc(), flat(lhs), flat(rhs)));
    return reshapeTo(sumOverChoices(product), op.getType().getShape());
  }

  const ExpertGates& gates_;
  const ExpertSum& sum_;
  ExpertRegion region_;
  const int64_t rowRank_;
};

struct RaiseExperts : impl::RaiseExpertsBase<RaiseExperts> {
  void runOnOperation() override {
    llvm::SmallVector<ExpertGates> all;
    for (Operation& op : getOperation().getBody().front()) {
      if (op.getNumResults() != 1) continue;
      if (auto gates = matchExpertGates(op.getResult(0))) all.push_back(*gates);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const ExpertGates gates = all[i];
      if (kLeastShare * gates.choices > gates.experts) continue;
      // Rows of one can't be told from those of all.
      if (llvm::all_of(gates.rows, [](int64_t size) { return size == 1; })) continue;
      for (const ExpertSum& sum : SumFinder(gates, all).find()) {
        if (!sum.op->use_empty()) SumRaiser(gates, sum).run();
      }
    }
  }
};

}  // namespace

}  // namespace oriel
