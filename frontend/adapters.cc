#include "frontend/adapters.h"

#include <climits>
#include <cmath>
#include <filesystem>

#include "frontend/branches.h"
#include "frontend/compose_part.h"
#include "frontend/error.h"
#include "frontend/external_data.h"
#include "frontend/node_location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;
using llvm::Twine;

// In the model's metadata: a line "BASE FINGERPRINT RANK ALPHA", then a line "WEIGHT MODULE A B
// FORM USE" for each adapter; words are separated by tabs.
constexpr char kAdaptersKey[] = "oriel.adapters";
constexpr char kOutputFirst[] = "output-first", kInputFirst[] = "input-first";
constexpr char kShared[] = "shared", kOwn[] = "own";

// So that it reads as the same number.
std::string exactly(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", number);
  return text;
}

class Adapting {
 public:
  Adapting(const ModelFile& base, const AdapterOptions& options, StringRef to)
      : base_(base), options_(options), to_(to), matrices_(base), model_(base.proto()) {}

  llvm::Expected<AdaptedModel> run(llvm::ArrayRef<LinearLayer> layers);

 private:
  struct Pair {
    const LinearLayer* layer;
    std::string a, b;      // the parameters
    int32_t dataType = 0;  // theirs: that of the first product; 0 until they are there
  };
  llvm::Error claim(const std::string& name);
  std::string unique(const std::string& name);
  std::string factor(const std::string& parameter, int32_t from, int32_t to);
  llvm::Error addParameter(const LinearLayer& layer, const std::string& name,
                           llvm::ArrayRef<int64_t> shape, float bound, int32_t dataType);
  llvm::Error addPair(Pair& pair, int32_t dataType);
  std::string scale();
  llvm::Error adapt(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  llvm::Error addProducts(onnx::NodeProto& node, const Matrix& factor,
                          google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

  const ModelFile& base_;
  const AdapterOptions& options_;
  StringRef to_;
  ParameterMatrices matrices_;
  onnx::ModelProto model_;
  llvm::StringMap<Pair> pairs_;  // by weight
  llvm::StringSet<> names_;
  std::vector<onnx::NodeProto> factors_;  // what makes values of parameters that multiply
  llvm::StringMap<std::string> made_;  // values that adapters share, by what they were to be called
  int64_t parameters_ = 0;
};

llvm::Error Adapting::claim(const std::string& name) {
  return names_.insert(name).second ? llvm::Error::success()
                                    : makeError("the model has a value \"" + name +
                                                "\" already, as the adapter would be called");
}

// Branches may use the same names for other values, which then have the same beside them.
std::string Adapting::unique(const std::string& name) {
  std::string free = name;
  for (int number = 2; !names_.insert(free).second; ++number) {
    free = name + "/" + std::to_string(number);
  }
  return free;
}

void setType(onnx::NodeProto& cast, int32_t dataType) {
  onnx::AttributeProto& type = *cast.add_attribute();
  type.set_name("to");
  type.set_type(onnx::AttributeProto::INT);
  type.set_i(dataType);
}

// A parameter of one type, transposed, in another one.
std::string Adapting::factor(const std::string& parameter, int32_t from, int32_t to) {
  auto add = [&](const char* op, const std::string& operand, const std::string& result) {
    onnx::NodeProto& node = factors_.emplace_back();
    node.set_op_type(op);
    node.set_name(result);
    node.add_input(operand);
    node.add_output(result);
    return &node;
  };
  std::string& transposed = made_[parameter + "/transposed"];
  if (transposed.empty()) {
    transposed = unique(parameter + "/transposed");
    add("Transpose", parameter, transposed);
  }
  if (from == to) return transposed;
  const std::string wanted = parameter + "/" + dataTypeName(to);
  std::string& converted = made_[wanted];
  if (converted.empty()) {
    converted = unique(wanted);
    setType(*add("Cast", transposed, converted), to);
  }
  return converted;
}

llvm::Error Adapting::addParameter(const LinearLayer& layer, const std::string& name,
                                   llvm::ArrayRef<int64_t> shape, float bound, int32_t dataType) {
  if (llvm::Error error = claim(name)) return error;
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(dataType);
  for (int64_t dim : shape) tensor.add_dims(dim);
  std::vector<float> values(shape[0] * shape[1], 0.0F);
  parameters_ += static_cast<int64_t>(values.size());
  options_.fill(layer, name, bound, values);
  std::vector<char> storage;
  auto bytes = encodeFloats(values, dataType, storage);
  if (!bytes) {
    return makeError("the layer of \"" + name + "\" multiplies " + dataTypeName(dataType) +
                     "; adapters are floats");
  }
  tensor.set_raw_data(bytes->data(), bytes->size());
  return llvm::Error::success();
}

llvm::Error Adapting::addPair(Pair& pair, int32_t dataType) {
  const LinearLayer& layer = *pair.layer;
  // The bound is that of PEFT: Kaiming's uniform one with a = √5.
  const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(layer.inputs)));
  const int64_t rank = options_.rank;
  if (llvm::Error error = addParameter(layer, pair.a, {rank, layer.inputs}, bound, dataType)) {
    return error;
  }
  if (llvm::Error error = addParameter(layer, pair.b, {layer.outputs, rank}, 0, dataType)) {
    return error;
  }
  // Where the exporter says what tensors are, these are parameters.
  if (base_.describesPartOf(layer.weight)) {
    auto& initializers = *model_.mutable_graph()->mutable_initializer();
    for (int i = initializers.size() - 2; i < initializers.size(); ++i) {
      auto* entry = initializers[i].add_metadata_props();
      entry->set_key(kSignatureKindKey);
      entry->set_value(kParameterKind);
    }
  }
  pair.dataType = dataType;
  return llvm::Error::success();
}

