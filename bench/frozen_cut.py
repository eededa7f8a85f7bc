#!/usr/bin/env python3
"""Cuts that know what is frozen against cuts that balance parameters, predicted and measured, as JSON.

    bench/frozen_cut.py --out bench/results/frozen_cut.json

Compiles models with a frozen vision encoder for several grids of one rank, once with cuts by predicted time
(what is frozen counts its forward alone) and once with as many parameters in each stage (`balance:
parameters`). Each plan is then trained with timed waits in place of compute: proportional to the predicted
times of its segments, by the same factor for both plans: --ms for the longest of them all.

    predicted_ms    time of a step's microbatches by `oriel inspect --schedule`, times the factor
    measured_ms     median over the steps but the first, from the timeline
    stages          what is in each stage
    ratio           that of the parameter-balanced cut over that of the other: above 1, knowing pays

Needs the build (preset dev), numpy, and no other work on the machine.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import bench_report

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from oriel_testing import DATA, GOLDEN, command  # noqa: E402
from pipeline_trace import timed_steps  # noqa: E402

MODELS = ("llava_tiny", "llava_deep")
BALANCES = ("time", "parameters")


def run(*arguments) -> str:
    return subprocess.run(command(*arguments), check=True, stdout=subprocess.PIPE, text=True).stdout


def segments_of(plan: pathlib.Path) -> dict[str, float]:
    """The predicted ms of a run of each segment of a microbatch."""
    inspected = json.loads(run("oriel", "inspect", plan, "--json"))
    return {segment["name"]: segment["predicted_ms"] for program in inspected["programs"]
            for segment in program["segments"] if segment["name"].startswith(("forward", "backward"))}


def compare(model: str, grids: int, args, folder: pathlib.Path) -> dict:
    recipe = folder / "recipe.yaml"
    recipe.write_text((GOLDEN / "recipe_sgd.yaml").read_text()
                      .replace("frozen: []", 'frozen: ["*vision_tower*"]')
                      .replace('trainable: ["*"], ', "")
                      .replace("{global: 8, micro: 2}", f"{{global: {args.microbatches}, micro: 1}}"))
    plans = {}
    for balance in BALANCES:
        plans[balance] = folder / f"{model}_{grids}_{balance}.oplan"
        run("oriel", "compile", ROOT / "models" / model / "model.onnx", "--recipe", recipe, "--stages", grids,
            "--schedule", args.schedule, "--balance", balance, "-o", plans[balance])
    predicted = {balance: segments_of(plan) for balance, plan in plans.items()}
    factor = args.ms / max(ms for of in predicted.values() for ms in of.values())
    row = {"model": model, "grids": grids, "microbatches": args.microbatches, "schedule": args.schedule}
    for balance, plan in plans.items():
        schedule = json.loads(run("oriel", "inspect", plan, "--schedule", "--json"))
        stages = [program["stages"] for program in json.loads(run("oriel", "inspect", plan, "--json"))["programs"]]
        waits = {segment: ms * factor for segment, ms in predicted[balance].items()}
        steps = timed_steps(plan, DATA, grids, waits, args.steps)
        row[balance] = {
            "stages": [stage for program in stages for stage in program],
            "predicted_ms": round(schedule["microbatches_ms"] * factor, 1),
            "measured_ms": round(statistics.median(step.makespan_ms for step in steps), 1)}
    for kind in ("predicted", "measured"):
        row[f"{kind}_ratio"] = round(row["parameters"][f"{kind}_ms"] / row["time"][f"{kind}_ms"], 4)
    return row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--grids", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--schedule", default="1f1b")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--ms", type=float, default=200, help="the longest wait")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()

    report = {
        **bench_report.machine(),
        "load_before": os.getloadavg()[0],
        "longest_wait_ms": args.ms,
        "steps": args.steps,
    }
    with tempfile.TemporaryDirectory() as folder:
        report["cuts"] = [compare(model, grids, args, pathlib.Path(folder))
                          for model in args.models for grids in args.grids]
    bench_report.write(report, args.out)


if __name__ == "__main__":
    main()
