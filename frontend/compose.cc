#include "frontend/compose.h"

#include <algorithm>
#include <climits>
#include <map>
#include <set>

#include "frontend/adapters.h"
#include "frontend/compose_nodes.h"
#include "frontend/compose_part.h"
#include "frontend/error.h"
#include "frontend/external_data.h"
#include "frontend/model_text.h"
#include "frontend/weight_copies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;
using llvm::Twine;

// In the model's metadata: a line "NAME SOURCE FORM" for each, separated by tabs.
constexpr char kTiedKey[] = "oriel.tied";
constexpr char kSame[] = "same", kTransposed[] = "transposed";

// "a, b", or "none".
std::string listOf(const std::vector<std::string>& names) {
  return names.empty() ? "none" : llvm::join(names, ", ");
}

// A value that a part gives to others.
struct Output {
  std::string part, name;
  std::string value;  // what others read: its name in the composed model
  onnx::TypeProto type;
  bool isRead = false;

  std::string qualified() const { return part + "." + name; }
};

class Composer {
 public:
  Composer(llvm::ArrayRef<ModelFile> parts, const ComposeOptions& options, StringRef to)
      : parts_(parts), options_(options), to_(to), merges_(options.merges) {}

  llvm::Expected<ComposedModel> run();

 private:
  void addMetadata(const char* key, const std::vector<std::string>& lines);
  llvm::Error nameParts();
  llvm::Error addPart(const ModelFile& model);
  llvm::Error addOpsets(const onnx::ModelProto& proto);
  llvm::Error addFunctions(const onnx::ModelProto& proto);
  llvm::Error addInputs(Part& part);
  llvm::Error addInput(onnx::ValueInfoProto input, Part& part);
  llvm::Error addConstant(const onnx::ValueInfoProto& input,
                          const ComposeOptions::Constant& constant);
  llvm::Error addInitializers(Part& part);
  llvm::Expected<bool> tie(const onnx::TensorProto& tensor, Part& part);
  llvm::Error claim(const std::string& name);
  int32_t tokenType() const;
  llvm::Error checkMerge(const ComposeOptions::Merge& merge, const Output& features,
                         const Output& into) const;
  llvm::Error mergeWhatIsThere();
  void merge(const ComposeOptions::Merge& merge, Output& features, Output& into);
  llvm::Error addOutputs();
  llvm::Error checkOptions() const;
  llvm::Expected<Output*> find(const std::string& name);
  const std::string* connectionOf(const std::string& input, const Part& part);
  std::vector<std::string> outputNames() const;
  std::vector<std::string> inputNames() const;

  llvm::ArrayRef<ModelFile> parts_;
  const ComposeOptions& options_;
  StringRef to_;
  std::unique_ptr<onnx::ModelProto> model_ = std::make_unique<onnx::ModelProto>();
  onnx::GraphProto& graph_ = *model_->mutable_graph();
  std::vector<Output> outputs_;
  std::vector<ComposeOptions::Merge> merges_;  // those that are not done yet
  // Inputs and dimensions of options that were found.
  std::set<std::string> connected_, constants_, renamed_;
  std::set<std::string> names_;  // of the graph's values
  struct Matrix {
    const onnx::TensorProto* tensor;
    const ModelFile* model;
    std::string newName;
  };
  std::vector<Matrix> matrices_;   // that another part may have again
  std::vector<std::string> tied_;  // lines of kTiedKey
  std::vector<std::string> notes_;
};

std::vector<std::string> Composer::outputNames() const {
  std::vector<std::string> names;
  for (const Output& output : outputs_) names.push_back(output.qualified());
  return names;
}

std::vector<std::string> Composer::inputNames() const {
  std::vector<std::string> names;
  for (const auto& input : graph_.input()) names.push_back(input.name());
  return names;
}

