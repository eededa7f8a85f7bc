#include "frontend/export.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/error.h"
#include "frontend/initializer_bytes.h"
#include "frontend/model_file.h"
#include "frontend/model_text.h"
#include "frontend/patched_file.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using onnx::TensorProto;

bool isFloat(int32_t dataType) {
  return dataType == TensorProto::FLOAT || dataType == TensorProto::DOUBLE ||
         dataType == TensorProto::FLOAT16 || dataType == TensorProto::BFLOAT16;
}

class Exporter {
 public:
  Exporter(const ModelFile& model, const TrainedWeights& weights)
      : model_(model), weights_(weights) {}

  // Decides what goes where, and finds what is wrong before anything is written.
  llvm::Error plan(llvm::ArrayRef<char> modelBytes);
  // Which files are made, in the order of write().
  llvm::Expected<std::vector<PlannedExport::File>> place(llvm::StringRef to) const;
  llvm::Error write(llvm::ArrayRef<PlannedExport::File> files) const;

 private:
  struct ExternalFile {
    std::string source;  // empty: it does not exist
    std::vector<Replacement> replacements;
  };

  llvm::Error planTensor(const TensorProto& tensor, const llvm::StringMap<ByteRange>& payloads);
  // Whether the file has what the checkpoint has, but for the plan's precision.
  llvm::Expected<bool> isUnchanged(const std::string& name, const TensorHeader& header);
  llvm::Expected<ExternalFile*> external(llvm::StringRef location, llvm::StringRef tensor);
  Replacement replacement(const TensorProto& tensor, const TensorHeader& header, uint64_t offset);
  // What the weights have for the initializer, in its type; an error where that has no such number.
  llvm::Expected<llvm::ArrayRef<char>> encoded(const std::string& name, const TensorHeader& header);

  const ModelFile& model_;
  const TrainedWeights& weights_;
  std::vector<Replacement> main_;
  std::map<std::string, ExternalFile> external_;  // by location
  // Of the parameter whose turn it is.
  std::vector<float> values_;
  std::vector<char> encoded_;
};

llvm::Expected<Exporter::ExternalFile*> Exporter::external(llvm::StringRef location,
                                                           llvm::StringRef tensor) {
  auto found = external_.find(location.str());
  if (found == external_.end()) {
    auto missing = findMissingFile(model_.folder(), location, tensor);
    if (!missing) {
      return missing.takeError();
    }
    ExternalFile file;
    if (missing->empty()) {
      auto path = resolveExternalPath(model_.folder(), location, tensor);
      if (!path) {
        return path.takeError();
      }
      file.source = *path;
    }
    found = external_.emplace(location.str(), std::move(file)).first;
  }
  return &found->second;
}

llvm::Expected<bool> Exporter::isUnchanged(const std::string& name, const TensorHeader& header) {
  if (weights_.untrained.count(name) == 0) return false;
  values_.resize(header.numElements());
  if (llvm::Error error = weights_.read(name, values_)) {
    return error;
  }
  auto kept = ownValuesIfKept(model_, weights_, name, values_);
  if (!kept) {
    return kept.takeError();
  }
  return kept->has_value();
}

llvm::Expected<llvm::ArrayRef<char>> Exporter::encoded(const std::string& name,
                                                       const TensorHeader& header) {
  values_.resize(header.numElements());
  if (llvm::Error error = weights_.read(name, values_)) {
    return error;
  }
  std::optional<llvm::ArrayRef<char>> bytes = encodeFloats(values_, header.dataType, encoded_);
  if (!bytes) {
    return makeError("a value of the trained \"" + name + "\" is beyond " +
                     dataTypeName(header.dataType) +
                     ", which the model stores it in: export to safetensors, which keeps f32");
  }
  return *bytes;
}

Replacement Exporter::replacement(const TensorProto& tensor, const TensorHeader& header,
                                  uint64_t offset) {
  auto bytes = [this, &tensor, header] { return encoded(tensor.name(), header); };
  return {offset, static_cast<uint64_t>(header.bytes), tensor.name(), std::move(bytes)};
}

