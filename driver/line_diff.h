// Two texts, line by line.
#ifndef ORIEL_DRIVER_LINE_DIFF_H_
#define ORIEL_DRIVER_LINE_DIFF_H_

#include <string>
#include <vector>

namespace oriel::driver {

struct ComparedLine {
  enum class In { kBoth, kA, kB };

  In in = In::kBoth;
  std::string text;  // without its end
};

// The lines of both texts in their order: as many as can be are in both, and where some are
// replaced, A's come first. Of texts so long that this would take seconds, only what they begin and
// end with alike is in both.
std::vector<ComparedLine> compareLines(const std::string& a, const std::string& b);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_LINE_DIFF_H_
