#!/usr/bin/env python3
"""Holds what `oriel plan` picks against the strategies that people ran for the same training, and against plain ZeRO-3 and HSDP.

    bench/search/against_hand.py --tables DIR --sample --out bench/results/search_against_hand.json
    bench/search/against_hand.py --tables DIR --only 'GPT-6.2B.* 8 A100' --keep inputs

All times are simulated. DIR has train_all.csv (bench/simulator/README.md). Rows of grade A with the same model, sequence, batch,
precision and machines are a problem. For each, `oriel simulate` says what the strategies of its rows take, and what `oriel plan` picked;
both are given the same model, recipe and cluster, with Oriel's own software (no --stack). A strategy that does not fit the devices by the
simulator is listed, and not compared.

    hand     what was run, microbatches as the row says
    zero3    ZeRO-3 over all devices; hsdp: over those of a node, with a copy on each. The fastest that fits of microbatches of 1, 2, 4, ..
             samples, with remat none and full
    ratio    time of the pick over the least of these; worse: above 1 + the search's tolerance

Exit status: 1 if a pick is worse, or what was run or picked could not be simulated. Plain strategies that can't be are listed.
Needs a build of `oriel` (preset dev, or --oriel).
"""

import argparse
import concurrent.futures
import dataclasses
import datetime
import json
import math
import os
import pathlib
import platform
import re
import statistics
import sys
import tempfile
import time

import decoder_onnx
import hand_problems
import replay  # bench/simulator, which hand_problems put on the path

TOLERANCE = 0.02  # SearchOptions::structureTolerance: of those about as fast, the search takes the simplest
TIMEOUT = 1200
FAMILIES = ("hand", "zero3", "hsdp")
FILES = ["model.onnxtxt", "--recipe", "recipe.yaml", "--cluster", "cluster.yaml"]


@dataclasses.dataclass
class Outcome:
    """Of a problem."""

    problem: hand_problems.Problem
    plain: dict = dataclasses.field(default_factory=dict)  # {zero3, hsdp}: the fastest Strategy that fits, or none
    pick: hand_problems.Strategy | None = None
    search_s: float = math.nan
    counts: dict = dataclasses.field(default_factory=dict)  # of the search
    errors: list = dataclasses.field(default_factory=list)
    left_out: list = dataclasses.field(default_factory=list)  # plain strategies that Oriel can't simulate, and why

    def best(self, family: str) -> hand_problems.Strategy | None:
        strategies = self.problem.hand if family == "hand" else [self.plain[family]] if self.plain.get(family) else []
        return min((strategy for strategy in strategies if strategy.fits), key=lambda strategy: strategy.seconds, default=None)

    def ratio(self, family: str) -> float | None:
        """Of the pick; infinite if there is none though something fits."""
        other = self.best(family)
        if other is None:
            return None
        return self.pick.seconds / other.seconds if self.pick and self.pick.fits else math.inf

    def is_compared(self) -> bool:
        return any(self.best(family) for family in FAMILIES)

    def is_worse(self) -> bool:
        return any((self.ratio(family) or 0) > 1 + TOLERANCE for family in FAMILIES)


