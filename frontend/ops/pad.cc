// Padding.
#include <algorithm>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/positions.h"
#include "ir/oriel/inference.h"
#include "llvm/ADT/StringSwitch.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

enum class Mode { kConstant, kEdge, kReflect, kWrap };

std::optional<Mode> modeNamed(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<Mode>>(name)
      .Case("constant", Mode::kConstant)
      .Case("edge", Mode::kEdge)
      .Case("reflect", Mode::kReflect)
      .Case("wrap", Mode::kWrap)
      .Default(std::nullopt);
}

// Which of `size` elements stands at position `at` of the line that they are the middle of.
int64_t sourceOf(Mode mode, int64_t at, int64_t size) {
  auto wrap = [](int64_t value, int64_t period) { return ((value % period) + period) % period; };
  switch (mode) {
    case Mode::kReflect: {
      int64_t period = std::max<int64_t>(1, 2 * (size - 1));
      int64_t phase = wrap(at, period);
      return std::min(phase, period - phase);
    }
    case Mode::kWrap:
      return wrap(at, size);
    default:
      return std::clamp<int64_t>(at, 0, size - 1);
  }
}

// Repeats elements of the input around it, along one axis after the other.
Value repeatAround(NodeImporter& n, Value x, Mode mode, llvm::ArrayRef<int64_t> low,
                   llvm::ArrayRef<int64_t> high) {
  for (auto [axis, before, after] : llvm::enumerate(low, high)) {
    if (!x || (before == 0 && after == 0)) {
      continue;
    }
    int64_t size = shapeOf(x)[axis];
    if (size == 0 || size + before + after > kMaxEnumerated) {
      n.error() << "pads " << size << " elements with " << before << " and " << after;
      return {};
    }
    Ints picked;
    for (int64_t at = -before; at < size + after; ++at) {
      picked.push_back(sourceOf(mode, at, size));
    }
    x = n.gather(x, n.constantOf(picked), static_cast<int64_t>(axis));
  }
  return x;
}

// A negative amount of padding crops.
LogicalResult importPad(NodeImporter& n) {
  Value input = n.operand(0);
  auto pads = n.constantInts(1);
  if (!input || failed(pads)) {
    return failure();
  }
  std::string modeName = n.attrString("mode", "constant");
  auto mode = modeNamed(modeName);
  if (!mode) {
    return n.error() << "does not know the mode \"" << modeName << "\"";
  }
  if (pads->size() % 2 != 0 ||
      (!n.hasOperand(3) && static_cast<int64_t>(pads->size()) != 2 * rankOf(input))) {
    return n.error() << "has " << pads->size() << " pads for " << input.getType()
                     << ", expected two per axis";
  }
  auto axes = axesOperand(n, 3, pads->size() / 2, rankOf(input));
  if (failed(axes)) {
    return failure();
  }
  std::optional<double> value = 0.0;
  if (n.hasOperand(2)) {
    value = constantScalarOf(n.operand(2));
    if (!value) {
      return n.error() << "the padding value must be known at compile time";
    }
  }
  Ints low(rankOf(input), 0), high(low), interior(low), starts(low), limits(shapeOf(input));
  bool crops = false, grows = false;
  for (auto [i, axis] : llvm::enumerate(*axes)) {
    int64_t before = (*pads)[i], after = (*pads)[i + axes->size()], size = limits[axis];
    if (before > ir::kMaxElements || after > ir::kMaxElements || before < -size || after < -size ||
        size + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < 0) {
      return n.error() << "pads " << before << " and " << after << " don't fit the size " << size;
    }
    crops |= before < 0 || after < 0;
    grows |= before > 0 || after > 0;
    starts[axis] = std::max<int64_t>(0, -before);
    limits[axis] = size - std::max<int64_t>(0, -after);
    low[axis] = std::max<int64_t>(0, before);
    high[axis] = std::max<int64_t>(0, after);
  }
  Value result = crops ? n.slice(input, starts, limits) : input;
  if (grows && *mode != Mode::kConstant) {
    result = repeatAround(n, result, *mode, low, high);
  } else if (grows) {
    using Array = llvm::ArrayRef<int64_t>;
    result = n.create<ir::PadOp>(result, Array(low), Array(high), Array(interior), *value);
  }
  return n.replace(result);
}

}  // namespace

void registerPad(OpRegistry& registry) {
  registry.add("Pad", 13, importPad);
  registry.addConstantOperands("Pad", {2});
}

}  // namespace oriel
