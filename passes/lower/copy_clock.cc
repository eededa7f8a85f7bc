#include "passes/lower/copy_clock.h"

#include <algorithm>

namespace oriel {

namespace {

// In order, and those that touch as one.
std::vector<TimeSpan> joined(std::vector<TimeSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.begin < b.begin; });
  std::vector<TimeSpan> result;
  for (const TimeSpan& span : spans) {
    if (!result.empty() && result.back().end + 1 >= span.begin) {
      result.back().end = std::max(result.back().end, span.end);
    } else {
      result.push_back(span);
    }
  }
  return result;
}

const StorageUse& useIn(const Storage& storage, size_t segment) {
  return *std::find_if(storage.uses.begin(), storage.uses.end(),
                       [&](const StorageUse& use) { return use.segment == segment; });
}

}  // namespace

CopyClock::CopyClock(std::vector<int64_t> begins, std::vector<SegmentRun> runs)
    : begins_(std::move(begins)), runsOf_(begins_.size() - 1) {
  for (const auto& [segment, microbatch] : runs) {
    runsOf_[segment].push_back(static_cast<int64_t>(runs_.size()));
    runs_.push_back({segment, microbatch, end_});
    end_ += begins_[segment + 1] - begins_[segment];
  }
}

int64_t CopyClock::microbatches() const {
  size_t most = 0;
  for (const std::vector<int64_t>& runs : runsOf_) most = std::max(most, runs.size());
  return static_cast<int64_t>(most);
}

int64_t CopyClock::period() const {
  const size_t begin = runs_.size() / 4, end = runs_.size() / 2;
  const auto repeatsAfter = [&](int64_t microbatches, size_t runs) {
    for (size_t i = begin; i < end; ++i) {
      const Run &run = runs_[i], &next = runs_[i + runs];
      if (next.segment != run.segment || next.microbatch != run.microbatch + microbatches) {
        return false;
      }
    }
    return true;
  };
  // Runs of a microbatch; those of what runs once are not in the middle.
  const int64_t each = static_cast<int64_t>(runs_.size()) / std::max<int64_t>(microbatches(), 1);
  for (int64_t count = 1; count <= microbatches() / 4; ++count) {
    if (repeatsAfter(count, count * each)) return count;
  }
  return 1;
}

const std::vector<CopyClock::Stay>& CopyClock::staysOf(const Storage& storage) const {
  std::vector<size_t> segments;
  for (const StorageUse& use : storage.uses) segments.push_back(use.segment);
  const auto [known, isNew] = stays_.try_emplace(segments);
  std::vector<Stay>& stays = known->second;
  if (!isNew) return stays;
  for (size_t run = 0; run < runs_.size(); ++run) {
    const auto microbatch = static_cast<size_t>(runs_[run].microbatch);
    if (microbatch >= stays.size()) stays.resize(microbatch + 1);
    if (std::find(segments.begin(), segments.end(), runs_[run].segment) == segments.end()) continue;
    Stay& stay = stays[microbatch];
    stay.last = static_cast<int64_t>(run);
    if (stay.first < 0) stay.first = stay.last;
  }
  for (Stay& stay : stays) {
    for (size_t segment = 0; segment < runsOf_.size(); ++segment) {
      const std::vector<int64_t>& own = runsOf_[segment];
      const auto next = std::upper_bound(own.begin(), own.end(), stay.first);
      if (next != own.end() && *next < stay.last) stay.between.push_back(segment);
    }
  }
  return stays;
}

std::vector<ArenaCopy> CopyClock::copiesOf(const Storage& storage) const {
  std::vector<ArenaCopy> copies(storage.slots);
  const std::vector<Stay>& stays = staysOf(storage);
  for (size_t microbatch = 0; microbatch < stays.size(); ++microbatch) {
    const Stay& stay = stays[microbatch];
    if (stay.first < 0) continue;
    ArenaCopy& copy = copies[microbatch % copies.size()];
    const Run &first = runs_[stay.first], &last = runs_[stay.last];
    const int64_t begin = useIn(storage, first.segment).begin;
    const int64_t end = useIn(storage, last.segment).end;
    const TimeSpan ofFirst = ticksOf(first.segment), ofLast = ticksOf(last.segment);
    copy.among.push_back({first.begin + begin - ofFirst.begin, last.begin + end - ofLast.begin});
    const bool isOne = stay.first == stay.last;
    copy.beside.push_back({begin, isOne ? end : ofFirst.end});
    if (!isOne) copy.beside.push_back({ofLast.begin, end});
    for (size_t segment : stay.between) copy.beside.push_back(ticksOf(segment));
  }
  for (ArenaCopy& copy : copies) {
    copy.beside = joined(std::move(copy.beside));
    copy.among = joined(std::move(copy.among));
  }
  return copies;
}

int64_t CopyClock::mostInFlight(const std::vector<const Storage*>& stash) const {
  std::map<std::pair<size_t, size_t>, Stay> inFlight;  // by the first segment and the microbatch
  for (const Storage* storage : stash) {
    if (storage->uses.empty()) continue;
    const std::vector<Stay>& stays = staysOf(*storage);
    for (size_t microbatch = 0; microbatch < stays.size(); ++microbatch) {
      const Stay& stay = stays[microbatch];
      if (stay.first < 0) continue;
      const std::pair key(storage->uses.front().segment, microbatch);
      const auto [whole, isNew] = inFlight.try_emplace(key, stay);
      whole->second.first = std::min(whole->second.first, stay.first);
      whole->second.last = std::max(whole->second.last, stay.last);
    }
  }
  std::vector<int64_t> change(runs_.size() + 1);
  for (const auto& [unused, stay] : inFlight) {
    ++change[stay.first];
    --change[stay.last + 1];
  }
  int64_t now = 0, most = 0;
  for (const int64_t each : change) most = std::max(most, now += each);
  return most;
}

}  // namespace oriel
