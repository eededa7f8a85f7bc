#include "passes/divide/taken_columns.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "llvm/ADT/STLExtras.h"

namespace oriel {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

namespace {

// The first of the dimensions that a reshape splits the place into. Nothing where it joins it with
// others.
std::optional<ColumnPlace> behindReshape(ir::ReshapeOp reshape, ColumnPlace place) {
  llvm::ArrayRef<int64_t> from = ir::shapeOf(reshape.getInput()), to = reshape.getType().getShape();
  int64_t before = 1, size = from[place.dim];
  for (int64_t outer : from.take_front(place.dim)) before *= outer;
  int64_t dim = 0, rank = static_cast<int64_t>(to.size()), product = 1;
  while (dim < rank && (product != before || to[dim] == 1)) product *= to[dim++];
  if (dim == rank || product != before) return std::nullopt;
  int64_t inner = 1;
  for (int64_t next = dim; next < rank && inner < size; ++next) inner *= to[next];
  if (inner != size) return std::nullopt;
  return ColumnPlace{dim, place.columns * (size / to[dim])};
}

ColumnPlace behindTranspose(ir::TransposeOp transpose, ColumnPlace place) {
  llvm::ArrayRef<int64_t> permutation = transpose.getPermutation();
  return {llvm::find(permutation, place.dim) - permutation.begin(), place.columns};
}

// `value` is what `path` makes; false if anything but slices of columns is made of it.
bool addTaken(Value value, ColumnPlace place,
              llvm::SmallVector<std::pair<Operation*, ColumnPlace>>& path,
              llvm::SmallVector<TakenColumns>& taken) {
  for (Operation* user : value.getUsers()) {
    if (auto slice = llvm::dyn_cast<ir::SliceOp>(user)) {
      RankedTensorType type = ir::tensorType(value);
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        if (slice.getStrides()[dim] != 1) return false;
        if (dim != place.dim && slice.getType().getDimSize(dim) != type.getDimSize(dim)) {
          return false;
        }
      }
      int64_t from = slice.getStarts()[place.dim], to = slice.getLimits()[place.dim];
      taken.push_back({slice, path, {from * place.columns, to * place.columns}});
      continue;
    }
    std::optional<ColumnPlace> next;
    if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(user)) next = behindReshape(reshape, place);
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(user)) {
      next = behindTranspose(transpose, place);
    }
    if (!next) return false;
    path.push_back({user, *next});
    bool found = addTaken(user->getResult(0), *next, path, taken);
    path.pop_back();
    if (!found) return false;
  }
  return true;
}

// What a slice took, of its columns alone.
Value alongPath(mlir::OpBuilder& builder, const TakenColumns& taken, Value value) {
  for (auto [op, place] : taken.path) {
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(op)) {
      value = ir::TransposeOp::create(builder, op->getLoc(), value, transpose.getPermutation());
      continue;
    }
    RankedTensorType type = ir::tensorType(op->getResult(0));
    llvm::SmallVector<int64_t> shape(type.getShape());
    shape[place.dim] = (taken.columns.second - taken.columns.first) / place.columns;
    value = ir::reshapeTo(builder, op->getLoc(), value, type.clone(shape));
  }
  return value;
}

}  // namespace

std::optional<llvm::SmallVector<TakenColumns>> findTaken(Value value, int64_t dim) {
  llvm::SmallVector<TakenColumns> taken;
  llvm::SmallVector<std::pair<Operation*, ColumnPlace>> path;
  if (!addTaken(value, {dim, 1}, path, taken)) return std::nullopt;
  return taken;
}

llvm::SmallVector<Columns> piecesOf(llvm::ArrayRef<TakenColumns> taken, int64_t width) {
  llvm::SmallVector<Columns> pieces;
  for (const TakenColumns& each : taken) pieces.push_back(each.columns);
  llvm::sort(pieces);
  pieces.erase(llvm::unique(pieces), pieces.end());
  int64_t next = 0;
  for (auto [from, to] : pieces) {
    if (from != next || to == from) return {};
    next = to;
  }
  if (pieces.size() < 2 || next != width) return {};
  return pieces;
}

llvm::SmallVector<Value> operandsOf(ir::ConcatOp concat, Columns columns) {
  llvm::SmallVector<Value> operands;
  int64_t next = 0;
  for (Value operand : concat.getInputs()) {
    int64_t begin = next;
    next += ir::tensorType(operand).getDimSize(static_cast<int64_t>(concat.getDim()));
    if (next <= columns.first || begin >= columns.second) continue;
    if (begin < columns.first || next > columns.second) return {};
    operands.push_back(operand);
  }
  return operands;
}

void takeFrom(mlir::OpBuilder& builder, llvm::ArrayRef<TakenColumns> taken,
              const std::map<Columns, Value>& made) {
  for (const TakenColumns& each : taken) {
    ir::SliceOp slice = each.slice;
    builder.setInsertionPoint(slice);
    slice.getResult().replaceAllUsesWith(alongPath(builder, each, made.at(each.columns)));
    slice.erase();
  }
}

void eraseUnused(Operation* op) {
  for (Operation* user : llvm::make_early_inc_range(op->getUsers())) eraseUnused(user);
  op->erase();
}

}  // namespace oriel
