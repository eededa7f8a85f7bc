#include "frontend/adapters.h"

#include <climits>
#include <cmath>
#include <filesystem>
#include <set>

#include "frontend/branches.h"
#include "frontend/compose_part.h"
#include "frontend/error.h"
#include "frontend/external_data.h"
#include "frontend/graph.h"
#include "frontend/node_location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
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

// A value that is a parameter, but for its order and type.
struct Matrix {
  std::string weight;
  bool isTransposed = false;
  int32_t dataType = 0;
};

bool isOp(const onnx::NodeProto& node, StringRef op) {
  return node.op_type() == op && (node.domain().empty() || node.domain() == "ai.onnx");
}

int64_t intOf(const onnx::NodeProto& node, StringRef name, int64_t otherwise) {
  const onnx::AttributeProto* attribute = Graph::attribute(node, name);
  return attribute ? attribute->i() : otherwise;
}

// Of a matrix; without an order, dimensions are reversed.
bool swapsDims(const onnx::NodeProto& node) {
  const onnx::AttributeProto* order = Graph::attribute(node, "perm");
  return !order || (order->ints_size() == 2 && order->ints(0) == 1);
}

// The parameters of two dimensions, and what nodes make of them.
class Matrices {
 public:
  explicit Matrices(const ModelFile& model) {
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      if (tensor.dims_size() != 2 || model.role(tensor.name()) != InitializerRole::kParameter) {
        continue;
      }
      values_[tensor.name()] = {tensor.name(), false, tensor.data_type()};
    }
  }

  // Null if the value is no parameter.
  const Matrix* find(StringRef value) const {
    auto found = values_.find(value);
    return found == values_.end() ? nullptr : &found->second;
  }

  // Whether the node only moves or converts a parameter, which its result then is. To be asked of
  // each node in turn: branches may use the same names for other values.
  bool follow(const onnx::NodeProto& node) {
    const Matrix* operand = find(Graph::operand(node, 0));
    const bool isTranspose = isOp(node, "Transpose");
    if (!operand || !(isTranspose || isOp(node, "Identity") || isOp(node, "Cast"))) {
      for (const std::string& result : node.output()) values_.erase(result);
      return false;
    }
    Matrix result = *operand;
    if (isTranspose && swapsDims(node)) result.isTransposed = !result.isTransposed;
    if (isOp(node, "Cast")) {
      result.dataType = static_cast<int32_t>(intOf(node, "to", result.dataType));
    }
    values_[node.output(0)] = result;
    return true;
  }

  // What the node multiplies its rows by, [inputs, outputs] unless it is transposed.
  std::optional<Matrix> factorOf(const onnx::NodeProto& node) const {
    const bool isGemm = isOp(node, "Gemm");
    if (!isGemm && !isOp(node, "MatMul")) return std::nullopt;
    const Matrix* factor = find(Graph::operand(node, 1));
    if (!factor || find(Graph::operand(node, 0)) || node.output_size() != 1) return std::nullopt;
    Matrix result = *factor;
    if (isGemm) {
      const onnx::AttributeProto* alpha = Graph::attribute(node, "alpha");
      if (intOf(node, "transA", 0) != 0 || (alpha && alpha->f() != 1.0F)) return std::nullopt;
      result.isTransposed ^= intOf(node, "transB", 0) != 0;
    }
    return result;
  }

 private:
  llvm::StringMap<Matrix> values_;
};

