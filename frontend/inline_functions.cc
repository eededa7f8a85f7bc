#include "frontend/inline_functions.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "frontend/error.h"
#include "frontend/graph.h"
#include "frontend/node_location.h"
#include "llvm/ADT/StringExtras.h"
#include "onnx/defs/schema.h"
#include "onnx/inliner/inliner.h"
#include "onnx/onnx_pb.h"
#include "onnx/shape_inference/implementation.h"

namespace oriel {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Everything but the bytes of the weights, which may be gigabytes. Function bodies that depend on
// types find those of initializers among the value infos.
std::unique_ptr<onnx::ModelProto> copyWithoutWeights(const ModelFile& model) {
  auto copy = std::make_unique<onnx::ModelProto>();
  const onnx::ModelProto& proto = model.proto();
  copy->set_ir_version(proto.ir_version());
  *copy->mutable_opset_import() = proto.opset_import();
  *copy->mutable_functions() = proto.functions();
  const onnx::GraphProto& graph = model.graph();
  onnx::GraphProto& slim = *copy->mutable_graph();
  slim.set_name(graph.name());
  *slim.mutable_node() = graph.node();
  *slim.mutable_output() = graph.output();
  *slim.mutable_value_info() = graph.value_info();
  for (const auto& input : graph.input()) {
    if (!model.hasInitializer(input.name())) {
      *slim.add_input() = input;
    }
  }
  std::set<std::string> described;
  for (const auto& info : graph.value_info()) {
    described.insert(info.name());
  }
  for (const auto& tensor : graph.initializer()) {
    if (!described.count(tensor.name())) {
      auto* info = slim.add_value_info();
      info->set_name(tensor.name());
      auto* type = info->mutable_type()->mutable_tensor_type();
      type->set_elem_type(tensor.data_type());
      type->mutable_shape();
      for (int64_t dim : tensor.dims()) {
        type->mutable_shape()->add_dim()->set_dim_value(dim);
      }
    }
  }
  return copy;
}

// A domain of the model's own functions has no versions that differ: jax2onnx imports it with one,
// and its functions with another. The inliner leaves calls of another version than the graph's.
void alignOwnDomains(onnx::ModelProto& model) {
  std::set<std::string> domains;
  for (const auto& function : model.functions()) domains.insert(function.domain());
  for (const char* onnx : {"", "ai.onnx"}) domains.erase(onnx);
  auto align = [&](auto& imports) {
    for (auto& import : imports) {
      if (domains.count(import.domain())) import.set_version(1);
    }
  };
  align(*model.mutable_opset_import());
  for (auto& function : *model.mutable_functions()) align(*function.mutable_opset_import());
}

// Inlining keeps nodes in order and puts a body where its call was. So between two nodes that
// were there before, everything new comes from the calls that stood there.
void passOnMetadata(const Nodes& before, Nodes& after) {
  std::map<std::string, int> positions;
  for (int i = 0; i < before.size(); ++i) {
    for (const auto& output : before.Get(i).output()) {
      positions[output] = i;
    }
  }
  // The last node of a body produces the call's result: walk backwards from it.
  const onnx::NodeProto* call = nullptr;
  for (int i = after.size() - 1; i >= 0; --i) {
    onnx::NodeProto& node = *after.Mutable(i);
    for (const auto& output : node.output()) {
      auto found = positions.find(output);
      if (found != positions.end()) {
        call = &before.Get(found->second);
      }
    }
    if (call && node.metadata_props_size() == 0) {
      *node.mutable_metadata_props() = call->metadata_props();
    }
  }
}

void addIfNotGiven(onnx::NodeProto& node, const onnx::AttributeProto& attribute) {
  const bool isGiven = llvm::any_of(
      node.attribute(), [&](const auto& existing) { return existing.name() == attribute.name(); });
  if (!isGiven) *node.add_attribute() = attribute;
}

// A body refers to attributes of the call; the inliner does not know their defaults.
void addDefaultAttributes(onnx::NodeProto& node, const onnx::OpSchema& schema) {
  for (const auto& [name, attribute] : schema.attributes()) {
    if (!attribute.default_value.name().empty()) addIfNotGiven(node, attribute.default_value);
  }
}

// Calls `visit` for the nodes, and for those of graphs within them.
void visitNodes(Nodes& nodes, llvm::function_ref<void(onnx::NodeProto&)> visit) {
  for (onnx::NodeProto& node : nodes) {
    visit(node);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) visitNodes(*attribute.mutable_g()->mutable_node(), visit);
      for (auto& graph : *attribute.mutable_graphs()) visitNodes(*graph.mutable_node(), visit);
    }
  }
}

