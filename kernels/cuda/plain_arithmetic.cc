#include "kernels/cuda/plain_arithmetic.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"

namespace oriel::kernels::cuda {

void WarnOfPlainArithmetic(const std::string& launch, double multiplications, const char* library) {
  constexpr double kLarge = 1e10;
  if (multiplications < kLarge) return;
  static std::mutex mutex;
  static auto* const said = new std::set<std::string>;  // never destroyed: threads may outlive main
  const std::lock_guard<std::mutex> lock(mutex);
  if (!said->insert(library).second) return;
  const std::string line =
      absl::StrCat("oriel-run: warning: ", launch, " runs without tensor cores, because ", library,
                   " does not take it: ORIEL_LOG=dispatch says why, oriel-run --doctor whether ",
                   library, " is there\n");
  std::fputs(line.c_str(), stderr);
}

}  // namespace oriel::kernels::cuda
