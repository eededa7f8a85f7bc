// Compares the tensors of two files: oriel-compare ACTUAL EXPECTED BOUND. Prints how far the
// furthest tensor is away, relative to its norm; exit code 1 if that is above the bound, or they
// can't be compared.
#include <cstdio>
#include <cstdlib>

#include "runtime/base/status.h"
#include "runtime/train/safetensors_difference.h"

namespace {

namespace rt = oriel::runtime;

absl::StatusOr<rt::TensorDifference> Compare(const char* actual, const char* expected) {
  ORIEL_ASSIGN_OR_RETURN(const rt::SafetensorsFile a, rt::SafetensorsFile::Open(actual));
  ORIEL_ASSIGN_OR_RETURN(const rt::SafetensorsFile b, rt::SafetensorsFile::Open(expected));
  return rt::CompareTensors(a, b);
}

}  // namespace

int main(int argc, char** argv) {
  char* end = nullptr;
  const double bound = argc == 4 ? std::strtod(argv[3], &end) : 0;
  if (argc != 4 || *end != '\0') {
    std::fprintf(stderr, "usage: oriel-compare ACTUAL.safetensors EXPECTED.safetensors BOUND\n");
    return 2;
  }
  const absl::StatusOr<rt::TensorDifference> difference = Compare(argv[1], argv[2]);
  if (!difference.ok()) {
    std::fprintf(stderr, "oriel-compare: %s\n", std::string(difference.status().message()).c_str());
    return 1;
  }
  std::printf("%.3g (%s, of %lld tensors)\n", difference->largest, difference->tensor.c_str(),
              static_cast<long long>(difference->compared));
  return difference->largest <= bound ? 0 : 1;
}