// A constant of one element, in f32: rounded to 16 bits it would be another scale than the one that
// products are merged by.
std::string Adapting::scale() {
  std::string& name = made_["lora_scale"];
  if (!name.empty()) return name;
  name = unique("adapters/lora_scale");  // no name of a PyTorch module's
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  const auto value = static_cast<float>(options_.alpha / static_cast<double>(options_.rank));
  tensor.set_raw_data(&value, sizeof(value));
  return name;
}

// Behind `node`, which is in `nodes` already.
llvm::Error Adapting::addProducts(onnx::NodeProto& node, const Matrix& factor,
                                  google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  Pair& pair = pairs_.find(factor.weight)->second;
  if (pair.dataType == 0) {
    if (llvm::Error error = addPair(pair, factor.dataType)) return error;
  }
  const onnx::NodeProto layer = node;
  const std::string result = layer.output(0);
  // Names of nodes are paths of modules where they begin with a slash.
  const std::string name = nodeName(layer);
  const bool isPath = StringRef(name).starts_with("/");
  const std::string module = isPath ? StringRef(name).rsplit('/').first.str() : name;
  auto add = [&](const char* op, std::vector<std::string> operands, const std::string& value) {
    onnx::NodeProto& added = *nodes.Add();
    added.set_op_type(op);
    added.set_name(module + "/lora/" + std::to_string(nodes.size()) + "/" + op);
    *added.mutable_metadata_props() = layer.metadata_props();
    for (std::string& operand : operands) added.add_input(std::move(operand));
    added.add_output(value);
    return &added;
  };
  auto named = [&](const char* what) { return unique(result + "/lora/" + what); };
  auto cast = [&](std::string& value, int32_t type, const char* what) {
    if (elementBytes(factor.dataType) != 2) return;
    const std::string converted = named(what);
    setType(*add("Cast", {value}, converted), type);
    value = converted;
  };
  const std::string base = unique(result + "/base");
  node.set_output(0, base);
  std::string low = named("low");
  add("MatMul", {layer.input(0), this->factor(pair.a, pair.dataType, factor.dataType)}, low);
  if (options_.alpha != static_cast<double>(options_.rank)) {
    cast(low, onnx::TensorProto::FLOAT, "wide");
    const std::string scaled = named("scaled");
    add("Mul", {low, scale()}, scaled);
    low = scaled;
    cast(low, factor.dataType, "narrow");
  }
  const std::string change = named("change");
  add("MatMul", {low, this->factor(pair.b, pair.dataType, factor.dataType)}, change);
  add("Add", {base, change}, result);
  return llvm::Error::success();
}

llvm::Error Adapting::adapt(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> old;
  old.Swap(&nodes);
  for (onnx::NodeProto& one : old) {
    onnx::NodeProto& node = *nodes.Add();
    node.Swap(&one);
    for (auto& attribute : *node.mutable_attribute()) {
      if (!attribute.has_g()) continue;
      matrices_.enter(attribute.g());
      if (llvm::Error error = adapt(*attribute.mutable_g()->mutable_node())) return error;
    }
    if (matrices_.follow(node)) continue;
    const std::optional<Matrix> factor = matrices_.factorOf(node);
    if (!factor || pairs_.count(factor->weight) == 0) continue;
    if (llvm::Error error = addProducts(node, *factor, nodes)) return error;
  }
  return llvm::Error::success();
}

