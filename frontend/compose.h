// One model of several files, as vision-language models are downloaded: a vision encoder, an
// embedding of tokens and a decoder, which a program joins when it runs them.
//
//   auto composed = composeModels(parts, {{{"image_features", 49190}}}, "folder/model.onnx");
//
// In the order of the parts, an input that has the name of an output of an earlier part is that
// output. Inputs of the same name are one. What is joined keeps the names of inputs and outputs; a
// part named "decoder.onnx" has "decoder." in front of its initializers, and "decoder/" in front of
// its other values, so that a recipe can name a part's parameters: `decoder.*`.
#ifndef ORIEL_FRONTEND_COMPOSE_H_
#define ORIEL_FRONTEND_COMPOSE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/model_file.h"

namespace oriel {

struct ComposeOptions {
  // Rows of an output of a part, `features`, take the places of those of `into` at the tokens `id`:
  // the k-th such token of the batch gets the k-th row.
  struct Merge {
    std::string features;
    int64_t id = 0;
  };
  // An input that is an output of another name. Names may have the part's in front,
  // "encoder.last_hidden_state".
  struct Connection {
    std::string output, input;
  };
  // A symbolic dimension of a part, "vision_encoder.batch_size", that gets a name of its own.
  struct Dimension {
    std::string from, to;
  };
  // An input of one element that has always the same value: "use_cache_branch", "false".
  struct Constant {
    std::string input, value;
  };
  std::vector<Merge> merges;
  std::string into = "inputs_embeds";  // an output: [batch, tokens, width]
  std::string tokens = "input_ids";    // an input: [batch, tokens]
  std::vector<Connection> connections;
  std::vector<Dimension> dimensions;
  std::vector<Constant> constants;
  // Whether a matrix that is an earlier part's, or an earlier one transposed, is that parameter:
  // files of an embedding and of its tied head have a copy each, and exporters fold transposes.
  bool tie = true;
};

struct ComposedModel {
  std::string bytes;               // the ONNX file
  std::vector<std::string> notes;  // what was joined, for people
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> dataFiles;  // of the parts
};

// `to`: where it will be written, for the locations of external data, which stays where it is.
//
// One part is a model whose copies are tied. Errors name the part and what to do: parts of the same
// name, or of different operator sets; external data that is not below the folder of `to`; a part
// of which nothing is read; inputs of the same name and different types; and options that name what
// is not there.
llvm::Expected<ComposedModel> composeModels(llvm::ArrayRef<ModelFile> parts,
                                            const ComposeOptions& options, llvm::StringRef to);

// A parameter of a part that the composed model has under another name only.
struct TiedWeight {
  std::string name;    // "decoder.lm_head.weight"
  std::string source;  // the composed model's initializer
  bool isTransposed = false;
};

// Of a composed model; nothing for another. An error for metadata that is not what composeModels()
// writes.
llvm::Expected<std::vector<TiedWeight>> tiedWeights(const ModelFile& composed);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_COMPOSE_H_