// Null if there is none.
llvm::Expected<Output*> Composer::find(const std::string& name) {
  Output* found = nullptr;
  for (Output& output : outputs_) {
    if (output.name != name && output.qualified() != name) continue;
    if (found) {
      return makeError("\"" + name + "\" is an output of \"" + found->part + "\" and of \"" +
                       output.part + "\": say which with " + found->qualified() + " or " +
                       output.qualified() + " (--connect OUTPUT=INPUT)");
    }
    found = &output;
  }
  return found;
}

// The output that an option says this input is; null if none does.
const std::string* Composer::connectionOf(const std::string& input, const Part& part) {
  for (const auto& connection : options_.connections) {
    if (connection.input == input || connection.input == part.name + "." + input) {
      connected_.insert(connection.input);
      return &connection.output;
    }
  }
  return nullptr;
}

// Names that files have may meet those that are made of them.
llvm::Error Composer::claim(const std::string& name) {
  return names_.insert(name).second ? llvm::Error::success()
                                    : makeError("two values would be named \"" + name +
                                                "\": rename one in its file, or the file");
}

void Composer::addMetadata(const char* key, const std::vector<std::string>& lines) {
  auto* entry = model_->add_metadata_props();
  entry->set_key(key);
  entry->set_value(llvm::join(lines, "\n"));
}

llvm::Error Composer::nameParts() {
  std::vector<std::string> names, lines;
  for (const ModelFile& part : parts_) {
    const std::string name = nameOfPart(part);
    if (!part.parts().empty()) {
      return makeError("\"" + part.path() +
                       "\" is composed already: give the files that it was made of");
    }
    for (const std::string& other : names) {
      const std::string a = name + ".", b = other + ".";
      if (StringRef(a).starts_with(b) || StringRef(b).starts_with(a)) {
        return makeError("files named \"" + other + "\" and \"" + name +
                         "\", after which their parameters are called, can't be told apart: "
                         "rename one");
      }
    }
    names.push_back(name);
    lines.push_back(name + "\t" + fingerprint(part));
  }
  addMetadata(kPartsKey, lines);
  return llvm::Error::success();
}

llvm::Error Composer::addOpsets(const onnx::ModelProto& proto) {
  // Before 4, initializers had to be inputs.
  constexpr int64_t kLeast = 4;
  model_->set_ir_version(std::max({model_->ir_version(), proto.ir_version(), kLeast}));
  for (const auto& import : proto.opset_import()) {
    auto known = llvm::find_if(model_->opset_import(), [&](const auto& other) {
      return other.domain() == import.domain();
    });
    if (known == model_->opset_import().end()) {
      *model_->add_opset_import() = import;
    } else if (known->version() != import.version()) {
      return makeError("it has version " + Twine(import.version()) + " of the operator set \"" +
                       (import.domain().empty() ? "ai.onnx" : import.domain()) +
                       "\", an earlier part version " + Twine(known->version()) +
                       ": export it for that, or convert it with onnx.version_converter");
    }
  }
  return llvm::Error::success();
}

llvm::Error Composer::addFunctions(const onnx::ModelProto& proto) {
  for (const auto& function : proto.functions()) {
    auto known = llvm::find_if(model_->functions(), [&](const auto& other) {
      return other.domain() == function.domain() && other.name() == function.name() &&
             other.overload() == function.overload();
    });
    if (known == model_->functions().end()) {
      *model_->add_functions() = function;
    } else if (known->SerializeAsString() != function.SerializeAsString()) {
      return makeError("it has another function \"" + function.name() +
                       "\" than an earlier part: save it with its functions inlined "
                       "(onnx.inliner.inline_local_functions)");
    }
  }
  return llvm::Error::success();
}

// In place of an input.
llvm::Error Composer::addConstant(const onnx::ValueInfoProto& input,
                                  const ComposeOptions::Constant& constant) {
  const std::string& value = constant.value;
  if (!constants_.insert(constant.input).second) {
    return llvm::Error::success();  // an earlier part has it, too
  }
  if (llvm::Error error = claim(constant.input)) return error;
  auto tensor = constantFor(input, value);
  if (!tensor) {
    return makeError("can't set its input \"" + input.name() + "\" to \"" + value +
                     "\": " + llvm::toString(tensor.takeError()));
  }
  tensor->set_name(constant.input);
  *graph_.add_initializer() = std::move(*tensor);
  return llvm::Error::success();
}

