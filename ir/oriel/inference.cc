#include "ir/oriel/inference.h"

#include "ir/interfaces/interfaces.h"
#include "llvm/ADT/StringExtras.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

std::string shapeProblem(llvm::ArrayRef<int64_t> shape) {
  if (shape.size() > kMaxRank) {
    return "more than " + std::to_string(kMaxRank) + " dimensions";
  }
  for (int64_t size : shape) {
    // The bound on each size matters where another one is zero.
    if (size < 0 || size > kMaxElements) {
      return "the size " + std::to_string(size) + ", outside 0 to " + std::to_string(kMaxElements);
    }
  }
  return elementCount(shape) > kMaxElements
             ? "more than " + std::to_string(kMaxElements) + " elements"
             : "";
}

LogicalResult InferenceContext::addResult(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                                          llvm::SmallVectorImpl<mlir::Type>& results) const {
  if (std::string problem = shapeProblem(shape); !problem.empty()) {
    return refuse("would have the result shape ", shapeText(shape), ", which has ", problem);
  }
  results.push_back(mlir::RankedTensorType::get(shape, elementType));
  return success();
}

LogicalResult InferenceContext::expectRank(llvm::StringRef name, mlir::Value value,
                                           int64_t rank) const {
  if (rankOf(value) == rank) return success();
  return refuse("expects ", name, " of rank ", rank, ", got the shape ", shapeText(shapeOf(value)));
}

LogicalResult InferenceContext::expectShape(llvm::StringRef name, mlir::Value value,
                                            llvm::ArrayRef<int64_t> shape) const {
  if (shapeOf(value) == shape) return success();
  return refuse("expects ", name, " of shape ", shapeText(shape), ", got ",
                shapeText(shapeOf(value)));
}

LogicalResult InferenceContext::expectType(llvm::StringRef name, mlir::Value value,
                                           mlir::Type type) const {
  if (value.getType() == type) return success();
  return refuse("expects ", name, " of type ", type, ", got ", value.getType());
}

LogicalResult InferenceContext::expectElementType(llvm::StringRef name, mlir::Value value,
                                                  mlir::Type elementType) const {
  if (elementOf(value) == elementType) return success();
  return refuse("expects ", name, " with elements of type ", elementType, ", got ",
                value.getType());
}

LogicalResult InferenceContext::expectPiece(mlir::Value first, llvm::StringRef name, int64_t whole,
                                            int64_t piece) const {
  if (static_cast<bool>(first) != (whole != 0)) {
    return refuse("expects first and ", name, " together");
  }
  if (!first || whole >= piece) return success();
  return refuse("expects ", name, " of at least ", piece, ", the size of the piece, got ", whole);
}

LogicalResult InferenceContext::expectDim(llvm::StringRef name, int64_t dim, int64_t rank) const {
  if (dim >= 0 && dim < rank) return success();
  return refuse("expects ", name, " from 0 to ", rank - 1, ", got ", dim);
}

mlir::Type wideType(mlir::Type elementType) {
  auto number = llvm::dyn_cast<mlir::FloatType>(elementType);
  bool isNarrow = number && number.getWidth() < 32;
  return isNarrow ? mlir::Float32Type::get(number.getContext()) : elementType;
}

bool areTypesOrWide(mlir::TypeRange inferred, mlir::TypeRange actual) {
  return llvm::equal(inferred, actual, [](mlir::Type expected, mlir::Type type) {
    auto tensor = llvm::cast<mlir::RankedTensorType>(expected);
    return type == tensor || type == tensor.clone(wideType(tensor.getElementType()));
  });
}

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  llvm::interleaveComma(shape.take_front(kMaxRank), stream);
  stream << (shape.size() > kMaxRank ? ", ..]" : "]");
  return text;
}

bool broadcastsTo(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  if (from.size() > to.size()) return false;
  for (auto [a, b] : llvm::zip(llvm::reverse(from), llvm::reverse(to))) {
    if (a != b && a != 1) return false;
  }
  return true;
}

mlir::FailureOr<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> lhs,
                                                            llvm::ArrayRef<int64_t> rhs) {
  if (lhs.size() < rhs.size()) std::swap(lhs, rhs);
  llvm::SmallVector<int64_t> shape(lhs);
  size_t offset = lhs.size() - rhs.size();
  for (size_t i = 0; i < rhs.size(); ++i) {
    int64_t& size = shape[offset + i];
    if (size == 1) {
      size = rhs[i];
    } else if (rhs[i] != 1 && rhs[i] != size) {
      return failure();
    }
  }
  return shape;
}

}  // namespace oriel::ir
