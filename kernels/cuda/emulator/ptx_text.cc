#include "kernels/cuda/emulator/ptx_text.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda::emulator {
namespace {

struct Token {
  absl::string_view text;
  int line = 0;
};

bool IsWord(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '%' || c == '$';
}

std::vector<Token> Tokens(absl::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\n') ++line;
    if (absl::ascii_isspace(text[at])) {
      ++at;
    } else if (absl::StartsWith(text.substr(at), "//")) {
      while (at < text.size() && text[at] != '\n') ++at;
    } else {
      size_t end = at + 1;
      const bool number = text[at] == '-' && end < text.size() && absl::ascii_isdigit(text[end]);
      if (IsWord(text[at]) || number) {
        while (end < text.size() && IsWord(text[end])) ++end;
      }
      tokens.push_back({text.substr(at, end - at), line});
      at = end;
    }
  }
  return tokens;
}

// Integers (0x1fU), and floats by their bits: 0f3F800000, 0d3FF0000000000000.
bool ReadNumber(absl::string_view text, uint64_t* bits) {
  if (absl::StartsWith(text, "0f") || absl::StartsWith(text, "0d")) {
    return text.size() == (text[1] == 'f' ? 10 : 18) && absl::SimpleHexAtoi(text.substr(2), bits);
  }
  if (absl::EndsWith(text, "U")) text.remove_suffix(1);
  if (absl::StartsWith(text, "0x")) return absl::SimpleHexAtoi(text, bits);
  int64_t whole = 0;
  if (absl::SimpleAtoi(text, bits)) return true;
  if (!absl::SimpleAtoi(text, &whole)) return false;
  *bits = static_cast<uint64_t>(whole);
  return true;
}

class Reader {
 public:
  explicit Reader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<std::vector<PtxEntry>> Read() {
    std::vector<PtxEntry> entries;
    while (!AtEnd()) {
      if (TakeIf(".version") || TakeIf(".target") || TakeIf(".address_size")) {
        Take();
      } else if (TakeIf(".visible")) {
        // What follows says what.
      } else if (TakeIf(".entry")) {
        entries.emplace_back();
        ORIEL_RETURN_IF_ERROR(ReadEntry(entries.back()));
      } else if (TakeIf(".shared")) {
        // Of the module: all entries see it.
        ORIEL_ASSIGN_OR_RETURN(PtxVariable variable, ReadVariable());
        module_shared_.push_back(std::move(variable));
      } else {
        return Error(absl::StrCat("'", Peek(), "' is not emulated"));
      }
    }
    for (PtxEntry& entry : entries) {
      entry.shared.insert(entry.shared.end(), module_shared_.begin(), module_shared_.end());
    }
    return entries;
  }

