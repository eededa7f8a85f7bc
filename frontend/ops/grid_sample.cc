// GridSample. At positions that are known at compile time it is a product with a constant matrix of
// weights, [positions, height * width]: as a model looks up a table of positions in two dimensions.
#include <algorithm>
#include <cmath>
#include <optional>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/constant_floats.h"
#include "frontend/ops/grid_sample_computed.h"
#include "frontend/ops/ops.h"
#include "mlir/IR/Matchers.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

// Of a dimension: the position of a coordinate, which is in [-1, 1] within the image (ONNX,
// GridSample). In f32 and in this order, as PyTorch does: what is nearest depends on it.
double positionOf(const GridSampleRules& rules, double given, int64_t size) {
  const auto coordinate = static_cast<float>(given), extent = static_cast<float>(size);
  return rules.alignsCorners ? (coordinate + 1) / 2 * (extent - 1)
                             : ((coordinate + 1) * extent - 1) / 2;
}

// Where a position beyond the edges is taken from.
double padded(const GridSampleRules& rules, double x, int64_t size) {
  const double last = static_cast<double>(size) - 1;
  if (rules.padding == "zeros") {
    return x;
  }
  if (rules.padding == "reflection") {
    const double low = rules.alignsCorners ? 0 : -0.5, span = last - 2 * low;
    if (span <= 0) {
      return 0;
    }
    double within = std::fmod(std::abs(x - low), 2 * span);
    x = low + (within > span ? 2 * span - within : within);
  }
  return std::clamp(x, 0.0, last);
}

// Of a dimension: places in it, and what each counts.
using Taps = std::vector<std::pair<int64_t, double>>;

// Keys' cubic convolution (1981) with a = -0.75, as PyTorch has it.
double cubicAt(double distance) {
  constexpr double a = -0.75;
  const double x = std::abs(distance);
  return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

Taps tapsOf(const GridSampleRules& rules, double x, int64_t size) {
  Taps taps;
  auto add = [&](double place, double weight) {
    if (place >= 0 && place < static_cast<double>(size)) {
      taps.emplace_back(static_cast<int64_t>(place), weight);
    }
  };
  if (rules.mode == "cubic") {
    const double first = std::floor(x) - 1;
    for (int i = 0; i < 4; ++i) add(padded(rules, first + i, size), cubicAt(first + i - x));
    return taps;
  }
  x = padded(rules, x, size);
  if (rules.mode == "nearest") {
    add(std::nearbyint(x), 1);
    return taps;
  }
  const double below = std::floor(x);
  add(below, below + 1 - x);
  add(below + 1, x - below);
  return taps;
}

mlir::FailureOr<GridSampleRules> readRules(NodeImporter& n) {
  GridSampleRules rules{n.attrString("mode", "linear"), n.attrString("padding_mode", "zeros"),
                        n.attrInt("align_corners", 0) != 0};
  // Their names before opset 20.
  if (rules.mode == "bilinear") rules.mode = "linear";
  if (rules.mode == "bicubic") rules.mode = "cubic";
  if (rules.mode != "linear" && rules.mode != "cubic" && rules.mode != "nearest") {
    return n.error() << "does not know the mode \"" << rules.mode << "\"";
  }
  if (rules.padding != "zeros" && rules.padding != "border" && rules.padding != "reflection") {
    return n.error() << "does not know the padding_mode \"" << rules.padding << "\"";
  }
  return rules;
}

// Whether the values are the first `own` of them, time and again.
bool repeats(const std::vector<double>& values, size_t own) {
  for (size_t i = own; i < values.size(); ++i) {
    if (values[i] != values[i - own]) return false;
  }
  return true;
}

LogicalResult importGridSample(NodeImporter& n) {
  Value x = n.operand(0), grid = n.operand(1);
  if (!x || !grid) {
    return failure();
  }
  const Ints shape(shapeOf(x)), places(shapeOf(grid));
  if (shape.size() != 4 || places.size() != 4 || places[3] != 2 || places[0] != shape[0]) {
    return n.error() << "samples " << x.getType() << " at " << grid.getType()
                     << "; it must be [samples, channels, height, width] at [samples, .., .., 2]";
  }
  auto rules = readRules(n);
  if (failed(rules)) {
    return failure();
  }
  const int64_t height = shape[2], width = shape[3], positions = places[1] * places[2];
  if (shape[0] == 0 || positions == 0 || height * width == 0) {
    return n.error() << "samples " << x.getType() << " at " << positions << " positions";
  }
  std::optional<std::vector<double>> coordinates;
  if (mlir::matchPattern(grid, mlir::m_Constant())) {
    auto values = constantFloats(n, 1);
    if (failed(values)) {
      return failure();
    }
    if (repeats(*values, static_cast<size_t>(2 * positions))) coordinates = std::move(*values);
  }
  if (!coordinates) {
    return n.replace(sampleAtComputed(n, *rules, x, grid));
  }
  if (positions > kMaxEnumerated / std::max<int64_t>(1, height * width)) {
    return n.error() << "samples " << x.getType() << " at " << positions << " positions";
  }
  std::vector<float> weights(positions * height * width, 0);
  for (int64_t i = 0; i < positions; ++i) {
    const double column = positionOf(*rules, (*coordinates)[2 * i], width);
    const double row = positionOf(*rules, (*coordinates)[2 * i + 1], height);
    if (!(std::abs(column) <= kMaxEnumerated) || !(std::abs(row) <= kMaxEnumerated)) {
      return n.error() << "samples the position (" << column << ", " << row << ")";
    }
    for (const auto& [y, weightY] : tapsOf(*rules, row, height)) {
      for (const auto& [at, weightX] : tapsOf(*rules, column, width)) {
        weights[(i * height + y) * width + at] += static_cast<float>(weightY * weightX);
      }
    }
  }
  auto type = mlir::RankedTensorType::get({positions, height * width}, n.builder().getF32Type());
  Value matrix = n.cast(
      n.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<float>(weights))), elementOf(x));
  Value flat = n.reshape(x, {shape[0], shape[1], height * width});
  Value sampled = n.create<ir::LinearOp>(flat, matrix, OptionalValue{}, /*transposeWeight=*/true);
  return n.replace(n.reshape(sampled, {shape[0], shape[1], places[1], places[2]}));
}

}  // namespace

void registerGridSample(OpRegistry& registry) {
  registry.add("GridSample", 16, importGridSample);
  registry.addConstantOperands("GridSample", {1});
}

}  // namespace oriel
