// Convolution and its transpose.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/windows.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

using Sizes = llvm::ArrayRef<int64_t>;

LogicalResult checkKernel(NodeImporter& n, Value input, Value weight) {
  if (rankOf(input) < 3 || rankOf(weight) != rankOf(input)) {
    return n.error() << "convolves " << input.getType() << " with " << weight.getType();
  }
  auto given = n.attrInts("kernel_shape");
  if (given && Sizes(*given) != shapeOf(weight).drop_front(2)) {
    return n.error() << "kernel_shape differs from the weight's shape " << weight.getType();
  }
  return success();
}

// Null for a bias of zeros, whatever its shape: PyTorch's exporter writes one, of a wrong shape for
// three spatial dimensions, where a module has none.
Value readBias(NodeImporter& n) {
  Value bias = n.optionalOperand(2);
  return bias && constantScalarOf(bias) == 0.0 ? Value() : bias;
}

// Lows, then highs.
Ints padsOf(llvm::ArrayRef<Window> windows) {
  Ints pads = each(windows, &Window::low);
  llvm::append_range(pads, each(windows, &Window::high));
  return pads;
}

LogicalResult importConv(NodeImporter& n) {
  Value input = n.operand(0), weight = n.operand(1), bias = readBias(n);
  if (!input || !weight || failed(checkKernel(n, input, weight))) {
    return failure();
  }
  auto windows = placedWindows(n, spatialSizesOf(input), shapeOf(weight).drop_front(2));
  if (failed(windows)) {
    return failure();
  }
  Ints strides = each(*windows, &Window::stride), dilations = each(*windows, &Window::dilation);
  Ints pads = padsOf(*windows);
  return n.replace(n.create<ir::ConvOp>(input, weight, OptionalValue{bias}, Sizes(strides),
                                        Sizes(pads), Sizes(dilations), n.attrInt("group", 1)));
}

// Where a convolution with these windows has the input as its result, and the node's result as its
// input.
LogicalResult placeTransposed(NodeImporter& n, llvm::MutableArrayRef<Window> windows) {
  std::string autoPad = n.attrString("auto_pad", "NOTSET");
  constexpr llvm::StringLiteral kAutoPads[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  if (!llvm::is_contained(kAutoPads, autoPad)) {
    return n.error() << "does not know auto_pad \"" << autoPad << "\"";
  }
  Ints extra = n.attrInts("output_padding").value_or(Ints(windows.size(), 0));
  auto wanted = n.attrInts("output_shape");
  if (extra.size() != windows.size() || (wanted && wanted->size() != windows.size())) {
    return n.error() << "needs one output_padding and output_shape per spatial dimension";
  }
  auto fits = [](int64_t value) { return value >= 0 && value < (int64_t{1} << 31); };
  for (auto [i, window] : llvm::enumerate(windows)) {
    if (!fits(window.input) || !fits(extra[i]) || (wanted && !fits((*wanted)[i]))) {
      return n.error() << "has an input, output_padding or output_shape that is negative or beyond "
                          "all sizes in spatial dimension "
                       << i;
    }
    window.output = window.input;
    int64_t full = window.span() + extra[i];
    if (wanted || autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
      int64_t size = wanted ? (*wanted)[i] : window.output * window.stride;
      int64_t total = std::max<int64_t>(0, full - size);
      window.low = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
      window.high = total - window.low;
      window.input = size;
    } else {
      window.input = full - window.low - window.high;
    }
    if (window.input < 1) {
      return n.error() << "makes the size " << window.input << " in spatial dimension " << i;
    }
  }
  return success();
}

LogicalResult importConvTranspose(NodeImporter& n) {
  Value input = n.operand(0), weight = n.operand(1), bias = readBias(n);
  if (!input || !weight || failed(checkKernel(n, input, weight))) {
    return failure();
  }
  auto windows = readWindows(n, spatialSizesOf(input), shapeOf(weight).drop_front(2));
  if (failed(windows) || failed(placeTransposed(n, *windows))) {
    return failure();
  }
  int64_t group = n.attrInt("group", 1), channels;
  if (group < 1 || __builtin_mul_overflow(shapeOf(weight)[1], group, &channels)) {
    return n.error() << "has " << group << " groups";
  }
  Ints shape{shapeOf(input)[0], channels};
  llvm::append_range(shape, each(*windows, &Window::input));
  Ints strides = each(*windows, &Window::stride), dilations = each(*windows, &Window::dilation);
  Ints pads = padsOf(*windows);
  Value result =
      n.createTyped<ir::ConvInputGradOp>(n.tensorType(shape, elementOf(input)), input, weight,
                                         Sizes(strides), Sizes(pads), Sizes(dilations), group);
  if (bias) {
    Ints column(rankOf(input) - 1, 1);
    column[0] = channels;
    result = n.create<ir::AddOp>(result, n.reshape(bias, column));
  }
  return n.replace(result);
}

}  // namespace

void registerConvOps(OpRegistry& registry) {
  registry.add("Conv", 11, importConv);
  registry.add("ConvTranspose", 11, importConvTranspose);
}

}  // namespace oriel
