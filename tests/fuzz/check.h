// What must hold for every input.
#ifndef ORIEL_TESTS_FUZZ_CHECK_H_
#define ORIEL_TESTS_FUZZ_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <string>

namespace oriel::fuzz {

inline void check(bool holds, const char* what, const std::string& detail = "") {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n%s\n", what, detail.c_str());
  std::abort();
}

// Counts the inputs that were accepted as valid and says so at the end: a fuzzer whose inputs are
// all refused at the door finds nothing.
inline void accepted() {
  static struct Count {
    long inputs = 0;
    ~Count() { std::fprintf(stderr, "stat::accepted: %ld\n", inputs); }
  } count;
  ++count.inputs;
}

}  // namespace oriel::fuzz

#endif  // ORIEL_TESTS_FUZZ_CHECK_H_
