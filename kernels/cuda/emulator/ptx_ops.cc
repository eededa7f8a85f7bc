#include "kernels/cuda/emulator/ptx_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cuda/emulator/block.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda::emulator {
namespace {

using Words = std::vector<std::string>;
using Steps = absl::StatusOr<PtxStep>;

template <typename T>
T Read(const PtxThread& thread, int slot) {
  T value;
  std::memcpy(&value, &thread.slots[slot], sizeof value);
  return value;
}
template <typename T>
void Write(PtxThread& thread, int slot, T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  thread.slots[slot] = bits;
}

template <typename T>
struct Type {
  using type = T;
};

enum Kinds : unsigned { kUnsigned = 1, kSigned = 2, kFloat = 4, kPredicate = 8 };

// Calls `make` with the Type of a word, if it is of those kinds (bits are unsigned).
template <unsigned kKinds, typename Make>
std::optional<PtxStep> WithType(const std::string& word, Make make) {
  if constexpr ((kKinds & kUnsigned) != 0) {
    if (word == "u8" || word == "b8") return make(Type<uint8_t>());
    if (word == "u16" || word == "b16") return make(Type<uint16_t>());
    if (word == "u32" || word == "b32") return make(Type<uint32_t>());
    if (word == "u64" || word == "b64") return make(Type<uint64_t>());
  }
  if constexpr ((kKinds & kSigned) != 0) {
    if (word == "s8") return make(Type<int8_t>());
    if (word == "s16") return make(Type<int16_t>());
    if (word == "s32") return make(Type<int32_t>());
    if (word == "s64") return make(Type<int64_t>());
  }
  if constexpr ((kKinds & kFloat) != 0) {
    if (word == "f32") return make(Type<float>());
    if (word == "f64") return make(Type<double>());
  }
  if constexpr ((kKinds & kPredicate) != 0) {
    if (word == "pred") return make(Type<bool>());
  }
  return std::nullopt;
}

constexpr unsigned kIntegers = kUnsigned | kSigned;
constexpr unsigned kNumbers = kIntegers | kFloat;

// One instruction being made.
class Maker {
 public:
  Maker(const PtxInstruction& instruction, PtxNames& names)
      : instruction_(instruction), words_(instruction.words), names_(names) {}

  Steps Make() {
    const std::string& name = words_.front();
    if (name == "ld" || name == "st") return MakeMemory(name == "ld");
    if (name == "mov") return MakeMove();
    if (name == "bar" || name == "barrier") return MakeBarrier();
    ORIEL_RETURN_IF_ERROR(ReadSlots());
    if (name == "setp") return MakeCompare();
    if (name == "cvt") return MakeConversion();
    if (name == "shl" || name == "shr") return MakeShift(name == "shl");
    if (name == "selp") {
      return Of(4, words_.size() == 2, WithType<kNumbers>(words_.back(), [&](auto type) {
                  using T = typename decltype(type)::type;
                  return PtxStep([s = slots_](PtxThread& t) {
                    Write(t, s[0], Read<T>(t, Read<bool>(t, s[3]) ? s[1] : s[2]));
                  });
                }));
    }
    // All memory has one address, but shared memory.
    if (name == "cvta") {
      return Of(2, Known({"global", "to", "u64"}),
                PtxStep([s = slots_](PtxThread& t) { t.slots[s[0]] = t.slots[s[1]]; }));
    }
    if (name == "mul" || name == "mad") return MakeProduct();
    if (name == "bfe") return MakeField();
    if (name == "prmt") return MakePermutation();
    if (name == "not" || name == "neg" || name == "abs" || name == "sqrt" || name == "rcp") {
      return MakeUnary(name);
    }
    return MakeBinary(name);
  }

