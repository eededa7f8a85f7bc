// Ops whose parts depend on a mask: the merge of image features, and what surrounds it in exports.
#include "frontend/masked_rows.h"
#include "frontend/masked_scatter.h"
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

// Whether a mask is the same for all elements of a row, the dimensions after the first of a source
// of this rank.
bool masksWholeRows(Value mask, size_t sourceRank) {
  if (sourceRank <= 1) {
    return true;
  }
  auto broadcast = mask.getDefiningOp<ir::BroadcastOp>();
  return broadcast && rankOf(broadcast.getInput()) == rankOf(mask) &&
         llvm::all_of(shapeOf(broadcast.getInput()).take_back(sourceRank - 1),
                      [](int64_t size) { return size == 1; });
}

// A mask of the leading dimensions of `shape`, for all of it.
Value forAllOf(NodeImporter& n, Value mask, llvm::ArrayRef<int64_t> shape) {
  Ints widened(shapeOf(mask));
  widened.resize(shape.size(), 1);
  return n.broadcast(n.reshape(mask, widened), shape);
}

// Only the order of the source's elements matters, so flattening it is noise.
Value maskedScatter(NodeImporter& n, Value input, Value mask, Value source) {
  while (auto reshape = source.getDefiningOp<ir::ReshapeOp>()) {
    source = reshape.getInput();
  }
  return n.create<ir::MaskedScatterOp>(input, mask, source);
}

// The node that masked_scatter.cc makes: the mask covers the leading dimensions of the input, the
// source's rows are as the input's below them.
LogicalResult importMaskedScatter(NodeImporter& n) {
  Value input = n.operand(0), mask = n.operand(1), source = n.operand(2);
  if (!input || !mask || !source) {
    return failure();
  }
  int64_t covered = rankOf(mask);
  bool fits = covered <= rankOf(input) && shapeOf(mask) == shapeOf(input).take_front(covered);
  if (const int64_t expanded = n.attrInt(kExpanded, -1); expanded >= 0) {
    // A mask of all dimensions; the source has a row per position, or one row for all of them.
    auto rows = shapeOf(source);
    const auto rank = static_cast<int64_t>(rows.size());
    fits = fits && covered == rankOf(input) && std::max(rank, expanded) <= covered;
    const bool isOneRow = rank < expanded || rank == 0 || rows.front() == 1;
    if (isOneRow) {
      auto broadcasts = [](auto sizes) {
        auto [from, to] = sizes;
        return from == 1 || from == to;
      };
      fits = fits && masksWholeRows(mask, std::max(rank, expanded)) &&
             llvm::all_of(llvm::zip_equal(rows, shapeOf(input).take_back(rows.size())), broadcasts);
      if (fits) return n.replace(n.create<ir::SelectOp>(mask, source, input));
    }
    // What is neither is not told from one row, where the rank isn't known.
    fits = fits && !isOneRow && (expanded > 0 || rank > 1) &&
           rows.drop_front() == shapeOf(input).take_back(rows.size() - 1);
  } else {
    fits = fits && rankOf(source) >= 1 &&
           shapeOf(source).drop_front() == shapeOf(input).drop_front(covered);
  }
  if (!fits) {
    return n.error() << "a masked scatter of " << source.getType() << " by " << mask.getType()
                     << " into " << input.getType() << " does not fit";
  }
  mask = forAllOf(n, mask, shapeOf(input));
  return n.replace(maskedScatter(n, input, mask, source));
}

// The mask, of the leading dimensions of `shape`, for all of it; null, with an error, for a mask of
// other dimensions, or of no rows but elements.
Value maskOfRows(NodeImporter& n, Value mask, llvm::ArrayRef<int64_t> shape) {
  auto covered = static_cast<size_t>(rankOf(mask));
  if (covered >= shape.size() || shapeOf(mask) != shape.take_front(covered)) {
    n.error() << "the mask " << mask.getType() << " does not choose rows of a tensor of "
              << shape.size() << " dimensions [" << llvm::iterator_range(shape) << "]";
    return {};
  }
  return forAllOf(n, mask, shape);
}

// Not 0 nor equal, so that quotients, roots and norms of the difference have a derivative.
constexpr double kRowOfNoMeaning = 1, kSpreadOfNoMeaning = 2;

// Whether `wide` is the mask, repeated for dimensions behind its own.
bool isForRows(Value wide, Value mask) {
  if (wide == mask) {
    return true;
  }
  const int64_t rank = rankOf(wide);
  while (auto broadcast = wide.getDefiningOp<ir::BroadcastOp>()) {
    wide = broadcast.getInput();
  }
  Ints expected(shapeOf(mask));
  expected.resize(std::max(rank, rankOf(mask)), 1);
  if (shapeOf(wide) != llvm::ArrayRef<int64_t>(expected)) {
    return false;
  }
  while (auto reshape = wide.getDefiningOp<ir::ReshapeOp>()) {
    wide = reshape.getInput();
  }
  return wide == mask;
}

// The nodes that masked_rows.cc makes.
LogicalResult importRowsAtMask(NodeImporter& n) {
  Value input = n.operand(0), mask = n.operand(1), first = n.operand(2);
  Value given = n.hasOperand(3) ? n.operand(3) : Value();
  Value wide = input && mask && first ? maskOfRows(n, mask, shapeOf(input)) : Value();
  if (!wide) {
    return failure();
  }
  if (given && (shapeOf(given) != shapeOf(input) || !isForRows(given, mask))) {
    return n.error() << "elements of " << input.getType() << " are chosen by " << given.getType()
                     << ", which is not the mask of its rows for all of them";
  }
  if (rankOf(input) != rankOf(first)) {
    return n.error() << "rows of " << input.getType() << " and of " << first.getType()
                     << " are joined, of which the mask chooses different numbers of dimensions";
  }
  if (!llvm::isa<mlir::FloatType>(elementOf(input))) {
    return n.replace(input);
  }
  Value other = n.broadcast(n.scalarLike(input, kRowOfNoMeaning), shapeOf(input));
  return n.replace(n.create<ir::SelectOp>(wide, input, other));
}

