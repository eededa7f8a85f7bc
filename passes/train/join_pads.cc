#include "passes/train/join_pads.h"

#include <optional>
#include <tuple>
#include <utility>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel {
namespace {

// Where the elements of a padded tensor lie in dimension `dim` of the result: [begin, end).
struct Piece {
  ir::PadOp pad;
  int64_t dim = 0, begin = 0, end = 0;
};

std::optional<Piece> pieceOf(Value value) {
  auto pad = value.getDefiningOp<ir::PadOp>();
  if (!pad || pad.getValue() != 0 ||
      llvm::any_of(pad.getInterior(), [](int64_t count) { return count != 0; })) {
    return std::nullopt;
  }
  Piece piece{pad};
  int dims = 0;
  for (auto [dim, low, high, size] :
       llvm::enumerate(pad.getLow(), pad.getHigh(), ir::shapeOf(pad.getInput()))) {
    if (low == 0 && high == 0) continue;
    ++dims;
    piece.dim = static_cast<int64_t>(dim);
    piece.begin = low;
    piece.end = low + size;
  }
  if (dims != 1) return std::nullopt;
  return piece;
}

// One value of pieces each of which begins where the one before ends.
Value join(OpBuilder& builder, Location loc, MutableArrayRef<Piece> pieces) {
  ir::PadOp first = pieces.front().pad, last = pieces.back().pad;
  // Something has the padded tensor anyway.
  if (pieces.size() == 1 && !first->use_empty()) return first.getResult();
  SmallVector<Value> inputs;
  for (Piece& piece : pieces) inputs.push_back(piece.pad.getInput());
  Value joined = inputs[0];
  if (inputs.size() > 1) joined = ir::ConcatOp::create(builder, loc, inputs, pieces[0].dim);
  if (joined.getType() == first.getType()) return joined;
  SmallVector<int64_t> low(first.getLow()), high(last.getHigh()), interior(low.size(), 0);
  return ir::PadOp::create(builder, loc, joined, low, high, interior);
}

}  // namespace

bool isPaddedSlice(Value value) { return pieceOf(value).has_value(); }

void joinPads(OpBuilder& builder, Location loc, ArrayRef<Value> padded,
              llvm::function_ref<void(Value)> add) {
  SmallVector<Piece> pieces;
  for (Value value : padded) pieces.push_back(*pieceOf(value));
  llvm::stable_sort(pieces, [](const Piece& a, const Piece& b) {
    return std::tie(a.dim, a.begin) < std::tie(b.dim, b.begin);
  });
  while (!pieces.empty()) {
    SmallVector<Piece> chain{pieces.front()}, others;
    for (const Piece& piece : llvm::drop_begin(pieces)) {
      const bool follows = piece.dim == chain.back().dim && piece.begin == chain.back().end;
      (follows ? chain : others).push_back(piece);
    }
    add(join(builder, loc, chain));
    pieces = std::move(others);
  }
}

}  // namespace oriel
