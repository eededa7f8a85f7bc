// Compares the tensors of two files: oriel-compare [--elements] [--zero-share S] ACTUAL EXPECTED
// BOUND. Prints how far the furthest tensor is away, relative to its norm, or, with --elements, how
// far the furthest element; exit code 1 if that is above the bound, or they can't be compared. A
// tensor whose norm is below the share S (1e-7) of that of all is zero but for rounding: its norm
// says nothing.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/train/checkpoint/safetensors_difference.h"

namespace {

namespace rt = oriel::runtime;

struct Options {
  bool elements = false;
  double zero_share = 1e-7, bound = 0;
  std::string actual, expected;
};

std::optional<double> Number(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--elements") {
      options.elements = true;
    } else if (word == "--zero-share" && i + 1 < argc) {
      const std::optional<double> share = Number(argv[++i]);
      if (!share) return std::nullopt;
      options.zero_share = *share;
    } else {
      files.emplace_back(word);
    }
  }
  if (files.size() != 3) return std::nullopt;
  const std::optional<double> bound = Number(files[2]);
  if (!bound) return std::nullopt;
  options.actual = files[0];
  options.expected = files[1];
  options.bound = *bound;
  return options;
}

absl::StatusOr<rt::TensorDifference> Compare(const Options& options) {
  ORIEL_ASSIGN_OR_RETURN(const rt::SafetensorsFile a, rt::SafetensorsFile::Open(options.actual));
  ORIEL_ASSIGN_OR_RETURN(const rt::SafetensorsFile b, rt::SafetensorsFile::Open(options.expected));
  return rt::CompareTensors(a, b, options.zero_share);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = Parse(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: oriel-compare [--elements] [--zero-share S] ACTUAL.safetensors "
                 "EXPECTED.safetensors BOUND\n");
    return 2;
  }
  const absl::StatusOr<rt::TensorDifference> difference = Compare(*options);
  if (!difference.ok()) {
    std::fprintf(stderr, "oriel-compare: %s\n", std::string(difference.status().message()).c_str());
    return 1;
  }
  const double found = options->elements ? difference->largest_element : difference->largest;
  const std::string& where = options->elements ? difference->element_tensor : difference->tensor;
  std::string of = absl::StrCat(difference->compared + difference->zeros, " tensors");
  if (!options->elements && difference->zeros > 0) {
    absl::StrAppend(&of, ", ", difference->zeros, " of them zero but for rounding");
  }
  std::printf("%.3g (%s, of %s)\n", found, where.c_str(), of.c_str());
  return found <= options->bound ? 0 : 1;
}
