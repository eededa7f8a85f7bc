#include "frontend/compose_part.h"

#include <algorithm>

#include "frontend/dimension_names.h"
#include "frontend/error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using llvm::StringRef;

// With each name of an expression as `rename` has it; see bind_inputs.h for what expressions are.
std::string renamedIn(StringRef dimension, llvm::function_ref<std::string(StringRef)> rename) {
  std::string text;
  while (!dimension.empty()) {
    const StringRef name = leadingDimensionName(dimension);
    text += name.empty() ? dimension.take_front().str() : rename(name);
    dimension = dimension.drop_front(std::max<size_t>(name.size(), 1));
  }
  return text;
}

}  // namespace

std::string nameOfPart(const ModelFile& model) { return llvm::sys::path::stem(model.path()).str(); }

std::string fingerprint(const ModelFile& model) {
  std::string text;
  for (const auto& node : model.graph().node()) {
    text += node.SerializeAsString();
  }
  for (const auto& tensor : model.graph().initializer()) {
    text += tensor.name() + "\n" + std::to_string(tensor.data_type());
    for (int64_t dim : tensor.dims()) text += "," + std::to_string(dim);
  }
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, /*Width=*/16);
}

llvm::Expected<onnx::TensorProto> constantFor(const onnx::ValueInfoProto& input,
                                              const std::string& value) {
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  onnx::TensorProto tensor;
  tensor.set_name(input.name());
  tensor.set_data_type(type.elem_type());
  for (const auto& dim : type.shape().dim()) {
    if (dim.dim_value() != 1) return makeError("it has more than one element, or may have");
    tensor.add_dims(1);
  }
  const StringRef text = value;
  int64_t number = 0;
  float real = 0;
  switch (type.elem_type()) {
    case onnx::TensorProto::BOOL:
      if (text != "true" && text != "false") return makeError("write true or false");
      tensor.add_int32_data(text == "true" ? 1 : 0);
      break;
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::INT64:
      if (text.getAsInteger(10, number)) return makeError("write a whole number");
      if (type.elem_type() == onnx::TensorProto::INT64) {
        tensor.add_int64_data(number);
      } else if (llvm::isInt<32>(number)) {
        tensor.add_int32_data(static_cast<int32_t>(number));
      } else {
        return makeError("it has 32 bits");
      }
      break;
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16: {
      if (!llvm::to_float(text, real)) return makeError("write a number");
      std::vector<char> storage;
      auto bytes = encodeFloats(real, type.elem_type(), storage);
      if (!bytes) return makeError("it is beyond " + dataTypeName(type.elem_type()));
      tensor.set_raw_data(bytes->data(), bytes->size());
      break;
    }
    default:
      return makeError("it is " + dataTypeName(type.elem_type()) +
                       ", expected bool, int32, int64 or a float of up to 32 bits");
  }
  return tensor;
}

std::string Part::newName(const std::string& old) const {
  if (old.empty()) return old;
  auto known = values.find(old);
  return known == values.end() ? name + "/" + old : known->second;
}

void Part::rename(onnx::NodeProto& node) const {
  // As TorchScript's exporter names nodes, by the path of their module.
  if (!node.name().empty()) {
    node.set_name("/" + name + (node.name().front() == '/' ? "" : "/") + node.name());
  }
  for (std::string& value : *node.mutable_input()) value = newName(value);
  for (std::string& value : *node.mutable_output()) value = newName(value);
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) rename(*attribute.mutable_g());
    for (auto& branch : *attribute.mutable_graphs()) rename(branch);
  }
}

void Part::rename(onnx::GraphProto& branch) const {
  auto renameAll = [&](auto& named) {
    for (auto& one : named) one.set_name(newName(one.name()));
  };
  renameAll(*branch.mutable_input());
  renameAll(*branch.mutable_output());
  renameAll(*branch.mutable_value_info());
  renameAll(*branch.mutable_initializer());
  for (auto& node : *branch.mutable_node()) rename(node);
}

void Part::renameDimensions(onnx::TypeProto& type,
                            const std::vector<ComposeOptions::Dimension>& dimensions,
                            std::set<std::string>& found) const {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return;
  auto newDimension = [&](StringRef old) {
    for (const auto& [from, to] : dimensions) {
      if (from != name + "." + old.str()) continue;
      found.insert(from);
      return to;
    }
    return old.str();
  };
  for (auto& dim : *type.mutable_tensor_type()->mutable_shape()->mutable_dim()) {
    if (dim.dim_param().empty()) continue;
    const std::string whole = newDimension(dim.dim_param());
    const bool isRenamed = whole != dim.dim_param();
    dim.set_dim_param(isRenamed ? whole : renamedIn(dim.dim_param(), newDimension));
  }
}

}  // namespace oriel
