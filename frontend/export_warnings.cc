#include "frontend/export_warnings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/branches.h"
#include "frontend/node_location.h"
#include "frontend/weight_copies.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Diagnostics.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;

// Each component without a "_1" behind it.
std::string withoutNumbers(StringRef module) {
  llvm::SmallVector<StringRef> components;
  module.split(components, '.');
  for (StringRef& component : components) {
    const auto [name, number] = component.rsplit('_');
    const bool isNumbered = !number.empty() && llvm::all_of(number, llvm::isDigit);
    if (isNumbered) component = name;
  }
  return llvm::join(components, ".");
}

// TorchScript's exporter calls a module "norm_1", "norm_2" where it runs again.
std::set<std::string> withoutRepeats(std::set<std::string> modules) {
  const std::set<std::string> all = modules;
  for (const std::string& module : all) {
    const std::string first = withoutNumbers(module);
    if (first != module && all.count(first) > 0) modules.erase(module);
  }
  return modules;
}

class ExportWarnings {
 public:
  ExportWarnings(mlir::Location location, const ModelFile& model, const Graph& graph,
                 llvm::function_ref<bool(StringRef)> isSetting)
      : location_(location), model_(model), graph_(graph), isSetting_(isSetting) {
    for (const auto* node : graph.nodes()) {
      visitWithBranches(*node, [&](const onnx::NodeProto& one) { nodes_.push_back(&one); });
    }
  }

  void run(FloatTypes floats) const {
    if (floats.isWide()) noteNarrowFloats();
    warnOfMergedParameters();
    warnOfCopiedEmbeddings();
    warnOfNumbers();
    warnOfConstantWeights();
    noteTables();
  }

 private:
  bool isParameter(StringRef name) const {
    return model_.role(name) == InitializerRole::kParameter && !isSetting_(name);
  }

  void noteNarrowFloats() const {
    const std::pair<int, StringRef> types[] = {{onnx::TensorProto::FLOAT16, "f16"},
                                               {onnx::TensorProto::BFLOAT16, "bf16"}};
    for (const auto& [code, name] : types) {
      std::map<StringRef, int64_t> counts;
      for (const onnx::TensorProto& tensor : model_.graph().initializer()) {
        if (tensor.data_type() != code) continue;
        ++counts[isParameter(tensor.name()) ? "parameter" : "constant"];
      }
      for (const onnx::ValueInfoProto& input : model_.graph().input()) {
        const bool isNarrow = input.type().tensor_type().elem_type() == code;
        if (isNarrow && !model_.hasInitializer(input.name())) ++counts["input"];
      }
      for (const auto* node : nodes_) {
        const auto* to = Graph::is(node, "Cast") ? Graph::attribute(*node, "to") : nullptr;
        const auto* value =
            Graph::is(node, "Constant") ? Graph::attribute(*node, "value") : nullptr;
        if (to && to->i() == code) ++counts["cast"];
        if (value && value->t().data_type() == code) ++counts["constant"];
      }
      if (counts.empty()) continue;
      std::vector<std::string> parts;
      for (const auto& [what, count] : counts) {
        parts.push_back((llvm::Twine(count) + " " + what + (count == 1 ? "" : "s")).str());
      }
      mlir::emitRemark(location_) << "what is " << name << " in the file ("
                                  << llvm::join(parts, ", ")
                                  << ") is computed in f32, or as the recipe's `precision` says";
    }
  }

  // Tables that the file does not tell from weights.
  void noteTables() const {
    const std::vector<std::string> tables = model_.tables();
    if (tables.empty()) return;
    constexpr size_t kMaxNames = 8;
    auto diagnostic = mlir::emitRemark(location_);
    const size_t named = std::min(tables.size(), kMaxNames);
    diagnostic << "\"" << llvm::join(tables.begin(), tables.begin() + named, "\", \"") << "\"";
    if (tables.size() > named)
      diagnostic << " and " << tables.size() - named << " more initializers";
    diagnostic << (tables.size() > 1 ? " hold tables" : " holds a table")
               << " (of rotary angles, a mask, biases of positions) by use and values: not trained "
               << "(a recipe whose parameters.trainable names one trains it)";
  }

