// Prints what the cost model says of cases on stdin, a line each, in seconds (bench/cost_model.py).
//
//   oriel_cost_model CLUSTER < cases
//
//   product half|float COUNT ROWS COLUMNS DEPTH RESULT_BYTES
//   attention forward|backward BATCH HEADS QUERIES KEYS DEPTH VALUE_DEPTH causal|full
//   bytes BYTES
//   gather|all_reduce|exchange|transfer SENT_BYTES RANK RANK ..
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "passes/cost/cluster.h"
#include "passes/cost/link_time.h"

namespace oriel {
namespace {

// Below 0 for a line that is no case.
double secondsOf(const Cluster& cluster, const std::string& line) {
  const Efficiency& efficiency = cluster.device.efficiency;
  const DeviceRates rates = cluster.device.rates();
  std::istringstream words(line);
  std::string what, how;
  words >> what;
  if (what == "product") {
    MatrixProduct product;
    words >> how >> product.count >> product.rows >> product.columns >> product.depth >>
        product.resultBytes;
    product.wide = how == "float";
    product.operandBytes = product.wide ? 4 : 2;
    return words ? productSeconds(efficiency, rates, product) : -1;
  }
  if (what == "attention") {
    AttentionWork work;
    std::string mask;
    words >> how >> work.batch >> work.heads >> work.queries >> work.keys >> work.depth >>
        work.valueDepth >> mask;
    work.keyHeads = work.heads;
    work.backward = how == "backward";
    work.causal = mask == "causal";
    return words ? attentionSeconds(efficiency, rates, work) : -1;
  }
  double bytes = 0;
  words >> bytes;
  if (!words) return -1;
  if (what == "bytes") return memorySeconds(efficiency, rates, bytes);
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; words >> rank;) ranks.push_back(rank);
  const auto on = [&](LinkUse use) { return linkSeconds(cluster.links, ranks, use, bytes); };
  if (what == "gather") return on(LinkUse::kGather);
  if (what == "all_reduce") return on(LinkUse::kAllReduce);
  if (what == "exchange") return on(LinkUse::kExchange);
  return what == "transfer" ? on(LinkUse::kTransfer) : -1;
}

}  // namespace
}  // namespace oriel

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: oriel_cost_model CLUSTER < cases\n");
    return 2;
  }
  const absl::StatusOr<oriel::Cluster> cluster = oriel::findCluster(argv[1]);
  if (!cluster.ok()) {
    std::fprintf(stderr, "%s\n", std::string(cluster.status().message()).c_str());
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const double seconds = oriel::secondsOf(*cluster, line);
    if (seconds < 0) {
      std::fprintf(stderr, "no case: %s\n", line.c_str());
      return 1;
    }
    std::printf("%.9g\n", seconds);
  }
  return 0;
}
