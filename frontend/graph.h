// The nodes of an ONNX graph: in order, without the dead ones, and open to rewriting.
//
// Rewrites replace whole nodes; the model's own are never changed.
#ifndef ORIEL_FRONTEND_GRAPH_H_
#define ORIEL_FRONTEND_GRAPH_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/model_file.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace oriel {

// Domain of the nodes that rewrites make; their ops are no one else's.
inline constexpr char kOrielDomain[] = "oriel";
// Of ops of ours that a model may have (docs/import.md).
inline constexpr char kPublicDomain[] = "ai.oriel";

class Graph {
 public:
  using Node = onnx::NodeProto;

  // `nodes` are those of `graph`, perhaps with functions inlined; `model` holds the initializers.
  // Both must outlive this. Fails, naming nodes and values, for a value that two nodes produce, one
  // that nothing produces, and a cycle. Sorted nodes keep their order.
  static llvm::Expected<Graph> create(const onnx::GraphProto& graph, const ModelFile& model);

  llvm::ArrayRef<const Node*> nodes() const { return nodes_; }
  // The node that produces a value; null for inputs and initializers.
  const Node* producer(llvm::StringRef value) const;
  // Operand `index` of a node; empty where it is left out.
  static llvm::StringRef operand(const Node& node, int index);
  static bool is(const Node* node, llvm::StringRef op);
  // Null where the node does not give it.
  static const onnx::AttributeProto* attribute(const Node& node, llvm::StringRef name);
  // What a node reads: its operands, and what its branches read from around them.
  static std::vector<llvm::StringRef> reads(const Node& node);

  // The elements of a small integer value that the model writes down: an initializer or a
  // Constant, perhaps reshaped or cast.
  std::optional<std::vector<int64_t>> constantInts(llvm::StringRef value) const;

  // Nothing where the value is no initializer, or one that can't be read.
  std::optional<size_t> rankOfInitializer(llvm::StringRef value) const;

  // A name that nothing has, made from another.
  std::string freshName(llvm::StringRef name) const;
  // Puts a node in front of another; nothing else may have the names of its results.
  void insertBefore(const Node* place, Node node);
  // Puts `node` in the place of `old`; the former's results must be those of the latter.
  void replace(const Node* old, Node node);
  // Drops nodes that no output of the graph needs.
  void removeDeadNodes();

 private:
  explicit Graph(const onnx::GraphProto& graph, const ModelFile& model)
      : graph_(&graph), model_(&model) {}
  llvm::Error findProducers();
  llvm::Error sort();
  const Node* own(Node node);

  const onnx::GraphProto* graph_;
  const ModelFile* model_;
  std::vector<const Node*> nodes_;
  std::vector<std::shared_ptr<const Node>> owned_;
  llvm::StringMap<const Node*> producers_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_GRAPH_H_
