// Nodes of a graph together with those of their branches.
#ifndef ORIEL_FRONTEND_BRANCHES_H_
#define ORIEL_FRONTEND_BRANCHES_H_

#include "onnx/onnx_pb.h"

namespace oriel {

// Calls `visit` with the node, then with each node of its branches (the graphs that an `If`, `Loop`
// or `Scan` has as attributes), and of theirs.
template <typename Visit>
void visitWithBranches(const onnx::NodeProto& node, Visit visit) {
  visit(node);
  for (const auto& attribute : node.attribute()) {
    if (!attribute.has_g()) {
      continue;
    }
    for (const auto& inner : attribute.g().node()) {
      visitWithBranches<Visit>(inner, visit);
    }
  }
}

}  // namespace oriel

#endif  // ORIEL_FRONTEND_BRANCHES_H_
