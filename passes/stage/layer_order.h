// An order of a graph's ops in which equal layers are equal sequences.
#ifndef ORIEL_PASSES_STAGE_LAYER_ORDER_H_
#define ORIEL_PASSES_STAGE_LAYER_ORDER_H_

#include <vector>

namespace oriel {

// `operands[i]`: the ops whose results op i reads, in the order in which it reads them, all below
// i. Returns the ops in an order that again has operands first, and that depends on nothing else
// than how they read each other:
// - what an op reads comes depth first, the longest chain first. So an encoder comes as a whole
//   before the decoder, though only the attention inside of its first layer asks for it;
// - a chain that hangs on values that are read again later comes right in front of what reads its
// end.
//   So each layer has its own keys of the encoder's output, the first one too.
std::vector<int> layerOrder(const std::vector<std::vector<int>>& operands);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_LAYER_ORDER_H_
