// Fourier transforms, as products with a constant matrix: models transform short axes, and a
// product has a gradient and runs wherever layers run.
#include <cmath>
#include <vector>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

using Sizes = llvm::ArrayRef<int64_t>;

// Elements of a matrix: a complex transform of 1,024 has 4 Mi.
constexpr int64_t kMaxMatrix = int64_t{1} << 23;
// Elements of all pieces of a signal, each of which is looked up.
constexpr int64_t kMaxPieces = int64_t{1} << 24;

// One discrete transform, of `length` elements. Numbers are real, or pairs of real and imaginary
// part. A real spectrum's second half follows from its first (onesided): bins 0 to length / 2.
struct Transform {
  int64_t length;
  bool inverse, onesided;
  int64_t inputParts, outputParts;

  int64_t bins() const { return onesided ? length / 2 + 1 : length; }
  int64_t inputs() const { return inverse ? bins() : length; }
  int64_t outputs() const { return inverse ? length : bins(); }
  // How often input `at` stands in the whole spectrum that the sum is over.
  double timesOf(int64_t at) const {
    return inverse && onesided && at != 0 && 2 * at != length ? 2 : 1;
  }
};

// Row (input element, part), column (output element, part). Elements from `given` on are zeros, and
// have no row.
template <typename T>
Value matrixOf(NodeImporter& n, const Transform& transform, int64_t given, mlir::Type element) {
  int64_t columns = transform.outputs() * transform.outputParts;
  // exp(-2πi jk / N), the other way exp(2πi jk / N) / N.
  double sign = transform.inverse ? 1 : -1;
  double scale = transform.inverse ? 1.0 / static_cast<double>(transform.length) : 1;
  std::vector<T> matrix;
  matrix.reserve(given * transform.inputParts * columns);
  for (int64_t in = 0; in < given; ++in) {
    for (int64_t part = 0; part < transform.inputParts; ++part) {
      for (int64_t out = 0; out < transform.outputs(); ++out) {
        double turn = static_cast<double>(in * out % transform.length) /
                      static_cast<double>(transform.length);
        double angle = sign * 2 * M_PI * turn, factor = scale * transform.timesOf(in);
        double real = factor * std::cos(angle), imaginary = factor * std::sin(angle);
        matrix.push_back(static_cast<T>(part == 0 ? real : -imaginary));
        if (transform.outputParts == 2) {
          matrix.push_back(static_cast<T>(part == 0 ? imaginary : real));
        }
      }
    }
  }
  auto type = mlir::RankedTensorType::get({given * transform.inputParts, columns}, element);
  return n.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<T>(matrix)));
}

LogicalResult check(NodeImporter& n, const Transform& transform) {
  if (transform.length < 1) {
    return n.error() << "transforms " << transform.length << " elements";
  }
  if (transform.length > kMaxMatrix ||
      transform.inputs() * transform.inputParts >
          kMaxMatrix / (transform.outputs() * transform.outputParts)) {
    return n.error() << "transforms " << transform.length
                     << " elements: a product with a matrix of more than " << kMaxMatrix
                     << " elements; compute it in front of the model";
  }
  return mlir::success();
}

// [.., elements (at `dim`), .., parts] -> the same of the result.
Value transformed(NodeImporter& n, Value x, int64_t dim, const Transform& transform) {
  int64_t rank = rankOf(x), given = std::min(shapeOf(x)[dim], transform.inputs());
  Value matrix =
      elementOf(x).isF64()
          ? matrixOf<double>(n, transform, given, elementOf(x))
          : n.cast(matrixOf<float>(n, transform, given, n.builder().getF32Type()), elementOf(x));
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[dim], order[rank - 2]);
  x = n.transpose(n.sliceDim(x, dim, 0, given), order);
  if (!x) {
    return {};
  }
  Ints rows(shapeOf(x).drop_back());
  rows.back() = given * transform.inputParts;
  x = n.create<ir::LinearOp>(n.reshape(x, rows), matrix, OptionalValue{},
                             /*transposeWeight=*/false);
  rows.back() = transform.outputs();
  rows.push_back(transform.outputParts);
  return n.transpose(n.reshape(x, rows), order);
}

