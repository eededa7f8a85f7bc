// The command line of oriel-run.
#ifndef ORIEL_RUNTIME_LAUNCH_OPTIONS_H_
#define ORIEL_RUNTIME_LAUNCH_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/comm/link_delay.h"

namespace oriel::runtime {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

struct StepRange {
  int64_t first = 0;
  int64_t last = 0;  // included
};

struct RunOptions {
  bool doctor = false;   // only says what this machine lacks
  bool measure = false;  // only measures this machine
  std::string plan;
  std::vector<std::string> plugins;  // libraries of kernels
  std::string data;                  // folder of training shards; empty: no training
  std::string eval;                  // folder of evaluation shards; empty: no evaluation
  std::optional<int64_t> ranks;
  std::string device;  // "host", "cuda"; empty: the plan's
  std::string comm;  // "in_process", "processes", "mpi", "tcp" or empty: as the process was started
  std::optional<int64_t> steps;
  std::optional<uint64_t> seed;
  bool no_shuffle = false;
  bool allow_nan = false;
  int64_t threads = 0;  // per rank; 0: the cores divided by the ranks of this machine
  std::string metrics;
  std::string tensorboard;  // folder, or empty
  std::string save_dir;
  int64_t save_every = 0;
  int64_t keep = 0;        // 0: all
  bool keep_best = false;  // that of the lowest loss of an evaluation
  std::string resume;
  bool auto_resume = false;  // from save_dir, if a checkpoint is there
  std::string init_from;
  int64_t eval_every = 0;  // 0: only at the end
  std::string eval_logits;
  std::string dump_gradients;
  std::string dump_parameters;
  bool profile = false;
  bool poison_dead_memory = false;
  bool check_nan = false;
  bool no_graphs = false;                // !ExecutorOptions::record
  std::string trace;                     // file for a timeline of the steps below, or empty
  std::optional<StepRange> trace_steps;  // default: the first 3 of the run
  std::optional<LinkDelay> link_delay;   // DelayCommunication
  // Milliseconds by segment or kind of segments (ExecutorOptions::replace_compute).
  std::map<std::string, double> replace_compute;
};

struct ParsedOptions {
  std::optional<RunOptions> options;  // nothing: leave with exit_code
  int exit_code = kExitOk;
};

// Prints help to stdout, and a usage error to stderr.
ParsedOptions ParseOptions(int argc, const char* const* argv);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_OPTIONS_H_
