#!/usr/bin/env python3
"""Predicted against measured step times of small models on this machine's cores, as JSON.

    bench/search/against_ourselves.py --out bench/results/against_ourselves.json --search

Two models (llava_tiny, llava_30m), each by the strategies of ourselves.yaml: on up to 2 ranks of one thread each, and on 4 and 8 ranks behind
a link so slow (oriel-run --link-delay, which sleeps) that it counts more than the cores that the ranks share. For each number of ranks
`oriel doctor --measure` writes the cluster file, with the same delay; then `oriel simulate` predicts on it what `oriel compile` and
`oriel-run` do. Rounds are interleaved: each strategy runs once per round, so that a slow spell of the machine hits all alike.

    measured_ms   median over rounds of the median step of a run, without its first steps
    predicted_ms  of the simulator
    kendall       over pairs whose measured times are at least 10 % apart: (in the predicted order - in the other) / pairs
    spearman      rank correlation over all strategies of a model and regime
    regret        measured time of the strategy with the best prediction over the best measured time, less 1
    search_regret the same of what `oriel plan` picks for the most ranks (--search), against the others on as many

Needs the build (preset dev), and tools/setup.sh --python for llava_30m. Run it on an idle machine.
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

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = pathlib.Path(os.environ.get("ORIEL_VENV", pathlib.Path.home() / ".cache" / "oriel" / "venv"))
DATA = ROOT / "models" / "llava_tiny" / "golden" / "data"
APART = 1.1
WARMUP_STEPS = 2
RECIPE = """\
model: {{bind: {{batch: micro_batch}}}}
inputs:
  labels: {{dtype: int64, shape: [micro_batch, 64]}}
images: {{per_sample: 1, rows_per_image: 49}}
loss: {{kind: token_cross_entropy, logits: logits, labels: labels}}
init: {{seed: 0, rules: [{{match: ["*norm*.weight"], constant: 1.0}}, {{match: ["*bias"], constant: 0.0}}, {{match: ["*"], normal: {{std: 0.02}}}}]}}
optimizer: {{kind: adamw, lr: 1.0e-3, betas: [0.9, 0.95], weight_decay: 0.05, clip_norm: 1.0}}
batch: {{global: {batch}, micro: 1}}
steps: 100000
"""


def ranks_of(strategy: dict) -> int:
    """Of a strategy with one mesh."""
    ranks = strategy["stages"] // strategy.get("interleave", 1) if "stages" in strategy else 1
    for size in strategy["mesh"].values():
        ranks *= size
    return ranks


def pairs_apart(measured: list[float]) -> list[tuple[int, int]]:
    """(slower, faster), where the one takes at least APART times as long as the other."""
    return [(i, j) for i, slow in enumerate(measured) for j, fast in enumerate(measured) if slow >= APART * fast]


def kendall(measured: list[float], predicted: list[float]) -> float | None:
    """Over the pairs that are apart; None if there are none. A tie of predictions counts as neither order."""
    pairs = pairs_apart(measured)
    if not pairs:
        return None
    return sum((predicted[i] > predicted[j]) - (predicted[i] < predicted[j]) for i, j in pairs) / len(pairs)


def positions(values: list[float]) -> list[float]:
    """Place in the order of each; equal ones share the mean of theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def spearman(measured: list[float], predicted: list[float]) -> float | None:
    if len(set(measured)) < 2 or len(set(predicted)) < 2:
        return None
    return statistics.correlation(positions(measured), positions(predicted))


def run(command: list) -> str:
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{result.stderr[-2000:]}")
    return result.stdout


