// A buffer as the host reads and writes it, wherever the device keeps it.
//
//   const HostAccess w(executor, *executor.Find(plan::PARAMETER, "w"));
//   ORIEL_RETURN_IF_ERROR(w.WritePieces(box, [&](const Box& piece, void* data) {
//     return file.ReadBox("w", spec, piece, data);
//   }));
//
// Where the device is the host, its memory is used as it is. Else there is a copy in between, of a
// bounded size where pieces are asked for.
#ifndef ORIEL_RUNTIME_EXEC_HOST_ACCESS_H_
#define ORIEL_RUNTIME_EXEC_HOST_ACCESS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/box.h"
#include "runtime/base/tensor.h"
#include "runtime/exec/executor.h"

namespace oriel::runtime {

// Cheap to copy. Reads and writes are between runs (Executor::Read, Write).
class HostAccess {
 public:
  // Of a copy that pieces pass through, unless an element is larger.
  static constexpr int64_t kPieceBytes = 16 << 20;

  HostAccess() = default;  // of no buffer
  // The executor must outlive it.
  HostAccess(Executor& executor, const BufferView& view) : executor_(&executor), view_(view) {}
  // The f32 numbers that a buffer of bf16 and one of remainders make together (remainder.h), of one
  // shape. What is written to it, both have; without a remainder (of nothing), nothing can be read.
  HostAccess(Executor& executor, const BufferView& rounded, const BufferView& remainder)
      : executor_(&executor),
        view_{{DType::kF32, rounded.spec.shape}, rounded.data},
        is_joined_(true),
        remainder_(remainder) {}
  // Memory of the host, which no executor has.
  HostAccess(const TensorSpec& spec, void* memory) : view_{spec, memory} {}

  // Whether there is a buffer.
  bool exists() const { return view_.data != nullptr; }
  const TensorSpec& spec() const { return view_.spec; }

  // Copies all of it.
  absl::Status Read(void* target) const;
  absl::Status Write(const void* source) const;
  // By a kernel of the device (Executor::Fill); Unimplemented where the memory is the host's.
  absl::Status FillBy(const kernels::KernelSpec& spec) const;
  // All of it: the memory itself, or a copy in `copy`. Valid until the next run, or until `copy`
  // changes.
  absl::StatusOr<const void*> Map(std::vector<char>& copy) const;

  // Passes on what a buffer that holds `box` has, in pieces one behind the other.
  using Take = std::function<absl::Status(const Box& piece, const void* data)>;
  absl::Status ReadPieces(const Box& box, const Take& take) const;
  // Has all of them filled. What `fill` leaves out stays on the host, and becomes zero on others.
  using Fill = std::function<absl::Status(const Box& piece, void* data)>;
  absl::Status WritePieces(const Box& box, const Fill& fill) const;

 private:
  // The buffer's memory, if the host has it.
  void* Memory() const;
  std::vector<Box> Pieces(const Box& box) const;
  // Of a joined one, the buffer of bf16.
  BufferView Rounded() const { return {{DType::kBF16, view_.spec.shape}, view_.data}; }
  // So many elements from the `first`-th on.
  absl::Status ReadElements(int64_t first, int64_t count, void* target) const;
  absl::Status WriteElements(int64_t first, int64_t count, const void* source) const;

  Executor* executor_ = nullptr;  // null: the memory is the host's
  BufferView view_;
  bool is_joined_ = false;
  BufferView remainder_;  // of a joined one
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_HOST_ACCESS_H_