llvm::Error Exporter::planTensor(const TensorProto& tensor,
                                 const llvm::StringMap<ByteRange>& payloads) {
  const std::string& name = tensor.name();
  auto weight = weights_.elements.find(name);
  bool isTrained = weight != weights_.elements.end();
  if (isTrained && !model_.isMissing(name)) {
    auto old = model_.initializer(name);  // checks that its bytes are all there
    if (!old) {
      return old.takeError();
    }
  }
  auto header = model_.initializerHeader(name);
  if (!header) {
    return header.takeError();
  }
  if (isTrained && (weight->second != header->numElements() || !isFloat(header->dataType))) {
    return makeError("the trained \"" + name + "\" has " + llvm::Twine(weight->second) +
                     " elements, the model's " + llvm::Twine(header->numElements()) + " of type " +
                     dataTypeName(tensor.data_type()) + ": the checkpoint is of another model");
  }
  if (isTrained) {
    auto unchanged = isUnchanged(name, *header);
    if (!unchanged) {
      return unchanged.takeError();
    }
    isTrained = !*unchanged;
  }
  // Before any file is replaced.
  if (isTrained && header->dataType != TensorProto::FLOAT &&
      header->dataType != TensorProto::DOUBLE) {
    auto bytes = encoded(name, *header);
    if (!bytes) {
      return bytes.takeError();
    }
  }
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    auto range = readExternalRange(tensor);
    if (!range) {
      return range.takeError();
    }
    auto file = external(range->location, name);
    if (!file) {
      return file.takeError();
    }
    if (isTrained) {
      (*file)->replacements.push_back(replacement(tensor, *header, range->offset));
    } else if ((*file)->source.empty()) {
      return model_.initializer(name).takeError();  // its file is missing
    } else {
      (*file)->replacements.push_back(
          {range->offset, static_cast<uint64_t>(header->bytes), name, nullptr});
    }
    return llvm::Error::success();
  }
  if (!isTrained) {
    return llvm::Error::success();
  }
  ByteRange payload = payloads.lookup(name);
  if (payload.size != static_cast<uint64_t>(header->bytes)) {
    return makeError("the initializer \"" + name +
                     "\" is not stored as raw data, so its values can't be replaced in place; "
                     "save the model again with onnx.save and its arrays as raw data");
  }
  main_.push_back(replacement(tensor, *header, payload.offset));
  return llvm::Error::success();
}

llvm::Error Exporter::plan(llvm::ArrayRef<char> modelBytes) {
  auto payloads = findInitializerBytes(modelBytes);
  if (!payloads) {
    return makeError("can't read the model \"" + model_.path() + "\": the file is damaged");
  }
  for (const auto& [name, elements] : weights_.elements) {
    if (!model_.hasInitializer(name)) {
      return makeError("the model \"" + model_.path() + "\" has no initializer \"" + name +
                       "\": the checkpoint is of another model");
    }
  }
  for (const TensorProto& tensor : model_.graph().initializer()) {
    if (llvm::Error error = planTensor(tensor, *payloads)) {
      return error;
    }
  }
  return llvm::Error::success();
}

// Of the files in which the model at `path`, if there is one, has its data.
std::set<std::string> locationsOf(llvm::StringRef path) {
  std::set<std::string> locations;
  auto model = ModelFile::open(path);
  if (!model) {
    llvm::consumeError(model.takeError());
    return locations;
  }
  for (const TensorProto& tensor : model->graph().initializer()) {
    if (tensor.data_location() != TensorProto::EXTERNAL) {
      continue;
    }
    if (auto range = readExternalRange(tensor)) {
      locations.insert(range->location);
    } else {
      llvm::consumeError(range.takeError());
    }
  }
  return locations;
}

