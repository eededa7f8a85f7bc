// Resize, one dimension after the other: nearest neighbours are a gather, linear and cubic
// interpolation a product with a constant matrix of weights.
#include <algorithm>
#include <cmath>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/constant_floats.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

// What happens along one dimension.
struct Axis {
  int64_t dim, input, output;
  double scale;                     // output per input, as given
  bool hasSize = false;             // the output's size is given, not the scale
  double roiBegin = 0, roiEnd = 1;  // of tf_crop_and_resize
};

struct Rules {
  std::string mode, coordinates, nearest;
  bool antialias, excludeOutside;
  double cubic;
  double extrapolation;
};

// Where in the input position `at` of the output lies (ONNX, Resize,
// coordinate_transformation_mode).
double originalOf(const Rules& rules, const Axis& axis, double at) {
  auto input = static_cast<double>(axis.input);
  double size = axis.scale * input;  // before it is rounded
  const std::string& mode = rules.coordinates;
  double halfPixel = (at + 0.5) / axis.scale - 0.5;
  if (mode == "half_pixel") {
    return halfPixel;
  }
  if (mode == "pytorch_half_pixel") {
    return size == 1 ? -0.5 : halfPixel;
  }
  if (mode == "half_pixel_symmetric") {
    return input / 2 * (1 - static_cast<double>(axis.output) / size) + halfPixel;
  }
  if (mode == "asymmetric") {
    // In f32 and with this order of operations, as PyTorch does: whole positions depend on it.
    auto position = static_cast<float>(at);
    return axis.hasSize
               ? position * (static_cast<float>(axis.input) / static_cast<float>(axis.output))
               : position / static_cast<float>(axis.scale);
  }
  if (mode == "align_corners") {
    return size == 1 ? 0 : at * (input - 1) / (size - 1);
  }
  double extent = (axis.roiEnd - axis.roiBegin) * (input - 1);  // tf_crop_and_resize
  return axis.roiBegin * (input - 1) + (size == 1 ? extent / 2 : at * extent / (size - 1));
}

// The same, or an error for a scale or roi that leads beyond all sizes.
FailureOr<double> original(NodeImporter& n, const Rules& rules, const Axis& axis, int64_t at) {
  double x = originalOf(rules, axis, static_cast<double>(at));
  if (!(std::abs(x) <= kMaxEnumerated)) {
    return n.error() << "places element " << at << " of dimension " << axis.dim << " at " << x;
  }
  return x;
}

bool isExtrapolated(const Rules& rules, const Axis& axis, double x) {
  return rules.coordinates == "tf_crop_and_resize" &&
         (x < 0 || x > static_cast<double>(axis.input - 1));
}

int64_t clampTo(const Axis& axis, double x) {
  return static_cast<int64_t>(std::clamp(x, 0.0, static_cast<double>(axis.input - 1)));
}

FailureOr<int64_t> nearest(NodeImporter& n, const Rules& rules, const Axis& axis, double x) {
  const std::string& mode = rules.nearest;
  if (mode == "round_prefer_floor") {
    return clampTo(axis, std::ceil(x - 0.5));
  }
  if (mode == "round_prefer_ceil") {
    return clampTo(axis, std::floor(x + 0.5));
  }
  if (mode == "floor" || mode == "ceil") {
    return clampTo(axis, mode == "floor" ? std::floor(x) : std::ceil(x));
  }
  return n.error() << "does not know the nearest_mode \"" << mode << "\"";
}

