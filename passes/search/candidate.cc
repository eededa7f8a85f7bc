#include "passes/search/candidate.h"

#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "passes/config/quantity.h"
#include "passes/config/suggest.h"
#include "passes/strategy/strategy_text.h"

namespace oriel {

namespace {

auto tied(const Candidate& c) {
  return std::tuple(c.pp, c.tp, c.cp, c.zero, -c.shards, c.interleave, c.schedule, c.remat,
                    c.sequenceParallel, c.padding, c.apart != nullptr, c.placement, -c.micro, c.dp,
                    c.microbatches);
}

struct NumberPin {
  const char* key;
  std::optional<int64_t> Pins::*pin;
  int64_t least, most;
  const char* meaning;
};

const std::vector<NumberPin>& numberPins() {
  static const auto* pins = new std::vector<NumberPin>{
      {"tp", &Pins::tp, 1, kMaxRanks, "ranks that split a layer"},
      {"cp", &Pins::cp, 1, kMaxRanks, "ranks with other positions of the same samples"},
      {"pp", &Pins::pp, 1, kMaxRanks, "grids of ranks in a pipeline"},
      {"dp", &Pins::dp, 1, kMaxRanks, "data-parallel ranks"},
      {"zero", &Pins::zero, 0, 3, "what is sharded, 0 to 3"},
      {"hsdp", &Pins::hsdp, 0, kMaxRanks, "ranks per group that shards; 0: all"},
      {"micro", &Pins::micro, 1, kMaxRanks, "samples of a microbatch on a rank"},
      {"microbatches", &Pins::microbatches, 1, kMaxMicrobatches, "of a step"},
      {"interleave", &Pins::interleave, 1, kMaxRanks, "stages on the same ranks"},
  };
  return *pins;
}

std::vector<std::string> pinKeys() {
  std::vector<std::string> keys;
  for (const NumberPin& pin : numberPins()) keys.push_back(pin.key);
  for (const char* key : {"schedule", "remat", "sp", "padding", "apart", "placement"}) {
    keys.push_back(key);
  }
  return keys;
}

bool allows(const std::optional<int64_t>& pin, int64_t value) { return !pin || *pin == value; }

absl::Status badValue(const std::string& word, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("can't use '", word, "'; ", expected));
}

absl::Status setPin(const std::string& word, const std::string& key, const std::string& value,
                    Pins* pins) {
  for (const NumberPin& pin : numberPins()) {
    if (key != pin.key) continue;
    int64_t number = 0;
    if (!absl::SimpleAtoi(value, &number) || number < pin.least || number > pin.most) {
      return badValue(word, absl::StrCat(key, " is a number from ", pin.least, " to ", pin.most));
    }
    if (key == "hsdp" && number == 1) {
      return badValue(word, "a group of one rank shards nothing, which is zero=0");
    }
    pins->*pin.pin = number;
    return absl::OkStatus();
  }
  if (key == "schedule") {
    absl::StatusOr<ScheduleKind> kind = parseSchedule(value);
    if (!kind.ok()) return kind.status();
    pins->schedule = *kind;
  } else if (key == "remat") {
    absl::StatusOr<RematPolicy> policy = parseRemat(value);
    if (!policy.ok()) return policy.status();
    if (*policy == RematPolicy::kAuto) {
      return badValue(word, "the search chooses what runs again by itself");
    }
    pins->remat = *policy;
  } else if (key == "placement") {
    absl::StatusOr<Placement> placement = parsePlacement(value);
    if (!placement.ok()) return placement.status();
    pins->placement = *placement;
  } else if (key == "sp" || key == "apart" || key == "padding") {
    if (value != "on" && value != "off") return badValue(word, absl::StrCat(key, " is on or off"));
    auto& pin = key == "sp" ? pins->sequenceParallel : key == "apart" ? pins->apart : pins->padding;
    pin = value == "on";
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no '", key, "' to fix", suggestion(key, pinKeys())));
  }
  return absl::OkStatus();
}

}  // namespace

RankPlaces Candidate::places() const {
  if (placement == Placement::kPpOutermost) return RankPlaces();
  return RankPlaces{pp, ofSample() * dp, ofSample()};
}

Candidate Candidate::with(RematPolicy policy, std::optional<int64_t> within) const {
  Candidate other = *this;
  other.remat = policy;
  other.memory = within;
  return other;
}

