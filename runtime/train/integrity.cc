#include "runtime/train/integrity.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "runtime/base/crc32.h"
#include "runtime/base/status.h"
#include "runtime/train/checkpoint/initial_weights.h"

namespace oriel::runtime {
namespace {

int64_t RanksOf(const RankContext& context) {
  return context.world == nullptr ? 1 : context.world->size();
}

// This rank's error, or Aborted if another rank has one.
absl::Status Agree(const absl::Status& own, const RankContext& context) {
  const absl::StatusOr<bool> any = AnyRank(context, !own.ok());
  if (!own.ok()) return own;
  ORIEL_RETURN_IF_ERROR(any.status());
  return *any ? absl::AbortedError("another rank can't read what training begins with")
              : absl::OkStatus();
}

// What `rank` reads of a file.
std::string_view ShareOf(const SafetensorsFile& file, int64_t rank, int64_t ranks) {
  const auto bytes = static_cast<int64_t>(file.data().size());
  const int64_t share = (bytes + ranks - 1) / ranks, begin = std::min(rank * share, bytes);
  return file.data().substr(static_cast<size_t>(begin), static_cast<size_t>(share));
}

// The checksum of all of a file: the same on every rank.
absl::StatusOr<uint32_t> ChecksumOf(const SafetensorsFile& file, const RankContext& context) {
  const int64_t ranks = RanksOf(context);
  const uint32_t own = Crc32(ShareOf(file, context.rank, ranks));
  std::vector<uint32_t> shares(static_cast<size_t>(ranks), own);
  if (context.world != nullptr) {
    ORIEL_RETURN_IF_ERROR(context.world->AllGather(&own, sizeof own, shares.data()));
  }
  uint32_t crc = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    crc = JoinCrc32(crc, shares[static_cast<size_t>(rank)],
                    static_cast<int64_t>(ShareOf(file, rank, ranks).size()));
  }
  return crc;
}

}  // namespace

absl::Status OpenSoundCheckpoint(CheckpointReader& checkpoint, bool with_optimizer,
                                 const RankContext& context) {
  ORIEL_RETURN_IF_ERROR(Agree(checkpoint.Reopen(), context));
  return Agree(checkpoint.CheckData(with_optimizer, context.rank, RanksOf(context)), context);
}

absl::Status CheckInitialWeights(const std::string& plan_folder, const RankContext& context) {
  std::set<std::string> names;
  for (const plan::Parameter& parameter : context.plan->parameters()) {
    if (!parameter.initial().file().empty()) names.insert(parameter.initial().file());
  }
  for (const std::string& name : names) {
    const absl::StatusOr<SafetensorsFile> file =
        OpenInitialWeights(*context.plan, plan_folder, name);
    ORIEL_RETURN_IF_ERROR(Agree(Annotate(file.status(), "initial weights"), context));
    if (!HasChecksum(*context.plan, *file)) continue;
    ORIEL_ASSIGN_OR_RETURN(const uint32_t crc, ChecksumOf(*file, context));
    const absl::Status sound = CheckWeightsChecksum(*context.plan, *file, crc);
    if (sound.ok()) continue;
    return context.is_first() ? sound : absl::AbortedError("the initial weights are damaged");
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
