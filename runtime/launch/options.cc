#include "runtime/launch/options.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace oriel::runtime {
namespace {

constexpr char kDescription[] =
    "Trains and evaluates a plan that `oriel compile` has made. Starts the plan's ranks on this\n"
    "machine by itself, as threads or as processes; or acts as one rank under mpirun or\n"
    "torchrun.";

constexpr char kExamples[] = R"(Examples:
  oriel-run model.oplan --data shards/train --metrics metrics.jsonl
  oriel-run model.oplan --data shards/train --save-dir ckpt --save-every 500 --eval shards/eval
  oriel-run model.oplan --data shards/train --resume ckpt --save-dir ckpt --steps 20000
  oriel-run model.oplan --data shards/train --save-dir ckpt --auto-resume   # started again and again
  oriel-run all.oplan --data shards/train --init-from projector_ckpt --save-dir ckpt
  oriel-run model.oplan --eval shards/eval --resume ckpt/step-00010000
  oriel-run model.oplan --data shards/train -n 4 --comm mpi
  mpirun -n 4 oriel-run model.oplan --data shards/train
  torchrun --no-python --nproc-per-node 4 oriel-run model.oplan --data shards/train

Exit status: 0 done, 1 error, 2 wrong usage, 130 interrupted (a checkpoint was written if
--save-dir was given). See docs/running.md.)";

// What is wrong with the combination of options, or null.
const char* CheckUsage(const RunOptions& options) {
  if (options.doctor) return nullptr;
  if (options.measure) {
    if (options.plan.empty() && options.data.empty() && options.eval.empty()) return nullptr;
    return "--measure only measures this machine: leave out the plan, --data and --eval";
  }
  if (options.plan.empty()) return "plan is required: give the plan to run (.oplan)";
  if (options.data.empty() && options.eval.empty() && options.dump_parameters.empty()) {
    return "nothing to do: give --data DIR to train, --eval DIR to evaluate, or both";
  }
  if (options.data.empty()) {
    if (options.steps.value_or(0) > 0) return "--steps needs --data DIR, the training shards";
    if (!options.save_dir.empty()) return "--save-dir needs --data DIR, the training shards";
    if (!options.dump_gradients.empty()) {
      return "--dump-gradients needs --data DIR, the training shards";
    }
    if (!options.trace.empty()) return "--trace needs --data DIR, the training shards";
    if (!options.replace_compute.empty()) {
      return "--replace-compute needs --data DIR, the training shards";
    }
  }
  if (options.trace_steps && options.trace.empty()) {
    return "--trace-steps needs --trace FILE, where the timeline goes";
  }
  if (!options.replace_compute.empty()) {
    if (!options.save_dir.empty()) {
      return "--replace-compute leaves nothing worth saving: leave out --save-dir";
    }
    if (!options.eval.empty() || !options.dump_gradients.empty() ||
        !options.dump_parameters.empty()) {
      return "--replace-compute leaves no numbers of the model: leave out --eval, --dump-gradients "
             "and --dump-parameters";
    }
  }
  if (options.save_every > 0 && options.save_dir.empty()) {
    return "--save-every needs --save-dir DIR, where checkpoints go";
  }
  if (options.auto_resume && options.save_dir.empty()) {
    return "--auto-resume needs --save-dir DIR, where checkpoints are";
  }
  if (!options.eval_logits.empty() && options.eval.empty()) {
    return "--eval-logits needs --eval DIR, the evaluation shards";
  }
  return nullptr;
}

// "A-B" or "A"; false if it is neither.
bool ParseSteps(absl::string_view text, std::optional<StepRange>* steps) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  StepRange range;
  if (parts.size() > 2 || !absl::SimpleAtoi(parts.front(), &range.first) ||
      !absl::SimpleAtoi(parts.back(), &range.last) || range.first < 1 || range.last < range.first) {
    return false;
  }
  *steps = range;
  return true;
}

// "forward=20,backward.1=40"; false if it is not such a list.
bool ParseReplacements(absl::string_view text, std::map<std::string, double>* replacements) {
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, '=');
    double milliseconds = 0;
    if (parts.size() != 2 || parts[0].empty() || !absl::SimpleAtod(parts[1], &milliseconds) ||
        !(milliseconds >= 0) ||
        !replacements->emplace(std::string(parts[0]), milliseconds).second) {
      return false;
    }
  }
  return true;
}

}  // namespace

