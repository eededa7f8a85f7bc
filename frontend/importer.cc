#include "frontend/importer.h"

#include <set>

#include "frontend/bind_inputs.h"
#include "frontend/branches.h"
#include "frontend/control_flow.h"
#include "frontend/export_warnings.h"
#include "frontend/graph.h"
#include "frontend/inline_functions.h"
#include "frontend/masked_rows.h"
#include "frontend/masked_scatter.h"
#include "frontend/node_importer.h"
#include "frontend/node_location.h"
#include "frontend/op_registry.h"
#include "frontend/random_choices.h"
#include "frontend/sequences.h"
#include "frontend/tensor_data.h"
#include "ir/oriel/error_watch.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "onnx/checker.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

class Importer final : private NodeScope {
 public:
  Importer(mlir::MLIRContext& context, const ModelFile& model, const ImportOptions& options)
      : context_(context),
        model_(model),
        options_(options),
        builder_(&context),
        location_(mlir::NameLoc::get(mlir::StringAttr::get(&context, model.path()))) {}

  mlir::OwningOpRef<mlir::ModuleOp> run();

 private:
  // An Argument of @main to be.
  struct Argument {
    std::string name;
    mlir::Type type;
    ir::ValueRole role;
  };

  mlir::InFlightDiagnostic error() const { return mlir::emitError(location_); }
  LogicalResult report(llvm::Error failed) const {
    return error() << llvm::toString(std::move(failed));
  }

  LogicalResult refuseOwnDomain(const Graph& graph) const;
  LogicalResult checkSupported(llvm::ArrayRef<const onnx::NodeProto*> nodes) const override;
  LogicalResult collectInputs(std::vector<Argument>& arguments);
  LogicalResult importInitializers(mlir::ModuleOp module, std::vector<Argument>& arguments);
  LogicalResult importNode(const onnx::NodeProto& node);
  LogicalResult importInner(const onnx::NodeProto& node) override;
  LogicalResult importControlFlow(const onnx::NodeProto& node);
  LogicalResult importConstants(const Graph& graph);
  void findSettings(const Graph& graph);
  bool isParameter(const std::string& name) const {
    return model_.role(name) == InitializerRole::kParameter && !settings_.contains(name);
  }
  LogicalResult compareWithDeclared(const std::string& name, Value value) const;
  LogicalResult finishFunction(mlir::func::FuncOp function);
  void noteDropout(mlir::Block& body) const;
  int64_t versionOf(const onnx::NodeProto& node) const { return model_.opset(node.domain()); }

  mlir::MLIRContext& context_;
  const ModelFile& model_;
  const ImportOptions& options_;
  mlir::OpBuilder builder_;
  mlir::Location location_;
  std::vector<std::pair<std::string, mlir::RankedTensorType>> empty_;  // inputs without elements
  llvm::StringSet<> settings_;  // initializers that an op takes for no weights
  int depth_ = 0;               // of graphs within graphs, where the node is that is imported
  llvm::StringMap<int64_t> occurrences_;                   // by name, of the nodes imported so far
  llvm::StringMap<const onnx::ValueInfoProto*> declared_;  // values other than inputs
};

LogicalResult Importer::collectInputs(std::vector<Argument>& arguments) {
  for (const auto& input : model_.graph().input()) {
    if (model_.hasInitializer(input.name())) {
      continue;  // an old habit: initializers listed as inputs with a default
    }
    if (input.name().empty()) {
      return error() << "input " << arguments.size() << " of the graph has no name";
    }
    if (input.name().find('/') != std::string::npos) {
      mlir::emitWarning(location_)
          << "the input \"" << input.name() << "\" has a '/' in its name: no member of a training "
          << "shard, KEY.INPUT.npy, can be for it; rename it";
    }
    auto type = bindInputType(location_, input, options_.bind);
    if (failed(type)) {
      return failure();
    }
    if (type->getNumElements() == 0) {
      empty_.push_back({input.name(), options_.floats.of(*type)});
      continue;
    }
    arguments.push_back(
        {input.name(), options_.floats.of(*type), {ir::ValueKind::kInput, input.name(), ""}});
  }
  if (arguments.empty() && !empty_.empty()) {
    return error() << "no input has elements: bind dimensions to 0 only for what should be empty, "
                      "as the past of a key-value cache";
  }
  return success();
}

