#include "passes/raise/visible_keys.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Matchers.h"
#include "passes/raise/affine_index.h"
#include "passes/raise/match.h"

namespace oriel {

using mlir::Value;

Value withoutRepetition(Value value) {
  for (;;) {
    if (auto broadcast = value.getDefiningOp<ir::BroadcastOp>()) {
      value = broadcast.getInput();
      continue;
    }
    auto reshape = value.getDefiningOp<ir::ReshapeOp>();
    if (!reshape) return value;
    llvm::ArrayRef<int64_t> from = shapeOf(reshape.getInput());
    llvm::ArrayRef<int64_t> to = reshape.getType().getShape();
    auto leading = [](llvm::ArrayRef<int64_t> shape) {
      return shape.drop_while([](int64_t size) { return size == 1; });
    };
    if (leading(from) != leading(to)) return value;
    value = reshape.getInput();
  }
}

namespace {

// The bits of each byte, the lowest first.
constexpr std::array<std::array<bool, 8>, 256> bitsOfBytes() {
  std::array<std::array<bool, 8>, 256> bits{};
  for (size_t byte = 0; byte < bits.size(); ++byte) {
    for (size_t i = 0; i < 8; ++i) bits[byte][i] = ((byte >> i) & 1) != 0;
  }
  return bits;
}

}  // namespace

llvm::SmallVector<bool> seenKeys(mlir::DenseElementsAttr table, bool keepsWhereTrue) {
  // One element stands for all of a splat, which may be huge.
  if (table.isSplat()) return {table.getSplatValue<bool>() == keepsWhereTrue};
  const size_t count = table.getNumElements();
  llvm::SmallVector<bool> result(count);
  // Every layer of a model asks for a table of all its positions, and iterators are slow.
  const llvm::ArrayRef<char> bytes = table.getRawData();
  if (bytes.size() == llvm::divideCeil(count, 8)) {
    static constexpr std::array<std::array<bool, 8>, 256> kBits = bitsOfBytes();
    const auto flips = static_cast<uint8_t>(keepsWhereTrue ? 0 : 0xff);
    for (size_t i = 0; i < count; i += 8) {
      const auto byte = static_cast<uint8_t>(static_cast<uint8_t>(bytes[i / 8]) ^ flips);
      std::copy_n(kBits[byte].begin(), std::min<size_t>(8, count - i), result.begin() + i);
    }
    return result;
  }
  llvm::transform(table.getValues<bool>(), result.begin(),
                  [&](bool element) { return element == keepsWhereTrue; });
  return result;
}

namespace {

// Bounds the walk through a mask that is built up from itself.
constexpr int kMaxDepth = 12;

mlir::DenseElementsAttr knownTable(Value value) {
  mlir::DenseElementsAttr table;
  if (!mlir::matchPattern(value, mlir::m_Constant(&table)) ||
      !table.getElementType().isInteger(1) || table.empty()) {
    return {};
  }
  return table;
}

}  // namespace

VisibleKeys::VisibleKeys(const KeyChoice& choice, int64_t queries, int64_t keys)
    : queries_(queries), keys_(keys) {
  if (choice.value) {
    add(choice.value, choice.keepsWhereTrue);
  } else if (addTable(choice.table, choice.keepsWhereTrue)) {
    ++recognised_;
  } else {
    rest_.push_back(choice);
  }
}

void VisibleKeys::add(Value value, bool keepsWhereTrue) {
  value = withoutRepetition(value);
  if (++depth_ > kMaxDepth) {
    rest_.push_back({value, knownTable(value), keepsWhereTrue});
  } else if (auto op = value.getDefiningOp<ir::NotOp>()) {
    add(op.getInput(), !keepsWhereTrue);
  } else if (auto op = value.getDefiningOp<ir::AndOp>(); op && keepsWhereTrue) {
    add(op.getLhs(), true);
    add(op.getRhs(), true);
  } else if (auto op = value.getDefiningOp<ir::OrOp>(); op && !keepsWhereTrue) {
    // Hidden where either is true: seen where both are false.
    add(op.getLhs(), false);
    add(op.getRhs(), false);
  } else if (addTable(knownTable(value), keepsWhereTrue) || addComparison(value, keepsWhereTrue)) {
    ++recognised_;
  } else {
    rest_.push_back({value, knownTable(value), keepsWhereTrue});
  }
  --depth_;
}

void VisibleKeys::addWindow(int64_t window) {
  window_ = window_ == 0 ? window : std::min(window_, window);
}

// A known table whose rows are what causality or a window, or both, leave to be seen.
bool VisibleKeys::addTable(mlir::DenseElementsAttr table, bool keepsWhereTrue) {
  if (!table) return false;
  if (table.isSplat()) return table.getSplatValue<bool>() == keepsWhereTrue;
  llvm::ArrayRef<int64_t> shape = table.getType().getShape();
  if (shape.size() < 2 || shape.back() != keys_ || shape[shape.size() - 2] != queries_) {
    return false;
  }
  llvm::SmallVector<bool> visible = seenKeys(table, keepsWhereTrue);
  int64_t offset = keys_ - queries_;
  // By the first row that tells: how far back a query sees, and whether it sees all after it.
  bool causal = false;
  int64_t window = 0;
  for (int64_t row = 0; row < queries_; ++row) {
    llvm::ArrayRef<bool> keys = llvm::ArrayRef<bool>(visible).slice(row * keys_, keys_);
    const bool* first = llvm::find(keys, true);
    int64_t begin = first - keys.begin(), diagonal = row + offset;
    if (diagonal + 1 < keys_ && diagonal >= 0 && !keys[diagonal + 1]) causal = true;
    if (begin > 0 && begin < keys_) window = std::max<int64_t>(diagonal + 1 - begin, 0);
    if (window == 0 && begin > 0) return false;
  }
  int64_t row = 0;
  for (llvm::ArrayRef<bool> rest = visible; !rest.empty(); rest = rest.drop_front(keys_)) {
    const int64_t end = causal ? std::clamp<int64_t>(row + offset + 1, 0, keys_) : keys_;
    const int64_t begin = window > 0 ? std::clamp<int64_t>(row + offset + 1 - window, 0, keys_) : 0;
    const auto isSeen = [](bool sees) { return sees; };
    if (begin > end || llvm::any_of(rest.take_front(begin), isSeen) ||
        !llvm::all_of(rest.slice(begin, end - begin), isSeen) ||
        llvm::any_of(rest.slice(end, keys_ - end), isSeen)) {
      return false;
    }
    row = row + 1 == queries_ ? 0 : row + 1;
  }
  causal_ = causal_ || causal;
  if (window > 0) addWindow(window);
  return true;
}

// A comparison of positions. What is in front of queries and keys does not matter to it.
bool VisibleKeys::addComparison(Value value, bool keepsWhereTrue) {
  while (auto reshape = value.getDefiningOp<ir::ReshapeOp>()) {
    const llvm::ArrayRef<int64_t> from = shapeOf(reshape.getInput()), to = shapeOf(value);
    if (from.size() < 2 || to.size() < 2 || from.take_back(2) != to.take_back(2)) break;
    value = reshape.getInput();
  }
  mlir::Operation* op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 2) return false;
  bool less = llvm::isa<ir::LessOp>(op), lessEqual = llvm::isa<ir::LessEqualOp>(op);
  bool greater = llvm::isa<ir::GreaterOp>(op), greaterEqual = llvm::isa<ir::GreaterEqualOp>(op);
  if (!less && !lessEqual && !greater && !greaterEqual) return false;
  const int64_t rank = rankOf(value);
  std::optional<AffineIndex> difference =
      matchAffineDifference(op->getOperand(0), op->getOperand(1), rank);
  if (!difference) return false;