class Bench:
    """Strategies of one model in one regime, in a folder of files."""

    def __init__(self, arguments, folder: pathlib.Path, model: str, regime: str, settings: dict):
        self.arguments, self.folder, self.regime = arguments, folder, regime
        self.bin = arguments.build / "bin"
        self.onnx = model_file(model, arguments.models)
        self.delay = settings["link_delay"][regime].get(model) if regime in settings["link_delay"] else None
        self.recipe = folder / "recipe.yaml"
        self.recipe.write_text(RECIPE.format(batch=settings["batch"][model]))
        self.strategies = dict(list(settings["strategies"][regime].items())[:arguments.first])
        self.measured: dict[str, list[float]] = {name: [] for name in self.strategies}
        self.predicted: dict[str, float] = {}

    def file(self, name: str, end: str) -> pathlib.Path:
        return self.folder / f"{name}.{end}"

    def cluster(self, ranks: int) -> pathlib.Path:
        """Measured once for each number of ranks."""
        path = self.file(f"cluster-{ranks}", "yaml")
        if not path.exists():
            delay = ["--link-delay", self.delay] if self.delay else []
            run([self.bin / "oriel", "doctor", "--measure", path, "-n", ranks, "--threads", 1, *delay])
        return path

    def search(self) -> None:
        """Adds what `oriel plan` picks for the most ranks."""
        most = max(map(ranks_of, self.strategies.values()))
        path = self.file("search", "yaml")
        run([self.bin / "oriel", "plan", self.onnx, "--recipe", self.recipe, "--cluster", self.cluster(most), "-o", path])
        self.strategies["search"] = yaml.safe_load(path.read_text())
        self.measured["search"] = []

    def prepare(self, name: str) -> None:
        """Predicts a strategy and compiles it, for the same cluster."""
        strategy = self.strategies[name]
        path = self.file(name, "yaml")
        path.write_text(yaml.safe_dump(strategy, sort_keys=False))
        common = [self.onnx, "--recipe", self.recipe, "--strategy", path, "--cluster", self.cluster(ranks_of(strategy))]
        self.predicted[name] = json.loads(run([self.bin / "oriel", "simulate", *common, "--json"]))["step_seconds"] * 1e3
        run([self.bin / "oriel", "compile", *common, "-o", self.file(name, "oplan")])

    def time(self, name: str) -> None:
        metrics = self.file("metrics", "jsonl")
        delay = ["--link-delay", self.delay] if self.delay and ranks_of(self.strategies[name]) > 1 else []
        run([self.bin / "oriel-run", self.file(name, "oplan"), "--threads", 1, "--data", DATA, "--no-shuffle", "--steps",
             WARMUP_STEPS + self.arguments.steps, "--metrics", metrics, *delay])
        steps = [json.loads(line)["step_ms"] for line in metrics.read_text().splitlines()]
        self.measured[name].append(statistics.median(steps[WARMUP_STEPS:]))

    def report(self) -> dict:
        measured = {name: statistics.median(rounds) for name, rounds in self.measured.items()}
        ranks = {name: ranks_of(strategy) for name, strategy in self.strategies.items()}
        return {"link_delay": self.delay, **compare(measured, self.predicted, ranks),
                "strategies": {name: {"strategy": self.strategies[name], "measured_ms": round(measured[name], 3),
                                      "rounds_ms": [round(value, 3) for value in self.measured[name]],
                                      "predicted_ms": round(self.predicted[name], 3)} for name in measured}}


def compare(measured: dict[str, float], predicted: dict[str, float], ranks: dict[str, int]) -> dict:
    """The figures of the file comment, of {strategy: ms}. What the search picked, `search`, is not among what is ranked."""
    names = [name for name in measured if name != "search"]
    times, guesses = [measured[name] for name in names], [predicted[name] for name in names]
    best, chosen = min(measured.values()), min(names, key=predicted.get)
    figures = {"count": len(names), "pairs": len(pairs_apart(times)), "kendall": kendall(times, guesses), "spearman": spearman(times, guesses),
               "best": min(measured, key=measured.get), "chosen": chosen, "regret": measured[chosen] / best - 1}
    if "search" in measured:
        like = [time for name, time in measured.items() if ranks[name] == ranks["search"]]
        figures["search_regret"] = measured["search"] / min(like) - 1
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}


def model_file(model: str, built: pathlib.Path) -> pathlib.Path:
    onnx = ROOT / "models" / model / "model.onnx"
    if onnx.is_file():
        return onnx
    onnx = built / model / "model.onnx"
    if not onnx.is_file():
        run([VENV / "bin" / "python", ROOT / "models" / "export.py", model, "--out", onnx.parent])
    return onnx


def print_table(model: str, regime: str, report: dict) -> None:
    print(f"{model}, {regime}" + (f", {report['link_delay']}" if report["link_delay"] else ""))
    for name, line in sorted(report["strategies"].items(), key=lambda item: item[1]["measured_ms"]):
        ratio = line["predicted_ms"] / line["measured_ms"]
        print(f"  {name:34} measured {line['measured_ms']:9.2f} ms  predicted {line['predicted_ms']:9.2f} ms  ratio {ratio:.2f}")
    figures = {name: value for name, value in report.items() if name not in ("strategies", "link_delay")}
    print("  " + "  ".join(f"{name} {value}" for name, value in figures.items()), flush=True)


def main() -> int:
    settings = yaml.safe_load((HERE / "ourselves.yaml").read_text())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, metavar="DIR", default=ROOT / "build" / "models",
                        help="where graphs that are not checked in are, or are exported to (default: build/models)")
    parser.add_argument("--only", nargs="+", choices=settings["models"], metavar="MODEL", default=settings["models"])
    parser.add_argument("--regimes", nargs="+", choices=list(settings["strategies"]), default=list(settings["strategies"]))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="timed steps of a run")
    parser.add_argument("--first", type=int, metavar="N", help="only the first strategies of each list, to try it out")
    parser.add_argument("--search", action="store_true", help="measure what `oriel plan` picks, too")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    result = {"date": datetime.date.today().isoformat(), "cpu": platform.processor() or platform.machine(),
              "cores": len(os.sched_getaffinity(0)), "rounds": args.rounds, "steps": args.steps, "batch": settings["batch"],
              "load_before": os.getloadavg()[0], "regimes": []}
    for model in args.only:
        for regime in args.regimes:
            with tempfile.TemporaryDirectory() as folder:
                bench = Bench(args, pathlib.Path(folder), model, regime, settings)
                if args.search:
                    bench.search()
                for name in bench.strategies:
                    bench.prepare(name)
                for number in range(args.rounds):
                    for name in bench.strategies:
                        bench.time(name)
                    print(f"{model} {regime}: round {number + 1} of {args.rounds}", file=sys.stderr)
                report = bench.report()
            print_table(model, regime, report)
            result["regimes"].append({"model": model, "regime": regime, **report})
    if args.out:
        args.out.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