class Bench:
    """A problem's files, and what `oriel` says of them."""

    def __init__(self, oriel: pathlib.Path, problem: hand_problems.Problem, folder: pathlib.Path):
        self.oriel, self.problem, self.folder = oriel, problem, folder
        self.outcome = Outcome(problem)

    def run(self) -> Outcome:
        self.folder.mkdir(parents=True, exist_ok=True)
        texts = {"model.onnxtxt": decoder_onnx.model_text(self.problem.figures), "recipe.yaml": self.problem.recipe,
                 "cluster.yaml": self.problem.cluster}
        for name, text in texts.items():
            (self.folder / name).write_text(text)
        for number, strategy in enumerate(self.problem.hand):
            self.simulate(strategy, f"hand-{number}")
            if strategy.reason:
                self.outcome.errors.append(f"{strategy.rows[0]}: {strategy.reason}")
        for family in ("zero3", "hsdp"):
            self.outcome.plain[family] = self.fastest_plain(family)
        self.search()
        return self.outcome

    def simulate(self, strategy: hand_problems.Strategy, name: str) -> None:
        (self.folder / f"{name}.yaml").write_text(strategy.text)
        try:
            found = replay.figures_of(replay.ask([str(self.oriel), "simulate", *FILES, "--strategy", f"{name}.yaml", "--json"],
                                                 self.folder, TIMEOUT))
        except replay.Failure as failure:
            strategy.reason = str(failure)
            return
        strategy.seconds, strategy.memory = found["seconds"], found["memory"]
        strategy.fits = strategy.memory <= self.problem.memory()

    def fastest_plain(self, family: str) -> hand_problems.Strategy | None:
        """Larger microbatches until none fits."""
        found, micro, some_fit = [], 1, True
        while some_fit:
            some_fit = False
            for remat in ("none", "full"):
                text = hand_problems.plain(self.problem, family == "hsdp", micro, remat)
                if text is None:
                    continue
                strategy = hand_problems.Strategy(text)
                self.simulate(strategy, f"{family}-{micro}-{remat}")
                if strategy.reason:
                    self.outcome.left_out.append(f"{family}, {micro} samples at a time, remat {remat}: {strategy.reason}")
                some_fit |= strategy.fits
                found.append(strategy)
            micro *= 2
        return min((strategy for strategy in found if strategy.fits), key=lambda strategy: strategy.seconds, default=None)

    def search(self) -> None:
        command = [str(self.oriel), "plan", *FILES, "--top", "1", "--json", "-o", "pick.yaml"]
        try:
            said = replay.ask(command, self.folder, TIMEOUT)
        except replay.Failure as failure:
            if "nothing fits" not in str(failure):
                self.outcome.errors.append(str(failure))
            return
        self.outcome.search_s = said["seconds"]
        self.outcome.counts = {key: said[key] for key in ("candidates", "simulated")}
        # As the others, and not as the search itself says.
        pick = hand_problems.Strategy((self.folder / "pick.yaml").read_text())
        self.simulate(pick, "pick")
        self.outcome.pick = pick
        if pick.reason:
            self.outcome.errors.append(f"the pick: {pick.reason}")
        elif not pick.fits:
            self.outcome.errors.append("the pick does not fit")


def line(strategy: hand_problems.Strategy | None) -> dict | None:
    """As JSON."""
    if strategy is None:
        return None
    found = {"strategy": strategy.text, "fits": strategy.fits}
    if strategy.rows:
        found["rows"] = strategy.rows
    if strategy.reason:
        found["reason"] = strategy.reason
    if strategy.seconds is not None:
        found.update(seconds=float(f"{strategy.seconds:.5g}"), gib=round(strategy.memory / 2**30, 2))
    return found