  // A weight that the exporter's optimizer made from the module's own, by folding a transpose or by
  // merging equal ones; empty if there is none. Training such a model ties what was merged.
  std::string optimizedWeight() const {
    llvm::StringSet<> read;
    for (const auto* node : nodes_) {
      for (const std::string& input : node->input()) read.insert(input);
    }
    for (const std::string& name : model_.initializerNames()) {
      if (!read.contains(name)) continue;
      // Another exporter, or one too old to tell, describes none.
      if (model_.describesPartOf(name) && isParameter(name) && !model_.describes(name)) {
        return name;
      }
    }
    return "";
  }

  // Exporters' optimizers make one initializer of parameters that are equal at export (all zero
  // biases). One that modules of different names read, and that is no embedding tied to another
  // module, looks like that.
  void warnOfMergedParameters() const {
    const char remedy[] =
        "; for training export with torch.onnx.export(.., dynamo=True, optimize=False)";
    if (std::string weight = optimizedWeight(); !weight.empty()) {
      mlir::emitWarning(location_)
          << "weights such as \"" << weight
          << "\" are not the PyTorch module's own: the exporter's optimizer folded transposes into "
             "weights (shared ones come apart) and merged equal ones, which training then ties"
          << remedy;
      return;
    }
    llvm::StringMap<std::set<std::string>> modules;
    llvm::StringMap<std::string> copies;  // TorchScript's exporter keeps merged names as Identity's
    llvm::StringSet<> embeddings;
    for (const auto* node : nodes_) {
      auto original = [&](const std::string& input) {
        auto copy = copies.find(input);
        return copy == copies.end() ? input : copy->second;
      };
      std::string module = modulePath(*node);
      if (Graph::is(node, "Identity")) {
        copies[node->output(0)] = original(Graph::operand(*node, 0).str());
      } else if (!module.empty() && !Graph::is(node, "Shape") && !Graph::is(node, "CastLike")) {
        for (const std::string& input : node->input()) {
          modules[original(input)].insert(module);
        }
        if (Graph::is(node, "Gather")) {
          embeddings.insert(original(Graph::operand(*node, 0).str()));
        }
      }
    }
    std::vector<std::string> shared;
    for (const std::string& name : model_.initializerNames()) {
      if (isParameter(name) && withoutRepeats(modules.lookup(name)).size() > 1 &&
          !embeddings.contains(name)) {
        shared.push_back(name);
      }
    }
    if (!shared.empty()) {
      auto diagnostic = mlir::emitWarning(location_);
      diagnostic << "\"" << shared.front() << "\" is one initializer for the modules "
                 << llvm::join(withoutRepeats(modules.lookup(shared.front())), ", ");
      if (shared.size() > 1) {
        diagnostic << ", and " << shared.size() - 1 << " more are shared so";
      }
      diagnostic
          << ": training ties them. If the model does not share it, the exporter merged what "
          << "was equal" << remedy;
    }
  }

  // Folding a transpose into the weight of a head takes a tied one apart.
  void warnOfCopiedEmbeddings() const {
    std::vector<std::string> matrices;
    for (const std::string& name : model_.initializerNames()) {
      const std::optional<size_t> rank = graph_.rankOfInitializer(name);
      if (rank == 2 && isParameter(name) && !model_.isMissing(name)) matrices.push_back(name);
    }
    llvm::StringSet<> embeddings;
    for (const auto* node : nodes_) {
      if (!Graph::is(node, "Gather")) continue;
      const std::string table = Graph::operand(*node, 0).str();
      if (!llvm::is_contained(matrices, table) || !embeddings.insert(table).second) continue;
      for (const std::string& other : matrices) {
        if (!isCopy(other, table)) continue;
        mlir::emitWarning(location_)
            << "\"" << other << "\" has the values of \"" << table
            << "\", transposed: if the model ties them, the exporter's constant folding, or an "
               "optimizer, took them apart, and training would let them differ; export without "
               "that (do_constant_folding=False, or dynamo=True with optimize=False), or tie them "
               "again with `oriel compose`";
      }
    }
  }

