#include "passes/search/bound.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "passes/cost/link_time.h"
#include "passes/stage/balance.h"

namespace oriel {

namespace {

// With ZeRO-2, a backward writes its part of the sums of gradients, where others write all.
MicrobatchCost withSharedGradients(MicrobatchCost cost, const Candidate& c,
                                   const Cluster& cluster) {
  // They may be written, and read and written again, at less than the memory's bandwidth.
  constexpr double kTimes = 4;
  if (c.zero < 2 || cluster.device.memoryBandwidth <= 0) return cost;
  const double saved = kTimes * cost.gradients / cluster.device.memoryBandwidth;
  cost.backward = std::max(cost.backward / 2, cost.backward - saved);
  return cost;
}

// What a grid waits in a step, as a part of a microbatch's work on all others (the table in
// docs/strategy.md), where all have the same.
double fillOf(const Candidate& c) {
  // A third at best: what fills it are the gradients of weights, a third of a microbatch.
  constexpr double kZeroBubblePart = 1. / 4;
  return c.schedule == ScheduleKind::kZbH1 ? kZeroBubblePart
                                           : 1 / static_cast<double>(c.interleave);
}

// What the grid that ends last works and waits for in a step, in works of a microbatch, where
// layers can be cut anywhere. `backward`: its part of a microbatch's work.
double runsOfSmallParts(const Candidate& c, double backward) {
  const auto microbatches = static_cast<double>(c.microbatches);
  const auto grids = static_cast<double>(c.pp);
  if (c.pp == 1) return microbatches;
  // What is frozen is in the first grids, which then have less of a backward than others.
  constexpr double kAllTrained = 0.6;
  if (c.schedule != ScheduleKind::kOneFOneB || c.interleave > 1 || backward < kAllTrained) {
    // First grids may be larger than last ones, for which all wait. By random rows of parts.
    constexpr double kUneven = 0.5;
    return microbatches / grids + kUneven * fillOf(c) * (1 - 1 / grids);
  }
  // From a grid's first backward on, which is when all others have had the first microbatch, it has
  // all other backwards to run, and the forwards that it had no room for before. Grids of such
  // sizes that they end at the same time end first.
  double sizes = 0;
  for (double grid = 0; grid < grids; ++grid) {
    const double ahead = std::min(microbatches, grids - grid);
    const double left = (microbatches - 1) * backward + (microbatches - ahead) * (1 - backward);
    if (left <= 0) return 1;
    sizes += 1 / left;
  }
  return 1 + 1 / sizes;
}

// Of a step, what the grid that ends last works and waits, with `runs` by parts.
double secondsOfRuns(const Candidate& c, const MicrobatchCost& cost, double runs) {
  const double all = cost.forward + cost.backward;
  if (all <= 0) return 0;
  // Layers that are split over tp may be so by other factors than the rest, and what runs again may
  // be of other grids.
  const double alike = c.ofSample() == 1 ? 0.97 : 0.9;
  const double once = c.remat == RematPolicy::kNone ? all : cost.backward;
  return std::max(runsOfSmallParts(c, cost.backward / all) * all, alike * runs * once);
}

// Microbatches that the first grid holds between forward and backward, in those of all its stages.
double heldOf(const Candidate& c) {
  const auto microbatches = static_cast<double>(c.microbatches);
  if (c.pp == 1) return 1;
  if (c.schedule == ScheduleKind::kGPipe) return microbatches;
  const auto grids = static_cast<double>(c.pp);
  if (c.interleave == 1) return std::min(microbatches, grids);
  const auto stages = static_cast<double>(c.interleave);
  return std::min(stages * microbatches, 2 * (grids - 1) + (stages - 1) * grids + 1) / stages;
}

// Of a message that all ranks of a group of neighbours with the same parameters send, the first
// grid's.
double secondsOver(const Candidate& c, int64_t ranks, LinkUse use, double bytes,
                   const Cluster& cluster) {
  if (ranks <= 1 || cluster.links.empty()) return 0;
  std::vector<int64_t> group(ranks);
  const RankPlaces places = c.places();
  for (int64_t i = 0; i < ranks; ++i) group[i] = places.of(i * c.tp);
  const auto count = static_cast<double>(ranks);
  const double sent = bytes * (count - 1) / count * (use == LinkUse::kAllReduce ? 2 : 1);
  return linkSeconds(cluster.links, group, use, sent);
}

// What of the communication over data-parallel ranks can't be beside computing.
double exposedOf(const Candidate& c, const MicrobatchCost& cost, double forward, double backward,
                 const Cluster& cluster) {
  if (c.dp * c.cp == 1 || c.apart) return 0;
  const auto grids = static_cast<double>(c.pp), microbatches = static_cast<double>(c.microbatches);
  if (c.zero == 0) {
    const double reduced =
        secondsOver(c, c.dp * c.cp, LinkUse::kAllReduce, cost.gradients / grids, cluster);
    return std::max(0., reduced - backward);
  }
  // A group of them may shard what all don't divide, on nearer links.
  if ((c.sharing() & (c.sharing() - 1)) != 0) return 0;
  const double scattered =
      secondsOver(c, c.sharing(), LinkUse::kGather, cost.gradients / grids, cluster);
  if (c.zero == 1) return std::max(0., scattered - backward);
  if (c.zero == 2) return microbatches * std::max(0., scattered - backward);
  const double gathered =
      secondsOver(c, c.sharing(), LinkUse::kGather, cost.parameters / grids, cluster);
  return microbatches *
         (std::max(0., gathered - forward) + std::max(0., gathered + scattered - backward));
}

}  // namespace

MicrobatchCost leastCost(const MicrobatchCost& known, const Candidate& other, const Candidate& c) {
  const double ranks = static_cast<double>(c.ofSample()) / static_cast<double>(other.ofSample());
  double pieces = static_cast<double>(c.tp) / static_cast<double>(other.tp);
  double share = static_cast<double>(c.micro) / static_cast<double>(other.micro) / ranks;
  if (c.tp % other.tp != 0) {
    // These may divide what the others all have whole.
    const double whole = 1 + kLittleWhole * static_cast<double>(other.tp - 1);
    pieces *= whole;
    share /= whole;
  }
  MicrobatchCost cost;
  cost.stash = known.stash * share;
  // More samples at a time may be faster: they share launches and latencies.
  constexpr double kLarger = 0.8;
  if (c.micro > other.micro) share *= kLarger;
  cost.forward = known.forward * share;
  cost.backward = known.backward * share;
  cost.update = known.update / pieces;
  cost.parameters = known.parameters / pieces;
  cost.gradients = known.gradients / pieces;
  cost.optimizerState = known.optimizerState / pieces;
  if (c.remat == other.remat) {
    if (c.micro == other.micro && ranks == 1 && pieces == 1) cost.parts = known.parts;
    return cost;
  }
  cost.stash = 0;
  if (c.remat == RematPolicy::kFull) {
    // All but the loss runs again.
    constexpr double kAgain = 0.8;
    cost.backward += cost.forward * kAgain;
  }
  return cost;
}

double leastRuns(const Candidate& c, const std::vector<double>& parts) {
  const double all = std::accumulate(parts.begin(), parts.end(), 0.);
  const auto microbatches = static_cast<double>(c.microbatches);
  if (all <= 0) return 0;
  if (c.interleave > 1) {
    const double largest =
        leastLargest(parts, c.pp * c.interleave, [](double, double own) { return own; });
    return microbatches * std::max(largest / all, 1 / static_cast<double>(c.pp));
  }
  // A grid waits for the first microbatch to come, and for the last one to go back.
  return leastLargest(
             parts, c.pp,
             [&](double before, double own) { return fillOf(c) * before + microbatches * own; }) /
         all;
}

Bound boundOf(const Candidate& c, const MicrobatchCost& whole, const Cluster& cluster,
              double runs) {
  const auto grids = static_cast<double>(c.pp);
  // Encoders apart are sharded over the tp ranks, too.
  const int64_t sharing = c.sharing() * (c.apart && c.shards == c.dp ? c.tp : 1);
  const auto shards = static_cast<double>(sharing);
  const MicrobatchCost cost = withSharedGradients(whole, c, cluster);
  const double forward = cost.forward / grids, backward = cost.backward / grids;
  Bound bound;
  // The first microbatch of a step adds to no sum of gradients. Stages together
  // were seen to take 0.11 % less than the whole. With few microbatches of cut positions, what was
  // measured may have a reduction of gradients beside it.
  double details = c.pp == 1 ? 0.999 : c.cp > 1 ? 0.95 : 0.998;
  // The only microbatch of a step sets gradients, where what was measured adds to them: up to 6.6 %
  // less was seen without ZeRO, of models of milliseconds, whose time is that of launches.
  if (c.microbatches == 1 && c.pp == 1 && c.zero == 0) details = 0.93;
  bound.seconds =
      details * (secondsOfRuns(c, cost, runs) + cost.update / grids / (c.zero >= 1 ? shards : 1) +
                 exposedOf(c, cost, forward, backward, cluster));
  // What one backward sets of gradients takes the place of what it has read of the stash. With
  // ZeRO-1, at least a rank's part of them is there behind it.
  const bool isOne = c.pp == 1 && c.microbatches == 1;
  const double gradients = cost.gradients / (c.zero >= (isOne ? 1 : 2) ? shards : 1);
  const double stash = cost.stash * heldOf(c);
  bound.bytes = (cost.parameters / (c.zero >= 3 ? shards : 1) +
                 cost.optimizerState / (c.zero >= 1 ? shards : 1) +
                 (isOne ? std::max(gradients, stash) : gradients + stash)) /
                grids;
  return bound;
}

}  // namespace oriel