llvm::Error Composer::addInput(onnx::ValueInfoProto input, Part& part) {
  for (const auto& constant : options_.constants) {
    if (constant.input == input.name() || constant.input == part.name + "." + input.name()) {
      part.values[input.name()] = constant.input;
      return addConstant(input, constant);
    }
  }
  part.renameDimensions(*input.mutable_type(), options_.dimensions, renamed_);
  const std::string* connection = connectionOf(input.name(), part);
  auto output = find(connection ? *connection : input.name());
  if (!output) {
    return output.takeError();
  }
  if (connection && !*output) {
    return makeError("no part before it has the output \"" + *connection + "\", for its input \"" +
                     input.name() + "\"; they have " + listOf(outputNames()));
  }
  if (*output) {
    const int32_t given = (*output)->type.tensor_type().elem_type();
    const int32_t wanted = input.type().tensor_type().elem_type();
    if (given != wanted && given != onnx::TensorProto::UNDEFINED) {
      return makeError("its input \"" + input.name() + "\" is " + dataTypeName(wanted) + ", but " +
                       (*output)->qualified() + " is " + dataTypeName(given) +
                       ": take files of the same precision");
    }
    (*output)->isRead = true;
    part.values[input.name()] = (*output)->value;
    notes_.push_back((*output)->qualified() + " -> " + part.name + "." + input.name());
    return llvm::Error::success();
  }
  part.values[input.name()] = input.name();
  auto same = llvm::find_if(graph_.input(),
                            [&](const auto& other) { return other.name() == input.name(); });
  if (same == graph_.input().end()) {
    if (llvm::Error error = claim(input.name())) return error;
    *graph_.add_input() = std::move(input);
    return llvm::Error::success();
  }
  if (same->type().SerializeAsString() == input.type().SerializeAsString()) {
    notes_.push_back(input.name() + ": one input for \"" + part.name + "\" and an earlier part");
    return llvm::Error::success();
  }
  return makeError("its input \"" + input.name() +
                   "\" has another type or shape than that of an earlier part: rename it in the "
                   "file, or give dimensions the same names (--dim)");
}

llvm::Error Composer::addInputs(Part& part) {
  for (const auto& input : part.model->graph().input()) {
    if (part.model->hasInitializer(input.name())) continue;
    if (llvm::Error error = addInput(input, part)) {
      return error;
    }
  }
  return llvm::Error::success();
}

bool isTrainedMatrix(const onnx::TensorProto& tensor, const ModelFile& model) {
  return tensor.dims_size() == 2 && !model.isMissing(tensor.name()) &&
         model.role(tensor.name()) == InitializerRole::kParameter;
}

// Whether another part has this matrix, or the same one transposed: then it is read there.
llvm::Expected<bool> Composer::tie(const onnx::TensorProto& tensor, Part& part) {
  const std::string& name = tensor.name();
  if (!isTrainedMatrix(tensor, *part.model)) {
    return false;
  }
  const std::multiset<int64_t> sizes(tensor.dims().begin(), tensor.dims().end());
  for (const Matrix& matrix : matrices_) {
    const auto& dims = matrix.tensor->dims();
    if (sizes != std::multiset<int64_t>(dims.begin(), dims.end())) continue;
    auto own = part.model->initializer(name),
         other = matrix.model->initializer(matrix.tensor->name());
    if (!own || !other) {
      return llvm::joinErrors(own.takeError(), other.takeError());
    }
    const WeightCopy copy = findCopy(*own, *other);
    const bool isOwn = matrix.model == part.model;
    if (copy == WeightCopy::kNone || (isOwn && copy == WeightCopy::kSame)) continue;
    const bool isTransposed = copy == WeightCopy::kTransposed;
    tied_.push_back(part.name + "." + name + "\t" + matrix.newName + "\t" +
                    (isTransposed ? kTransposed : kSame));
    notes_.push_back(part.name + "." + name + " is " + matrix.newName +
                     (isTransposed ? ", transposed" : "") + ": tied (--no-tie trains them apart)");
    part.values[name] = matrix.newName;
    if (isTransposed) {
      part.values[name] = part.name + "/" + name;
      addNode(graph_, "Transpose", {matrix.newName}, part.values[name]);
    }
    return true;
  }
  return false;
}

