// External data that a model in another folder names.
#ifndef ORIEL_FRONTEND_EXTERNAL_DATA_H_
#define ORIEL_FRONTEND_EXTERNAL_DATA_H_

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace onnx {
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace oriel {

// Of a tensor of a model in `folder`: what it says for a model that is written to `to`. The data
// stays where it is, which must be below the folder of `to`. Nothing for other tensors.
llvm::Error relocateData(onnx::TensorProto& tensor, llvm::StringRef folder, llvm::StringRef to);
// Of the branches of a node, and of those within.
llvm::Error relocateBranches(onnx::NodeProto& node, llvm::StringRef folder, llvm::StringRef to);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_EXTERNAL_DATA_H_
