"""Steps of a pipeline as `oriel-run --trace` saw them, with timed waits in place of compute."""

import dataclasses
import json
import pathlib
import subprocess

from oriel_testing import ENVIRONMENT, command

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1")


def bubble_formula(schedule: str, grids: int, microbatches: int, stages: int) -> float:
    """Of equal stages, and equal forwards, input halves and weight halves (Narayanan et al. 2021,
    section 2.2, as a part of the step; Qi et al. 2024, section 2.3)."""
    runs = {"zb-h1": 3 * microbatches}.get(schedule, stages // grids * microbatches)
    return (grids - 1) / (runs + grids - 1)


def equal_waits(schedule: str, ms: float) -> dict[str, float]:
    """The waits of a forward and of a backward, or of its halves, by kind of segment."""
    if schedule == "zb-h1":
        return {"forward": ms, "backward_input": ms, "backward_weight": ms}
    return {"forward": ms, "backward": 2 * ms}


@dataclasses.dataclass(frozen=True)
class Step:
    makespan_ms: float  # of the runs of microbatches: from the first that works to the end of the last
    busy_ms: list[float]  # of each rank: its runs without what they wait for others

    @property
    def bubble(self) -> float:
        """1 - ideal / makespan, the ideal being the time of the busiest rank: as in
        passes/strategy/timeline.h."""
        return 1 - max(self.busy_ms) / self.makespan_ms


def read_steps(trace: pathlib.Path) -> list[Step]:
    """The steps of a timeline, in order."""
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    runs, waits = {}, {}
    for event in events:
        args = event["args"]
        key = (args["step"], args["rank"], args["segment"], args["microbatch"])
        if args["segment"] != "update":
            (runs if event["cat"] == "segment" else waits).setdefault(key, []).append(event)
    begins, ends, busy = {}, {}, {}
    for (step, rank, *rest), (run,) in runs.items():
        within = waits.get((step, rank, *rest), [])
        # A run waits for what it needs before it works.
        begin = max([run["ts"], *(wait["ts"] + wait["dur"] for wait in within)])
        begins.setdefault(step, []).append(begin)
        ends.setdefault(step, []).append(run["ts"] + run["dur"])
        ranks = busy.setdefault(step, {})
        ranks[rank] = ranks.get(rank, 0) + run["dur"] - sum(wait["dur"] for wait in within)
    return [Step((max(ends[step]) - min(begins[step])) / 1e3,
                 [busy[step][rank] / 1e3 for rank in sorted(busy[step])]) for step in sorted(busy)]


def timed_steps(plan: pathlib.Path, data: pathlib.Path, ranks: int, waits: dict[str, float],
                steps: int) -> list[Step]:
    """Trains with `waits` (ms by segment, or kind of it) in place of compute, and gives the steps but
    the first, which starts everything."""
    trace = plan.with_suffix(".trace.json")
    waits = ",".join(f"{segment}={ms:g}" for segment, ms in waits.items())
    result = subprocess.run(
        command("oriel-run", plan, "--data", data, "-n", ranks, "--comm", "in_process", "--no-shuffle",
                "--steps", steps + 1, "--replace-compute", waits, "--trace", trace,
                "--trace-steps", f"2-{steps + 1}"),
        capture_output=True, text=True, env=ENVIRONMENT)
    if result.returncode != 0:
        raise RuntimeError(f"oriel-run failed:\n{result.stdout}{result.stderr}")
    return read_steps(trace)