using Functions = google::protobuf::RepeatedPtrField<onnx::FunctionProto>;
using LocalFunctionId = std::tuple<std::string, std::string, std::string>;

LocalFunctionId idOf(const onnx::FunctionProto& function) {
  return {function.domain(), function.name(), function.overload()};
}
LocalFunctionId idOfCalled(const onnx::NodeProto& node) {
  return {node.domain(), node.op_type(), node.overload()};
}

// Those that call others in front of them, in rounds: what is called comes in a later one than its
// last caller. Functions that call each other in a circle are in none.
std::vector<std::vector<const onnx::FunctionProto*>> callersFirst(Functions& functions) {
  struct Entry {
    const onnx::FunctionProto* function = nullptr;
    std::set<LocalFunctionId> called;
    int callers = 0;
  };
  std::map<LocalFunctionId, Entry> entries;
  for (const auto& function : functions) entries[idOf(function)].function = &function;
  for (auto& function : functions) {
    Entry& caller = entries[idOf(function)];
    visitNodes(*function.mutable_node(), [&](onnx::NodeProto& node) {
      auto called = entries.find(idOfCalled(node));
      if (called == entries.end() || !caller.called.insert(called->first).second) return;
      ++called->second.callers;
    });
  }
  std::vector<std::vector<const onnx::FunctionProto*>> rounds;
  std::vector<const Entry*> ready;
  for (const auto& [id, entry] : entries) {
    if (entry.callers == 0) ready.push_back(&entry);
  }
  while (!ready.empty()) {
    std::vector<const Entry*> next;
    rounds.emplace_back();
    for (const Entry* caller : ready) {
      rounds.back().push_back(caller->function);
      for (const LocalFunctionId& id : caller->called) {
        if (--entries[id].callers == 0) next.push_back(&entries[id]);
      }
    }
    ready = std::move(next);
  }
  return rounds;
}

// What calls of the model's own functions, in its graph, leave to the functions' defaults.
void addDefaultAttributes(onnx::ModelProto& model) {
  std::map<LocalFunctionId, const onnx::FunctionProto*> functions;
  for (const auto& function : model.functions()) {
    functions[idOf(function)] = &function;
  }
  visitNodes(*model.mutable_graph()->mutable_node(), [&](onnx::NodeProto& node) {
    auto called = functions.find(idOfCalled(node));
    if (called == functions.end()) return;
    for (const auto& attribute : called->second->attribute_proto()) addIfNotGiven(node, attribute);
  });
}

// Counts the nodes that a graph has once its calls are inlined: functions that call each other
// twice make a small file grow without bound.
class InlinedNodes {
 public:
  explicit InlinedNodes(const onnx::ModelProto& model) {
    for (const auto& function : model.functions()) {
      functions_[{function.domain(), function.name()}].push_back(&function);
    }
  }

  // At most kMaxNodes + 1.
  int64_t of(const Nodes& nodes, int depth = 0) {
    int64_t count = 0;
    for (const auto& node : nodes) {
      count += 1 + ofCall({node.domain(), node.op_type()}, depth);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) {
          count += of(attribute.g().node(), depth);
        }
        for (const auto& graph : attribute.graphs()) {
          count += of(graph.node(), depth);
        }
      }
      if (count > kMaxNodes) {
        return kMaxNodes + 1;
      }
    }
    return count;
  }

  static constexpr int64_t kMaxNodes = 1 << 21;

 private:
  using Id = std::pair<std::string, std::string>;

  // Cycles and deep chains count for nothing: the inliner itself refuses them.
  int64_t ofCall(const Id& id, int depth) {
    constexpr int kMaxDepth = 128;
    auto found = functions_.find(id);
    if (found == functions_.end() || depth == kMaxDepth) {
      return 0;
    }
    auto [known, isNew] = counts_.try_emplace(id, 0);
    if (isNew) {
      int64_t largest = 0;
      for (const auto* overload : found->second) {
        largest = std::max(largest, of(overload->node(), depth + 1));
      }
      counts_[id] = largest;
      return largest;
    }
    return known->second;
  }

  std::map<Id, std::vector<const onnx::FunctionProto*>> functions_;
  std::map<Id, int64_t> counts_;
};

