#include "frontend/tensor_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>

#include "frontend/error.h"
#include "ir/oriel/inference.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "mlir/IR/Builders.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using onnx::TensorProto;

std::string describe(const TensorProto& tensor) {
  return ("tensor \"" + llvm::StringRef(tensor.name()) + "\"").str();
}

// Bytes that the shape asks for.
llvm::Expected<int64_t> expectedBytes(const TensorProto& tensor) {
  int64_t bytes = elementBytes(tensor.data_type());
  if (bytes == 0) {
    return makeError(describe(tensor) + " has the element type " +
                     dataTypeName(tensor.data_type()) + ", which Oriel does not read");
  }
  if (tensor.dims_size() > ir::kMaxRank) {
    return makeError(describe(tensor) + " has " + llvm::Twine(tensor.dims_size()) +
                     " dimensions; Oriel reads up to " + llvm::Twine(ir::kMaxRank));
  }
  // A zero among the sizes must not hide an overflow of the others.
  int64_t product = bytes;
  bool empty = false;
  for (int64_t dim : tensor.dims()) {
    if (dim < 0) {
      return makeError(describe(tensor) + " has the negative size " + llvm::Twine(dim));
    }
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, dim, &product)) {
      return makeError(describe(tensor) + " has a shape whose size overflows 64 bits");
    }
  }
  return empty ? 0 : product;
}

llvm::Error wrongSize(const TensorProto& tensor, int64_t wanted, uint64_t found) {
  return makeError(describe(tensor) + " holds " + llvm::Twine(found) +
                   " bytes, but its shape needs " + llvm::Twine(wanted) + ": the file is damaged");
}

// Copies a typed field, narrowing each entry to `Stored`.
template <typename Stored, typename Field>
std::shared_ptr<std::vector<char>> packField(const Field& field) {
  auto bytes = std::make_shared<std::vector<char>>(sizeof(Stored) * field.size());
  for (int i = 0; i < field.size(); ++i) {
    Stored value = static_cast<Stored>(field.Get(i));
    std::memcpy(bytes->data() + sizeof(Stored) * i, &value, sizeof(Stored));
  }
  return bytes;
}

std::shared_ptr<std::vector<char>> packTypedField(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return packField<float>(tensor.float_data());
    case TensorProto::DOUBLE:
      return packField<double>(tensor.double_data());
    case TensorProto::INT64:
      return packField<int64_t>(tensor.int64_data());
    case TensorProto::INT32:
      return packField<int32_t>(tensor.int32_data());
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return packField<uint16_t>(tensor.int32_data());
    default:  // INT8, UINT8, BOOL
      return packField<uint8_t>(tensor.int32_data());
  }
}

llvm::Error escapes(llvm::StringRef location, llvm::StringRef tensorName) {
  return makeError("tensor \"" + tensorName + "\" has its data in \"" + location +
                   "\", which is outside the model's folder; Oriel reads external data only "
                   "from beside the model");
}

llvm::Error readExternal(const TensorProto& tensor, llvm::StringRef folder, int64_t bytes,
                         TensorData& data) {
  auto range = readExternalRange(tensor);
  if (!range) {
    return range.takeError();
  }
  if (range->length && *range->length != static_cast<uint64_t>(bytes)) {
    return wrongSize(tensor, bytes, *range->length);
  }
  auto path = resolveExternalPath(folder, range->location, tensor.name());
  if (!path) {
    return path.takeError();
  }
  uint64_t fileSize = 0;
  if (std::error_code code = llvm::sys::fs::file_size(*path, fileSize)) {
    return makeError(describe(tensor) + ": can't read \"" + *path + "\": " + code.message());
  }
  if (range->offset > fileSize || static_cast<uint64_t>(bytes) > fileSize - range->offset) {
    return makeError(describe(tensor) + " lies beyond the end of \"" + *path + "\" (" +
                     llvm::Twine(fileSize) + " bytes): the file is truncated, copy it again");
  }
  if (bytes == 0) {
    return llvm::Error::success();
  }
  auto buffer = llvm::MemoryBuffer::getFileSlice(*path, bytes, range->offset);
  if (!buffer) {
    return makeError(describe(tensor) + ": can't read \"" + *path +
                     "\": " + buffer.getError().message());
  }
  std::shared_ptr<llvm::MemoryBuffer> owner = std::move(*buffer);
  data.bytes = llvm::ArrayRef<char>(owner->getBufferStart(), owner->getBufferSize());
  data.owner = std::move(owner);
  return llvm::Error::success();
}