def as_json(outcome: Outcome) -> dict:
    problem = outcome.problem

    def number(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")
    return {"problem": problem.name, "tables": problem.tables, "parameters": problem.figures.parameters(), "devices": problem.devices,
            "hand": [line(strategy) for strategy in problem.hand], "zero3": line(outcome.best("zero3")), "hsdp": line(outcome.best("hsdp")),
            "pick": line(outcome.pick), "search_s": number(outcome.search_s), **outcome.counts,
            "ratio": {family: number(outcome.ratio(family)) for family in FAMILIES}, "worse": outcome.is_worse(), "errors": outcome.errors,
            "left_out": outcome.left_out}


def in_a_line(text: str) -> str:
    """A strategy's YAML."""
    return re.sub(r'[{}" ]', "", text.strip()).replace("\n", " ")


def report(outcome: Outcome) -> str:
    fitting = [strategy for strategy in outcome.problem.hand if strategy.fits]
    words = [f"{outcome.problem.name}: {len(fitting)} of {len(outcome.problem.hand)} hand strategies fit"]
    for family in FAMILIES:
        best, ratio = outcome.best(family), outcome.ratio(family)
        words.append(f"{family} -" if best is None else f"{family} {best.seconds:.4g} s ({ratio:.3f})")
    pick = outcome.pick
    words.append(f"pick {pick.seconds:.4g} s by {in_a_line(pick.text)}" if pick and pick.seconds else "no pick")
    words.append(f"searched in {outcome.search_s:.1f} s")
    lines = ["  ".join(words)]
    if outcome.is_worse():
        best = min(filter(None, map(outcome.best, FAMILIES)), key=lambda strategy: strategy.seconds)
        lines.append(f"  WORSE than {in_a_line(best.text)}")
    return "\n".join(lines + [f"  left out: {reason}" for reason in outcome.left_out] + [f"  error: {error}" for error in outcome.errors])


def summary(outcomes: list) -> dict:
    ratios = {family: [outcome.ratio(family) for outcome in outcomes if outcome.best(family)] for family in FAMILIES}
    found = {"problems": len(outcomes), "compared": sum(outcome.is_compared() for outcome in outcomes),
             "hand_strategies": sum(len(outcome.problem.hand) for outcome in outcomes),
             "hand_strategies_that_fit": sum(strategy.fits for outcome in outcomes for strategy in outcome.problem.hand),
             "worse": sum(outcome.is_worse() for outcome in outcomes), "errors": sum(len(outcome.errors) for outcome in outcomes),
             "left_out": sum(len(outcome.left_out) for outcome in outcomes)}
    for family, values in ratios.items():
        finite = [value for value in values if math.isfinite(value)]
        if finite:
            found[family] = {"problems": len(values), "largest_ratio": float(f"{max(finite):.4g}"),
                             "geometric_mean_ratio": float(f"{statistics.geometric_mean(finite):.4g}")}
    return found


def chosen(problems: list, options: argparse.Namespace) -> list:
    if options.sample:
        problems = hand_problems.sample(problems)
    if options.only:
        problems = [problem for problem in problems if any(options.only.search(name) for name in (problem.name, *problem.tables))]
    if not problems:
        raise replay.Failure("no problem is left: --only is searched in names as 'GPT-6.2B, 1024 x 144, 8 A100-SXM-80GB', and in tables'")
    return problems[:options.first]


def pattern(text: str) -> re.Pattern:
    """Of an argument."""
    try:
        return re.compile(text)
    except re.error as wrong:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {wrong}; put \\ before what is meant as itself") from wrong


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--sample", action="store_true", help="of each table three problems: most strategies, fewest and most devices")
    parser.add_argument("--only", type=pattern, metavar="REGEX", help="problems in whose names, or in whose tables', this is found")
    parser.add_argument("--first", type=int, metavar="N", help="of what is left, the first N")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="problems at a time (default: 2)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="leave the inputs there, a folder for each problem")
    parser.add_argument("--oriel", type=pathlib.Path, default=replay.default_oriel(), metavar="FILE")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="everything as JSON")
    found = parser.parse_args()
    if found.jobs < 1 or (found.first or 1) < 1:
        parser.error("--jobs and --first must be at least 1")
    return found


def compare(options: argparse.Namespace) -> int:
    start = time.monotonic()
    if not options.oriel.is_file():
        raise replay.Failure(f"{options.oriel} does not exist; build the preset dev, or say --oriel FILE")
    everything, refused = hand_problems.gather(replay.read_tables(options.tables))
    problems = chosen(everything, options)
    without = sum(map(len, refused.values()))
    print(f"{len(problems)} of {len(everything)} problems; {without} rows have strategies that Oriel has not", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or pathlib.Path(scratch)).resolve()
        benches = [Bench(options.oriel.resolve(), problem, folder / str(number)) for number, problem in enumerate(problems)]
        outcomes = []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for outcome in pool.map(Bench.run, benches):
                print(report(outcome), flush=True)
                outcomes.append(outcome)
    found = summary(outcomes)
    if options.out:
        result = {"date": datetime.date.today().isoformat(), "cpu": platform.processor() or platform.machine(),
                  "cores": len(os.sched_getaffinity(0)), "jobs": options.jobs, "seconds": round(time.monotonic() - start),
                  "tolerance": TOLERANCE, "summary": found, "problems": [as_json(outcome) for outcome in outcomes]}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    for family in FAMILIES:
        if family in found:
            print(f"{family}: {' '.join(f'{key}={value}' for key, value in found[family].items())}")
    print(f"{found['hand_strategies_that_fit']} of {found['hand_strategies']} hand strategies fit; {time.monotonic() - start:.0f} s")
    counts = [f"worse in {found['worse']} of {found['compared']} problems", f"{found['errors']} errors"]
    print(", ".join(counts + [f"{found['left_out']} plain strategies left out"]))
    return 1 if found["worse"] or found["errors"] else 0


def main() -> int:
    try:
        return compare(arguments())
    except (replay.Failure, OSError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
