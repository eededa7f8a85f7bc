// Any text as a model in ONNX's text form (.onnxtxt); what parses is imported.
#include <cstdint>

#include "frontend/model_text.h"
#include "google/protobuf/stubs/logging.h"
#include "onnx/onnx_pb.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/import_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::LogSilencer silencer;
  auto model = oriel::parseModelText({reinterpret_cast<const char*>(data), size});
  if (!model) {
    oriel::fuzz::check(!llvm::toString(model.takeError()).empty(), "an error says why");
    return 0;
  }
  oriel::fuzz::importModelOf(std::move(*model));
  return 0;
}
