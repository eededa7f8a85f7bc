// Any text as a recipe: read, or refused with a place and a reason.
#include <cmath>
#include <cstdint>
#include <string>

#include "passes/train/recipe.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using oriel::fuzz::check;
  std::string text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<oriel::Recipe> recipe = oriel::parseRecipe(text, "r.yaml");
  if (!recipe.ok()) {
    std::string message(recipe.status().message());
    check(message.rfind("r.yaml", 0) == 0, "the error names the file", message);
    return 0;
  }
  oriel::fuzz::accepted();
  check(recipe->steps >= 1 && recipe->microBatch >= 1, "sizes are at least 1");
  check(recipe->globalBatch % recipe->microBatch == 0, "batch.global is a multiple of batch.micro");
  check(recipe->optimizer.lr > 0, "the learning rate is above 0");
  for (const char* name : {"", "model.layers.0.self_attn.q_proj.weight"}) {
    recipe->isTrainable(name);
    recipe->weightDecayOf(name);
    const auto factor = static_cast<float>(recipe->learningRateOf(name) / recipe->optimizer.lr);
    check(factor > 0 && std::isfinite(factor), "a group's rate is a multiple in f32");
  }
  return 0;
}
