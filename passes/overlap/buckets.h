// Which collectives travel as one.
//
//   std::vector<BucketItem> items = ..;  // the ops of a segment, in order
//   fillBuckets(items, /*limit=*/25 << 20);  // {{0}, {1, 4}, ..}: places of the collectives
#ifndef ORIEL_PASSES_OVERLAP_BUCKETS_H_
#define ORIEL_PASSES_OVERLAP_BUCKETS_H_

#include <cstdint>
#include <vector>

namespace oriel {

struct BucketItem {
  std::vector<int> operands;  // places of the ops whose results it takes, before its own
  // Collectives of the same class, from 0 on, may travel together; below: no collective, or one
  // that travels alone.
  int kind = -1;
  int64_t bytes = 0;
};

// Of the items with a class, in order: each goes with the last ones of its class, up to `limit`
// bytes together (one alone may have more). Nothing in a bucket, and nothing in buckets that are
// filled at the same time, takes what another one in it makes: so that all have an order.
std::vector<std::vector<int>> fillBuckets(const std::vector<BucketItem>& items, int64_t limit);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_BUCKETS_H_
