// What the attributes of fusion clusters, and of what is computed again, are called.
#ifndef ORIEL_PASSES_FUSE_CLUSTER_H_
#define ORIEL_PASSES_FUSE_CLUSTER_H_

#include "llvm/ADT/StringRef.h"

namespace oriel {

// Of a local op of a forward segment: its cluster, i64.
inline constexpr llvm::StringLiteral kClusterAttr("oriel.fusion_cluster");
// On ops of a backward: clones of the forward's.
inline constexpr llvm::StringLiteral kRecomputedAttr("oriel.recomputed");

}  // namespace oriel

#endif  // ORIEL_PASSES_FUSE_CLUSTER_H_
