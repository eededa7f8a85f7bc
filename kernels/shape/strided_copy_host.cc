#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/common/parallel.h"
#include "kernels/common/transpose.h"
#include "kernels/shape/strided_copy.h"

namespace oriel::kernels {
namespace {

// memcpy, without the call for the usual lengths of an attention head's rows.
inline void CopyRow(void* to, const void* from, size_t bytes) {
  switch (bytes) {
    case 64:
      std::memcpy(to, from, 64);
      return;
    case 128:
      std::memcpy(to, from, 128);
      return;
    case 256:
      std::memcpy(to, from, 256);
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

}  // namespace

StridedCopy::StridedCopy(std::vector<Dim> dims, int64_t source_offset, int64_t target_offset,
                         int64_t element_bytes)
    : source_offset_(source_offset), target_offset_(target_offset), element_bytes_(element_bytes) {
  for (const Dim& dim : dims) {
    if (dim.size == 0) outer_ = 0;
  }
  dims_ = Merge(std::move(dims));
  if (outer_ == 0) return;
  if (dims_.empty()) dims_.push_back({1, 1, 1});
  size_t inner_dims = 1;
  const Dim last = dims_.back();
  if (last.target == 1 && last.source == 1) {
    inner_ = Inner::kRows;
  } else if (last.target == 1 && last.source == 0) {
    inner_ = Inner::kFill;
  } else if (last.target == 1) {
    auto contiguous =
        std::find_if(dims_.begin(), dims_.end(), [](const Dim& dim) { return dim.source == 1; });
    if (contiguous != dims_.end()) {
      inner_ = Inner::kTiles;
      inner_dims = 2;
      std::rotate(contiguous, contiguous + 1, dims_.end() - 1);
    }
  }
  for (size_t i = 0; i + inner_dims < dims_.size(); ++i) outer_ *= dims_[i].size;
}

template <typename T>
void StridedCopy::RunSized(const T* source, T* target, int num_threads) const {
  source += source_offset_;
  target += target_offset_;
  const Dim last = dims_.back();
  if (outer_ == 1 && inner_ == Inner::kRows) {
    ParallelForElements(num_threads, last.size, 1, [=](int64_t begin, int64_t end) {
      std::memcpy(target + begin, source + begin, (end - begin) * sizeof(T));
    });
    return;
  }
  const int64_t inner_dims = inner_ == Inner::kTiles ? 2 : 1;
  const int64_t outer_dims = static_cast<int64_t>(dims_.size()) - inner_dims;
  if (outer_ == 1 && inner_ == Inner::kTiles) {
    // One matrix: bands of tiles.
    const Dim rows = dims_[dims_.size() - 2];
    const int64_t bands = (rows.size + kTransposeTile - 1) / kTransposeTile;
    ParallelFor(num_threads, bands, 2 * kTransposeTile * last.size,
                [=](int64_t begin, int64_t end) {
                  const int64_t first = begin * kTransposeTile;
                  const int64_t count = std::min(end * kTransposeTile, rows.size) - first;
                  TransposeTiles(source + first, last.source, target + first * rows.target,
                                 rows.target, count, last.size);
                });
    return;
  }
  const int64_t work = last.size * (inner_dims == 2 ? dims_[dims_.size() - 2].size : 1);
  ParallelFor(num_threads, outer_, work, [&](int64_t begin, int64_t end) {
    std::array<int64_t, 16> index{};
    const T* from = source;
    T* to = target;
    int64_t rest = begin;
    for (int64_t d = outer_dims - 1; d >= 0; --d) {
      index[d] = rest % dims_[d].size;
      rest /= dims_[d].size;
      from += index[d] * dims_[d].source;
      to += index[d] * dims_[d].target;
    }
    for (int64_t i = begin; i < end; ++i) {
      switch (inner_) {
        case Inner::kRows:
          CopyRow(to, from, last.size * sizeof(T));
          break;
        case Inner::kFill:
          std::fill(to, to + last.size, *from);
          break;
        case Inner::kTiles: {
          const Dim& rows = dims_[dims_.size() - 2];
          TransposeTiles(from, last.source, to, rows.target, rows.size, last.size);
          break;
        }
        case Inner::kElements:
          for (int64_t j = 0; j < last.size; ++j) to[j * last.target] = from[j * last.source];
          break;
      }
      for (int64_t d = outer_dims - 1; d >= 0; --d) {
        from += dims_[d].source;
        to += dims_[d].target;
        if (++index[d] < dims_[d].size) break;
        from -= dims_[d].source * dims_[d].size;
        to -= dims_[d].target * dims_[d].size;
        index[d] = 0;
      }
    }
  });
}

void StridedCopy::Run(const void* source, void* target, int num_threads) const {
  if (outer_ == 0) return;
  switch (element_bytes_) {
    case 8:
      return RunSized(static_cast<const uint64_t*>(source), static_cast<uint64_t*>(target),
                      num_threads);
    case 4:
      return RunSized(static_cast<const uint32_t*>(source), static_cast<uint32_t*>(target),
                      num_threads);
    case 2:
      return RunSized(static_cast<const uint16_t*>(source), static_cast<uint16_t*>(target),
                      num_threads);
    default:
      return RunSized(static_cast<const uint8_t*>(source), static_cast<uint8_t*>(target),
                      num_threads);
  }
}

}  // namespace oriel::kernels
