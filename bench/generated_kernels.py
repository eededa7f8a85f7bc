#!/usr/bin/env python3
"""What generated kernels save on the host, as JSON.

    bench/generated_kernels.py --out bench/results/generated_kernels.json

A GPT that is made here (tests/e2e/gpt.py) is compiled in bf16 with --generated-kernels off and on,
and trained on one rank of one thread. By the kernel table of `oriel-run --profile`:

    pointwise_ms  time per step in the kernels whose launches differ between the two plans
    ratio         pointwise_ms of off over that of on
    compile_s     time of `oriel compile`

Figures are medians over rounds, in each of which the two runs follow each other. All runs must have
the same losses, bit by bit. Needs the build (preset dev). Run it on an idle machine.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import bench_report

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "e2e"))

from gpt import Gpt  # noqa: E402
from oriel_testing import write_shard  # noqa: E402

NAMES = ("off", "on")


def run(command: list) -> subprocess.CompletedProcess:
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{result.stderr[-2000:]}")
    return result


class Bench:
    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.arguments, self.folder = arguments, folder
        self.bin = arguments.build / "bin"
        gpt = Gpt(blocks=arguments.blocks, hidden=arguments.hidden, heads=arguments.hidden // 64,
                  sequence=arguments.sequence, vocabulary=1024)
        (folder / "gpt.onnx").write_bytes(gpt.model())
        (folder / "recipe.yaml").write_text(gpt.recipe(arguments.batch, arguments.batch, "*", "bf16"))
        (folder / "data").mkdir()
        random = numpy.random.default_rng(0)
        tokens = random.integers(gpt.vocabulary, size=(arguments.batch, gpt.sequence))
        write_shard(folder / "data" / "0.tar", [{"input_ids": row, "labels": row} for row in tokens])
        self.losses = None

    def plan(self, name: str) -> pathlib.Path:
        return self.folder / f"{name}.oplan"

    def compile(self, name: str) -> float:
        begin = time.monotonic()
        run([self.bin / "oriel", "compile", self.folder / "gpt.onnx", "--recipe", self.folder / "recipe.yaml",
             "--generated-kernels", name, "-o", self.plan(name)])
        return time.monotonic() - begin

    def launches(self, name: str) -> dict[str, int]:
        plan = json.loads(run([self.bin / "oriel", "inspect", self.plan(name), "--json"]).stdout)
        counts: dict[str, int] = {}
        for segment in plan["programs"][0]["segments"]:
            for kernel, count in segment["kernels"].items():
                counts[kernel] = counts.get(kernel, 0) + count
        return counts

    def kernels_ms(self, name: str) -> dict[str, float]:
        metrics = self.folder / "metrics.jsonl"
        result = run([self.bin / "oriel-run", self.plan(name), "--threads", 1, "--data", self.folder / "data",
                      "--no-shuffle", "--steps", self.arguments.steps, "--metrics", metrics, "--profile"])
        losses = [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]
        self.losses = self.losses or losses
        if losses != self.losses:
            raise RuntimeError(f"{name} has other losses")
        table = (result.stdout + result.stderr).split("kernels (rank 0", 1)[1].split("\ninstructions", 1)[0]
        rows = re.findall(r"^ +([0-9.]+) ms +[0-9.]+% +\d+ x  (\S+)$", table, re.MULTILINE)
        return {kernel: float(ms) / self.arguments.steps for ms, kernel in rows}

    def measure(self) -> dict:
        rounds = []
        for _ in range(self.arguments.rounds):
            figures = {f"compile_s_{name}": self.compile(name) for name in NAMES}
            launches = {name: self.launches(name) for name in NAMES}
            changed = {kernel for kernel in launches["off"].keys() | launches["on"].keys()
                       if launches["off"].get(kernel) != launches["on"].get(kernel)}
            for name in NAMES:
                kernels = self.kernels_ms(name)
                figures[f"pointwise_ms_{name}"] = sum(kernels.get(kernel, 0) for kernel in changed)
                figures[f"all_ms_{name}"] = sum(kernels.values())
            figures["ratio"] = figures["pointwise_ms_off"] / figures["pointwise_ms_on"]
            rounds.append(figures)
            print(json.dumps({key: round(value, 3) for key, value in figures.items()}), file=sys.stderr)
        arguments = self.arguments
        return {"model": f"GPT, {arguments.blocks} blocks, hidden {arguments.hidden}, sequence {arguments.sequence}, bf16",
                "batch": arguments.batch, "threads": 1, "steps": arguments.steps, "rounds": arguments.rounds,
                "launches_off": sum(launches["off"].values()), "launches_on": sum(launches["on"].values()),
                "generated_launches": launches["on"].get("generated", 0), "kernels_that_change": sorted(changed),
                **{key: round(statistics.median(each[key] for each in rounds), 3) for key in rounds[0]}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=512, help="a multiple of 64")
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
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
