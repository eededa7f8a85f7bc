// The safetensors file format: named tensors behind a JSON header.
//
//   8 bytes  size of the header, little-endian
//   header   {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//             "__metadata__": {"KEY": "TEXT"}}
//   data     the tensors, row-major, little-endian, without gaps
//
// Format: https://github.com/huggingface/safetensors#format
#ifndef ORIEL_RUNTIME_TRAIN_CHECKPOINT_SAFETENSORS_H_
#define ORIEL_RUNTIME_TRAIN_CHECKPOINT_SAFETENSORS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/box.h"
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
  // All tensors' bytes.
  std::string_view data() const { return data_; }
  // NotFound names the file and the tensor.
  absl::StatusOr<SafetensorsView> Find(const std::string& name) const;
  // Copies a tensor that must have this shape and type; a float of another type is converted.
  absl::Status Read(const std::string& name, const TensorSpec& spec, void* target) const;
  // Copies a box of it; no other bytes are read.
  absl::Status ReadBox(const std::string& name, const TensorSpec& spec, const Box& box,
                       void* target) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, SafetensorsView> tensors_;
  std::map<std::string, std::string> metadata_;
  std::string_view data_;
};

// A name with a type and shape.
struct NamedSpec {
  std::string name;
  TensorSpec spec;
};

// Writes a file tensor by tensor, atomically (AtomicFile).
class SafetensorsWriter {
 public:
  // The tensors in the order in which they will come. InvalidArgument for a name that occurs
  // twice, is "__metadata__", or is not UTF-8.
  static absl::StatusOr<SafetensorsWriter> Create(
      const std::string& path, absl::Span<const NamedSpec> tensors,
      const std::map<std::string, std::string>& metadata = {});

  // Bytes of the next tensor, or the next part of it.
  absl::Status Append(const void* data, int64_t bytes);
  // FailedPrecondition if not exactly the data of all tensors was appended.
  absl::Status Finish();

 private:
  SafetensorsWriter(std::string path, std::unique_ptr<AtomicFile> file, int64_t bytes)
      : path_(std::move(path)), file_(std::move(file)), missing_(bytes) {}

  std::string path_;
  std::unique_ptr<AtomicFile> file_;
  int64_t missing_;  // bytes still to come
};

struct NamedTensor {
  std::string name;
  TensorSpec spec;
  const void* data = nullptr;
};

// Writes tensors that are at hand.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

// "F32", "BF16", .. as in the header.
const char* SafetensorsDTypeName(DType dtype);
absl::StatusOr<DType> SafetensorsDType(const std::string& name);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CHECKPOINT_SAFETENSORS_H_
