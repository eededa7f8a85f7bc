// What the compiler does first with a model, in whatever form it came.
#ifndef ORIEL_TESTS_FUZZ_IMPORT_MODEL_H_
#define ORIEL_TESTS_FUZZ_IMPORT_MODEL_H_

#include <memory>

namespace onnx {
class ModelProto;
}

namespace oriel::fuzz {

// Reads, imports, specializes and raises, or takes an error with a reason. External data is read
// from a folder with one file, "weights.bin", of zeros.
void importModelOf(std::unique_ptr<onnx::ModelProto> proto);

}  // namespace oriel::fuzz

#endif  // ORIEL_TESTS_FUZZ_IMPORT_MODEL_H_
