// What each read finds in memory: a run of the program in which a write leaves its name, and how
// the value lies over the ranks.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "runtime/plan/access.h"
#include "runtime/plan/buffer_layout.h"
#include "runtime/plan/own_memory.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_contents.h"
#include "runtime/plan/verify_internal.h"
#include "runtime/plan/verify_overlaps.h"

namespace oriel::runtime {
namespace {

// Reads and writes that are followed before the verifier calls it enough: some seconds. Longer
// schedules repeat themselves.
constexpr int64_t kMaxAccesses = 30'000'000;

class MemoryVerifier {
 public:
  MemoryVerifier(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan),
        index_(index),
        program_(plan.programs(index)),
        axes_(*GridOf(plan, program_)),
        layouts_(LayoutsOf(program_, axes_)),
        rings_(program_),
        own_(program_, rings_),
        accesses_(AccessesOf(program_)),
        problems_(problems) {
    std::map<std::string, int> keys;
    for (int i = 0; i < program_.buffers_size(); ++i) {
      const std::string key = layouts_[i].ViewKey(buffer(i).local().dtype(), axes_);
      keys_.push_back(keys.emplace(key, keys.size()).first->second);
    }
  }

  UpdateValues Verify() {
    if (!own_.Place(index_, problems_)) return {};
    VerifyOverlaps(plan_, index_, rings_, accesses_, problems_);
    RestoreKept();
    std::set<int> scheduled;
    for (const auto& entry : program_.schedule()) {
      const int segment = SegmentIndex(entry.segment());
      scheduled.insert(segment);
      Run(segment, entry.microbatch());
    }
    VerifyWhole();
    VerifyGradients();
    VerifyStepGradients();
    // What the schedule does not run begins with nothing in memory. Only the stages of eval run
    // one behind the other, in their order.
    std::map<std::pair<bool, int64_t>, int> others;
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      if (scheduled.count(segment) > 0) continue;
      const std::string& name = program_.segments(segment).name();
      const auto stage = SegmentKind(name) == "eval" ? SegmentStage(name) : std::nullopt;
      others[{stage.has_value(), stage.value_or(segment)}] = segment;
    }
    bool eval = false;
    for (const auto& [key, segment] : others) {
      if (!eval) {
        contents_.clear();
        RestoreKept();
      }
      eval = key.first;
      Run(segment, 0);
    }
    VerifyOutputs();
    return std::move(values_);
  }

 private:
  const plan::Buffer& buffer(int index) const { return program_.buffers(index); }
  std::string Name(int index) const { return BufferName(buffer(index)); }

  int SegmentIndex(const std::string& name) const {
    for (int i = 0; i < program_.segments_size(); ++i) {
      if (program_.segments(i).name() == name) return i;
    }
    return 0;  // VerifyPrograms has refused it
  }

  Range RangeOf(int index) const { return rings_.Of(index).Copy(microbatch_); }
  // Of one that has no other.
  Range FirstOf(int index) const { return rings_.Of(index).Copy(0); }

  void RestoreKept() {
    for (const auto& [unused, owned] : own_.owned()) {
      if (IsKept(buffer(owned.buffer).kind())) Restore(owned.buffer);
    }
  }

  // What the buffer that owns this memory holds between segments.
  void Restore(int owner) {
    const auto& own = buffer(owner);
    Content content{FirstOf(owner).end, owner, 0, 0};
    content.zero = own.kind() == plan::CONSTANT && IsAllZero(own.data());
    if (own.kind() == plan::CONSTANT) content.constant = owner;
    if (IsSum(own.kind())) content.sum = owner;
    contents_[FirstOf(owner).begin] = content;
  }

