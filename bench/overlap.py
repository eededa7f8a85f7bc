#!/usr/bin/env python3
"""How much of the communication overlap hides, on 2 MPI ranks of one thread each, as JSON.

    bench/overlap.py --out bench/results/overlap.json

The model, a GPT that is made here (tests/e2e/gpt.py), is trained data-parallel with one microbatch,
compiled with overlap off and on. A link delay (oriel-run --link-delay) makes the gradients'
reduction take a given part of the backward's time; it only sleeps. Of the median steps of a run:

    hidden    (off with delay - on with delay) / (off with delay - off without)
    hideable  the share of the reduction's bytes that is not in the last bucket, for which no
              backward is left
    ratio     hidden / hideable

The figures are medians over rounds, in each of which the three runs follow each other, so that a
slow spell of the machine hits all alike. All runs must have the same losses, bit by bit.

Needs the build (preset dev) with MPI. Run it on an idle machine.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import numpy

import bench_report

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "e2e"))

from gpt import Gpt  # noqa: E402
from oriel_testing import write_shard  # noqa: E402

RANKS = 2
WARMUP_STEPS = 2


def run(command: list, **options) -> subprocess.CompletedProcess:
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if result.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{result.stderr[-2000:]}")
    return result


class Bench:
    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.arguments = arguments
        self.folder = folder
        self.bin = arguments.build / "bin"
        self.gpt = Gpt(blocks=arguments.blocks, hidden=arguments.hidden, heads=arguments.hidden // 64,
                       sequence=arguments.sequence, vocabulary=1024)
        (folder / "gpt.onnx").write_bytes(self.gpt.model())
        recipe = self.gpt.recipe(arguments.batch, arguments.batch // RANKS).replace("lr: 1.0e-2", "lr: 1.0e-3")
        (folder / "recipe.yaml").write_text(recipe.replace("kind: sgd", "kind: adamw").replace("steps: 3", "steps: 1000"))
        self.write_data()
        self.plans = {name: self.compile(name) for name in ("off", "on")}

    def write_data(self) -> None:
        (self.folder / "data").mkdir()
        random = numpy.random.default_rng(0)
        tokens = random.integers(self.gpt.vocabulary, size=(4 * self.arguments.batch, self.gpt.sequence))
        write_shard(self.folder / "data" / "0.tar", [{"input_ids": row, "labels": row} for row in tokens])

    def compile(self, name: str) -> pathlib.Path:
        plan = self.folder / f"{name}.oplan"
        run([self.bin / "oriel", "compile", self.folder / "gpt.onnx", "--recipe", self.folder / "recipe.yaml",
             "--mesh", f"dp={RANKS}", "--overlap",
             f"bucket={self.arguments.bucket}" if name == "on" else "off", "-o", plan])
        return plan

    def buckets(self) -> list[dict]:
        """The reductions that the backward starts, in their order."""
        plan = json.loads(run([self.bin / "oriel", "inspect", self.plans["on"], "--json"]).stdout)
        started = [each for segment in plan["programs"][0]["segments"] if segment["name"].startswith("backward")
                   for each in segment["started"] if each["kind"] in ("all_reduce", "reduce_scatter")]
        if len(started) < 2:
            raise RuntimeError("the plan starts less than two reductions: take a smaller --bucket")
        return started

    def train(self, name: str, delay: str | None, profile: bool = False) -> dict:
        metrics = self.folder / "metrics.jsonl"
        options = ["--link-delay", delay] if delay else []
        if profile:
            options.append("--profile")
        result = run([self.bin / "oriel-run", self.plans[name], "-n", RANKS, "--comm", "mpi", "--threads", 1,
                      "--data", self.folder / "data", "--no-shuffle", "--steps", self.arguments.steps + WARMUP_STEPS,
                      "--metrics", metrics, *options])
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        return {"step_ms": statistics.median(line["step_ms"] for line in lines[WARMUP_STEPS:]),
                "losses": [line["loss"] for line in lines], "report": result.stdout + result.stderr}

    def backward_ms(self) -> float:
        report = self.train("off", None, profile=True)["report"]
        return float(re.search(r"^  backward\S* +([0-9.]+) ms/step", report, re.MULTILINE).group(1))

    def measure(self) -> dict:
        arguments = self.arguments
        buckets = self.buckets()
        sent = sum(bucket["sent_bytes"] for bucket in buckets)
        hideable = 1 - buckets[-1]["sent_bytes"] / sent
        backward = statistics.median(self.backward_ms() for _ in range(3))
        bandwidth = sent / (arguments.part * backward / 1e3)
        delay = f"latency={arguments.latency},bandwidth={bandwidth:.0f}B/s"
        rounds, losses = [], None
        for _ in range(arguments.rounds):
            times = {}
            for key, name, wait in (("off_0", "off", None), ("off_delay", "off", delay), ("on_delay", "on", delay)):
                result = self.train(name, wait)
                losses = losses or result["losses"]
                if result["losses"] != losses:
                    raise RuntimeError(f"{key} has other losses")
                times[key] = result["step_ms"]
            times["hidden"] = (times["off_delay"] - times["on_delay"]) / (times["off_delay"] - times["off_0"])
            rounds.append(times)
            print(json.dumps({key: round(value, 3) for key, value in times.items()}), file=sys.stderr)
        medians = {key: round(statistics.median(each[key] for each in rounds), 3) for key in rounds[0]}
        return {"model": f"GPT, {arguments.blocks} blocks, hidden {arguments.hidden}, sequence {arguments.sequence}",
                "ranks": RANKS, "threads": 1, "batch": arguments.batch,
                "bucket": arguments.bucket, "buckets": [each["sent_bytes"] for each in buckets],
                "backward_ms": round(backward, 2), "communication_ms": round(1e3 * sent / bandwidth, 2),
                "link_delay": delay, "steps": arguments.steps, "rounds": arguments.rounds, **medians,
                "hideable": round(hideable, 4), "ratio": round(medians["hidden"] / hideable, 4),
                "hidden_of_rounds": [round(each["hidden"], 4) for each in rounds]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=512, help="a multiple of 64")
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8, help="global; half of it on each rank")
    parser.add_argument("--bucket", default="4MiB")
    parser.add_argument("--part", type=float, default=0.5, help="of the backward's time that communication takes")
    parser.add_argument("--latency", default="0us", help="of each hop; a delay of its own makes buckets cheaper")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = Bench(arguments, pathlib.Path(folder)).measure()
    figures = {**bench_report.machine(), **figures}
    bench_report.write(figures, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
