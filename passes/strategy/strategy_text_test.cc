#include "passes/strategy/strategy_text.h"

#include <string>

#include "gtest/gtest.h"
#include "passes/strategy/strategy_reader.h"

namespace oriel {
namespace {

TEST(StrategyTextTest, IsReadAsTheStrategy) {
  for (const char* text : {
           "mesh: {dp: 2, tp: 4}",
           "mesh: {fsdp: 8}\nzero: 3\nremat: full\noverlap: false",
           "mesh: {dp: 8}\nzero: 2\nhsdp: 4\nmemory: 16 GiB\noverlap: {bucket: 25 MiB}",
           "mesh: {dp: 1, tp: 2}\nsequence_parallel: true\npadding: true\nstages: 4\nschedule: "
           "interleaved\n"
           "interleave: 2\nmicrobatches: 8\nbalance: parameters\nplacement: dp_outermost",
           "stages: [{blocks: vision, mesh: {dp: 4}}, {blocks: [llm.0, llm.1], mesh: {tp: 4}}]",
           "mesh: {dp: 4}\nstages: [a.0, [a.1, \"b\"]]\nschedule: zb-h1",
           "mesh: {dp: 2, tp: 2}\n"
           "modules: {vision: {parameters: [\"v.*\", \"w\"], mesh: {dp: 4}}}\n"
           "shardings: [{parameters: \"x*\", tp: none}, {parameters: y, tp: 1}]",
       }) {
    const absl::StatusOr<Strategy> strategy = parseStrategy(text, "given");
    ASSERT_TRUE(strategy.ok()) << strategy.status();
    const absl::StatusOr<Strategy> again = parseStrategy(strategyText(*strategy), "written");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << strategyText(*strategy);
    EXPECT_TRUE(*again == *strategy) << text << "\nbecame\n" << strategyText(*strategy);
  }
}

TEST(StrategyTextTest, HasNoKeysOfDefaults) {
  EXPECT_EQ(strategyText(Strategy()), "mesh: {dp: 1}\n");
}

}  // namespace
}  // namespace oriel
