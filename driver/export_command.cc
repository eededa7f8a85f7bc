// `oriel export`: a checkpoint's weights as ONNX or safetensors.
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/plan_source.h"
#include "frontend/compose.h"
#include "frontend/export.h"
#include "runtime/base/output_path.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify.h"
#include "runtime/train/checkpoint_reader.h"
#include "runtime/train/convert.h"
#include "runtime/train/safetensors.h"

namespace oriel::driver {

namespace {

struct Arguments {
  std::string plan;
  std::string checkpoint;
  std::string format;
  std::string output;
  std::string model;
  std::vector<std::string> parts;
};

// The parameters as files have them, in the plan's order.
std::vector<runtime::NamedSpec> parametersInFiles(const plan::Plan& plan) {
  std::set<std::string> known;
  std::vector<runtime::NamedSpec> specs;
  for (const plan::Parameter& parameter : plan.parameters()) {
    const std::string& name = runtime::NameInFiles(parameter);
    if (known.insert(name).second) specs.push_back({name, runtime::FileSpec(plan, parameter)});
  }
  return specs;
}

// What a plan makes of a frozen parameter's values.
float unrounded(float value) { return value; }
float roundedToBFloat16(float value) {
  using runtime::DType;
  uint16_t bits = 0;
  float rounded = value;
  const bool isRounded =
      runtime::ConvertElements(DType::kF32, &value, DType::kBF16, &bits, 1).ok() &&
      runtime::ConvertElements(DType::kBF16, &bits, DType::kF32, &rounded, 1).ok();
  return isRounded ? rounded : value;
}

// What a checkpoint has of the model.
struct Weights {
  TrainedWeights trained;
  std::map<std::string, runtime::Shape> shapes;
};

Weights weightsOf(const plan::Plan& plan, const runtime::CheckpointReader& checkpoint) {
  Weights weights;
  for (const plan::Parameter& parameter : plan.parameters()) {
    const bool isFrozen = !parameter.trainable();
    if (isFrozen && !runtime::IsFloat(runtime::FromPlan(parameter.global()).dtype)) continue;
    const std::string& name = runtime::NameInFiles(parameter);
    weights.shapes[name] = runtime::ShapeInFiles(parameter);
    // An earlier plan may have trained what this one keeps.
    if (isFrozen && !runtime::IsMade(parameter.initial())) {
      const bool isNarrow = parameter.global().dtype() == plan::BF16;
      weights.trained.untrained[name] = isNarrow ? &roundedToBFloat16 : &unrounded;
    }
    weights.trained.elements[name] = runtime::NumElements(weights.shapes[name]);
  }
  weights.trained.read = [shapes = weights.shapes, &checkpoint](
                             const std::string& name, llvm::MutableArrayRef<float> values) {
    const runtime::TensorSpec spec{runtime::DType::kF32, shapes.at(name)};
    absl::Status status =
        checkpoint.ReadParameter(name, spec, runtime::WholeBox(spec.shape), values.data());
    return status.ok() ? llvm::Error::success()
                       : llvm::createStringError(std::string(status.message()));
  };
  return weights;
}

// Of a part of a composed model, under the names that its file has.
TrainedWeights weightsOfPart(const Weights& whole, const std::vector<TiedWeight>& tied,
                             const std::string& part) {
  const std::string prefix = part + ".";
  std::map<std::string, TiedWeight> sources;  // by name in the part
  for (const auto& [name, shape] : whole.shapes) {
    if (absl::StartsWith(name, prefix)) sources[name.substr(prefix.size())] = {name, name, false};
  }
  for (const TiedWeight& one : tied) {
    if (absl::StartsWith(one.name, prefix) && whole.shapes.count(one.source) > 0) {
      sources[one.name.substr(prefix.size())] = one;
    }
  }
  TrainedWeights weights;
  for (const auto& [name, source] : sources) {
    weights.elements[name] = whole.trained.elements.at(source.source);
    auto untrained = whole.trained.untrained.find(source.source);
    if (untrained != whole.trained.untrained.end()) weights.untrained[name] = untrained->second;
  }
  weights.read = [&whole, sources](const std::string& name,
                                   llvm::MutableArrayRef<float> values) -> llvm::Error {
    const TiedWeight& source = sources.at(name);
    if (!source.isTransposed) return whole.trained.read(source.source, values);
    std::vector<float> original(values.size());
    if (llvm::Error error = whole.trained.read(source.source, original)) return error;
    const runtime::Shape& shape = whole.shapes.at(source.source);
    for (int64_t row = 0; row < shape[0]; ++row) {
      for (int64_t column = 0; column < shape[1]; ++column) {
        values[column * shape[0] + row] = original[row * shape[1] + column];
      }
    }
    return llvm::Error::success();
  };
  return weights;
}

absl::Status writeParts(const Arguments& arguments, const std::string& model,
                        const Weights& weights) {
  llvm::Expected<ModelFile> composed = ModelFile::open(model);
  if (!composed) return toStatus(composed.takeError());
  llvm::Expected<std::vector<TiedWeight>> tied = tiedWeights(*composed);
  if (!tied) return toStatus(tied.takeError());
  std::map<std::string, std::string> outputs;  // by part
  for (const std::string& part : arguments.parts) {
    const std::filesystem::path path(part);
    if (!absl::c_linear_search(composed->parts(), path.stem().string())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", part, "' is no part of ", model,
          composed->parts().empty()
              ? ", which `oriel compose` has not made"
              : absl::StrCat(", whose parts are ", absl::StrJoin(composed->parts(), ", "))));
    }
    if (llvm::Expected<ModelFile> file = ModelFile::open(part); !file) {
      return toStatus(file.takeError());
    }
    outputs[part] = std::filesystem::path(arguments.output) / path.filename();
    ORIEL_RETURN_IF_ERROR(runtime::CheckIsNotRead(outputs[part], arguments.parts));
  }
  for (const auto& [part, output] : outputs) {
    progress("writing " + output);
    const TrainedWeights own = weightsOfPart(weights, *tied, std::filesystem::path(part).stem());
    ORIEL_RETURN_IF_ERROR(toStatus(exportModel(part, own, output)));
  }
  return absl::OkStatus();
}