// Which values the graph's outputs are, but for conversions, scales, biases and slices, and nothing
// else reads: not keys and values that a decoder gives for its cache.
class OutputValues {
 public:
  explicit OutputValues(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) constants_.insert(tensor.name());
    for (const auto& node : graph.node()) {
      visitWithBranches(node, [&](const onnx::NodeProto& inner) { add(inner); });
    }
    follow(graph);
    dropWhatOthersRead();
  }

  bool contains(StringRef value) const { return values_.contains(value); }

 private:
  void add(const onnx::NodeProto& node) {
    bool isConstant = node.input_size() > 0 || isOp(node, "Constant");
    for (const std::string& operand : node.input()) {
      readers_[operand].push_back(&node);
      isConstant &= operand.empty() || constants_.contains(operand);
    }
    for (const std::string& result : node.output()) {
      producers_[result] = &node;
      if (isConstant) constants_.insert(result);
    }
  }

  // The operand that the node's result is, but for what outputs may be; null for none.
  const std::string* operandOf(const onnx::NodeProto& node) const {
    constexpr StringRef kThrough[] = {"Add",     "Cast",     "Clip",       "Div",      "Flatten",
                                      "Gather",  "Identity", "LogSoftmax", "Mul",      "Neg",
                                      "Reshape", "Sigmoid",  "Slice",      "Softmax",  "Squeeze",
                                      "Sub",     "Tanh",     "Transpose",  "Unsqueeze"};
    const std::string* computed = nullptr;
    if (!llvm::is_contained(kThrough, StringRef(node.op_type()))) return nullptr;
    for (const std::string& operand : node.input()) {
      if (operand.empty() || constants_.contains(operand)) continue;
      if (computed) return nullptr;
      computed = &operand;
    }
    return computed;
  }

  void follow(const onnx::GraphProto& graph) {
    std::vector<StringRef> open;
    for (const auto& output : graph.output()) open.push_back(output.name());
    while (!open.empty()) {
      const StringRef value = open.back();
      open.pop_back();
      const onnx::NodeProto* node = producers_.lookup(value);
      if (!values_.insert(value).second || !node) continue;
      for (const auto& attribute : node->attribute()) {
        if (!isOp(*node, "If") || !attribute.has_g()) continue;
        for (const auto& output : attribute.g().output()) open.push_back(output.name());
      }
      if (const std::string* operand = operandOf(*node)) {
        through_.insert(node);
        open.push_back(*operand);
      }
    }
  }

  void dropWhatOthersRead() {
    for (bool changes = true; changes;) {
      changes = false;
      for (const auto& [value, producer] : producers_) {
        auto readers = readers_.find(value);
        if (!values_.contains(value) || readers == readers_.end()) continue;
        if (llvm::all_of(readers->second, [&](auto* node) { return through_.contains(node); })) {
          continue;
        }
        values_.erase(value);
        through_.erase(producer);
        changes = true;
      }
    }
  }

  llvm::StringMap<const onnx::NodeProto*> producers_;
  llvm::StringMap<std::vector<const onnx::NodeProto*>> readers_;
  llvm::StringSet<> constants_, values_;
  llvm::SmallPtrSet<const onnx::NodeProto*, 16> through_;  // that are on a way to an output
};

// So that it reads as the same number.
std::string exactly(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", number);
  return text;
}

// What is known of a weight's uses.
struct Use {
  LinearLayer layer;
  bool isBothWays = false;
};

std::string moduleOf(const ModelFile& model, const onnx::NodeProto& node, StringRef weight) {
  StringRef stem = weight;
  if (stem.consume_back(".weight") && !stem.empty()) {
    // As ONNX Runtime's builder of generative models names weights.
    if (!stem.consume_back(".MatMul")) stem.consume_back(".Gemm");
    return stem.str();
  }
  std::string path = modulePath(node);
  const std::string part = model.partOf(weight).str();
  // Composed files have the part's name in front of names that say nothing.
  if (path.empty() || path == part) return weight.str();
  return part.empty() || StringRef(path).starts_with(part + ".") ? path : part + "." + path;
}

class Finder {
 public:
  explicit Finder(const ModelFile& model)
      : model_(model), matrices_(model), outputs_(model.graph()) {}

