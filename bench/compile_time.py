#!/usr/bin/env python3
"""Time and peak memory of the compiler on full-size models without weights, as JSON.

    bench/compile_time.py --out bench/results/compile_time.json
    models/skeletons/build.py llama_2_70b --out build/skeletons
    bench/compile_time.py models/skeletons/llava_1_5_7b build/skeletons/llama_2_70b
    bench/compile_time.py build/skeletons/llama_2_70b --mesh dp=2,fsdp=2,tp=2 --mesh dp=16,fsdp=4,tp=8

A skeleton is a folder with model.onnx; its recipe is beside it or in models/skeletons.

    seconds   median wall time of a process that reads the model, up to and with a phase:
              specialize, raise, emit (the whole plan, for one rank)
    peak_mb   largest peak resident memory of the rounds, MiB
    meshes    for each --mesh, with ZeRO-3 and sequence parallelism: up to and with train, which knows
              no ranks yet, partition and emit; partitioning takes the time between the first two
    plan_mb   size of the plan, MiB

Needs the build (preset dev). Run it on an idle machine.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import bench_report

ROOT = pathlib.Path(__file__).resolve().parents[1]
SKELETONS = ROOT / "models" / "skeletons"
PHASES = ("specialize", "raise", "emit")
MESH_PHASES = ("train", "partition", "emit")


def measure(command: list) -> tuple[float, float]:
    """Wall seconds and peak resident MiB of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"error: {' '.join(process.args)} failed")
    return seconds, usage.ru_maxrss / 1024


def measure_phases(command: list, phases: tuple[str, ...], rounds: int) -> dict:
    """The last phase is the whole compilation."""
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        plan = pathlib.Path(temporary) / "plan.oplan"
        for phase in phases:
            # Into a file: printing is no part of the phase, but can't be turned off.
            stop = [] if phase == phases[-1] else [f"--stop-after={phase}", "--dump-dir", temporary]
            seconds, peaks = zip(*(measure([*command, "-o", plan, *stop]) for _ in range(rounds)))
            results[phase] = {"seconds": round(statistics.median(seconds), 3),
                              "peak_mb": round(max(peaks), 1)}
        results["plan_mb"] = round(plan.stat().st_size / 2**20, 3)
    return results


def measure_skeleton(folder: pathlib.Path, oriel: pathlib.Path, rounds: int,
                     meshes: list[str]) -> dict:
    recipe = folder / "recipe.yaml"
    if not recipe.exists():
        recipe = SKELETONS / folder.name / "recipe.yaml"
    results = {"onnx_mb": round((folder / "model.onnx").stat().st_size / 2**20, 2)}
    command = [oriel, "compile", folder / "model.onnx", "--recipe", recipe]
    results |= measure_phases(command, PHASES, rounds)
    for mesh in meshes:
        options = ["--mesh", mesh, "--zero", "3", "--sp"]
        results.setdefault("meshes", {})[mesh] = measure_phases(command + options, MESH_PHASES, rounds)
    return results


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skeletons", nargs="*", type=pathlib.Path, metavar="DIR",
                        help="default: those that are checked in")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--mesh", action="append", default=[], help="also for these ranks; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()

    folders = args.skeletons or sorted(path.parent for path in SKELETONS.glob("*/model.onnx"))
    report = {
        **bench_report.machine(),
        "rounds": args.rounds,
        "load_before": os.getloadavg()[0],
        "skeletons": {folder.name: measure_skeleton(folder, args.build / "bin" / "oriel",
                                                    args.rounds, args.mesh) for folder in folders},
    }
    bench_report.write(report, args.out)


if __name__ == "__main__":
    main()
