// The .npy file format: one array behind a header written as a Python dictionary.
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef ORIEL_RUNTIME_TRAIN_DATA_NPY_H_
#define ORIEL_RUNTIME_TRAIN_DATA_NPY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/files.h"
#include "runtime/base/tensor.h"

namespace oriel::runtime {

struct NpyHeader {
  TensorSpec spec;
  int64_t data_offset = 0;  // from the start of the array's bytes
};

// Reads the header of the `bytes` of a whole array. Versions 1 and 2, C order, little-endian
// f2 f4 f8 i1 i4 i8 u1 b1. InvalidArgument says what is wrong, also if the data does not have
// the size that the header asks for.
absl::StatusOr<NpyHeader> ParseNpy(const char* data, int64_t bytes);
// The same from the first `present` bytes of an array's `bytes`, which must hold the header.
absl::StatusOr<NpyHeader> ParseNpyBeginning(const char* data, int64_t present, int64_t bytes);

// What precedes the data of an array; a multiple of 64 bytes. InvalidArgument for a dtype that
// the format does not have.
absl::StatusOr<std::string> EncodeNpyHeader(const TensorSpec& spec);

// An array written in pieces: row-major data of `spec`.
class NpyWriter {
 public:
  static absl::StatusOr<NpyWriter> Create(const std::string& path, const TensorSpec& spec);
  absl::Status Append(const void* data, int64_t bytes);
  // FailedPrecondition if not exactly the data of `spec` was appended.
  absl::Status Finish();

 private:
  std::string path_;
  std::unique_ptr<AtomicFile> file_;
  int64_t missing_ = 0;  // bytes still to come
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_DATA_NPY_H_