  std::vector<LinearLayer> run() {
    for (const auto& node : model_.graph().node()) {
      visitWithBranches(node, [&](const onnx::NodeProto& inner) { add(inner); });
    }
    auto share = [&](const onnx::GraphProto& graph) {
      for (const auto& output : graph.output()) {
        if (const Matrix* given = matrices_.find(output.name())) shared_.insert(given->weight);
      }
    };
    share(model_.graph());
    for (const auto& node : model_.graph().node()) {
      visitWithBranches(node, [&](const onnx::NodeProto& inner) {
        for (const auto& attribute : inner.attribute()) {
          if (attribute.has_g()) share(attribute.g());
        }
      });
    }
    std::vector<LinearLayer> layers;
    std::set<std::string> modules;
    for (Use& use : uses_) {
      if (use.isBothWays) continue;
      use.layer.isShared = shared_.contains(use.layer.weight);
      if (!modules.insert(use.layer.module).second) use.layer.module = use.layer.weight;
      layers.push_back(std::move(use.layer));
    }
    return layers;
  }

 private:
  void add(const onnx::NodeProto& node) {
    if (matrices_.follow(node)) return;
    const std::optional<Matrix> factor = matrices_.factorOf(node);
    for (int i = 0; i < node.input_size(); ++i) {
      const Matrix* other = matrices_.find(node.input(i));
      if (other && !(factor && i == 1)) shared_.insert(other->weight);
    }
    if (factor) addUse(node, *factor);
  }

  void addUse(const onnx::NodeProto& node, const Matrix& factor) {
    auto [place, isNew] = place_.try_emplace(factor.weight, uses_.size());
    if (!isNew) {
      Use& use = uses_[place->second];
      use.isBothWays |= use.layer.isOutputFirst != factor.isTransposed;
      use.layer.isOutputLayer |= outputs_.contains(node.output(0));
      return;
    }
    auto header = model_.initializerHeader(factor.weight);
    if (!header) {
      llvm::consumeError(header.takeError());  // said where it is read
      place_.erase(place);
      return;
    }
    LinearLayer layer;
    layer.weight = factor.weight;
    layer.module = moduleOf(model_, node, factor.weight);
    layer.isOutputFirst = factor.isTransposed;
    layer.inputs = header->shape[layer.isOutputFirst ? 1 : 0];
    layer.outputs = header->shape[layer.isOutputFirst ? 0 : 1];
    layer.isOutputLayer = outputs_.contains(node.output(0));
    uses_.push_back({std::move(layer), false});
  }

  const ModelFile& model_;
  Matrices matrices_;
  OutputValues outputs_;
  llvm::StringMap<size_t> place_;  // of a weight in uses_
  std::vector<Use> uses_;
  llvm::StringSet<> shared_;
};

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
  llvm::Error addParameter(const std::string& name, llvm::ArrayRef<int64_t> shape, float bound,
                           int32_t dataType);
  llvm::Error addPair(Pair& pair, int32_t dataType);
  std::string scale();
  llvm::Error adapt(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  llvm::Error addProducts(onnx::NodeProto& node, const Matrix& factor,
                          google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

  const ModelFile& base_;
  const AdapterOptions& options_;
  StringRef to_;
  Matrices matrices_;
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

llvm::Error Adapting::addParameter(const std::string& name, llvm::ArrayRef<int64_t> shape,
                                   float bound, int32_t dataType) {
  if (llvm::Error error = claim(name)) return error;
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(dataType);
  for (int64_t dim : shape) tensor.add_dims(dim);
  std::vector<float> values(shape[0] * shape[1], 0.0F);
  parameters_ += static_cast<int64_t>(values.size());
  if (bound > 0) options_.fill(name, bound, values);
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
  if (llvm::Error error = addParameter(pair.a, {options_.rank, layer.inputs}, bound, dataType)) {
    return error;
  }
  if (llvm::Error error = addParameter(pair.b, {layer.outputs, options_.rank}, 0, dataType)) {
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
  name = unique("lora_scale");
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

std::vector<LinearLayer> linearLayers(const ModelFile& model) { return Finder(model).run(); }

bool hasFunctions(const ModelFile& model) { return model.proto().functions_size() > 0; }

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
      if (words.size() != 6) return fail();
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