// Where external data would lie, unless that is outside the folder.
llvm::Expected<llvm::SmallString<256>> joinLocation(llvm::StringRef folder,
                                                    llvm::StringRef location,
                                                    llvm::StringRef tensorName) {
  namespace path = llvm::sys::path;
  llvm::SmallString<256> direct(location);
  path::remove_dots(direct, /*remove_dot_dot=*/true);
  const bool goesUp = path::begin(direct) != path::end(direct) && *path::begin(direct) == "..";
  if (path::is_absolute(location) || goesUp) {
    return escapes(location, tensorName);
  }
  llvm::SmallString<256> joined(folder.empty() ? "." : folder);
  path::append(joined, direct);
  return joined;
}

}  // namespace

llvm::Expected<ExternalRange> readExternalRange(const TensorProto& tensor) {
  ExternalRange range;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") {
      range.location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      uint64_t number;
      if (llvm::StringRef(entry.value()).getAsInteger(10, number)) {
        return makeError(describe(tensor) + " has the external data " + entry.key() + " \"" +
                         entry.value() + "\", which is no number");
      }
      if (entry.key() == "offset") {
        range.offset = number;
      } else {
        range.length = number;
      }
    }
  }
  if (range.location.empty()) {
    return makeError(describe(tensor) + " has external data without a location");
  }
  return range;
}

int64_t TensorData::numElements() const {
  int64_t count = 1;
  for (int64_t dim : shape) {
    count *= dim;
  }
  return count;
}

mlir::Type elementTypeOf(mlir::MLIRContext* context, int32_t dataType) {
  mlir::Builder b(context);
  switch (dataType) {
    case TensorProto::FLOAT:
      return b.getF32Type();
    case TensorProto::DOUBLE:
      return b.getF64Type();
    case TensorProto::FLOAT16:
      return b.getF16Type();
    case TensorProto::BFLOAT16:
      return b.getBF16Type();
    case TensorProto::INT64:
      return b.getI64Type();
    case TensorProto::INT32:
      return b.getI32Type();
    case TensorProto::INT8:
      return b.getIntegerType(8);
    case TensorProto::UINT8:
      return b.getIntegerType(8, /*isSigned=*/false);
    case TensorProto::BOOL:
      return b.getI1Type();
    default:
      return {};
  }
}

int64_t elementBytes(int32_t dataType) {
  switch (dataType) {
    case TensorProto::DOUBLE:
    case TensorProto::INT64:
      return 8;
    case TensorProto::FLOAT:
    case TensorProto::INT32:
      return 4;
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return 2;
    case TensorProto::INT8:
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return 1;
    default:
      return 0;
  }
}

std::string dataTypeName(int32_t dataType) {
  if (!TensorProto::DataType_IsValid(dataType)) {
    return "type " + std::to_string(dataType);
  }
  return llvm::StringRef(TensorProto::DataType_Name(dataType)).lower();
}

llvm::Expected<std::string> findMissingFile(llvm::StringRef folder, llvm::StringRef location,
                                            llvm::StringRef tensorName) {
  auto joined = joinLocation(folder, location, tensorName);
  if (!joined) {
    return joined.takeError();
  }
  return llvm::sys::fs::exists(*joined) ? "" : joined->str().str();
}

llvm::Expected<std::string> resolveExternalPath(llvm::StringRef folder, llvm::StringRef location,
                                                llvm::StringRef tensorName) {
  namespace path = llvm::sys::path;
  auto joined = joinLocation(folder, location, tensorName);
  if (!joined) {
    return joined.takeError();
  }
  llvm::SmallString<256> realFolder, realFile;
  if (std::error_code code = llvm::sys::fs::real_path(*joined, realFile)) {
    return makeError("tensor \"" + tensorName + "\" has its data in \"" + joined->str() +
                     "\", which can't be opened (" + code.message() +
                     "); copy it from beside the original model");
  }
  if (llvm::sys::fs::real_path(folder.empty() ? "." : folder, realFolder)) {
    return escapes(location, tensorName);
  }
  path::append(realFolder, "");  // a trailing separator, so that "models2" is not in "models"
  if (!llvm::StringRef(realFile).starts_with(realFolder)) {
    return escapes(location, tensorName);
  }
  if (!llvm::sys::fs::is_regular_file(realFile)) {
    return makeError("tensor \"" + tensorName + "\" has its data in \"" + joined->str() +
                     "\", which is not a file");
  }
  return realFile.str().str();
}

