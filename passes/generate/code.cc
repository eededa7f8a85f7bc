#include "passes/generate/code.h"

#include <memory>
#include <mutex>

#include "ir/scalar/scalar.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/generate/flat_code.h"
#include "passes/generate/linalg_form.h"
#include "passes/generate/passes.h"

namespace oriel {

namespace {

using mlir::failure;
using mlir::FailureOr;

constexpr char kHostTriple[] = "x86_64-unknown-linux-gnu";
constexpr char kCudaTriple[] = "nvptx64-nvidia-cuda";
constexpr char kEntry[] = "oriel_entry";

// Only compilations with generated kernels meet these.
void loadDialects(mlir::MLIRContext& context) {
  mlir::DialectRegistry registry;
  registerGeneratedDialects(registry);
  ir::registerScalarModels(registry);
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  for (llvm::StringRef name : registry.getDialectNames()) context.getOrLoadDialect(name);
}

bool isCuda(llvm::StringRef target) { return target.starts_with("sm_"); }

void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
  });
}

std::unique_ptr<llvm::TargetMachine> machineFor(llvm::StringRef target, std::string& error) {
  initializeTargets();
  const llvm::Triple triple(isCuda(target) ? kCudaTriple : kHostTriple);
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(triple, target, /*Features=*/"", options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
  if (machine && machine->getMCSubtargetInfo()->isCPUStringValid(target)) return machine;
  error = ("LLVM knows no processor " + target).str();
  return nullptr;
}

// The runs of an innermost loop touch different elements, even where a result lies in an operand's
// place: so the loop can become one of vectors.
void markParallel(llvm::Function& function) {
  llvm::LLVMContext& context = function.getContext();
  llvm::MDNode* group = llvm::MDNode::getDistinct(context, {});
  llvm::Metadata* parallel[] = {
      nullptr, llvm::MDNode::get(
                   context, {llvm::MDString::get(context, "llvm.loop.parallel_accesses"), group})};
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (instruction.mayReadOrWriteMemory()) {
      instruction.setMetadata(llvm::LLVMContext::MD_access_group, group);
    }
  }
  const llvm::DominatorTree dominators(function);
  const llvm::LoopInfo loops(dominators);
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost()) continue;
    auto* marked = llvm::MDNode::getDistinct(context, parallel);
    marked->replaceOperandWith(0, marked);
    loop->setLoopID(marked);
  }
}

// A function (operands: ptr, results: ptr, begin: i64, end: i64) that calls the kernel's with each
// address.
void addEntry(llvm::Function& kernel, unsigned operands) {
  llvm::Module& module = *kernel.getParent();
  llvm::IRBuilder<> builder(module.getContext());
  llvm::Type* pointer = builder.getPtrTy();
  llvm::Type* index = builder.getInt64Ty();
  auto* entry = llvm::Function::Create(
      llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer, index, index}, false),
      llvm::Function::ExternalLinkage, kEntry, module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", entry));
  llvm::SmallVector<llvm::Value*> arguments;
  const auto count = static_cast<unsigned>(kernel.arg_size()) - 2;
  for (unsigned i = 0; i < count; ++i) {
    llvm::Value* list = entry->getArg(i < operands ? 0 : 1);
    llvm::Value* place = builder.CreateConstGEP1_64(pointer, list, i < operands ? i : i - operands);
    arguments.push_back(builder.CreateLoad(pointer, place));
  }
  arguments.push_back(entry->getArg(2));
  arguments.push_back(entry->getArg(3));
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
  kernel.setLinkage(llvm::Function::InternalLinkage);
  kernel.addFnAttr(llvm::Attribute::AlwaysInline);
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // Loops that copy or fill stay loops, for there is no memcpy to call.
    function.addFnAttr("no-builtins");
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.LoopInterleaving = tuning.SLPVectorization = true;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

// The object file, or the assembly.
std::string emitted(llvm::Module& module, llvm::TargetMachine& machine,
                    llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) return "";
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

// One kernel for one target.
class Compilation {
 public:
  Compilation(exec::KernelOp kernel, llvm::StringRef name, llvm::StringRef target)
      : kernel_(kernel), name_(name), target_(target) {}

  FailureOr<Image> run() {
    std::string error;
    std::unique_ptr<llvm::TargetMachine> machine = machineFor(target_, error);
    if (!machine) return refuse(error);
    loadDialects(*kernel_.getContext());
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(kernel_.getLoc());
    if (failed(buildLinalgForm(kernel_, name_, *module))) return failure();
    mlir::PassManager passes(kernel_.getContext());
    LowerGeneratedOptions options;
    options.target = isCuda(target_) ? "cuda" : "host";
    passes.addPass(createLowerGenerated(options));
    if (failed(passes.run(*module))) return failure();
    mlir::Operation* lowered = *module;
    if (isCuda(target_)) lowered = *module->getOps<mlir::gpu::GPUModuleOp>().begin();
    std::unique_ptr<llvm::Module> translated = mlir::translateModuleToLLVMIR(lowered, context_);
    if (!translated) return refuse("it has no form in LLVM");
    translated->setTargetTriple(machine->getTargetTriple());
    translated->setDataLayout(machine->createDataLayout());
    return isCuda(target_) ? ptx(*translated, *machine) : host(*translated, *machine);
  }

 private:
  FailureOr<Image> ptx(llvm::Module& module, llvm::TargetMachine& machine) {
    optimize(module, machine);
    Image image{target_.str(), emitted(module, machine, llvm::CodeGenFileType::AssemblyFile)};
    if (image.code.empty()) return refuse("LLVM writes no PTX");
    return image;
  }

  FailureOr<Image> host(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::Function* function = module.getFunction(name_);
    if (!function) return refuse("its function is lost");
    markParallel(*function);
    addEntry(*function, kernel_.getBody().front().getNumArguments());
    optimize(module, machine);
    llvm::Expected<FlatCode> flat =
        flattenObject(emitted(module, machine, llvm::CodeGenFileType::ObjectFile), kEntry);
    if (!flat) return refuse(llvm::toString(flat.takeError()));
    return Image{target_.str(), std::move(flat->bytes), flat->entry};
  }

  FailureOr<Image> refuse(const llvm::Twine& why) {
    return kernel_.emitOpError("can't be compiled for ") << target_ << ": " << why;
  }

  exec::KernelOp kernel_;
  const llvm::StringRef name_, target_;
  llvm::LLVMContext context_;
};

}  // namespace

std::vector<std::string> hostTargets() {
#if defined(__x86_64__) && defined(__linux__)
  return {"x86-64", "x86-64-v3"};
#else
  return {};
#endif
}

FailureOr<Image> compileKernel(exec::KernelOp kernel, llvm::StringRef name,
                               llvm::StringRef target) {
  return Compilation(kernel, name, target).run();
}

void registerGeneratedDialects(mlir::DialectRegistry& registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::gpu::GPUDialect, mlir::linalg::LinalgDialect,
                  mlir::math::MathDialect, mlir::memref::MemRefDialect>();
}

}  // namespace oriel
