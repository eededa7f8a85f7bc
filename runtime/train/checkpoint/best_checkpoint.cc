#include "runtime/train/checkpoint/best_checkpoint.h"

#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/json_util.h"

namespace oriel::runtime {
namespace {

constexpr char kStep[] = "step", kLoss[] = "eval_loss";

std::string FileOf(const std::string& save_dir) { return JoinPath(save_dir, "best.json"); }

}  // namespace

absl::StatusOr<std::optional<BestCheckpoint>> FindBestCheckpoint(const std::string& save_dir,
                                                                 int64_t last_step) {
  std::optional<BestCheckpoint> best;
  const std::string path = FileOf(save_dir);
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  if (error) return ErrnoError(path, "look for", error.value());
  if (!is_there) return best;
  ORIEL_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  const auto json = ParseJsonObject(text.data(), text.data() + text.size());
  const auto* step = json ? Member(*json, kStep) : nullptr;
  const auto* loss = json ? Member(*json, kLoss) : nullptr;
  if (step == nullptr || !step->is_number_unsigned() || loss == nullptr || !loss->is_number()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": does not say which checkpoint is the best, and of which loss ({\"",
                     kStep, "\": 1200, \"", kLoss, "\": 1.25}); remove it to begin anew"));
  }
  best = {step->get<int64_t>(), loss->get<double>()};
  ORIEL_ASSIGN_OR_RETURN(const auto checkpoints, CheckpointsIn(save_dir));
  if (best->step > last_step || checkpoints.count(best->step) == 0) best.reset();
  return best;
}

absl::Status WriteBestCheckpoint(const std::string& save_dir, const BestCheckpoint& best) {
  const nlohmann::ordered_json json = {{kStep, best.step}, {kLoss, best.loss}};
  return WriteTextAtomically(FileOf(save_dir), json.dump() + "\n");
}

absl::Status ForgetLaterBest(const std::string& save_dir, int64_t last_step) {
  ORIEL_ASSIGN_OR_RETURN(const auto best, FindBestCheckpoint(save_dir, last_step));
  std::error_code error;
  if (!best) std::filesystem::remove(FileOf(save_dir), error);
  return error ? ErrnoError(FileOf(save_dir), "remove", error.value()) : absl::OkStatus();
}

absl::StatusOr<bool> IsBestCheckpoint(const std::string& save_dir, const BestCheckpoint& found) {
  ORIEL_ASSIGN_OR_RETURN(const auto best, FindBestCheckpoint(save_dir, found.step - 1));
  return std::isfinite(found.loss) && (!best || found.loss < best->loss);
}

}  // namespace oriel::runtime