llvm::Error Composer::addInitializers(Part& part) {
  for (const onnx::TensorProto& tensor : part.model->graph().initializer()) {
    if (options_.tie) {
      auto tied = tie(tensor, part);
      if (!tied) {
        return tied.takeError();
      }
      if (*tied) continue;
    }
    onnx::TensorProto& added = *graph_.add_initializer();
    added = tensor;
    added.set_name(part.name + "." + tensor.name());
    part.values[tensor.name()] = added.name();
    if (llvm::Error error = claim(added.name())) return error;
    if (llvm::Error error = relocateData(added, part.model->folder(), to_)) return error;
    if (isTrainedMatrix(tensor, *part.model)) {
      matrices_.push_back({&tensor, part.model, added.name()});
    }
  }
  return llvm::Error::success();
}

void Composer::merge(const ComposeOptions::Merge& merge, Output& features, Output& into) {
  const std::string id = std::to_string(merge.id);
  into.value = addMerge(graph_, "merge/" + features.qualified() + "/" + id + "/",
                        {options_.tokens, tokenType(), merge.id}, features.value, into.value);
  features.isRead = true;
  notes_.push_back(features.qualified() + " -> " + into.qualified() + ", where " + options_.tokens +
                   " is " + id);
}

int32_t Composer::tokenType() const {
  for (const auto& input : graph_.input()) {
    if (input.name() == options_.tokens) return input.type().tensor_type().elem_type();
  }
  return onnx::TensorProto::UNDEFINED;
}

llvm::Error Composer::checkMerge(const ComposeOptions::Merge& merge, const Output& features,
                                 const Output& into) const {
  auto fail = [&](const Twine& why) {
    return makeError("can't merge \"" + merge.features + "\" into \"" + into.name + "\": " + why);
  };
  const int32_t token = tokenType();
  if (!llvm::is_contained(inputNames(), options_.tokens)) {
    return fail("no part has the input \"" + Twine(options_.tokens) +
                "\", whose tokens say where features go: name it with --tokens; there are " +
                listOf(inputNames()));
  }
  if (token != onnx::TensorProto::INT64 && token != onnx::TensorProto::INT32) {
    return fail("\"" + Twine(options_.tokens) + "\" is " + dataTypeName(token) +
                ", expected int32 or int64");
  }
  const onnx::TypeProto::Tensor& from = features.type.tensor_type();
  const onnx::TypeProto::Tensor& to = into.type.tensor_type();
  if (from.elem_type() != to.elem_type()) {
    return fail("one is " + Twine(dataTypeName(from.elem_type())) + ", the other " +
                dataTypeName(to.elem_type()) + ": take files of the same precision");
  }
  auto width = [](const onnx::TypeProto::Tensor& type) -> int64_t {
    const auto& dims = type.shape().dim();
    return dims.empty() ? 0 : dims.rbegin()->dim_value();
  };
  if (width(from) != 0 && width(to) != 0 && width(from) != width(to)) {
    return fail("rows have " + Twine(width(from)) + " elements, the others " + Twine(width(to)));
  }
  return llvm::Error::success();
}

llvm::Error Composer::mergeWhatIsThere() {
  std::vector<ComposeOptions::Merge> left;
  for (const auto& one : merges_) {
    auto features = find(one.features), into = find(options_.into);
    if (!features || !into) {
      return llvm::joinErrors(features.takeError(), into.takeError());
    }
    if (!*features || !*into) {
      left.push_back(one);
      continue;
    }
    if ((*into)->isRead) {
      return makeError("\"" + (*into)->name + "\" is read before \"" + one.features +
                       "\" is there: give the file that has it earlier");
    }
    if (llvm::Error error = checkMerge(one, **features, **into)) return error;
    merge(one, **features, **into);
  }
  merges_ = std::move(left);
  return llvm::Error::success();
}

