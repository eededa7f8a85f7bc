#include "frontend/constant_tables.h"

#include <vector>

#include "frontend/branches.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using Readers = llvm::StringMap<std::vector<const onnx::NodeProto*>>;

// How many dimensions have more than one element.
int64_t spannedDims(const onnx::TensorProto& tensor) {
  return llvm::count_if(tensor.dims(), [](int64_t dim) { return dim != 1; });
}

bool isAny(llvm::StringRef op, llvm::ArrayRef<llvm::StringRef> names) {
  return llvm::is_contained(names, op);
}

// Whether each path from a value ends in a sine or cosine, and only moves, repeats or multiplies
// elements before.
bool becomesAngle(llvm::StringRef value, const Readers& readers) {
  std::vector<llvm::StringRef> open{value};
  llvm::StringSet<> seen;
  bool reachesAngle = false;
  while (!open.empty()) {
    llvm::StringRef name = open.back();
    open.pop_back();
    if (!seen.insert(name).second) {
      continue;
    }
    auto found = readers.find(name);
    if (found == readers.end()) {
      return false;  // an output of the graph, or read by nothing
    }
    for (const onnx::NodeProto* node : found->second) {
      if (isAny(node->op_type(), {"Sin", "Cos"})) {
        reachesAngle = true;
      } else if (isAny(node->op_type(),
                       {"Cast", "Concat", "Div", "Einsum", "Expand", "Gather", "Identity", "MatMul",
                        "Mul", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"})) {
        open.insert(open.end(), node->output().begin(), node->output().end());
      } else if (node->op_type() != "Shape") {
        return false;
      }
    }
  }
  return reachesAngle;
}

// Whether all that reads the value multiplies by it.
bool onlyScales(llvm::StringRef value, const Readers& readers) {
  auto found = readers.find(value);
  return found != readers.end() && llvm::all_of(found->second, [](const onnx::NodeProto* node) {
           return node->op_type() == "Mul";
         });
}

}  // namespace

llvm::StringSet<> findConstantTables(const onnx::GraphProto& graph,
                                     llvm::function_ref<bool(llvm::StringRef)> isFolded) {
  Readers readers;
  for (const onnx::NodeProto& node : graph.node()) {
    visitWithBranches(node, [&](const onnx::NodeProto& reader) {
      for (const std::string& input : reader.input()) {
        readers[input].push_back(&reader);
      }
    });
  }
  llvm::StringSet<> tables;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    int64_t spanned = spannedDims(tensor);
    if ((spanned == 1 && becomesAngle(tensor.name(), readers)) ||
        (spanned >= 2 && isFolded(tensor.name()) && onlyScales(tensor.name(), readers))) {
      tables.insert(tensor.name());
    }
  }
  return tables;
}

}  // namespace oriel
