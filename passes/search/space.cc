#include "passes/search/space.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace oriel {

namespace {

std::vector<int64_t> divisorsOf(int64_t number) {
  std::vector<int64_t> small, large;
  for (int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    small.push_back(i);
    if (i != number / i) large.push_back(number / i);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// Beside a pipeline, what shards gradients or parameters sends with each microbatch.
int mostZero(int64_t pp, const Pins& pins) {
  return pp == 1 ? 3 : std::max<int>(1, static_cast<int>(pins.zero.value_or(0)));
}

// Where ranks with the same samples can have samples of their own for the encoders.
std::shared_ptr<const std::vector<Strategy::Module>> encodersApart(const Candidate& candidate,
                                                                   const SearchProblem& problem) {
  const int64_t ranks = candidate.ofSample();
  const bool isPossible = ranks > 1 && candidate.micro % ranks == 0;
  return isPossible ? problem.encoders : nullptr;
}

// Whether the order of the axes on the devices changes any time.
bool hasPlacements(const Candidate& candidate, const Cluster& cluster) {
  return candidate.pp > 1 && candidate.dp > 1 && cluster.links.size() > 1 &&
         candidate.ranks() > cluster.links.front().devices;
}

// Data-parallel ranks of a grid that are in one domain.
int64_t shardsWithin(const LinkLevel& level, const Candidate& candidate) {
  const bool isShared = candidate.placement == Placement::kDpOutermost;
  return level.devices / (candidate.ofSample() * (isShared ? candidate.pp : 1));
}

// How the stages of several grids run.
struct PipelineChoice {
  ScheduleKind schedule;
  int64_t interleave;
};

class Space {
 public:
  explicit Space(const SearchProblem& problem) : problem_(problem), pins_(problem.pins) {}

  std::vector<Candidate> all() {
    for (int64_t tp : divisorsOf(problem_.ranks)) {
      if (!isTensorParallelSize(tp) || !allows(pins_.tp, tp)) continue;
      for (int64_t cp : divisorsOf(problem_.ranks / tp)) {
        if (!isContextParallelSize(cp)) continue;
        for (int64_t pp : divisorsOf(problem_.ranks / tp / cp)) {
          if (pp > problem_.parts || !allows(pins_.pp, pp)) continue;
          addMicrobatches(tp, cp, pp);
        }
      }
    }
    std::sort(candidates_.begin(), candidates_.end());
    return std::move(candidates_);
  }

 private:
  static bool allows(const std::optional<int64_t>& pin, int64_t value) {
    return !pin || *pin == value;
  }

  bool isTensorParallelSize(int64_t tp) const {
    const int64_t node = problem_.cluster.devicesPerNode;
    return node == 1 || node % tp == 0;
  }

  bool isContextParallelSize(int64_t cp) const {
    if (cp > 1 && !problem_.hasContext && !pins_.cp) return false;
    return problem_.positions % cp == 0 && allows(pins_.cp, cp);
  }

  void addMicrobatches(int64_t tp, int64_t cp, int64_t pp) {
    Candidate candidate;
    candidate.tp = tp;
    candidate.padding = problem_.padded.count(tp) > 0;
    candidate.cp = cp;
    candidate.pp = pp;
    candidate.dp = problem_.ranks / tp / cp / pp;
    if (problem_.globalBatch % candidate.dp != 0) return;
    const int64_t share = problem_.globalBatch / candidate.dp;
    for (int64_t micro : divisorsOf(share)) {
      if (problem_.samples && micro * candidate.dp != *problem_.samples) continue;
      if (problem_.isOneMicrobatch && micro != share) continue;
      if (share / micro > kMaxMicrobatches) continue;
      candidate.micro = micro;
      candidate.microbatches = share / micro;
      addPipelines(candidate);
    }
  }

  void addPipelines(Candidate candidate) {
    if (candidate.pp == 1) return addStorage(candidate);
    std::vector<PipelineChoice> choices = {{ScheduleKind::kOneFOneB, 1}, {ScheduleKind::kZbH1, 1}};
    if (pins_.schedule == ScheduleKind::kGPipe) choices.push_back({ScheduleKind::kGPipe, 1});
    std::set<int64_t> interleaves = {2};
    if (pins_.interleave.value_or(1) > 1) interleaves.insert(*pins_.interleave);
    for (int64_t interleave : interleaves) {
      const bool divides = candidate.microbatches % candidate.pp == 0;
      if (!divides || candidate.pp * interleave > problem_.parts) continue;
      choices.push_back({ScheduleKind::kInterleaved, interleave});
    }
    for (const PipelineChoice& choice : choices) {
      candidate.schedule = choice.schedule;
      candidate.interleave = choice.interleave;
      addStorage(candidate);
    }
  }

  void addStorage(Candidate candidate) {
    if (candidate.pp > 1 && candidate.dp > 1) {
      candidate.placement = pins_.placement.value_or(Placement::kPpOutermost);
    }
    candidate.zero = 0;
    candidate.shards = 1;
    addRemat(candidate);
    if (candidate.dp * candidate.cp == 1) return;
    const int most = mostZero(candidate.pp, pins_);
    for (candidate.zero = 1; candidate.zero <= most; ++candidate.zero) {
      for (int64_t shards : shardGroups(candidate)) {
        candidate.shards = shards;
        addRemat(candidate);
      }
    }
  }

  // All of dp, or its ranks in one domain of a level of links.
  std::set<int64_t> shardGroups(const Candidate& candidate) const {
    std::set<int64_t> groups = {candidate.dp};
    if (pins_.hsdp.value_or(0) > 0 && candidate.dp % *pins_.hsdp == 0) groups.insert(*pins_.hsdp);
    for (const LinkLevel& level : problem_.cluster.links) {
      const int64_t group = shardsWithin(level, candidate);
      if (group > 1 && group < candidate.dp && candidate.dp % group == 0) groups.insert(group);
    }
    return groups;
  }

  void addRemat(Candidate candidate) {
    for (RematPolicy remat : {RematPolicy::kNone, RematPolicy::kSelective, RematPolicy::kFull}) {
      candidate.remat = remat;
      candidate.sequenceParallel = candidate.tp > 1;
      if (candidate.tp > 1 && pins_.sequenceParallel) {
        candidate.sequenceParallel = *pins_.sequenceParallel;
      }
      candidate.apart = pins_.apart.value_or(false) ? encodersApart(candidate, problem_) : nullptr;
      if (pins_.allow(candidate)) candidates_.push_back(candidate);
    }
  }

  const SearchProblem& problem_;
  const Pins& pins_;
  std::vector<Candidate> candidates_;
};

Pins onlyPins(const std::vector<std::string>& words) {
  return parsePins(words).value();  // of Pins::words()
}

std::string placeText(const SearchProblem& problem) {
  return absl::StrCat(problem.ranks, problem.ranks == 1 ? " device" : " devices", " (",
                      problem.cluster.devicesPerNode, " per node), a batch of ",
                      problem.globalBatch, " samples and a model of ", problem.parts, " parts");
}

// "tp is 1, 2 or 4 there": what the free space has.
std::string possibleValues(const SearchProblem& problem, const std::vector<Candidate>& all,
                           const std::string& pin) {
  const std::string key = pin.substr(0, pin.find('='));
  if (key == "cp" && problem.positions == 1) return "; its loss has no positions to cut";
  const std::pair<const char*, int64_t Candidate::*> numbers[] = {
      {"tp", &Candidate::tp},
      {"cp", &Candidate::cp},
      {"pp", &Candidate::pp},
      {"dp", &Candidate::dp},
      {"hsdp", &Candidate::shards},
      {"micro", &Candidate::micro},
      {"microbatches", &Candidate::microbatches},
      {"interleave", &Candidate::interleave}};
  for (const auto& [name, member] : numbers) {
    if (key != name) continue;
    std::set<int64_t> values;
    for (const Candidate& candidate : all) values.insert(candidate.*member);
    // A group of one rank is none, and 0 stands for one of all.
    if (key == "hsdp" && values.erase(1) > 0) values.insert(0);
    const std::string text =
        absl::StrCat("; ", key, " is one of ", absl::StrJoin(values, ", "), " there");
    const bool divides = problem.positions % problem.pins.cp.value_or(1) == 0;
    if (key != "cp" || divides) return text;
    return absl::StrCat(text, ": it divides the ", problem.positions, " positions");
  }
  if (pin == "apart=on") {
    return "; that takes a model with an encoder beside its largest tower, tp or cp above 1, and "
           "a micro that tp x cp divides";
  }
  if (pin == "placement=dp_outermost") {
    return "; that takes pp and dp above 1";
  }
  return "";
}

}  // namespace

std::vector<Candidate> allCandidates(const SearchProblem& problem) { return Space(problem).all(); }

absl::Status explainEmptySpace(const SearchProblem& problem) {
  SearchProblem other = problem;
  other.pins = Pins();
  other.hasContext |= problem.pins.cp.has_value();
  const std::vector<Candidate> all = allCandidates(other);
  if (all.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no strategy for ", placeText(problem),
        problem.samples ? absl::StrCat(", made for ", *problem.samples, " samples at a time") : "",
        ": choose another batch.global or number of devices"));
  }
  const std::vector<std::string> pins = problem.pins.words();
  for (const std::string& pin : pins) {
    other.pins = onlyPins({pin});
    if (!allCandidates(other).empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "no strategy has ", pin, " for ", placeText(problem), possibleValues(problem, all, pin)));
  }
  for (size_t i = 0; i < pins.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      other.pins = onlyPins({pins[i]});
      const std::string values = possibleValues(problem, allCandidates(other), pins[j]);
      other.pins = onlyPins({pins[i], pins[j]});
      if (!allCandidates(other).empty()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(pins[j], " and ", pins[i], " exclude each other for ", placeText(problem),
                       values.empty() ? "" : absl::StrCat(values, " with ", pins[i])));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("no strategy has ", absl::StrJoin(pins, ", "),
                                                 " together for ", placeText(problem),
                                                 ": fix less"));
}

