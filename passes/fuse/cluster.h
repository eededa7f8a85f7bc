// What the attribute of fusion clusters is called.
#ifndef ORIEL_PASSES_FUSE_CLUSTER_H_
#define ORIEL_PASSES_FUSE_CLUSTER_H_

#include "llvm/ADT/StringRef.h"

namespace oriel {

// Of a local op of a forward segment: its cluster, i64.
inline constexpr llvm::StringLiteral kClusterAttr("oriel.cluster");

}  // namespace oriel

#endif  // ORIEL_PASSES_FUSE_CLUSTER_H_
