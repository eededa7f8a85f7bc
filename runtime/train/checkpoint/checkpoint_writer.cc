#include "runtime/train/checkpoint/checkpoint_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/crc32.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/checkpoint/best_checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/checkpoint/safetensors.h"

namespace oriel::runtime {
namespace {

constexpr char kUnfinishedPrefix[] = ".step-";
constexpr char kUnfinishedSuffix[] = ".tmp";

void RemoveFolder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// Puts the finished folder in its place, where one of an earlier run may be.
absl::Status Publish(const std::string& temporary, const std::string& target) {
  // A folder with files in it cannot be renamed over; exchanging leaves no moment without one.
  // Where the file system can't exchange, the old one goes first.
  if (access(target.c_str(), F_OK) == 0) {
    if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
      RemoveFolder(temporary);
      return absl::OkStatus();
    }
    RemoveFolder(target);
  }
  if (rename(temporary.c_str(), target.c_str()) != 0) {
    return ErrnoError(target, "rename a finished checkpoint to", errno);
  }
  return absl::OkStatus();
}

// Whether a tensor is one shard, that of rank 0.
bool IsOfFirstRank(const TensorLayout& layout) { return layout.is_whole() && layout.Owns(0); }

// What a rank writes of a tensor; nothing if its box is padding.
bool Writes(const TensorLayout& layout, int64_t rank) {
  if (!layout.Owns(rank)) return false;
  const Box box = layout.BoxOf(rank), content = layout.ContentOf(rank);
  return box == content || content.num_elements() > 0;
}

// Appends a rank's box without its padding, in pieces. Returns its checksum.
absl::StatusOr<uint32_t> AppendContent(const CheckpointSource& source, int64_t rank,
                                       SafetensorsWriter& writer) {
  const Box content = source.layout.ContentOf(rank);
  const int64_t width = DTypeBytes(source.dtype);
  uint32_t checksum = 0;
  std::vector<char> copy;
  const auto append = [&](const Box& piece, const void* data) {
    const Box part = Intersect(piece, content);
    const auto bytes = static_cast<size_t>(part.num_elements() * width);
    // Where only rows at the end are padding, the rest is one block.
    bool begins = part.start == piece.start;
    for (size_t dim = 1; dim < part.size.size(); ++dim) {
      begins = begins && part.size[dim] == piece.size[dim];
    }
    if (!begins) {
      copy.resize(bytes);
      CopyBox(piece, data, part, copy.data(), width);
      data = copy.data();
    }
    checksum = Crc32({static_cast<const char*>(data), bytes}, checksum);
    return writer.Append(data, static_cast<int64_t>(bytes));
  };
  ORIEL_RETURN_IF_ERROR(source.buffer.ReadPieces(source.layout.BoxOf(rank), append));
  return checksum;
}

// The files of a checkpoint and what is in them.
class Contents {
 public:
  explicit Contents(const std::vector<CheckpointSource>& sources) : sources_(sources) {
    for (const CheckpointSource& source : sources) {
      bool& in_pieces = source.slot.empty() ? model_in_pieces_ : optimizer_in_pieces_;
      in_pieces = in_pieces || !IsOfFirstRank(source.layout);
      for (const int64_t owner : source.layout.Owners()) {
        if (Writes(source.layout, owner)) shards_.push_back({&source, owner, 0});
      }
    }
  }

  // What `rank` writes; no file without tensors, but those of rank 0 where nothing is in pieces.
  absl::Status WritePart(const std::string& folder, int64_t rank) {
    for (const bool optimizer : {false, true}) {
      std::vector<Shard*> written;
      std::vector<NamedSpec> tensors;
      for (Shard& shard : shards_) {
        const CheckpointSource& source = *shard.source;
        if (source.slot.empty() == optimizer || shard.rank != rank) continue;
        written.push_back(&shard);
        tensors.push_back({NameOf(source), {source.dtype, source.layout.ContentOf(rank).size}});
      }
      if (tensors.empty() && (rank != 0 || InPieces(optimizer))) continue;
      const std::string path = JoinPath(folder, FileOf(optimizer, rank));
      ORIEL_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, tensors));
      for (Shard* shard : written) {
        ORIEL_ASSIGN_OR_RETURN(shard->checksum, AppendContent(*shard->source, rank, writer));
      }
      ORIEL_RETURN_IF_ERROR(writer.Finish());
    }
    return absl::OkStatus();
  }

  // Every rank gets those that the others have found in writing.
  absl::Status ShareChecksums(Communicator& world) {
    std::vector<int32_t> bits;
    bits.reserve(shards_.size());
    for (const Shard& shard : shards_) bits.push_back(static_cast<int32_t>(shard.checksum));
    // One rank has written a shard; the others add 0.
    const ReduceBuffer buffer{bits.data(), bits.data(), static_cast<int64_t>(bits.size()),
                              DType::kI32};
    ORIEL_RETURN_IF_ERROR(world.AllReduce(Reduction::kSum, absl::MakeConstSpan(&buffer, 1)));
    for (size_t i = 0; i < bits.size(); ++i) shards_[i].checksum = static_cast<uint32_t>(bits[i]);
    return absl::OkStatus();
  }

  absl::Status WriteIndex(const std::string& folder, const CheckpointModel& model,
                          const TrainingProgress& progress) const {
    CheckpointIndex index;
    index.model = model;
    index.progress = progress;
    std::vector<NamedSpec> parameters;
    const auto tensor_of = [&index](const CheckpointSource& source) -> CheckpointTensor& {
      return source.slot.empty() ? index.parameters[source.parameter]
                                 : index.optimizer_states[source.parameter][source.slot];
    };
    for (const CheckpointSource& source : sources_) {
      if (source.slot.empty() && index.parameters.count(source.parameter) == 0) {
        parameters.push_back({source.parameter, source.spec()});
      }
      tensor_of(source).spec = source.spec();
    }
    for (const Shard& shard : shards_) {
      const CheckpointSource& source = *shard.source;
      tensor_of(source).shards.push_back({FileOf(!source.slot.empty(), shard.rank), NameOf(source),
                                          source.layout.ContentOf(shard.rank), shard.checksum});
    }
    index.fingerprint = FingerprintParameters(std::move(parameters));
    ORIEL_ASSIGN_OR_RETURN(std::string text, EncodeCheckpointIndex(index));
    return WriteTextAtomically(JoinPath(folder, "index.json"), text);
  }

 private:
  // A rank's part of a tensor.
  struct Shard {
    const CheckpointSource* source;
    int64_t rank;
    uint32_t checksum;
  };

  bool InPieces(bool optimizer) const {
    return optimizer ? optimizer_in_pieces_ : model_in_pieces_;
  }
  std::string FileOf(bool optimizer, int64_t rank) const {
    const char* kind = optimizer ? "optimizer" : "model";
    return InPieces(optimizer) ? absl::StrFormat("%s-rank%05d.safetensors", kind, rank)
                               : absl::StrCat(kind, ".safetensors");
  }
  static std::string NameOf(const CheckpointSource& source) {
    return source.slot.empty() ? source.name() : absl::StrCat(source.slot, "/", source.name());
  }

  const std::vector<CheckpointSource>& sources_;
  std::vector<Shard> shards_;  // the same list on every rank
  bool model_in_pieces_ = false;
  bool optimizer_in_pieces_ = false;
};

