// What a plan holds, for people: `oriel inspect`, and the report of `oriel compile`.
#ifndef ORIEL_DRIVER_PLAN_TEXT_H_
#define ORIEL_DRIVER_PLAN_TEXT_H_

#include <cstdint>
#include <string>

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_stats.h"

namespace oriel::driver {

// "17 bytes", "1.5 MiB"
std::string bytesText(int64_t bytes);
// "rank 3", "ranks 4 to 7"
std::string ranksText(int64_t first, int64_t count);
// "1", "12,345", "1.27 M"
std::string countText(int64_t count);
// "12.50 us", "6.250 ms"
std::string timeText(double ms);
// "global batch 64 = micro batch 8 x 4 ranks x 2 microbatches"
std::string batchText(const plan::Training& training);

// All of them are made of a verified plan, end with a newline, and indent what belongs under a
// heading.
std::string provenanceText(const plan::Plan& plan);
std::string trainingText(const plan::Plan& plan);
std::string parametersText(const plan::Plan& plan, const runtime::PlanStats& stats);
std::string memoryText(const runtime::ProgramStats& program);
// What is in use when most is, and what microbatches in flight keep.
std::string memoryPeakText(const runtime::ProgramStats& program);
// `kernels`: also how often a segment launches each kernel.
std::string segmentsText(const runtime::ProgramStats& program, bool kernels);
// What a rank sends per step over each mesh axis; empty if nothing.
std::string volumeText(const runtime::ProgramStats& program);
// Of several programs one line each, to compare them; empty for a single one.
std::string programsText(const runtime::PlanStats& stats);
// "grid 1      ranks 4 to 7: stage 1 (llm.0-15)", the heading of one of several programs.
std::string programHeading(const runtime::ProgramStats& program);
// Launches of generated kernels, and what they took the place of; empty where there are none.
std::string generatedText(const plan::Plan& plan);
// What grids send to each other per step; empty where there are no channels.
std::string transfersText(const runtime::PlanStats& stats);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PLAN_TEXT_H_