LogicalResult importSpreadRows(NodeImporter& n) {
  Value like = n.operand(0), mask = n.operand(1), rows = n.operand(2);
  if (!like || !mask || !rows) {
    return failure();
  }
  const int64_t rank = rankOf(like) - rankOf(mask) + 1;  // of the rows, if they differ
  Ints shape(shapeOf(rows));
  if (n.hasOperand(3) && ir::elementCount(shape) != 1 &&
      (static_cast<int64_t>(shape.size()) != rank ||
       shapeOf(rows).drop_front() != shapeOf(like).drop_front(rankOf(mask)))) {
    return n.error() << "elements of " << rows.getType() << " are not those of rows of "
                     << like.getType();
  }
  while (static_cast<int64_t>(shape.size()) > rank && shape.front() == 1) {
    shape.erase(shape.begin());
  }
  if (static_cast<int64_t>(shape.size()) < rank || shape.front() == 1) {
    return n.replace(n.reshape(rows, shape));
  }
  if (static_cast<int64_t>(shape.size()) > rank) {
    return n.error() << rows.getType() << " does not fit the rows of " << like.getType();
  }
  shape.erase(shape.begin());
  shape.insert(shape.begin(), shapeOf(mask).begin(), shapeOf(mask).end());
  Value empty = n.splat(n.tensorType(shape, elementOf(rows)), kSpreadOfNoMeaning);
  return n.replace(maskedScatter(n, empty, maskOfRows(n, mask, shape), rows));
}

LogicalResult importSelectRows(NodeImporter& n) {
  Value input = n.operand(0), mask = n.operand(1), rows = n.operand(2), given = n.operand(3);
  if (!input || !mask || !rows || !given) {
    return failure();
  }
  if (!isForRows(given, mask)) {
    return n.error() << "what is computed on the rows that a mask chooses goes back by another "
                        "mask than that: "
                     << given.getType() << ", which is not the first for the dimensions behind its "
                     << "own";
  }
  Value wide = maskOfRows(n, mask, shapeOf(input));
  if (!wide) {
    return failure();
  }
  if (rankOf(rows) != rankOf(input)) {
    return n.error() << "rows of " << rows.getType() << " do not go back into " << input.getType();
  }
  return n.replace(n.create<ir::SelectOp>(wide, n.broadcast(rows, shapeOf(input)), input));
}

Value isNotZero(NodeImporter& n, Value x) {
  return n.createLike<ir::NotOp>(n.create<ir::EqualOp>(x, n.scalarLike(x, 0)));
}

LogicalResult importNonZero(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  auto ints = computedIntsOf(isNotZero(n, input));
  if (!ints) {
    return n.error() << "the shape of its result depends on the data, and Oriel's programs have "
                        "static shapes; only a masked scatter (x[mask] = source, "
                        "x.masked_scatter(mask, source)) or what works row by row (x[mask] = "
                        "f(x[mask])) may use it; a mixture of experts is "
                        "exported with every expert on every token (docs/import.md)";
  }
  int64_t rank = rankOf(input);
  std::vector<Ints> coordinates(rank);
  for (auto [flat, value] : llvm::enumerate(*ints)) {
    if (value != 0) {
      auto rest = static_cast<int64_t>(flat);
      for (int64_t dim = rank - 1; dim >= 0; --dim) {
        coordinates[dim].push_back(rest % shapeOf(input)[dim]);
        rest /= shapeOf(input)[dim];
      }
    }
  }
  Ints all;
  for (const Ints& row : coordinates) {
    llvm::append_range(all, row);
  }
  int64_t count = rank == 0 ? 0 : static_cast<int64_t>(coordinates.front().size());
  return n.replace(n.constantOf(all, {rank, count}));
}

// The slabs along the axis (elements, without one) whose condition is true; the rest of the
// condition, where it is shorter, is false.
LogicalResult importCompress(NodeImporter& n) {
  Value input = n.operand(0);
  auto condition = n.constantInts(1);
  if (!input || failed(condition)) {
    return failure();
  }
  int64_t axis = 0;
  if (n.hasAttr("axis")) {
    auto given = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
    if (failed(given)) {
      return failure();
    }
    axis = *given;
  } else {
    input = n.reshape(input, {tensorType(input).getNumElements()});
  }
  Ints picked;
  for (auto [at, isPicked] : llvm::enumerate(*condition)) {
    if (isPicked != 0) {
      picked.push_back(static_cast<int64_t>(at));
    }
  }
  if (!picked.empty() && picked.back() >= shapeOf(input)[axis]) {
    return n.error() << "picks element " << picked.back() << " of " << shapeOf(input)[axis];
  }
  return n.replace(n.gather(input, n.constantOf(picked), axis));
}

}  // namespace

void registerMaskingOps(OpRegistry& registry) {
  registry.add(kMaskedScatter, 1, importMaskedScatter, kOrielDomain);
  registry.add(kRowsAtMask, 1, importRowsAtMask, kOrielDomain);
  registry.add(kSpreadRows, 1, importSpreadRows, kOrielDomain);
  registry.add(kSelectRows, 1, importSelectRows, kOrielDomain);
  registry.add("NonZero", 13, importNonZero);
  registry.add("Compress", 11, importCompress);
}

}  // namespace oriel
