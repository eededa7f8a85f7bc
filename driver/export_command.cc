// `oriel export`: a checkpoint's weights as ONNX or safetensors.
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/sha256.h"
#include "frontend/export.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify.h"
#include "runtime/train/checkpoint_reader.h"
#include "runtime/train/safetensors.h"

namespace oriel::driver {

namespace {

struct Arguments {
  std::string plan;
  std::string checkpoint;
  std::string format;
  std::string output;
  std::string model;
};

struct Weights {
  std::vector<runtime::NamedSpec> specs;
  std::vector<std::vector<char>> values;  // as in `specs`
};

absl::StatusOr<Weights> readWeights(const plan::Plan& plan,
                                    const runtime::CheckpointReader& checkpoint) {
  Weights weights;
  for (const plan::Parameter& parameter : plan.parameters()) {
    weights.specs.push_back({parameter.name(), runtime::FromPlan(parameter.global())});
  }
  ORIEL_RETURN_IF_ERROR(checkpoint.CheckModel(plan.model_name(), weights.specs));
  for (const runtime::NamedSpec& parameter : weights.specs) {
    std::vector<char>& value = weights.values.emplace_back(parameter.spec.bytes());
    ORIEL_RETURN_IF_ERROR(checkpoint.ReadParameter(parameter.name, parameter.spec, value.data()));
  }
  return weights;
}

// The file that the plan was compiled from, and no other.
absl::StatusOr<std::string> findModel(const Arguments& arguments, const plan::Provenance& from) {
  const std::string& path = arguments.model.empty() ? from.model_path() : arguments.model;
  absl::StatusOr<std::string> sha256 = sha256OfFile(path);
  if (!sha256.ok()) {
    return absl::NotFoundError(absl::StrCat(std::string(sha256.status().message()),
                                            "; say where the model that the plan was compiled "
                                            "from is now: --model MODEL.onnx"));
  }
  if (*sha256 != from.model_sha256()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is not the file that the plan was compiled from (its SHA-256 begins ",
                     sha256->substr(0, 16), ", the plan's ", from.model_sha256().substr(0, 16),
                     "); give that one with --model, or compile the plan again"));
  }
  return path;
}

absl::Status writeOnnx(const Arguments& arguments, const plan::Plan& plan, const Weights& weights) {
  ORIEL_ASSIGN_OR_RETURN(std::string model, findModel(arguments, plan.provenance()));
  TrainedWeights trained;
  for (size_t i = 0; i < weights.specs.size(); ++i) {
    // Frozen ones that the file has are what they were; it keeps them, in whatever type.
    const plan::Parameter& from = plan.parameters(static_cast<int>(i));
    if (!from.trainable() && !runtime::IsMade(from.initial())) continue;
    const runtime::NamedSpec& parameter = weights.specs[i];
    if (parameter.spec.dtype != runtime::DType::kF32) {
      return absl::UnimplementedError(absl::StrCat("parameter \"", parameter.name, "\" is ",
                                                   parameter.spec.ToString(),
                                                   "; only f32 can be exported"));
    }
    trained[parameter.name] = llvm::ArrayRef<float>(
        reinterpret_cast<const float*>(weights.values[i].data()), parameter.spec.num_elements());
  }
  return toStatus(exportModel(model, trained, arguments.output));
}

absl::Status writeSafetensors(const Arguments& arguments, const Weights& weights) {
  std::vector<runtime::NamedTensor> tensors;
  for (size_t i = 0; i < weights.specs.size(); ++i) {
    tensors.push_back({weights.specs[i].name, weights.specs[i].spec, weights.values[i].data()});
  }
  return runtime::WriteSafetensors(arguments.output, tensors);
}

absl::Status exportWeights(const Arguments& arguments) {
  ORIEL_ASSIGN_OR_RETURN(plan::Plan plan, runtime::ReadPlan(arguments.plan));
  if (absl::Status sound = runtime::VerifyPlan(plan); !sound.ok()) {
    return runtime::Annotate(sound, arguments.plan);
  }
  ORIEL_ASSIGN_OR_RETURN(runtime::CheckpointReader checkpoint,
                         runtime::CheckpointReader::Open(arguments.checkpoint));
  progress("reading " + checkpoint.path());
  ORIEL_ASSIGN_OR_RETURN(Weights weights, readWeights(plan, checkpoint));
  progress("writing " + arguments.output);
  ORIEL_RETURN_IF_ERROR(arguments.format == "onnx" ? writeOnnx(arguments, plan, weights)
                                                   : writeSafetensors(arguments, weights));
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
  command->add_option("-o,--output", arguments->output, "The file to write")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--model", arguments->model,
                   "Where the ONNX file is now, if it was moved since `oriel compile`")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  oriel export model.oplan --checkpoint checkpoints/ --to onnx -o trained.onnx\n"
      "  oriel export model.oplan --checkpoint checkpoints/step-00000500 --to safetensors -o "
      "w.safetensors");
  command->callback([=] { *run = [arguments] { return exportWeights(*arguments); }; });
}

}  // namespace oriel::driver
