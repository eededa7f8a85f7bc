#include "passes/search/bound.h"

#include <algorithm>
#include <vector>

#include "passes/cost/link_time.h"

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
// docs/strategy.md).
double fillOf(const Candidate& c) {
  // A third at best: what fills it are the gradients of weights, a third of a microbatch.
  constexpr double kZeroBubblePart = 1. / 4;
  return c.schedule == ScheduleKind::kZbH1 ? kZeroBubblePart
                                           : 1 / static_cast<double>(c.interleave);
}

// Of the busiest grid, a microbatch. What runs again may be of others.
double busiestOf(const Candidate& c, const MicrobatchCost& cost, double share) {
  // Layers that are split over tp may be so by other factors than the rest.
  const double alike = c.ofSample() == 1 ? 0.97 : 0.9;
  const double all = cost.forward + cost.backward;
  const double once = c.remat == RematPolicy::kNone ? all : cost.backward;
  return std::max(all / static_cast<double>(c.pp), alike * share * once);
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

Bound boundOf(const Candidate& c, const MicrobatchCost& whole, const Cluster& cluster,
              double busiest) {
  const auto grids = static_cast<double>(c.pp);
  // Encoders apart are sharded over the tp ranks, too.
  const int64_t sharing = c.sharing() * (c.apart && c.shards == c.dp ? c.tp : 1);
  const auto shards = static_cast<double>(sharing);
  const MicrobatchCost cost = withSharedGradients(whole, c, cluster);
  const double forward = cost.forward / grids, backward = cost.backward / grids;
  const double own = busiestOf(c, cost, busiest), all = cost.forward + cost.backward;
  const double runs = static_cast<double>(c.microbatches) * own + fillOf(c) * (all - own);
  Bound bound;
  // The first microbatch of a step adds to no sum of gradients. Stages together
  // were seen to take 0.11 % less than the whole. With few microbatches of cut positions, what was
  // measured may have a reduction of gradients beside it.
  double details = c.pp == 1 ? 0.999 : c.cp > 1 ? 0.95 : 0.998;
  // The only microbatch of a step sets gradients, where what was measured adds to them: up to 6.6 %
  // less was seen without ZeRO, of models of milliseconds, whose time is that of launches.
  if (c.microbatches == 1 && c.pp == 1 && c.zero == 0) details = 0.93;
  bound.seconds = details * (runs + cost.update / grids / (c.zero >= 1 ? shards : 1) +
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