void Importer::findSettings(const Graph& graph) {
  for (const auto* outer : graph.nodes()) {
    visitWithBranches(*outer, [&](const onnx::NodeProto& node) {
      for (int i = 0; i < node.input_size(); ++i) {
        const std::string& name = node.input(i);
        if (!model_.describes(name) &&
            options_.ops->isConstantOperand(node.domain(), node.op_type(), i)) {
          settings_.insert(name);
        }
      }
    });
  }
}

// Parameters become symbols and arguments. Constants are made once @main has a body.
LogicalResult Importer::importInitializers(mlir::ModuleOp module,
                                           std::vector<Argument>& arguments) {
  builder_.setInsertionPointToEnd(module.getBody());
  int index = 0;
  for (const std::string& name : model_.initializerNames()) {
    if (!isParameter(name)) {
      continue;
    }
    auto header = model_.initializerHeader(name);
    if (!header) {
      return report(header.takeError());
    }
    if (!model_.isMissing(name)) {
      auto data = model_.initializer(name);  // checks that its bytes are all there
      if (!data) {
        return report(data.takeError());
      }
    }
    mlir::Type element = elementTypeOf(&context_, header->dataType);
    auto type = mlir::RankedTensorType::get(header->shape, options_.floats.of(element));
    std::string symbol = "p" + std::to_string(index++);
    auto location = mlir::NameLoc::get(builder_.getStringAttr(name));
    ir::ParameterOp::create(builder_, location, symbol, name, type);
    arguments.push_back({name, type, {ir::ValueKind::kParameter, symbol, ""}});
  }
  return success();
}

LogicalResult Importer::importConstants(const Graph& graph) {
  llvm::StringSet<> used;
  for (const auto* node : graph.nodes()) {
    for (llvm::StringRef value : Graph::reads(*node)) {
      used.insert(value);
    }
  }
  for (const auto& output : model_.graph().output()) {
    used.insert(output.name());
  }
  for (const auto& [name, type] : empty_) {
    values[name] = ir::ConstantOp::create(
        builder_, mlir::NameLoc::get(builder_.getStringAttr(name)),
        mlir::DenseElementsAttr::get(type, llvm::ArrayRef<mlir::Attribute>()));
  }
  for (const std::string& name : model_.initializerNames()) {
    if (values.contains(name) || !used.contains(name)) {
      continue;
    }
    auto data = model_.initializer(name);
    if (!data) {
      return report(data.takeError());
    }
    mlir::DenseElementsAttr value = options_.floats.of(toAttribute(&context_, *data));
    values[name] =
        ir::ConstantOp::create(builder_, mlir::NameLoc::get(builder_.getStringAttr(name)), value);
  }
  return success();
}

// Its nodes are made by rewrites, which know what they may hold.
LogicalResult Importer::refuseOwnDomain(const Graph& graph) const {
  const onnx::NodeProto* own = nullptr;
  for (const auto* outer : graph.nodes()) {
    visitWithBranches(*outer, [&](const onnx::NodeProto& node) {
      if (node.domain() == kOrielDomain) own = &node;
    });
  }
  if (!own) return success();
  return mlir::emitError(nodeLocation(&context_, *own))
         << "node \"" << nodeName(*own) << "\" (" << own->op_type() << ") is of the domain \""
         << kOrielDomain << "\", which is Oriel's own: give the op another domain";
}