llvm::Expected<TensorHeader> readTensorHeader(const TensorProto& tensor) {
  auto bytes = expectedBytes(tensor);
  if (!bytes) {
    return bytes.takeError();
  }
  if (tensor.has_segment()) {
    return makeError(describe(tensor) + " is stored in segments, which Oriel does not read");
  }
  TensorHeader header;
  header.dataType = tensor.data_type();
  header.shape.assign(tensor.dims().begin(), tensor.dims().end());
  header.bytes = *bytes;
  return header;
}

llvm::Expected<TensorData> readTensor(const TensorProto& tensor, llvm::StringRef folder) {
  auto header = readTensorHeader(tensor);
  if (!header) {
    return header.takeError();
  }
  TensorData data;
  data.dataType = header->dataType;
  data.shape = header->shape;
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    if (llvm::Error error = readExternal(tensor, folder, header->bytes, data)) {
      return error;
    }
    return data;
  }
  if (tensor.has_raw_data()) {
    data.bytes = llvm::ArrayRef<char>(tensor.raw_data().data(), tensor.raw_data().size());
  } else {
    auto packed = packTypedField(tensor);
    data.bytes = llvm::ArrayRef<char>(packed->data(), packed->size());
    data.owner = std::move(packed);
  }
  if (data.bytes.size() != static_cast<uint64_t>(header->bytes)) {
    return wrongSize(tensor, header->bytes, data.bytes.size());
  }
  return data;
}

std::optional<llvm::ArrayRef<char>> encodeFloats(llvm::ArrayRef<float> values, int32_t dataType,
                                                 std::vector<char>& storage) {
  if (dataType == TensorProto::FLOAT) {
    return llvm::ArrayRef<char>(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(float));
  }
  storage.resize(values.size() * elementBytes(dataType));
  bool isBeyond = false;
  auto narrow = [&](const llvm::fltSemantics& semantics) {
    for (size_t i = 0; i < values.size(); ++i) {
      llvm::APFloat number(values[i]);
      bool losesInfo;
      number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      isBeyond |= number.isInfinity() && !std::isinf(values[i]);
      auto bits = static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
      std::memcpy(storage.data() + 2 * i, &bits, 2);
    }
  };
  switch (dataType) {
    case TensorProto::DOUBLE:
      for (size_t i = 0; i < values.size(); ++i) {
        double wide = values[i];
        std::memcpy(storage.data() + 8 * i, &wide, 8);
      }
      break;
    case TensorProto::FLOAT16:
      narrow(llvm::APFloat::IEEEhalf());
      break;
    case TensorProto::BFLOAT16:
      narrow(llvm::APFloat::BFloat());
      break;
    default:
      return std::nullopt;
  }
  if (isBeyond) return std::nullopt;
  return llvm::ArrayRef<char>(storage);
}

std::vector<float> decodeFloats(const TensorData& data) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  std::vector<float> values(data.numElements());
  auto widen = [&](const llvm::fltSemantics& semantics) {
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, data.bytes.data() + 2 * i, 2);
      values[i] = llvm::APFloat(semantics, llvm::APInt(16, bits)).convertToFloat();
    }
  };
  switch (data.dataType) {
    case TensorProto::FLOAT:
      std::memcpy(values.data(), data.bytes.data(), values.size() * sizeof(float));
      break;
    case TensorProto::DOUBLE:
      for (size_t i = 0; i < values.size(); ++i) {
        double wide;
        std::memcpy(&wide, data.bytes.data() + 8 * i, 8);
        values[i] =
            static_cast<float>(std::isfinite(wide) ? std::clamp(wide, -kLargest, kLargest) : wide);
      }
      break;
    case TensorProto::FLOAT16:
      widen(llvm::APFloat::IEEEhalf());
      break;
    case TensorProto::BFLOAT16:
      widen(llvm::APFloat::BFloat());
      break;
    default:
      break;  // the caller's promise
  }
  return values;
}

mlir::DenseElementsAttr toAttribute(mlir::MLIRContext* context, const TensorData& data) {
  mlir::Type element = elementTypeOf(context, data.dataType);
  if (!element) {
    return {};
  }
  auto type = mlir::RankedTensorType::get(data.shape, element);
  if (element.isInteger(1)) {
    // MLIR's own layout of booleans differs between releases; this overload does not care.
    llvm::SmallVector<bool> values;
    values.reserve(data.bytes.size());
    for (char byte : data.bytes) {
      values.push_back(byte != 0);
    }
    return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(values));
  }
  llvm::ArrayRef<char> bytes = data.bytes;
  size_t size = elementBytes(data.dataType);
  if (bytes.size() > size &&
      std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0) {
    bytes = bytes.take_front(size);
  }
  return mlir::DenseElementsAttr::getFromRawBuffer(type, bytes);
}

}  // namespace oriel
