#include "frontend/sequences.h"

#include "onnx/onnx_pb.h"

namespace oriel {

void replaceSequences(Graph& graph) {
  for (const Graph::Node* node : graph.nodes().vec()) {
    if (!Graph::is(node, "SequenceAt") || node->input_size() != 2) {
      continue;
    }
    const Graph::Node* split = graph.producer(node->input(0));
    if (!Graph::is(split, "SplitToSequence")) {
      continue;
    }
    Graph::Node part = *node;  // keeps name and metadata
    part.set_domain(kOrielDomain);
    part.set_op_type(kSequencePart);
    *part.mutable_attribute() = split->attribute();
    part.clear_input();
    part.add_input(Graph::operand(*split, 0).str());
    part.add_input(Graph::operand(*split, 1).str());
    part.add_input(node->input(1));
    graph.replace(node, std::move(part));
  }
}

}  // namespace oriel
