#include "passes/overlap/list_scheduler.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace oriel {

namespace {

// Longer than any segment, and short enough that a double holds nanoseconds beside it.
constexpr double kUrgent = 1e4;

class Scheduler {
 public:
  Scheduler(const std::vector<OverlapOp>& ops, const OverlapBounds& bounds)
      : ops_(ops), bounds_(bounds), users_(ops.size()), states_(ops.size()) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (int operand : ops_[i].operands) users_[operand].push_back(static_cast<int>(i));
      streamFree_.resize(std::max<size_t>(streamFree_.size(), ops_[i].stream + 1));
      if (isAhead(i)) ahead_.push_back(static_cast<int>(i));
    }
    // By the first user; what nobody uses comes last.
    auto firstUser = [&](int op) {
      return users_[op].empty() ? static_cast<int>(ops_.size()) : users_[op].front();
    };
    std::stable_sort(ahead_.begin(), ahead_.end(),
                     [&](int a, int b) { return firstUser(a) < firstUser(b); });
    queues_.resize(streamFree_.size());
    for (size_t place = 0; place < ahead_.size(); ++place) {
      queues_[ops_[ahead_[place]].stream].places.push_back(place);
    }
    findPriorities();
  }

  OverlapSchedule run() {
    for (size_t first = 0;;) {
      startAhead();
      while (first < ops_.size() && (states_[first].ran || isAhead(first))) ++first;
      if (first == ops_.size()) break;
      advance(first);
    }
    for (int op : ahead_) start(op);
    while (!onTheirWay_.empty()) wait(onTheirWay_.front());
    result_.seconds = now_;
    return std::move(result_);
  }

 private:
  struct State {
    double priority = 0;
    bool ran = false;  // a collective: has been started
    bool waited = false;
    bool countsAhead = false;
    double finish = 0;  // of a collective
  };

  // The collectives without operands of one stream.
  struct Queue {
    std::vector<size_t> places;  // in `ahead_`
    size_t next = 0;
    bool isBlocked = false;

    bool isDone() const { return next == places.size(); }
  };

  bool isCollective(size_t op) const { return ops_[op].stream > 0; }
  bool isAhead(size_t op) const { return isCollective(op) && ops_[op].operands.empty(); }

  // Users before operands.
  void findPriorities() {
    std::vector<size_t> left(ops_.size());  // users without a priority
    std::vector<int> stack;
    for (size_t i = 0; i < ops_.size(); ++i) {
      left[i] = users_[i].size();
      if (left[i] == 0) stack.push_back(static_cast<int>(i));
    }
    while (!stack.empty()) {
      const int op = stack.back();
      stack.pop_back();
      double longest = ops_[op].leaves ? kUrgent : 0;
      for (int user : users_[op]) longest = std::max(longest, states_[user].priority);
      states_[op].priority = longest + ops_[op].seconds;
      for (int operand : ops_[op].operands) {
        if (--left[operand] == 0) stack.push_back(operand);
      }
    }
  }

  void start(int op) {
    State& state = states_[op];
    if (state.ran) return;
    state.ran = true;
    double& free = streamFree_[ops_[op].stream];
    state.finish = free = std::max(now_, free) + ops_[op].seconds;
    onTheirWay_.push_back(op);
    if (!isAhead(op)) bytesBehind_ += ops_[op].bytes;
    result_.steps.push_back({OverlapStep::Kind::kStart, op});
  }

  void wait(int op) {
    State& state = states_[op];
    if (state.waited) return;
    state.waited = true;
    now_ = std::max(now_, state.finish);
    onTheirWay_.erase(std::find(onTheirWay_.begin(), onTheirWay_.end(), op));
    if (!isAhead(op)) bytesBehind_ -= ops_[op].bytes;
    result_.steps.push_back({OverlapStep::Kind::kWait, op});
  }

  void startAhead() {
    for (Queue& queue : queues_) queue.isBlocked = false;
    while (Queue* queue = firstQueue()) {
      const int op = ahead_[queue->places[queue->next]];
      const OverlapOp& collective = ops_[op];
      // None overtakes another one of its stream.
      queue->isBlocked =
          streamFree_[collective.stream] > now_ || bytesAhead_ + collective.bytes > bounds_.ahead;
      if (queue->isBlocked) continue;
      states_[op].countsAhead = true;
      bytesAhead_ += collective.bytes;
      start(op);
    }
  }

  // Of those that are not blocked, the one whose next collective is used first.
  Queue* firstQueue() {
    Queue* first = nullptr;
    for (Queue& queue : queues_) {
      while (!queue.isDone() && states_[ahead_[queue.places[queue.next]]].ran) ++queue.next;
      if (queue.isBlocked || queue.isDone()) continue;
      if (!first || queue.places[queue.next] < first->places[first->next]) first = &queue;
    }
    return first;
  }

  // Runs the first op that can and may, or waits for a collective that one needs.
  void advance(size_t first) {
    int blocked = -1;  // the one with the highest priority of those that have stepped back
    for (size_t i = first; i < ops_.size(); ++i) {
      const int op = static_cast<int>(i);
      if (states_[op].ran || isAhead(op) || !isReady(op)) continue;
      if (waitsBehind(op)) {
        if (blocked < 0 || states_[op].priority > states_[blocked].priority) blocked = op;
        continue;
      }
      if (isCollective(op)) return startBehind(op);
      if (blocked >= 0 && states_[op].priority <= states_[blocked].priority) break;
      return compute(op);
    }
    if (blocked >= 0) waitForOperands(blocked);
  }

  // Whether all that it takes has been computed or started, or can be started now.
  bool isReady(int op) const {
    const std::vector<int>& operands = ops_[op].operands;
    return std::all_of(operands.begin(), operands.end(),
                       [&](int operand) { return states_[operand].ran || isAhead(operand); });
  }

  // Whether it takes what is still on its way, and was not started ahead.
  bool waitsBehind(int op) const {
    const std::vector<int>& operands = ops_[op].operands;
    return std::any_of(operands.begin(), operands.end(), [&](int operand) {
      return isCollective(operand) && !isAhead(operand) && !states_[operand].waited;
    });
  }

  void waitForOperands(int op) {
    for (int operand : ops_[op].operands) {
      if (!isCollective(operand)) continue;
      start(operand);
      wait(operand);
    }
  }

  void compute(int op) {
    waitForOperands(op);
    release(op);
    startAhead();  // on a stream that has got idle
    states_[op].ran = true;
    now_ += ops_[op].seconds;
    result_.steps.push_back({OverlapStep::Kind::kRun, op});
  }

  void startBehind(int op) {
    waitForOperands(op);
    release(op);
    start(op);
    // The oldest ones, but not this one.
    for (size_t i = 0; i < onTheirWay_.size() && bytesBehind_ > bounds_.behind;) {
      const int other = onTheirWay_[i];
      if (other == op || isAhead(other) || ops_[other].bytes == 0) {
        ++i;
      } else {
        wait(other);
      }
    }
  }

  // What it uses is not ahead any more.
  void release(int op) {
    for (int operand : ops_[op].operands) {
      if (!std::exchange(states_[operand].countsAhead, false)) continue;
      bytesAhead_ -= ops_[operand].bytes;
    }
  }

  const std::vector<OverlapOp>& ops_;
  const OverlapBounds bounds_;
  std::vector<std::vector<int>> users_;
  std::vector<State> states_;
  std::vector<double> streamFree_;
  std::vector<int> ahead_;       // collectives without operands, by their first users
  std::vector<Queue> queues_;    // by stream, of `ahead_`
  std::vector<int> onTheirWay_;  // in the order of their starts
  int64_t bytesAhead_ = 0;
  int64_t bytesBehind_ = 0;
  double now_ = 0;
  OverlapSchedule result_;
};

}  // namespace

OverlapSchedule scheduleOverlap(const std::vector<OverlapOp>& ops, const OverlapBounds& bounds) {
  return Scheduler(ops, bounds).run();
}

}  // namespace oriel
