#include "runtime/exec/step_runner.h"

#include "runtime/base/status.h"

namespace oriel::runtime {

absl::Status StepRunner::Run(const Step& step, int64_t microbatch) {
  switch (step.kind) {
    case Step::Kind::kLaunch:
      return step.kernel(step.args);
    case Step::Kind::kAllReduce:
    case Step::Kind::kAllGather:
    case Step::Kind::kReduceScatter:
    case Step::Kind::kAllToAll:
      if (step.stream == nullptr) return CommunicateNow(step);
      return step.at_once ? absl::OkStatus() : Start(step);
    case Step::Kind::kWait:
      if (step.stream == nullptr) return absl::OkStatus();
      if (!step.at_once) return step.stream->Wait(*step.task);
      if (step.ready != nullptr) ORIEL_RETURN_IF_ERROR(backend_.Record(*step.ready, 0));
      return step.stream->Run(*step.task);
    case Step::Kind::kSlice:
      if (step.bytes == 0) return absl::OkStatus();
      return backend_.CopyRuns(step.target, step.source, step.piece.run, step.piece.stride,
                               step.bytes / step.piece.run);
    case Step::Kind::kCopy:
      return Move(step.target, step.source, step.bytes);
    case Step::Kind::kSend:
      return transfers_.Send(*step.transfer, microbatch);
    case Step::Kind::kReceive:
      return transfers_.Receive(*step.transfer, microbatch);
  }
  return absl::OkStatus();
}

absl::Status StepRunner::Start(const Step& step) {
  if (step.ready != nullptr) ORIEL_RETURN_IF_ERROR(backend_.Record(*step.ready, 0));
  return step.stream->Start(*step.task);
}

absl::Status StepRunner::RunStarted(const Step& step) {
  if (step.ready != nullptr) {
    ORIEL_RETURN_IF_ERROR(backend_.MakeCurrent());
    ORIEL_RETURN_IF_ERROR(backend_.Synchronize(*step.ready));
  }
  return Communicate(step);
}

// On the computing stream, or after it.
absl::Status StepRunner::CommunicateNow(const Step& step) {
  if (asynchronous_ && step.group != nullptr) {
    if (step.group->IsAsynchronous()) {
      ORIEL_ASSIGN_OR_RETURN(void* const stream, backend_.Stream(0));
      step.group->SetStream(stream);
    } else {
      ORIEL_RETURN_IF_ERROR(settle_());
    }
  }
  return Communicate(step);
}

absl::Status StepRunner::Communicate(const Step& step) {
  if (!step.label.empty()) step.group->SetLabel(step.label);
  switch (step.kind) {
    case Step::Kind::kAllReduce:
      if (step.group != nullptr) return step.group->AllReduce(step.reduction, step.buffers);
      for (const ReduceBuffer& buffer : step.buffers) {
        ORIEL_RETURN_IF_ERROR(
            Move(buffer.target, buffer.source, buffer.count * DTypeBytes(buffer.dtype)));
      }
      return absl::OkStatus();
    case Step::Kind::kAllGather:
      if (step.group == nullptr) return MoveAll(step.pieces);
      return step.group->AllGather(step.pieces);
    case Step::Kind::kReduceScatter:
      if (step.group == nullptr) return MoveAll(step.pieces);
      return step.group->ReduceScatter(step.reduction, step.pieces);
    case Step::Kind::kAllToAll:
      if (step.group == nullptr) return MoveAll(step.pieces);
      return step.group->AllToAll(step.pieces);
    default:
      return absl::OkStatus();
  }
}

absl::Status StepRunner::Move(void* target, const void* source, int64_t bytes) {
  if (target == source) return absl::OkStatus();
  return backend_.Copy(target, source, bytes);
}

// A collective of this rank alone: each tensor is one piece.
absl::Status StepRunner::MoveAll(absl::Span<const PieceBuffer> pieces) {
  for (const PieceBuffer& piece : pieces) {
    const Blocks& blocks =
        piece.source_blocks.inner > 0 ? piece.source_blocks : piece.target_blocks;
    ORIEL_RETURN_IF_ERROR(
        Move(piece.target, piece.source, blocks.num_elements() * DTypeBytes(piece.dtype)));
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
