#!/usr/bin/env python3
"""Lets `oriel plan` search the strategy of the ten cases, and holds each pick against what the guides would accept. README.md.

    models/skeletons/build.py gpt2_355m clip_vit_l_14 llama_2_70b vlm_100b --out build/skeletons    # once; needs PyTorch
    bench/search/run_cases.py --out bench/results/search_cases.json

A case is accepted if the picks for all of its clusters are. Exit status: 0 if that is so for at least nine in ten of those that were run.

    step_ms    of the pick, as `oriel plan` predicts it; mfu likewise
    search_s   what `oriel plan` says the search took
    wall_s     its process, start to end
    peak_mb    largest resident memory of that process, MiB
"""

import argparse
import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import tempfile
import time

import yaml

import check_cases
import strategy_facts

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENOUGH = 0.9
MICRO = 1  # of the recipes: what a strategy without `microbatches` has


class Unusable(Exception):
    """A case can't be run; the text says why and what to do."""


def model_file(case, built):
    """The case's graph: checked in, or what build.py made in the folder `built`."""
    skeleton = ROOT / case["model"]["skeleton"]
    places = [skeleton / "model.onnx", built / skeleton.name / "model.onnx"]
    for place in places:
        if place.is_file():
            return place
    raise Unusable(f"{case['name']}: no {places[1]}; make it by `models/skeletons/build.py {skeleton.name} --out {built}`")


def recipe_of(case, text):
    """The skeleton's recipe (YAML text) with what the case says in its place, as a mapping."""
    recipe = yaml.safe_load(text)
    bind = recipe["model"]["bind"]
    if "sequence" in bind:  # else the graph has the length
        bind["sequence"] = case["sequence"]
    per_sample = recipe.get("images", {}).get("per_sample", case["images"])
    if per_sample != case["images"]:
        raise Unusable(f"{case['name']} has {case['images']} images per sample, its recipe {per_sample}")
    recipe["parameters"] = {"trainable": case["trainable"], "frozen": case["frozen"]}
    recipe["batch"] = {"global": case["batch"], "micro": MICRO}
    recipe["precision"] = case["precision"]
    return recipe


def describe(variant):
    """An entry of `clusters` in a few letters: a100-80 4x8, with * where links differ from the preset's."""
    cluster = check_cases.cluster_of(variant)
    return f"{variant['preset']} {cluster['nodes']}x{cluster['devices_per_node']}{'*' if 'links' in variant else ''}"


