#include "passes/search/as_needed.h"

#include <algorithm>

namespace oriel {

namespace {

// What the slowest program computes.
double computingOf(const Evaluation& evaluation) {
  double most = 0;
  for (const Evaluation::Program& program : evaluation.programs) {
    most = std::max(most, program.computing);
  }
  return most;
}

}  // namespace

double secondsAsNeeded(const Evaluation& none, const Evaluation& full, double atLeast,
                       double memory) {
  const double again = computingOf(full) - computingOf(none);
  const double least = std::max(atLeast, full.seconds - again);
  const double share = (none.peakBytes() - memory) / (none.peakBytes() - full.peakBytes());
  return least + share * share * (full.seconds - least);
}

}  // namespace oriel
