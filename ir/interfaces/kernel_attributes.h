// Which attributes of an op its kernel is given.
#ifndef ORIEL_IR_INTERFACES_KERNEL_ATTRIBUTES_H_
#define ORIEL_IR_INTERFACES_KERNEL_ATTRIBUTES_H_

#include "llvm/ADT/StringRef.h"

namespace oriel::ir {

// Whether only the compiler reads it. The numbers, ranks and types of operands and results tell a
// kernel what each is.
inline bool isOfCompiler(llvm::StringRef attribute) {
  return attribute == "origin" || attribute == "operandSegmentSizes" ||
         attribute == "resultSegmentSizes" || attribute.starts_with("oriel.");
}

}  // namespace oriel::ir

#endif  // ORIEL_IR_INTERFACES_KERNEL_ATTRIBUTES_H_
