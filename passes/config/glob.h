// Patterns over names, as recipes and strategies have them.
#ifndef ORIEL_PASSES_CONFIG_GLOB_H_
#define ORIEL_PASSES_CONFIG_GLOB_H_

#include <string>

namespace oriel {

// Whether the pattern matches all of the text: `*` stands for any characters, also none, `?` for
// one.
bool matchesGlob(const std::string& pattern, const std::string& text);

}  // namespace oriel

#endif  // ORIEL_PASSES_CONFIG_GLOB_H_
