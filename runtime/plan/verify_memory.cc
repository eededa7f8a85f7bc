// What each read finds in memory: a run of the program in which a write leaves its name, and how
// the value lies over the ranks.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "runtime/plan/buffer_layout.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

// Reads and writes that are followed before the verifier calls it enough: some seconds. Longer
// schedules repeat themselves.
constexpr int64_t kMaxAccesses = 30'000'000;

struct Range {
  int64_t begin;
  int64_t end;
  bool empty() const { return begin == end; }
  bool Overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  friend bool operator<(const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  }
  friend bool operator==(const Range& a, const Range& b) {
    return a.begin == b.begin && a.end == b.end;
  }
};

// What the last write left in a range.
struct Content {
  int64_t end;
  int buffer;
  int64_t run;  // which entry of the schedule wrote it
  int64_t microbatch;
  bool zero = false;  // all zeros, which mean the same however they lie
  int constant = -1;  // the constant that it is a piece of
  int sum = -1;       // the gradient or accumulator whose value has been added to
};

bool IsSum(plan::BufferKind kind) { return kind == plan::GRADIENT || kind == plan::ACCUMULATOR; }

bool IsAllZero(const std::string& data) {
  return std::all_of(data.begin(), data.end(), [](char byte) { return byte == 0; });
}

// Whether all elements of the tensor are the same along dimensions that are cut.
bool IsUniformAlongCuts(const std::string& data, const Shape& shape, int64_t element_bytes,
                        const std::vector<AxisNames>& dims) {
  int64_t inner = element_bytes;
  for (size_t dim = shape.size(); dim-- > 0;) {
    const int64_t block = inner * shape[dim];
    if (!dims[dim].empty()) {
      for (int64_t i = 0; i < static_cast<int64_t>(data.size()); i += inner) {
        if (std::memcmp(&data[i], &data[i - i % block], inner) != 0) return false;
      }
    }
    inner = block;
  }
  return true;
}

class MemoryVerifier {
 public:
  MemoryVerifier(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan),
        index_(index),
        program_(plan.programs(index)),
        axes_(*GridOf(plan, program_)),
        layouts_(LayoutsOf(program_, axes_)),
        problems_(problems) {
    std::map<std::string, int> keys;
    for (int i = 0; i < program_.buffers_size(); ++i) {
      const std::string key = layouts_[i].ViewKey(buffer(i).local().dtype(), axes_);
      keys_.push_back(keys.emplace(key, keys.size()).first->second);
    }
    for (const auto& buffer : program_.buffers()) {
      ranges_.push_back({buffer.offset(), buffer.offset() + *CheckedBytes(buffer.local())});
      if (buffer.kind() == plan::STASH) stashes_.insert(ranges_.back());
    }
    for (const auto& segment : program_.segments()) {
      std::vector<Access>& accesses = accesses_.emplace_back();
      for (const auto& instruction : segment.instructions()) {
        accesses.push_back(AccessOf(instruction));
      }
    }
  }