namespace {

// The candidates next to one, by what is changed.
class Neighbours {
 public:
  Neighbours(const Candidate& candidate, const SearchProblem& problem)
      : from_(candidate), problem_(problem) {}

  std::vector<Candidate> all() {
    changeMesh();
    changeMicro();
    changePipeline();
    changeStorage();
    for (RematPolicy remat : {RematPolicy::kNone, RematPolicy::kSelective, RematPolicy::kFull}) {
      add([&](Candidate* c) { c->remat = remat; });
    }
    if (from_.tp > 1) add([](Candidate* c) { c->sequenceParallel = !c->sequenceParallel; });
    if (problem_.paddable.count(from_.tp) > 0 && !problem_.pins.padding) {
      add([](Candidate* c) { c->padding = !c->padding; });
    }
    add([&](Candidate* c) { c->apart = from_.apart ? nullptr : problem_.encoders; });
    changePlacement();
    return std::move(found_);
  }

 private:
  template <typename Change>
  void add(Change change) {
    Candidate c = from_;
    change(&c);
    const bool isMesh = problem_.ranks % (c.ofSample() * c.pp) == 0 &&
                        problem_.positions % c.cp == 0 && c.pp * c.interleave <= problem_.parts;
    const int64_t node = problem_.cluster.devicesPerNode;
    if (!isMesh || (node > 1 && node % c.tp != 0)) return;
    c.dp = problem_.ranks / (c.ofSample() * c.pp);
    if (c.dp != from_.dp) c.shards = from_.shards == from_.dp ? c.dp : std::min(c.dp, c.shards);
    if (c.dp * c.cp == 1) c.zero = 0;
    if (c.zero == 0) c.shards = 1;
    if (c.zero > 0 && from_.zero == 0) c.shards = c.dp;
    if (c.tp == 1) c.sequenceParallel = false;
    if (c.tp > 1 && from_.tp == 1) c.sequenceParallel = true;
    if (c.tp != from_.tp) c.padding = problem_.padded.count(c.tp) > 0;
    if (c.apart) c.apart = encodersApart(c, problem_);
    if (c.pp == 1) c.schedule = ScheduleKind::kOneFOneB;
    if (c.pp == 1) c.interleave = 1;
    if (c.pp == 1 || c.dp == 1) c.placement = Placement::kPpOutermost;
    if (c.zero > mostZero(c.pp, problem_.pins)) c.zero = mostZero(c.pp, problem_.pins);
    const int64_t samples = c.micro * c.dp;
    if (problem_.globalBatch % samples != 0 || c.dp % c.shards != 0) return;
    c.microbatches = problem_.globalBatch / samples;
    if (problem_.isOneMicrobatch && c.microbatches != 1) return;
    if (problem_.samples && samples != *problem_.samples) return;
    if (c.schedule == ScheduleKind::kInterleaved && c.microbatches % c.pp != 0) return;
    const bool isKnown = std::find(found_.begin(), found_.end(), c) != found_.end();
    if (!isKnown && !(c == from_) && problem_.pins.allow(c)) found_.push_back(c);
  }