 private:
  absl::Status Refused() const {
    return absl::UnimplementedError(
        absl::StrCat("line ", instruction_.line, " of PTX: ", absl::StrJoin(words_, "."), " of ",
                     instruction_.operands.size(), " operands is not emulated"));
  }
  // Whether each word behind the name is one of these.
  bool Known(const Words& known) const {
    return std::all_of(words_.begin() + 1, words_.end(), [&](const std::string& word) {
      return std::find(known.begin(), known.end(), word) != known.end();
    });
  }
  bool Has(std::string_view word) const {
    return std::find(words_.begin() + 1, words_.end(), word) != words_.end();
  }
  // The step, of an instruction with that many operands.
  Steps Of(size_t operands, bool known, std::optional<PtxStep> step) const {
    if (!known || slots_.size() != operands || !step) return Refused();
    return *std::move(step);
  }

  absl::Status ReadSlots() {
    for (const PtxOperand& operand : instruction_.operands) {
      if (operand.kind == PtxOperand::Kind::kList || operand.kind == PtxOperand::Kind::kAddress) {
        return Refused();
      }
      ORIEL_ASSIGN_OR_RETURN(const int slot, names_.Slot(operand));
      slots_.push_back(slot);
    }
    return absl::OkStatus();
  }

  // The slots of a list, or of one operand.
  absl::StatusOr<std::vector<int>> SlotsOf(const PtxOperand& operand) {
    std::vector<int> slots;
    const bool list = operand.kind == PtxOperand::Kind::kList;
    const std::vector<PtxOperand> one{operand};
    for (const PtxOperand& inner : list ? operand.list : one) {
      ORIEL_ASSIGN_OR_RETURN(const int slot, names_.Slot(inner));
      slots.push_back(slot);
    }
    return slots;
  }

  // ld.SPACE[.nc][.vN].TYPE, st.
  Steps MakeMemory(bool load) {
    if (instruction_.operands.size() != 2 || words_.size() < 3) return Refused();
    const PtxOperand& address = instruction_.operands[load ? 1 : 0];
    if (address.kind != PtxOperand::Kind::kAddress) return Refused();
    ORIEL_ASSIGN_OR_RETURN(const std::vector<int> values,
                           SlotsOf(instruction_.operands[load ? 0 : 1]));
    const std::string& space = words_[1];
    const size_t bytes = PtxTypeBytes(words_.back());
    for (size_t i = 2; i + 1 < words_.size(); ++i) {
      const bool cached = words_[i] == "nc" && load && space == "global";
      if (!cached && words_[i] != absl::StrCat("v", values.size())) return Refused();
    }
    const size_t all = bytes * values.size();
    // What is extended by its sign is not; floats and bits are their width.
    if (bytes == 0 || values.empty() || all > 32 || words_.back() == "pred" ||
        (load && words_.back()[0] == 's')) {
      return Refused();
    }
    if (space == "param" && load && values.size() == 1) {
      size_t size = 0;
      ORIEL_ASSIGN_OR_RETURN(const int parameter, names_.Parameter(address.name, &size));
      if (address.number + bytes > size) return Refused();
      return PtxStep([=, slot = values[0], offset = address.number](PtxThread& t) {
        t.slots[slot] = 0;
        std::memcpy(&t.slots[slot], t.parameters[parameter] + offset, bytes);
      });
    }
    const bool shared = space == "shared";
    if (!shared && space != "global") return Refused();
    PtxOperand base;
    base.name = address.name;
    if (address.name.empty()) base.kind = PtxOperand::Kind::kNumber;
    ORIEL_ASSIGN_OR_RETURN(const int slot, names_.Slot(base));
    return PtxStep([=, offset = address.number, line = instruction_.line](PtxThread& t) {
      const uint64_t place = t.slots[slot] + offset;
      if (place % all != 0) {
        Fail(absl::StrCat("line ", line, " of PTX: an address that is no multiple of ", all)
                 .c_str());
      }
      if (shared && (place > t.shared_bytes || all > t.shared_bytes - place)) {
        Fail(absl::StrCat("line ", line, " of PTX: byte ", place, " of ", t.shared_bytes,
                          " of shared memory")
                 .c_str());
      }
      char* memory = shared ? t.shared + place : reinterpret_cast<char*>(place);
      for (size_t i = 0; i < values.size(); ++i) {
        if (!load) {
          std::memcpy(memory + i * bytes, &t.slots[values[i]], bytes);
        } else {
          t.slots[values[i]] = 0;
          std::memcpy(&t.slots[values[i]], memory + i * bytes, bytes);
        }
      }
    });
  }