std::string UnfinishedPath(const std::string& save_dir, int64_t step) {
  return JoinPath(save_dir,
                  absl::StrFormat("%s%08d%s", kUnfinishedPrefix, step, kUnfinishedSuffix));
}

// OK if it is on all ranks; else the rank's own error, or Aborted.
absl::Status Agree(const absl::Status& status, Communicator* world) {
  if (world == nullptr) return status;
  int32_t failed = status.ok() ? 0 : 1;
  const ReduceBuffer buffer{&failed, &failed, 1, DType::kI32};
  const absl::Status met = world->AllReduce(Reduction::kMax, absl::MakeConstSpan(&buffer, 1));
  if (!status.ok()) return status;
  ORIEL_RETURN_IF_ERROR(met);
  return failed == 0 ? absl::OkStatus()
                     : absl::AbortedError("another rank could not write its part of a checkpoint");
}

}  // namespace

std::string CheckpointFolderName(int64_t step) { return absl::StrFormat("step-%08d", step); }

bool IsUnfinishedCheckpoint(const std::string& name) {
  return absl::StartsWith(name, kUnfinishedPrefix) && absl::EndsWith(name, kUnfinishedSuffix);
}

absl::StatusOr<std::string> WriteCheckpoint(const std::string& save_dir,
                                            const CheckpointModel& model,
                                            const TrainingProgress& progress,
                                            const std::vector<CheckpointSource>& sources,
                                            Communicator* world) {
  const int64_t rank = world == nullptr ? 0 : world->rank();
  const std::string target = JoinPath(save_dir, CheckpointFolderName(progress.step));
  const std::string temporary = UnfinishedPath(save_dir, progress.step);
  Contents contents(sources);
  absl::Status status;
  if (rank == 0) {
    status = MakeFolders(save_dir);
    if (status.ok()) RemoveFolder(temporary);  // of a run that was killed while it saved
    if (status.ok()) status = MakeFolders(temporary);
  }
  status = Agree(status, world);
  if (status.ok()) {
    status = contents.WritePart(temporary, rank);
    if (rank != 0 && absl::IsNotFound(status)) {
      status = Annotate(status, "checkpoints go to a folder that all ranks share");
    }
    status = Agree(status, world);
    if (status.ok() && world != nullptr) status = contents.ShareChecksums(*world);
  }
  if (rank != 0) {
    if (!status.ok()) return status;
    return target;
  }
  if (status.ok()) status = contents.WriteIndex(temporary, model, progress);
  if (status.ok()) status = Publish(temporary, target);
  if (!status.ok()) {
    RemoveFolder(temporary);
    return status;
  }
  ORIEL_RETURN_IF_ERROR(SyncFolder(save_dir));
  return target;
}

absl::Status RemoveOldCheckpoints(const std::string& save_dir, int64_t step, int64_t keep) {
  ORIEL_ASSIGN_OR_RETURN(auto checkpoints, CheckpointsIn(save_dir));
  ORIEL_ASSIGN_OR_RETURN(const auto best, FindBestCheckpoint(save_dir, step));
  checkpoints.erase(checkpoints.upper_bound(step), checkpoints.end());
  for (auto old = checkpoints.begin(); static_cast<int64_t>(checkpoints.size()) > keep;
       old = checkpoints.erase(old)) {
    if (best && old->first == best->step) continue;
    // So that one that is only half removed is not taken for a checkpoint.
    const std::string temporary = UnfinishedPath(save_dir, old->first);
    if (rename(old->second.c_str(), temporary.c_str()) != 0) {
      return ErrnoError(old->second, "remove", errno);
    }
    std::error_code error;
    std::filesystem::remove_all(temporary, error);
    if (error) return ErrnoError(temporary, "remove", error.value());
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