llvm::Expected<AdaptedModel> Adapting::run(llvm::ArrayRef<LinearLayer> layers) {
  auto known = adaptersOf(base_);
  if (!known) return known.takeError();
  if (!known->all.empty()) {
    return makeError("it has adapters already: adapt the model that it was made of, \"" +
                     known->base + "\"");
  }
  // Before 4, initializers had to be inputs.
  constexpr int64_t kLeastIrVersion = 4;
  model_.set_ir_version(std::max(model_.ir_version(), kLeastIrVersion));
  onnx::GraphProto& graph = *model_.mutable_graph();
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    names_.insert(tensor.name());
    if (llvm::Error error = relocateData(tensor, base_.folder(), to_)) return error;
  }
  for (const auto& input : graph.input()) names_.insert(input.name());
  for (const auto& node : graph.node()) {
    visitWithBranches(node, [&](const onnx::NodeProto& inner) {
      for (const std::string& result : inner.output()) names_.insert(result);
    });
  }
  namespace fs = std::filesystem;
  std::error_code code;
  // The file may be a link, beside which its external data lies.
  const fs::path from = fs::absolute(base_.path().str());
  fs::path base = fs::relative(from.parent_path(), fs::absolute(to_.str()).parent_path(), code);
  base = (code || base.empty() ? from.parent_path() : base) / from.filename();
  base = base.lexically_normal();
  std::string text = base.string() + "\t" + fingerprint(base_) + "\t" +
                     std::to_string(options_.rank) + "\t" + exactly(options_.alpha);
  for (const LinearLayer& layer : layers) {
    const Pair pair{&layer, layer.module + ".lora_A.weight", layer.module + ".lora_B.weight"};
    for (const std::string& name : {layer.weight, layer.module}) {
      if (StringRef(name).find_first_of("\t\n") == StringRef::npos) continue;
      return makeError("a name of its layers has a tab or a newline, \"" + name +
                       "\": rename it, or leave it out");
    }
    text += "\n" + layer.weight + "\t" + layer.module + "\t" + pair.a + "\t" + pair.b + "\t" +
            (layer.isOutputFirst ? kOutputFirst : kInputFirst) + "\t" +
            (layer.isShared ? kShared : kOwn);
    pairs_[layer.weight] = pair;
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (llvm::Error error = relocateBranches(node, base_.folder(), to_)) return error;
  }
  if (llvm::Error error = adapt(*graph.mutable_node())) return error;
  for (onnx::NodeProto& node : factors_) *graph.add_node() = std::move(node);
  // In front: nodes come before what reads them.
  std::rotate(graph.mutable_node()->pointer_begin(),
              graph.mutable_node()->pointer_end() - static_cast<std::ptrdiff_t>(factors_.size()),
              graph.mutable_node()->pointer_end());
  auto* entry = model_.add_metadata_props();
  entry->set_key(kAdaptersKey);
  entry->set_value(text);
  if (model_.ByteSizeLong() > static_cast<size_t>(INT_MAX)) {
    return makeError(
        "with adapters the model has more than 2 GiB, where protobuf ends: save it with external "
        "data (onnx.save_model(.., save_as_external_data=True))");
  }
  return AdaptedModel{model_.SerializeAsString(), parameters_};
}

}  // namespace

llvm::Expected<AdaptedModel> adaptModel(const ModelFile& base, llvm::ArrayRef<LinearLayer> layers,
                                        const AdapterOptions& options, StringRef to) {
  auto adapted = Adapting(base, options, to).run(layers);
  if (!adapted) {
    return makeError("can't adapt \"" + base.path() + "\": " + llvm::toString(adapted.takeError()));
  }
  return adapted;
}

llvm::Expected<Adapters> adaptersOf(const ModelFile& model) {
  Adapters adapters;
  auto fail = [&] {
    return makeError("the model \"" + model.path() + "\" has metadata \"" + kAdaptersKey +
                     "\" that `oriel adapt` does not write: adapt its base again");
  };
  for (const auto& entry : model.proto().metadata_props()) {
    if (entry.key() != kAdaptersKey) continue;
    const auto [head, lines] = StringRef(entry.value()).split('\n');
    llvm::SmallVector<StringRef> words;
    head.split(words, '\t');
    if (words.size() != 4 || words[2].getAsInteger(10, adapters.rank) ||
        !llvm::to_float(words[3], adapters.alpha) || adapters.rank < 1) {
      return fail();
    }
    adapters.base = words[0].str();
    adapters.fingerprint = words[1].str();
    for (StringRef line : llvm::split(lines, '\n')) {
      words.clear();
      line.split(words, '\t');
      if (words.size() != 6 || (words[4] != kOutputFirst && words[4] != kInputFirst) ||
          (words[5] != kShared && words[5] != kOwn)) {
        return fail();
      }
      adapters.all.push_back({words[0].str(), words[1].str(), words[2].str(), words[3].str(),
                              words[4] == kOutputFirst, words[5] == kShared});
      const Adapter& one = adapters.all.back();
      if (!model.hasInitializer(one.weight) || !model.hasInitializer(one.a) ||
          !model.hasInitializer(one.b)) {
        return fail();
      }
    }
  }
  return adapters;
}

}  // namespace oriel