  void changeMesh() {
    add([](Candidate* c) { c->tp *= 2; });
    if (from_.tp % 2 == 0) add([](Candidate* c) { c->tp /= 2; });
    add([](Candidate* c) { c->pp *= 2; });
    if (from_.pp % 2 == 0) add([](Candidate* c) { c->pp /= 2; });
    add([](Candidate* c) { c->cp *= 2; });
    if (from_.cp % 2 == 0) add([](Candidate* c) { c->cp /= 2; });
    // The same samples on a rank.
    add([](Candidate* c) { trade(&c->tp, &c->cp); });
    add([](Candidate* c) { trade(&c->cp, &c->tp); });
    add([](Candidate* c) { trade(&c->pp, &c->cp); });
  }

  static void trade(int64_t* from, int64_t* to) {
    if (*from % 2 != 0) return;
    *from /= 2;
    *to *= 2;
  }

  void changeMicro() {
    const int64_t share = problem_.globalBatch / from_.dp;
    const std::vector<int64_t> micros = divisorsOf(share);
    const auto own = std::find(micros.begin(), micros.end(), from_.micro);
    if (own == micros.end()) return;
    if (own != micros.begin()) add([&](Candidate* c) { c->micro = *(own - 1); });
    if (own + 1 != micros.end()) add([&](Candidate* c) { c->micro = *(own + 1); });
  }

