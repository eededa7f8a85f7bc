#include "passes/overlap/buckets.h"

#include <algorithm>
#include <map>
#include <set>

namespace oriel {

std::vector<std::vector<int>> fillBuckets(const std::vector<BucketItem>& items, int64_t limit) {
  std::vector<std::vector<int>> buckets;
  std::vector<int64_t> bytes;  // of each bucket
  std::map<int, size_t> open;  // by kind
  // The open buckets that an item takes something of, directly or not.
  std::vector<std::set<size_t>> takes(items.size());
  auto isOpen = [&](size_t bucket) {
    return std::any_of(open.begin(), open.end(),
                       [&](const auto& entry) { return entry.second == bucket; });
  };
  for (size_t i = 0; i < items.size(); ++i) {
    const BucketItem& item = items[i];
    for (int operand : item.operands) {
      for (size_t bucket : takes[operand]) {
        if (isOpen(bucket)) takes[i].insert(bucket);
      }
    }
    if (item.kind < 0) continue;
    for (auto entry = open.begin(); entry != open.end();) {
      entry = takes[i].count(entry->second) > 0 ? open.erase(entry) : std::next(entry);
    }
    auto found = open.find(item.kind);
    if (found != open.end() && bytes[found->second] + item.bytes > limit) {
      open.erase(found);
      found = open.end();
    }
    if (found == open.end()) {
      found = open.emplace(item.kind, buckets.size()).first;
      buckets.emplace_back();
      bytes.push_back(0);
    }
    buckets[found->second].push_back(static_cast<int>(i));
    bytes[found->second] += item.bytes;
    takes[i] = {found->second};
  }
  return buckets;
}

}  // namespace oriel
