#include "runtime/train/checkpoint/checkpoint_index.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/crc32.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/status.h"
#include "runtime/train/json_util.h"
#include "runtime/train/tensor_bytes.h"

namespace oriel::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "oriel-checkpoint";
constexpr char kChecksum[] = "crc32";

std::optional<uint32_t> ParseChecksum(const std::optional<std::string>& text) {
  uint32_t crc = 0;
  return text && absl::SimpleHexAtoi(*text, &crc) ? std::optional(crc) : std::nullopt;
}

Json EncodeTensor(const CheckpointTensor& tensor) {
  Json shards = Json::array();
  for (const CheckpointShard& shard : tensor.shards) {
    Json entry = {{"file", shard.file},
                  {"name", shard.name},
                  {"offsets", shard.box.start},
                  {"shape", shard.box.size}};
    if (shard.crc32) entry[kChecksum] = Crc32Text(*shard.crc32);
    shards.push_back(std::move(entry));
  }
  return {{"dtype", SafetensorsDTypeName(tensor.spec.dtype)},
          {"shape", tensor.spec.shape},
          {"shards", std::move(shards)}};
}

// Whether no two boxes share an element. Compares a box only with those that it may meet along the
// dimension that tells most of them apart: n log n for a tensor that is cut along one.
bool AreDisjoint(const std::vector<CheckpointShard>& shards, size_t rank) {
  size_t dim = 0, most = 0;
  for (size_t d = 0; d < rank; ++d) {
    std::set<int64_t> starts;
    for (const CheckpointShard& shard : shards) starts.insert(shard.box.start[d]);
    if (starts.size() > most) most = starts.size(), dim = d;
  }
  std::vector<const Box*> boxes;
  for (const CheckpointShard& shard : shards) boxes.push_back(&shard.box);
  const auto start = [&](const Box* box) { return rank == 0 ? 0 : box->start[dim]; };
  std::sort(boxes.begin(), boxes.end(),
            [&](const Box* a, const Box* b) { return start(a) < start(b); });
  std::vector<const Box*> open;  // that reach beyond the start of the current one
  for (const Box* box : boxes) {
    if (rank > 0) {
      open.erase(std::remove_if(open.begin(), open.end(),
                                [&](const Box* other) {
                                  return other->start[dim] + other->size[dim] <= start(box);
                                }),
                 open.end());
    }
    for (const Box* other : open) {
      if (Intersect(*box, *other).num_elements() > 0) return false;
    }
    open.push_back(box);
  }
  return true;
}

// Disjoint boxes inside the tensor that have its number of elements cover it.
absl::Status CheckShards(const CheckpointTensor& tensor) {
  const Shape& whole = tensor.spec.shape;
  for (const CheckpointShard& shard : tensor.shards) {
    const auto& [start, size] = shard.box;
    bool inside = start.size() == whole.size() && size.size() == whole.size();
    for (size_t d = 0; inside && d < whole.size(); ++d) {
      inside = size[d] <= whole[d] && start[d] <= whole[d] - size[d];
    }
    if (!inside) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard ", shard.box.ToString(), " is not inside ", ShapeToString(whole)));
    }
    if (shard.file.empty() || shard.file.find('/') != std::string::npos) {
      return absl::InvalidArgumentError("a shard's file is not a plain name");
    }
  }
  if (!AreDisjoint(tensor.shards, whole.size())) {
    return absl::InvalidArgumentError("shards overlap");
  }
  int64_t elements = 0;
  for (const CheckpointShard& shard : tensor.shards) elements += shard.box.num_elements();
  if (elements != NumElements(whole)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the shards have ", elements, " of ", NumElements(whole), " elements"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointTensor> ParseTensor(const Json& json) {
  std::optional<std::string> dtype = AsText(Member(json, "dtype"));
  std::optional<Shape> shape = AsSizes(Member(json, "shape"));
  const Json* shards = Member(json, "shards");
  if (!dtype || !shape || shards == nullptr || !shards->is_array()) {
    return absl::InvalidArgumentError("needs dtype, shape and shards");
  }
  CheckpointTensor tensor;
  ORIEL_ASSIGN_OR_RETURN(tensor.spec.dtype, SafetensorsDType(*dtype));
  tensor.spec.shape = *std::move(shape);
  if (!CheckedBytes(tensor.spec)) return absl::InvalidArgumentError("has an impossible shape");
  for (const Json& item : *shards) {
    std::optional<std::string> file = AsText(Member(item, "file"));
    std::optional<std::string> name = AsText(Member(item, "name"));
    std::optional<Shape> offsets = AsSizes(Member(item, "offsets"));
    std::optional<Shape> box = AsSizes(Member(item, "shape"));
    if (!file || !name || !offsets || !box) {
      return absl::InvalidArgumentError("a shard needs file, name, offsets and shape");
    }
    std::optional<uint32_t> crc32;
    if (const Json* text = Member(item, kChecksum)) {
      crc32 = ParseChecksum(AsText(text));
      if (!crc32) return absl::InvalidArgumentError("a shard's crc32 is not one");
    }
    tensor.shards.push_back({*file, *name, {*offsets, *box}, crc32});
  }
  ORIEL_RETURN_IF_ERROR(CheckShards(tensor));
  return tensor;
}

absl::StatusOr<std::map<std::string, CheckpointTensor>> ParseTensors(const Json& json) {
  if (!json.is_object()) return absl::InvalidArgumentError("is not an object");
  std::map<std::string, CheckpointTensor> tensors;
  for (const auto& [name, value] : json.items()) {
    absl::StatusOr<CheckpointTensor> tensor = ParseTensor(value);
    if (!tensor.ok()) return Annotate(tensor.status(), name);
    tensors[name] = *std::move(tensor);
  }
  return tensors;
}

