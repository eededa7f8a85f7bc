#include "runtime/train/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/crc32.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"

namespace oriel::runtime {
namespace {

constexpr char kIndexFile[] = "index.json";
constexpr char kStepPrefix[] = "step-";

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Parameters, then optimizer states.
std::vector<const CheckpointTensor*> TensorsOf(const CheckpointIndex& index, bool with_optimizer) {
  std::vector<const CheckpointTensor*> tensors;
  for (const auto& [name, tensor] : index.parameters) tensors.push_back(&tensor);
  if (!with_optimizer) return tensors;
  for (const auto& [name, slots] : index.optimizer_states) {
    for (const auto& [slot, tensor] : slots) tensors.push_back(&tensor);
  }
  return tensors;
}

}  // namespace

std::string SomeOf(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kShown) absl::StrAppend(&text, " and ", names.size() - kShown, " more");
  return text;
}

int64_t StepOfCheckpoint(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  int64_t step = -1;
  const bool is_step = name.rfind(kStepPrefix, 0) == 0 &&
                       absl::SimpleAtoi(name.substr(std::strlen(kStepPrefix)), &step);
  return is_step ? step : -1;
}

absl::StatusOr<std::map<int64_t, std::string>> CheckpointsIn(const std::string& folder) {
  std::map<int64_t, std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const int64_t step = StepOfCheckpoint(name);
    const std::string path = JoinPath(folder, name);
    if (step >= 0 && Exists(JoinPath(path, kIndexFile))) found[step] = path;
  }
  if (error) return ErrnoError(folder, "list", error.value());
  return found;
}

absl::StatusOr<std::string> FindCheckpoint(const std::string& path) {
  if (!Exists(path)) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no such checkpoint folder"));
  }
  if (Exists(JoinPath(path, kIndexFile))) return path;
  ORIEL_ASSIGN_OR_RETURN(const auto found, CheckpointsIn(path));
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(path, ": has neither ", kIndexFile, " nor a complete ",
                                            kStepPrefix, "NNNNNNNN folder"));
  }
  return found.rbegin()->second;
}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& path) {
  CheckpointReader reader;
  reader.given_ = path;
  ORIEL_ASSIGN_OR_RETURN(reader.path_, FindCheckpoint(path));
  ORIEL_RETURN_IF_ERROR(reader.WithOneBefore(reader.OpenIndexAndFiles()));
  return reader;
}

absl::Status CheckpointReader::WithOneBefore(const absl::Status& error) const {
  if (error.ok() || path_ == given_) return error;
  const auto all = CheckpointsIn(given_);
  if (!all.ok()) return error;
  const auto own = all->find(StepOfCheckpoint(path_));
  if (own == all->begin()) return error;
  return WithMessage(
      error, absl::StrCat(error.message(), "; ", std::prev(own)->second,
                          " is the one before it: name it instead, or move ", path_, " away"));
}

absl::Status CheckpointReader::OpenIndexAndFiles() {
  const std::string index_path = JoinPath(path_, kIndexFile);
  ORIEL_ASSIGN_OR_RETURN(std::string text, ReadText(index_path));
  ORIEL_ASSIGN_OR_RETURN(index_, ParseCheckpointIndex(text, index_path));
  return OpenFiles();
}

std::vector<std::string> CheckpointReader::files() const {
  std::set<std::string> names;
  for (const CheckpointTensor* tensor : TensorsOf(index_, /*with_optimizer=*/true)) {
    for (const CheckpointShard& shard : tensor->shards) names.insert(shard.file);
  }
  std::vector<std::string> paths = {JoinPath(path_, kIndexFile)};
  for (const std::string& name : names) paths.push_back(JoinPath(path_, name));
  return paths;
}

