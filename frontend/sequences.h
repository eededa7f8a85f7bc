// Turns the pieces of a split tensor, which exporters write as an ONNX sequence, into tensors.
//
//   s = SplitToSequence(x, sizes)      # torch.split, chunk, unbind
//   y = SequenceAt(s, i)               # becomes `SequenceAt of SplitToSequence`(x, sizes, i)
#ifndef ORIEL_FRONTEND_SEQUENCES_H_
#define ORIEL_FRONTEND_SEQUENCES_H_

#include "frontend/graph.h"

namespace oriel {

// Op, in kOrielDomain, of the node that stands for one piece; attributes as SplitToSequence.
inline constexpr char kSequencePart[] = "SequenceAt of SplitToSequence";

void replaceSequences(Graph& graph);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_SEQUENCES_H_
