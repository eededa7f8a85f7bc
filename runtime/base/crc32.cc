#include "runtime/base/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

#include "absl/strings/str_cat.h"

namespace oriel::runtime {

uint32_t Crc32(std::string_view bytes, uint32_t crc) {
  if (bytes.empty()) return crc;  // a null pointer would begin anew
  // Several times as fast as zlib, which alone can join.
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

uint32_t JoinCrc32(uint32_t crc, uint32_t next, int64_t bytes) {
  return static_cast<uint32_t>(crc32_combine(crc, next, bytes));
}

std::string Crc32Text(uint32_t crc) { return absl::StrCat(absl::Hex(crc, absl::kZeroPad8)); }

}  // namespace oriel::runtime
