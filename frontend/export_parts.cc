#include "frontend/export_parts.h"

#include <set>

#include "frontend/compose.h"
#include "frontend/compose_part.h"
#include "frontend/error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;

// What `composed` says of a part; nothing where it has none of that name.
std::string fingerprintOf(const ModelFile& composed, StringRef part) {
  for (const auto& entry : composed.proto().metadata_props()) {
    if (entry.key() != kPartsKey) continue;
    for (StringRef line : llvm::split(entry.value(), '\n')) {
      auto [name, fingerprint] = line.split('\t');
      if (name == part) return fingerprint.str();
    }
  }
  return "";
}

// Where the value of a part's parameter is.
struct Source {
  std::string name;  // in the composed model
  int64_t rows = 0, columns = 0;
  bool isTransposed = false;
};

llvm::Error readTransposed(const TrainedWeights& weights, const Source& source,
                           llvm::MutableArrayRef<float> values) {
  std::vector<float> original(values.size());
  if (llvm::Error error = weights.read(source.name, original)) {
    return error;
  }
  for (int64_t row = 0; row < source.rows; ++row) {
    for (int64_t column = 0; column < source.columns; ++column) {
      values[column * source.rows + row] = original[row * source.columns + column];
    }
  }
  return llvm::Error::success();
}

llvm::Expected<TrainedWeights> weightsOfPart(const ModelFile& composed, const std::string& part,
                                             const TrainedWeights& whole) {
  auto tied = tiedWeights(composed);
  if (!tied) {
    return tied.takeError();
  }
  std::map<std::string, Source> sources;  // by name in the part
  for (const auto& [name, elements] : whole.elements) {
    if (composed.partOf(name) == part) sources[composed.nameInPart(name).str()] = {name};
  }
  for (const TiedWeight& one : *tied) {
    if (composed.partOf(one.name) != part || whole.elements.count(one.source) == 0) continue;
    auto header = composed.initializerHeader(one.source);
    if (!header) {
      return header.takeError();
    }
    if (header->shape.size() != 2) {
      return makeError("the model \"" + composed.path() + "\" ties \"" + one.name +
                       "\" to what is no matrix: compose it again");
    }
    sources[composed.nameInPart(one.name).str()] = {one.source, header->shape[0], header->shape[1],
                                                    one.isTransposed};
  }
  TrainedWeights weights;
  for (const auto& [name, source] : sources) {
    weights.elements[name] = whole.elements.at(source.name);
    auto untrained = whole.untrained.find(source.name);
    if (untrained != whole.untrained.end()) weights.untrained[name] = untrained->second;
  }
  weights.read = [whole, sources](const std::string& name,
                                  llvm::MutableArrayRef<float> values) -> llvm::Error {
    const Source& source = sources.at(name);
    return source.isTransposed ? readTransposed(whole, source, values)
                               : whole.read(source.name, values);
  };
  return weights;
}

}  // namespace

llvm::Expected<std::vector<PlannedExport>> planParts(const ModelFile& composed,
                                                     llvm::ArrayRef<std::string> parts,
                                                     const TrainedWeights& weights,
                                                     llvm::StringRef folder) {
  std::vector<PlannedExport> planned;
  std::set<std::string> written;
  for (const std::string& path : parts) {
    auto file = ModelFile::open(path);
    if (!file) {
      return file.takeError();
    }
    const std::string name = nameOfPart(*file);
    if (!llvm::is_contained(composed.parts(), name)) {
      return makeError("\"" + path + "\" is no part of " + composed.path() +
                       (composed.parts().empty()
                            ? ", which `oriel compose` has not made"
                            : ", whose parts are " + llvm::join(composed.parts(), ", ")));
    }
    if (fingerprintOf(composed, name) != fingerprint(*file)) {
      return makeError("\"" + path + "\" is not the file that " + composed.path() +
                       " was composed of: its nodes or the shapes of its weights differ");
    }
    auto own = weightsOfPart(composed, name, weights);
    if (!own) {
      return own.takeError();
    }
    llvm::SmallString<256> to(folder);
    llvm::sys::path::append(to, llvm::sys::path::filename(path));
    auto plan = planExport(path, std::move(*own), to);
    if (!plan) {
      return plan.takeError();
    }
    for (const auto& [target, source] : plan->files) {
      if (!written.insert(target).second) {
        return makeError("two parts would write \"" + target +
                         "\": export them one by one, into folders of their own");
      }
    }
    planned.push_back(std::move(*plan));
  }
  return planned;
}

}  // namespace oriel
