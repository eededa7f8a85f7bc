#include "runtime/comm/nccl/small_tensors.h"

#include <map>

namespace oriel::runtime {
namespace {

constexpr int64_t kSmallBytes = 128 << 10;
constexpr size_t kFewest = 3;
constexpr int64_t kAlignment = 16;  // what packing moves at a time, at most

}  // namespace

SmallTensors FindSmallTensors(absl::Span<const ReduceBuffer> buffers) {
  std::map<DType, std::vector<size_t>> of_type;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t bytes = buffers[i].bytes();
    if (bytes > 0 && bytes < kSmallBytes) of_type[buffers[i].dtype].push_back(i);
  }
  SmallTensors small;
  small.places.resize(buffers.size());
  for (const auto& [dtype, members] : of_type) {
    if (members.size() < kFewest) continue;
    const int64_t begin = small.bytes;
    for (const size_t i : members) {
      small.places[i] = small.bytes;
      small.bytes += (buffers[i].bytes() + kAlignment - 1) / kAlignment * kAlignment;
    }
    small.packs.push_back({dtype, begin, (small.bytes - begin) / DTypeBytes(dtype)});
  }
  return small;
}

}  // namespace oriel::runtime
