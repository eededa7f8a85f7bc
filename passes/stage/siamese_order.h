// An order of a graph's ops in which Siamese branches go side by side.
//
// A model may run the same layers on several inputs: a preferred answer and a rejected one, a query
// and a document, the images of several cameras (Siamese networks, Bromley et al. 1993). Branch
// behind branch, a stage of a pipeline would have all layers of some branches, and every stage all
// parameters. Side by side, layer 1 of all branches is one block.
#ifndef ORIEL_PASSES_STAGE_SIAMESE_ORDER_H_
#define ORIEL_PASSES_STAGE_SIAMESE_ORDER_H_

#include <vector>

namespace oriel {

struct BranchOp {
  std::vector<int> operands;  // the ops whose results it reads, all before it
  // What it does, on which parameters: equal for ops that differ in what comes from inputs alone.
  int kind = 0;
  bool hasWeight = false;  // of a product, a layer's say
};

// `order`: all ops, operands first. Returns it with what other branches compute right behind what
// the first one does. Unchanged where branches have less than two weights one behind the other in
// common, as an encoder and a decoder have an embedding.
std::vector<int> siameseOrder(const std::vector<BranchOp>& ops, const std::vector<int>& order);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_SIAMESE_ORDER_H_