  // Of a whole register, or of one from or to its parts.
  Steps MakeMove() {
    if (instruction_.operands.size() != 2 || words_.size() != 2) return Refused();
    const size_t bytes = PtxTypeBytes(words_[1]);
    ORIEL_ASSIGN_OR_RETURN(const std::vector<int> to, SlotsOf(instruction_.operands[0]));
    ORIEL_ASSIGN_OR_RETURN(const std::vector<int> from, SlotsOf(instruction_.operands[1]));
    if (bytes == 0 || to.empty() || from.empty() || (to.size() > 1 && from.size() > 1) ||
        bytes % to.size() != 0 || bytes % from.size() != 0) {
      return Refused();
    }
    const bool predicate = words_[1] == "pred";
    return PtxStep([=](PtxThread& t) {
      if (predicate) return Write(t, to[0], t.slots[from[0]] != 0);
      uint64_t whole = 0;
      char* parts = reinterpret_cast<char*>(&whole);
      const size_t read = bytes / from.size(), written = bytes / to.size();
      for (size_t i = 0; i < from.size(); ++i) {
        std::memcpy(parts + i * read, &t.slots[from[i]], read);
      }
      for (size_t i = 0; i < to.size(); ++i) {
        t.slots[to[i]] = 0;
        std::memcpy(&t.slots[to[i]], parts + i * written, written);
      }
    });
  }

  Steps MakeBarrier() {
    ORIEL_RETURN_IF_ERROR(ReadSlots());
    const bool all = slots_.size() == 1 && instruction_.operands[0].number == 0 &&
                     instruction_.operands[0].kind == PtxOperand::Kind::kNumber;
    return Of(1, all && Has("sync") && Known({"sync", "aligned"}),
              PtxStep([](PtxThread&) { Barrier("bar.sync"); }));
  }

  // setp.COMPARISON[.and|.or|.xor].TYPE
  Steps MakeCompare() {
    if (words_.size() < 3 || words_.size() > 4) return Refused();
    const std::string compare = words_[1], join = words_.size() == 4 ? words_[2] : "";
    if (!join.empty() && join != "and" && join != "or" && join != "xor") return Refused();
    auto step = WithType<kNumbers>(words_.back(), [&](auto type) -> std::optional<PtxStep> {
      using T = typename decltype(type)::type;
      const std::optional<std::function<bool(T, T)>> holds = Comparison<T>(compare);
      if (!holds) return std::nullopt;
      return PtxStep([holds = *holds, s = slots_, join](PtxThread& t) {
        bool value = holds(Read<T>(t, s[1]), Read<T>(t, s[2]));
        if (join == "and") value = value && Read<bool>(t, s[3]);
        if (join == "or") value = value || Read<bool>(t, s[3]);
        if (join == "xor") value = value != Read<bool>(t, s[3]);
        Write(t, s[0], value);
      });
    });
    return Of(join.empty() ? 3 : 4, true, std::move(step));
  }

