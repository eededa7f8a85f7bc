// Everything that Oriel does with ONNX; the only folder that knows it.
//
//   auto model = ModelFile::open(path);                       // llvm::Expected
//   auto module = importModel(context, *model, {{{"batch", 4}}});   // null on failure
//   pm.addPass(createOrielSpecialize());
//   printSummary(summarize(*module), llvm::outs());
//   model->initializer(parameter.getOnnxName());              // its initial value
//   registerFrontendPasses();                                // for oriel-opt
//   exportModel(path, trained, outPath);                      // the way back
//   composeModels(parts, options, outPath);                   // one model of several files
//   planParts(composed, paths, trained, folder);              // and their way back
#ifndef ORIEL_FRONTEND_FRONTEND_H_
#define ORIEL_FRONTEND_FRONTEND_H_

#include "frontend/compose.h"
#include "frontend/export.h"
#include "frontend/export_parts.h"
#include "frontend/importer.h"
#include "frontend/model_file.h"
#include "frontend/specialize.h"
#include "frontend/summary.h"

#endif  // ORIEL_FRONTEND_FRONTEND_H_
