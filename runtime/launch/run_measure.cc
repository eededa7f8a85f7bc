#include "runtime/launch/run_measure.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/factory.h"
#include "runtime/comm/link_delay.h"
#include "runtime/doctor/machine.h"
#include "runtime/launch/in_process.h"
#include "runtime/launch/job.h"
#include "runtime/launch/mpi_rank.h"
#include "runtime/measure/measure.h"

namespace oriel::runtime {
namespace {

absl::StatusOr<std::string> MeasureAsRank(const RunOptions& options, int64_t ranks,
                                          Communicator* world) {
  std::unique_ptr<Communicator> slow;
  Communicator* links = world;
  if (world != nullptr && options.link_delay) {
    slow = DelayCommunication(*world, *options.link_delay);
    links = slow.get();
  }
  const int threads = ThreadsPerRank(options, ranks);
  ORIEL_ASSIGN_OR_RETURN(std::vector<Measurement> found, MeasureKernels(threads, world));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<Measurement> collectives, MeasureCollectives(links));
  found.insert(found.end(), collectives.begin(), collectives.end());
  const Measurement machine{"machine",
                            {{"ranks", static_cast<double>(ranks)},
                             {"threads", threads},
                             {"memory", static_cast<double>(ReadMemory().usable)}}};
  std::string text = absl::StrCat(MeasurementJson(machine), "\n");
  for (const Measurement& each : found) absl::StrAppend(&text, MeasurementJson(each), "\n");
  return text;
}

absl::StatusOr<std::string> MeasureUnderMpi(const RunOptions& options) {
  ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> world, OpenMpiWorld());
  const int64_t ranks = world->size();
  absl::StatusOr<std::string> text =
      MeasureAsRank(options, ranks, ranks > 1 ? world.get() : nullptr);
  if (!text.ok()) world->Abort(text.status());
  return world->rank() == 0 ? std::move(text) : "";
}

}  // namespace

absl::StatusOr<std::string> RunMeasure(const RunOptions& options) {
  if (MpiWorldSize() && options.comm != "in_process") return MeasureUnderMpi(options);
  const int64_t ranks = options.ranks.value_or(ThreadsPerRank(RunOptions(), 1));
  std::string text;
  absl::StatusOr<bool> done =
      RunInProcess(ranks, [&](int64_t rank, Communicator* world) -> absl::StatusOr<bool> {
        absl::StatusOr<std::string> own = MeasureAsRank(options, ranks, world);
        if (!own.ok() && world != nullptr) world->Abort(WithRank(own.status(), rank));
        if (!own.ok()) return own.status();
        if (rank == 0) text = *std::move(own);
        return false;
      });
  if (!done.ok()) return done.status();
  return text;
}

}  // namespace oriel::runtime