LogicalResult Importer::checkSupported(llvm::ArrayRef<const onnx::NodeProto*> nodes) const {
  const OpRegistry& registry = *options_.ops;
  llvm::MapVector<llvm::StringRef, std::vector<const onnx::NodeProto*>> unsupported;
  for (const auto* node : nodes) {
    if (!ControlFlow::is(*node) &&  // which is no op, but what its graphs hold
        !registry.find(node->domain(), node->op_type(), versionOf(*node))) {
      unsupported[node->op_type()].push_back(node);
    }
  }
  for (const auto& [op, users] : unsupported) {
    const onnx::NodeProto& first = *users.front();
    auto diagnostic = mlir::emitError(nodeLocation(&context_, first));
    diagnostic << "node \"" << nodeName(first) << "\" uses the op " << op << " (";
    if (!first.domain().empty()) {
      diagnostic << "domain \"" << first.domain() << "\", ";
    }
    const int64_t version = versionOf(first);
    const std::vector<int64_t> versions =
        first.domain().empty() ? registry.versions(op) : std::vector<int64_t>();
    diagnostic << "opset " << version << "), which Oriel ";
    if (!versions.empty() && version < versions.front()) {
      diagnostic << "imports from opset " << versions.front() << " on";
    } else {
      diagnostic << "does not import";
    }
    if (std::string path = modulePath(first); !path.empty()) {
      diagnostic << "; it is in the module " << path;
    }
    if (users.size() > 1) {
      diagnostic << "; " << users.size() - 1 << " more nodes use it";
    }
    std::string nearest = registry.nearest(op);
    auto& note = diagnostic.attachNote();
    note << registry.names().size() << " ops are supported, docs/generated/onnx_ops.md lists them";
    if (!nearest.empty() && nearest != op) {
      note << "; the nearest by name is " << nearest;
    }
    const bool isOfIntegers = op.contains_insensitive("quantize") || op.starts_with("QLinear") ||
                              op == "QGemm" || op == "QAttention" || op.ends_with("Integer") ||
                              op.ends_with("NBits");
    if (isOfIntegers) {
      note << "; the file is quantized for inference: train the one from before, and quantize what "
              "`oriel export` writes";
    } else if (llvm::StringRef(first.domain()).starts_with("com.microsoft")) {
      note << "; ONNX Runtime's optimizer, and others, write such ops: import the file from before";
    }
    if (!first.domain().empty()) {
      note << "; a plugin can import others (--load-plugin, docs/adding_an_op.md)";
    }
  }
  return success(unsupported.empty());
}

LogicalResult Importer::importInner(const onnx::NodeProto& node) {
  ++depth_;
  const LogicalResult imported = importNode(node);
  --depth_;
  return imported;
}

LogicalResult Importer::importControlFlow(const onnx::NodeProto& node) {
  if (failed(
          ControlFlow(node, versionOf(node), builder_, model_, options_.floats, *this).import())) {
    return failure();
  }
  for (const std::string& name : node.output()) {
    if (!name.empty() && failed(compareWithDeclared(name, values.lookup(name)))) return failure();
  }
  return success();
}

LogicalResult Importer::importNode(const onnx::NodeProto& node) {
  if (ControlFlow::is(node)) {
    return importControlFlow(node);
  }
  mlir::Location location = nodeLocation(&context_, node);
  const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  const bool isDefined = onnx::OpSchemaRegistry::Schema(
                             node.op_type(), static_cast<int>(versionOf(node)), domain) != nullptr;
  if (isDefined) {
    try {
      onnx::checker::CheckerContext checkerContext;
      checkerContext.set_ir_version(static_cast<int>(model_.proto().ir_version()));
      std::unordered_map<std::string, int> imports;
      for (const auto& import : model_.proto().opset_import()) {
        imports[import.domain()] = static_cast<int>(import.version());
      }
      checkerContext.set_opset_imports(std::move(imports));
      onnx::checker::check_node(node, checkerContext, onnx::checker::LexicalScopeContext());
    } catch (const std::exception& exception) {
      return mlir::emitError(location) << "node \"" << nodeName(node) << "\" (" << node.op_type()
                                       << ") is not valid ONNX: " << exception.what();
    }
  }
  llvm::SmallVector<Value> operands;
  for (const std::string& name : node.input()) {
    operands.push_back(name.empty() ? Value() : values.lookup(name));
    if (!name.empty() && !operands.back()) {
      return mlir::emitError(location) << "node \"" << nodeName(node) << "\" (" << node.op_type()
                                       << ") reads \"" << name << "\", which nothing has provided";
    }
    if (operands.back() && isSequence(operands.back()) &&
        !options_.ops->takesSequences(node.domain(), node.op_type())) {
      return mlir::emitError(location)
             << "node \"" << nodeName(node) << "\" (" << node.op_type() << ") reads \"" << name
             << "\", which is a sequence of tensors: Oriel knows SequenceAt, ConcatFromSequence "
                "and other ops of sequences for them";
    }
  }
  // What an op's own rule says is about our ops; the note says which node asked for it.
  mlir::ScopedDiagnosticHandler handler(&context_, [&](mlir::Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
      mlir::Diagnostic& note = diagnostic.attachNote(location);
      note << "while importing the node \"" << nodeName(node) << "\" (" << node.op_type()
           << ", opset " << versionOf(node) << ")";
      if (std::string path = modulePath(node); !path.empty()) {
        note << " of the module " << path;
      }
      for (auto [index, operand] : llvm::enumerate(operands)) {
        if (operand) {
          note << (index == 0 ? ", operands " : ", ") << operand.getType();
        }
      }
    }
    return failure();  // on to whoever prints it
  });
  NodeImporter importer(node, versionOf(node), operands, builder_, model_.folder(),
                        options_.floats);
  importer.setOccurrence(occurrences_[nodeName(node)]++);
  NodeHandler handle = options_.ops->find(node.domain(), node.op_type(), versionOf(node));
  const std::string what = "the importer of " + node.op_type();
  if (failed(ir::runWatched(location, what, [&] { return handle(importer); }))) {
    return failure();
  }
  for (auto [index, result] : llvm::enumerate(importer.results())) {
    if (importer.hasResult(index)) {
      values[node.output(index)] = result;
      if (failed(compareWithDeclared(node.output(index), result))) {
        return failure();
      }
    }
  }
  return success();
}

