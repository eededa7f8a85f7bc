// Where the values of initializers lie in an ONNX file.
#ifndef ORIEL_FRONTEND_INITIALIZER_BYTES_H_
#define ORIEL_FRONTEND_INITIALIZER_BYTES_H_

#include <cstdint>
#include <optional>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

namespace oriel {

struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// By name: raw data, or packed floats. Found by walking the file's own encoding, so that values can
// be overwritten in place: parsing and writing a message again need not give the same bytes.
// Nothing where the file is no valid encoding.
std::optional<llvm::StringMap<ByteRange>> findInitializerBytes(llvm::ArrayRef<char> file);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_INITIALIZER_BYTES_H_
