#!/usr/bin/env python3
"""Time and peak memory of the compiler on full-size models without weights, as JSON.

    bench/compile_time.py --out bench/results/compile_time.json
    models/skeletons/build.py llama_2_70b --out build/skeletons
    bench/compile_time.py models/skeletons/llava_1_5_7b build/skeletons/llama_2_70b

A skeleton is a folder with model.onnx; its recipe is beside it or in models/skeletons.

    seconds   median wall time of a process that reads the model, up to and with a phase:
              specialize, raise, emit (the whole plan, for one rank)
    peak_mb   largest peak resident memory of the rounds, MiB

Needs the build (preset dev). Run it on an idle machine.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SKELETONS = ROOT / "models" / "skeletons"
PHASES = ("specialize", "raise", "emit")


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


def measure_skeleton(folder: pathlib.Path, oriel: pathlib.Path, rounds: int) -> dict:
    recipe = folder / "recipe.yaml"
    if not recipe.exists():
        recipe = SKELETONS / folder.name / "recipe.yaml"
    results = {"onnx_mb": round((folder / "model.onnx").stat().st_size / 2**20, 2)}
    with tempfile.TemporaryDirectory() as temporary:
        for phase in PHASES:
            command = [oriel, "compile", folder / "model.onnx", "--recipe", recipe,
                       "-o", pathlib.Path(temporary) / "plan.oplan"]
            if phase != PHASES[-1]:
                # Into a file: printing is no part of the phase, but can't be turned off.
                command += [f"--stop-after={phase}", "--dump-dir", temporary]
            seconds, peaks = zip(*(measure(command) for _ in range(rounds)))
            results[phase] = {"seconds": round(statistics.median(seconds), 3),
                              "peak_mb": round(max(peaks), 1)}
    return results


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skeletons", nargs="*", type=pathlib.Path, metavar="DIR",
                        help="default: those that are checked in")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()

    folders = args.skeletons or sorted(path.parent for path in SKELETONS.glob("*/model.onnx"))
    report = {
        "date": datetime.date.today().isoformat(),
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "rounds": args.rounds,
        "load_before": os.getloadavg()[0],
        "skeletons": {folder.name: measure_skeleton(folder, args.build / "bin" / "oriel",
                                                    args.rounds) for folder in folders},
    }
    text = json.dumps(report, indent=2) + "\n"
    if args.out:
        args.out.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