  // Of floats, one with a 'u' behind it holds for NaN, too.
  template <typename T>
  static std::optional<std::function<bool(T, T)>> Comparison(std::string name) {
    bool unordered = false;
    if constexpr (std::is_floating_point_v<T>) {
      if (name == "num") return [](T x, T y) { return !std::isnan(x) && !std::isnan(y); };
      if (name == "nan") return [](T x, T y) { return std::isnan(x) || std::isnan(y); };
      unordered = name.size() == 3 && name[2] == 'u';
      if (unordered) name.pop_back();
    } else {
      if (std::is_unsigned_v<T> && name == "lo") name = "lt";
      if (std::is_unsigned_v<T> && name == "ls") name = "le";
      if (std::is_unsigned_v<T> && name == "hi") name = "gt";
      if (std::is_unsigned_v<T> && name == "hs") name = "ge";
    }
    bool (*holds)(T, T) = nullptr;
    if (name == "eq") holds = [](T x, T y) { return x == y; };
    if (name == "ne") holds = [](T x, T y) { return x < y || x > y; };
    if (name == "lt") holds = [](T x, T y) { return x < y; };
    if (name == "le") holds = [](T x, T y) { return x <= y; };
    if (name == "gt") holds = [](T x, T y) { return x > y; };
    if (name == "ge") holds = [](T x, T y) { return x >= y; };
    if (holds == nullptr) return std::nullopt;
    return [=](T x, T y) {
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(x) || std::isnan(y)) return unordered;
      }
      return holds(x, y);
    };
  }

  // cvt[.ROUNDING].TO.FROM
  Steps MakeConversion() {
    if (words_.size() < 3) return Refused();
    const std::string& to = words_[words_.size() - 2];
    auto step = WithType<kNumbers>(to, [&](auto made) {
      using To = typename decltype(made)::type;
      return WithType<kNumbers>(words_.back(), [&](auto given) -> std::optional<PtxStep> {
        using From = typename decltype(given)::type;
        // To the nearest for what is not exact, towards zero for whole numbers.
        const std::string rounding = Rounding<To, From>();
        // NaN becomes another number there.
        if (rounding == "rzi" && (sizeof(To) == 8 || sizeof(From) == 8)) return std::nullopt;
        if (words_.size() != (rounding.empty() ? 3 : 4)) return std::nullopt;
        if (!rounding.empty() && words_[1] != rounding) return std::nullopt;
        return PtxStep(
            [s = slots_](PtxThread& t) { Write(t, s[0], Converted<To>(Read<From>(t, s[1]))); });
      });
    });
    return Of(2, true, std::move(step));
  }

  template <typename To, typename From>
  static std::string Rounding() {
    if (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) return "rzi";
    if (!std::is_floating_point_v<From> && std::is_floating_point_v<To>) return "rn";
    return std::is_floating_point_v<To> && sizeof(To) < sizeof(From) ? "rn" : "";
  }

  // Floats that a whole number can't hold are the nearest that there is; NaN is zero.
  template <typename To, typename From>
  static To Converted(From value) {
    if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
      if (std::isnan(value)) return 0;
      if (value >= static_cast<From>(std::numeric_limits<To>::max())) {
        return std::numeric_limits<To>::max();
      }
      if (value <= static_cast<From>(std::numeric_limits<To>::min())) {
        return std::numeric_limits<To>::min();
      }
    }
    return static_cast<To>(value);
  }

  // By the width or more: nothing of the value is left, but its sign.
  Steps MakeShift(bool left) {
    auto step = WithType<kIntegers>(words_.back(), [&](auto type) {
      using T = typename decltype(type)::type;
      return PtxStep([s = slots_, left](PtxThread& t) {
        const T value = Read<T>(t, s[1]);
        const auto by = std::min<uint32_t>(Read<uint32_t>(t, s[2]), 8 * sizeof(T));
        const bool gone = by == 8 * sizeof(T);
        T shifted = 0;
        if (left) {
          shifted = gone ? 0 : static_cast<T>(static_cast<uint64_t>(value) << by);
        } else {
          shifted = static_cast<T>(gone ? (value >> (by - 1)) >> 1 : value >> by);
        }
        Write(t, s[0], shifted);
      });
    });
    return Of(3, words_.size() == 2, std::move(step));
  }

  // bfe: so many bits from a position on. Beyond the value's end its sign goes on, or zeros.
  Steps MakeField() {
    auto step = WithType<kIntegers>(words_.back(), [&](auto type) -> std::optional<PtxStep> {
      using T = typename decltype(type)::type;
      if (sizeof(T) < 4) return std::nullopt;
      return PtxStep([s = slots_](PtxThread& t) {
        constexpr unsigned kBits = 8 * sizeof(T);
        const T value = Read<T>(t, s[1]);
        const unsigned from = Read<uint32_t>(t, s[2]) & 255, bits = Read<uint32_t>(t, s[3]) & 255;
        if (bits == 0) return Write<T>(t, s[0], 0);
        const T rest = from >= kBits ? (value >> (kBits - 1)) >> 1 : value >> from;
        if (bits >= kBits) return Write(t, s[0], rest);
        const unsigned drop = kBits - bits;
        using U = std::make_unsigned_t<T>;
        Write(t, s[0], static_cast<T>(static_cast<T>(static_cast<U>(rest) << drop) >> drop));
      });
    });
    return Of(4, words_.size() == 2, std::move(step));
  }

  // prmt.b32: each nibble of the last operand is the number of a byte of the first two; its highest
  // bit asks for that byte's sign in all bits instead.
  Steps MakePermutation() {
    return Of(4, words_.size() == 2 && words_[1] == "b32", PtxStep([s = slots_](PtxThread& t) {
                const uint64_t bytes = Read<uint32_t>(t, s[1]) | t.slots[s[2]] << 32;
                uint64_t made = 0;
                for (int i = 0; i < 4; ++i) {
                  const uint64_t nibble = t.slots[s[3]] >> 4 * i & 15;
                  uint64_t byte = bytes >> 8 * (nibble & 7) & 255;
                  if ((nibble & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
                  made |= byte << 8 * i;
                }
                t.slots[s[0]] = made;
              }));
  }

  // mul.TYPE of floats; mul and mad of whole numbers, of which .lo, .hi or .wide is kept.
  Steps MakeProduct() {
    const bool add = words_.front() == "mad";
    const size_t operands = add ? 4 : 3;
    if (words_.size() == 2 || (words_.size() == 3 && words_[1] == "rn")) {
      return add ? Refused() : MakeBinary("mul");
    }
    if (words_.size() != 3) return Refused();
    const std::string part = words_[1];
    auto step = WithType<kIntegers>(words_.back(), [&](auto type) -> std::optional<PtxStep> {
      using T = typename decltype(type)::type;
      using Wide =
          std::conditional_t<sizeof(T) == 8,
                             std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                             std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
      const bool wide = part == "wide";
      if (part != "lo" && part != "hi" && !(wide && sizeof(T) < 8)) return std::nullopt;
      const int shift = part == "hi" ? 8 * sizeof(T) : 0;
      const size_t bytes = wide ? 2 * sizeof(T) : sizeof(T);
      return PtxStep([=, s = slots_](PtxThread& t) {
        const Wide product = static_cast<Wide>(Read<T>(t, s[1])) * Read<T>(t, s[2]);
        auto bits = static_cast<uint64_t>(product >> shift);
        if (add) bits += t.slots[s[3]];
        t.slots[s[0]] = 0;
        std::memcpy(&t.slots[s[0]], &bits, bytes);
      });
    });
    return Of(operands, true, std::move(step));
  }

  Steps MakeUnary(const std::string& name) {
    const bool rounded = name == "sqrt" || name == "rcp";
    if (words_.size() != (rounded ? 3 : 2) || (rounded && words_[1] != "rn")) return Refused();
    const auto make = [&](auto type) {
      using T = typename decltype(type)::type;
      return PtxStep([name, s = slots_](PtxThread& t) {
        const T x = Read<T>(t, s[1]);
        T made = x;
        if constexpr (std::is_same_v<T, bool>) {
          made = !x;
        } else if constexpr (std::is_unsigned_v<T>) {
          made = static_cast<T>(~x);
        } else if constexpr (std::is_integral_v<T>) {
          if (name == "neg" || x < 0) made = static_cast<T>(0 - static_cast<uint64_t>(x));
        } else {
          if (name == "neg") made = -x;
          if (name == "abs") made = std::fabs(x);
          if (name == "sqrt") made = std::sqrt(x);
          if (name == "rcp") made = 1 / x;
        }
        Write(t, s[0], made);
      });
    };
    const std::string& type = words_.back();
    return Of(2, true,
              rounded         ? WithType<kFloat>(type, make)
              : name == "not" ? WithType<kUnsigned | kPredicate>(type, make)
                              : WithType<kSigned | kFloat>(type, make));
  }

  Steps MakeBinary(const std::string& name) {
    const bool rounded = words_.size() == 3 && words_[1] == "rn";
    const bool nan = words_.size() == 3 && words_[1] == "NaN";
    if (words_.size() != 2 && !rounded && !nan) return Refused();
    auto step = WithType<kNumbers | kPredicate>(words_.back(), [&](auto type) {
      using T = typename decltype(type)::type;
      std::function<T(T, T)> f;
      if constexpr (std::is_floating_point_v<T>) {
        f = nan ? OfNan<T>(name) : OfFloats<T>(name, rounded);
      } else if (words_.size() == 2) {
        if constexpr (std::is_unsigned_v<T>) f = OfBits<T>(name);
        if constexpr (!std::is_same_v<T, bool>) f = f ? f : OfIntegers<T>(name);
      }
      return !f ? std::optional<PtxStep>() : PtxStep([f, s = slots_](PtxThread& t) {
        Write(t, s[0], f(Read<T>(t, s[1]), Read<T>(t, s[2])));
      });
    });
    return Of(3, true, std::move(step));
  }

  template <typename T>
  static std::function<T(T, T)> OfBits(const std::string& name) {
    if (name == "and") return [](T x, T y) { return static_cast<T>(x & y); };
    if (name == "or") return [](T x, T y) { return static_cast<T>(x | y); };
    if (name == "xor") return [](T x, T y) { return static_cast<T>(x ^ y); };
    return nullptr;
  }

  // Sums wrap around. By zero, division gives whatever the processor gives.
  template <typename T>
  static std::function<T(T, T)> OfIntegers(const std::string& name) {
    using U = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
    if (name == "add") return [](T x, T y) { return static_cast<T>(U(x) + U(y)); };
    if (name == "sub") return [](T x, T y) { return static_cast<T>(U(x) - U(y)); };
    if (name == "min") return [](T x, T y) { return std::min(x, y); };
    if (name == "max") return [](T x, T y) { return std::max(x, y); };
    // Nor does it fail for the one quotient of signed numbers that is too large.
    const auto negates = [](T y) { return std::is_signed_v<T> && y == T(-1); };
    if (name == "div") {
      return [=](T x, T y) { return y == 0 ? T(-1) : negates(y) ? T(U(0) - U(x)) : T(x / y); };
    }
    if (name == "rem") {
      return [=](T x, T y) { return y == 0 ? x : negates(y) ? T(0) : T(x % y); };
    }
    return nullptr;
  }

  // What does not say that it rounds to the nearest may become a part of another instruction, which
  // rounds once.
  template <typename T>
  static std::function<T(T, T)> OfFloats(const std::string& name, bool rounded) {
    if (rounded && name == "add") return [](T x, T y) { return x + y; };
    if (rounded && name == "sub") return [](T x, T y) { return x - y; };
    if (rounded && name == "mul") return [](T x, T y) { return x * y; };
    if (rounded && name == "div") return [](T x, T y) { return x / y; };
    if (rounded || (name != "min" && name != "max")) return nullptr;
    return [ordered = OfNan<T>(name)](T x, T y) {
      return std::isnan(x) ? y : std::isnan(y) ? x : ordered(x, y);
    };
  }

  // min.NaN and max.NaN. -0 is below +0.
  template <typename T>
  static std::function<T(T, T)> OfNan(const std::string& name) {
    if (name != "min" && name != "max") return nullptr;
    return [largest = name == "max"](T x, T y) {
      if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
      if (x == y) return std::signbit(x) == largest ? y : x;
      return (x < y) == largest ? y : x;
    };
  }

  const PtxInstruction& instruction_;
  const Words& words_;
  PtxNames& names_;
  std::vector<int> slots_;  // one for each operand
};

}  // namespace

absl::StatusOr<PtxStep> MakePtxStep(const PtxInstruction& instruction, PtxNames& names) {
  return Maker(instruction, names).Make();
}

}  // namespace oriel::kernels::cuda::emulator