ParsedOptions ParseOptions(int argc, const char* const* argv) {
  RunOptions options;
  CLI::App app(kDescription, "oriel-run");
  app.footer(kExamples);
  app.get_formatter()->column_width(28);
  CLI::Range from_zero(int64_t{0}, int64_t{1} << 62);
  CLI::Range from_one(int64_t{1}, int64_t{1} << 62);
  from_zero.description("");  // or the help shows the numbers
  from_one.description("");

  app.add_option("plan", options.plan, "the plan (.oplan)")->type_name("PLAN");
  app.add_option("--load-plugin", options.plugins, "a library with more kernels; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE.so");

  const char* training = "Training";
  app.add_option("--data", options.data, "folder of training shards (.tar, KEY.INPUT.npy)")
      ->type_name("DIR")
      ->group(training);
  app.add_option("--steps", options.steps, "train until this step (default: the plan's); 0: don't")
      ->type_name("K")
      ->check(from_zero)
      ->group(training);
  app.add_option("--seed", options.seed,
                 "order of the data, and dropout (default: the checkpoint's, else the plan's)")
      ->type_name("S")
      ->check([](const std::string& text) {  // which would be taken modulo 2^64
        return std::string(text.rfind('-', 0) == 0 ? "a seed is not below 0" : "");
      })
      ->group(training);
  app.add_flag("--no-shuffle", options.no_shuffle, "take the samples in their order")
      ->group(training);
  app.add_option("--metrics", options.metrics, "write a JSON line per step")
      ->type_name("FILE")
      ->group(training);

  const char* checkpoints = "Checkpoints";
  app.add_option("--save-dir", options.save_dir, "write checkpoints: at the end, on Ctrl-C")
      ->type_name("DIR")
      ->group(checkpoints);
  app.add_option("--save-every", options.save_every, "and after every K steps")
      ->type_name("K")
      ->check(from_one)
      ->group(checkpoints);
  CLI::Option* resume = app.add_option("--resume", options.resume,
                                       "go on from the latest checkpoint in DIR, or from DIR")
                            ->type_name("DIR")
                            ->group(checkpoints);
  app.add_flag("--auto-resume", options.auto_resume,
               "go on from the latest in --save-dir, if one is there")
      ->excludes(resume)
      ->group(checkpoints);
  app.add_option("--init-from", options.init_from,
                 "begin with the weights of a checkpoint in DIR, at step 0")
      ->type_name("DIR")
      ->excludes(resume)
      ->group(checkpoints);

  const char* evaluation = "Evaluation";
  app.add_option("--eval", options.eval, "evaluate on these shards, after training if any")
      ->type_name("DIR")
      ->group(evaluation);
  app.add_option("--eval-logits", options.eval_logits, "write the logits of all samples")
      ->type_name("FILE.npy")
      ->group(evaluation);

  const char* ranks = "Ranks";
  app.add_option("-n,--ranks", options.ranks, "must be what the plan is for (the default)")
      ->type_name("N")
      ->check(from_one)
      ->group(ranks);
  app.add_option(
         "--comm", options.comm,
         "in_process: threads (default on the host); processes: of this machine (default for "
         "CUDA); mpi: under mpirun; tcp: this process is one")
      ->type_name("KIND")
      ->check(CLI::IsMember({"in_process", "processes", "mpi", "tcp"}))
      ->group(ranks);
  app.add_option("--device", options.device, "host or cuda: must be what the plan is for")
      ->type_name("KIND")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->group(ranks);
  app.add_option("--threads", options.threads, "per rank (default: cores / local ranks)")
      ->type_name("T")
      ->check(from_one)
      ->group(ranks);

  const char* inspection = "Inspection";
  app.add_flag("--doctor", options.doctor,
               "only say what this machine has and lacks; with --device cuda or --comm mpi, fail "
               "where that can't run")
      ->group(inspection);
  app.add_flag("--measure", options.measure,
               "only measure this machine, with -n ranks (default: its cores), and print lines of "
               "JSON: `oriel doctor --measure FILE` makes a cluster file of them")
      ->group(inspection);
  app.add_flag("--profile", options.profile, "print where the time of the steps went")
      ->group(inspection);
  app.add_option("--dump-gradients", options.dump_gradients, "of the first step, before clipping")
      ->type_name("FILE.safetensors")
      ->group(inspection);
  app.add_option("--dump-parameters", options.dump_parameters, "at the end of training")
      ->type_name("FILE.safetensors")
      ->group(inspection);
  std::string trace_steps, replace_compute, link_delay;
  app.add_option("--trace", options.trace, "write a timeline of some steps, for Perfetto")
      ->type_name("FILE.json")
      ->group(inspection);
  app.add_option("--trace-steps", trace_steps, "these steps (default: the first 3)")
      ->type_name("A-B")
      ->group(inspection);
  app.add_option("--replace-compute", replace_compute,
                 "of segments: sleep so many ms instead; losses then mean nothing")
      ->type_name("forward=20,backward=40")
      ->group(inspection);
  app.add_option("--link-delay", link_delay,
                 "as if ranks were on such a network: communication takes so much longer")
      ->type_name("latency=50us,bandwidth=1GB/s")
      ->group(inspection);

  app.add_flag("--check-nan", options.check_nan,
               "stop at the first op whose result has a NaN, and name it; slow")
      ->group(inspection);
  app.add_flag("--no-graphs", options.no_graphs,
               "of a device: launch kernels one by one, not as CUDA graphs, to find a fault")
      ->group(inspection);
  app.add_flag("--poison-dead-memory", options.poison_dead_memory,
               "fill memory with NaN as soon as nothing reads it: no number changes")
      ->group(inspection);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    app.exit(error);
    return {std::nullopt, is_help ? kExitOk : kExitUsage};
  }
  const char* problem = nullptr;
  if (!link_delay.empty()) {
    absl::StatusOr<LinkDelay> delay = ParseLinkDelay(link_delay);
    if (!delay.ok()) {
      std::cerr << "oriel-run: --link-delay: " << delay.status().message()
                << "\nRun with --help for more information.\n";
      return {std::nullopt, kExitUsage};
    }
    options.link_delay = *delay;
  }
  if (!trace_steps.empty() && !ParseSteps(trace_steps, &options.trace_steps)) {
    problem = "--trace-steps takes two steps, the first from 1 on: --trace-steps 1-3";
  } else if (!replace_compute.empty() &&
             !ParseReplacements(replace_compute, &options.replace_compute)) {
    problem =
        "--replace-compute takes milliseconds by segment: --replace-compute "
        "forward=20,backward=40";
  } else {
    problem = CheckUsage(options);
  }
  if (problem != nullptr) {
    std::cerr << "oriel-run: " << problem << "\nRun with --help for more information.\n";
    return {std::nullopt, kExitUsage};
  }
  return {options, kExitOk};
}

}  // namespace oriel::runtime
