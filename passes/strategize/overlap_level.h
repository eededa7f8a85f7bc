// How much of the overlap that is asked for a program gets, where memory decides.
#ifndef ORIEL_PASSES_STRATEGIZE_OVERLAP_LEVEL_H_
#define ORIEL_PASSES_STRATEGIZE_OVERLAP_LEVEL_H_

#include <optional>

#include "mlir/IR/BuiltinOps.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// By the memory that it takes, about: the most first.
enum class OverlapLevel {
  kAsAsked,
  kSmallerBuckets,  // a quarter of the sizes, and so of what is gathered ahead
  kNothingAhead,    // parameters are gathered where they are used
  kOff,
};
inline constexpr OverlapLevel kOverlapLevels[] = {OverlapLevel::kAsAsked,
                                                  OverlapLevel::kSmallerBuckets,
                                                  OverlapLevel::kNothingAhead, OverlapLevel::kOff};

// "as_asked", "smaller_buckets", "nothing_ahead", "off"
llvm::StringRef overlapLevelName(OverlapLevel level);

// What is asked, or a part of it. Of a segment whose collectives of that sort move so many bytes.
struct OverlapSizes {
  Overlap asked;
  int64_t parts = 1;

  int64_t bucketBytes(int64_t total) const { return asked.bucketBytes(total) / parts; }
  int64_t prefetchBytes(int64_t total) const { return asked.prefetchBytes(total) / parts; }
};
// Of a level; of kOff there is none.
std::optional<OverlapSizes> sizesAt(const Overlap& asked, OverlapLevel level);

// A level that has been decided on is on the program as the attribute `oriel.overlap`. None if
// there is none; fails with a diagnostic for an attribute that says no level.
void setOverlapLevel(mlir::ModuleOp program, OverlapLevel level);
mlir::FailureOr<std::optional<OverlapLevel>> getOverlapLevel(mlir::ModuleOp program);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_OVERLAP_LEVEL_H_
