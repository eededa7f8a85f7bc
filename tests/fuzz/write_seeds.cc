// Writes the seeds that need ONNX or the plan's schema:
//
//   write_seeds OUT [--graphs F.txt] [--models F.txt] [--onnx M.onnx] [--plan P.oplan] ...
//
// OUT/onnx and OUT/onnx_text get the text models. OUT/onnx also gets the real ones, cut into pieces
// of a few nodes, with the weights as external data in the file of zeros that importModelOf has.
// OUT/plan gets payloads of plans, and of one of two pipeline stages.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include "onnx/shape_inference/implementation.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/two_stage_plan_testing.h"

namespace {

namespace fs = std::filesystem;

std::string readAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  return file.good();
}

// Paragraphs without comments; "#! N" lines set what `line` is told.
template <typename Note, typename Take>
bool eachParagraph(const std::string& path, Note note, Take take) {
  std::ifstream file(path);
  std::string line, paragraph;
  bool ok = file.good();
  auto flush = [&] {
    if (!paragraph.empty()) ok = take(paragraph) && ok;
    paragraph.clear();
  };
  while (std::getline(file, line)) {
    if (line.empty()) {
      flush();
    } else if (line.rfind("#!", 0) == 0) {
      note(line.substr(2));
    } else if (line[0] != '#') {
      paragraph += line + "\n";
    }
  }
  flush();
  return ok;
}

bool writeText(const std::string& text, const std::string& path) {
  onnx::ModelProto model;
  onnx::OnnxParser parser(text.c_str());
  auto status = parser.Parse(model);
  if (!status.IsOK()) {
    std::fprintf(stderr, "write_seeds: %s\n%s\n", status.ErrorMessage().c_str(), text.c_str());
    return false;
  }
  return write(path, model.SerializeAsString());
}

// Values of more than a few elements become external.
void slimDown(onnx::TensorProto& tensor) {
  if (tensor.raw_data().size() <= 64 && tensor.float_data_size() <= 16) return;
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = tensor.add_external_data();
  location->set_key("location");
  location->set_value("weights.bin");
}

class Cutter {
 public:
  explicit Cutter(const onnx::ModelProto& model) : model_(model) {
    const onnx::GraphProto& graph = model.graph();
    for (const auto& info : graph.input()) infos_[info.name()] = &info;
    for (const auto& info : graph.output()) infos_[info.name()] = &info;
    for (const auto& info : graph.value_info()) infos_[info.name()] = &info;
    for (const auto& tensor : graph.initializer()) tensors_[tensor.name()] = &tensor;
  }

  // A model of the nodes first .. first + count - 1; false where a type is not known.
  bool cut(int first, int count, onnx::ModelProto& piece) const {
    piece.set_ir_version(model_.ir_version());
    *piece.mutable_opset_import() = model_.opset_import();
    *piece.mutable_functions() = model_.functions();
    onnx::GraphProto& graph = *piece.mutable_graph();
    graph.set_name(model_.graph().name());
    std::set<std::string> made, given;
    int end = std::min(first + count, model_.graph().node_size());
    for (int i = first; i < end; ++i) {
      onnx::NodeProto& node = *graph.add_node();
      node = model_.graph().node(i);
      keepShortMetadata(node);
      for (const std::string& input : node.input()) {
        if (input.empty() || made.count(input) || !given.insert(input).second) continue;
        if (!provide(input, graph)) return false;
      }
      made.insert(node.output().begin(), node.output().end());
    }
    std::set<std::string> used;
    for (const auto& node : graph.node()) used.insert(node.input().begin(), node.input().end());
    for (const std::string& name : made) {
      if (!name.empty() && !used.count(name)) graph.add_output()->set_name(name);
    }
    return graph.output_size() > 0;
  }

 private:
  bool provide(const std::string& name, onnx::GraphProto& graph) const {
    if (auto tensor = tensors_.find(name); tensor != tensors_.end()) {
      *graph.add_initializer() = *tensor->second;
      slimDown(*graph.mutable_initializer(graph.initializer_size() - 1));
      return true;
    }
    auto info = infos_.find(name);
    if (info == infos_.end()) return false;
    *graph.add_input() = *info->second;
    return true;
  }