llvm::Error Composer::addPart(const ModelFile& model) {
  Part part{&model, nameOfPart(model), {}};
  if (llvm::Error error = addOpsets(model.proto())) return error;
  if (llvm::Error error = addFunctions(model.proto())) return error;
  if (llvm::Error error = mergeWhatIsThere()) return error;
  if (llvm::Error error = addInputs(part)) return error;
  if (llvm::Error error = addInitializers(part)) return error;
  for (const auto& node : model.graph().node()) {
    onnx::NodeProto& added = *graph_.add_node();
    added = node;
    part.rename(added);
    if (llvm::Error error = relocateBranches(added, part.model->folder(), to_)) return error;
    for (const std::string& result : added.output()) {
      if (llvm::Error error = result.empty() ? llvm::Error::success() : claim(result)) return error;
    }
  }
  for (const auto& info : model.graph().value_info()) {
    onnx::ValueInfoProto& added = *graph_.add_value_info();
    added = info;
    added.set_name(part.newName(info.name()));
    part.renameDimensions(*added.mutable_type(), options_.dimensions, renamed_);
  }
  for (const auto& output : model.graph().output()) {
    outputs_.push_back({part.name, output.name(), part.newName(output.name()), output.type()});
    part.renameDimensions(outputs_.back().type, options_.dimensions, renamed_);
  }
  return llvm::Error::success();
}

// What no part reads, under its old name.
llvm::Error Composer::addOutputs() {
  std::set<std::string> idle;  // parts of which nothing is read
  for (const Output& output : outputs_) idle.insert(output.part);
  for (const Output& output : outputs_) {
    if (output.isRead) idle.erase(output.part);
  }
  idle.erase(outputs_.back().part);
  if (!idle.empty()) {
    std::vector<std::string> own;
    for (const Output& output : outputs_) {
      if (output.part == *idle.begin()) own.push_back(output.name);
    }
    return makeError("no part reads an output of \"" + *idle.begin() + "\" (" + listOf(own) +
                     "): give files in the order in which they run, connect an output and an "
                     "input of another name (--connect OUTPUT=INPUT), or merge features into "
                     "tokens (--merge OUTPUT=TOKEN_ID); inputs that are left: " +
                     listOf(inputNames()));
  }
  for (const Output& output : outputs_) {
    if (output.isRead) continue;
    const bool isNew = names_.count(output.name) == 0;
    onnx::ValueInfoProto& added = *graph_.add_output();
    added.set_name(isNew ? output.name : output.qualified());
    *added.mutable_type() = output.type;
    if (llvm::Error error = claim(added.name())) return error;
    addNode(graph_, "Identity", {output.value}, added.name());
  }
  return llvm::Error::success();
}

llvm::Error Composer::checkOptions() const {
  if (!merges_.empty()) {
    auto isThere = [&](const std::string& name) {
      return llvm::any_of(outputs_, [&](const Output& output) {
        return output.name == name || output.qualified() == name;
      });
    };
    const std::string& features = merges_.front().features;
    if (isThere(features) && isThere(options_.into)) {
      return makeError("\"" + features + "\" is made when \"" + options_.into +
                       "\" has been read: give its file earlier");
    }
    return makeError(
        "no part has the output \"" + (isThere(options_.into) ? features : options_.into) + "\"" +
        (isThere(options_.into) ? "" : " (--into names what features are merged into)") +
        "; they have " + listOf(outputNames()));
  }
  for (const auto& connection : options_.connections) {
    if (connected_.count(connection.input) == 0) {
      return makeError("no part has the input \"" + connection.input + "\", which is to be \"" +
                       connection.output + "\"");
    }
  }
  for (const auto& constant : options_.constants) {
    if (constants_.count(constant.input) == 0) {
      return makeError("no part has the input \"" + constant.input + "\", which is to be " +
                       constant.value + "; there are " + listOf(inputNames()));
    }
  }
  for (const auto& dimension : options_.dimensions) {
    if (renamed_.count(dimension.from) == 0) {
      return makeError("no part has the dimension \"" + dimension.from +
                       "\": write PART.DIMENSION, such as " + nameOfPart(parts_.front()) +
                       ".batch_size");
    }
  }
  return llvm::Error::success();
}