  void Run(int segment, int64_t microbatch) {
    ++run_;
    microbatch_ = microbatch;
    in_backward_ = IsBackward(program_.segments(segment).name());
    written_outputs_.clear();
    const std::vector<Access>& accesses = accesses_[segment];
    for (size_t i = 0; i < accesses.size(); ++i) {
      work_ += accesses[i].reads.size() + accesses[i].writes.size();
      if (work_ > kMaxAccesses || problems_.full()) return;
      Execute(segment, static_cast<int>(i));
    }
    for (const int output : written_outputs_) {
      const Range range = RangeOf(output);
      const auto found = contents_.find(range.begin);
      if (found == contents_.end() || found->second.end != range.end) {
        problems_.Add("program ", index_, ", segment ", program_.segments(segment).name(), ": ",
                      Name(output), " is overwritten before the segment ends");
      }
    }
    for (const int owner : changed_) VerifyKept(owner, program_.segments(segment).name());
    changed_.clear();
  }

  // How a segment leaves what the next one expects in its place.
  void VerifyKept(int owner, const std::string& segment) {
    const Content content = contents_[FirstOf(owner).begin];
    const auto refuse = [&](const auto&... what) {
      problems_.Add("program ", index_, ", segment ", segment, what...);
    };
    // The first run of a step that makes a gradient may set it: what was there before is of no use.
    if (buffer(owner).kind() == plan::GRADIENT && segment != kUpdateSegment &&
        content.sum != owner && added_.count(owner) == 0 && read_first_.count(owner) == 0) {
      assigned_.insert(owner);
    }
    if (segment == kUpdateSegment && assigned_.count(owner) > 0) {
      Restore(owner);
      return;
    }
    if (IsReducedGradient(content, owner, segment)) {
      added_.insert(owner);
      return;
    }
    if (content.end != FirstOf(owner).end || !MayBe(content, owner)) {
      refuse(" leaves ", Describe(content.buffer), " in the memory of ", Describe(owner));
    } else if (IsSum(buffer(owner).kind()) && segment == kUpdateSegment) {
      if (!content.zero) refuse(": update does not reset ", Name(owner));
    } else if (IsSum(buffer(owner).kind())) {
      const bool first = added_.insert(owner).second;
      if (content.sum != owner && !(first && assigned_.count(owner) > 0))
        refuse(" overwrites ", Name(owner), " instead of adding to it");
    }
    Restore(owner);
  }

  // Whether it is the gradient, reduced in place behind its last microbatch. It stays so, for
  // update.
  bool IsReducedGradient(const Content& content, int owner, const std::string& segment) {
    return IsLast(segment) && buffer(owner).kind() == plan::GRADIENT &&
           (content.sum == owner || (assigned_.count(owner) > 0 && added_.count(owner) == 0)) &&
           content.end == FirstOf(owner).end && !MayBe(content, owner);
  }

  // Where microbatches are in flight, each run counts.
  void VerifyWhole() {
    const auto& buffers = program_.buffers();
    if (work_ > kMaxAccesses && std::any_of(buffers.begin(), buffers.end(), [](const auto& buffer) {
          return CopiesOf(buffer) > 1 || buffer.kind() == plan::TRANSFER;
        })) {
      problems_.Add("program ", index_, ": its schedule is too long to be verified");
    }
  }

  // After the schedule.
  void VerifyGradients() {
    const auto is_update = [](const auto& entry) { return IsUpdate(entry); };
    const auto& schedule = program_.schedule();
    if (work_ > kMaxAccesses || std::none_of(schedule.begin(), schedule.end(), is_update)) return;
    for (const auto& [unused, owned] : own_.owned()) {
      const int owner = owned.buffer;
      const bool gradient = buffer(owner).kind() == plan::GRADIENT;
      if (gradient && added_.count(owner) == 0) {
        problems_.Add("program ", index_, ": nothing adds to ", Name(owner));
      }
      if (IsSum(buffer(owner).kind()) && (gradient || added_.count(owner) > 0) &&
          reset_.count(owner) == 0 && assigned_.count(owner) == 0) {
        problems_.Add("program ", index_, ": update does not reset ", Name(owner));
      }
    }
  }