llvm::Expected<std::vector<PlannedExport::File>> Exporter::place(llvm::StringRef to) const {
  llvm::SmallString<256> folder(to);
  if (std::error_code code = llvm::sys::fs::make_absolute(folder)) {
    return makeError("can't write \"" + to + "\": " + code.message());
  }
  std::string file = folder.str().str();
  llvm::sys::path::remove_filename(folder);
  llvm::StringRef source = model_.folder().empty() ? llvm::StringRef(".") : model_.folder();
  if (!external_.empty() && llvm::sys::fs::equivalent(folder, source)) {
    return makeError("the model's external data (\"" + external_.begin()->first +
                     "\") lies in the folder of \"" + to +
                     "\" and would be overwritten; write to another folder");
  }
  // The model last: where it is, its data is. Other data than its own is another one's.
  const std::set<std::string> own = locationsOf(file);
  std::vector<PlannedExport::File> files;
  for (const auto& [location, external] : external_) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, location);
    if (own.count(location) == 0 && llvm::sys::fs::exists(path)) {
      return makeError("\"" + path + "\" is there already, perhaps with the weights of another " +
                       "model, which those of \"" + to +
                       "\" would replace; write to another folder, or delete that file");
    }
    files.emplace_back(path.str().str(), external.source);
  }
  files.emplace_back(std::move(file), model_.path().str());
  return files;
}

llvm::Error Exporter::write(llvm::ArrayRef<PlannedExport::File> files) const {
  const auto* file = files.begin();
  for (const auto& [location, external] : external_) {
    if (llvm::Error error = writePatched(external.source, external.replacements, file->first)) {
      return error;
    }
    ++file;
  }
  return writePatched(model_.path(), main_, file->first);
}

}  // namespace

llvm::Expected<std::optional<std::vector<float>>> ownValuesIfKept(const ModelFile& model,
                                                                  const TrainedWeights& weights,
                                                                  const std::string& name,
                                                                  llvm::ArrayRef<float> values) {
  auto untrained = weights.untrained.find(name);
  if (untrained == weights.untrained.end() || model.isMissing(name)) {
    return std::nullopt;
  }
  auto old = model.initializer(name);
  if (!old) {
    return old.takeError();
  }
  std::vector<float> file = decodeFloats(*old);
  const bool isKept =
      file.size() == values.size() &&
      std::equal(file.begin(), file.end(), values.begin(), [&](float own, float read) {
        float made = untrained->second(own);
        return made == read || (std::isnan(made) && std::isnan(read));
      });
  if (!isKept) return std::nullopt;
  return file;
}

llvm::Expected<PlannedExport> planExport(llvm::StringRef from, TrainedWeights weights,
                                         llvm::StringRef to) {
  // What the exporter refers to.
  struct Job {
    Job(ModelFile file, TrainedWeights trained)
        : model(std::move(file)), weights(std::move(trained)), exporter(model, weights) {}
    const ModelFile model;
    const TrainedWeights weights;
    Exporter exporter;
  };
  auto model = ModelFile::open(from);
  if (!model) {
    return model.takeError();
  }
  if (isModelText(from)) {
    return makeError("the model \"" + from +
                     "\" is text, in which no weights can be replaced; compile it from .onnx "
                     "(onnx.save(onnx.load(\"model.onnxtxt\"), \"model.onnx\")), or export to "
                     "safetensors");
  }
  auto buffer = llvm::MemoryBuffer::getFile(from, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    return makeError("can't read \"" + from + "\": " + buffer.getError().message());
  }
  auto job = std::make_shared<Job>(std::move(*model), std::move(weights));
  if (llvm::Error error = job->exporter.plan(
          llvm::ArrayRef<char>((*buffer)->getBufferStart(), (*buffer)->getBufferSize()))) {
    return error;
  }
  auto files = job->exporter.place(to);
  if (!files) {
    return files.takeError();
  }
  return PlannedExport{*files, [job, files = *files] { return job->exporter.write(files); }};
}

llvm::Error exportModel(llvm::StringRef from, const TrainedWeights& weights, llvm::StringRef to) {
  auto planned = planExport(from, weights, to);
  return planned ? planned->write() : planned.takeError();
}

}  // namespace oriel