@dataclasses.dataclass
class Run:
    """One case on one of its clusters."""

    case: dict
    variant: dict
    folder: pathlib.Path
    model: pathlib.Path
    facts: dict | None = None  # of the pick
    reasons: list = dataclasses.field(default_factory=list)  # as check_cases.check has them
    search_s: float = math.nan
    step_ms: float = math.nan
    mfu: float = math.nan
    wall_s: float = math.nan
    peak_mb: float = math.nan

    def command(self, oriel):
        return [str(oriel), "plan", str(self.model), "--recipe", str(self.folder / "recipe.yaml"), "--cluster",
                str(self.folder / "cluster.yaml"), "--json", "-o", str(self.folder / "strategy.yaml")]

    def prepare(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "strategy.yaml").unlink(missing_ok=True)
        recipe = ROOT / self.case["model"].get("recipe", f"{self.case['model']['skeleton']}/recipe.yaml")
        texts = {"recipe": recipe_of(self.case, recipe.read_text()), "cluster": check_cases.cluster_of(self.variant)}
        for name, content in texts.items():
            (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))

    def execute(self, oriel):
        self.prepare()
        command = self.command(oriel)
        started = time.monotonic()
        with open(self.folder / "plan.json", "wb") as out, open(self.folder / "stderr.txt", "wb") as err:
            process = subprocess.Popen(command, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.wall_s, self.peak_mb = time.monotonic() - started, usage.ru_maxrss / 1024
        if process.returncode:
            said = (self.folder / "stderr.txt").read_text(errors="replace").strip()
            self.reasons = [(f"exit status {process.returncode} of {shlex.join(command)}: {said}", None)]
            return
        self.read()

    def read(self):
        """Holds what was written against the case."""
        report = json.loads((self.folder / "plan.json").read_text())
        best = report["strategies"][0]
        self.search_s, self.step_ms, self.mfu = report["seconds"], best["step_seconds"] * 1e3, best["mfu"]
        strategy = yaml.safe_load((self.folder / "strategy.yaml").read_text())
        alone = dict(self.case, clusters=[self.variant])
        try:
            self.facts = check_cases.facts_of(strategy, alone, self.variant, MICRO)
        except strategy_facts.Refused:
            pass  # check says so
        self.reasons = check_cases.check(strategy, alone, MICRO)


def row(run):
    facts = run.facts or {}
    pick = [str(facts.get(name, "-")) for name in ("tp", "pp", "zero", "micro", "remat")]
    pick.append({True: "yes", False: "no"}.get(facts.get("sequence_parallel"), "-"))
    figures = [f"{run.step_ms:.1f}", f"{run.mfu:.3f}", f"{run.search_s:.2f}", f"{run.wall_s:.2f}", f"{run.peak_mb:.0f}"]
    return [run.case["name"], describe(run.variant), *pick, "refused" if run.reasons else "accepted", *figures]


HEADER = ["case", "cluster", "tp", "pp", "zero", "micro", "remat", "sp", "verdict", "step_ms", "mfu", "search_s", "wall_s", "peak_mb"]


def table(runs):
    rows = [HEADER] + [row(run) for run in runs]
    widths = [max(len(line[i]) for line in rows) for i in range(len(HEADER))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in rows)


def verdicts(runs):
    """{case name: whether all of its picks are accepted}."""
    accepted = {}
    for run in runs:
        accepted[run.case["name"]] = accepted.get(run.case["name"], True) and not run.reasons
    return accepted


def summary(runs):
    """(the last line, the exit status)."""
    accepted = verdicts(runs)
    count = sum(accepted.values())
    return f"accepted {count} of {len(accepted)} cases", 0 if count >= ENOUGH * len(accepted) else 1


def as_json(runs):
    def number(value):
        return None if math.isnan(value) else float(f"{value:.4g}")
    return [{"case": run.case["name"], "cluster": describe(run.variant), "accepted": not run.reasons, "pick": run.facts,
             "reasons": [text for text, _ in run.reasons],
             **{name: number(getattr(run, name)) for name in ("step_ms", "mfu", "search_s", "wall_s", "peak_mb")}} for run in runs]


def plan_runs(cases, names, folder, built):
    runs, missing = [], []
    for name in names:
        case = cases[name]
        try:
            model = model_file(case, built)
        except Unusable as error:
            missing.append(str(error))
            continue
        runs += [Run(case, variant, folder / f"{name}-{number}", model) for number, variant in enumerate(case["clusters"])]
    if missing:
        raise Unusable("\n".join(missing))
    return runs


def main():
    cases, sources = check_cases.load()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(cases), metavar="CASE", default=list(cases), help="these cases")
    parser.add_argument("--skeletons", type=pathlib.Path, metavar="DIR", default=ROOT / "build" / "skeletons",
                        help="where build.py --out put the graphs that are not checked in (default: build/skeletons)")
    parser.add_argument("--oriel", type=pathlib.Path, metavar="BIN", default=ROOT / "build" / "dev" / "bin" / "oriel")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="recipes, clusters, strategies and JSON of each run")
    parser.add_argument("--jobs", type=int, default=1, help="searches at a time; more than 1 makes their seconds say little")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="the table as JSON")
    args = parser.parse_args()
    if not os.access(args.oriel, os.X_OK):
        parser.error(f"no program {args.oriel}: build it (preset dev), or say where it is with --oriel")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            runs = plan_runs(cases, args.only, args.keep or pathlib.Path(scratch), args.skeletons)
            with concurrent.futures.ThreadPoolExecutor(max(1, args.jobs)) as pool:
                for _ in pool.map(lambda run: run.execute(args.oriel), runs):
                    pass
        except Unusable as error:
            parser.error(str(error))
    print(table(runs))
    for run in runs:
        if run.reasons:
            print(f"\n{run.case['name']} on {describe(run.variant)}")
            check_cases.report(run.reasons, sources)
    line, status = summary(runs)
    if args.out:
        args.out.write_text(json.dumps({"cpu": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0)),
                                        "jobs": args.jobs, "cases": as_json(runs)}, indent=2) + "\n")
    print(line)
    return status


if __name__ == "__main__":
    sys.exit(main())
