// Trained adapters (adapters.h), as weights of the model that was adapted.
#ifndef ORIEL_FRONTEND_MERGE_ADAPTERS_H_
#define ORIEL_FRONTEND_MERGE_ADAPTERS_H_

#include <string>

#include "frontend/adapters.h"
#include "frontend/export.h"
#include "frontend/model_file.h"

namespace oriel {

// `weights`, which have the names of the adapted model, with the names of `base`: W + scale B A in
// the place of each adapted weight W, computed in f32. An adapter that the plan leaves out, since
// the loss does not depend on it, adds nothing. `base` and `weights` must outlive what is returned.
//
// Errors: a base that is not the file that was adapted, but for its weights; an adapter beside a
// weight that something else reads, too; weights of other sizes.
llvm::Expected<TrainedWeights> mergeAdapters(const Adapters& adapters, const ModelFile& base,
                                             const TrainedWeights& weights);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MERGE_ADAPTERS_H_
