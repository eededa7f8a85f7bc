// What the attributes of programs and of their stages are called.
#ifndef ORIEL_PASSES_STRATEGIZE_PROGRAMS_H_
#define ORIEL_PASSES_STRATEGIZE_PROGRAMS_H_

#include "llvm/ADT/StringRef.h"

namespace oriel {

// Of an op of @forward: the number of its stage, i64.
inline constexpr llvm::StringLiteral kStageAttr("oriel.stage");
// Of the module: by origin, the block that the forward op is in, -1 for none
// (passes/stage/blocks.h).
inline constexpr llvm::StringLiteral kBlocksAttr("oriel.blocks");
// Of the module, and then of each program: what its stages are called, for people.
inline constexpr llvm::StringLiteral kStagesAttr("oriel.stages");
// Of a program: the first of its ranks, i64. None: 0.
inline constexpr llvm::StringLiteral kFirstRankAttr("oriel.first_rank");
// Of a parameter: another program steps it and sends it here.
inline constexpr llvm::StringLiteral kCopyAttr("oriel.copy");

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_PROGRAMS_H_
