#include "frontend/export.h"

#include <cstring>
#include <vector>

#include "frontend/error.h"
#include "frontend/initializer_bytes.h"
#include "frontend/model_file.h"
#include "frontend/patched_file.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using onnx::TensorProto;

// Values in the initializer's own element type; empty for one that isn't float.
std::vector<char> encode(llvm::ArrayRef<float> values, int32_t dataType) {
  std::vector<char> bytes(values.size() * elementBytes(dataType));
  auto narrow = [&](const llvm::fltSemantics& semantics) {
    for (size_t i = 0; i < values.size(); ++i) {
      llvm::APFloat number(values[i]);
      bool losesInfo;
      number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      auto bits = static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
  };
  switch (dataType) {
    case TensorProto::FLOAT:
      std::memcpy(bytes.data(), values.data(), bytes.size());
      break;
    case TensorProto::DOUBLE:
      for (size_t i = 0; i < values.size(); ++i) {
        double wide = values[i];
        std::memcpy(bytes.data() + 8 * i, &wide, 8);
      }
      break;
    case TensorProto::FLOAT16:
      narrow(llvm::APFloat::IEEEhalf());
      break;
    case TensorProto::BFLOAT16:
      narrow(llvm::APFloat::BFloat());
      break;
    default:
      return {};
  }
  return bytes;
}

class Exporter {
 public:
  Exporter(const ModelFile& model, PatchedFile main) : model_(model), main_(std::move(main)) {}

  llvm::Error patchAll(const TrainedWeights& weights);
  llvm::Error write(llvm::StringRef to);

 private:
  llvm::Error patch(const TensorProto& tensor, llvm::ArrayRef<float> values,
                    const llvm::StringMap<ByteRange>& payloads);
  llvm::Expected<PatchedFile*> external(llvm::StringRef location, llvm::StringRef tensor);

  const ModelFile& model_;
  PatchedFile main_;
  std::map<std::string, PatchedFile> external_;  // by location
};

struct ExternalPlace {
  std::string location;
  uint64_t offset = 0;
};

ExternalPlace externalPlace(const TensorProto& tensor) {
  ExternalPlace place;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") {
      place.location = entry.value();
    } else if (entry.key() == "offset") {
      (void)llvm::StringRef(entry.value()).getAsInteger(10, place.offset);
    }
  }
  return place;
}

llvm::Expected<PatchedFile*> Exporter::external(llvm::StringRef location, llvm::StringRef tensor) {
  auto found = external_.find(location.str());
  if (found == external_.end()) {
    auto path = resolveExternalPath(model_.folder(), location, tensor);
    if (!path) {
      return path.takeError();
    }
    auto file = PatchedFile::read(*path);
    if (!file) {
      return file.takeError();
    }
    found = external_.emplace(location.str(), std::move(*file)).first;
  }
  return &found->second;
}

llvm::Error Exporter::patch(const TensorProto& tensor, llvm::ArrayRef<float> values,
                            const llvm::StringMap<ByteRange>& payloads) {
  const std::string& name = tensor.name();
  auto old = model_.initializer(name);  // checks shape, type and size
  if (!old) {
    return old.takeError();
  }
  std::vector<char> bytes = encode(values, tensor.data_type());
  if (static_cast<int64_t>(values.size()) != old->numElements() ||
      bytes.size() != old->bytes.size()) {
    return makeError("the trained \"" + name + "\" has " + llvm::Twine(values.size()) +
                     " elements, the model's " + llvm::Twine(old->numElements()) + " of type " +
                     dataTypeName(tensor.data_type()) + ": the checkpoint is of another model");
  }
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    ExternalPlace place = externalPlace(tensor);
    auto file = external(place.location, name);
    if (!file) {
      return file.takeError();
    }
    if (!(*file)->patch(place.offset, bytes)) {
      return makeError("the external data of \"" + name + "\" changed while it was read");
    }
    return llvm::Error::success();
  }
  ByteRange payload = payloads.lookup(name);
  if (payload.size != bytes.size() || !main_.patch(payload.offset, bytes)) {
    return makeError("the initializer \"" + name +
                     "\" is not stored as raw data, so its values can't be replaced in place; "
                     "save the model again with onnx.save and its arrays as raw data");
  }
  return llvm::Error::success();
}

llvm::Error Exporter::patchAll(const TrainedWeights& weights) {
  auto payloads = findInitializerBytes(main_.bytes());
  if (!payloads) {
    return makeError("can't read the model \"" + model_.path() + "\": the file is damaged");
  }
  llvm::StringMap<const TensorProto*> tensors;
  for (const TensorProto& tensor : model_.graph().initializer()) {
    tensors[tensor.name()] = &tensor;
    if (tensor.data_location() == TensorProto::EXTERNAL) {
      auto file = external(externalPlace(tensor).location, tensor.name());
      if (!file) {
        return file.takeError();
      }
    }
  }
  for (const auto& [name, values] : weights) {
    const TensorProto* tensor = tensors.lookup(name);
    if (!tensor) {
      return makeError("the model \"" + model_.path() + "\" has no initializer \"" + name +
                       "\": the checkpoint is of another model");
    }
    if (llvm::Error error = patch(*tensor, values, *payloads)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error Exporter::write(llvm::StringRef to) {
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
  // The model last: where it is, its data is.
  for (const auto& [location, patched] : external_) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, location);
    if (llvm::Error error = patched.write(path)) {
      return error;
    }
  }
  return main_.write(file);
}

}  // namespace

llvm::Error exportModel(llvm::StringRef from, const TrainedWeights& weights, llvm::StringRef to) {
  auto model = ModelFile::open(from);
  if (!model) {
    return model.takeError();
  }
  auto main = PatchedFile::read(from);
  if (!main) {
    return main.takeError();
  }
  Exporter exporter(*model, std::move(*main));
  if (llvm::Error error = exporter.patchAll(weights)) {
    return error;
  }
  return exporter.write(to);
}

}  // namespace oriel
