// Any message as an ONNX model: read, imported, specialized and raised, or refused with an error.
#include <cstdint>
#include <memory>

#include "frontend/initializer_bytes.h"
#include "google/protobuf/stubs/logging.h"
#include "onnx/onnx_pb.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/import_model.h"
#include "tests/fuzz/proto_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maxSize,
                                          unsigned seed) {
  onnx::ModelProto model;
  return oriel::fuzz::mutateProto(model, data, size, maxSize, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1,
                                            const uint8_t* data2, size_t size2, uint8_t* out,
                                            size_t maxSize, unsigned seed) {
  onnx::ModelProto first, second;
  return oriel::fuzz::crossOverProtos(first, second, data1, size1, data2, size2, out, maxSize,
                                      seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::LogSilencer silencer;
  auto proto = std::make_unique<onnx::ModelProto>();
  bool parsed = proto->ParseFromArray(data, static_cast<int>(size));
  // The export's own walk over the encoding, of the same bytes.
  auto ranges = oriel::findInitializerBytes({reinterpret_cast<const char*>(data), size});
  if (ranges) {
    for (const auto& range : *ranges) {
      oriel::fuzz::check(
          range.second.offset <= size && range.second.size <= size - range.second.offset,
          "an initializer's bytes lie within the file", range.first().str());
    }
  }
  if (!parsed) return 0;
  oriel::fuzz::importModelOf(std::move(proto));
  return 0;
}
