#include "frontend/model_file.h"

#include <climits>

#include "frontend/constant_tables.h"
#include "frontend/error.h"
#include "frontend/model_text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

constexpr int64_t kMinIrVersion = 3;

// "ai.onnx" is an alias of the empty domain.
llvm::StringRef canonicalDomain(llvm::StringRef domain) {
  return domain == "ai.onnx" ? llvm::StringRef() : domain;
}

// "/norm/Constant_1_output_0", as TorchScript's exporter calls what a Constant node makes, which
// optimizers turn into an initializer.
bool isOfConstantNode(llvm::StringRef name) {
  llvm::StringRef last = name.substr(name.rfind('/') + 1);
  if (!last.consume_front("Constant_")) return false;
  const auto [number, output] = last.split("output_");
  return !output.empty() && llvm::all_of(number.rtrim('_'), llvm::isDigit) &&
         llvm::all_of(output, llvm::isDigit);
}

}  // namespace

ModelFile::ModelFile() = default;
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;
ModelFile::~ModelFile() = default;

llvm::Expected<ModelFile> ModelFile::open(llvm::StringRef path) {
  auto fail = [&](const llvm::Twine& why) {
    return makeError("can't read the model \"" + path + "\": " + why);
  };
  if (llvm::sys::fs::is_directory(path)) {
    return fail("it is a folder; give the .onnx file in it");
  }
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    return fail(buffer.getError().message());
  }
  size_t size = (*buffer)->getBufferSize();
  if (size == 0) {
    return fail("the file is empty; export or copy it again");
  }
  if (size > static_cast<size_t>(INT_MAX)) {
    return fail("it has " + llvm::Twine(size) +
                " bytes, and protobuf ends at 2 GiB; save it with external data "
                "(onnx.save_model(.., save_as_external_data=True))");
  }
  if (isModelText(path)) {
    auto parsed = parseModelText((*buffer)->getBuffer());
    if (!parsed) {
      return fail(llvm::toString(parsed.takeError()));
    }
    return fromProto(std::move(*parsed), path, llvm::sys::path::parent_path(path));
  }
  auto proto = std::make_unique<onnx::ModelProto>();
  if (!proto->ParseFromArray((*buffer)->getBufferStart(), static_cast<int>(size))) {
    return fail("the file is truncated, damaged, nested too deeply or no ONNX model (" +
                llvm::Twine(size) + " bytes); export or copy it again");
  }
  return fromProto(std::move(proto), path, llvm::sys::path::parent_path(path));
}

llvm::Expected<ModelFile> ModelFile::fromProto(std::unique_ptr<onnx::ModelProto> proto,
                                               llvm::StringRef path, llvm::StringRef folder) {
  ModelFile model;
  model.proto_ = std::move(proto);
  model.path_ = path.str();
  model.folder_ = folder.str();
  if (llvm::Error error = model.check()) {
    return makeError("can't read the model \"" + path + "\": " + llvm::toString(std::move(error)));
  }
  return model;
}