absl::Status writeOnnx(const Arguments& arguments, const plan::Plan& plan,
                       const runtime::CheckpointReader& checkpoint) {
  ORIEL_ASSIGN_OR_RETURN(std::string model,
                         modelOfPlan(arguments.plan, plan.provenance(), arguments.model));
  const Weights weights = weightsOf(plan, checkpoint);
  if (!arguments.parts.empty()) return writeParts(arguments, model, weights);
  // The plan knows the model by its contents.
  ORIEL_RETURN_IF_ERROR(runtime::CheckIsNotRead(arguments.output, {model}));
  return toStatus(exportModel(model, weights.trained, arguments.output));
}

absl::Status writeSafetensors(const Arguments& arguments, const plan::Plan& plan,
                              const runtime::CheckpointReader& checkpoint) {
  const std::vector<runtime::NamedSpec> specs = parametersInFiles(plan);
  ORIEL_ASSIGN_OR_RETURN(runtime::SafetensorsWriter writer,
                         runtime::SafetensorsWriter::Create(arguments.output, specs));
  std::vector<char> joined;  // one that lies in several shards
  for (const auto& [name, spec] : specs) {
    const char* data = checkpoint.FindWhole(name, spec);
    if (data == nullptr) {
      joined.resize(spec.bytes());
      ORIEL_RETURN_IF_ERROR(
          checkpoint.ReadParameter(name, spec, runtime::WholeBox(spec.shape), joined.data()));
      data = joined.data();
    }
    ORIEL_RETURN_IF_ERROR(writer.Append(data, spec.bytes()));
  }
  return writer.Finish();
}

absl::Status exportWeights(const Arguments& arguments) {
  if (!arguments.parts.empty() && arguments.format != "onnx") {
    return usageError("--parts: parts of a model are written --to onnx");
  }
  ORIEL_ASSIGN_OR_RETURN(plan::Plan plan, runtime::ReadPlan(arguments.plan));
  if (absl::Status sound = runtime::VerifyPlan(plan); !sound.ok()) {
    return runtime::Annotate(sound, arguments.plan);
  }
  ORIEL_ASSIGN_OR_RETURN(runtime::CheckpointReader checkpoint,
                         runtime::CheckpointReader::Open(arguments.checkpoint));
  std::vector<std::string> inputs = checkpoint.files();
  for (std::string& file : runtime::FilesOfPlan(plan, arguments.plan)) {
    inputs.push_back(std::move(file));
  }
  ORIEL_RETURN_IF_ERROR(runtime::CheckIsNotRead(arguments.output, inputs));
  progress("reading " + checkpoint.path());
  // The checkpoint must be of the plan's model.
  ORIEL_RETURN_IF_ERROR(checkpoint.CheckModel(plan.model_name(), parametersInFiles(plan)));
  if (arguments.parts.empty()) progress("writing " + arguments.output);
  ORIEL_RETURN_IF_ERROR(arguments.format == "onnx" ? writeOnnx(arguments, plan, checkpoint)
                                                   : writeSafetensors(arguments, plan, checkpoint));
  std::printf("wrote %s with the weights of %s (step %lld)\n", arguments.output.c_str(),
              checkpoint.path().c_str(), static_cast<long long>(checkpoint.index().progress.step));
  return absl::OkStatus();
}

}  // namespace

void addExportCommand(CLI::App& app, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("export", "Writes trained weights as ONNX or safetensors");
  command->add_option("PLAN", arguments->plan, "The plan (.oplan)")->required()->type_name("");
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "A step-NNNNNNNN folder, or the folder of several: then the latest")
      ->required()
      ->type_name("DIR");
  command
      ->add_option(
          "--to", arguments->format,
          "onnx: the model that was compiled, with these weights; safetensors: the weights")
      ->required()
      ->check(CLI::IsMember({"onnx", "safetensors"}));
  command
      ->add_option("-o,--output", arguments->output, "The file to write; with --parts, the folder")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--parts", arguments->parts,
                   "The files that `oriel compose` joined: writes each with its weights")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("FILE,..");
  command
      ->add_option("--model", arguments->model,
                   "Where the ONNX file is now, if it was moved since `oriel compile`")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  oriel export model.oplan --checkpoint checkpoints/ --to onnx -o trained.onnx\n"
      "  oriel export model.oplan --checkpoint checkpoints/step-00000500 --to safetensors -o "
      "w.safetensors\n"
      "  oriel export model.oplan --checkpoint checkpoints/ --to onnx -o trained/ \\\n"
      "      --parts vision_encoder.onnx,embed_tokens.onnx,decoder_model_merged.onnx");
  command->callback([=] { *run = [arguments] { return exportWeights(*arguments); }; });
}

}  // namespace oriel::driver
