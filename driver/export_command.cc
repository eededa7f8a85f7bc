// `oriel export`: a checkpoint's weights as ONNX or safetensors, or its adapters for PEFT.
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/peft_adapter.h"
#include "driver/plan_source.h"
#include "frontend/export.h"
#include "frontend/export_parts.h"
#include "frontend/merge_adapters.h"
#include "runtime/base/files.h"
#include "runtime/base/output_path.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/checkpoint/safetensors.h"
#include "runtime/train/convert.h"

namespace oriel::driver {

namespace {

struct Arguments {
  std::string plan;
  std::string checkpoint;
  std::string format;
  std::string output;
  std::string model;
  std::vector<std::string> parts;
  bool mergesAdapters = false;
  std::string renamedModules;  // "OLD=NEW"
  std::string base;
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

TrainedWeights weightsOf(const plan::Plan& plan, const runtime::CheckpointReader& checkpoint) {
  TrainedWeights trained;
  std::map<std::string, runtime::Shape> shapes;
  for (const plan::Parameter& parameter : plan.parameters()) {
    const bool isFrozen = !parameter.trainable();
    if (isFrozen && !runtime::IsFloat(runtime::FromPlan(parameter.global()).dtype)) continue;
    const std::string& name = runtime::NameInFiles(parameter);
    shapes[name] = runtime::ShapeInFiles(parameter);
    // An earlier plan may have trained what this one keeps.
    if (isFrozen && !runtime::IsMade(parameter.initial())) {
      const bool isNarrow = parameter.global().dtype() == plan::BF16;
      trained.untrained[name] = isNarrow ? &roundedToBFloat16 : &unrounded;
    }
    trained.elements[name] = runtime::NumElements(shapes[name]);
  }
  trained.read = [shapes = std::move(shapes), &checkpoint](const std::string& name,
                                                           llvm::MutableArrayRef<float> values) {
    const runtime::TensorSpec spec{runtime::DType::kF32, shapes.at(name)};
    absl::Status status =
        checkpoint.ReadParameter(name, spec, runtime::WholeBox(spec.shape), values.data());
    return status.ok() ? llvm::Error::success()
                       : llvm::createStringError(std::string(status.message()));
  };
  return trained;
}

// What is written, as ONNX has it: a model, its weights, and what else was read for them.
struct OnnxSource {
  std::string model;
  TrainedWeights weights;
  std::optional<ModelFile> base;       // of adapters
  std::vector<std::string> baseFiles;  // that it consists of
};

// The model that adapters were added to: where the adapted one says, or --base.
absl::StatusOr<ModelFile> openBase(const Arguments& arguments, const ModelFile& adapted,
                                   const Adapters& adapters) {
  namespace fs = std::filesystem;
  const fs::path noted = fs::path(adapted.folder().str()) / adapters.base;
  const std::string path = arguments.base.empty() ? noted.string() : arguments.base;
  if (arguments.base.empty() && !fs::exists(noted)) {
    return absl::NotFoundError(absl::StrCat(
        path, ": not there any more, the model that adapters were added to; --base names it"));
  }
  llvm::Expected<ModelFile> base = ModelFile::open(path);
  if (!base) return toStatus(base.takeError());
  return std::move(*base);
}

absl::StatusOr<Adapters> adaptersOfModel(const ModelFile& model) {
  llvm::Expected<Adapters> adapters = adaptersOf(model);
  if (!adapters) return toStatus(adapters.takeError());
  if (adapters->all.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(model.path().str(), " has no adapters that `oriel adapt` has added"));
  }
  return std::move(*adapters);
}

// In the place of an adapted model and its weights, its base and that one's.
absl::Status mergeInto(const Arguments& arguments, const TrainedWeights& adaptedWeights,
                       OnnxSource& source) {
  llvm::Expected<ModelFile> adapted = ModelFile::open(source.model);
  if (!adapted) return toStatus(adapted.takeError());
  ORIEL_ASSIGN_OR_RETURN(const Adapters adapters, adaptersOfModel(*adapted));
  ORIEL_ASSIGN_OR_RETURN(source.base, openBase(arguments, *adapted, adapters));
  llvm::Expected<TrainedWeights> merged = mergeAdapters(adapters, *source.base, adaptedWeights);
  if (!merged) return toStatus(merged.takeError());
  source.baseFiles = source.base->dataFiles();
  source.baseFiles.push_back(source.model);
  source.model = source.base->path().str();
  source.weights = std::move(*merged);
  return absl::OkStatus();
}

// `inputs`: what is read, beside the model and its parts.
absl::Status writeOnnx(const Arguments& arguments, const plan::Plan& plan,
                       const runtime::CheckpointReader& checkpoint,
                       std::vector<std::string> inputs) {
  OnnxSource source;
  ORIEL_ASSIGN_OR_RETURN(source.model,
                         modelOfPlan(arguments.plan, plan.provenance(), arguments.model));
  const TrainedWeights trained = weightsOf(plan, checkpoint);
  source.weights = trained;
  if (arguments.mergesAdapters) {
    ORIEL_RETURN_IF_ERROR(mergeInto(arguments, trained, source));
  }
  // The plan knows the model by its contents.
  inputs.push_back(source.model);
  absl::c_copy(source.baseFiles, std::back_inserter(inputs));
  std::vector<PlannedExport> exports;
  if (arguments.parts.empty()) {
    if (runtime::IsStream(arguments.output)) {
      return absl::InvalidArgumentError(
          absl::StrCat("can't write '", arguments.output,
                       "': it is no file, as a model is; give a file's name"));
    }
    ORIEL_ASSIGN_OR_RETURN(const std::string file, runtime::FollowLinks(arguments.output));
    llvm::Expected<PlannedExport> planned = planExport(source.model, source.weights, file);
    if (!planned) return toStatus(planned.takeError());
    exports.push_back(std::move(*planned));
  } else {
    llvm::Expected<ModelFile> composed = ModelFile::open(source.model);
    if (!composed) return toStatus(composed.takeError());
    if (llvm::Expected<Adapters> adapters = adaptersOf(*composed); !adapters) {
      return toStatus(adapters.takeError());
    } else if (!adapters->all.empty()) {
      return usageError("--parts: the parts have no adapters; add --merge-adapters");
    }
    absl::c_copy(composed->dataFiles(), std::back_inserter(inputs));
    llvm::Expected<std::vector<PlannedExport>> planned =
        planParts(*composed, arguments.parts, source.weights, arguments.output);
    if (!planned) return toStatus(planned.takeError());
    exports = std::move(*planned);
  }
  for (const PlannedExport& one : exports) {
    for (const auto& [target, from] : one.files) inputs.push_back(from);
  }
  for (const PlannedExport& one : exports) {
    for (const auto& [target, from] : one.files) {
      ORIEL_RETURN_IF_ERROR(runtime::CheckIsNotRead(target, inputs));
    }
  }
  for (const PlannedExport& one : exports) {
    progress("writing " + one.files.back().first);
    ORIEL_RETURN_IF_ERROR(toStatus(one.write()));
  }
  return absl::OkStatus();
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

// Trained parameters that the form has no place for.
void warnOfOthers(const plan::Plan& plan, const Adapters& adapters) {
  std::set<std::string> known;
  for (const Adapter& adapter : adapters.all) {
    known.insert(adapter.a);
    known.insert(adapter.b);
  }
  std::vector<std::string> others;
  for (const plan::Parameter& parameter : plan.parameters()) {
    const std::string& name = runtime::NameInFiles(parameter);
    if (parameter.trainable() && known.insert(name).second) others.push_back(name);
  }
  if (others.empty()) return;
  printWarning(absl::StrCat(
      "the plan trains '", others.front(), "'",
      others.size() > 1 ? absl::StrCat(" and ", others.size() - 1, " more") : "",
      ", which is no adapter and is not written; --to safetensors writes all parameters"));
}

absl::Status writePeft(const Arguments& arguments, const plan::Plan& plan,
                       const runtime::CheckpointReader& checkpoint) {
  ORIEL_ASSIGN_OR_RETURN(const std::string path,
                         modelOfPlan(arguments.plan, plan.provenance(), arguments.model));
  llvm::Expected<ModelFile> model = ModelFile::open(path);
  if (!model) return toStatus(model.takeError());
  ORIEL_ASSIGN_OR_RETURN(const Adapters adapters, adaptersOfModel(*model));
  warnOfOthers(plan, adapters);
  ORIEL_ASSIGN_OR_RETURN(const ModulePrefix prefix, parseModulePrefix(arguments.renamedModules));
  return writePeftAdapter(adapters, checkpoint, prefix, arguments.output);
}

absl::Status exportWeights(const Arguments& arguments) {
  if (!arguments.parts.empty() && arguments.format != "onnx") {
    return usageError("--parts: parts of a model are written --to onnx");
  }
  if (arguments.mergesAdapters && arguments.format != "onnx") {
    return usageError("--merge-adapters: a model with merged weights is written --to onnx");
  }
  if (!arguments.renamedModules.empty() && arguments.format != "peft") {
    return usageError("--rename-modules: needs --to peft");
  }
  if (auto prefix = parseModulePrefix(arguments.renamedModules); !prefix.ok()) {
    return prefix.status();
  }
  if (!arguments.base.empty() && !arguments.mergesAdapters) {
    return usageError("--base: needs --merge-adapters");
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
  if (const std::string other = checkpoint.OtherModelFile(plan); !other.empty()) {
    printWarning(other);
  }
  ORIEL_RETURN_IF_ERROR(checkpoint.CheckData(/*with_optimizer=*/false, /*rank=*/0, /*ranks=*/1));
  if (arguments.format == "onnx") {
    ORIEL_RETURN_IF_ERROR(writeOnnx(arguments, plan, checkpoint, inputs));
  } else if (arguments.format == "peft") {
    ORIEL_RETURN_IF_ERROR(writePeft(arguments, plan, checkpoint));
  } else {
    progress("writing " + arguments.output);
    ORIEL_RETURN_IF_ERROR(writeSafetensors(arguments, plan, checkpoint));
  }
  std::printf("wrote %s with the weights of %s (step %lld)\n", arguments.output.c_str(),
              checkpoint.path().c_str(), static_cast<long long>(checkpoint.index().progress.step));
  return absl::OkStatus();
}

}  // namespace

void addExportCommand(CLI::App& app, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "export", "Writes trained weights as ONNX or safetensors, or adapters for PEFT");
  command->add_option("PLAN", arguments->plan, "The plan (.oplan)")->required()->type_name("");
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "A step-NNNNNNNN folder, or the folder of several: then the latest")
      ->required()
      ->type_name("DIR");
  command
      ->add_option(
          "--to", arguments->format,
          "onnx: the model that was compiled, with these weights; safetensors: the weights; peft: "
          "the adapters of `oriel adapt`, for PEFT")
      ->required()
      ->check(CLI::IsMember({"onnx", "safetensors", "peft"}));
  command
      ->add_option("-o,--output", arguments->output,
                   "The file to write; with --parts or --to peft, the folder")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--parts", arguments->parts,
                   "The files that `oriel compose` joined: writes each with its weights")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("FILE,..");
  command->add_flag(
      "--merge-adapters", arguments->mergesAdapters,
      "Write the model that `oriel adapt` was given, each adapter added to the weight "
      "beside it");
  addModulePrefixOption(*command, "--to peft", &arguments->renamedModules);
  command
      ->add_option("--base", arguments->base,
                   "With --merge-adapters, where that model is now, if it was moved")
      ->type_name("FILE");
  command
      ->add_option("--model", arguments->model,
                   "Where the ONNX file is now, if it was moved since `oriel compile`")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  oriel export model.oplan --checkpoint checkpoints/ --to onnx -o trained.onnx\n"
      "  oriel export model.oplan --checkpoint checkpoints/step-00000500 --to safetensors -o "
      "w.safetensors\n"
      "  oriel export lora.oplan --checkpoint checkpoints/ --to onnx --merge-adapters -o out.onnx\n"
      "  oriel export lora.oplan --checkpoint checkpoints/ --to peft -o adapter/\n"
      "  oriel export model.oplan --checkpoint checkpoints/ --to onnx -o trained/ \\\n"
      "      --parts vision_encoder.onnx,embed_tokens.onnx,decoder_model_merged.onnx");
  command->callback([=] { *run = [arguments] { return exportWeights(*arguments); }; });
}

}  // namespace oriel::driver