template <typename Inline>
void inlineKeepingMetadata(onnx::ModelProto& model, Inline inlineAll) {
  Nodes before = model.graph().node();
  inlineAll();
  passOnMetadata(before, *model.mutable_graph()->mutable_node());
}

// Callers first: an attribute that a function hands on, but its call does not give, is absent from
// what is called, which may have a default for it.
// But for those that stand for an op of ours, whose body is what other tools know of it.
void inlineLocalFunctions(onnx::ModelProto& model, const OpRegistry& registry) {
  Functions all;
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    const bool isOwn = function.domain() == kPublicDomain &&
                       registry.find(kPublicDomain, function.name(), /*version=*/0);
    if (!isOwn) all.Add(std::move(function));
  }
  auto inlineThose = [&] {
    addDefaultAttributes(model);
    inlineKeepingMetadata(model, [&] { onnx::inliner::InlineLocalFunctions(model, true); });
  };
  for (const auto& functions : callersFirst(all)) {
    model.mutable_functions()->Clear();
    for (const onnx::FunctionProto* function : functions) *model.add_functions() = *function;
    inlineThose();
  }
  // Those of a circle, and what can't be inlined, for the inliner to say so.
  model.mutable_functions()->Swap(&all);
  inlineThose();
}

using FunctionIds = std::set<std::pair<std::string, std::string>>;

// Nodes of ops whose bodies are inlined, but which have a handler themselves: while this lives,
// they are of a domain in which nothing is looked for.
class KeptNodes {
 public:
  KeptNodes(onnx::ModelProto& model, const FunctionIds& ids, const OpRegistry& registry)
      : nodes_(*model.mutable_graph()->mutable_node()), imports_(*model.mutable_opset_import()) {
    onnx::OperatorSetIdProto* import = imports_.Add();
    import->set_domain(kDomain);
    import->set_version(1);
    visitNodes(nodes_, [&](onnx::NodeProto& node) {
      const bool isOfOnnx = node.domain().empty() || node.domain() == "ai.onnx";
      if (!isOfOnnx || ids.count({"", node.op_type()}) == 0) return;
      if (registry.hasLeftToBody(node.op_type()) && !registry.leavesToBody(node)) {
        node.set_domain(kDomain);
      }
    });
  }
  KeptNodes(const KeptNodes&) = delete;
  KeptNodes& operator=(const KeptNodes&) = delete;
  ~KeptNodes() {
    visitNodes(nodes_, [](onnx::NodeProto& node) {
      if (node.domain() == kDomain) node.clear_domain();
    });
    for (int i = imports_.size(); i-- > 0;) {
      if (imports_.Get(i).domain() == kDomain) imports_.DeleteSubrange(i, 1);
    }
  }

 private:
  static constexpr char kDomain[] = "oriel.kept";

  Nodes& nodes_;
  google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports_;
};

// Adds the ops of nodes, and of graphs within them, that have no handler, but a body in ONNX's
// definition.
void findBodies(Nodes& nodes, const ModelFile& model, const OpRegistry& registry,
                FunctionIds& found) {
  visitNodes(nodes, [&](onnx::NodeProto& node) {
    std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
    int64_t version = model.opset(domain);
    if (registry.find(domain, node.op_type(), version) && !registry.leavesToBody(node)) return;
    const auto* schema =
        onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(version), domain);
    if (schema && (schema->HasFunction() || schema->HasContextDependentFunction())) {
      addDefaultAttributes(node, *schema);
      found.emplace(domain, node.op_type());
    }
  });
}

// The element types of the graph's values, as far as they are known.
std::map<std::string, int32_t> elementTypes(const onnx::GraphProto& graph) {
  std::map<std::string, int32_t> types;
  for (const auto* values : {&graph.input(), &graph.value_info(), &graph.output()}) {
    for (const auto& value : *values) {
      types[value.name()] = value.type().tensor_type().elem_type();
    }
  }
  return types;
}

