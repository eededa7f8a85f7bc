// The way back: the model that was imported, with trained weights.
#ifndef ORIEL_FRONTEND_EXPORT_H_
#define ORIEL_FRONTEND_EXPORT_H_

#include <map>
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace oriel {

// Row-major values by initializer name; the number of elements must be the initializer's.
using TrainedWeights = std::map<std::string, llvm::ArrayRef<float>>;

// Writes the ONNX file `from` to `to` with these values in place of the old ones. Every other byte
// stays what it was, also the element types: values are rounded to the nearest where an
// initializer is narrower than f32. External data goes to the same relative location beside `to`,
// which must then be another folder. Each file appears whole or not at all.
//
// Errors: a name that the model does not have, a wrong number of elements, an initializer stored
// in a form that can't be replaced in place (typed fields other than packed floats), and what the
// file system says.
llvm::Error exportModel(llvm::StringRef from, const TrainedWeights& weights, llvm::StringRef to);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_EXPORT_H_