  // One backward sets them, or the sum over several would be lost. What update reads of them but
  // nothing has written is refused where it does.
  void VerifyStepGradients() {
    const auto backwards =
        std::count_if(program_.schedule().begin(), program_.schedule().end(),
                      [](const auto& entry) { return IsBackward(entry.segment()); });
    std::map<int, int> of_ring;  // all are there when update begins
    for (int i = 0; i < program_.buffers_size(); ++i) {
      if (buffer(i).kind() != plan::STEP_GRADIENT) continue;
      const int other = of_ring.try_emplace(rings_.NumberOf(i), i).first->second;
      if (buffer(other).ref() != buffer(i).ref() && !rings_.IsEmpty(i)) {
        problems_.Add("program ", index_, ": ", Name(other), " and ", Name(i),
                      " lie in the same memory");
      }
      if (backwards != 1) {
        problems_.Add("program ", index_, ": ", Name(i), " is of one backward, but a step runs ",
                      backwards);
      }
      if (work_ <= kMaxAccesses && !rings_.IsEmpty(i) && set_.count(rings_.NumberOf(i)) == 0) {
        problems_.Add("program ", index_, ": no backward sets ", Name(i));
      }
    }
  }

  std::string Describe(int index) const {
    return absl::StrCat(Name(index), " (", layouts_[index].ToString(), ")");
  }

  // Whether the content of a memory is what a buffer of the same memory says that it is.
  bool MayBe(const Content& content, int index) {
    const auto& written = buffer(content.buffer);
    if (keys_[content.buffer] == keys_[index] || content.zero) return true;
    // Of a constant each rank has the same piece.
    if (written.kind() != plan::CONSTANT || layouts_[index].IsPending() ||
        layouts_[index].scale != layouts_[content.buffer].scale ||
        written.local().dtype() != buffer(index).local().dtype()) {
      return false;
    }
    const TensorSpec local = FromPlan(buffer(index).local());
    return IsUniformAlongCuts(written.data(), local.shape, DTypeBytes(local.dtype),
                              layouts_[index].dims);
  }

  void Execute(int segment, int index) {
    const plan::Instruction& instruction = program_.segments(segment).instructions(index);
    const Access& access = accesses_[segment][index];
    std::set<int> sums;  // among the operands
    std::vector<int> sum_of(access.reads.size(), -1);
    std::vector<int64_t> value_of(access.reads.size(), -1);
    Content moved{0, -1, 0, 0};
    for (size_t i = 0; i < access.reads.size(); ++i) {
      const int read = access.reads[i];
      Read(read, segment, index, PieceOf(instruction, i));
      const auto found = contents_.find(RangeOf(read).begin);
      if (found == contents_.end()) continue;
      moved = found->second;
      sum_of[i] = moved.sum;
      value_of[i] = moved.value;
      if (moved.sum >= 0) sums.insert(moved.sum);
    }
    const bool moves = instruction.has_copy() || instruction.has_slice();
    const bool update = IsUpdate(program_.segments(segment));
    if (update && instruction.has_send()) {
      values_.sent[instruction.send().channel()] = moved.value;
    }
    for (size_t i = 0; i < access.writes.size(); ++i) {
      const int write = access.writes[i];
      const Range range = RangeOf(write);
      Content content{range.end, write, run_, microbatch_};
      if (moves) {
        content.zero = moved.zero;
        content.constant = moved.constant;
        content.sum = moved.sum;
        if (instruction.has_copy() && moved.buffer >= 0 && !range.empty() && !MayBe(moved, write)) {
          problems_.Add(InstructionPath(plan_, index_, segment, index), " copies ",
                        Describe(moved.buffer), " to ", Describe(write));
        }
      } else if (instruction.has_collective()) {
        content.sum = sum_of[i];
      } else if (instruction.has_launch()) {
        content.zero = IsZeroFill(instruction.launch());
        if (sums.count(own_.OwnerOf(write)) > 0) {
          content.sum = own_.OwnerOf(write);
        } else if (!sums.empty()) {
          content.sum = *sums.begin();
        }
      }
      // Of a collective, each operand has its result.
      content.value = !MovesValue(instruction)       ? ++last_value_
                      : instruction.has_collective() ? value_of[i]
                                                     : moved.value;
      Write(content);
      const int owner = own_.OwnerOf(write);
      if (!update) continue;
      if (owner >= 0 && content.zero) reset_.insert(owner);
      if (owner >= 0 && buffer(owner).kind() == plan::PARAMETER) {
        values_.written[buffer(owner).ref()] = content.value;
      }
      if (instruction.has_receive()) {
        values_.received[content.value] = instruction.receive().channel();
      }
    }
  }

