#include "frontend/control_flow.h"

#include "frontend/branches.h"
#include "frontend/error.h"
#include "frontend/graph.h"
#include "frontend/node_location.h"
#include "frontend/sequences.h"
#include "frontend/table_values.h"
#include "frontend/tensor_data.h"
#include "onnx/onnx_pb.h"

namespace oriel {

using llvm::StringRef;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

bool ControlFlow::is(const onnx::NodeProto& node) {
  return Graph::is(&node, "If") || Graph::is(&node, "Loop") || Graph::is(&node, "Scan");
}

ControlFlow::ControlFlow(const onnx::NodeProto& node, int64_t version, mlir::OpBuilder& builder,
                         const ModelFile& model, FloatTypes floats, NodeScope& scope)
    : node_(node),
      version_(version),
      model_(model),
      floats_(floats),
      scope_(scope),
      build_(builder, nodeLocation(builder.getContext(), node)) {}

LogicalResult ControlFlow::import() {
  if (node_.op_type() == "If") {
    return importIf();
  }
  return node_.op_type() == "Loop" ? importLoop() : importScan();
}

mlir::InFlightDiagnostic ControlFlow::error() const {
  auto diagnostic = mlir::emitError(build_.location());
  diagnostic << "node \"" << nodeName(node_) << "\" (" << node_.op_type() << ") ";
  return diagnostic;
}

const onnx::GraphProto* ControlFlow::graphOf(StringRef attribute) const {
  const auto* found = Graph::attribute(node_, attribute);
  if (!found || !found->has_g()) {
    return (void)(error() << "has no " << attribute), nullptr;
  }
  return &found->g();
}

FailureOr<Ints> ControlFlow::intsOf(StringRef attribute, int64_t count, int64_t otherwise) const {
  const auto* found = Graph::attribute(node_, attribute);
  if (!found || found->ints_size() == 0) {
    return Ints(count, otherwise);
  }
  if (found->ints_size() != count) {
    return error() << "has " << found->ints_size() << " " << attribute << ", one for each of "
                   << count << " is expected";
  }
  return Ints(found->ints().begin(), found->ints().end());
}

Value ControlFlow::operand(int index) const {
  StringRef name = Graph::operand(node_, index);
  return name.empty() ? Value() : scope_.values.lookup(name);
}

FailureOr<int64_t> ControlFlow::knownNumber(Value value, StringRef name, StringRef does,
                                            bool isBool) const {
  auto type = value ? llvm::dyn_cast<mlir::RankedTensorType>(value.getType()) : nullptr;
  if (type && (isBool ? !type.getElementType().isInteger(1) : !type.getElementType().isInteger())) {
    return error() << does << " \"" << name << "\", which is " << type << " but must be "
                   << (isBool ? "a boolean" : "an integer");
  }
  const std::optional<Ints> known = type ? computedIntsOf(value) : std::nullopt;
  if (!known || known->size() != 1) {
    auto diagnostic = error();
    diagnostic << does << " \"" << name
               << "\", which must be one value known at compile time, but depends on the inputs' "
                  "or parameters' values: ";
    if (node_.op_type() == "If") {
      diagnostic << "write the choice as torch.where, or fix it before the export";
    } else {
      diagnostic << "loop a fixed number of times, and choose by torch.where what an iteration "
                    "changes";
    }
    return diagnostic;
  }
  return known->front();
}

LogicalResult ControlFlow::importIf() {
  auto taken = knownNumber(operand(0), Graph::operand(node_, 0), "chooses by", /*isBool=*/true);
  if (failed(taken)) {
    return failure();
  }
  const StringRef wanted = *taken ? "then_branch" : "else_branch";
  const onnx::GraphProto* branch = graphOf(wanted);
  if (!branch) {
    return failure();
  }
  if (branch->input_size() != 0) {
    return error() << "has a " << wanted << " with inputs, which nothing gives it";
  }
  if (branch->output_size() != node_.output_size()) {
    return error() << "has " << node_.output_size() << " results, but its " << wanted << " has "
                   << branch->output_size();
  }
  Values results;
  return failed(importGraph(*branch, {}, results)) ? failure() : bind(results);
}

// Iterations end by a count, by a condition that each computes for the next, or by both.
LogicalResult ControlFlow::importLoop() {
  const onnx::GraphProto* body = graphOf("body");
  if (!body) {
    return failure();
  }
  const int carried = std::max(0, node_.input_size() - 2), stacked = node_.output_size() - carried;
  if (body->input_size() != carried + 2 || body->output_size() != 1 + carried + stacked ||
      stacked < 0) {
    return error() << "carries " << carried << " values and has " << node_.output_size()
                   << " results, which doesn't fit its body's " << body->input_size()
                   << " inputs and " << body->output_size() << " results";
  }
  std::optional<int64_t> limit;
  if (Value count = operand(0)) {
    auto known = knownNumber(count, node_.input(0), "iterates", /*isBool=*/false);
    if (failed(known)) {
      return failure();
    }
    limit = *known;
  }
  Value condition = operand(1);
  std::string nameOfCondition = Graph::operand(node_, 1).str();
  Values state;
  for (int i = 0; i < carried; ++i) {
    state.push_back(operand(2 + i));
    if (!state.back()) {
      return error() << "carries no value in place " << i;
    }
  }
  std::vector<Values> pieces(stacked);
  for (int64_t turn = 0; !limit || turn < *limit; ++turn) {
    if (condition) {
      auto goesOn = knownNumber(condition, nameOfCondition, "goes on by", /*isBool=*/true);
      if (failed(goesOn)) {
        return failure();
      }
      if (!*goesOn) break;
    }
    Values inputs{build_.constantOf({turn}, {}), build_.boolConstant({true}, {})}, results;
    inputs.append(state);
    if (failed(importTurn(*body, turn, inputs, results))) {
      return failure();
    }
    condition = results.front();
    nameOfCondition = body->output(0).name();
    state.assign(results.begin() + 1, results.begin() + 1 + carried);
    for (int i = 0; i < stacked; ++i) {
      pieces[i].push_back(results[1 + carried + i]);
    }
  }
  for (const Values& values : pieces) {
    state.push_back(isWanted(state.size()) ? stack(values, 0, /*reversed=*/false) : Value());
  }
  return bind(state);
}

LogicalResult ControlFlow::importScan() {
  if (version_ < 9) {
    return error() << "is of operator set " << version_
                   << ", whose Scan is another: export with operator set 9 or newer";
  }
  const onnx::GraphProto* body = graphOf("body");
  if (!body) {
    return failure();
  }
  const auto* given = Graph::attribute(node_, "num_scan_inputs");
  const int64_t scanned = given ? given->i() : 0, carried = node_.input_size() - scanned;
  const int64_t stacked = node_.output_size() - carried;
  if (scanned < 1 || carried < 0 || stacked < 0 || body->input_size() != node_.input_size() ||
      body->output_size() != node_.output_size()) {
    return error() << "scans " << scanned << " of " << node_.input_size() << " operands and has "
                   << node_.output_size() << " results, which doesn't fit its body's "
                   << body->input_size() << " inputs and " << body->output_size() << " results";
  }
  auto inputAxes = intsOf("scan_input_axes", scanned, 0);
  auto inputDirections = intsOf("scan_input_directions", scanned, 0);
  auto outputAxes = intsOf("scan_output_axes", stacked, 0);
  auto outputDirections = intsOf("scan_output_directions", stacked, 0);
  if (failed(inputAxes) || failed(inputDirections) || failed(outputAxes) ||
      failed(outputDirections)) {
    return failure();
  }
  Values state, sequences;
  std::optional<int64_t> length;
  for (int i = 0; i < node_.input_size(); ++i) {
    Value value = operand(i);
    if (!value || isSequence(value)) {
      return error() << "has no tensor for operand " << i;
    }
    if (i < carried) {
      state.push_back(value);
      continue;
    }
    int64_t& axis = (*inputAxes)[i - carried];
    if (axis < -rankOf(value) || axis >= rankOf(value)) {
      return error() << "scans dimension " << axis << " of " << value.getType();
    }
    axis += axis < 0 ? rankOf(value) : 0;
    const int64_t size = shapeOf(value)[axis];
    if (length && *length != size) {
      return error() << "scans operands of " << *length << " and " << size << " elements";
    }
    length = size;
    sequences.push_back(value);
  }
  std::vector<Values> pieces(stacked);
  for (int64_t turn = 0; turn < *length; ++turn) {
    Values inputs = state, results;
    for (int64_t i = 0; i < scanned; ++i) {
      const int64_t axis = (*inputAxes)[i];
      const int64_t place = (*inputDirections)[i] ? *length - 1 - turn : turn;
      Ints shape(shapeOf(sequences[i]));
      shape.erase(shape.begin() + axis);
      Value piece = build_.reshape(build_.sliceDim(sequences[i], axis, place, place + 1), shape);
      if (!piece) return failure();
      inputs.push_back(piece);
    }
    if (failed(importTurn(*body, turn, inputs, results))) {
      return failure();
    }
    state.assign(results.begin(), results.begin() + carried);
    for (int64_t i = 0; i < stacked; ++i) {
      pieces[i].push_back(results[carried + i]);
    }
  }
  for (auto [values, axis, direction] : llvm::zip_equal(pieces, *outputAxes, *outputDirections)) {
    state.push_back(isWanted(state.size()) ? stack(values, axis, direction != 0) : Value());
  }
  return bind(state);
}

LogicalResult ControlFlow::importTurn(const onnx::GraphProto& body, int64_t turn,
                                      llvm::ArrayRef<Value> inputs, Values& results) {
  const size_t around = scope_.iteration.size();
  scope_.iteration += "[" + std::to_string(turn) + "]";
  const LogicalResult imported = importGraph(body, inputs, results);
  scope_.iteration.resize(around);
  return imported;
}

LogicalResult ControlFlow::importGraph(const onnx::GraphProto& graph, llvm::ArrayRef<Value> inputs,
                                       Values& results) {
  llvm::StringMap<Value>& values = scope_.values;
  std::vector<std::string> own;
  for (auto [input, value] : llvm::zip_equal(graph.input(), inputs)) {
    if (!values.try_emplace(input.name(), value).second) {
      return error() << "gives its body \"" << input.name() << "\", which is known already";
    }
    own.push_back(input.name());
  }
  if (failed(importInitializers(graph, own)) || failed(importNodes(graph, own))) {
    return failure();
  }
  for (const auto& output : graph.output()) {
    results.push_back(values.lookup(output.name()));
    if (!results.back()) {
      return error() << "has the result \"" << output.name() << "\", which nothing provides";
    }
  }
  for (const std::string& value : own) {
    values.erase(value);
  }
  return success();
}

LogicalResult ControlFlow::importInitializers(const onnx::GraphProto& graph,
                                              std::vector<std::string>& own) {
  mlir::MLIRContext* context = build_.builder().getContext();
  for (const auto& tensor : graph.initializer()) {
    auto data = readTensor(tensor, model_.folder());
    if (!data) {
      return error() << llvm::toString(data.takeError());
    }
    if (data->numElements() > 1 && !isFillValue(*data) &&
        llvm::isa<mlir::FloatType>(elementTypeOf(context, data->dataType))) {
      return error() << "has in its graph the initializer \"" << tensor.name()
                     << "\", which may be a parameter: move it to the model's own initializers";
    }
    Value constant = build_.constant(floats_.of(toAttribute(context, *data)));
    if (!scope_.values.try_emplace(tensor.name(), constant).second) {
      return error() << "has in its graph the initializer \"" << tensor.name()
                     << "\", which is known already";
    }
    own.push_back(tensor.name());
  }
  return success();
}

LogicalResult ControlFlow::importNodes(const onnx::GraphProto& graph,
                                       std::vector<std::string>& own) {
  if (!scope_.iteration.empty()) {
    ++scope_.unrolledNodes;  // an empty body is a turn, too
    for (const auto& inner : graph.node()) {
      visitWithBranches(inner, [&](const onnx::NodeProto&) { ++scope_.unrolledNodes; });
    }
  }
  if (scope_.unrolledNodes > kMaxUnrolledNodes) {
    return error() << "makes more than " << kMaxUnrolledNodes
                   << " nodes of the model's loops, whose iterations are unrolled: loop over fewer "
                      "positions, or compute them at once";
  }
  std::vector<const onnx::NodeProto*> nodes;
  for (const auto& inner : graph.node()) {
    nodes.push_back(&inner);
  }
  if (failed(scope_.checkSupported(nodes))) {
    return failure();
  }
  for (const auto* inner : nodes) {
    for (StringRef value : Graph::reads(*inner)) {
      if (!scope_.values.contains(value)) {
        return error() << "has in its graph a reader of \"" << value
                       << "\" before anything provides it";
      }
    }
    for (const std::string& value : inner->output()) {
      if (scope_.values.contains(value)) {
        return error() << "has in its graph a node that produces \"" << value
                       << "\", which is known already";
      }
      if (!value.empty()) {
        own.push_back(value);
      }
    }
    if (scope_.iteration.empty()) {
      if (failed(scope_.importInner(*inner))) return failure();
      continue;
    }
    onnx::NodeProto named = *inner;
    named.set_name(nodeName(*inner) + scope_.iteration);
    if (failed(scope_.importInner(named))) return failure();
  }
  return success();
}

Value ControlFlow::stack(llvm::ArrayRef<Value> pieces, int64_t dim, bool reversed) {
  if (pieces.empty()) {
    return (void)(error() << "has no iteration, so that nothing says the shape of what its body "
                             "would have given"),
           Value();
  }
  if (!llvm::all_of(pieces, [&](Value piece) {
        return !isSequence(piece) && piece.getType() == pieces.front().getType();
      })) {
    return (void)(error() << "stacks what its iterations give, which is not all of one type"),
           Value();
  }
  const int64_t rank = rankOf(pieces.front()) + 1;
  if (dim < -rank || dim >= rank) {
    return (void)(error() << "stacks along dimension " << dim << " of " << rank), Value();
  }
  dim += dim < 0 ? rank : 0;
  Ints shape(shapeOf(pieces.front()));
  shape.insert(shape.begin() + dim, 1);
  Values rows;
  for (Value piece : pieces) {
    rows.push_back(build_.reshape(piece, shape));
  }
  if (reversed) std::reverse(rows.begin(), rows.end());
  return build_.concat(rows, dim);
}

bool ControlFlow::isWanted(int result) const { return !node_.output(result).empty(); }

LogicalResult ControlFlow::bind(llvm::ArrayRef<Value> results) {
  for (auto [index, result] : llvm::enumerate(results)) {
    if (!isWanted(index)) continue;
    if (!result) return failure();
    scope_.values[node_.output(index)] = result;
  }
  return success();
}

}  // namespace oriel
