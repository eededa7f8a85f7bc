// The way back for a model of several files: each with its trained weights.
#ifndef ORIEL_FRONTEND_EXPORT_PARTS_H_
#define ORIEL_FRONTEND_EXPORT_PARTS_H_

#include <string>
#include <vector>

#include "frontend/export.h"
#include "frontend/model_file.h"

namespace oriel {

// Plans to write each of `parts`, files that `composed` was made of (compose.h), into `folder`
// under its own name, with `weights`, which have the names of the composed model. A matrix that was
// tied gets the values that it was tied to.
//
// Errors: those of exportModel(); a file that is not the one that was composed, but for its
// weights; and two parts that would write the same file.
llvm::Expected<std::vector<PlannedExport>> planParts(const ModelFile& composed,
                                                     llvm::ArrayRef<std::string> parts,
                                                     const TrainedWeights& weights,
                                                     llvm::StringRef folder);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_EXPORT_PARTS_H_
