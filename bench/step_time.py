#!/usr/bin/env python3
"""Step time and peak memory of Oriel against PyTorch and ONNX Runtime, on the same cores, as JSON.

    bench/step_time.py --out bench/results/step_time.json

Models: llava_tiny (batch 16) and llava_30m (batch 4). Contestants: Oriel with one rank and
with one rank per core, PyTorch eager and torch.compile, and the training artifacts of ONNX
Runtime where it is installed, from Oriel's ONNX file; each at every thread setting given
(an oversubscribed baseline is no baseline), the best of which counts. Rounds are interleaved:
each contestant runs once per round, so that a slow spell of the machine hits all alike. All
train from the same weights on the same batches, and must have the same losses.

    step_ms       median over rounds of the median step of a run
    peak_mb       largest peak resident memory of the run's processes together, MiB
    loss_error    largest relative difference of a step's loss from Oriel's with one rank
    ratio         a baseline's step_ms over Oriel's: above 1, Oriel is faster

Needs the build (preset dev), and tools/setup.sh --python --ort-training. Run it on an idle machine.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import bench_report

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path.home() / ".cache" / "oriel"
VENV = pathlib.Path(os.environ.get("ORIEL_VENV", CACHE / "venv"))
ORT_VENV = pathlib.Path(os.environ.get("ORIEL_ORT_VENV", CACHE / "venv-ort-training"))
RECIPE = """\
model: {{bind: {{batch: micro_batch}}}}
inputs:
  labels: {{dtype: int64, shape: [micro_batch, 64]}}
images: {{per_sample: 1, rows_per_image: 49}}
loss: {{kind: token_cross_entropy, logits: logits, labels: labels}}
optimizer: {{kind: adamw, lr: 1.0e-3, betas: [0.9, 0.95], weight_decay: 0.05, clip_norm: 1.0}}
schedule: {{kind: constant}}
batch: {{global: {batch}, micro: {micro}}}
steps: 100000
"""
BATCHES = {"llava_tiny": 16, "llava_30m": 4}
WARMUP_STEPS = 3  # of the baselines' scripts
# Rounding in another order grows from step to step; a difference in what is computed is larger.
LOSS_TOLERANCE = 1e-3


def peak_memory_mb(process: subprocess.Popen) -> float:
    """Peak resident memory of a process, which is waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024