  bool isCopy(const std::string& name, const std::string& table) const {
    if (name == table) return false;
    auto copy = model_.initializer(name), original = model_.initializer(table);
    const bool isThere = static_cast<bool>(copy) && static_cast<bool>(original);
    if (!copy) llvm::consumeError(copy.takeError());
    if (!original) llvm::consumeError(original.takeError());
    return isThere && findCopy(*copy, *original) == WeightCopy::kTransposed;
  }

  // Whether a function takes the number, as gates go through a tanh: that of a constant would have
  // been folded, with slices and reshapes of parameters.
  bool isOfFunction(StringRef number) const {
    static const llvm::StringSet<> kFunctions = {"Exp", "Sigmoid", "Softplus", "Tanh"};
    return llvm::any_of(nodes_, [&](const onnx::NodeProto* node) {
      return kFunctions.contains(node->op_type()) && Graph::operand(*node, 0) == number;
    });
  }

  // An export without PyTorch's metadata does not tell a parameter of one element, such as a gate,
  // from a constant. Constants of exporters have no name of a module; those of PyTorch's have names
  // of their own.
  void warnOfNumbers() const {
    const bool isOfPyTorch = model_.proto().producer_name() == "pytorch";
    std::vector<std::string> numbers;
    for (const std::string& name : model_.initializerNames()) {
      const llvm::StringRef word = model_.nameInPart(name);
      if (model_.describesPartOf(name) || !model_.isNumber(name) || isSetting_(name)) continue;
      if (word.starts_with("onnx::")) {
        if (isOfFunction(name)) numbers.push_back(name);
      } else if ((word.contains('.') || isOfPyTorch) && !word.contains('/')) {
        numbers.push_back(name);
      }
    }
    if (numbers.empty()) return;
    auto diagnostic = mlir::emitWarning(location_);
    diagnostic << "\"" << numbers.front() << "\"";
    if (numbers.size() > 1) diagnostic << " and " << numbers.size() - 1 << " more";
    diagnostic << (numbers.size() > 1 ? " are single numbers" : " is a single number")
               << ", which this export does not tell from constants: not trained. Where the model "
                  "trains such a parameter, export it with torch.onnx.export(.., dynamo=True), or "
                  "give it two elements";
  }

  // Matrices that a product or a convolution takes, as nodes: no initializer, so no parameter.
  void warnOfConstantWeights() const {
    llvm::StringSet<> weights;
    std::string first;
    for (const auto* node : nodes_) {
      if (!Graph::is(node, "MatMul") && !Graph::is(node, "Gemm") && !Graph::is(node, "Conv")) {
        continue;
      }
      StringRef value = Graph::operand(*node, 1);
      const Graph::Node* from = graph_.producer(value);
      while (Graph::is(from, "Transpose") || Graph::is(from, "Identity")) {
        value = Graph::operand(*from, 0);
        from = graph_.producer(value);
      }
      if (!Graph::is(from, "Constant")) continue;
      const auto* tensor = Graph::attribute(*from, "value");
      if (!tensor || tensor->t().dims_size() < 2) continue;
      if (weights.insert(value).second && first.empty()) first = value.str();
    }
    if (first.empty()) return;
    auto diagnostic = mlir::emitWarning(location_);
    diagnostic << "\"" << first << "\"";
    if (weights.size() > 1) diagnostic << " and " << weights.size() - 1 << " more";
    diagnostic << (weights.size() > 1 ? " are weights" : " is a weight")
               << " that the model writes as a Constant node: not trained; only initializers are "
                  "parameters";
  }

  mlir::Location location_;
  const ModelFile& model_;
  const Graph& graph_;
  std::vector<const onnx::NodeProto*> nodes_;  // with those of branches
  llvm::function_ref<bool(StringRef)> isSetting_;
};

}  // namespace

void warnOfExport(mlir::Location location, const ModelFile& model, const Graph& graph,
                  FloatTypes floats, llvm::function_ref<bool(StringRef)> isSetting) {
  ExportWarnings(location, model, graph, isSetting).run(floats);
}

}  // namespace oriel
