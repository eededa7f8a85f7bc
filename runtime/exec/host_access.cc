#include "runtime/exec/host_access.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/remainder.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

void* HostAccess::Memory() const {
  if (is_joined_) return nullptr;
  return executor_ == nullptr ? view_.data : executor_->HostMemory(view_);
}

absl::Status HostAccess::ReadElements(int64_t first, int64_t count, void* target) const {
  if (!is_joined_) {
    const int64_t width = DTypeBytes(view_.spec.dtype);
    return executor_->Read(view_, first * width, target, count * width);
  }
  if (remainder_.data == nullptr) return absl::FailedPreconditionError("there is no remainder");
  constexpr int64_t kWidth = sizeof(uint16_t);
  std::vector<uint16_t> rounded(static_cast<size_t>(count));
  std::vector<int16_t> remainders(static_cast<size_t>(count));
  ORIEL_RETURN_IF_ERROR(executor_->Read(Rounded(), first * kWidth, rounded.data(), count * kWidth));
  ORIEL_RETURN_IF_ERROR(
      executor_->Read(remainder_, first * kWidth, remainders.data(), count * kWidth));
  auto* joined = static_cast<float*>(target);
  for (size_t i = 0; i < rounded.size(); ++i) {
    joined[i] = JoinRemainder(rounded[i], remainders[i]);
  }
  return absl::OkStatus();
}

absl::Status HostAccess::WriteElements(int64_t first, int64_t count, const void* source) const {
  if (!is_joined_) {
    const int64_t width = DTypeBytes(view_.spec.dtype);
    return executor_->Write(view_, first * width, source, count * width);
  }
  constexpr int64_t kWidth = sizeof(uint16_t);
  std::vector<uint16_t> rounded(static_cast<size_t>(count));
  std::vector<int16_t> remainders(static_cast<size_t>(count));
  const auto* joined = static_cast<const float*>(source);
  for (size_t i = 0; i < rounded.size(); ++i) {
    rounded[i] = RoundedAway(joined[i]);
    remainders[i] = RemainderOf(joined[i]);
  }
  ORIEL_RETURN_IF_ERROR(
      executor_->Write(Rounded(), first * kWidth, rounded.data(), count * kWidth));
  if (remainder_.data == nullptr) return absl::OkStatus();
  return executor_->Write(remainder_, first * kWidth, remainders.data(), count * kWidth);
}

absl::Status HostAccess::Read(void* target) const {
  if (executor_ != nullptr) return ReadElements(0, view_.spec.num_elements(), target);
  const int64_t bytes = view_.spec.bytes();
  if (bytes > 0) std::memcpy(target, view_.data, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status HostAccess::Write(const void* source) const {
  if (executor_ != nullptr) return WriteElements(0, view_.spec.num_elements(), source);
  const int64_t bytes = view_.spec.bytes();
  if (bytes > 0) std::memcpy(view_.data, source, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status HostAccess::FillBy(const kernels::KernelSpec& spec) const {
  if (is_joined_) {
    if (executor_->HostMemory(Rounded()) != nullptr) {
      return absl::UnimplementedError("the memory is the host's");
    }
    // Of others, what is i16 is a number of that type.
    if (spec.kernel != "initial_value") {
      return absl::UnimplementedError(absl::StrCat(spec.kernel, " makes no remainders"));
    }
    for (const BufferView& half : {Rounded(), remainder_}) {
      if (half.data == nullptr) continue;
      kernels::KernelSpec launch = spec;
      launch.results[0].dtype = half.spec.dtype;
      launch.attributes["away"] = int64_t{1};
      ORIEL_RETURN_IF_ERROR(executor_->Fill(half, launch));
    }
    return absl::OkStatus();
  }
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
  int64_t first = 0;
  for (const Box& piece : Pieces(box)) {
    const int64_t bytes = piece.num_elements() * DTypeBytes(view_.spec.dtype);
    copy.resize(static_cast<size_t>(bytes));
    ORIEL_RETURN_IF_ERROR(ReadElements(first, piece.num_elements(), copy.data()));
    ORIEL_RETURN_IF_ERROR(take(piece, copy.data()));
    first += piece.num_elements();
  }
  return absl::OkStatus();
}

absl::Status HostAccess::WritePieces(const Box& box, const Fill& fill) const {
  if (void* memory = Memory()) return fill(box, memory);
  std::vector<char> copy;
  int64_t first = 0;
  for (const Box& piece : Pieces(box)) {
    const int64_t bytes = piece.num_elements() * DTypeBytes(view_.spec.dtype);
    copy.assign(static_cast<size_t>(bytes), 0);
    ORIEL_RETURN_IF_ERROR(fill(piece, copy.data()));
    ORIEL_RETURN_IF_ERROR(WriteElements(first, piece.num_elements(), copy.data()));
    first += piece.num_elements();
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
