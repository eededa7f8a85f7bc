#include "tests/onnx_conformance/node_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "frontend/error.h"
#include "frontend/model_file.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace oriel::conformance {
namespace {

namespace fs = std::filesystem;

template <typename Message>
llvm::Expected<std::shared_ptr<Message>> readMessage(const fs::path& path) {
  auto message = std::make_shared<Message>();
  std::ifstream file(path, std::ios::binary);
  if (!file || !message->ParseFromIstream(&file)) {
    return makeError("can't read " + path.string());
  }
  return message;
}

DTypes dtypesOf(const onnx::GraphProto& graph) {
  bool hasFloat = false;
  for (const auto* values : {&graph.input(), &graph.output()}) {
    for (const onnx::ValueInfoProto& value : *values) {
      if (!value.type().has_tensor_type()) {
        return DTypes::kOutOfScope;
      }
      switch (value.type().tensor_type().elem_type()) {
        case onnx::TensorProto::FLOAT:
        case onnx::TensorProto::DOUBLE:
          hasFloat = true;
          break;
        case onnx::TensorProto::INT64:
        case onnx::TensorProto::INT32:
        case onnx::TensorProto::BOOL:
          break;
        default:
          return DTypes::kOutOfScope;
      }
    }
  }
  return hasFloat ? DTypes::kFloat : DTypes::kOther;
}

llvm::Expected<std::vector<NodeTensor>> readTensors(
    const fs::path& folder, const std::string& prefix,
    const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  std::vector<NodeTensor> tensors;
  for (int i = 0; i < values.size(); ++i) {
    auto proto =
        readMessage<onnx::TensorProto>(folder / (prefix + "_" + std::to_string(i) + ".pb"));
    if (!proto) {
      return proto.takeError();
    }
    (*proto)->set_name(values[i].name());
    auto data = readTensor(**proto, "");
    if (!data) {
      return data.takeError();
    }
    tensors.push_back({*proto, *data});
  }
  return tensors;
}

// Whether the model has an operator set that Oriel reads. A test has the version that introduced
// its op's present form; where that is older than Oriel's first and the op has not changed since,
// the model is made one of Oriel's first.
bool hasKnownOpset(onnx::ModelProto& model) {
  for (auto& import : *model.mutable_opset_import()) {
    if (!import.domain().empty() || import.version() >= ModelFile::kMinOpset) {
      continue;
    }
    for (const auto& node : model.graph().node()) {
      const auto* schema = onnx::OpSchemaRegistry::Schema(
          node.op_type(), static_cast<int>(ModelFile::kMinOpset), node.domain());
      if (!schema || schema->SinceVersion() > import.version() || schema->Deprecated()) {
        return false;
      }
    }
    import.set_version(ModelFile::kMinOpset);
  }
  return true;
}

llvm::Expected<NodeCase> readCase(const fs::path& folder) {
  NodeCase read;
  read.name = folder.filename();
  auto model = readMessage<onnx::ModelProto>(folder / "model.onnx");
  if (!model) {
    return model.takeError();
  }
  std::string original = read.name.substr(0, read.name.find("_expanded"));
  if (original == read.name) {
    read.op = (*model)->graph().node(0).op_type();
  } else {
    auto called = readMessage<onnx::ModelProto>(folder.parent_path() / original / "model.onnx");
    if (!called) {
      return called.takeError();
    }
    read.op = (*called)->graph().node(0).op_type();
  }
  read.model = *model;
  read.dtypes = hasKnownOpset(**model) ? dtypesOf((*model)->graph()) : DTypes::kOutOfScope;
  if (read.dtypes == DTypes::kOutOfScope) {
    return read;
  }
  fs::path data = folder / "test_data_set_0";
  auto inputs = readTensors(data, "input", (*model)->graph().input());
  if (!inputs) {
    return inputs.takeError();
  }
  auto outputs = readTensors(data, "output", (*model)->graph().output());
  if (!outputs) {
    return outputs.takeError();
  }
  read.inputs = std::move(*inputs);
  read.outputs = std::move(*outputs);
  return read;
}

}  // namespace

llvm::Expected<std::vector<NodeCase>> readCases(const std::string& folder) {
  std::error_code failed;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.is_directory()) {
      folders.push_back(entry.path());
    }
  }
  if (failed) {
    return makeError("can't list " + folder + ": " + failed.message());
  }
  std::sort(folders.begin(), folders.end());
  std::vector<NodeCase> cases;
  for (const fs::path& path : folders) {
    auto read = readCase(path);
    if (!read) {
      return read.takeError();
    }
    cases.push_back(std::move(*read));
  }
  return cases;
}

}  // namespace oriel::conformance
