// Labels of a loss.
#ifndef ORIEL_IR_ORIEL_LABELS_H_
#define ORIEL_IR_ORIEL_LABELS_H_

#include <cstdint>

namespace oriel::ir {

// An ignore_index where each label counts: one that no label is, though i32 has it.
inline constexpr int64_t kNoLabel = -(int64_t{1} << 31);

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_LABELS_H_
