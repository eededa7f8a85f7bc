#include "driver/pipelines.h"

#include <numeric>

#include "frontend/specialize.h"
#include "ir/exec/exec.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "passes/divide/passes.h"
#include "passes/fuse/passes.h"
#include "passes/generate/passes.h"
#include "passes/lower/passes.h"
#include "passes/overlap/passes.h"
#include "passes/partition/passes.h"
#include "passes/propagate/passes.h"
#include "passes/raise/passes.h"
#include "passes/remat/passes.h"
#include "passes/stage/passes.h"
#include "passes/strategize/passes.h"
#include "passes/train/passes.h"
#include "passes/verify/passes.h"

namespace oriel {

namespace {

using mlir::OpPassManager;

void addSpecialize(OpPassManager& passes, const PipelineOptions&) {
  // Folds until nothing folds: shape arithmetic, position and mask tables. Afterwards every
  // tensor is static, which all later passes rely on.
  passes.addPass(createOrielSpecialize());
}

void addRaise(OpPassManager& passes, const PipelineOptions& options) {
  OpPassManager& function = passes.nest<mlir::func::FuncOp>();
  // First: others know masks by their parts, and positions of many samples are not folded.
  function.addPass(createRaisePositions());
  // Of loops that they take, a thousand ops are not there for the others.
  function.addPass(createRaiseSubstitution());
  function.addPass(createRaiseRecurrence());
  function.addPass(createRaiseUpdates());
  // Before softmax and attention, which know masks by their choices.
  function.addPass(createRaiseChoice());
  // Before attention: a bias on a projection would stand between it and the heads.
  function.addPass(createRaiseLinear());
  // Before norms, which subtract the mean of which they take the variance: one value.
  function.addPass(createRaiseMean());
  function.addPass(mlir::createCSEPass());
  function.addPass(createRaiseNormalization());
  // Before attention, which starts from a softmax.
  function.addPass(createRaiseSoftmax());
  function.addPass(createRaiseActivation());
  function.addPass(createRaiseLogarithm());
  // Before attention, which takes query and key as it finds them.
  function.addPass(createRaiseRope());
  if (!options.kernels.unfusedAttention) function.addPass(createRaiseAttention());
  // After attention, whose patterns expect heads before positions.
  function.addPass(createRaiseLayout());
  // Again: layout makes slices of gathers of one row.
  function.addPass(createRaiseUpdates());
  // After layout, which puts sequences before heads. What pieces share must be one value.
  function.addPass(mlir::createCSEPass());
  function.addPass(createRaisePacked());
  // Again: layout brings repeated heads to where attention sees that they are.
  if (!options.kernels.unfusedAttention) function.addPass(createRaiseAttention());
  // Again: what was computed head by head has its heads in a dimension now.
  function.addPass(createRaiseLayout());
  // After layout, which leaves few ways to write a product with all experts.
  if (!options.kernels.unfusedExperts) {
    function.addPass(createRaiseExperts());
    // Again: rows that experts are chosen by may be of samples and positions, which come apart.
    function.addPass(createRaiseLayout());
  }
  // After layout, by which logits are what a layer makes.
  function.addPass(createRaiseLoss());
  RaiseMergeOptions merge;
  CheckImagesOptions check;
  for (const Recipe::Images& images : options.recipe.images) {
    merge.inputs.push_back(images.input);
    merge.rowsPerSample.push_back(images.perSample * images.rowsPerImage);
    check.inputs.push_back(images.input);
    check.perSample.push_back(images.perSample);
    check.rowsPerImage.push_back(images.rowsPerImage);
  }
  function.addPass(createRaiseMerge(merge));
  // Behind the merges, which are what is checked.
  passes.addPass(createCheckImages(check));
  // What the patterns left without users goes; equal subexpressions (such as mask tables per
  // layer) become one while there is still one function only.
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
}

void addTrain(OpPassManager& passes, const PipelineOptions& options) {
  // Before autodiff, whose backward drops what the forward did; behind what merges equal ops.
  SeedDropoutOptions dropout;
  dropout.samples = options.recipe.microBatch * options.strategy.dataParallel();
  passes.addPass(createSeedDropout(dropout));
  if (!options.hasTrainingTypes) addTrainingTypes(passes, options);
  // Of all meshes together.
  const int64_t positionRanks = options.strategy.commonOfGrids(&Mesh::cp);
  passes.addPass(createTrain(options.recipe, options.kernels.fusedLoss, positionRanks));
}

// The driver has checked that it divides.
void addStage(OpPassManager& passes, const PipelineOptions& options) {
  // Layers are equal still, and what is frozen has no backward any more.
  passes.addPass(createAssignStages(options.strategy,
                                    microbatchesOf(options.recipe, options.strategy),
                                    options.kernels.launches, options.explainStages));
  passes.addPass(
      createSplitStages(options.strategy, microbatchesOf(options.recipe, options.strategy)));
}

void addStrategize(OpPassManager& passes, const PipelineOptions& options) {
  passes.addPass(createAnnotate(options.strategy, microbatchesOf(options.recipe, options.strategy),
                                options.explainSharding));
}

void addPropagate(OpPassManager& passes, const PipelineOptions& options) {
  PropagateOptions propagate;
  propagate.explain = options.explainSharding;
  passes.addPass(createPropagate(propagate));
}

void addPartition(OpPassManager& passes, const PipelineOptions&) {
  passes.addPass(createPartition());
}

void addFuse(OpPassManager& passes, const PipelineOptions&) {
  // Before remat, so that what it computes again is compiled as it was.
  passes.addPass(createFuse());
}

void addRemat(OpPassManager& passes, const PipelineOptions& options) {
  passes.addPass(createRemat(options.strategy, options.kernels.launches, options.quiet));
}

void addOverlap(OpPassManager& passes, const PipelineOptions& options) {
  // Behind all that adds or removes collectives, or changes what runs between them.
  const Strategy& strategy = options.strategy;
  if (strategy.overlap) {
    passes.addPass(createOverlap(*strategy.overlap, strategy.memory, options.kernels.launches,
                                 options.overlapsByPeak));
  }
}

void addLower(OpPassManager& passes, const PipelineOptions& options) {
  // Before what joins sums to other ops.
  passes.addPass(createAssignGradients());
  // Before lists, which take over the casts of masters.
  if (options.kernels.launches.fused) passes.addPass(createKeepRemainders());
  // Behind all that clones, cuts or moves single ops.
  if (options.kernels.launches.fused) passes.addPass(createFormFused());
  // Behind overlap, which orders updates one by one beside their collectives.
  passes.addPass(createFormLists());
  // Behind all that moves or copies single ops; bits stay.
  if (options.kernels.launches.generated) passes.addPass(createFormGenerated());
  LowerToExecOptions lower;
  lower.alignment = options.arenaAlignment;
  passes.addPass(createLowerToExec(lower));
}

// Of what has no segments any more, the ops' own verifiers are enough.
void addNoVerifier(OpPassManager&) {}

void addTrainVerifier(OpPassManager& passes) { passes.addPass(createVerifyTrain()); }

void addVerifierOf(OpPassManager& passes, llvm::StringRef values) {
  passes.addPass(createVerifySegments(VerifySegmentsOptions{values.str()}));
}

void addWholeVerifier(OpPassManager& passes) { addVerifierOf(passes, "whole"); }
void addGlobalVerifier(OpPassManager& passes) { addVerifierOf(passes, "global"); }
void addLocalVerifier(OpPassManager& passes) { addVerifierOf(passes, "local"); }

}  // namespace

void addTrainingTypes(OpPassManager& passes, const PipelineOptions& options) {
  // Before autodiff, so that forward and backward use the same parameters.
  passes.addPass(createCutConvolutions(options.strategy));
  passes.addPass(createCutProducts(options.strategy, options.recipe.loss.output));
  // Behind the cuts: parts of a bias are with parts of a product, and heads are side by side.
  passes.addPass(createAddBiasesLast(options.strategy));
  const bool hasClasses = options.recipe.loss.kind == Recipe::LossKind::kTokenCrossEntropy;
  const std::string logits = hasClasses ? options.recipe.loss.output : "";
  // Before autodiff, whose backward then leaves the padding at zero by itself.
  passes.addPass(createPadBlocks(options.strategy, logits));
  passes.addPass(createPadVocabulary(options.strategy, logits));
  // Before autodiff, whose backward then is in the types of the forward; behind the padding, whose
  // ops have types too.
  if (options.recipe.precision.mixed) passes.addPass(createMixedPrecision(options.recipe));
}

int64_t microbatchesOf(const Recipe& recipe, const Strategy& strategy) {
  return recipe.globalBatch / (recipe.microBatch * strategy.dataParallel());
}

const std::vector<PipelinePhase>& pipelinePhases() {
  static const auto* phases = new std::vector<PipelinePhase>{
      {"specialize", "static shapes, folded shape arithmetic", addSpecialize, addWholeVerifier},
      {"raise", "semantic ops: attention, norms, rotary embedding, image merge", addRaise,
       addWholeVerifier},
      {"train", "forward, backward, update and eval segments", addTrain, addTrainVerifier},
      {"stage", "pipeline stages: a program for each group of ranks", addStage, addWholeVerifier},
      {"strategize", "the device grid, the schedule of a step, shardings of parameters",
       addStrategize, addWholeVerifier},
      {"propagate", "a sharding for every value", addPropagate, addGlobalVerifier},
      {"partition", "local shapes and collectives", addPartition, addLocalVerifier},
      {"fuse", "fusion clusters", addFuse, addLocalVerifier},
      {"remat", "a stash of what is not computed again in the backward", addRemat,
       addLocalVerifier},
      {"overlap", "communication beside computing", addOverlap, addLocalVerifier},
      {"lower", "kernels, and buffers in one arena", addLower, addNoVerifier},
  };
  return *phases;
}

void registerOrielPasses() {
  registerFrontendPasses();
  registerRaisePasses();
  registerTrainPasses();
  registerVerifyPasses();
  registerStagePasses();
  registerDividePasses();
  registerStrategizePasses();
  registerPropagatePasses();
  registerPartitionPasses();
  registerFusePasses();
  registerRematPasses();
  registerOverlapPasses();
  registerGeneratePasses();
  registerLowerPasses();
}

void registerOrielDialects(mlir::DialectRegistry& registry) {
  registry.insert<exec::ExecDialect, ir::OrielDialect, mlir::func::FuncDialect>();
}

}  // namespace oriel
