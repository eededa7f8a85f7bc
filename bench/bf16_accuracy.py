#!/usr/bin/env python3
"""Training in bf16 against training in f32: losses and accuracy over several seeds, as JSON.

    bench/bf16_accuracy.py --out bench/results/bf16_accuracy.json

Trains models/llava_tiny on the captions of Fashion-MNIST with its own recipe, once with each `precision`, for
each seed (of the order of the samples; the initial weights are the model file's), on one rank, and evaluates on
all 10,000 test images.

    loss        mean of the losses of steps --from to --to
    accuracy    share of test images whose class name is right at every token, after the last step

The ratio of the mean losses and the difference of the mean accuracies are what the claim is about: within 2 %
and within one point.

Needs the build (preset dev), numpy and dataset-fashion-mnist; minutes.
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

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "models" / "llava_tiny"
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(MODEL)]
import prepare_data  # noqa: E402
from oriel_testing import command  # noqa: E402

PRECISIONS = ("f32", "bf16")


def write_test_images(folder: pathlib.Path) -> None:
    images, classes = (prepare_data.read_idx(prepare_data.DATASET / f"t10k-{name}-ubyte.gz")
                       for name in ("images-idx3", "labels-idx1"))
    prepare_data.write_split(folder, "eval", images, classes, prepare_data.load_vocab(), name_only=True)


def train(precision: str, seed: int, args, folder: pathlib.Path) -> dict:
    plan, metrics = folder / "plan.oplan", folder / "metrics.jsonl"
    recipe = folder / "recipe.yaml"
    text = (MODEL / "recipe.yaml").read_text()
    recipe.write_text(text.replace("precision: f32", f"precision: {precision}").replace("seed: 0", f"seed: {seed}"))
    subprocess.run(command("oriel", "compile", MODEL / "model.onnx", "--recipe", recipe, "-o", plan), check=True)
    # Bound to one rank's threads: the sums of a step don't depend on them.
    result = subprocess.run(
        command("oriel-run", plan, "--data", args.data / "train", "--steps", args.steps, "--metrics", metrics,
                "--eval", folder / "eval"), check=True, stdout=subprocess.PIPE, text=True)
    losses = [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]
    metrics.unlink()
    evaluation = json.loads(result.stdout[result.stdout.index("{"):])
    return {"seed": seed, "loss": statistics.mean(losses[args.first - 1:args.last]), "final_loss": losses[-1],
            "accuracy": evaluation["exact_match"]}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "build" / "data" / "llava_tiny",
                        help="as models/llava_tiny/prepare_data.py wrote it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--from", type=int, dest="first", default=151)
    parser.add_argument("--to", type=int, dest="last", default=200)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()

    report = {
        "date": datetime.date.today().isoformat(),
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "steps": args.steps,
        "loss_steps": [args.first, args.last],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_test_images(folder / "eval")
        for precision in PRECISIONS:
            runs = [train(precision, seed, args, folder) for seed in args.seeds]
            report[precision] = {
                "loss": statistics.mean(run["loss"] for run in runs),
                "accuracy": statistics.mean(run["accuracy"] for run in runs),
                "runs": runs}
    f32, bf16 = (report[precision] for precision in PRECISIONS)
    report["loss_ratio"] = round(bf16["loss"] / f32["loss"], 5)
    report["accuracy_points"] = round(100 * (bf16["accuracy"] - f32["accuracy"]), 3)
    text = json.dumps(report, indent=2) + "\n"
    if args.out:
        args.out.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
