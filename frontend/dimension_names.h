// Names in dimensions that are expressions, "past_sequence_length + sequence_length".
#ifndef ORIEL_FRONTEND_DIMENSION_NAMES_H_
#define ORIEL_FRONTEND_DIMENSION_NAMES_H_

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace oriel {

// The name that the text begins with; empty if it begins with something else.
inline llvm::StringRef leadingDimensionName(llvm::StringRef text) {
  if (text.empty() || llvm::isDigit(text.front()) || text.front() == '.') {
    return "";
  }
  return text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
}

}  // namespace oriel

#endif  // ORIEL_FRONTEND_DIMENSION_NAMES_H_
