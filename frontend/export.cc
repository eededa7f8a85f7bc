#include "frontend/export.h"

#include <unistd.h>

#include <cstring>
#include <optional>
#include <vector>

#include "frontend/error.h"
#include "frontend/model_file.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using onnx::TensorProto;

// Where the values of an initializer lie in a file.
struct Payload {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Finds values by walking the file's own encoding, so that they can be overwritten in place:
// parsing and writing a message again need not give the same bytes.
class PayloadFinder {
 public:
  explicit PayloadFinder(llvm::ArrayRef<char> file)
      : stream_(reinterpret_cast<const uint8_t*>(file.data()), static_cast<int>(file.size())) {}

  bool run() {
    return eachField([&](int field) {
      return field == onnx::ModelProto::kGraphFieldNumber && nested([&] { return walkGraph(); });
    });
  }
  const llvm::StringMap<Payload>& payloads() const { return payloads_; }

 private:
  // Calls `visit` for each length-delimited field; where it returns false the field is skipped.
  template <typename Visit>
  bool eachField(Visit visit) {
    while (uint32_t tag = stream_.ReadTag()) {
      bool isBytes =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (isBytes && visit(WireFormatLite::GetTagFieldNumber(tag))) {
        continue;
      }
      if (broken_ || !WireFormatLite::SkipField(&stream_, tag)) {
        return false;
      }
    }
    return !broken_;
  }

  template <typename Walk>
  bool nested(Walk walk) {
    uint32_t size;
    if (!stream_.ReadVarint32(&size)) {
      broken_ = true;
      return true;
    }
    auto limit = stream_.PushLimit(static_cast<int>(size));
    broken_ = !walk();
    stream_.PopLimit(limit);
    return !broken_;
  }

  bool walkGraph() {
    return eachField([&](int field) {
      return field == onnx::GraphProto::kInitializerFieldNumber &&
             nested([&] { return walkTensor(); });
    });
  }

  bool walkTensor() {
    std::string name;
    std::optional<Payload> payload;
    bool whole = eachField([&](int field) {
      uint32_t size;
      if (field == TensorProto::kNameFieldNumber) {
        broken_ = !stream_.ReadVarint32(&size) || !stream_.ReadString(&name, size);
        return true;
      }
      if (field == TensorProto::kRawDataFieldNumber ||
          field == TensorProto::kFloatDataFieldNumber) {
        broken_ = !stream_.ReadVarint32(&size);
        payload = Payload{static_cast<uint64_t>(stream_.CurrentPosition()), size};
        broken_ = broken_ || !stream_.Skip(static_cast<int>(size));
        return true;
      }
      return false;
    });
    if (payload) {
      payloads_[name] = *payload;
    }
    return whole;
  }

  CodedInputStream stream_;
  llvm::StringMap<Payload> payloads_;
  bool broken_ = false;
};

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

llvm::Error writeAtomically(llvm::StringRef path, llvm::ArrayRef<char> bytes) {
  auto fail = [&](const llvm::Twine& why) {
    return makeError("can't write \"" + path + "\": " + why);
  };
  if (std::error_code code =
          llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path))) {
    return fail(code.message());
  }
  auto temporary = llvm::sys::fs::TempFile::create(path + ".%%%%%%%%.tmp");
  if (!temporary) {
    return fail(llvm::toString(temporary.takeError()));
  }
  size_t written = 0;
  while (written < bytes.size()) {
    ssize_t count = ::write(temporary->FD, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      std::string why = std::strerror(errno);
      llvm::consumeError(temporary->discard());
      return fail(why);
    }
    written += count;
  }
  // Synced before the rename: a crash leaves the old file or the new one, not half of it.
  if (::fsync(temporary->FD) != 0 ||
      llvm::sys::fs::setPermissions(temporary->FD, llvm::sys::fs::perms(0644))) {
    std::string why = std::strerror(errno);
    llvm::consumeError(temporary->discard());
    return fail(why);
  }
  if (llvm::Error error = temporary->keep(path)) {
    return fail(llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

// One file of the model and what changes in it.
class PatchedFile {
 public:
  static llvm::Expected<PatchedFile> read(llvm::StringRef path) {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    if (!buffer) {
      return makeError("can't read \"" + path + "\": " + buffer.getError().message());
    }
    PatchedFile file;
    file.bytes_.assign((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
    return file;
  }
  llvm::ArrayRef<char> bytes() const { return bytes_; }
  [[nodiscard]] bool patch(uint64_t offset, llvm::ArrayRef<char> value) {
    if (offset > bytes_.size() || value.size() > bytes_.size() - offset) {
      return false;
    }
    std::memcpy(bytes_.data() + offset, value.data(), value.size());
    return true;
  }

 private:
  std::vector<char> bytes_;
};

class Exporter {
 public:
  Exporter(const ModelFile& model, PatchedFile main) : model_(model), main_(std::move(main)) {}

  llvm::Error patchAll(const TrainedWeights& weights);
  llvm::Error write(llvm::StringRef to);

 private:
  llvm::Error patch(const TensorProto& tensor, llvm::ArrayRef<float> values,
                    const llvm::StringMap<Payload>& payloads);
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
                            const llvm::StringMap<Payload>& payloads) {
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
  Payload payload = payloads.lookup(name);
  if (payload.size != bytes.size() || !main_.patch(payload.offset, bytes)) {
    return makeError("the initializer \"" + name +
                     "\" is not stored as raw data, so its values can't be replaced in place; "
                     "save the model again with onnx.save and its arrays as raw data");
  }
  return llvm::Error::success();
}

llvm::Error Exporter::patchAll(const TrainedWeights& weights) {
  PayloadFinder finder(main_.bytes());
  if (!finder.run()) {
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
    if (llvm::Error error = patch(*tensor, values, finder.payloads())) {
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
    if (llvm::Error error = writeAtomically(path, patched.bytes())) {
      return error;
    }
  }
  return writeAtomically(file, main_.bytes());
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