  void Verify() {
    if (!PlacePersistent()) return;
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      for (size_t i = 0; i < accesses_[segment].size(); ++i) {
        VerifyInPlace(segment, static_cast<int>(i));
      }
    }
    for (const auto& [unused, owner] : persistent_) Restore(owner);
    std::set<int> scheduled;
    for (const auto& entry : program_.schedule()) {
      const int segment = SegmentIndex(entry.segment());
      scheduled.insert(segment);
      Run(segment, entry.microbatch());
    }
    VerifyGradients();
    // What the schedule does not run (eval) begins with nothing in memory.
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      if (scheduled.count(segment) > 0) continue;
      contents_.clear();
      for (const auto& [unused, owner] : persistent_) Restore(owner);
      Run(segment, 0);
    }
    VerifyOutputs();
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

  // The buffer that owns this memory for the whole program, or that overlaps it.
  std::optional<int> PersistentOverlap(const Range& range) const {
    auto after = persistent_.lower_bound(range.end);
    if (after == persistent_.begin()) return std::nullopt;
    const int owner = std::prev(after)->second;
    if (!ranges_[owner].Overlaps(range)) return std::nullopt;
    return owner;
  }

  // Gives each persistent buffer its memory. Temporaries in it have to be views of it.
  bool PlacePersistent() {
    std::vector<int> order;
    for (int i = 0; i < program_.buffers_size(); ++i) {
      if (!ranges_[i].empty()) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return ranges_[a] < ranges_[b]; });
    bool valid = true;
    for (const int i : order) {
      if (!IsPersistent(buffer(i).kind())) continue;
      const auto other = PersistentOverlap(ranges_[i]);
      if (other && !(ranges_[*other] == ranges_[i] && IsViewOfConstant(i, *other))) {
        problems_.Add("program ", index_, ": ", Name(*other), " and ", Name(i),
                      " lie in the same memory");
        valid = false;
      }
      if (!other) persistent_[ranges_[i].begin] = i;
    }
    owners_.assign(program_.buffers_size(), -1);
    for (const int i : order) {
      const auto owner = PersistentOverlap(ranges_[i]);
      if (!owner) continue;
      if (ranges_[*owner] == ranges_[i]) {
        owners_[i] = *owner;
      } else if (!IsPersistent(buffer(i).kind())) {
        problems_.Add("program ", index_, ": ", Name(i), " lies partly in the memory of ",
                      Name(*owner));
        valid = false;
      }
    }
    return valid;
  }

  // What the buffer that owns this memory holds between segments.
  void Restore(int owner) {
    const auto& own = buffer(owner);
    Content content{ranges_[owner].end, owner, 0, 0};
    content.zero = own.kind() == plan::CONSTANT && IsAllZero(own.data());
    if (own.kind() == plan::CONSTANT) content.constant = owner;
    if (IsSum(own.kind())) content.sum = owner;
    contents_[ranges_[owner].begin] = content;
  }

  bool IsViewOfConstant(int a, int b) const {
    return buffer(a).kind() == plan::CONSTANT && buffer(b).kind() == plan::CONSTANT &&
           buffer(a).data() == buffer(b).data();
  }

  // Peers, or this rank itself, may still read the operand while the result is written.
  bool MovesPieces(int segment, int index) const {
    const auto& instruction = program_.segments(segment).instructions(index);
    return instruction.has_slice() ||
           (instruction.has_collective() &&
            instruction.collective().kind() != plan::Collective::ALL_REDUCE);
  }

  // Results don't overlap each other, and operands only as a whole; where pieces move, not at all.
  void VerifyInPlace(int segment, int instruction) {
    const Access& access = accesses_[segment][instruction];
    std::map<int64_t, int> results;  // by offset; disjoint
    const auto overlapping = [&](const Range& range) -> std::optional<int> {
      const auto after = results.lower_bound(range.end);
      if (after == results.begin()) return std::nullopt;
      const int found = std::prev(after)->second;
      if (!ranges_[found].Overlaps(range)) return std::nullopt;
      return found;
    };
    for (const int result : access.writes) {
      if (ranges_[result].empty()) continue;
      if (const auto other = overlapping(ranges_[result])) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its results ",
                      Name(*other), " and ", Name(result), " overlap in memory");
        return;
      }
      results[ranges_[result].begin] = result;
    }
    for (const int operand : access.reads) {
      if (ranges_[operand].empty()) continue;
      const auto result = overlapping(ranges_[operand]);
      if (result && MovesPieces(segment, instruction)) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its result ",
                      Name(*result), " lies in the memory of its operand ", Name(operand));
      } else if (result && !(ranges_[*result] == ranges_[operand])) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its result ",
                      Name(*result), " overlaps its operand ", Name(operand), " in part");
      }
    }
  }

  void Run(int segment, int64_t microbatch) {
    ++run_;
    microbatch_ = microbatch;
    written_outputs_.clear();
    const std::vector<Access>& accesses = accesses_[segment];
    for (size_t i = 0; i < accesses.size(); ++i) {
      work_ += accesses[i].reads.size() + accesses[i].writes.size();
      if (work_ > kMaxAccesses || problems_.full()) return;
      Execute(segment, static_cast<int>(i));
    }
    for (const int output : written_outputs_) {
      const auto found = contents_.find(ranges_[output].begin);
      if (found == contents_.end() || found->second.end != ranges_[output].end) {
        problems_.Add("program ", index_, ", segment ", program_.segments(segment).name(), ": ",
                      Name(output), " is overwritten before the segment ends");
      }
    }
    for (const int owner : changed_) VerifyKept(owner, program_.segments(segment).name());
    changed_.clear();
  }

  // How a segment leaves what the next one expects in its place.
  void VerifyKept(int owner, const std::string& segment) {
    const Content content = contents_[ranges_[owner].begin];
    const auto refuse = [&](const auto&... what) {
      problems_.Add("program ", index_, ", segment ", segment, what...);
    };
    if (content.end != ranges_[owner].end || !MayBe(content, owner)) {
      refuse(" leaves ", Describe(content.buffer), " in the memory of ", Describe(owner));
    } else if (IsSum(buffer(owner).kind()) && segment == "update") {
      if (!content.zero) refuse(": update does not reset ", Name(owner));
    } else if (IsSum(buffer(owner).kind())) {
      added_.insert(owner);
      if (content.sum != owner) refuse(" overwrites ", Name(owner), " instead of adding to it");
    }
    Restore(owner);
  }

  // After the schedule.
  void VerifyGradients() {
    const auto is_update = [](const auto& entry) { return entry.segment() == "update"; };
    const auto& schedule = program_.schedule();
    if (work_ > kMaxAccesses || std::none_of(schedule.begin(), schedule.end(), is_update)) return;
    for (const auto& [unused, owner] : persistent_) {
      const bool gradient = buffer(owner).kind() == plan::GRADIENT;
      if (gradient && added_.count(owner) == 0) {
        problems_.Add("program ", index_, ": nothing adds to ", Name(owner));
      }
      if (IsSum(buffer(owner).kind()) && (gradient || added_.count(owner) > 0) &&
          reset_.count(owner) == 0) {
        problems_.Add("program ", index_, ": update does not reset ", Name(owner));
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
    Content moved{0, -1, 0, 0};
    for (size_t i = 0; i < access.reads.size(); ++i) {
      const int read = access.reads[i];
      Read(read, segment, index, PieceOf(instruction, i));
      const auto found = contents_.find(ranges_[read].begin);
      if (found == contents_.end()) continue;
      moved = found->second;
      if (moved.sum >= 0) sums.insert(moved.sum);
    }
    const bool moves = instruction.has_copy() || instruction.has_slice();
    for (const int write : access.writes) {
      Content content{ranges_[write].end, write, run_, microbatch_};
      if (moves) {
        content.zero = moved.zero;
        content.constant = moved.constant;
        content.sum = moved.sum;
        if (instruction.has_copy() && moved.buffer >= 0 && !ranges_[write].empty() &&
            !MayBe(moved, write)) {
          problems_.Add(InstructionPath(plan_, index_, segment, index), " copies ",
                        Describe(moved.buffer), " to ", Describe(write));
        }
      } else if (instruction.has_launch()) {
        content.zero = IsZeroFill(instruction.launch());
        if (sums.count(owners_[write]) > 0) {
          content.sum = owners_[write];
        } else if (!sums.empty()) {
          content.sum = *sums.begin();
        }
      }
      Write(content);
      const int owner = owners_[write];
      if (owner >= 0 && content.zero && program_.segments(segment).name() == "update") {
        reset_.insert(owner);
      }
    }
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
    const Range& range = ranges_[index];
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
    const int owner = owners_[index];
    if (owner >= 0 && content.zero && IsSum(buffer(owner).kind()) &&
        program_.segments(segment).name() == "update") {
      problems_.Add(path(), " reads ", Name(index), " after its reset");
    }
    if (owner >= 0 || content.run == run_) return;
    if (stashes_.count(range) == 0) {
      problems_.Add(path(), " reads ", Name(index), ", which this segment has not written");
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
    const Range& range = ranges_[index];
    written_.insert(range);
    if (range.empty()) return;
    // Whatever overlaps is gone. Contents are disjoint, so that only the one before may reach in.
    auto it = contents_.lower_bound(range.begin);
    if (it != contents_.begin() && std::prev(it)->second.end > range.begin) --it;
    while (it != contents_.end() && it->first < range.end) it = contents_.erase(it);
    contents_[range.begin] = content;
    if (owners_[index] >= 0) {
      changed_.insert(owners_[index]);
    } else if (buffer(index).kind() == plan::OUTPUT) {
      written_outputs_.insert(index);
    }
  }

  void VerifyOutputs() {
    if (work_ > kMaxAccesses) return;
    for (int i = 0; i < program_.buffers_size(); ++i) {
      if (buffer(i).kind() == plan::OUTPUT && owners_[i] < 0 && written_.count(ranges_[i]) == 0) {
        problems_.Add("program ", index_, ": nothing writes ", Name(i));
      }
    }
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  const GridAxes axes_;
  const std::vector<BufferLayout> layouts_;  // of each buffer
  Problems& problems_;
  std::vector<int> keys_;                      // equal for views that mean the same
  std::vector<Range> ranges_;                  // of each buffer
  std::vector<std::vector<Access>> accesses_;  // of each segment's instructions
  std::set<Range> stashes_;
  std::map<int64_t, int> persistent_;  // by offset; disjoint
  std::vector<int> owners_;            // the persistent buffer with the same range, or -1

  std::map<int64_t, Content> contents_;  // by offset; disjoint
  std::set<Range> written_;
  std::set<int> written_outputs_;
  std::set<int> changed_;  // persistent buffers that this run has written
  std::set<int> added_;    // sums that a segment of the schedule has added to
  std::set<int> reset_;    // .. that update has set to zero
  int64_t run_ = 0;
  int64_t microbatch_ = 0;
  int64_t work_ = 0;
};

}  // namespace

void VerifyMemory(const plan::Plan& plan, int program, Problems& problems) {
  MemoryVerifier(plan, program, problems).Verify();
}

}  // namespace oriel::runtime
