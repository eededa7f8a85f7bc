#!/usr/bin/env python3
"""The bubble of each pipeline schedule at run time against its formula, as JSON.

    bench/pipeline_bubble.py --out bench/results/pipeline_bubble.json

Compiles llava_tiny for several grids of one rank and each schedule, trains it with timed waits in place
of compute (a forward waits --ms, a backward twice as long, each half of one as long as a forward), and
reads the timeline.

    measured    median over the steps but the first of 1 - ideal / makespan: the ideal is the time that
                the busiest rank works, the makespan goes from the first forward to the end of the last run
    formula     (P-1) / (v m + P-1) for P grids, v stages on each and m microbatches;
                (P-1) / (3 m + P-1) for zb-h1
    step_ms     median makespan
    error       |measured - formula|

Exits with 1 if an error is above --limit. Needs the build (preset dev), numpy, and no other work on the
machine.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import bench_report

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from oriel_testing import DATA, GOLDEN, MODEL, command  # noqa: E402
from pipeline_trace import SCHEDULES, bubble_formula, equal_waits, timed_steps  # noqa: E402


def measure(schedule: str, grids: int, microbatches: int, ms: float, steps: int,
            folder: pathlib.Path) -> dict:
    stages = grids * (2 if schedule == "interleaved" else 1)
    recipe = folder / "recipe.yaml"
    recipe.write_text((GOLDEN / "recipe_sgd.yaml").read_text().replace(
        "batch: {global: 8, micro: 2}", f"batch: {{global: {microbatches}, micro: 1}}"))
    plan = folder / f"{schedule}_{grids}.oplan"
    subprocess.run(command("oriel", "compile", MODEL, "--recipe", recipe, "--stages", stages, "--schedule",
                           schedule, "-o", plan), check=True, stdout=subprocess.DEVNULL)
    found = timed_steps(plan, DATA, grids, equal_waits(schedule, ms), steps)
    measured = statistics.median(step.bubble for step in found)
    formula = bubble_formula(schedule, grids, microbatches, stages)
    return {"schedule": schedule, "grids": grids, "stages": stages, "microbatches": microbatches,
            "step_ms": round(statistics.median(step.makespan_ms for step in found), 3),
            "measured": round(measured, 5), "formula": round(formula, 5),
            "error": round(abs(measured - formula), 5)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--ms", type=float, default=20, help="the wait of a forward")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--limit", type=float, default=0.01)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()

    report = {
        **bench_report.machine(),
        "load_before": os.getloadavg()[0],
        "forward_ms": args.ms,
        "steps": args.steps,
        "limit": args.limit,
    }
    with tempfile.TemporaryDirectory() as folder:
        report["bubbles"] = [
            measure(schedule, grids, args.microbatches, args.ms, args.steps, pathlib.Path(folder))
            for grids in args.grids for schedule in SCHEDULES]
    bench_report.write(report, args.out)
    return int(any(not row["error"] <= args.limit for row in report["bubbles"]))


if __name__ == "__main__":
    sys.exit(main())
