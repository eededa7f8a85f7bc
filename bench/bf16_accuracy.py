#!/usr/bin/env python3
"""Training in bf16 against training in f32: losses and accuracy over several seeds, as JSON.

    bench/bf16_accuracy.py --out bench/results/bf16_accuracy.json

Trains models/llava_tiny on the captions of Fashion-MNIST with its own recipe, once with each `precision`, for
each seed (of the order of the samples; the initial weights are the model file's), on one rank:

    loss        mean of the losses of steps 151-200 of a training of 200 steps (20 of them warm-up; the recipe's
                schedule otherwise)
    accuracy    share of all 10,000 test images whose class name is right at every token, after the recipe's 2,000
                steps
    long_loss   mean of the losses of steps 151-200 of these, whose learning rate is at its peak then

The ratio of the mean losses and the difference of the mean accuracies are what the claim is about: within 2 %
and within one point. Two trainings that differ in rounding go apart: at the peak of the learning rate, losses of
one seed differ by 4 % (standard deviation) as soon as anything is changed by a part in a thousand. `loss_error` is
the standard error of the ratio, from the ratios of the seeds.

Needs the build (preset dev), numpy and dataset-fashion-mnist; minutes.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import bench_report

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "models" / "llava_tiny"
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(MODEL)]
import prepare_data  # noqa: E402
from oriel_testing import command  # noqa: E402

PRECISIONS = ("f32", "bf16")
FIRST, LAST = 151, 200
SHORT_STEPS = 200
SHORT = (("warmup_steps: 100, total_steps: 2000", "warmup_steps: 20, total_steps: 200"), ("steps: 2000\n", "steps: 200\n"))


def write_test_images(folder: pathlib.Path) -> None:
    images, classes = (prepare_data.read_idx(prepare_data.DATASET / f"t10k-{name}-ubyte.gz")
                       for name in ("images-idx3", "labels-idx1"))
    prepare_data.write_split(folder, "eval", images, classes, prepare_data.load_vocab(), name_only=True)


def train(precision: str, seed: int, steps: int, data: pathlib.Path, folder: pathlib.Path,
          arguments=()) -> tuple[float, str]:
    """The mean loss of steps 151-200, and what was printed."""
    plan, metrics, recipe = (folder / name for name in ("plan.oplan", "metrics.jsonl", "recipe.yaml"))
    text = (MODEL / "recipe.yaml").read_text()
    for old, new in (("precision: f32", f"precision: {precision}"), ("seed: 0", f"seed: {seed}"),
                     *(SHORT if steps == SHORT_STEPS else ())):
        assert old in text, old
        text = text.replace(old, new)
    recipe.write_text(text)
    subprocess.run(command("oriel", "compile", MODEL / "model.onnx", "--recipe", recipe, "-o", plan), check=True,
                   stdout=subprocess.DEVNULL)
    result = subprocess.run(
        command("oriel-run", plan, "--data", data / "train", "--steps", steps, "--metrics", metrics, *arguments),
        check=True, stdout=subprocess.PIPE, text=True)
    losses = [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]
    assert len(losses) == steps
    metrics.unlink()
    return statistics.mean(losses[FIRST - 1:LAST]), result.stdout


def run(precision: str, seed: int, args, folder: pathlib.Path) -> dict:
    row = {"seed": seed, "loss": train(precision, seed, SHORT_STEPS, args.data, folder)[0]}
    if args.steps:
        row["long_loss"], output = train(precision, seed, args.steps, args.data, folder, ("--eval", folder / "eval"))
        row["accuracy"] = json.loads(output[output.index("{"):])["exact_match"]
    return row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "build" / "data" / "llava_tiny",
                        help="as models/llava_tiny/prepare_data.py wrote it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=2000, help="of the long training; 0: without it")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()

    report = {
        **bench_report.machine(),
        "steps": [SHORT_STEPS, args.steps],
        "loss_steps": [FIRST, LAST],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_test_images(folder / "eval")
        for precision in PRECISIONS:
            runs = [run(precision, seed, args, folder) for seed in args.seeds]
            report[precision] = {key: statistics.mean(row[key] for row in runs) for key in runs[0] if key != "seed"}
            report[precision]["runs"] = runs
    f32, bf16 = (report[precision] for precision in PRECISIONS)
    report["loss_ratio"] = round(bf16["loss"] / f32["loss"], 5)
    ratios = [narrow["loss"] / wide["loss"] for narrow, wide in zip(bf16["runs"], f32["runs"], strict=True)]
    if len(ratios) > 1:
        report["loss_error"] = round(statistics.stdev(ratios) / len(ratios) ** 0.5, 5)
    if args.steps:
        report["accuracy_points"] = round(100 * (bf16["accuracy"] - f32["accuracy"]), 3)
    bench_report.write(report, args.out)


if __name__ == "__main__":
    main()
