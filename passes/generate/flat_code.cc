#include "passes/generate/flat_code.h"

#include <limits>
#include <map>

#include "llvm/ADT/STLExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace oriel {

namespace {

using llvm::Error;
using llvm::Expected;
using llvm::object::ELF64LEObjectFile;
using llvm::object::SectionRef;
using llvm::object::SymbolRef;
namespace ELF = llvm::ELF;

constexpr uint64_t kLargestAlignment = 4096;

Error fail(const llvm::Twine& what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "generated code " + what);
}

class Flattener {
 public:
  explicit Flattener(const ELF64LEObjectFile& object) : object_(object) {}

  Expected<FlatCode> run(llvm::StringRef function) {
    // Code first, so that it begins at the beginning.
    for (bool code : {true, false}) {
      for (const SectionRef& section : object_.sections()) {
        if (section.isText() != code) continue;
        if (Error error = place(section)) return error;
      }
    }
    for (const SectionRef& section : object_.sections()) {
      if (Error error = resolve(section)) return error;
    }
    for (const SymbolRef& symbol : object_.symbols()) {
      Expected<llvm::StringRef> name = symbol.getName();
      if (!name) return name.takeError();
      if (*name != function) continue;
      Expected<uint64_t> address = addressOf(symbol);
      if (!address) return address.takeError();
      return FlatCode{std::move(bytes_), static_cast<int64_t>(*address)};
    }
    return fail("has no function " + function);
  }

 private:
  // What unwinds and describes is not needed; what is written would be shared by all calls.
  Error place(const SectionRef& section) {
    const llvm::object::ELFSectionRef elf(section);
    if (!(elf.getFlags() & ELF::SHF_ALLOC) || elf.getType() != ELF::SHT_PROGBITS) {
      return section.isBSS() && section.getSize() > 0 ? fail("has memory of its own")
                                                      : Error::success();
    }
    Expected<llvm::StringRef> name = section.getName();
    if (!name) return name.takeError();
    if (*name == ".eh_frame" || section.getSize() == 0) return Error::success();
    if (elf.getFlags() & ELF::SHF_WRITE) return fail("writes the section " + *name);
    const uint64_t alignment = section.getAlignment().value();
    if (alignment > kLargestAlignment) return fail("is aligned to more than a page");
    Expected<llvm::StringRef> contents = section.getContents();
    if (!contents) return contents.takeError();
    bytes_.resize(llvm::alignTo(bytes_.size(), alignment));
    begins_[section.getIndex()] = bytes_.size();
    bytes_.append(contents->begin(), contents->end());
    return Error::success();
  }

  Expected<uint64_t> addressOf(const SymbolRef& symbol) const {
    Expected<llvm::object::section_iterator> section = symbol.getSection();
    if (!section) return section.takeError();
    auto begin =
        *section == object_.section_end() ? begins_.end() : begins_.find((*section)->getIndex());
    if (begin == begins_.end()) {
      Expected<llvm::StringRef> name = symbol.getName();
      if (!name) return name.takeError();
      return fail("refers to " + *name + ", which is outside of it");
    }
    Expected<uint64_t> value = symbol.getValue();
    if (!value) return value.takeError();
    return begin->second + *value;
  }

  Error resolve(const SectionRef& relocations) {
    Expected<llvm::object::section_iterator> target = relocations.getRelocatedSection();
    if (!target) return target.takeError();
    auto begin =
        *target == object_.section_end() ? begins_.end() : begins_.find((*target)->getIndex());
    if (begin == begins_.end()) return Error::success();
    for (const llvm::object::RelocationRef& relocation : relocations.relocations()) {
      const uint64_t type = relocation.getType();
      if (type != ELF::R_X86_64_PC32 && type != ELF::R_X86_64_PLT32) {
        return fail("has a reference of the type " + llvm::Twine(type));
      }
      if (relocation.getSymbol() == object_.symbol_end()) return fail("refers to nothing");
      Expected<uint64_t> address = addressOf(*relocation.getSymbol());
      if (!address) return address.takeError();
      Expected<int64_t> addend = llvm::object::ELFRelocationRef(relocation).getAddend();
      if (!addend) return addend.takeError();
      const uint64_t place = begin->second + relocation.getOffset();
      if (place + 4 > bytes_.size()) return fail("has a reference beyond its end");
      const int64_t distance =
          static_cast<int64_t>(*address) + *addend - static_cast<int64_t>(place);
      if (!llvm::isInt<32>(distance)) return fail("is too large");
      llvm::support::endian::write32le(bytes_.data() + place, static_cast<uint32_t>(distance));
    }
    return Error::success();
  }

  const ELF64LEObjectFile& object_;
  std::string bytes_;
  std::map<uint64_t, uint64_t> begins_;  // of sections that are placed, by their index
};

}  // namespace

Expected<FlatCode> flattenObject(llvm::StringRef object, llvm::StringRef function) {
  auto file =
      llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(object, "generated"));
  if (!file) return file.takeError();
  const auto* elf = llvm::dyn_cast<ELF64LEObjectFile>(file->get());
  if (!elf || elf->getArch() != llvm::Triple::x86_64) return fail("is not for x86-64");
  return Flattener(*elf).run(function);
}

}  // namespace oriel
