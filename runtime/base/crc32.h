// CRC-32 (ISO 3309, as of zlib, gzip and PNG): tells bytes that a disk or a copy has damaged.
#ifndef ORIEL_RUNTIME_BASE_CRC32_H_
#define ORIEL_RUNTIME_BASE_CRC32_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace oriel::runtime {

// Of the bytes behind those that gave `crc`.
uint32_t Crc32(std::string_view bytes, uint32_t crc = 0);
// Of what `crc` is of and, behind it, `bytes` bytes of which `next` is.
uint32_t JoinCrc32(uint32_t crc, uint32_t next, int64_t bytes);
// "0badf00d"
std::string Crc32Text(uint32_t crc);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_CRC32_H_
