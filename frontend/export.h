// The way back: the model that was imported, with trained weights.
#ifndef ORIEL_FRONTEND_EXPORT_H_
#define ORIEL_FRONTEND_EXPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/model_file.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace oriel {

// Trained parameters, which may be more than memory holds: read one by one.
struct TrainedWeights {
  std::map<std::string, int64_t> elements;  // how many of each, by initializer name
  // Fills in the row-major values of one of them.
  std::function<llvm::Error(const std::string& name, llvm::MutableArrayRef<float> values)> read;
  // Of those that the last plan did not train: what it makes of a value of the file. Where the
  // values to be read are that, the file keeps its own, which may be of a higher precision.
  std::map<std::string, float (*)(float)> untrained;
};

// The file's own values of an initializer, if `values`, which a checkpoint has for it, are only
// what the last plan made of them.
llvm::Expected<std::optional<std::vector<float>>> ownValuesIfKept(const ModelFile& model,
                                                                  const TrainedWeights& weights,
                                                                  const std::string& name,
                                                                  llvm::ArrayRef<float> values);

// Writes the ONNX file `from` to `to` with these values in place of the old ones. Every other byte
// stays what it was, also the element types: values are rounded to the nearest where an
// initializer is narrower than f32. External data goes to the same relative location beside `to`,
// which must then be another folder; a file of external data that does not exist is made, if all
// that lies in it is among the weights. Each file appears whole or not at all.
//
// Errors: a name that the model does not have, a wrong number of elements, an initializer stored
// in a form that can't be replaced in place (typed fields other than packed floats), and what the
// file system says.
llvm::Error exportModel(llvm::StringRef from, const TrainedWeights& weights, llvm::StringRef to);

// The same in two steps: what can be wrong with the model and the weights is found before anything
// is written.
struct PlannedExport {
  // A file to be made, and the one that it replaces the bytes of; empty: none.
  using File = std::pair<std::string, std::string>;
  std::vector<File> files;
  std::function<llvm::Error()> write;
};
llvm::Expected<PlannedExport> planExport(llvm::StringRef from, TrainedWeights weights,
                                         llvm::StringRef to);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_EXPORT_H_
