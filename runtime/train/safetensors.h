// The safetensors file format: named tensors behind a JSON header.
//
//   8 bytes  size of the header, little-endian
//   header   {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//             "__metadata__": {"KEY": "TEXT"}}
//   data     the tensors, row-major, little-endian, without gaps
//
// Format: https://github.com/huggingface/safetensors#format
#ifndef ORIEL_RUNTIME_TRAIN_SAFETENSORS_H_
#define ORIEL_RUNTIME_TRAIN_SAFETENSORS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/files.h"
#include "runtime/base/tensor.h"

namespace oriel::runtime {

// A tensor of an open file. The address may be unaligned: copy, don't cast.
struct SafetensorsView {
  TensorSpec spec;
  const char* data = nullptr;
};

// A file open for reading (mapped). Cheap to copy; views live as long as one copy does.
class SafetensorsFile {
 public:
  // InvalidArgument, naming file and tensor, for a file that breaks the format in any way:
  // truncated, gaps or overlaps between tensors, sizes that don't fit shapes, unknown dtypes.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::map<std::string, SafetensorsView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // NotFound names the file and the tensor.
  absl::StatusOr<SafetensorsView> Find(const std::string& name) const;
  // Copies a tensor that must have this type and shape.
  absl::Status Read(const std::string& name, const TensorSpec& spec, void* target) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, SafetensorsView> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct NamedTensor {
  std::string name;
  TensorSpec spec;
  const void* data = nullptr;
};

// Writes the tensors in the given order, atomically (AtomicFile). InvalidArgument for a name
// that occurs twice, is "__metadata__", or is not UTF-8.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

// "F32", "BF16", .. as in the header.
const char* SafetensorsDTypeName(DType dtype);
absl::StatusOr<DType> SafetensorsDType(const std::string& name);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_SAFETENSORS_H_