// The exporter's own shape inference is a second opinion on ours. Where it says a number, one of
// the two is wrong; what --bind gives a name may not fit everywhere.
LogicalResult Importer::compareWithDeclared(const std::string& name, Value value) const {
  if (depth_ > 0) {
    return success();  // the graph declares none of these, even if it has the same names
  }
  const onnx::ValueInfoProto* info = declared_.lookup(name);
  if (!info || !info->type().tensor_type().has_shape() || isSequence(value)) {
    return success();
  }
  const auto& dims = info->type().tensor_type().shape().dim();
  auto shape = shapeOf(value);
  bool agrees = dims.size() == static_cast<int>(shape.size()), contradicts = !agrees;
  for (int i = 0; agrees && i < dims.size(); ++i) {
    const int64_t size =
        dims[i].has_dim_value()
            ? dims[i].dim_value()
            : boundSize(&context_, dims[i].dim_param(), options_.bind).value_or(shape[i]);
    agrees = size == shape[i];
    contradicts = !agrees && dims[i].has_dim_value();
  }
  if (agrees) {
    return success();
  }
  std::string declared;
  for (const auto& dim : dims) {
    if (!declared.empty()) declared += ", ";
    declared += dim.has_dim_value() ? std::to_string(dim.dim_value())
                                    : (dim.dim_param().empty() ? "?" : dim.dim_param());
  }
  // Within the graph exporters are known to be wrong (jax2onnx, behind a convolution it
  // transposes), and what follows has to fit its operands in any case.
  const bool isOutput = llvm::any_of(model_.graph().output(),
                                     [&](const auto& output) { return output.name() == name; });
  if (contradicts && isOutput) {
    return mlir::emitError(value.getLoc())
           << "the model declares another shape for \"" << name << "\", [" << declared << "], than "
           << value.getType()
           << ", which its nodes give it; export it again, or clear its value_info";
  }
  mlir::emitWarning(value.getLoc())
      << "the model declares another shape for \"" << name << "\", [" << declared << "], than "
      << value.getType() << ", which its nodes give it";
  return success();
}

LogicalResult Importer::finishFunction(mlir::func::FuncOp function) {
  llvm::SmallVector<Value> outputs;
  llvm::SmallVector<mlir::Type> types;
  std::vector<ir::ValueRole> roles;
  for (const auto& output : model_.graph().output()) {
    outputs.push_back(values.lookup(output.name()));
    if (!outputs.back()) {
      return error() << "nothing has provided the output \"" << output.name() << "\"";
    }
    if (isSequence(outputs.back())) {
      return error() << "the output \"" << output.name()
                     << "\" is a sequence of tensors: export a model that stacks them, or returns "
                        "them one by one";
    }
    types.push_back(outputs.back().getType());
    roles.push_back({ir::ValueKind::kOutput, output.name(), ""});
  }
  mlir::func::ReturnOp::create(builder_, location_, outputs);
  function.setType(builder_.getFunctionType(function.getArgumentTypes(), types));
  ir::setResultRoles(function, roles);
  return success();
}