  static void keepShortMetadata(onnx::NodeProto& node) {
    onnx::NodeProto kept = node;
    node.clear_metadata_props();
    for (const auto& entry : kept.metadata_props()) {
      if (entry.value().size() <= 200) *node.add_metadata_props() = entry;
    }
  }

  const onnx::ModelProto& model_;
  std::map<std::string, const onnx::ValueInfoProto*> infos_;
  std::map<std::string, const onnx::TensorProto*> tensors_;
};

bool writePieces(const std::string& path, const std::string& stem) {
  onnx::ModelProto model;
  if (!model.ParseFromString(readAll(path))) return false;
  try {  // exporters don't describe every value, and a piece needs the types of its inputs
    onnx::shape_inference::InferShapes(model);
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "write_seeds: %s: %s\n", path.c_str(), exception.what());
    return false;
  }
  Cutter cutter(model);
  int written = 0;
  for (int count : {6, 24}) {
    for (int first = 0; first < model.graph().node_size(); first += count) {
      onnx::ModelProto piece;
      if (!cutter.cut(first, count, piece)) continue;
      if (!write(stem + "_" + std::to_string(count) + "_" + std::to_string(first),
                 piece.SerializeAsString())) {
        return false;
      }
      ++written;
    }
  }
  std::printf("%s: %d pieces of %d nodes\n", path.c_str(), written, model.graph().node_size());
  return written > 0;
}

bool writePlan(const std::string& path, const std::string& out) {
  auto plan = oriel::runtime::ReadPlan(path);
  if (!plan.ok()) {
    std::fprintf(stderr, "write_seeds: %s\n", plan.status().ToString().c_str());
    return false;
  }
  return write(out, plan->SerializeAsString());
}

bool writeStages(const std::string& out) {
  return write(out, oriel::runtime::TwoStagePlan({{2, 1}, 4, 3, 2, false}).SerializeAsString());
}

// Collectives that are started, and a segment for the last microbatch.
bool writeOverlap(const std::string& out) {
  using oriel::runtime::ReduceGradient;
  bool ok = true;
  for (const auto reduce : {ReduceGradient::kInLast, ReduceGradient::kInLastScattered}) {
    const std::string name = reduce == ReduceGradient::kInLast ? "in_place" : "scattered";
    ok = write(out + "_" + name,
               oriel::runtime::SmallTrainingPlan(2, 3, reduce).SerializeAsString()) &&
         ok;
  }
  return ok;
}

bool writeFrom(const std::string& kind, const std::string& path, const std::string& out) {
  std::string stem = fs::path(path).stem().string();
  int number = 0;
  if (kind == "--onnx") {
    std::string folder = fs::path(path).parent_path().filename().string();
    return writePieces(path, out + "/onnx/" + folder + "_" + stem);
  }
  if (kind == "--plan") return writePlan(path, out + "/plan/" + stem);
  std::string opset = " 20";
  auto note = [&](const std::string& text) { opset = text; };
  auto take = [&](const std::string& text) {
    std::string whole = kind == "--models"
                            ? text
                            : "<ir_version: 10, opset_import: [\"\" :" + opset + "]>\n" + text;
    std::string name = stem + "_" + std::to_string(number++);
    return writeText(whole, out + "/onnx/" + name) && write(out + "/onnx_text/" + name, whole);
  };
  return (kind == "--graphs" || kind == "--models") && eachParagraph(path, note, take);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) {
    std::fprintf(stderr, "usage: write_seeds OUT [--graphs|--models|--onnx|--plan FILE] ...\n");
    return 2;
  }
  std::string out = argv[1];
  for (const char* target : {"/onnx", "/onnx_text", "/plan"}) fs::create_directories(out + target);
  if (!writeStages(out + "/plan/two_stages") || !writeOverlap(out + "/plan/overlap")) {
    std::fprintf(stderr, "write_seeds: can't write to %s\n", out.c_str());
    return 1;
  }
  for (int i = 2; i < argc; i += 2) {
    if (!writeFrom(argv[i], argv[i + 1], out)) {
      std::fprintf(stderr, "write_seeds: can't make seeds from %s\n", argv[i + 1]);
      return 1;
    }
  }
  return 0;
}