Strategy Candidate::strategy() const {
  Strategy strategy;
  strategy.mesh = {dp, 1, tp, cp};
  strategy.zero = zero;
  if (shards < dp && zero > 0) strategy.hsdp = shards;
  strategy.sequenceParallel = sequenceParallel;
  strategy.padding = padding;
  if (apart) {
    strategy.modules = *apart;
    for (Strategy::Module& module : strategy.modules) module.mesh = Mesh{dp * ofSample(), 1, 1};
  }
  strategy.remat = remat;
  strategy.memory = memory;
  strategy.pipeline.emplace();
  strategy.pipeline->stages = pp * interleave;
  strategy.pipeline->schedule = schedule;
  strategy.pipeline->interleave = interleave;
  strategy.pipeline->microbatches = microbatches;
  strategy.pipeline->placement = placement;
  strategy.text = strategyText(strategy);
  return strategy;
}

std::string Candidate::shortText() const {
  std::string text = absl::StrCat("tp=", tp);
  if (cp > 1) absl::StrAppend(&text, " cp=", cp);
  absl::StrAppend(&text, " pp=", pp, " dp=", dp, " zero=", zero);
  if (zero > 0 && shards < dp) absl::StrAppend(&text, " hsdp=", shards);
  absl::StrAppend(&text, " micro=", micro, "x", microbatches);
  if (pp > 1) absl::StrAppend(&text, " ", scheduleName(schedule));
  if (interleave > 1) absl::StrAppend(&text, ":", interleave);
  absl::StrAppend(&text, " remat=", rematName(remat));
  if (sequenceParallel) absl::StrAppend(&text, " sp");
  if (padding) absl::StrAppend(&text, " padding");
  if (apart) absl::StrAppend(&text, " apart");
  if (placement != Placement::kPpOutermost) {
    absl::StrAppend(&text, " ", placementName(placement));
  }
  return text;
}

bool operator==(const Candidate& a, const Candidate& b) { return tied(a) == tied(b); }
bool operator<(const Candidate& a, const Candidate& b) { return tied(a) < tied(b); }

bool Pins::allow(const Candidate& c) const {
  const bool isDivided = c.zero > 0 && c.shards < c.dp;
  const bool isOneGroup = c.zero > 0 && c.shards == c.dp && allows(hsdp, c.dp);
  return allows(tp, c.tp) && allows(cp, c.cp) && allows(pp, c.pp) && allows(dp, c.dp) &&
         allows(micro, c.micro) && allows(microbatches, c.microbatches) &&
         allows(interleave, c.interleave) && allows(zero, c.zero) &&
         (isOneGroup || allows(hsdp, isDivided ? c.shards : 0)) &&
         (!schedule || (c.pp > 1 && *schedule == c.schedule)) && (!remat || *remat == c.remat) &&
         (!sequenceParallel || *sequenceParallel == c.sequenceParallel) &&
         (!apart || *apart == (c.apart != nullptr)) && (!placement || *placement == c.placement);
}

std::vector<std::string> Pins::words() const {
  std::vector<std::string> words;
  for (const NumberPin& pin : numberPins()) {
    if (const auto& value = this->*pin.pin) words.push_back(absl::StrCat(pin.key, "=", *value));
  }
  if (schedule) words.push_back(absl::StrCat("schedule=", scheduleName(*schedule)));
  if (remat) words.push_back(absl::StrCat("remat=", rematName(*remat)));
  if (sequenceParallel) words.push_back(absl::StrCat("sp=", *sequenceParallel ? "on" : "off"));
  if (apart) words.push_back(absl::StrCat("apart=", *apart ? "on" : "off"));
  if (padding) words.push_back(absl::StrCat("padding=", *padding ? "on" : "off"));
  if (placement) words.push_back(absl::StrCat("placement=", placementName(*placement)));
  return words;
}

absl::StatusOr<Pins> parsePins(const std::vector<std::string>& words) {
  Pins pins;
  std::set<std::string> seen;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos) return badValue(word, "write KEY=VALUE, e.g. tp=2");
    if (!seen.insert(key).second) {
      return absl::InvalidArgumentError(absl::StrCat(key, " is given twice"));
    }
    if (absl::Status status = setPin(word, key, word.substr(equals + 1), &pins); !status.ok()) {
      return status;
    }
  }
  return pins;
}

std::string pinsHelp() {
  std::string text;
  for (const NumberPin& pin : numberPins()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", pin.key, " (", pin.meaning, ")");
  }
  return absl::StrCat(
      text,
      ", schedule, remat (none, selective, full), sp (on, off), apart (on, "
      "off: whether encoders are not split where tp or cp split the rest), padding (on, off: of "
      "what tp does not divide), placement "
      "(pp_outermost, dp_outermost: what is farthest apart)");
}

}  // namespace oriel
