#include "ir/oriel/folding.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"

namespace oriel::ir {
namespace {

using mlir::DenseElementsAttr;
using mlir::RankedTensorType;

template <typename T>
void appendFloats(DenseElementsAttr constant, bool splat, std::vector<T>& values) {
  auto convert = [](const llvm::APFloat& value) -> T {
    if constexpr (std::is_same_v<T, double>) return value.convertToDouble();
    return value.convertToFloat();
  };
  if (splat) {
    values.push_back(convert(constant.getSplatValue<llvm::APFloat>()));
    return;
  }
  // The iteration by APFloat is slow: only for the narrow types.
  constexpr unsigned kWidth = sizeof(T) * 8;
  if (constant.getElementType().getIntOrFloatBitWidth() == kWidth) {
    auto range = constant.getValues<T>();
    values.assign(range.begin(), range.end());
    return;
  }
  for (const llvm::APFloat& value : constant.getValues<llvm::APFloat>()) {
    values.push_back(convert(value));
  }
}

void appendInts(DenseElementsAttr constant, bool splat, std::vector<int64_t>& values) {
  auto type = llvm::cast<mlir::IntegerType>(constant.getElementType());
  bool zeroExtend = type.isUnsigned() || type.getWidth() == 1;
  auto convert = [&](const llvm::APInt& value) {
    return zeroExtend ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue();
  };
  if (splat) {
    values.push_back(convert(constant.getSplatValue<llvm::APInt>()));
    return;
  }
  if (type.isSignlessInteger(64)) {
    auto range = constant.getValues<int64_t>();
    values.assign(range.begin(), range.end());
    return;
  }
  values.reserve(constant.getNumElements());
  if (type.isSignlessInteger(1)) {
    for (bool value : constant.getValues<bool>()) values.push_back(value);
    return;
  }
  for (const llvm::APInt& value : constant.getValues<llvm::APInt>()) {
    values.push_back(convert(value));
  }
}

template <typename T>
DenseElementsAttr writeFloats(RankedTensorType type, llvm::ArrayRef<T> values) {
  auto elementType = llvm::cast<mlir::FloatType>(type.getElementType());
  if (elementType.getWidth() == sizeof(T) * 8) return DenseElementsAttr::get(type, values);
  llvm::SmallVector<llvm::APFloat> converted;
  converted.reserve(values.size());
  for (T value : values) {
    llvm::APFloat number(value);
    bool losesInfo = false;
    number.convert(elementType.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    converted.push_back(number);
  }
  return DenseElementsAttr::get(type, converted);
}

DenseElementsAttr writeInts(RankedTensorType type, llvm::ArrayRef<int64_t> values) {
  auto elementType = llvm::cast<mlir::IntegerType>(type.getElementType());
  if (elementType.getWidth() == 1) {
    llvm::SmallVector<bool> flags(llvm::map_range(values, [](int64_t v) { return v != 0; }));
    return DenseElementsAttr::get(type, flags);
  }
  if (elementType.isSignlessInteger(64)) return DenseElementsAttr::get(type, values);
  llvm::SmallVector<llvm::APInt> converted;
  converted.reserve(values.size());
  for (int64_t value : values) {
    converted.push_back(
        llvm::APInt(64, static_cast<uint64_t>(value)).zextOrTrunc(elementType.getWidth()));
  }
  return DenseElementsAttr::get(type, converted);
}

}  // namespace

template <typename T>
Elements<T> readElements(DenseElementsAttr constant) {
  Elements<T> elements;
  if (constant.getNumElements() == 0) return elements;
  elements.splat = constant.isSplat();
  if constexpr (std::is_integral_v<T>) {
    appendInts(constant, elements.splat, elements.values);
  } else {
    appendFloats<T>(constant, elements.splat, elements.values);
  }
  return elements;
}
template Elements<float> readElements<float>(DenseElementsAttr);
template Elements<double> readElements<double>(DenseElementsAttr);
template Elements<int64_t> readElements<int64_t>(DenseElementsAttr);

template <typename T>
DenseElementsAttr writeElements(RankedTensorType type, llvm::ArrayRef<T> values) {
  // One value for a tensor without elements would not be a valid constant.
  if (elementCount(type.getShape()) == 0) values = {};
  if constexpr (std::is_integral_v<T>) {
    return writeInts(type, values);
  } else {
    return writeFloats<T>(type, values);
  }
}
template DenseElementsAttr writeElements<float>(RankedTensorType, llvm::ArrayRef<float>);
template DenseElementsAttr writeElements<double>(RankedTensorType, llvm::ArrayRef<double>);
template DenseElementsAttr writeElements<int64_t>(RankedTensorType, llvm::ArrayRef<int64_t>);

bool isUniform(mlir::Attribute operand, double value) {
  // A constant whose elements are equal is stored as a splat.
  DenseElementsAttr constant = denseConstant(operand);
  if (!constant || constant.getNumElements() == 0 || !constant.isSplat()) return false;
  return visitElementType(constant.getElementType(), [&](auto zero) {
    return readElements<decltype(zero)>(constant)[0] == value;
  });
}

bool mayFoldTo(RankedTensorType type, llvm::ArrayRef<DenseElementsAttr> operands) {
  const bool uniform =
      llvm::all_of(operands, [](DenseElementsAttr operand) { return operand.isSplat(); });
  if (uniform || !mayFoldTo(type, /*uniform=*/false)) return uniform;
  const int64_t count = elementCount(type.getShape());
  // A mask, or what one is made of: of queries and keys, the same for all samples.
  const bool isOneMatrix = type.getRank() >= 2 && elementCount(type.getShape().drop_back(2)) == 1;
  if (count <= kMaxRepeatedIntegers || isOneMatrix || type.getElementType().isInteger(1)) {
    return true;
  }
  return llvm::any_of(operands, [&](DenseElementsAttr operand) {
    return !operand.isSplat() && operand.getNumElements() == count;
  });
}

llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = boundedProduct({stride, shape[i]});
  }
  return strides;
}

llvm::SmallVector<int64_t> broadcastStrides(llvm::ArrayRef<int64_t> from,
                                            llvm::ArrayRef<int64_t> to) {
  llvm::SmallVector<int64_t> strides(to.size(), 0);
  llvm::SmallVector<int64_t> own = rowMajorStrides(from);
  size_t offset = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1) strides[offset + i] = own[i];
  }
  return strides;
}

mlir::Attribute foldBroadcast(DenseElementsAttr source, RankedTensorType type) {
  if (!source) return {};
  return foldStrided(source, type, 0,
                     broadcastStrides(source.getType().getShape(), type.getShape()));
}

mlir::Attribute foldStrided(DenseElementsAttr source, RankedTensorType type, int64_t base,
                            llvm::ArrayRef<int64_t> strides) {
  if (!source || !mayFoldTo(type, source.isSplat())) return {};
  return visitElementType(source.getElementType(), [&](auto zero) -> mlir::Attribute {
    using T = decltype(zero);
    Elements<T> elements = readElements<T>(source);
    if (elements.splat) return writeElements<T>(type, elements.values);
    std::vector<T> values;
    walkStrided<1>(type.getShape(), {llvm::SmallVector<int64_t>(strides)}, [&](auto offsets) {
      values.push_back(elements[base + offsets[0]]);
      return true;
    });
    return writeElements<T>(type, values);
  });
}

}  // namespace oriel::ir
