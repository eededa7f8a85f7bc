#include "kernels/cuda/emulator/ptx.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/block.h"
#include "kernels/cuda/emulator/ptx_ops.h"
#include "kernels/cuda/emulator/ptx_text.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda::emulator {
namespace {

struct Special {
  const char* name;
  unsigned (*value)();
};
constexpr Special kSpecials[] = {
    {"%tid.x", [] { return This().thread.x; }},    {"%tid.y", [] { return This().thread.y; }},
    {"%tid.z", [] { return This().thread.z; }},    {"%ctaid.x", [] { return This().block.x; }},
    {"%ctaid.y", [] { return This().block.y; }},   {"%ctaid.z", [] { return This().block.z; }},
    {"%ntid.x", [] { return This().threads.x; }},  {"%ntid.y", [] { return This().threads.y; }},
    {"%ntid.z", [] { return This().threads.z; }},  {"%nctaid.x", [] { return This().blocks.x; }},
    {"%nctaid.y", [] { return This().blocks.y; }}, {"%nctaid.z", [] { return This().blocks.z; }},
};

// One instruction: a step, a jump or the end.
struct Place {
  PtxStep step;  // null for the others
  int guard = -1;
  bool guard_negated = false;
  bool returns = false;
  size_t target = 0;
};

}  // namespace

// An entry, made ready to run.
class PtxProgram : public PtxNames {
 public:
  absl::Status Init(PtxEntry entry) {
    for (const std::string& name : entry.registers) NewSlot(name, 0);
    NewSlot("_", 0);
    for (const Special& special : kSpecials) {
      specials_.emplace_back(NewSlot(special.name, 0), special.value);
    }
    for (const PtxVariable& variable : entry.shared) {
      shared_bytes_ = (shared_bytes_ + variable.alignment - 1) & ~(variable.alignment - 1);
      NewSlot(variable.name, shared_bytes_);
      shared_bytes_ += variable.bytes;
    }
    entry_ = std::move(entry);
    for (const PtxInstruction& instruction : entry_.instructions) {
      ORIEL_RETURN_IF_ERROR(Add(instruction));
    }
    kernel_.name = entry_.name.c_str();
    kernel_.max_threads = entry_.max_threads;
    for (const PtxVariable& parameter : entry_.parameters) {
      kernel_.parameter_bytes.push_back(parameter.bytes);
    }
    kernel_.run = [this](const EmulatedLaunch& launch, void** args) { return Run(launch, args); };
    return absl::OkStatus();
  }

  absl::StatusOr<int> Slot(const PtxOperand& operand) override {
    if (operand.kind == PtxOperand::Kind::kNumber) {
      return NewSlot(absl::StrCat("#", operand.number), operand.number);
    }
    const auto found = slots_.find(operand.name);
    if (operand.kind == PtxOperand::Kind::kName && found != slots_.end()) return found->second;
    return absl::InvalidArgumentError(
        absl::StrCat("PTX of ", entry_.name, " has no register '", operand.name, "'"));
  }

  absl::StatusOr<int> Parameter(const std::string& name, size_t* bytes) const override {
    for (size_t i = 0; i < entry_.parameters.size(); ++i) {
      if (entry_.parameters[i].name != name) continue;
      *bytes = entry_.parameters[i].bytes;
      return static_cast<int>(i);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("PTX of ", entry_.name, " has no parameter '", name, "'"));
  }

  const EmulatedKernel& kernel() const { return kernel_; }

 private:
  int NewSlot(const std::string& name, uint64_t bits) {
    const auto [found, added] = slots_.emplace(name, static_cast<int>(first_.size()));
    if (added) first_.push_back(bits);
    return found->second;
  }

  absl::Status Add(const PtxInstruction& instruction) {
    Place place;
    if (!instruction.guard.empty()) {
      PtxOperand guard;
      guard.name = instruction.guard;
      ORIEL_ASSIGN_OR_RETURN(place.guard, Slot(guard));
      place.guard_negated = instruction.guard_negated;
    }
    const std::string& name = instruction.words.front();
    if (name == "ret" || name == "exit") {
      place.returns = true;
    } else if (name == "bra") {
      const auto label = instruction.operands.size() == 1
                             ? entry_.labels.find(instruction.operands[0].name)
                             : entry_.labels.end();
      if (label == entry_.labels.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", instruction.line, " of PTX: a jump to nowhere"));
      }
      place.target = label->second;
    } else {
      ORIEL_ASSIGN_OR_RETURN(place.step, MakePtxStep(instruction, *this));
    }
    places_.push_back(std::move(place));
    return absl::OkStatus();
  }

  absl::Status Run(const EmulatedLaunch& launch, void** args) const {
    EmulatedLaunch with_shared = launch;
    with_shared.shared_bytes += static_cast<unsigned>(shared_bytes_);
    std::pair<const PtxProgram*, void**> call{this, args};
    return RunGrid(
        kernel_, with_shared,
        [](void* context) {
          const auto& [program, arguments] = *static_cast<decltype(call)*>(context);
          program->RunThread(arguments);
        },
        &call);
  }

  void RunThread(void** args) const {
    std::vector<uint64_t> slots(first_);
    for (const auto& [slot, value] : specials_) slots[slot] = value();
    PtxThread thread{slots.data(), static_cast<char*>(DynamicShared()), shared_bytes_,
                     reinterpret_cast<const char* const*>(args)};
    for (size_t at = 0; at < places_.size();) {
      const Place& place = places_[at++];
      if (place.guard >= 0 && (slots[place.guard] != 0) == place.guard_negated) continue;
      if (place.returns) return;
      if (place.step) {
        place.step(thread);
      } else {
        at = place.target;
      }
    }
  }

  PtxEntry entry_;
  std::map<std::string, int> slots_;  // by names, and by numbers behind '#'
  std::vector<uint64_t> first_;       // what a thread's slots hold at first
  std::vector<Place> places_;
  std::vector<std::pair<int, unsigned (*)()>> specials_;
  size_t shared_bytes_ = 0;
  EmulatedKernel kernel_;
};

PtxModule::PtxModule() = default;
PtxModule::~PtxModule() = default;

absl::StatusOr<std::unique_ptr<PtxModule>> PtxModule::Load(absl::string_view text) {
  ORIEL_ASSIGN_OR_RETURN(std::vector<PtxEntry> entries, ReadPtx(text));
  std::unique_ptr<PtxModule> module(new PtxModule);
  for (PtxEntry& entry : entries) {
    const std::string name = entry.name;
    auto program = std::make_unique<PtxProgram>();
    ORIEL_RETURN_IF_ERROR(program->Init(std::move(entry)));
    module->programs_[name] = std::move(program);
  }
  return module;
}

const EmulatedKernel* PtxModule::Find(const std::string& name) const {
  const auto found = programs_.find(name);
  return found == programs_.end() ? nullptr : &found->second->kernel();
}

}  // namespace oriel::kernels::cuda::emulator
