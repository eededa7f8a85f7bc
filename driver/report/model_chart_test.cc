#include "driver/report/model_chart.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two nodes of four devices.
Cluster twoNodes() {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.devicesPerNode = 4;
  cluster.links = {{"NVLink", 4}, {"network", 8}};
  return cluster;
}

TEST(ModelChartTest, LinksOfGroups) {
  const Cluster cluster = twoNodes();
  EXPECT_EQ(linksOfGroups(cluster, 8, 1, 1), "");
  EXPECT_EQ(linksOfGroups(cluster, 8, 4, 1), "NVLink");
  EXPECT_EQ(linksOfGroups(cluster, 8, 2, 2), "NVLink");
  EXPECT_EQ(linksOfGroups(cluster, 8, 2, 4), "network");
  EXPECT_EQ(linksOfGroups(cluster, 8, 8, 1), "network");
  // Ranks 3 to 5 are on both nodes.
  EXPECT_EQ(linksOfGroups(cluster, 6, 3, 1), "network");
}

TEST(ModelChartTest, SplitsTable) {
  Candidate candidate;
  candidate.tp = 2;
  candidate.dp = 2;
  candidate.pp = 2;
  candidate.shards = 2;
  candidate.zero = 1;
  const std::string table = splitsTable(candidate, twoNodes());
  EXPECT_THAT(table, HasSubstr("<td>tp = 2</td><td>2 neighbours</td><td>NVLink</td>"));
  EXPECT_THAT(table, HasSubstr("<td>optimizer state</td><td>zero = 1</td>"));
  EXPECT_THAT(table, HasSubstr("<td>pp = 2</td><td>2, 4 apart: 0, 4</td><td>network</td>"));
}

// Positions are cut between layers and samples; what zero says is shared by all with them.
TEST(ModelChartTest, SplitsTableWithPositions) {
  Candidate candidate;
  candidate.tp = candidate.cp = candidate.dp = candidate.shards = 2;
  candidate.zero = 2;
  const std::string table = splitsTable(candidate, twoNodes());
  EXPECT_THAT(table, HasSubstr("<td>cp = 2</td><td>2, 2 apart: 0, 2</td><td>NVLink</td>"));
  EXPECT_THAT(table, HasSubstr("<td>dp = 2</td><td>2, 4 apart: 0, 4</td><td>network</td>"));
  EXPECT_THAT(table, HasSubstr("<td>zero = 2</td><td>4, 2 apart: 0, 2, .., 6</td>"));
  EXPECT_THAT(table, HasSubstr("<td>pp = 1</td><td>not split</td>"));
  candidate.dp = candidate.shards = 1;
  candidate.pp = 2;
  EXPECT_THAT(splitsTable(candidate, twoNodes()),
              HasSubstr("<td>pp = 2</td><td>2, 4 apart: 0, 4</td><td>network</td>"));
  const std::string chart = ranksChart(candidate, twoNodes());
  EXPECT_THAT(chart, HasSubstr("ranks that touch have the same samples"));
  EXPECT_THAT(chart, HasSubstr("(4 ranks each)"));
}

// Grid 1 is on devices 2, 3, 6 and 7.
TEST(ModelChartTest, StagesSideBySide) {
  Candidate candidate;
  candidate.tp = candidate.dp = candidate.pp = 2;
  candidate.placement = Placement::kDpOutermost;
  const std::string table = splitsTable(candidate, twoNodes());
  EXPECT_THAT(table, HasSubstr("<td>tp = 2</td><td>2 neighbours</td><td>NVLink</td>"));
  EXPECT_THAT(table, HasSubstr("<td>dp = 2</td><td>2, 2 apart: 0, 2</td><td>network</td>"));
  EXPECT_THAT(table, HasSubstr("<td>pp = 2</td><td>2, 4 apart: 0, 4</td><td>NVLink</td>"));
  const std::string chart = ranksChart(candidate, twoNodes());
  std::vector<std::string> order;
  for (int rank = 0; rank < 8; ++rank) order.push_back(">" + std::to_string(rank) + "</text>");
  size_t last = chart.find(">node 0<");
  for (const int rank : {0, 1, 4, 5, 2, 3, 6, 7}) {
    const size_t next = chart.find(order[rank], last);
    ASSERT_NE(next, std::string::npos) << rank;
    last = next;
  }
  EXPECT_THAT(chart, HasSubstr("which lie side by side"));
}

TEST(ModelChartTest, BlocksAndStages) {
  Simulation simulation;
  simulation.parts = {{"model.embed<b>", false, 0}, {"llm.0", true, 0}, {"llm.1", true, 1}};
  const std::string chart = blocksChart(simulation, 2);
  EXPECT_THAT(chart, HasSubstr("class=\"grid0 between\""));
  EXPECT_THAT(chart, HasSubstr("class=\"grid1\""));
  EXPECT_THAT(chart, HasSubstr(">llm</text>"));
  EXPECT_THAT(chart, HasSubstr("embed&lt;b&gt;"));
  EXPECT_THAT(chart, Not(HasSubstr("<b>")));
}

TEST(ModelChartTest, ThousandsOfRanks) {
  Candidate candidate;
  candidate.dp = 4096;
  Cluster cluster = twoNodes();
  cluster.nodes = 1024;
  const std::string chart = ranksChart(candidate, cluster);
  EXPECT_THAT(chart, HasSubstr("The first 64 of 1024 nodes"));
  EXPECT_LT(chart.size(), 200u << 10);
}

TEST(ModelChartTest, DevicesThatNobodyUses) {
  Candidate candidate;
  candidate.dp = 3;
  EXPECT_THAT(ranksChart(candidate, twoNodes()), HasSubstr("class=\"unused\""));
}

}  // namespace
}  // namespace oriel::driver