llvm::Expected<ComposedModel> Composer::run() {
  if (isModelText(to_)) {
    return makeError("can't write \"" + to_ + "\": a composed model is binary; name it .onnx");
  }
  std::set<std::string> asked;
  auto askedTwice = [&](const std::string& input) { return !asked.insert(input).second; };
  for (const auto& one : options_.merges) {
    if (askedTwice(one.features + "=" + std::to_string(one.id))) {
      return makeError("\"" + one.features + "\" is merged twice into the tokens " +
                       std::to_string(one.id));
    }
  }
  for (const auto& one : options_.connections) {
    if (askedTwice(one.input)) return makeError("the input \"" + one.input + "\" is given twice");
  }
  for (const auto& one : options_.constants) {
    if (askedTwice(one.input)) return makeError("the input \"" + one.input + "\" is given twice");
  }
  if (llvm::Error error = nameParts()) return error;
  graph_.set_name("composed");
  // Which tells what names of values mean.
  const std::string& producer = parts_.front().proto().producer_name();
  if (llvm::all_of(parts_, [&](const ModelFile& part) {
        return part.proto().producer_name() == producer;
      })) {
    model_->set_producer_name(producer);
  }
  for (const ModelFile& part : parts_) {
    auto adapters = adaptersOf(part);
    if (!adapters) return adapters.takeError();
    if (!adapters->all.empty()) {
      return makeError("\"" + part.path() +
                       "\" has adapters: compose the file that it was made of, \"" +
                       adapters->base + "\", and add them to the composed model (oriel adapt)");
    }
    if (llvm::Error error = addPart(part)) {
      return makeError("can't compose \"" + part.path() +
                       "\": " + llvm::toString(std::move(error)));
    }
  }
  if (llvm::Error error = checkOptions()) return error;
  if (llvm::Error error = addOutputs()) return error;
  if (!tied_.empty()) addMetadata(kTiedKey, tied_);
  if (model_->ByteSizeLong() > static_cast<size_t>(INT_MAX)) {
    return makeError(
        "the composed model has more than 2 GiB, where protobuf ends: save the parts "
        "with external data (onnx.save_model(.., save_as_external_data=True))");
  }
  ComposedModel composed{model_->SerializeAsString(), std::move(notes_), inputNames(), {}, {}};
  for (const ModelFile& part : parts_) {
    llvm::append_range(composed.dataFiles, part.dataFiles());
  }
  for (const auto& output : graph_.output()) composed.outputs.push_back(output.name());
  return composed;
}

}  // namespace

llvm::Expected<std::vector<TiedWeight>> tiedWeights(const ModelFile& composed) {
  std::vector<TiedWeight> tied;
  for (const auto& entry : composed.proto().metadata_props()) {
    if (entry.key() != kTiedKey) continue;
    for (StringRef line : llvm::split(entry.value(), '\n')) {
      llvm::SmallVector<StringRef> words;
      line.split(words, '\t');
      if (words.size() != 3 || (words[2] != kSame && words[2] != kTransposed)) {
        return makeError("the model \"" + composed.path() + "\" has metadata \"" + kTiedKey +
                         "\" that `oriel compose` does not write: compose it again");
      }
      tied.push_back({words[0].str(), words[1].str(), words[2] == kTransposed});
    }
  }
  return tied;
}

llvm::Expected<ComposedModel> composeModels(llvm::ArrayRef<ModelFile> parts,
                                            const ComposeOptions& options, llvm::StringRef to) {
  return Composer(parts, options, to).run();
}

}  // namespace oriel
