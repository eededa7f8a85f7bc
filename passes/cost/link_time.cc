#include "passes/cost/link_time.h"

#include <algorithm>
#include <cmath>

namespace oriel {

namespace {

// The share of a link's bandwidth that small messages reach at once: a protocol that waits for
// nothing, against one that takes the level's ramp to reach all of it.
constexpr double kQuickShare = 0.4;

// What a group is of a level: members of the first domain below, and how many such domains.
struct Members {
  double inside = 1;
  double domains = 1;
};

Members membersOf(const std::vector<int64_t>& ranks, int64_t below, int64_t domain) {
  Members members{0, 0};
  int64_t last = -1;
  for (const int64_t rank : ranks) {
    if (rank / domain != ranks.front() / domain) continue;
    if (rank / below == ranks.front() / below) ++members.inside;
    if (rank / below != last) ++members.domains;
    last = rank / below;
  }
  return members;
}

// Bytes per second of each member in a domain below.
double memberBandwidth(const LinkLevel& level, int64_t below, const Members& members, double ranks,
                       LinkUse use, int64_t groups) {
  double bandwidth = level.usableBandwidth();
  if (groups > 0) {
    const double all = static_cast<double>(below) * bandwidth;
    bandwidth = std::min(level.bandwidth, all / (members.inside * static_cast<double>(groups)));
  }
  if (level.pair <= 0) return bandwidth;
  // Without a switch, rings take links side by side, the more the more devices there are.
  const bool isDirect = use == LinkUse::kExchange || use == LinkUse::kTransfer;
  return std::min(bandwidth, isDirect ? level.pair : level.pair * ranks / 2);
}

}  // namespace

double linkSeconds(const std::vector<LinkLevel>& levels, const std::vector<int64_t>& ranks,
                   LinkUse use, double sentBytes, int64_t groups) {
  const auto count = static_cast<double>(ranks.size());
  if (count < 2) return 0;
  const bool reduces = use == LinkUse::kAllReduce;
  const double passes = reduces ? 2 : 1;
  // All that is gathered, reduced or exchanged, of one rank.
  const double whole =
      use == LinkUse::kTransfer ? sentBytes : sentBytes * count / (count - 1) / passes;

  // Levels work at the same time, on different parts of the bytes.
  double latency = 0, quick = 0, full = 0, ramp = 0;
  int64_t below = 1;
  for (const LinkLevel& level : levels) {
    if (level.devices < 1) continue;
    const Members members = membersOf(ranks, below, level.devices);
    if (members.domains > 1) {
      const double bandwidth =
          level.reached * memberBandwidth(level, below, members, count, use, groups);
      const double part = whole / members.inside;
      double bytes = part;
      switch (use) {
        case LinkUse::kTransfer:
          break;
        case LinkUse::kGather:  // a ring through all ranks
          bytes = part * (count - 1) / count;
          break;
        case LinkUse::kExchange:  // what leaves the domain, by the rank's own link
          bytes = whole * (count - members.inside) / count;
          break;
        case LinkUse::kAllReduce:  // between those that have the same part
          bytes = 2 * part * (members.domains - 1) / members.domains;
          break;
      }
      double seconds = bytes / bandwidth;
      if (reduces && level.reduces > 0) {
        seconds = std::min(seconds, part * level.reached / level.reduces / bandwidth);
      }
      full = std::max(full, seconds);
      quick = std::max(quick, seconds / kQuickShare);
      ramp = std::max(ramp, level.ramp);
      const double ring = members.domains - 1, tree = std::ceil(std::log2(members.domains));
      const double steps = level.ring ? ring : std::min(ring, tree);
      latency += passes * (use == LinkUse::kTransfer ? 1 : steps) * level.latency;
    }
    below = level.devices;
  }
  return latency + std::min(quick, ramp + full);
}

}  // namespace oriel