// "tensor(float)", "tensor(double)", "tensor(bfloat16)", ..
bool isFloat(llvm::StringRef type) { return type.contains("float") || type.contains("double"); }

// A body that is given floats where the op takes integers alone fails somewhere within, at a node
// that the user does not have. Empty if it is given none.
std::string floatsForIntegers(const onnx::NodeProto& node, const onnx::OpSchema& schema,
                              const std::map<std::string, int32_t>& types) {
  const size_t operands = std::min(schema.inputs().size(), static_cast<size_t>(node.input_size()));
  for (size_t i = 0; i < operands; ++i) {
    const auto& parameter = schema.inputs()[i];
    const auto type = types.find(node.input(static_cast<int>(i)));
    if (type == types.end() || !onnx::TensorProto_DataType_IsValid(type->second)) continue;
    const std::string given =
        llvm::StringRef(
            onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(type->second)))
            .lower();
    std::set<std::string> allowed;
    for (const std::string* each : parameter.GetTypes()) allowed.insert(*each);
    if (!isFloat(given) || allowed.empty() || llvm::any_of(allowed, isFloat)) continue;
    return "node \"" + nodeName(node) + "\" (" + node.op_type() + "): its " + parameter.GetName() +
           ", \"" + type->first + "\", is tensor(" + given + "), where ONNX has " +
           llvm::join(allowed, ", ") +
           " alone: the exporter has written what is no ONNX; write this line of the model in "
           "another way (docs/import.md, \"Exporting for training\", names some)";
  }
  return "";
}

// Throws what is wrong with the operands of the nodes whose bodies are to be inlined.
void checkOperandTypes(onnx::ModelProto& model, const FunctionIds& ids, const ModelFile& file) {
  const std::map<std::string, int32_t> types = elementTypes(model.graph());
  visitNodes(*model.mutable_graph()->mutable_node(), [&](onnx::NodeProto& node) {
    const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
    if (ids.count({domain, node.op_type()}) == 0) return;
    const auto* schema = onnx::OpSchemaRegistry::Schema(
        node.op_type(), static_cast<int>(file.opset(domain)), domain);
    if (!schema) return;
    const std::string wrong = floatsForIntegers(node, *schema, types);
    if (!wrong.empty()) throw std::runtime_error(wrong);
  });
}

// What ONNX says of a failed assertion, less the place in its own source that comes first.
std::string withoutSource(llvm::StringRef message) {
  auto [place, what] = message.split("failed: ");
  return (what.empty() ? message : what).str();
}

}  // namespace

llvm::Expected<std::unique_ptr<onnx::ModelProto>> inlineFunctions(const ModelFile& model,
                                                                  const OpRegistry& registry) {
  auto copy = copyWithoutWeights(model);
  if (InlinedNodes(*copy).of(copy->graph().node()) > InlinedNodes::kMaxNodes) {
    return makeError("can't inline the functions of the model \"" + model.path() +
                     "\": they make more than " + llvm::Twine(InlinedNodes::kMaxNodes) + " nodes");
  }
  try {
    alignOwnDomains(*copy);
    if (copy->functions_size() > 0) {
      inlineLocalFunctions(*copy, registry);
    }
    // A body may call functions. The depth is bounded in case one can't be inlined and stays.
    constexpr int kMaxDepth = 4;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      FunctionIds found;
      findBodies(*copy->mutable_graph()->mutable_node(), model, registry, found);
      if (found.empty()) {
        break;
      }
      auto unknown = onnx::inliner::FunctionIdSet::Create({found.begin(), found.end()});
      // Bodies that depend on types are made from those that the graph says.
      onnx::shape_inference::InferShapes(*copy);
      const KeptNodes kept(*copy, found, registry);
      checkOperandTypes(*copy, found, model);
      inlineKeepingMetadata(
          *copy, [&] { onnx::inliner::InlineSelectedFunctions(*copy, *unknown, nullptr); });
    }
  } catch (const std::exception& exception) {
    return makeError("can't inline the functions of the model \"" + model.path() +
                     "\": " + withoutSource(exception.what()));
  }
  return copy;
}

}  // namespace oriel
