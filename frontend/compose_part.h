// A file that becomes a part of a composed model: its names and dimensions.
#ifndef ORIEL_FRONTEND_COMPOSE_PART_H_
#define ORIEL_FRONTEND_COMPOSE_PART_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/compose.h"
#include "frontend/model_file.h"

namespace onnx {
class GraphProto;
class NodeProto;
class TensorProto;
class TypeProto;
class ValueInfoProto;
}  // namespace onnx

namespace oriel {

// The file's name without its ending.
std::string nameOfPart(const ModelFile& model);

// Of nodes, and of names, types and shapes of initializers, as 16 hexadecimal digits: whether a
// file is the one that was composed, with whatever weights.
std::string fingerprint(const ModelFile& model);

// An initializer of one element in place of an input: "true", "-1", "0.5". An error says why not.
llvm::Expected<onnx::TensorProto> constantFor(const onnx::ValueInfoProto& input,
                                              const std::string& value);

struct Part {
  const ModelFile* model;
  std::string name;
  std::map<std::string, std::string> values;  // that are not named after the part

  std::string newName(const std::string& old) const;
  void rename(onnx::NodeProto& node) const;
  void rename(onnx::GraphProto& branch) const;
  // `found` gets the names of those that the type has.
  void renameDimensions(onnx::TypeProto& type,
                        const std::vector<ComposeOptions::Dimension>& dimensions,
                        std::set<std::string>& found) const;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_COMPOSE_PART_H_
