#include "passes/raise/substitution.h"

#include <map>

#include "ir/oriel/inference.h"
#include "ir/oriel/matmul_dims.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "passes/raise/constant_zeros.h"
#include "passes/raise/dim_roles.h"
#include "passes/raise/substitution_terms.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;
using Element = SubstitutionTerms::Element;
using Ints = llvm::SmallVector<int64_t>;

// What a value has of a base: dimensions that number the base's matrices, and between them others,
// along which elements of one matrix lie.
struct Elements {
  DimRoles roles;               // the base's dimension, or kFeatureDim; sizes of 1 are the latter
  Ints sizes;                   // of the other dimensions, in their order
  std::vector<Element> values;  // row-major over these
};

// Row-major positions of a box, one after the other: of each the offset by strides.
template <typename Visit>
void forEach(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides, int64_t offset,
             const Visit& visit) {
  if (sizes.empty()) return visit(offset);
  for (int64_t i = 0; i < sizes.front(); ++i) {
    forEach(sizes.drop_front(), strides.drop_front(), offset + i * strides.front(), visit);
  }
}

// Follows the elements of one base through what is computed of them.
class Follower {
 public:
  explicit Follower(Value base) : base_(base), rows_(shapeOf(base).back()), terms_(rows_) {
    Elements elements;
    elements.roles = baseRoles();
    elements.sizes = featureSizes(elements.roles, shapeOf(base));
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t column = 0; column < rows_; ++column) {
        elements.values.push_back(column < row ? terms_.base(row, column)
                                               : SubstitutionTerms::kZero);
      }
    }
    remember(base, std::move(elements));
  }

  std::optional<Substitution> find() {
    for (Operation* op = base_.getDefiningOp()->getNextNode(); op && !known_.empty();
         op = op->getNextNode()) {
      if (op->getNumResults() == 1) {
        if (std::optional<Elements> elements = follow(op)) {
          if (isResult(*elements, op->getResult(0))) {
            return Substitution{base_, op->getResult(0), terms_.sign() < 0};
          }
          remember(op->getResult(0), std::move(*elements));
        }
      }
      for (Value operand : op->getOperands()) forget(operand);
    }
    return std::nullopt;
  }

 private:
  struct Known {
    Elements elements;
    int64_t uses;  // that are still to come
  };

  // Of a value with the base's dimensions.
  DimRoles baseRoles() const {
    DimRoles roles;
    for (auto [dim, size] : llvm::enumerate(shapeOf(base_).drop_back(2))) {
      roles.push_back(size == 1 ? kFeatureDim : static_cast<int>(dim));
    }
    roles.append(2, kFeatureDim);
    return roles;
  }

  // Sizes of 1 before the matrices are there, too.
  bool isResult(const Elements& elements, Value value) const {
    if (value.getType() != base_.getType() || elements.roles != baseRoles()) return false;
    for (auto [i, element] : llvm::enumerate(elements.values)) {
      const auto at = static_cast<int64_t>(i);
      if (!terms_.isResult(element, at / rows_, at % rows_)) return false;
    }
    return terms_.sign() != 0;
  }

  // All elements are kept only as long as they are needed.
  void remember(Value value, Elements elements) {
    const auto uses = std::distance(value.use_begin(), value.use_end());
    if (uses > 0) known_.insert({value, {std::move(elements), uses}});
  }
  void forget(Value value) {
    auto known = known_.find(value);
    if (known != known_.end() && --known->second.uses == 0) known_.erase(known);
  }
  const Elements* of(Value value) const {
    auto known = known_.find(value);
    return known == known_.end() ? nullptr : &known->second.elements;
  }

  std::optional<Elements> follow(Operation* op) {
    if (op->getNumOperands() == 0) return std::nullopt;
    auto gather = llvm::dyn_cast<ir::GatherOp>(op);
    for (Value operand : op->getOperands()) {
      if (!of(operand) && !(gather && operand == gather.getIndices())) return std::nullopt;
    }
    return llvm::TypeSwitch<Operation*, std::optional<Elements>>(op)
        .Case<ir::AddOp>([&](ir::AddOp add) {
          return pointwise(add, [&](Element a, Element b) { return terms_.sum({a, b}); });
        })
        .Case<ir::SubOp>([&](ir::SubOp sub) {
          return pointwise(sub, [&](Element a, Element b) {
            return terms_.sum({a, terms_.negative(b)});
          });
        })
        .Case<ir::MulOp>([&](ir::MulOp mul) {
          return pointwise(mul, [&](Element a, Element b) { return terms_.product(a, b); });
        })
        .Case<ir::NegOp>([&](ir::NegOp neg) {
          Elements elements = *of(neg.getInput());
          for (Element& value : elements.values) value = terms_.negative(value);
          return std::optional(std::move(elements));
        })
        .Case<ir::ReduceSumOp, ir::MatmulOp, ir::SliceOp, ir::GatherOp, ir::ConcatOp,
              ir::TransposeOp, ir::ReshapeOp, ir::BroadcastOp>(
            [&](auto moved) { return followed(moved); })
        .Default([](Operation*) { return std::nullopt; });
  }

  // Sizes of the value's dimensions that no matrices are along.
  static Ints featureSizes(const DimRoles& roles, llvm::ArrayRef<int64_t> sizes) {
    Ints result;
    for (auto [role, size] : llvm::zip_equal(roles, sizes)) {
      if (role == kFeatureDim) result.push_back(size);
    }
    return result;
  }
  // Places of these dimensions.
  static Ints featureDims(const DimRoles& roles) {
    Ints result;
    for (auto [dim, role] : llvm::enumerate(roles)) {
      if (role == kFeatureDim) result.push_back(static_cast<int64_t>(dim));
    }
    return result;
  }

  // The elements seen in a value of these dimensions, aligned at the last, that repeats them.
  static std::optional<std::vector<Element>> repeated(const Elements& from, const DimRoles& roles,
                                                      llvm::ArrayRef<int64_t> sizes) {
    const size_t more = roles.size() - from.roles.size();
    const Ints own = mlir::computeSuffixProduct(from.sizes);
    Ints strides;
    size_t feature = 0;
    for (auto [dim, role] : llvm::enumerate(roles)) {
      const bool has = dim >= more;
      const int given = has ? from.roles[dim - more] : kFeatureDim;
      const bool repeats = !has || (given == kFeatureDim && from.sizes[feature] == 1);
      if (given != role && !repeats) return std::nullopt;
      if (role == kFeatureDim) strides.push_back(repeats ? 0 : own[feature]);
      if (has && given == kFeatureDim) ++feature;
    }
    std::vector<Element> values;
    forEach(featureSizes(roles, sizes), strides, 0,
            [&](int64_t at) { values.push_back(from.values[at]); });
    return values;
  }

  template <typename Op, typename Combine>
  std::optional<Elements> pointwise(Op op, const Combine& combine) {
    const Elements &left = *of(op.getLhs()), &right = *of(op.getRhs());
    llvm::ArrayRef<int64_t> sizes = shapeOf(op);
    // Every value has all dimensions that number matrices: they must meet.
    const Elements& wide = left.roles.size() >= right.roles.size() ? left : right;
    Elements result;
    result.roles = wide.roles;
    result.sizes = featureSizes(result.roles, sizes);
    auto a = repeated(left, result.roles, sizes), b = repeated(right, result.roles, sizes);
    if (!a || !b) return std::nullopt;
    for (auto [x, y] : llvm::zip_equal(*a, *b)) {
      std::optional<Element> value = combine(x, y);
      if (!value) return std::nullopt;
      result.values.push_back(*value);
    }
    return result;
  }

  std::optional<Elements> followed(ir::ReduceSumOp op) {
    const Elements& from = *of(op.getInput());
    const Ints strides = mlir::computeSuffixProduct(from.sizes);
    Elements result;
    Ints keptStrides, summed, summedStrides;
    size_t feature = 0;
    for (auto [dim, role] : llvm::enumerate(from.roles)) {
      const bool isSummed = llvm::is_contained(op.getDims(), static_cast<int64_t>(dim));
      if (role != kFeatureDim) {
        if (isSummed) return std::nullopt;
        result.roles.push_back(role);
        continue;
      }
      if (isSummed) {
        summed.push_back(from.sizes[feature]);
        summedStrides.push_back(strides[feature]);
      }
      if (!isSummed || op.getKeepDims()) {
        result.roles.push_back(kFeatureDim);
        result.sizes.push_back(isSummed ? 1 : from.sizes[feature]);
        keptStrides.push_back(isSummed ? 0 : strides[feature]);
      }
      ++feature;
    }
    bool isKnown = true;
    forEach(result.sizes, keptStrides, 0, [&](int64_t at) {
      std::vector<Element> summands;
      forEach(summed, summedStrides, at, [&](int64_t i) { summands.push_back(from.values[i]); });
      std::optional<Element> sum = terms_.sum(summands);
      isKnown = isKnown && sum;
      result.values.push_back(sum.value_or(SubstitutionTerms::kZero));
    });
    return isKnown ? std::optional(std::move(result)) : std::nullopt;
  }

  // Of matrices whose leading dimensions number those of the base.
  std::optional<Elements> followed(ir::MatmulOp op) {
    const Elements &left = *of(op.getLhs()), &right = *of(op.getRhs());
    if (op.getRowDims() != 1 || op.getSumDims() != 1 || op.getColumnDims() != 1) {
      return std::nullopt;
    }
    const size_t batch = left.roles.size() - 2;
    llvm::ArrayRef<int64_t> sizes = shapeOf(op);
    for (auto [dim, role] : llvm::enumerate(left.roles)) {
      const bool isSame = role == right.roles[dim];
      const bool numbers = role != kFeatureDim || (dim < batch && sizes[dim] == 1);
      if (!isSame || numbers != (dim < batch)) return std::nullopt;
    }
    const ir::MatmulDims dims = *ir::MatmulDims::of(op);
    const int64_t rows = dims.rows[0], depth = dims.sum[0], columns = dims.columns[0];
    Elements result;
    result.roles = left.roles;
    result.sizes = featureSizes(result.roles, sizes);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        std::vector<Element> summands;
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t a = op.getTransposeLhs() ? k * rows + row : row * depth + k;
          const int64_t b = op.getTransposeRhs() ? column * depth + k : k * columns + column;
          std::optional<Element> product = terms_.product(left.values[a], right.values[b]);
          if (!product) return std::nullopt;
          summands.push_back(*product);
        }
        std::optional<Element> sum = terms_.sum(summands);
        if (!sum) return std::nullopt;
        result.values.push_back(*sum);
      }
    }
    return result;
  }

  std::optional<Elements> followed(ir::SliceOp op) {
    const Elements& from = *of(op.getInput());
    Ints strides = mlir::computeSuffixProduct(from.sizes);
    int64_t first = 0;
    size_t feature = 0;
    for (auto [dim, role] : llvm::enumerate(from.roles)) {
      if (role != kFeatureDim) {
        if (shapeOf(op)[dim] != shapeOf(op.getInput())[dim]) return std::nullopt;
        continue;
      }
      first += op.getStarts()[dim] * strides[feature];
      strides[feature++] *= op.getStrides()[dim];
    }
    Elements result;
    result.roles = from.roles;
    result.sizes = featureSizes(result.roles, shapeOf(op));
    forEach(result.sizes, strides, first,
            [&](int64_t at) { result.values.push_back(from.values[at]); });
    return result;
  }

  // One row or column, by a constant.
  std::optional<Elements> followed(ir::GatherOp op) {
    const Elements* from = of(op.getInput());
    const auto dim = static_cast<int64_t>(op.getDim());
    std::optional<int64_t> row = knownRow(op);
    if (!from || !row || from->roles[dim] != kFeatureDim || !shapeOf(op.getIndices()).empty()) {
      return std::nullopt;
    }
    const Ints dims = featureDims(from->roles);
    const auto feature = llvm::find(dims, dim) - dims.begin();
    Ints strides = mlir::computeSuffixProduct(from->sizes);
    const int64_t first = *row * strides[feature];
    strides.erase(strides.begin() + feature);
    Elements result;
    result.roles = from->roles;
    result.roles.erase(result.roles.begin() + dim);
    result.sizes = featureSizes(result.roles, shapeOf(op));
    forEach(result.sizes, strides, first,
            [&](int64_t i) { result.values.push_back(from->values[i]); });
    return result;
  }

  std::optional<Elements> followed(ir::ConcatOp op) {
    const auto dim = static_cast<int64_t>(op.getDim());
    Elements result;
    result.roles = of(op.getInputs()[0])->roles;
    if (result.roles[dim] != kFeatureDim) return std::nullopt;
    result.sizes = featureSizes(result.roles, shapeOf(op));
    // Seen as [outer, size, inner]: each operand brings a stretch of each outer one.
    int64_t outer = 1;
    for (int64_t before : featureDims(result.roles)) {
      if (before < dim) outer *= shapeOf(op)[before];
    }
    for (Value input : op.getInputs()) {
      if (of(input)->roles != result.roles) return std::nullopt;
    }
    for (int64_t i = 0; i < outer; ++i) {
      for (Value input : op.getInputs()) {
        const std::vector<Element>& values = of(input)->values;
        const auto stretch = static_cast<int64_t>(values.size()) / outer;
        result.values.insert(result.values.end(), values.begin() + i * stretch,
                             values.begin() + (i + 1) * stretch);
      }
    }
    return result;
  }

  std::optional<Elements> followed(ir::TransposeOp op) {
    const Elements& from = *of(op.getInput());
    const Ints dims = featureDims(from.roles), own = mlir::computeSuffixProduct(from.sizes);
    Elements result;
    Ints strides;
    for (int64_t dim : op.getPermutation()) {
      result.roles.push_back(from.roles[dim]);
      if (from.roles[dim] != kFeatureDim) continue;
      const auto feature = llvm::find(dims, dim) - dims.begin();
      result.sizes.push_back(from.sizes[feature]);
      strides.push_back(own[feature]);
    }
    forEach(result.sizes, strides, 0,
            [&](int64_t at) { result.values.push_back(from.values[at]); });
    return result;
  }

  std::optional<Elements> followed(ir::ReshapeOp op) {
    Elements result = *of(op.getInput());
    std::optional<DimRoles> roles = rolesBehind(op, result.roles);
    if (!roles) return std::nullopt;
    result.roles = std::move(*roles);
    result.sizes = featureSizes(result.roles, shapeOf(op));
    return result;
  }

  std::optional<Elements> followed(ir::BroadcastOp op) {
    const Elements& from = *of(op.getInput());
    Elements result;
    result.roles = DimRoles(op.getType().getRank() - from.roles.size(), kFeatureDim);
    llvm::append_range(result.roles, from.roles);
    result.sizes = featureSizes(result.roles, shapeOf(op));
    auto values = repeated(from, result.roles, shapeOf(op));
    if (!values) return std::nullopt;
    result.values = std::move(*values);
    return result;
  }

  const Value base_;
  const int64_t rows_;
  SubstitutionTerms terms_;
  llvm::DenseMap<Value, Known> known_;
};