  // Whether the result is the operand, perhaps otherwise laid over the ranks.
  static bool MovesValue(const plan::Instruction& instruction) {
    return instruction.has_copy() || instruction.has_slice() ||
           (instruction.has_collective() && !Reduces(instruction.collective().kind()));
  }

  // A factor of a launch's rule, and the axes that cut it.
  struct Piece {
    int64_t size;
    AxisNames axes;
  };

  // What an operand gives the beginning of a piece of, if that is what it is for.
  std::optional<Piece> PieceOf(const plan::Instruction& instruction, size_t operand) const {
    const plan::Split& split = instruction.launch().split();
    if (!instruction.launch().has_split() || split.rule() < 0 ||
        split.rule() >= plan_.rules_size()) {
      return std::nullopt;
    }
    const plan::SplitRule& rule = plan_.rules(split.rule());
    if (operand >= static_cast<size_t>(rule.operands_size())) return std::nullopt;
    const auto& tensor = rule.operands(static_cast<int>(operand));
    if (!tensor.first() || tensor.factor() < 0 || tensor.factor() >= rule.factors_size()) {
      return std::nullopt;
    }
    Piece piece{rule.factors(tensor.factor()).size(), {}};
    if (tensor.factor() < split.factors_size()) {
      piece.axes = axes_.Real(split.factors(tensor.factor()).axes());
    }
    return piece;
  }

  // Whether it is this rank's element of a table of where the pieces begin.
  bool IsBeginning(const Content& content, const Piece& piece) const {
    const int64_t pieces = axes_.SizeOf(piece.axes);
    if (content.constant < 0 || pieces < 1 || piece.size % pieces != 0) return false;
    const std::string& table = buffer(content.constant).data();
    if (buffer(content.constant).local().dtype() != plan::I64 ||
        static_cast<int64_t>(table.size()) != pieces * static_cast<int64_t>(sizeof(int64_t))) {
      return false;
    }
    for (int64_t i = 0; i < pieces; ++i) {
      int64_t first;
      std::memcpy(&first, &table[i * sizeof first], sizeof first);
      if (first != piece.size / pieces * i) return false;
    }
    const BufferLayout& layout = layouts_[content.buffer];
    return pieces == 1 || (layout.dims.size() == 1 && layout.dims[0] == piece.axes);
  }