class Oriel:
    """Plans of one model by number of ranks."""

    def __init__(self, model: str, build: pathlib.Path, folder: pathlib.Path):
        self.model, self.build, self.folder = model, build, folder
        self.batch = BATCHES[model]
        onnx = ROOT / "models" / model / "model.onnx"
        if not onnx.exists():
            onnx = folder / model / "model.onnx"
            subprocess.run([VENV / "bin" / "python", ROOT / "models" / "export.py", model, "--out",
                            onnx.parent], check=True, stdout=subprocess.DEVNULL)
        self.onnx = onnx

    def plan(self, ranks: int) -> pathlib.Path:
        path = self.folder / f"{self.model}_{ranks}.oplan"
        if not path.exists():
            recipe = path.with_suffix(".yaml")
            recipe.write_text(RECIPE.format(batch=self.batch, micro=self.batch // ranks))
            subprocess.run([self.build / "bin" / "oriel", "compile", self.onnx, "--recipe", recipe,
                            "--mesh", f"dp={ranks}", "-o", path], check=True, stdout=subprocess.DEVNULL)
        return path

    def run(self, ranks: int, threads: int, steps: int) -> dict:
        metrics = self.folder / "metrics.jsonl"
        process = subprocess.Popen(
            [self.build / "bin" / "oriel-run", self.plan(ranks), "-n", str(ranks), "--threads",
             str(threads), "--data", ROOT / "models" / "llava_tiny" / "golden" / "data", "--no-shuffle",
             "--steps", str(steps + WARMUP_STEPS), "--metrics", metrics],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        memory = peak_memory_mb(process)
        if process.returncode:
            raise RuntimeError(f"oriel-run failed on {self.model}: run it by hand")
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        times = [line["step_ms"] for line in lines[WARMUP_STEPS:]]
        return {"step_ms": statistics.median(times), "peak_mb": memory,
                "losses": [line["loss"] for line in lines]}


def run_script(command: list) -> dict:
    """A baseline's script, in its own virtualenv."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{command[1]} failed:\n{result.stderr[-2000:]}")
    figures = json.loads(result.stdout.splitlines()[-1])
    return {"step_ms": figures["step_ms"], "peak_mb": figures["peak_rss_mb"], "losses": figures["losses"]}


def run_torch(model: str, mode: str, threads: int, steps: int) -> dict:
    return run_script([VENV / "bin" / "python", ROOT / "bench" / "step_time_torch.py", "--model", model, "--mode", mode,
                       "--threads", threads, "--steps", steps, "--batch", BATCHES[model]])


def run_ort(oriel: Oriel, threads: int, steps: int) -> dict:
    return run_script([ORT_VENV / "bin" / "python", ROOT / "bench" / "step_time_ort.py", "--model", oriel.onnx,
                       "--threads", threads, "--steps", steps, "--batch", oriel.batch])


def loss_error(run: dict, expected: list[float]) -> float:
    return largest(abs(loss - wanted) / abs(wanted) for loss, wanted in zip(run["losses"], expected, strict=True))


def largest(errors) -> float:
    """As max(), which forgets a NaN."""
    return max(math.inf if math.isnan(error) else error for error in errors)


def best(runs: dict[str, list[dict]]) -> dict:
    """The setting with the smallest median step."""
    medians = {name: statistics.median(run["step_ms"] for run in rounds) for name, rounds in runs.items()}
    name = min(medians, key=medians.get)
    return {"setting": name, "step_ms": round(medians[name], 2),
            "peak_mb": round(max(run["peak_mb"] for run in runs[name]), 1),
            "all_ms": {key: round(value, 2) for key, value in medians.items()}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=sorted(BATCHES), default=sorted(BATCHES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="timed steps of a run")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    report = {**bench_report.machine(), "rounds": args.rounds, "steps": args.steps,
              "load_before": os.getloadavg()[0], "models": {}}
    cores = report["cores"]
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            oriel = Oriel(model, args.build, pathlib.Path(folder))
            contestants = {}
            threads = sorted({1, cores})
            for ranks, count in sorted({(1, 1), (1, cores), (cores, 1)}):
                contestants["oriel", f"{ranks} ranks x {count} threads"] = (
                    lambda r=ranks, t=count: oriel.run(r, t, args.steps))
            for mode in ["eager"] if args.no_compile else ["eager", "compile"]:
                for count in threads:
                    contestants[f"torch_{mode}", f"{count} threads"] = (
                        lambda m=mode, t=count: run_torch(model, m, t, args.steps))
            for count in threads if ORT_VENV.exists() else []:
                contestants["onnxruntime", f"{count} threads"] = (
                    lambda t=count: run_ort(oriel, t, args.steps))
            runs: dict = {}
            for number in range(args.rounds):
                for (contestant, setting), run in contestants.items():
                    started = time.monotonic()
                    figures = run()
                    runs.setdefault(contestant, {}).setdefault(setting, []).append(figures)
                    print(f"{model} round {number + 1} {contestant} {setting}: {figures['step_ms']:.1f} ms"
                          f" ({time.monotonic() - started:.0f} s)", file=sys.stderr)
            result = {name: best(settings) for name, settings in runs.items()}
            result["ratio"] = {name: round(figures["step_ms"] / result["oriel"]["step_ms"], 3)
                               for name, figures in result.items() if name != "oriel"}
            expected = runs["oriel"]["1 ranks x 1 threads"][0]["losses"]
            for name, settings in runs.items():
                error = largest(loss_error(run, expected) for rounds in settings.values() for run in rounds)
                if error > LOSS_TOLERANCE:
                    raise RuntimeError(f"{name}'s losses on {model} are not Oriel's: off by {error:.1e}")
                result[name]["loss_error"] = float(f"{error:.1e}")
            report["models"][model] = result
    bench_report.write(report, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
