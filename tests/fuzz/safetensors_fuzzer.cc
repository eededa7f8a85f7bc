// Any bytes as a .safetensors file: every tensor lies within the file, one byte behind the other.
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/checkpoint/safetensors.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using oriel::fuzz::check;
  namespace rt = oriel::runtime;
  static oriel::fuzz::InputFolder folder;
  std::string path = folder.write("model.safetensors", data, size);
  absl::StatusOr<rt::SafetensorsFile> file = rt::SafetensorsFile::Open(path);
  if (!file.ok()) {
    std::string message(file.status().message());
    check(message.rfind(path, 0) == 0, "the error names the file", message);
    return 0;
  }
  oriel::fuzz::accepted();
  int64_t total = 0;
  for (const auto& [name, view] : file->tensors()) {
    std::vector<char> copy(view.spec.bytes());
    check(file->Read(name, view.spec, copy.data()).ok(), "a tensor can be read", name);
    total += view.spec.bytes();
  }
  check(total <= static_cast<int64_t>(size), "tensors are no larger than the file");
  return 0;
}
