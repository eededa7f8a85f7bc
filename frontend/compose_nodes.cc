#include "frontend/compose_nodes.h"

#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

// A constant; of rank 0 if it is a scalar, else 1.
std::string addInt(onnx::GraphProto& graph, const std::string& name, int64_t value,
                   bool isScalar = false) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  if (!isScalar) tensor.add_dims(1);
  tensor.set_raw_data(&value, sizeof(value));
  return name;
}

}  // namespace

onnx::NodeProto* addNode(onnx::GraphProto& graph, const char* op,
                         const std::vector<std::string>& operands, const std::string& result) {
  onnx::NodeProto* node = graph.add_node();
  node->set_op_type(op);
  node->set_name("compose/" + result);
  *node->mutable_input() = {operands.begin(), operands.end()};
  node->add_output(result);
  return node;
}

std::string addMerge(onnx::GraphProto& graph, const std::string& prefix, const MergedTokens& tokens,
                     const std::string& features, const std::string& into) {
  auto named = [&](const char* name) { return prefix + name; };
  auto node = [&](const char* op, const std::vector<std::string>& operands, const char* result) {
    return addNode(graph, op, operands, named(result));
  };
  const std::string number = addInt(graph, named("number"), tokens.id, /*isScalar=*/true);
  onnx::AttributeProto* type = node("Cast", {number}, "id")->add_attribute();
  type->set_name("to");
  type->set_type(onnx::AttributeProto::INT);
  type->set_i(tokens.dataType);
  node("Equal", {tokens.value, named("id")}, "is_image");
  node("Unsqueeze", {named("is_image"), addInt(graph, named("last"), -1)}, "rows");
  node("Shape", {into}, "shape");
  node("Expand", {named("rows"), named("shape")}, "mask");
  node("NonZero", {named("mask")}, "places");
  node("Transpose", {named("places")}, "indices");
  node("Shape", {named("indices")}, "indices_shape");
  node("Gather", {named("indices_shape"), addInt(graph, named("zero"), 0)}, "count");
  node("Reshape", {features, addInt(graph, named("all"), -1)}, "source");
  node("Slice", {named("source"), addInt(graph, named("start"), 0), named("count")}, "updates");
  node("ScatterND", {into, named("indices"), named("updates")}, "merged");
  return named("merged");
}

}  // namespace oriel