FailureOr<int64_t> partsOf(NodeImporter& n, Value x, int64_t minRank) {
  if (rankOf(x) < minRank || (shapeOf(x).back() != 1 && shapeOf(x).back() != 2) ||
      !llvm::isa<mlir::FloatType>(elementOf(x))) {
    return n.error() << "transforms " << x.getType() << "; it must be floats of " << minRank
                     << " dimensions or more, the last one a real or a real and an imaginary part";
  }
  return shapeOf(x).back();
}

LogicalResult importDft(NodeImporter& n) {
  Value x = n.operand(0);
  if (!x) {
    return failure();
  }
  auto parts = partsOf(n, x, /*minRank=*/2);
  if (failed(parts)) {
    return failure();
  }
  constexpr int64_t kAxisIsOperand = 20;
  FailureOr<int64_t> axis = n.attrInt("axis", 1);
  if (n.version() >= kAxisIsOperand) {
    axis = n.hasOperand(2) ? n.constantInt(2) : FailureOr<int64_t>(-2);
  }
  auto dim = failed(axis) ? axis : n.normalizeAxis(*axis, rankOf(x));
  if (failed(dim)) {
    return failure();
  }
  if (*dim == rankOf(x) - 1) {
    return n.error() << "transforms along the dimension of real and imaginary parts";
  }
  Transform transform{shapeOf(x)[*dim], n.attrInt("inverse", 0) != 0, n.attrInt("onesided", 0) != 0,
                      *parts, 2};
  if (transform.onesided && transform.inverse) {
    transform.outputParts = 1;
    transform.length = 2 * (transform.length - 1);
  }
  if (transform.onesided && (transform.inverse ? *parts != 2 : *parts != 1)) {
    return n.error() << "has one side of the spectrum of " << x.getType();
  }
  if (n.hasOperand(1)) {
    auto length = n.constantInt(1);
    if (failed(length)) {
      return failure();
    }
    transform.length = *length;
  }
  if (shapeOf(x)[*dim] < 1) {
    return n.error() << "transforms " << x.getType() << ", which has no elements";
  }
  return failed(check(n, transform)) ? failure() : n.replace(transformed(n, x, *dim, transform));
}

// [samples, signal, parts] -> [samples, frames, bins, 2]: the transform of pieces of the signal,
// one every `step` elements.
LogicalResult importStft(NodeImporter& n) {
  Value x = n.operand(0);
  auto step = n.constantInt(1);
  if (!x || failed(step)) {
    return failure();
  }
  auto parts = partsOf(n, x, /*minRank=*/3);
  if (failed(parts)) {
    return failure();
  }
  Value window = n.optionalOperand(2);
  if (rankOf(x) != 3 || (window && rankOf(window) != 1)) {
    return n.error() << "transforms " << x.getType()
                     << "; it must be [samples, elements, parts], and a window a vector";
  }
  int64_t signal = shapeOf(x)[1];
  FailureOr<int64_t> length = n.hasOperand(3) ? n.constantInt(3)
                              : window        ? FailureOr<int64_t>(shapeOf(window)[0])
                                              : FailureOr<int64_t>(signal);
  if (failed(length)) {
    return failure();
  }
  if (*step < 1 || *length < 1 || *length > signal) {
    return n.error() << "cuts pieces of " << *length << " elements, one every " << *step
                     << ", out of " << signal;
  }
  if (window && shapeOf(window)[0] != *length) {
    return n.error() << "has a window of " << shapeOf(window)[0] << " elements for pieces of "
                     << *length;
  }
  Transform transform{*length, /*inverse=*/false, n.attrInt("onesided", 1) != 0, *parts, 2};
  if (failed(check(n, transform))) {
    return failure();
  }
  int64_t frames = (signal - *length) / *step + 1;
  if (*length > kMaxPieces / frames) {
    return n.error() << "has " << frames << " pieces of " << *length << " elements, more than "
                     << kMaxPieces << " together; compute it in front of the model";
  }
  Ints elements;
  elements.reserve(frames * *length);
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t at = 0; at < *length; ++at) {
      elements.push_back(frame * *step + at);
    }
  }
  x = n.gather(x, n.constantOf(elements, {frames, *length}), 1);
  if (window) {
    x = n.create<ir::MulOp>(x, n.reshape(window, {*length, 1}));
  }
  return x ? n.replace(transformed(n, x, 2, transform)) : failure();
}

}  // namespace

void registerFourierOps(OpRegistry& registry) {
  registry.add("DFT", 17, importDft);
  registry.add("STFT", 17, importStft);
  registry.addConstantOperands("STFT", {2});
}

}  // namespace oriel
