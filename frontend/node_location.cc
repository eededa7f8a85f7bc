#include "frontend/node_location.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

// The strings of a Python list literal, ['', 'model.layers.0', "it's"]; empty if it is none.
llvm::SmallVector<std::string> parseStringList(llvm::StringRef text) {
  llvm::SmallVector<std::string> strings;
  if (!text.consume_front("[") || !text.consume_back("]")) {
    return strings;
  }
  while (!(text = text.ltrim(", ")).empty()) {
    char quote = text.front();
    if (quote != '\'' && quote != '"') {
      return {};
    }
    std::string& string = strings.emplace_back();
    size_t i = 1;
    for (; i < text.size() && text[i] != quote; ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) {
        ++i;
      }
      string += text[i];
    }
    if (i == text.size()) {
      return {};
    }
    text = text.drop_front(i + 1);
  }
  return strings;
}

mlir::NameLoc findNameLoc(mlir::Location location) {
  if (auto fused = llvm::dyn_cast<mlir::FusedLoc>(location)) {
    for (mlir::Location part : fused.getLocations()) {
      if (auto found = findNameLoc(part)) {
        return found;
      }
    }
    return {};
  }
  return llvm::dyn_cast<mlir::NameLoc>(location);
}

}  // namespace

std::string modulePath(const onnx::NodeProto& node) {
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() != "pkg.torch.onnx.name_scopes") {
      continue;
    }
    // From the outermost module to the innermost, then the traced operation itself.
    auto scopes = parseStringList(entry.value());
    if (scopes.size() < 2 || llvm::StringRef(scopes[scopes.size() - 2]).starts_with("_empty_nn_")) {
      return "";
    }
    return scopes[scopes.size() - 2];
  }
  // The TorchScript exporter names nodes by path.
  llvm::StringRef name = node.name();
  if (!name.consume_front("/")) {
    return "";
  }
  std::string path = name.rsplit('/').first.str();
  if (path.size() == name.size()) {
    return "";
  }
  llvm::replace(path, '/', '.');
  return path;
}

std::string nodeName(const onnx::NodeProto& node) {
  if (!node.name().empty()) {
    return node.name();
  }
  return node.output_size() > 0 ? node.output(0) : std::string();
}

mlir::Location nodeLocation(mlir::MLIRContext* context, const onnx::NodeProto& node) {
  std::string name = nodeName(node), path = modulePath(node);
  // An empty name can't be printed as a location.
  auto nameAttr = mlir::StringAttr::get(context, name.empty() ? "unnamed node" : name);
  if (path.empty()) {
    return mlir::NameLoc::get(nameAttr);
  }
  return mlir::NameLoc::get(nameAttr, mlir::NameLoc::get(mlir::StringAttr::get(context, path)));
}

std::string nodeNameOf(mlir::Location location) {
  auto named = findNameLoc(location);
  return named ? named.getName().str() : std::string();
}

std::string modulePathOf(mlir::Location location) {
  auto named = findNameLoc(location);
  if (!named) {
    return "";
  }
  auto module = llvm::dyn_cast<mlir::NameLoc>(named.getChildLoc());
  return module ? module.getName().str() : std::string();
}

}  // namespace oriel