  // lhs - rhs as byQuery * i + byKey * j + constant.
  llvm::ArrayRef<int64_t> coefficients = difference->coefficients;
  const int64_t byKey = rank > 0 ? coefficients[rank - 1] : 0;
  const int64_t byQuery = rank > 1 ? coefficients[rank - 2] : 0;
  if (llvm::any_of(coefficients.drop_back(std::min<size_t>(rank, 2)),
                   [](int64_t c) { return c != 0; })) {
    return false;
  }
  const int64_t constant = difference->constant;
  // As "difference <= 0" of whole numbers; hidden where it is false.
  bool strict = less || greater;
  int64_t sign = less || lessEqual ? 1 : -1;
  int64_t slack = strict ? 1 : 0;
  if (!keepsWhereTrue) {
    // not (d + slack <= 0)  is  -d - slack + 1 <= 0
    sign = -sign;
    slack = 1 - slack;
  }
  return addBound(sign * byQuery, sign * byKey, sign * constant + slack);
}

// Key j is seen by query i only where byQuery * i + byKey * j + constant <= 0.
bool VisibleKeys::addBound(int64_t byQuery, int64_t byKey, int64_t constant) {
  if (queries_ == 0 || keys_ == 0) return false;
  int64_t most = constant + std::max<int64_t>(byQuery * (queries_ - 1), 0) +
                 std::max<int64_t>(byKey * (keys_ - 1), 0);
  if (most <= 0) return true;
  int64_t offset = keys_ - queries_;
  if (byKey == 1 && byQuery == -1 && constant == -offset) {
    causal_ = true;  // j <= i + t - s
    return true;
  }
  if (byKey == -1 && byQuery == 1) {
    // j >= i + constant, and a window w has j > i + t - s - w
    int64_t window = offset + 1 - constant;
    if (window < 1) return false;
    addWindow(window);
    return true;
  }
  return false;
}

bool VisibleKeys::everyQuerySees() const {
  bool structureSees = true;
  // A causal query sees the key at its own position; so does one with a window.
  if (causal_) structureSees = keys_ >= queries_;
  if (rest_.empty()) return structureSees;
  // A table by itself, causal or not: whether it leaves something of each row.
  if (rest_.size() > 1 || causal_ || window_ > 0) return false;
  mlir::DenseElementsAttr table = rest_[0].table;
  if (!table || table.getType().getRank() < 2) return false;
  llvm::SmallVector<bool> visible = seenKeys(table, rest_[0].keepsWhereTrue);
  int64_t columns = table.getType().getShape().back();
  if (table.isSplat()) return visible.front();
  llvm::ArrayRef<bool> rows = visible;
  for (; !rows.empty(); rows = rows.drop_front(columns)) {
    if (!llvm::is_contained(rows.take_front(columns), true)) return false;
  }
  return true;
}

}  // namespace oriel
