#include "runtime/exec/host_access.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status.h"

namespace oriel::runtime {

void* HostAccess::Memory() const {
  return executor_ == nullptr ? view_.data : executor_->HostMemory(view_);
}

absl::Status HostAccess::Read(void* target) const {
  const int64_t bytes = view_.spec.bytes();
  if (executor_ != nullptr) return executor_->Read(view_, 0, target, bytes);
  if (bytes > 0) std::memcpy(target, view_.data, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status HostAccess::Write(const void* source) const {
  const int64_t bytes = view_.spec.bytes();
  if (executor_ != nullptr) return executor_->Write(view_, 0, source, bytes);
  if (bytes > 0) std::memcpy(view_.data, source, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status HostAccess::FillBy(const kernels::KernelSpec& spec) const {
  if (Memory() != nullptr) return absl::UnimplementedError("the memory is the host's");
  return executor_->Fill(view_, spec);
}

absl::StatusOr<const void*> HostAccess::Map(std::vector<char>& copy) const {
  if (const void* memory = Memory()) return memory;
  copy.resize(static_cast<size_t>(view_.spec.bytes()));
  ORIEL_RETURN_IF_ERROR(Read(copy.data()));
  return static_cast<const void*>(copy.data());
}

std::vector<Box> HostAccess::Pieces(const Box& box) const {
  return CutBox(box, std::max<int64_t>(1, kPieceBytes / DTypeBytes(view_.spec.dtype)));
}

absl::Status HostAccess::ReadPieces(const Box& box, const Take& take) const {
  if (const void* memory = Memory()) return take(box, memory);
  std::vector<char> copy;
  int64_t offset = 0;
  for (const Box& piece : Pieces(box)) {
    const int64_t bytes = piece.num_elements() * DTypeBytes(view_.spec.dtype);
    copy.resize(static_cast<size_t>(bytes));
    ORIEL_RETURN_IF_ERROR(executor_->Read(view_, offset, copy.data(), bytes));
    ORIEL_RETURN_IF_ERROR(take(piece, copy.data()));
    offset += bytes;
  }
  return absl::OkStatus();
}

absl::Status HostAccess::WritePieces(const Box& box, const Fill& fill) const {
  if (void* memory = Memory()) return fill(box, memory);
  std::vector<char> copy;
  int64_t offset = 0;
  for (const Box& piece : Pieces(box)) {
    const int64_t bytes = piece.num_elements() * DTypeBytes(view_.spec.dtype);
    copy.assign(static_cast<size_t>(bytes), 0);
    ORIEL_RETURN_IF_ERROR(fill(piece, copy.data()));
    ORIEL_RETURN_IF_ERROR(executor_->Write(view_, offset, copy.data(), bytes));
    offset += bytes;
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
