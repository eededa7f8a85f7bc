// The nodes that composing adds to those of the files.
#ifndef ORIEL_FRONTEND_COMPOSE_NODES_H_
#define ORIEL_FRONTEND_COMPOSE_NODES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace oriel {

// A node of one result, after which it is named; of no module.
onnx::NodeProto* addNode(onnx::GraphProto& graph, const char* op,
                         const std::vector<std::string>& operands, const std::string& result);

struct MergedTokens {
  std::string value;  // [batch, tokens]
  int32_t dataType = 0;
  int64_t id = 0;
};

// The value that has rows of `features` in the places of those of `into` at these tokens, in the
// form of PyTorch's `x.masked_scatter(mask, source)`, which masked_scatter.h recognises. `prefix`
// stands in front of all new names.
std::string addMerge(onnx::GraphProto& graph, const std::string& prefix, const MergedTokens& tokens,
                     const std::string& features, const std::string& into);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_COMPOSE_NODES_H_
