#include "passes/lower/stash_clock.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace oriel {

namespace {

void append(std::vector<TimeSpan>& spans, TimeSpan span) {
  if (!spans.empty() && spans.back().end + 1 >= span.begin) {
    spans.back().end = std::max(spans.back().end, span.end);
  } else {
    spans.push_back(span);
  }
}

}  // namespace

StashClock::Kind StashClock::kindOf(const Storage& storage) {
  std::vector<size_t> segments;
  for (const StorageUse& use : storage.uses) segments.push_back(use.segment);
  return {std::move(segments), storage.slots};
}

std::vector<StashClock::Stay> StashClock::staysOf(const std::vector<SegmentRun>& runs,
                                                  const Kind& kind) {
  std::vector<Stay> stays;  // by microbatch
  for (size_t run = 0; run < runs.size(); ++run) {
    const auto& [segment, microbatch] = runs[run];
    if (static_cast<size_t>(microbatch) >= stays.size()) stays.resize(microbatch + 1);
    if (std::find(kind.first.begin(), kind.first.end(), segment) == kind.first.end()) continue;
    Stay& stay = stays[microbatch];
    stay.last = static_cast<int64_t>(run);
    if (stay.first < 0) stay.first = stay.last;
  }
  return stays;
}

StashClock::StashClock(std::vector<int64_t> begins, const std::vector<SegmentRun>& runs,
                       const std::vector<const Storage*>& stash)
    : begins_(std::move(begins)) {
  for (const Storage* storage : stash) presences_[kindOf(*storage)];
  // What each copy of each kind of value is at in each run: nothing, on, its first, its last run.
  std::vector<std::string> states(runs.size());
  for (const auto& [kind, unused] : presences_) {
    const size_t at = states.empty() ? 0 : states.front().size();
    for (std::string& state : states) state.append(kind.second, '.');
    const std::vector<Stay> stays = staysOf(runs, kind);
    for (size_t microbatch = 0; microbatch < stays.size(); ++microbatch) {
      const Stay& stay = stays[microbatch];
      for (int64_t run = stay.first; run >= 0 && run <= stay.last; ++run) {
        const int state = (run == stay.first ? 1 : 0) + (run == stay.last ? 2 : 0);
        states[run][at + microbatch % kind.second] = static_cast<char>('0' + state);
      }
    }
  }
  std::set<std::pair<size_t, std::string>> seen;
  for (size_t run = 0; run < runs.size(); ++run) {
    const size_t segment = runs[run].first;
    if (!seen.emplace(segment, states[run]).second) continue;
    size_t at = 0;
    for (auto& [kind, presences] : presences_) {
      for (int64_t copy = 0; copy < kind.second; ++copy) {
        const char state = states[run][at++];
        if (state == '.') continue;
        const int bits = state - '0';
        presences.push_back(
            {kept_.size(), static_cast<size_t>(copy), (bits & 1) != 0, (bits & 2) != 0});
      }
    }
    kept_.push_back({segment, end_});
    end_ += begins_[segment + 1] - begins_[segment];
  }
}

std::vector<ArenaCopy> StashClock::copiesOf(const Storage& storage) const {
  std::vector<ArenaCopy> copies(storage.slots);
  std::vector<std::map<int64_t, int64_t>> ticks(storage.slots);  // spans by their begin
  for (const Presence& presence : presences_.at(kindOf(storage))) {
    const Run& run = kept_[presence.run];
    const int64_t first = begins_[run.segment], last = begins_[run.segment + 1] - 1;
    const auto use =
        std::find_if(storage.uses.begin(), storage.uses.end(),
                     [&](const StorageUse& one) { return one.segment == run.segment; });
    const TimeSpan span = {presence.isFirst ? use->begin : first,
                           presence.isLast ? use->end : last};
    append(copies[presence.copy].among,
           {run.begin + span.begin - first, run.begin + span.end - first});
    int64_t& end = ticks[presence.copy].try_emplace(span.begin, span.end).first->second;
    end = std::max(end, span.end);
  }
  for (size_t copy = 0; copy < copies.size(); ++copy) {
    for (const auto& [begin, end] : ticks[copy]) append(copies[copy].beside, {begin, end});
  }
  return copies;
}

}  // namespace oriel