// False if a member is missing or of another type.
bool ParseProgress(const Json& json, TrainingProgress* progress) {
  const Json* data = Member(json, "data");
  if (data == nullptr) return false;
  std::optional<int64_t> step = AsSize(Member(json, "step"));
  std::optional<int64_t> epoch = AsSize(Member(*data, "epoch"));
  std::optional<int64_t> batch = AsSize(Member(*data, "batch"));
  std::optional<int64_t> samples = AsSize(Member(*data, "samples"));
  std::optional<int64_t> global_batch = AsSize(Member(*data, "global_batch"));
  const Json* seed = Member(*data, "seed");
  const Json* shuffle = Member(*data, "shuffle");
  if (!step || !epoch || !batch || !samples || !global_batch || seed == nullptr ||
      !seed->is_number_unsigned() || shuffle == nullptr || !shuffle->is_boolean()) {
    return false;
  }
  *progress = {*step,    {*epoch, *batch}, seed->get<uint64_t>(), shuffle->get<bool>(),
               *samples, *global_batch};
  return true;
}

// The text that its checksum is of.
absl::StatusOr<std::string> DumpIndex(const Json& json) { return DumpJson(json, 1); }

}  // namespace

absl::StatusOr<std::string> EncodeCheckpointIndex(const CheckpointIndex& index) {
  const TrainingProgress& progress = index.progress;
  Json json = {{"format", kFormat},
               {"version", kCheckpointVersion},
               {"step", progress.step},
               {"data",
                {{"epoch", progress.position.epoch},
                 {"batch", progress.position.batch},
                 {"seed", progress.seed},
                 {"shuffle", progress.shuffle},
                 {"samples", progress.samples},
                 {"global_batch", progress.global_batch}}},
               {"model",
                {{"name", index.model.name},
                 {"fingerprint", index.fingerprint},
                 {"path", index.model.path},
                 {"sha256", index.model.sha256}}}};
  Json& parameters = json["parameters"] = Json::object();
  for (const auto& [name, tensor] : index.parameters) parameters[name] = EncodeTensor(tensor);
  Json& states = json["optimizer_states"] = Json::object();
  for (const auto& [name, slots] : index.optimizer_states) {
    Json& entry = states[name] = Json::object();
    for (const auto& [slot, tensor] : slots) entry[slot] = EncodeTensor(tensor);
  }
  ORIEL_ASSIGN_OR_RETURN(const std::string text, DumpIndex(json));
  json[kChecksum] = Crc32Text(Crc32(text));
  return DumpIndex(json);
}

absl::StatusOr<CheckpointIndex> ParseCheckpointIndex(const std::string& text,
                                                     const std::string& path) {
  auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };
  std::optional<Json> json = ParseJsonObject<Json>(text.data(), text.data() + text.size());
  if (!json || AsText(Member(*json, "format")) != std::string(kFormat)) {
    return error("is not the index of a checkpoint");
  }
  std::optional<int64_t> version = AsSize(Member(*json, "version"));
  if (!version) return error("has no version");
  if (*version > kCheckpointVersion) {
    return error("has version ", *version, ", this program reads up to ", kCheckpointVersion,
                 "; use a newer oriel-run");
  }
  CheckpointIndex index;
  const Json* model = Member(*json, "model");
  const Json* parameters = Member(*json, "parameters");
  const Json* states = Member(*json, "optimizer_states");
  if (model == nullptr || parameters == nullptr || states == nullptr || !states->is_object() ||
      !ParseProgress(*json, &index.progress)) {
    return error("members are missing; is the file damaged?");
  }
  const auto text_of = [&](const char* key) { return AsText(Member(*model, key)).value_or(""); };
  index.model = {text_of("name"), text_of("path"), text_of("sha256")};
  index.fingerprint = text_of("fingerprint");
  absl::StatusOr<std::map<std::string, CheckpointTensor>> tensors = ParseTensors(*parameters);
  if (!tensors.ok()) return error("parameters: ", std::string(tensors.status().message()));
  index.parameters = *std::move(tensors);
  for (const auto& [name, slots] : states->items()) {
    tensors = ParseTensors(slots);
    if (!tensors.ok()) {
      return error("optimizer_states: ", name, ": ", std::string(tensors.status().message()));
    }
    index.optimizer_states[name] = *std::move(tensors);
  }
  if (const Json* checksum = Member(*json, kChecksum)) {
    const std::optional<uint32_t> expected = ParseChecksum(AsText(checksum));
    json->erase(kChecksum);
    ORIEL_ASSIGN_OR_RETURN(const std::string rest, DumpIndex(*json));
    if (expected != Crc32(rest)) {
      return absl::DataLossError(absl::StrCat(
          path,
          ": is damaged, its checksum does not fit; of an index that was edited on purpose, "
          "remove the member \"",
          kChecksum, "\" at its end"));
    }
  }
  return index;
}

std::string FingerprintParameters(std::vector<NamedSpec> parameters) {
  std::sort(parameters.begin(), parameters.end(),
            [](const NamedSpec& a, const NamedSpec& b) { return a.name < b.name; });
  uint64_t hash = kFnv1aStart;
  auto add = [&hash](const std::string& text) {
    hash = Fnv1a("\xff", Fnv1a(text, hash));  // ends a text; not a byte of UTF-8
  };
  for (const NamedSpec& parameter : parameters) {
    add(parameter.name);
    add(parameter.spec.ToString());
  }
  return absl::StrFormat("%016x", hash);
}

}  // namespace oriel::runtime
