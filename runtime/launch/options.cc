#include "runtime/launch/options.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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
  oriel-run model.oplan --data shards/train --save-dir ckpt --save-every 500 --keep 3
  oriel-run model.oplan --data shards/train --eval shards/eval --eval-every 1000
  oriel-run model.oplan --data shards/train --resume ckpt --save-dir ckpt --steps 20000
  oriel-run model.oplan --data shards/train --save-dir ckpt --auto-resume   # started again and again
  oriel-run all.oplan --data shards/train --init-from projector_ckpt --save-dir ckpt
  oriel-run model.oplan --eval shards/eval --resume ckpt/step-00010000
  oriel-run model.oplan --data shards/train -n 4 --comm mpi
  mpirun -n 4 oriel-run model.oplan --data shards/train
  torchrun --no-python --nproc-per-node 4 oriel-run model.oplan --data shards/train

Exit status: 0 done, 1 error, 2 wrong usage, 130 interrupted (a checkpoint was written if
--save-dir was given). See docs/running.md.)";

// What is wrong with the combination of options, or "".
const char* CheckUsage(const RunOptions& options) {
  if (options.doctor) return "";
  if (options.measure) {
    if (options.plan.empty() && options.data.empty() && options.eval.empty()) return "";
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
  if (options.keep > 0 && options.save_dir.empty()) {
    return "--keep needs --save-dir DIR, where checkpoints go";
  }
  if (options.keep_best && (options.save_dir.empty() || options.eval_every == 0)) {
    return "--keep-best needs --save-dir DIR, where checkpoints go, and --eval-every K, which says "
           "how good they are";
  }
  if (options.auto_resume && options.save_dir.empty()) {
    return "--auto-resume needs --save-dir DIR, where checkpoints are";
  }
  if (!options.eval_logits.empty() && options.eval.empty()) {
    return "--eval-logits needs --eval DIR, the evaluation shards";
  }
  if (options.eval_every > 0 && (options.eval.empty() || options.data.empty())) {
    return "--eval-every needs --data DIR, the training shards, and --eval DIR, those of "
           "evaluation";
  }
  return "";
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

// Text of options that is parsed behind CLI11.
struct Texts {
  std::string trace_steps, replace_compute, link_delay;
};

// What is wrong with them, or "".
std::string ReadTexts(const Texts& texts, RunOptions& options) {
  if (!texts.link_delay.empty()) {
    absl::StatusOr<LinkDelay> delay = ParseLinkDelay(texts.link_delay);
    if (!delay.ok()) return absl::StrCat("--link-delay: ", delay.status().message());
    options.link_delay = *delay;
  }
  if (!texts.trace_steps.empty() && !ParseSteps(texts.trace_steps, &options.trace_steps)) {
    return "--trace-steps takes two steps, the first from 1 on: --trace-steps 1-3";
  }
  if (!texts.replace_compute.empty() &&
      !ParseReplacements(texts.replace_compute, &options.replace_compute)) {
    return "--replace-compute takes milliseconds by segment: --replace-compute "
           "forward=20,backward=40";
  }
  return "";
}

CLI::Range AtLeast(int64_t least) {
  CLI::Range range(least, int64_t{1} << 62);
  range.description("");  // or the help shows the numbers
  return range;
}

void AddTraining(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("Training");
  app.add_option("--data", options.data, "folder of training shards (.tar, KEY.INPUT.npy)")
      ->type_name("DIR");
  app.add_option("--steps", options.steps, "train until this step (default: the plan's); 0: don't")
      ->type_name("K")
      ->check(AtLeast(0));
  app.add_option("--seed", options.seed,
                 "order of the data, and dropout (default: the checkpoint's, else the plan's)")
      ->type_name("S")
      ->check([](const std::string& text) {  // which would be taken modulo 2^64
        return std::string(text.rfind('-', 0) == 0 ? "a seed is not below 0" : "");
      });
  app.add_flag("--no-shuffle", options.no_shuffle, "take the samples in their order");
  app.add_flag("--allow-nan", options.allow_nan,
               "go on when the loss is a NaN, or the gradient's norm is not finite (default: stop "
               "with an error, and save no checkpoint of it)");
  app.add_option("--metrics", options.metrics, "write a JSON line per step")->type_name("FILE");
  app.add_option("--tensorboard", options.tensorboard,
                 "write metrics, and those of evaluations, for TensorBoard to a new file in DIR")
      ->type_name("DIR");
}

void AddCheckpoints(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("Checkpoints");
  app.add_option("--save-dir", options.save_dir, "write checkpoints: at the end, on Ctrl-C")
      ->type_name("DIR");
  app.add_option("--save-every", options.save_every, "and after every K steps")
      ->type_name("K")
      ->check(AtLeast(1));
  app.add_option("--keep", options.keep,
                 "remove checkpoints of earlier steps, but for the N latest (default: all stay)")
      ->type_name("N")
      ->check(AtLeast(1));
  app.add_flag("--keep-best", options.keep_best,
               "save one where an evaluation has the lowest loss so far, which --keep leaves");
  CLI::Option* resume = app.add_option("--resume", options.resume,
                                       "go on from the latest checkpoint in DIR, or from DIR")
                            ->type_name("DIR");
  app.add_flag("--auto-resume", options.auto_resume,
               "go on from the latest in --save-dir, if one is there")
      ->excludes(resume);
  app.add_option("--init-from", options.init_from,
                 "begin with the weights of a checkpoint in DIR, at step 0")
      ->type_name("DIR")
      ->excludes(resume);
}

void AddEvaluation(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("Evaluation");
  app.add_option("--eval", options.eval, "evaluate on these shards, after training if any")
      ->type_name("DIR");
  app.add_option("--eval-every", options.eval_every, "and after every K steps")
      ->type_name("K")
      ->check(AtLeast(1));
  app.add_option("--eval-logits", options.eval_logits, "write the logits of all samples")
      ->type_name("FILE.npy");
}

void AddRanks(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("Ranks");
  app.add_option("-n,--ranks", options.ranks, "must be what the plan is for (the default)")
      ->type_name("N")
      ->check(AtLeast(1));
  app.add_option(
         "--comm", options.comm,
         "in_process: threads (default on the host); processes: of this machine (default for "
         "CUDA); mpi: under mpirun; tcp: this process is one")
      ->type_name("KIND")
      ->check(CLI::IsMember({"in_process", "processes", "mpi", "tcp"}));
  app.add_option("--device", options.device, "host or cuda: must be what the plan is for")
      ->type_name("KIND")
      ->check(CLI::IsMember({"host", "cuda"}));
  app.add_option("--threads", options.threads, "per rank (default: cores / local ranks)")
      ->type_name("T")
      ->check(AtLeast(1));
}

void AddInspection(CLI::App& app, RunOptions& options, Texts& texts) {
  app.option_defaults()->group("Inspection");
  app.add_flag("--doctor", options.doctor,
               "only say what this machine has and lacks; with --device cuda or --comm mpi, fail "
               "where that can't run");
  app.add_flag("--measure", options.measure,
               "only measure this machine, with -n ranks (default: its cores), and print lines of "
               "JSON: `oriel doctor --measure FILE` makes a cluster file of them");
  app.add_flag("--profile", options.profile, "print where the time of the steps went");
  app.add_option("--dump-gradients", options.dump_gradients, "of the first step, before clipping")
      ->type_name("FILE.safetensors");
  app.add_option("--dump-parameters", options.dump_parameters, "at the end of training")
      ->type_name("FILE.safetensors");
  app.add_option("--trace", options.trace, "write a timeline of some steps, for Perfetto")
      ->type_name("FILE.json");
  app.add_option("--trace-steps", texts.trace_steps, "these steps (default: the first 3)")
      ->type_name("A-B");
  app.add_option("--replace-compute", texts.replace_compute,
                 "of segments: sleep so many ms instead; losses then mean nothing")
      ->type_name("forward=20,backward=40");
  app.add_option("--link-delay", texts.link_delay,
                 "as if ranks were on such a network: communication takes so much longer")
      ->type_name("latency=50us,bandwidth=1GB/s");

  app.add_flag("--check-nan", options.check_nan,
               "stop at the first op whose result has a NaN, and name it; slow");
  app.add_flag("--no-graphs", options.no_graphs,
               "of a device: launch kernels one by one, not as CUDA graphs, to find a fault");
  app.add_flag("--poison-dead-memory", options.poison_dead_memory,
               "fill memory with NaN as soon as nothing reads it: no number changes");
}

}  // namespace

ParsedOptions ParseOptions(int argc, const char* const* argv) {
  RunOptions options;
  CLI::App app(kDescription, "oriel-run");
  app.footer(kExamples);
  app.get_formatter()->column_width(28);

  app.add_option("plan", options.plan, "the plan (.oplan)")->type_name("PLAN");
  app.add_option("--load-plugin", options.plugins, "a library with more kernels; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE.so");

  AddTraining(app, options);
  AddCheckpoints(app, options);
  AddEvaluation(app, options);
  AddRanks(app, options);
  Texts texts;
  AddInspection(app, options, texts);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    app.exit(error);
    return {std::nullopt, is_help ? kExitOk : kExitUsage};
  }
  std::string problem = ReadTexts(texts, options);
  if (problem.empty()) problem = CheckUsage(options);
  if (!problem.empty()) {
    std::cerr << "oriel-run: " << problem << "\nRun with --help for more information.\n";
    return {std::nullopt, kExitUsage};
  }
  return {options, kExitOk};
}

}  // namespace oriel::runtime