  void changePipeline() {
    if (from_.pp == 1) return;
    for (ScheduleKind kind : {ScheduleKind::kOneFOneB, ScheduleKind::kZbH1}) {
      add([&](Candidate* c) {
        c->schedule = kind;
        c->interleave = 1;
      });
    }
    // About a block on each stage, to which no short chain of faster neighbours may lead: of the
    // parts of a model, some are what is between blocks.
    const int64_t blocks = problem_.parts * 3 / 4 / from_.pp;
    for (int64_t interleave :
         {from_.interleave - 1, from_.interleave + 1, from_.interleave * 2, blocks}) {
      if (interleave < 2) continue;
      add([&](Candidate* c) {
        c->schedule = ScheduleKind::kInterleaved;
        c->interleave = interleave;
      });
    }
  }

  void changeStorage() {
    for (int zero = 0; zero <= mostZero(from_.pp, problem_.pins); ++zero) {
      add([&](Candidate* c) { c->zero = zero; });
    }
    if (from_.zero == 0) return;
    add([](Candidate* c) { c->shards = c->dp; });
    for (const LinkLevel& level : problem_.cluster.links) {
      const int64_t group = shardsWithin(level, from_);
      if (group > 1 && group < from_.dp) add([&](Candidate* c) { c->shards = group; });
    }
  }

  void changePlacement() {
    if (!hasPlacements(from_, problem_.cluster)) return;
    for (Placement placement : {Placement::kPpOutermost, Placement::kDpOutermost}) {
      add([&](Candidate* c) { c->placement = placement; });
    }
  }

  const Candidate from_;
  const SearchProblem& problem_;
  std::vector<Candidate> found_;
};

}  // namespace

std::vector<Candidate> neighboursOf(const Candidate& candidate, const SearchProblem& problem) {
  if (candidate.remat != RematPolicy::kAuto) return Neighbours(candidate, problem).all();
  // Those that compute again as needed are simulated only where they promise most: beside them,
  // those that compute nothing again.
  std::vector<Candidate> all;
  for (RematPolicy remat : {RematPolicy::kNone, RematPolicy::kSelective, RematPolicy::kFull}) {
    all.push_back(candidate.with(remat));
  }
  for (const Candidate& other : Neighbours(candidate.with(RematPolicy::kFull), problem).all()) {
    if (other.remat != RematPolicy::kFull) continue;
    all.push_back(other.with(RematPolicy::kAuto, candidate.memory));
    all.push_back(other.with(RematPolicy::kNone));
  }
  return all;
}

}  // namespace oriel