absl::Status CheckpointReader::OpenFiles() {
  auto open = [this](const CheckpointTensor& tensor) -> absl::Status {
    for (const CheckpointShard& shard : tensor.shards) {
      auto it = files_.find(shard.file);
      if (it == files_.end()) {
        absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(JoinPath(path_, shard.file));
        if (!file.ok()) return Annotate(file.status(), "incomplete or damaged checkpoint");
        it = files_.emplace(shard.file, *std::move(file)).first;
      }
      const TensorSpec spec{tensor.spec.dtype, shard.box.size};
      ORIEL_ASSIGN_OR_RETURN(SafetensorsView view, it->second.Find(shard.name));
      if (view.spec != spec) {
        return absl::InvalidArgumentError(absl::StrCat(it->second.path(), ": ", shard.name, " is ",
                                                       view.spec.ToString(), ", the index says ",
                                                       spec.ToString()));
      }
    }
    return absl::OkStatus();
  };
  for (const CheckpointTensor* tensor : TensorsOf(index_, /*with_optimizer=*/true)) {
    ORIEL_RETURN_IF_ERROR(open(*tensor));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CheckData(bool with_optimizer, int64_t rank, int64_t ranks) const {
  struct Saved {
    const CheckpointShard* shard;
    SafetensorsView view;
  };
  std::vector<Saved> all;
  int64_t total = 0;
  const auto add = [&](const CheckpointTensor& tensor) -> absl::Status {
    for (const CheckpointShard& shard : tensor.shards) {
      if (!shard.crc32) continue;
      ORIEL_ASSIGN_OR_RETURN(SafetensorsView view, files_.at(shard.file).Find(shard.name));
      total += view.spec.bytes();
      all.push_back({&shard, std::move(view)});
    }
    return absl::OkStatus();
  };
  for (const CheckpointTensor* tensor : TensorsOf(index_, with_optimizer)) {
    ORIEL_RETURN_IF_ERROR(add(*tensor));
  }
  // A shard is read by the rank in whose share of all bytes it begins.
  const int64_t share = std::max<int64_t>((total + ranks - 1) / ranks, 1);
  int64_t before = 0;
  for (const auto& [shard, view] : all) {
    const bool own = before / share == rank;
    before += view.spec.bytes();
    if (!own) continue;
    const uint32_t crc = Crc32({view.data, static_cast<size_t>(view.spec.bytes())});
    if (crc == *shard->crc32) continue;
    return WithOneBefore(absl::DataLossError(absl::StrCat(
        JoinPath(path_, shard->file), " is damaged: ", shard->name, " has the checksum ",
        Crc32Text(crc), ", and had ", Crc32Text(*shard->crc32), " when it was saved")));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CheckModel(const std::string& model_name,
                                          const std::vector<NamedSpec>& parameters) const {
  std::map<std::string, const CheckpointTensor*> extra;
  for (const auto& [name, tensor] : index_.parameters) extra[name] = &tensor;
  std::vector<std::string> missing, different;
  for (const NamedSpec& parameter : parameters) {
    auto it = extra.find(parameter.name);
    if (it == extra.end()) {
      missing.push_back(parameter.name);
      continue;
    }
    if (!CanRead(it->second->spec, parameter.spec)) {
      different.push_back(absl::StrCat(parameter.name, " (", it->second->spec.ToString(),
                                       ", the plan has ", parameter.spec.ToString(), ")"));
    }
    extra.erase(it);
  }
  if (missing.empty() && different.empty() && extra.empty()) return absl::OkStatus();
  std::vector<std::string> extra_names;
  for (const auto& entry : extra) extra_names.push_back(entry.first);
  const bool is_alike = index_.model.name == model_name && different.empty() &&
                        (missing.empty() || extra_names.empty());
  std::string message =
      is_alike
          ? absl::StrCat(path_, ": does not have the parameters of the plan, though both are of ",
                         model_name,
                         ": one may leave out what its loss doesn't depend on (loss.logits, "
                         "loss.output); resume with a plan of the same loss")
          : absl::StrCat(path_, ": is a checkpoint of another model",
                         index_.model.name == model_name
                             ? ""
                             : absl::StrCat(": it was saved for ", index_.model.name,
                                            ", the plan is for ", model_name));
  if (!missing.empty()) absl::StrAppend(&message, "; missing: ", SomeOf(missing));
  if (!extra_names.empty()) absl::StrAppend(&message, "; extra: ", SomeOf(extra_names));
  if (!different.empty()) absl::StrAppend(&message, "; different: ", SomeOf(different));
  return absl::FailedPreconditionError(message);
}

std::string CheckpointReader::OtherModelFile(const plan::Plan& plan) const {
  const CheckpointModel& saved = index_.model;
  const plan::Provenance& from = plan.provenance();
  if (saved.sha256.empty() || from.model_sha256().empty() || saved.sha256 == from.model_sha256()) {
    return "";
  }
  constexpr size_t kShown = 8;
  return absl::StrCat(path_, " was trained with another model file, ", saved.path, " (sha256 ",
                      saved.sha256.substr(0, kShown), "..), than the plan is of, ",
                      from.model_path(), " (", from.model_sha256().substr(0, kShown),
                      "..): where they differ in more than weights and lengths (an adapter's "
                      "alpha, an epsilon, a table), its weights do not fit, though names and "
                      "shapes do");
}

absl::Status CheckpointReader::ReadParameter(const std::string& name, const TensorSpec& spec,
                                             const Box& box, void* target) const {
  auto it = index_.parameters.find(name);
  return ReadTensor(absl::StrCat("parameter ", name),
                    it == index_.parameters.end() ? nullptr : &it->second, spec, box, target);
}

const char* CheckpointReader::FindWhole(const std::string& name, const TensorSpec& spec) const {
  auto it = index_.parameters.find(name);
  if (it == index_.parameters.end() || it->second.spec != spec || it->second.shards.size() != 1 ||
      it->second.shards[0].box != WholeBox(spec.shape)) {
    return nullptr;
  }
  const CheckpointShard& shard = it->second.shards[0];
  absl::StatusOr<SafetensorsView> view = files_.at(shard.file).Find(shard.name);
  return view.ok() ? view->data : nullptr;
}

absl::Status CheckpointReader::ReadState(const std::string& parameter, const std::string& slot,
                                         const TensorSpec& spec, const Box& box,
                                         void* target) const {
  const CheckpointTensor* tensor = nullptr;
  auto slots = index_.optimizer_states.find(parameter);
  if (slots != index_.optimizer_states.end()) {
    auto it = slots->second.find(slot);
    if (it != slots->second.end()) tensor = &it->second;
  }
  const std::string what = absl::StrCat("optimizer state ", slot, " of ", parameter);
  if (tensor == nullptr && index_.parameters.count(parameter) > 0) {
    const bool was_frozen =
        slots == index_.optimizer_states.end() && !index_.optimizer_states.empty();
    return absl::FailedPreconditionError(absl::StrCat(
        path_, ": has no ", what, ", ",
        was_frozen ? "which was frozen when this was saved"
                   : "as it was saved with another optimizer",
        "; to train from here on, begin with the weights alone: --init-from in place of --resume"));
  }
  return ReadTensor(what, tensor, spec, box, target);
}

absl::Status CheckpointReader::ReadTensor(const std::string& what, const CheckpointTensor* tensor,
                                          const TensorSpec& spec, const Box& box,
                                          void* target) const {
  if (tensor == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(path_, ": has no ", what, "; was it saved with another optimizer or model?"));
  }
  if (!CanRead(tensor->spec, spec)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, ": ", what, " is ", tensor->spec.ToString(), ", the plan has ", spec.ToString()));
  }
  for (const CheckpointShard& shard : tensor->shards) {
    ORIEL_ASSIGN_OR_RETURN(SafetensorsView view, files_.at(shard.file).Find(shard.name));
    ORIEL_RETURN_IF_ERROR(
        ConvertBox(shard.box, tensor->spec.dtype, view.data, box, spec.dtype, target));
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