llvm::Error ModelFile::check() {
  if (!proto_->has_graph() || proto_->graph().output_size() == 0) {
    return makeError("it holds no graph with outputs; the file is truncated or no ONNX model");
  }
  if (proto_->ir_version() < kMinIrVersion || proto_->ir_version() > onnx::Version::IR_VERSION) {
    return makeError("it has the IR version " + llvm::Twine(proto_->ir_version()) +
                     "; Oriel reads versions " + llvm::Twine(kMinIrVersion) + " to " +
                     llvm::Twine(static_cast<int>(onnx::Version::IR_VERSION)));
  }
  int64_t version = opset("");
  if (version < kMinOpset || version > kMaxOpset) {
    return makeError("it uses the operator set " + llvm::Twine(version) + " of ONNX; Oriel reads " +
                     llvm::Twine(kMinOpset) + " to " + llvm::Twine(kMaxOpset) +
                     ": export it again, or convert it with onnx.version_converter");
  }
  if (proto_->graph().sparse_initializer_size() > 0) {
    return makeError("it has sparse initializers, which Oriel does not read");
  }
  for (int i = 0; i < graph().initializer_size(); ++i) {
    const std::string& name = graph().initializer(i).name();
    if (name.empty()) {
      return makeError("its initializer " + llvm::Twine(i) + " has no name");
    }
    if (!initializerIndex_.try_emplace(name, i).second) {
      return makeError("it has two initializers named \"" + llvm::Twine(name) + "\"");
    }
  }
  for (const auto& entry : proto_->metadata_props()) {
    if (entry.key() != kPartsKey) continue;
    for (llvm::StringRef line : llvm::split(entry.value(), '\n')) {
      parts_.push_back(line.split('\t').first.str());
    }
  }
  // The exporter writes what a tensor was beside its type or beside its values.
  auto noteKind = [&](const auto& described) {
    for (const auto& entry : described.metadata_props()) {
      if (entry.key() == kSignatureKindKey) {
        signatureKind_[described.name()] = entry.value();
        describedParts_.insert(partOf(described.name()));
      }
    }
  };
  llvm::for_each(graph().value_info(), noteKind);
  llvm::for_each(graph().initializer(), noteKind);
  // The TorchScript exporter names what it folds after the op that reads it.
  auto isFolded = [&](llvm::StringRef name) {
    return describesPartOf(name) ? !describes(name) : nameInPart(name).starts_with("onnx::");
  };
  tables_ = findConstantTables(graph(), isFolded, [&](const onnx::TensorProto& tensor) {
    return valuesOfUndescribed(tensor);
  });
  findMissingWeights();
  return llvm::Error::success();
}

static bool isFloat(const onnx::TensorProto& tensor) {
  return tensor.data_type() == onnx::TensorProto::FLOAT ||
         tensor.data_type() == onnx::TensorProto::DOUBLE ||
         tensor.data_type() == onnx::TensorProto::FLOAT16 ||
         tensor.data_type() == onnx::TensorProto::BFLOAT16;
}

std::optional<TensorData> ModelFile::valuesOfUndescribed(const onnx::TensorProto& tensor) const {
  if (!isFloat(tensor) || describes(tensor.name())) return std::nullopt;
  auto data = readTensor(tensor, folder_);
  if (data) return std::move(*data);
  llvm::consumeError(data.takeError());  // said where it is read
  return std::nullopt;
}

// What else may be wrong with a tensor is said when it is read.
void ModelFile::findMissingWeights() {
  llvm::StringMap<std::string> missingFiles;  // by location; empty for one that is there
  for (const auto& tensor : graph().initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL ||
        role(tensor.name()) != InitializerRole::kParameter) {
      continue;
    }
    auto range = readExternalRange(tensor);
    if (!range) {
      llvm::consumeError(range.takeError());
      continue;
    }
    auto [entry, isNew] = missingFiles.try_emplace(range->location);
    if (isNew) {
      auto file = findMissingFile(folder_, range->location, tensor.name());
      if (!file) {
        llvm::consumeError(file.takeError());
        continue;
      }
      entry->second = *file;
      if (!file->empty()) {
        missing_.files.push_back(*file);
      }
    }
    if (!entry->second.empty()) {
      missing_.parameters.push_back(tensor.name());
      missingNames_.insert(tensor.name());
    }
  }
}

const onnx::GraphProto& ModelFile::graph() const { return proto_->graph(); }

std::string ModelFile::name() const {
  llvm::StringRef stem = llvm::sys::path::stem(path_);
  llvm::StringRef parent = llvm::sys::path::filename(llvm::sys::path::parent_path(path_));
  bool saysNothing = stem.empty() || stem == "model" || stem == "decoder_model";
  return (saysNothing && !parent.empty() && parent != "." ? parent : stem).str();
}

int64_t ModelFile::opset(llvm::StringRef domain) const {
  for (const auto& import : proto_->opset_import()) {
    if (canonicalDomain(import.domain()) == canonicalDomain(domain)) {
      return import.version();
    }
  }
  return 0;
}

