// Values of ONNX tensors, wherever the model keeps them.
#ifndef ORIEL_FRONTEND_TENSOR_DATA_H_
#define ORIEL_FRONTEND_TENSOR_DATA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace onnx {
class TensorProto;
}

namespace oriel {

// A dense tensor: row-major, little-endian, a boolean is one byte (0 or 1).
struct TensorData {
  int32_t dataType = 0;  // onnx::TensorProto::DataType
  llvm::SmallVector<int64_t, 4> shape;
  llvm::ArrayRef<char> bytes;
  // Keeps `bytes` alive. Null where they belong to the model file, which must then outlive this.
  std::shared_ptr<const void> owner;

  int64_t numElements() const;
};

// The element type for an onnx::TensorProto::DataType; null for one that Oriel does not know
// (strings, complex numbers, 4-bit and 8-bit floats, ..).
mlir::Type elementTypeOf(mlir::MLIRContext* context, int32_t dataType);
// Bytes of one element of a known type, else 0.
int64_t elementBytes(int32_t dataType);
// "float32", or "type 27" for a number without a name.
std::string dataTypeName(int32_t dataType);

// Type and shape of a tensor, checked: a known type, no negative or overflowing size, no segments.
struct TensorHeader {
  int32_t dataType = 0;  // onnx::TensorProto::DataType
  llvm::SmallVector<int64_t, 4> shape;
  int64_t bytes = 0;

  int64_t numElements() const { return dataType == 0 ? 0 : bytes / elementBytes(dataType); }
};
llvm::Expected<TensorHeader> readTensorHeader(const onnx::TensorProto& tensor);

// Where a tensor with external data says that it lies.
struct ExternalRange {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};
llvm::Expected<ExternalRange> readExternalRange(const onnx::TensorProto& tensor);

// Reads a tensor from raw data, typed fields or an external file in `folder` (mapped into memory).
// No size in the file is trusted: negative or overflowing shapes, too few or too many bytes, and an
// external file that lies outside `folder` or ends early are errors that name the tensor.
llvm::Expected<TensorData> readTensor(const onnx::TensorProto& tensor, llvm::StringRef folder);

// The path of external data that is not there; empty if it is. As for resolveExternalPath, the
// location must be relative and go nowhere up.
llvm::Expected<std::string> findMissingFile(llvm::StringRef folder, llvm::StringRef location,
                                            llvm::StringRef tensorName);

// Resolves the location of external data. It must be relative and stay inside `folder`, symbolic
// links followed.
llvm::Expected<std::string> resolveExternalPath(llvm::StringRef folder, llvm::StringRef location,
                                                llvm::StringRef tensorName);

// Values in a float type, to the nearest, in `storage` where that is not f32. None where a finite
// one is beyond the type, or the type is no float that Oriel knows.
std::optional<llvm::ArrayRef<char>> encodeFloats(llvm::ArrayRef<float> values, int32_t dataType,
                                                 std::vector<char>& storage);
// The way back, of a tensor in one of these types; what is finite stays so.
std::vector<float> decodeFloats(const TensorData& data);

// Null for an unknown element type. A tensor of equal elements becomes a splat.
mlir::DenseElementsAttr toAttribute(mlir::MLIRContext* context, const TensorData& data);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_TENSOR_DATA_H_