 private:
  bool AtEnd() const { return at_ == tokens_.size(); }
  absl::string_view Peek() const { return AtEnd() ? "the end" : tokens_[at_].text; }
  std::string Take() { return AtEnd() ? "" : std::string(tokens_[at_++].text); }
  bool TakeIf(absl::string_view text) {
    if (AtEnd() || tokens_[at_].text != text) return false;
    ++at_;
    return true;
  }
  int Line() const { return tokens_.empty() ? 0 : tokens_[AtEnd() ? at_ - 1 : at_].line; }
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", Line(), " of PTX: ", what));
  }
  absl::Status Expect(absl::string_view text) {
    if (TakeIf(text)) return absl::OkStatus();
    return Error(absl::StrCat("'", text, "' expected, not '", Peek(), "'"));
  }
  absl::StatusOr<uint64_t> ReadCount() {
    uint64_t count = 0;
    if (ReadNumber(Peek(), &count) && count <= (1u << 20)) {
      Take();
      return count;
    }
    return Error(absl::StrCat("a number expected, not '", Peek(), "'"));
  }

  // .align A .TYPE name[count], without what ends it if that is no ';'.
  absl::StatusOr<PtxVariable> ReadVariable() {
    PtxVariable variable;
    size_t of_element = 0;
    while (absl::StartsWith(Peek(), ".")) {
      const std::string word = Take();
      if (word == ".align") {
        ORIEL_ASSIGN_OR_RETURN(variable.alignment, ReadCount());
        if (variable.alignment == 0 || (variable.alignment & (variable.alignment - 1)) != 0) {
          return Error("no alignment");
        }
      } else if (word != ".ptr" && word != ".global") {
        of_element = PtxTypeBytes(word.substr(1));
        if (of_element == 0) return Error(absl::StrCat("'", word, "' is not emulated"));
      }
    }
    variable.name = Take();
    uint64_t count = 1;
    if (TakeIf("[")) {
      ORIEL_ASSIGN_OR_RETURN(count, ReadCount());
      ORIEL_RETURN_IF_ERROR(Expect("]"));
    }
    variable.bytes = of_element * count;
    TakeIf(";");
    return variable;
  }

  absl::Status ReadEntry(PtxEntry& entry) {
    entry.name = Take();
    ORIEL_RETURN_IF_ERROR(Expect("("));
    while (!TakeIf(")")) {
      ORIEL_RETURN_IF_ERROR(Expect(".param"));
      ORIEL_ASSIGN_OR_RETURN(PtxVariable parameter, ReadVariable());
      entry.parameters.push_back(std::move(parameter));
      TakeIf(",");
    }
    while (!TakeIf("{")) {
      const std::string word = Take();
      if (word != ".maxntid" && word != ".minnctapersm" && word != ".reqntid") {
        return Error(absl::StrCat("'", word, "' is not emulated"));
      }
      uint64_t product = 1;
      do {
        ORIEL_ASSIGN_OR_RETURN(const uint64_t size, ReadCount());
        product *= size;
      } while (TakeIf(","));
      if (word != ".minnctapersm") entry.max_threads = static_cast<unsigned>(product);
    }
    while (!TakeIf("}")) {
      if (AtEnd()) return Error("the body of an entry has no end");
      ORIEL_RETURN_IF_ERROR(ReadStatement(entry));
    }
    return absl::OkStatus();
  }

  absl::Status ReadStatement(PtxEntry& entry) {
    if (TakeIf(".reg")) return ReadRegisters(entry);
    if (TakeIf(".shared")) {
      ORIEL_ASSIGN_OR_RETURN(PtxVariable variable, ReadVariable());
      entry.shared.push_back(std::move(variable));
      return absl::OkStatus();
    }
    if (at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == ":") {
      entry.labels[Take()] = entry.instructions.size();
      return Expect(":");
    }
    PtxInstruction instruction;
    instruction.line = Line();
    if (TakeIf("@")) {
      instruction.guard_negated = TakeIf("!");
      instruction.guard = Take();
    }
    if (!absl::ascii_isalpha(Peek()[0])) {
      return Error(absl::StrCat("'", Peek(), "' is not emulated"));
    }
    instruction.words = absl::StrSplit(Take(), '.');
    while (!TakeIf(";")) {
      ORIEL_ASSIGN_OR_RETURN(PtxOperand operand, ReadOperand());
      instruction.operands.push_back(std::move(operand));
      if (!TakeIf(",") && Peek() != ";") {
        return Error(absl::StrCat("'", Peek(), "' behind an operand"));
      }
    }
    entry.instructions.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  // .TYPE %r<count>, which is %r0 and on, or .TYPE %r.
  absl::Status ReadRegisters(PtxEntry& entry) {
    const std::string type = Take();
    if (type.empty() || PtxTypeBytes(type.substr(1)) == 0) return Error("no type of a register");
    const std::string name = Take();
    if (!TakeIf("<")) {
      entry.registers.push_back(name);
      return Expect(";");
    }
    ORIEL_ASSIGN_OR_RETURN(const uint64_t count, ReadCount());
    for (uint64_t i = 0; i < count; ++i) entry.registers.push_back(absl::StrCat(name, i));
    ORIEL_RETURN_IF_ERROR(Expect(">"));
    return Expect(";");
  }

  absl::StatusOr<PtxOperand> ReadOperand() {
    PtxOperand operand;
    if (TakeIf("{")) {
      operand.kind = PtxOperand::Kind::kList;
      while (!TakeIf("}")) {
        if (Peek() == "{" || AtEnd()) return Error("a list has no end");
        ORIEL_ASSIGN_OR_RETURN(PtxOperand inner, ReadOperand());
        operand.list.push_back(std::move(inner));
        TakeIf(",");
      }
      return operand;
    }
    if (TakeIf("[")) {
      operand.kind = PtxOperand::Kind::kAddress;
      if (!ReadNumber(Peek(), &operand.number)) {
        operand.name = Take();
        if (TakeIf("+")) {
          if (!ReadNumber(Peek(), &operand.number)) {
            return Error(absl::StrCat("'", Peek(), "' is no offset"));
          }
          Take();
        }
      } else {
        Take();
      }
      ORIEL_RETURN_IF_ERROR(Expect("]"));
      return operand;
    }
    if (ReadNumber(Peek(), &operand.number)) {
      operand.kind = PtxOperand::Kind::kNumber;
      Take();
      return operand;
    }
    if (!IsWord(Peek()[0])) return Error(absl::StrCat("'", Peek(), "' is no operand"));
    operand.name = Take();
    return operand;
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  std::vector<PtxVariable> module_shared_;
};

}  // namespace

size_t PtxTypeBytes(absl::string_view type) {
  if (type == "pred") return 1;
  if (type.size() < 2 || !absl::StrContains("bsuf", type[0])) return 0;
  const absl::string_view bits = type.substr(1);
  if (bits == "8") return type[0] == 'f' ? 0 : 1;
  if (bits == "16") return type[0] == 'f' ? 0 : 2;
  return bits == "32" ? 4 : bits == "64" ? 8 : 0;
}

absl::StatusOr<std::vector<PtxEntry>> ReadPtx(absl::string_view text) {
  return Reader(Tokens(text)).Read();
}

}  // namespace oriel::kernels::cuda::emulator