// An export of the trained model has the file's nodes.
void Importer::noteDropout(mlir::Block& body) const {
  std::set<int64_t> sites;  // a node that gives its mask, too, has two ops
  for (auto dropout : body.getOps<ir::DropoutOp>()) sites.insert(dropout.getSite());
  const size_t count = sites.size();
  if (count == 0) return;
  mlir::emitRemark(location_)
      << count << (count == 1 ? " node drops" : " nodes drop")
      << " elements in training, and none in an evaluation. The ONNX file that `oriel export` "
         "writes still drops them: to deploy, export the PyTorch module again in evaluation mode, "
         "with the weights of `--to safetensors`";
}

mlir::OwningOpRef<mlir::ModuleOp> Importer::run() {
  context_.loadDialect<ir::OrielDialect, mlir::func::FuncDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(location_);
  std::vector<Argument> arguments;
  if (failed(checkBindings(location_, model_.graph(), options_.bind)) ||
      failed(collectInputs(arguments))) {
    return {};
  }
  auto inlined = inlineFunctions(model_, *options_.ops);
  if (!inlined) {
    return (void)report(inlined.takeError()), nullptr;
  }
  auto graph = Graph::create((*inlined)->graph(), model_);
  if (!graph) {
    return (void)report(graph.takeError()), nullptr;
  }
  if (failed(refuseOwnDomain(*graph))) {
    return {};
  }
  replaceMaskedScatters(*graph);
  replaceMaskedRows(*graph);
  replaceRandomChoices(*graph);
  graph->removeDeadNodes();
  findSettings(*graph);
  if (failed(checkSupported(graph->nodes())) || failed(importInitializers(*module, arguments))) {
    return {};
  }

  warnOfExport(location_, model_, *graph, options_.floats,
               [&](llvm::StringRef name) { return settings_.contains(name); });

  mlir::NamedAttrList bound;
  for (const auto& [name, size] : options_.bind) {
    bound.append(name, builder_.getI64IntegerAttr(size));
  }
  (*module)->setAttr("oriel.model_name", builder_.getStringAttr(model_.name()));
  if (const std::vector<std::string> tables = model_.tables(); !tables.empty()) {
    llvm::SmallVector<llvm::StringRef> names(tables.begin(), tables.end());
    (*module)->setAttr("oriel.tables", builder_.getStrArrayAttr(names));
  }
  (*module)->setAttr("oriel.bind", bound.getDictionary(&context_));

  llvm::SmallVector<mlir::Type> argumentTypes;
  for (const Argument& argument : arguments) {
    argumentTypes.push_back(argument.type);
  }
  builder_.setInsertionPointToEnd(module->getBody());
  auto function = mlir::func::FuncOp::create(builder_, location_, "main",
                                             builder_.getFunctionType(argumentTypes, {}));
  mlir::Block* body = function.addEntryBlock();
  builder_.setInsertionPointToStart(body);
  std::vector<ir::ValueRole> roles;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    roles.push_back(argument.role);
    body->getArgument(index).setLoc(mlir::NameLoc::get(builder_.getStringAttr(argument.name)));
    values[argument.name] = body->getArgument(index);
  }
  ir::setArgumentRoles(function, roles);
  if (failed(importConstants(*graph))) {
    return {};
  }
  for (const auto& info : (*inlined)->graph().value_info()) {
    declared_[info.name()] = &info;
  }
  for (const auto& output : (*inlined)->graph().output()) {
    declared_[output.name()] = &output;
  }
  for (const auto* node : graph->nodes()) {
    if (failed(importNode(*node))) {
      return {};
    }
  }
  if (failed(finishFunction(function))) {
    return {};
  }
  removeSequences(*body);
  noteDropout(*body);
  return module;
}

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext& context, const ModelFile& model,
                                              const ImportOptions& options) {
  return Importer(context, model, options).run();
}

}  // namespace oriel