// Square matrices, 0 on and above the diagonal.
class Bases {
 public:
  bool has(Value value) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
    if (!type || type.getRank() < 2 || !llvm::isa<mlir::FloatType>(type.getElementType())) {
      return false;
    }
    llvm::ArrayRef<int64_t> sizes = type.getShape();
    const int64_t rows = sizes.back();
    if (rows != sizes[sizes.size() - 2] || rows < 3 || rows > SubstitutionTerms::kMaxRows) {
      return false;
    }
    // Of all values in order: each knows its operands'.
    const std::vector<bool> zeros = zeros_.try_emplace(rows, rows).first->second.of(value);
    // Of what is only negated or masked, say, the result is the base.
    auto passesOn = [](Operation* user) {
      return llvm::isa<ir::NegOp, ir::CastOp, ir::MulOp, ir::DivOp, ir::SelectOp, ir::ReshapeOp>(
          user);
    };
    return !llvm::all_of(value.getUsers(), passesOn) && isStrictlyLower(zeros, rows);
  }

 private:
  static bool isStrictlyLower(const std::vector<bool>& zeros, int64_t rows) {
    if (zeros.empty()) return false;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = row; column < rows; ++column) {
        if (!zeros[row * rows + column]) return false;
      }
    }
    return true;
  }

  std::map<int64_t, ConstantZeros> zeros_;  // by rows
};

}  // namespace

llvm::SmallVector<Substitution> findSubstitutions(mlir::Block& block) {
  llvm::SmallVector<Substitution> found;
  Bases bases;
  for (Operation& op : block) {
    if (op.getNumResults() != 1 || !bases.has(op.getResult(0))) continue;
    if (auto substitution = Follower(op.getResult(0)).find()) found.push_back(*substitution);
  }
  return found;
}

}  // namespace oriel