std::vector<std::string> ModelFile::initializerNames() const {
  std::vector<std::string> names;
  for (const auto& tensor : graph().initializer()) {
    names.push_back(tensor.name());
  }
  return names;
}

std::vector<std::string> ModelFile::tables() const {
  std::vector<std::string> names = initializerNames();
  llvm::erase_if(names, [&](const std::string& name) {
    return !tables_.contains(name) || describes(name) || askedParameters_.contains(name);
  });
  return names;
}

bool ModelFile::hasInitializer(llvm::StringRef name) const {
  return initializerIndex_.contains(name);
}

llvm::Expected<TensorHeader> ModelFile::initializerHeader(llvm::StringRef name) const {
  auto found = initializerIndex_.find(name);
  if (found == initializerIndex_.end()) {
    return makeError("the model \"" + path_ + "\" has no initializer \"" + name + "\"");
  }
  auto header = readTensorHeader(graph().initializer(found->second));
  if (!header) {
    return makeError("can't read the model \"" + path_ +
                     "\": " + llvm::toString(header.takeError()));
  }
  return header;
}

llvm::Expected<TensorData> ModelFile::initializer(llvm::StringRef name) const {
  auto found = initializerIndex_.find(name);
  if (found == initializerIndex_.end()) {
    return makeError("the model \"" + path_ + "\" has no initializer \"" + name + "\"");
  }
  auto data = readTensor(graph().initializer(found->second), folder_);
  if (!data) {
    return makeError("can't read the model \"" + path_ + "\": " + llvm::toString(data.takeError()));
  }
  return data;
}

std::vector<std::string> ModelFile::dataFiles() const {
  std::vector<std::string> files;
  for (const auto& tensor : graph().initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    auto range = readExternalRange(tensor);
    if (!range) {
      llvm::consumeError(range.takeError());
      continue;
    }
    llvm::SmallString<256> path(folder_);
    llvm::sys::path::append(path, range->location);
    if (!llvm::is_contained(files, path.str())) files.push_back(path.str().str());
  }
  return files;
}

llvm::StringRef ModelFile::partOf(llvm::StringRef name) const {
  for (const std::string& part : parts_) {
    if (name.starts_with(part) && name.substr(part.size()).starts_with(".")) return part;
  }
  return "";
}

llvm::StringRef ModelFile::nameInPart(llvm::StringRef name) const {
  const llvm::StringRef part = partOf(name);
  return part.empty() ? name : name.drop_front(part.size() + 1);
}

bool ModelFile::isNumber(llvm::StringRef name) const {
  auto found = initializerIndex_.find(name);
  if (found == initializerIndex_.end()) return false;
  const onnx::TensorProto& tensor = graph().initializer(found->second);
  return isFloat(tensor) && llvm::all_of(tensor.dims(), [](int64_t dim) { return dim == 1; });
}

void ModelFile::treatAsParameters(llvm::ArrayRef<std::string> names) {
  for (const std::string& name : names) askedParameters_.insert(name);
  missing_ = {};
  missingNames_.clear();
  findMissingWeights();
}

bool ModelFile::isFloatInitializer(llvm::StringRef name) const {
  auto found = initializerIndex_.find(name);
  return found != initializerIndex_.end() && isFloat(graph().initializer(found->second));
}

InitializerRole ModelFile::role(llvm::StringRef name) const {
  if (!isFloatInitializer(name)) {
    return InitializerRole::kConstant;
  }
  if (askedParameters_.contains(name)) {
    return InitializerRole::kParameter;
  }
  if (auto kind = signatureKind_.find(name); kind != signatureKind_.end()) {
    return kind->second == kParameterKind ? InitializerRole::kParameter
                                          : InitializerRole::kConstant;
  }
  const bool isConstant = isNumber(name) || tables_.contains(name) || isOfConstantNode(name);
  return isConstant ? InitializerRole::kConstant : InitializerRole::kParameter;
}

}  // namespace oriel
