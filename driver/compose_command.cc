// `oriel compose`: one model of several files.
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/command.h"
#include "driver/console.h"
#include "frontend/compose.h"
#include "runtime/base/files.h"
#include "runtime/base/output_path.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

struct Arguments {
  std::vector<std::string> files;
  std::vector<std::string> merges, connections, dimensions, constants;
  ComposeOptions options;
  bool apart = false;
  std::string output;
};

// "NAME=VALUE"
absl::StatusOr<std::pair<std::string, std::string>> splitWord(const std::string& word,
                                                              const std::string& option,
                                                              const std::string& form) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == word.size()) {
    return usageError(absl::StrCat(option, ": can't use '", word, "'; write ", form));
  }
  return std::make_pair(word.substr(0, equals), word.substr(equals + 1));
}

absl::StatusOr<ComposeOptions> optionsOf(const Arguments& arguments) {
  ComposeOptions options = arguments.options;
  options.tie = !arguments.apart;
  for (const std::string& word : arguments.merges) {
    const std::string form = "FEATURES=TOKEN_ID, e.g. --merge image_features=32000";
    ORIEL_ASSIGN_OR_RETURN(const auto parts, splitWord(word, "--merge", form));
    int64_t id = 0;
    if (!absl::SimpleAtoi(parts.second, &id)) {
      return usageError(
          absl::StrCat("--merge: '", parts.second, "' is no whole number; write ", form));
    }
    options.merges.push_back({parts.first, id});
  }
  for (const std::string& word : arguments.connections) {
    ORIEL_ASSIGN_OR_RETURN(const auto parts, splitWord(word, "--connect", "OUTPUT=INPUT"));
    options.connections.push_back({parts.first, parts.second});
  }
  for (const std::string& word : arguments.dimensions) {
    ORIEL_ASSIGN_OR_RETURN(const auto parts, splitWord(word, "--dim", "PART.NAME=NEW_NAME"));
    options.dimensions.push_back({parts.first, parts.second});
  }
  for (const std::string& word : arguments.constants) {
    ORIEL_ASSIGN_OR_RETURN(const auto parts, splitWord(word, "--set", "INPUT=VALUE"));
    options.constants.push_back({parts.first, parts.second});
  }
  return options;
}

absl::Status composeFiles(const Arguments& arguments) {
  ORIEL_ASSIGN_OR_RETURN(const ComposeOptions options, optionsOf(arguments));
  ORIEL_RETURN_IF_ERROR(runtime::CheckOutputPath(arguments.output, arguments.files));
  std::vector<ModelFile> parts;
  for (const std::string& path : arguments.files) {
    progress("reading " + path);
    llvm::Expected<ModelFile> part = ModelFile::open(path);
    if (!part) return toStatus(part.takeError());
    parts.push_back(std::move(*part));
  }
  llvm::Expected<ComposedModel> composed = composeModels(parts, options, arguments.output);
  if (!composed) return toStatus(composed.takeError());
  ORIEL_RETURN_IF_ERROR(runtime::CheckIsNotRead(arguments.output, composed->dataFiles));
  progress("writing " + arguments.output);
  ORIEL_RETURN_IF_ERROR(runtime::WriteTextAtomically(arguments.output, composed->bytes));
  for (const std::string& note : composed->notes) std::printf("%s\n", note.c_str());
  std::printf("wrote %s: %s in, %s out\n", arguments.output.c_str(),
              absl::StrJoin(composed->inputs, ", ").c_str(),
              absl::StrJoin(composed->outputs, ", ").c_str());
  return absl::OkStatus();
}

}  // namespace

void addComposeCommand(CLI::App& app, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "compose", "Joins the files of a model: vision encoder, embedding of tokens, decoder");
  command->add_option("FILE", arguments->files, "The parts (.onnx), in the order in which they run")
      ->required()
      ->type_name("");
  auto addList = [&](const char* name, std::vector<std::string>& words, const char* help,
                     const char* form) {
    command->add_option(name, words, help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name(form);
  };
  addList("--merge", arguments->merges, "Rows of an output take the places of these tokens",
          "FEATURES=TOKEN_ID,..");
  command
      ->add_option("--into", arguments->options.into, "The embedding that features are merged into")
      ->capture_default_str()
      ->type_name("OUTPUT");
  command->add_option("--tokens", arguments->options.tokens, "The tokens that --merge looks at")
      ->capture_default_str()
      ->type_name("INPUT");
  addList("--connect", arguments->connections,
          "An input is an output of another name; equal names are connected anyway",
          "OUTPUT=INPUT,..");
  addList("--dim", arguments->dimensions, "A dimension of a part gets a name of its own",
          "PART.NAME=NEW,..");
  addList("--set", arguments->constants, "An input of one element has always this value",
          "INPUT=VALUE,..");
  command->add_flag("--no-tie", arguments->apart,
                    "Keep a matrix that is another one's copy a parameter of its own");
  command->add_option("-o,--output", arguments->output, "The file to write")
      ->required()
      ->type_name("FILE");
  command->footer(
      "Example, of a vision-language model as it is downloaded:\n"
      "  oriel compose vision_encoder.onnx embed_tokens.onnx decoder_model_merged.onnx \\\n"
      "      --merge image_features=32000 -o model.onnx\n"
      "  oriel import model.onnx --bind batch_size=1,sequence_length=600,past_sequence_length=0");
  command->callback([=] { *run = [arguments] { return composeFiles(*arguments); }; });
}

}  // namespace oriel::driver
