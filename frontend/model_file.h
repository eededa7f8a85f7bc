// An ONNX model read from disk.
//
//   auto model = ModelFile::open("model.onnx");
//   if (!model) return report(model.takeError());
//   auto weight = model->initializer("lm_head.weight");   // bytes, shape, element type
#ifndef ORIEL_FRONTEND_MODEL_FILE_H_
#define ORIEL_FRONTEND_MODEL_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "frontend/tensor_data.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace onnx {
class GraphProto;
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace oriel {

// The key of the metadata of a composed model (compose.h) that has a line "NAME FINGERPRINT" for
// each of its parts, separated by a tab.
inline constexpr char kPartsKey[] = "oriel.parts";

// The key under which PyTorch's exporter says what a tensor was, and what it says of a parameter.
inline constexpr char kSignatureKindKey[] = "pkg.torch.export.graph_signature.InputSpec.kind";
inline constexpr char kParameterKind[] = "PARAMETER";

// What an initializer is in training.
enum class InitializerRole { kParameter, kConstant };

// Parameters whose values should lie in external files that do not exist: the model has their
// shapes only (a skeleton). In file order; each file once.
struct MissingWeights {
  std::vector<std::string> parameters;
  std::vector<std::string> files;
};

class ModelFile {
 public:
  // The operator sets that the importer understands.
  static constexpr int64_t kMinOpset = 13;
  static constexpr int64_t kMaxOpset = 28;

  // Reads and checks a file, binary or ONNX's text (.onnxtxt): that it is whole, its IR and
  // operator-set versions, and that names of values are unique. An error names the file and what to
  // do. Weights are read later, by name.
  static llvm::Expected<ModelFile> open(llvm::StringRef path);
  // The same for a model in memory; `folder` is where its external data lies.
  static llvm::Expected<ModelFile> fromProto(std::unique_ptr<onnx::ModelProto> proto,
                                             llvm::StringRef path, llvm::StringRef folder);

  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;
  ~ModelFile();

  const onnx::ModelProto& proto() const { return *proto_; }
  const onnx::GraphProto& graph() const;
  llvm::StringRef path() const { return path_; }
  // Where relative locations of external data start.
  llvm::StringRef folder() const { return folder_; }
  // A name for people: the file's stem, or its folder's name where the stem says nothing.
  std::string name() const;
  // Version of an operator set that the model imports; 0 if it does not. "" is ONNX itself.
  int64_t opset(llvm::StringRef domain) const;

  // In file order.
  std::vector<std::string> initializerNames() const;
  bool hasInitializer(llvm::StringRef name) const;
  // Its type and shape; its values need not be there.
  llvm::Expected<TensorHeader> initializerHeader(llvm::StringRef name) const;
  const MissingWeights& missingWeights() const { return missing_; }
  bool isMissing(llvm::StringRef name) const { return missingNames_.contains(name); }
  // The initial value. It may point into this object.
  llvm::Expected<TensorData> initializer(llvm::StringRef name) const;
  // PyTorch's exporter says in the metadata what a tensor was (parameter, buffer, constant).
  // Where nothing is said, a float tensor with more than one element is a parameter, unless its
  // use and values say that it is a table (constant_tables.h), or its name that a node made it.
  InitializerRole role(llvm::StringRef name) const;
  // Makes parameters of float initializers that are constants otherwise: the user knows better.
  void treatAsParameters(llvm::ArrayRef<std::string> names);
  bool isFloatInitializer(llvm::StringRef name) const;
  // Whether it is one float: no parameter, unless PyTorch's exporter says so.
  bool isNumber(llvm::StringRef name) const;
  // Whether the metadata says what this tensor was, or what any of the same part was.
  bool describes(llvm::StringRef name) const { return signatureKind_.contains(name); }
  bool describesPartOf(llvm::StringRef name) const {
    return describedParts_.contains(partOf(name));
  }
  // Those that are constants since their use and values say so, in file order.
  std::vector<std::string> tables() const;
  // Names of the parts of a composed model.
  const std::vector<std::string>& parts() const { return parts_; }
  // The files of external data that initializers name, once each; they need not be there.
  std::vector<std::string> dataFiles() const;
  // Of a composed model: the part that an initializer is of, and its name there. Else
  // nothing, and the name.
  llvm::StringRef partOf(llvm::StringRef name) const;
  llvm::StringRef nameInPart(llvm::StringRef name) const;

 private:
  ModelFile();
  llvm::Error check();
  void findMissingWeights();
  // Of a float tensor of which the metadata says nothing.
  std::optional<TensorData> valuesOfUndescribed(const onnx::TensorProto& tensor) const;

  std::unique_ptr<onnx::ModelProto> proto_;
  std::string path_;
  std::string folder_;
  llvm::StringMap<int> initializerIndex_;
  llvm::StringMap<std::string> signatureKind_;  // as torch.export calls it
  std::vector<std::string> parts_;
  llvm::StringSet<> describedParts_;
  llvm::StringSet<> tables_;           // see findConstantTables
  llvm::StringSet<> askedParameters_;  // by treatAsParameters()
  MissingWeights missing_;
  llvm::StringSet<> missingNames_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MODEL_FILE_H_
