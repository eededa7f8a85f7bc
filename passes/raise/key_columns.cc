#include "passes/raise/key_columns.h"

#include <cmath>

#include "ir/interfaces/interfaces.h"
#include "ir/oriel/builders.h"

namespace oriel {

using mlir::Value;

namespace {

// Whether it is a product of matrices, moved and scaled perhaps. What hides keys, by numbers whose
// product with zeros is none, is not.
bool isProduct(Value value) {
  for (int depth = 0; depth < 16; ++depth) {
    mlir::Operation* op = value.getDefiningOp();
    if (llvm::isa_and_nonnull<ir::MatmulOp, ir::LinearOp>(op)) return true;
    if (llvm::isa_and_nonnull<ir::ReshapeOp, ir::TransposeOp, ir::SliceOp>(op)) {
      value = op->getOperand(0);
    } else if (auto scaled = matchScaled(value); scaled && std::abs(scaled->second) < 1e6) {
      value = scaled->first;
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace

std::optional<KeyColumns> KeyColumns::match(Value added, int64_t keys) {
  Value split = added;
  while (auto reshape = split.getDefiningOp<ir::ReshapeOp>()) split = reshape.getInput();
  if (!llvm::isa<mlir::FloatType>(elementOf(split)) || keys <= 0) {
    return std::nullopt;
  }
  KeyColumns columns;
  columns.leading_ = llvm::to_vector(shapeOf(split));
  int64_t behind = 1;
  while (!columns.leading_.empty() && behind < keys) {
    behind *= columns.leading_.back();
    columns.keyDims_.insert(columns.keyDims_.begin(), columns.leading_.pop_back_val());
  }
  if (behind != keys || columns.keyDims_.size() < 2 || !columns.addTerms(split)) {
    return std::nullopt;
  }
  return columns.count() < keys ? std::optional(columns) : std::nullopt;
}

bool KeyColumns::addTerms(Value value) {
  const size_t rank = leading_.size() + keyDims_.size();
  llvm::SmallVector<Value> values = {value};
  for (size_t i = 0; i < values.size(); ++i) {
    if (values.size() > 2 * keyDims_.size()) return false;
    if (auto add = values[i].getDefiningOp<ir::AddOp>()) {
      values.append({add.getLhs(), add.getRhs()});
      continue;
    }
    auto broadcast = values[i].getDefiningOp<ir::BroadcastOp>();
    Value core = broadcast ? Value(broadcast.getInput()) : values[i];
    if (!isProduct(core)) return false;
    Term term{core, llvm::to_vector(shapeOf(core))};
    term.shape.insert(term.shape.begin(), rank - term.shape.size(), 1);
    terms_.push_back(term);
  }
  return true;
}

std::pair<Value, Value> addColumns(mlir::PatternRewriter& rewriter, mlir::Location loc,
                                   Value queries, Value keys, llvm::ArrayRef<KeyColumns> columns,
                                   double scale) {
  llvm::ArrayRef<int64_t> ofQueries = shapeOf(queries);
  llvm::SmallVector<Value> query = {queries}, key = {keys};
  int64_t width = ofQueries.back();
  for (const KeyColumns& more : columns) {
    llvm::append_range(query, more.ofQueries(rewriter, loc, ofQueries.drop_back(), scale));
    llvm::SmallVector<int64_t> shape(shapeOf(keys));
    shape.back() = more.count();
    width += more.count();
    key.push_back(ir::BroadcastOp::create(rewriter, loc, tensorType(keys).clone(shape),
                                          more.ofKeys(rewriter, loc)));
  }
  // Kernels with tensor cores take multiples of 8.
  const int64_t rest = static_cast<int64_t>(llvm::alignTo(width, 8)) - width;
  if (ofQueries.back() % 8 == 0 && rest > 0) {
    auto zeros = [&](Value like) -> Value {
      llvm::SmallVector<int64_t> shape(shapeOf(like));
      shape.back() = rest;
      Value zero = ir::scalarConstant(rewriter, loc, 0.0, like);
      return ir::BroadcastOp::create(rewriter, loc, tensorType(like).clone(shape), zero);
    };
    query.push_back(zeros(queries));
    key.push_back(zeros(keys));
  }
  return {ir::ConcatOp::create(rewriter, loc, query, /*dim=*/3),
          ir::ConcatOp::create(rewriter, loc, key, /*dim=*/3)};
}

int64_t KeyColumns::count() const {
  int64_t count = 0;
  for (const Term& term : terms_) count += ir::elementCount(keyDims(term.shape));
  return count;
}

bool KeyColumns::isOf(int64_t rows) const { return ir::elementCount(leading_) == rows; }

llvm::SmallVector<Value> KeyColumns::ofQueries(mlir::PatternRewriter& rewriter, mlir::Location loc,
                                               llvm::ArrayRef<int64_t> leading,
                                               double scale) const {
  llvm::SmallVector<Value> columns;
  for (const Term& term : terms_) {
    Shape shape = leading_;
    llvm::append_range(shape, keyDims(term.shape));
    auto type = tensorType(term.value).clone(shape);
    Value all = term.value;
    if (all.getType() != type) all = ir::BroadcastOp::create(rewriter, loc, type, all);
    all = ir::MulOp::create(rewriter, loc, all, ir::scalarConstant(rewriter, loc, 1 / scale, all));
    shape.assign(leading.begin(), leading.end());
    shape.push_back(ir::elementCount(keyDims(term.shape)));
    columns.push_back(ir::ReshapeOp::create(rewriter, loc, type.clone(shape), all));
  }
  return columns;
}

Value KeyColumns::ofKeys(mlir::PatternRewriter& rewriter, mlir::Location loc) const {
  llvm::SmallVector<Value> columns;
  const int64_t keys = ir::elementCount(keyDims_);
  for (const Term& term : terms_) {
    // A one for each group, in front of whose column are the keys' dimensions.
    const int64_t count = ir::elementCount(keyDims(term.shape));
    mlir::Type element = elementOf(term.value);
    llvm::SmallVector<llvm::APFloat> ones(
        count * count, llvm::APFloat(llvm::cast<mlir::FloatType>(element).getFloatSemantics()));
    for (int64_t i = 0; i < count; ++i) {
      ones[i * count + i] =
          llvm::cast<mlir::FloatAttr>(rewriter.getFloatAttr(element, 1.0)).getValue();
    }
    Shape shape(keyDims(term.shape));
    shape.push_back(count);
    Value groups = ir::ConstantOp::create(
        rewriter, loc,
        mlir::DenseElementsAttr::get(mlir::RankedTensorType::get(shape, element), ones));
    shape = keyDims_;
    shape.push_back(count);
    Value all = ir::BroadcastOp::create(rewriter, loc, tensorType(groups).clone(shape), groups);
    columns.push_back(
        ir::ReshapeOp::create(rewriter, loc, tensorType(groups).clone({keys, count}), all));
  }
  if (columns.size() == 1) return columns.front();
  return ir::ConcatOp::create(rewriter, loc, columns, /*dim=*/1);
}

}  // namespace oriel