// The filter at a distance: a triangle, or Keys' cubic convolution (1981) with the coefficient a.
double filterAt(const Rules& rules, double distance) {
  double x = std::abs(distance), a = rules.cubic;
  if (rules.mode == "linear") {
    return std::max(0.0, 1 - x);
  }
  if (x <= 1) {
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  }
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The weights [input] of one output. What the filter covers beyond the edges is the edge's, or left
// out. An antialiasing filter is as wide as an output pixel.
// False where it covers nothing.
bool fillRow(const Rules& rules, const Axis& axis, double x, llvm::MutableArrayRef<float> row) {
  double stretch = rules.antialias ? std::min(1.0, axis.scale) : 1.0;
  double radius = (rules.mode == "linear" ? 1 : 2) / stretch;
  if (!(radius <= kMaxEnumerated)) {
    return false;
  }
  auto first = static_cast<int64_t>(std::floor(x - radius)) + 1;
  auto last = static_cast<int64_t>(std::ceil(x + radius)) - 1;
  std::vector<double> weights(axis.input, 0);
  double sum = 0;
  for (int64_t at = first; at <= last; ++at) {
    if (rules.excludeOutside && (at < 0 || at >= axis.input)) {
      continue;
    }
    double weight = filterAt(rules, (static_cast<double>(at) - x) * stretch);
    weights[std::clamp<int64_t>(at, 0, axis.input - 1)] += weight;
    sum += weight;
  }
  for (auto [to, weight] : llvm::zip(row, weights)) {
    to = static_cast<float>(weight / sum);
  }
  return sum != 0;
}

// [output, input]; the rows of extrapolated positions are zero.
FailureOr<Value> weightMatrix(NodeImporter& n, const Rules& rules, const Axis& axis,
                              mlir::Type element) {
  std::vector<float> weights(axis.output * axis.input, 0);
  for (int64_t at = 0; at < axis.output; ++at) {
    auto x = original(n, rules, axis, at);
    if (failed(x)) {
      return failure();
    }
    llvm::MutableArrayRef<float> row(&weights[at * axis.input], axis.input);
    if (!isExtrapolated(rules, axis, *x) && !fillRow(rules, axis, *x, row)) {
      return n.error() << "has nothing of the input under element " << at << " of dimension "
                       << axis.dim;
    }
  }
  auto type = mlir::RankedTensorType::get({axis.output, axis.input}, n.builder().getF32Type());
  auto value = mlir::DenseElementsAttr::get(type, llvm::ArrayRef<float>(weights));
  return n.cast(n.constant(value), element);
}

Value interpolate(NodeImporter& n, const Rules& rules, const Axis& axis, Value x) {
  auto weights = weightMatrix(n, rules, axis, elementOf(x));
  if (failed(weights)) {
    return {};
  }
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  std::swap(permutation[axis.dim], permutation.back());
  bool isLast = axis.dim + 1 == rankOf(x);
  x = isLast ? x : n.transpose(x, permutation);
  x = n.create<ir::LinearOp>(x, *weights, OptionalValue{}, /*transposeWeight=*/true);
  return isLast ? x : n.transpose(x, permutation);
}

Value pickNearest(NodeImporter& n, const Rules& rules, const Axis& axis, Value x) {
  Ints picked;
  for (int64_t at = 0; at < axis.output; ++at) {
    auto from = original(n, rules, axis, at);
    auto index = failed(from) ? FailureOr<int64_t>(failure()) : nearest(n, rules, axis, *from);
    if (failed(index)) {
      return {};
    }
    picked.push_back(*index);
  }
  return n.gather(x, n.constantOf(picked), axis.dim);
}

// Puts the extrapolation value where the position along `axis` lies outside the input.
Value extrapolate(NodeImporter& n, const Rules& rules, const Axis& axis, Value x) {
  llvm::SmallVector<bool> inside;
  for (int64_t at = 0; at < axis.output; ++at) {
    auto from = original(n, rules, axis, at);
    inside.push_back(succeeded(from) && !isExtrapolated(rules, axis, *from));
  }
  if (!x || llvm::all_of(inside, [](bool is) { return is; })) {
    return x;
  }
  Ints column(rankOf(x) - axis.dim, 1);
  column[0] = axis.output;
  return n.create<ir::SelectOp>(n.boolConstant(inside, column), x,
                                n.scalarLike(x, rules.extrapolation));
}

// A product in f32, in which PyTorch and ONNX Runtime decide what is a whole number (0.7 of 10 is
// 7); a size that f32 can't hold stays exact.
double scaledSize(int64_t input, double scale) {
  constexpr double kExact = 1 << 24;
  double size = static_cast<double>(input) * scale;
  return size < kExact ? static_cast<float>(input) * static_cast<float>(scale) : size;
}

class Resize {
 public:
  explicit Resize(NodeImporter& n) : n_(n) {}
  LogicalResult import();

 private:
  LogicalResult readAxes();
  LogicalResult readSizes();
  LogicalResult readScales();
  LogicalResult readRoi();
  Rules readRules() const;
  LogicalResult check(const Rules& rules) const;

  NodeImporter& n_;
  Value input_;
  llvm::SmallVector<Axis> axes_;
};

LogicalResult Resize::readAxes() {
  int64_t rank = rankOf(input_);
  auto axes = n_.normalizeAxes(
      n_.attrInts("axes").value_or(llvm::to_vector(llvm::seq<int64_t>(0, rank))), rank);
  if (failed(axes)) {
    return failure();
  }
  for (int64_t dim : *axes) {
    if (shapeOf(input_)[dim] < 1) {
      return n_.error() << "resizes " << input_.getType();
    }
    axes_.push_back({dim, shapeOf(input_)[dim], shapeOf(input_)[dim], 1.0});
  }
  return success();
}

LogicalResult Resize::readSizes() {
  auto sizes = n_.constantInts(3);
  if (failed(sizes)) {
    return failure();
  }
  if (sizes->size() != axes_.size() ||
      llvm::any_of(*sizes, [](int64_t size) { return size < 1 || size > kMaxEnumerated; })) {
    return n_.error() << "needs one positive size for each of its " << axes_.size() << " axes";
  }
  for (auto [axis, size] : llvm::zip(axes_, *sizes)) {
    axis.output = size;
    axis.scale = static_cast<double>(size) / static_cast<double>(axis.input);
  }
  std::string policy = n_.attrString("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") {
    for (Axis& axis : axes_) {
      axis.hasSize = true;
    }
    return success();
  }
  if (policy != "not_larger" && policy != "not_smaller") {
    return n_.error() << "does not know the keep_aspect_ratio_policy \"" << policy << "\"";
  }
  double scale = axes_.front().scale;
  for (const Axis& axis : axes_) {
    scale = policy == "not_larger" ? std::min(scale, axis.scale) : std::max(scale, axis.scale);
  }
  for (Axis& axis : axes_) {
    double size = std::round(scale * static_cast<double>(axis.input));
    if (!(size >= 1 && size <= kMaxEnumerated)) {
      return n_.error() << "makes a size of " << size << " of " << axis.input;
    }
    axis.scale = scale;
    axis.output = static_cast<int64_t>(size);
  }
  return success();
}

LogicalResult Resize::readScales() {
  auto scales = constantFloats(n_, 2);
  if (failed(scales)) {
    return failure();
  }
  if (scales->size() != axes_.size()) {
    return n_.error() << "has " << scales->size() << " scales for " << axes_.size() << " axes";
  }
  for (auto [axis, scale] : llvm::zip(axes_, *scales)) {
    double extent = axis.roiEnd - axis.roiBegin;
    double size = std::floor(scaledSize(axis.input, extent * scale));
    if (!(size >= 1 && size <= kMaxEnumerated)) {
      return n_.error() << "scales a size of " << axis.input << " by " << scale;
    }
    axis.scale = scale;
    axis.output = static_cast<int64_t>(size);
  }
  return success();
}

LogicalResult Resize::readRoi() {
  auto roi = constantFloats(n_, 1);
  if (failed(roi)) {
    return failure();
  }
  if (roi->size() != 2 * axes_.size()) {
    return n_.error() << "has a roi of " << roi->size() << " elements for " << axes_.size()
                      << " axes";
  }
  for (size_t i = 0; i < axes_.size(); ++i) {
    axes_[i].roiBegin = (*roi)[i];
    axes_[i].roiEnd = (*roi)[i + axes_.size()];
  }
  return success();
}

Rules Resize::readRules() const {
  Rules rules;
  rules.mode = n_.attrString("mode", "nearest");
  rules.coordinates = n_.attrString("coordinate_transformation_mode", "half_pixel");
  rules.nearest = n_.attrString("nearest_mode", "round_prefer_floor");
  rules.antialias = n_.attrInt("antialias", 0) != 0;
  rules.excludeOutside = n_.attrInt("exclude_outside", 0) != 0;
  rules.cubic = n_.attrFloat("cubic_coeff_a", -0.75);
  rules.extrapolation = n_.attrFloat("extrapolation_value", 0);
  return rules;
}

LogicalResult Resize::check(const Rules& rules) const {
  constexpr llvm::StringLiteral kModes[] = {"nearest", "linear", "cubic"};
  constexpr llvm::StringLiteral kCoordinates[] = {"half_pixel",           "pytorch_half_pixel",
                                                  "half_pixel_symmetric", "asymmetric",
                                                  "align_corners",        "tf_crop_and_resize"};
  if (!llvm::is_contained(kModes, rules.mode)) {
    return n_.error() << "does not know the mode \"" << rules.mode << "\"";
  }
  if (rules.mode != "nearest" && !llvm::isa<mlir::FloatType>(elementOf(input_))) {
    return n_.error() << "can't interpolate " << input_.getType()
                      << "; only the mode \"nearest\" takes other types than floats";
  }
  if (!llvm::is_contained(kCoordinates, rules.coordinates)) {
    return n_.error() << "does not know the coordinate_transformation_mode \"" << rules.coordinates
                      << "\"";
  }
  return success();
}

LogicalResult Resize::import() {
  input_ = n_.operand(0);
  if (!input_ || failed(readAxes())) {
    return failure();
  }
  if (!n_.hasOperand(2) && !n_.hasOperand(3)) {
    return n_.error() << "has neither scales nor sizes";
  }
  Rules rules = readRules();
  if (failed(check(rules))) {
    return failure();
  }
  if (rules.coordinates == "tf_crop_and_resize" && failed(readRoi())) {
    return failure();
  }
  if (failed(n_.hasOperand(3) ? readSizes() : readScales())) {
    return failure();
  }
  Value x = input_;
  for (const Axis& axis : axes_) {
    if (axis.input > kMaxEnumerated / axis.output) {
      return n_.error() << "resizes " << axis.input << " elements to " << axis.output;
    }
    bool isSame = axis.output == axis.input && axis.scale == 1.0 && axis.roiBegin == 0.0 &&
                  axis.roiEnd == 1.0;
    if (isSame) {
      continue;
    }
    x = rules.mode == "nearest" ? pickNearest(n_, rules, axis, x) : interpolate(n_, rules, axis, x);
    if (!x) {
      return failure();
    }
  }
  for (const Axis& axis : axes_) {
    x = extrapolate(n_, rules, axis, x);
  }
  return n_.replace(x);
}

LogicalResult importResize(NodeImporter& n) { return Resize(n).import(); }

}  // namespace

void registerResize(OpRegistry& registry) {
  registry.add("Resize", 13, importResize);
  registry.addConstantOperands("Resize", {1, 2});
}

}  // namespace oriel