  void Read(int index, int segment, int instruction, const std::optional<Piece>& piece) {
    const Range range = RangeOf(index);
    if (range.empty()) return;
    const auto path = [&] { return InstructionPath(plan_, index_, segment, instruction); };
    const auto found = contents_.find(range.begin);
    if (found == contents_.end() || found->second.end != range.end) {
      const int by = AnyContentIn(range);
      if (by < 0) {
        problems_.Add(path(), " reads ", Name(index), ", which nothing has written");
      } else {
        problems_.Add(path(), " reads ", Name(index), ", whose memory ", Name(by),
                      " has overwritten");
      }
      return;
    }
    const Content& content = found->second;
    if (piece ? !IsBeginning(content, *piece) : !MayBe(content, index)) {
      problems_.Add(path(), " reads ", Describe(index), ", but there is ",
                    Describe(content.buffer));
    }
    const int owner = own_.OwnerOf(index);
    if (owner >= 0 && content.sum == owner && added_.count(owner) == 0) read_first_.insert(owner);
    if (owner >= 0 && content.zero && IsSum(buffer(owner).kind()) &&
        IsUpdate(program_.segments(segment))) {
      problems_.Add(path(), " reads ", Name(index), " after its reset");
    }
    if ((owner >= 0 && IsKept(buffer(owner).kind())) || content.run == run_) return;
    if (!rings_.IsCarried(index)) {
      problems_.Add(path(), " reads ", Name(index), ", which this segment has not written");
    } else if (!rings_.IsView(content.buffer, index)) {
      problems_.Add(path(), " reads ", Name(index), ", whose memory ", Name(content.buffer),
                    " has overwritten");
    } else if (content.microbatch != microbatch_) {
      problems_.Add(path(), " reads ", Name(index), " of microbatch ", microbatch_,
                    ", but there is that of microbatch ", content.microbatch);
    }
  }

  int AnyContentIn(const Range& range) const {
    const auto after = contents_.lower_bound(range.end);
    if (after == contents_.begin()) return -1;
    const auto last = std::prev(after);
    return last->second.end > range.begin ? last->second.buffer : -1;
  }

  void Write(const Content& content) {
    const int index = content.buffer;
    const Range range = RangeOf(index);
    written_.insert(range);
    if (range.empty()) return;
    if (in_backward_) set_.insert(rings_.NumberOf(index));
    // Whatever overlaps is gone. Contents are disjoint, so that only the one before may reach in.
    auto it = contents_.lower_bound(range.begin);
    if (it != contents_.begin() && std::prev(it)->second.end > range.begin) --it;
    while (it != contents_.end() && it->first < range.end) it = contents_.erase(it);
    contents_[range.begin] = content;
    if (own_.OwnerOf(index) >= 0) {
      if (IsKept(buffer(own_.OwnerOf(index)).kind())) changed_.insert(own_.OwnerOf(index));
    } else if (buffer(index).kind() == plan::OUTPUT) {
      written_outputs_.insert(index);
    }
  }

  void VerifyOutputs() {
    if (work_ > kMaxAccesses) return;
    for (int i = 0; i < program_.buffers_size(); ++i) {
      if (buffer(i).kind() == plan::OUTPUT && own_.OwnerOf(i) < 0 &&
          written_.count(FirstOf(i)) == 0) {
        problems_.Add("program ", index_, ": nothing writes ", Name(i));
      }
    }
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  const GridAxes axes_;
  const std::vector<BufferLayout> layouts_;  // of each buffer
  const Rings rings_;
  OwnMemory own_;
  const SegmentAccesses accesses_;
  Problems& problems_;
  std::vector<int> keys_;  // equal for views that mean the same

  std::map<int64_t, Content> contents_;  // by offset; disjoint
  std::set<Range> written_;
  std::set<int> written_outputs_;
  std::set<int> changed_;     // persistent buffers that this run has written
  std::set<int> added_;       // sums that a segment of the schedule has added to
  std::set<int> reset_;       // .. that update has set to zero
  std::set<int> read_first_;  // .. that are read before a segment has added to them
  std::set<int> assigned_;    // gradients that the first run which makes them sets instead
  std::set<int> set_;         // rings that a backward has written
  UpdateValues values_;
  int64_t last_value_ = 0;
  int64_t run_ = 0;
  int64_t microbatch_ = 0;
  bool in_backward_ = false;
  int64_t work_ = 0;
};

}  // namespace

UpdateValues VerifyMemory(const plan::Plan& plan, int program, Problems& problems) {
  return MemoryVerifier(plan, program, problems).Verify();
}

}  // namespace oriel::runtime
