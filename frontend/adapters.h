// Low-rank adapters (LoRA; Hu et al. 2021, arXiv 2106.09685) beside linear layers of an ONNX model.
//
//   y = x Wᵀ   becomes   y = x Wᵀ + (x Aᵀ) scale Bᵀ
//
// with A [rank, inputs], random, and B [outputs, rank], zero, so that the model computes what it
// did. They are stored as PEFT stores them, and named as it names them: of "q_proj.weight",
// "q_proj.lora_A.weight" and "q_proj.lora_B.weight". All else of the model stays as it is.
#ifndef ORIEL_FRONTEND_ADAPTERS_H_
#define ORIEL_FRONTEND_ADAPTERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/linear_layers.h"
#include "frontend/model_file.h"
#include "llvm/ADT/ArrayRef.h"

namespace oriel {

struct AdapterOptions {
  int64_t rank = 0;
  double alpha = 0;  // the scale is alpha / rank
  // Makes the values that training begins with: of A, uniform between -bound and bound, and of B,
  // whose bound is 0, zeros; or others, for a trained adapter.
  std::function<void(const LinearLayer& layer, const std::string& name, float bound,
                     llvm::MutableArrayRef<float> values)>
      fill;
};

struct AdaptedModel {
  std::string bytes;  // the ONNX file
  int64_t parameters = 0;
};

// `layers` are some of linearLayers(base). `to`: where the model will be written, for the locations
// of external data, which stays where it is.
//
// Errors: a base that has adapters already; names that are taken; external data that is not below
// the folder of `to`; more than 2 GiB.
llvm::Expected<AdaptedModel> adaptModel(const ModelFile& base, llvm::ArrayRef<LinearLayer> layers,
                                        const AdapterOptions& options, llvm::StringRef to);

// One that a model has.
struct Adapter {
  std::string weight;  // of the layer
  std::string module;
  std::string a, b;
  bool isOutputFirst = false;
  bool isShared = false;
};

struct Adapters {
  std::string base;         // the file that was adapted, relative to the model's folder
  std::string fingerprint;  // of that file, see compose_part.h
  int64_t rank = 0;
  double alpha = 0;
  std::vector<Adapter> all;  // none: the model has none
};

// What adaptModel() has written. An error for metadata that it does not write.
llvm::Expected<Adapters> adaptersOf(const ModelFile& model);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_ADAPTERS_H_
