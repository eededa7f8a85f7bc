#!/usr/bin/env python3
"""Step time and memory of a mixture of experts, of which each token computes its own or all, as JSON.

    bench/experts.py --out bench/results/experts.json

The model, a GPT with experts that is made here (tests/e2e/gpt.py), is compiled as it is, and with
`--unfused experts`, which computes every expert on every token as the model's graph does. Of each
round, in which the two runs follow each other, the median step counts; figures are medians over
rounds. Products of the experts are fewer by `experts / chosen`. Losses must agree within 1e-5.

Needs the build (preset dev). Run it on an idle machine.
"""

import argparse
import json
import pathlib
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

WARMUP_STEPS = 2
PLANS = {"chosen": (), "all": ("--unfused", "experts")}


def run(command: list) -> str:
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{result.stderr[-2000:]}")
    return result.stdout


class Bench:
    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.arguments, self.folder, self.bin = arguments, folder, arguments.build / "bin"
        gpt = Gpt(blocks=arguments.blocks, hidden=arguments.hidden, heads=arguments.hidden // 64, sequence=arguments.sequence,
                  vocabulary=1024, experts=arguments.experts, chosen=arguments.chosen)
        (folder / "gpt.onnx").write_bytes(gpt.model())
        (folder / "data").mkdir()
        random = numpy.random.default_rng(0)
        tokens = random.integers(gpt.vocabulary, size=(4 * arguments.batch, gpt.sequence))
        write_shard(folder / "data" / "0.tar", [{"input_ids": row, "labels": row} for row in tokens])
        recipe = gpt.recipe(arguments.batch, arguments.batch, precision=arguments.precision).replace("lr: 1.0e-2", "lr: 1.0e-3")
        (folder / "recipe.yaml").write_text(recipe.replace("kind: sgd", "kind: adamw").replace("steps: 3", "steps: 1000"))
        for name, options in PLANS.items():
            run([self.bin / "oriel", "compile", folder / "gpt.onnx", "--recipe", folder / "recipe.yaml", *options, "-o", self.plan(name)])

    def plan(self, name: str) -> pathlib.Path:
        return self.folder / f"{name}.oplan"

    def train(self, name: str) -> tuple[float, list[float]]:
        metrics = self.folder / "metrics.jsonl"
        run([self.bin / "oriel-run", self.plan(name), "-n", 1, "--data", self.folder / "data", "--no-shuffle",
             "--steps", self.arguments.steps + WARMUP_STEPS, "--metrics", metrics])
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        return statistics.median(line["step_ms"] for line in lines[WARMUP_STEPS:]), [line["loss"] for line in lines]

    def arena_bytes(self, name: str) -> int:
        return json.loads(run([self.bin / "oriel", "inspect", self.plan(name), "--json"]))["programs"][0]["arena_bytes"]

    def measure(self) -> dict:
        rounds = []
        for _ in range(self.arguments.rounds):
            (chosen, losses), (every, expected) = self.train("chosen"), self.train("all")
            numpy.testing.assert_allclose(losses, expected, rtol=1e-5 if self.arguments.precision == "f32" else 1e-2)
            rounds.append({"chosen_ms": chosen, "all_ms": every, "ratio": every / chosen})
        return {**{key: statistics.median(each[key] for each in rounds) for key in rounds[0]}, "rounds": rounds,
                **{f"{name}_arena_bytes": self.arena_bytes(name) for name in PLANS}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--out", type=pathlib.Path, help="default: standard output")
    for name, value in (("blocks", 4), ("hidden", 512), ("sequence", 256), ("experts", 16), ("chosen", 2), ("batch", 4),
                        ("steps", 6), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    results = {}
    for arguments.precision in ("f32", "bf16"):
        with tempfile.TemporaryDirectory(prefix="oriel_experts_") as folder:
            results[arguments.precision] = Bench(arguments, pathlib.Path(folder)).measure()
    sizes = {key: value for key, value in vars(arguments).items() if isinstance(value, int)}
    bench_report.write({**bench_report.machine(), **sizes, **results}, arguments.out)


if __name__ == "__main__":
    main()
