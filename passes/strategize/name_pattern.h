// Patterns of parameters' names.
#ifndef ORIEL_PASSES_STRATEGIZE_NAME_PATTERN_H_
#define ORIEL_PASSES_STRATEGIZE_NAME_PATTERN_H_

#include <string>

#include "llvm/ADT/StringRef.h"

namespace oriel {

// Of the parameters like this one in all layers: "layers.0.up.weight" -> "layers.*.up.weight".
std::string inAllLayers(llvm::StringRef name);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_NAME_PATTERN_H_
