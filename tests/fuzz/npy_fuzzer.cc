// Any bytes as a .npy array: the header that is read lies within the bytes and describes them.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/train/convert.h"
#include "runtime/train/data/npy.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using oriel::fuzz::check;
  namespace rt = oriel::runtime;
  const char* bytes = reinterpret_cast<const char*>(data);
  absl::StatusOr<rt::NpyHeader> header = rt::ParseNpy(bytes, static_cast<int64_t>(size));
  if (!header.ok()) {
    check(!header.status().message().empty(), "an error says why");
    return 0;
  }
  oriel::fuzz::accepted();
  const rt::TensorSpec& spec = header->spec;
  check(header->data_offset >= 0 && spec.bytes() >= 0 &&
            header->data_offset + spec.bytes() == static_cast<int64_t>(size),
        "header and data make up the bytes", spec.ToString());
  // As the loader reads it: every element, as another type.
  for (rt::DType target : {rt::DType::kF32, rt::DType::kI64}) {
    if (!rt::IsConvertible(spec.dtype, target)) continue;
    std::vector<char> converted(spec.num_elements() * rt::DTypeBytes(target));
    (void)rt::ConvertElements(spec.dtype, bytes + header->data_offset, target, converted.data(),
                              spec.num_elements());
  }
  absl::StatusOr<std::string> written = rt::EncodeNpyHeader(spec);
  check(written.ok(), "what was read can be written", spec.ToString());
  std::string whole = *written + std::string(bytes + header->data_offset, spec.bytes());
  absl::StatusOr<rt::NpyHeader> again =
      rt::ParseNpy(whole.data(), static_cast<int64_t>(whole.size()));
  check(again.ok() && again->spec == spec, "what was written can be read", spec.ToString());
  return 0;
}
