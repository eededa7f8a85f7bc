#include "frontend/external_data.h"

#include "frontend/error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;

// Through symbolic links, where the folder is there.
llvm::SmallString<256> absoluteFolder(StringRef path) {
  llvm::SmallString<256> whole;
  if (llvm::sys::fs::real_path(path.empty() ? "." : path, whole)) {
    whole = path;
    llvm::sys::fs::make_absolute(whole);
    llvm::sys::path::remove_dots(whole, /*remove_dot_dot=*/true);
  }
  return whole;
}

}  // namespace

llvm::Error relocateData(onnx::TensorProto& tensor, StringRef folder, StringRef to) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) {
    return llvm::Error::success();
  }
  const llvm::SmallString<256> from = absoluteFolder(folder);
  const llvm::SmallString<256> place = absoluteFolder(llvm::sys::path::parent_path(to));
  StringRef below = from;
  if (!below.consume_front(place) || !(below.empty() || below.starts_with("/") || place == "/")) {
    return makeError("its weights are external data in \"" + folder +
                     "\", so the new model must be in that folder, or above it");
  }
  below = below.ltrim('/');
  for (auto& entry : *tensor.mutable_external_data()) {
    if (entry.key() != "location" || below.empty()) continue;
    entry.set_value((below + "/" + entry.value()).str());
  }
  return llvm::Error::success();
}

llvm::Error relocateBranches(onnx::NodeProto& node, StringRef folder, StringRef to) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (!attribute.has_g()) continue;
    for (auto& tensor : *attribute.mutable_g()->mutable_initializer()) {
      if (llvm::Error error = relocateData(tensor, folder, to)) return error;
    }
    for (auto& inner : *attribute.mutable_g()->mutable_node()) {
      if (llvm::Error error = relocateBranches(inner, folder, to)) return error;
    }
  }
  return llvm::Error::success();
}

}  // namespace oriel
