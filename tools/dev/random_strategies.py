#!/usr/bin/env python3
"""Trains models under random strategies and compares each with one rank (design section 9).

    tools/dev/random_strategies.py [--model NAME_OR_FOLDER]... [--seconds N | --count N] [--seed N] [--slack N] [--folder DIR]

A strategy is drawn from all that docs/strategy.md has, together with what the recipe freezes, its precision and its batch, and with
compiler options that change what runs. One that the compiler refuses is counted by its message, which must be one: no crash, no hang. One that
it accepts must run, and have the gradients, parameters and losses of one rank. A trial depends on its seed alone: `--seed N --count 1
--folder DIR` repeats it and keeps its files. A model is one of models/, or a folder with `model.onnx`, `recipe.yaml` and `data/`, as `models/survey.py --train`
makes them; its recipe's optimizer and batch aren't used. With `--device cuda`, `ORIEL_CUDA_PLUGIN` may name the plugin whose
driver is emulated. The exit status is 1 if a trial failed. It needs numpy and PyYAML, which /usr/bin/python3 has behind tools/setup.sh.
"""

import argparse
import collections
import dataclasses
import fnmatch
import itertools
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "e2e"))

import numerics  # noqa: E402

MODELS = ("llava_tiny", "llava_deep", "qwen_vl_tiny")
# Patterns of parameters that a recipe may freeze, and of those that may have a mesh of their own.
TOWERS = ("*vision*", "*visual*", "*language*")
FREEZABLE = (*TOWERS, "*embed*", "*norm*", "*bias", "*.0.*", "*.1.*", "*proj*", "*mlp*")
OPTIONS = ("--fuse-loss", "--generated-kernels=on", "--fuse-kernels=off", "--unfused=attention", "--unfused=experts")
MOST_RANKS = 8
# Of a step. Gradients of fewer are rough, in bf16; goldens have not many more.
LEAST_SAMPLES, MOST_SAMPLES = 4, 40
# Of a folder's model.
OPTIMIZERS = {"sgd": "{kind: sgd, lr: 1.0e-3}", "adamw": "{kind: adamw, lr: 1.0e-3, betas: [0.9, 0.95], weight_decay: 0.05}"}


@dataclasses.dataclass(frozen=True)
class RandomStrategy:
    """A strategy's text, options beside it, and what the recipe says with it: samples of a step, of a microbatch, and of that on a rank."""

    text: str
    options: tuple[str, ...]
    ranks: int
    samples: int
    microbatch: int
    micro: int
    frozen: str
    precision: str

    def arguments(self, folder: pathlib.Path) -> list[str]:
        path = folder / "strategy.yaml"
        path.write_text(self.text)
        return ["--strategy", str(path), *self.options]

    def batch(self, whole: int, micro: int) -> tuple[int, int]:
        return self.samples, self.micro

    def __str__(self) -> str:
        return (f"{self.ranks} ranks, batch {self.samples} by {self.micro}, frozen {self.frozen}, {self.precision}, "
                f"{' '.join(self.options)}\n{self.text}")


def sizes_of(rng: random.Random, ranks: int, axes: tuple[str, ...]) -> dict[str, int]:
    """Sizes of mesh axes, whose product is `ranks`; most of them 1."""
    mesh = {}
    for axis in rng.sample(axes, len(axes)):
        size = rng.choice([n for n in range(1, ranks + 1) if ranks % n == 0])
        if size > 1:
            mesh[axis] = size
        ranks //= size
    if ranks > 1:
        axis = rng.choice(axes)
        mesh[axis] = mesh.get(axis, 1) * ranks
    return mesh


def flow(mesh: dict[str, int]) -> str:
    return "{" + ", ".join(f"{axis}: {size}" for axis, size in mesh.items()) + "}"


def copies_of(mesh: dict[str, int]) -> int:
    return mesh.get("dp", 1) * mesh.get("fsdp", 1)


def draw_storage(rng: random.Random, mesh: dict[str, int]) -> list[str]:
    lines = [f"zero: {rng.randrange(4)}"] if rng.random() < 0.6 else []
    dp = mesh.get("dp", 1)
    if dp > 2 and "fsdp" not in mesh and rng.random() < 0.3:
        lines.append(f"hsdp: {rng.choice([n for n in range(2, dp + 1) if dp % n == 0])}")
    return lines


def draw_stages(rng: random.Random, grids: int) -> tuple[list[str], int]:
    """Lines, and microbatches."""
    if grids == 1:
        return [], rng.choice((1, 2, 3, 4))
    schedule = rng.choice(numerics.SCHEDULES)
    stages, microbatches = grids, rng.choice((2, 3, 4))
    if schedule == "interleaved":
        stages, microbatches = 2 * grids, grids * rng.choice((1, 2))
    lines = [f"stages: {stages}", f"schedule: {schedule}"]
    lines += ["placement: dp_outermost"] if rng.random() < 0.2 else []
    lines += ["balance: parameters"] if rng.random() < 0.2 else []
    return lines, microbatches


def matching(patterns: tuple[str, ...], names: list[str]) -> list[str]:
    """Patterns that match a name."""
    return [pattern for pattern in patterns if fnmatch.filter(names, pattern)]


def draw(seed: int, names: list[str]) -> RandomStrategy:
    """`names`: the model's parameters."""
    rng = random.Random(seed)
    axes = rng.choice((("dp", "tp"), ("dp", "fsdp", "tp"), ("dp", "cp", "tp"), ("dp", "fsdp", "cp", "tp")))
    grids = rng.choice((1, 1, 2, 2, 3, 4))
    each = rng.choice([n for n in (1, 2, 3, 4, 6, 8) if 1 < n * grids <= MOST_RANKS])
    mesh = sizes_of(rng, each, axes)
    copies = [copies_of(mesh)]
    lines = [f"mesh: {flow(mesh)}", *draw_storage(rng, mesh)]
    if mesh.get("tp", 1) > 1 and rng.random() < 0.5:
        lines.append("sequence_parallel: true")
    if mesh.get("tp", 1) > 1 and rng.random() < 0.5:
        lines.append("padding: true")
    towers = matching(TOWERS, names)
    if towers and rng.random() < 0.3:
        module = sizes_of(rng, each, axes)
        copies.append(copies_of(module))
        lines.append(f'modules: {{tower: {{parameters: ["{rng.choice(towers)}"], mesh: {flow(module)}}}}}')
    stages, microbatches = draw_stages(rng, grids)
    lines += stages
    lines.append(f"remat: {rng.choice(('none', 'none', 'selective', 'full'))}")
    lines.append(f"overlap: {rng.choice(('true', 'false', '{bucket: 4 KiB, prefetch: 8 KiB}', '{bucket: 64 KiB, prefetch: 0}'))}")
    options = [option for option in OPTIONS if rng.random() < 0.2]
    micro = rng.choice((1, 1, 2))
    micro *= max(copies) // min(copies) if max(copies) % min(copies) == 0 else 1
    while micro * min(copies) * microbatches < LEAST_SAMPLES:
        microbatches *= 2
    while micro * min(copies) * microbatches > MOST_SAMPLES and micro > 1:
        micro //= 2
    freezable = matching(FREEZABLE, names)
    frozen = rng.sample(freezable, rng.choice((0, 0, 1, 2))) if len(freezable) > 1 else []
    return RandomStrategy("\n".join(lines) + "\n", tuple(options), each * grids, micro * min(copies) * microbatches,
                          micro * min(copies), micro,
                          "[" + ", ".join(f'"{pattern}"' for pattern in frozen) + "]",
                          "bf16" if rng.random() < 0.15 else "f32")


def is_name(model: str) -> bool:
    """Of one of models/."""
    return (SOURCE / "models" / numerics.GOLDENS.get(model, model) / "golden" / "recipe_sgd.yaml").exists()


def as_golden(model: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The model's folder laid out as those of models/ are, with the recipes that numerics.Measurement trains by."""
    golden = folder / model.name / "golden"
    golden.mkdir(parents=True, exist_ok=True)
    for link, file in ((golden.parent / "model.onnx", model / "model.onnx"), (golden / "data", model / "data")):
        link.unlink(missing_ok=True)
        link.symlink_to(file.resolve())
    recipe = yaml.safe_load((model / "recipe.yaml").read_text())
    for key in ("optimizer", "schedule", "batch", "parameters", "precision"):
        recipe.pop(key, None)
    text = yaml.safe_dump(recipe) + 'batch: {global: 4, micro: 4}\nparameters: {trainable: ["*"], frozen: []}\nprecision: f32\n'
    for kind, optimizer in OPTIMIZERS.items():
        (golden / f"recipe_{kind}.yaml").write_text(f"{text}optimizer: {optimizer}\n")
    return golden.parent


class Trials:
    """Of one model. A failure is printed; `refused` counts refusals by their message."""

    def __init__(self, model: str, folder: pathlib.Path, slack: float, device: str):
        self._model = model if is_name(model) else str(as_golden(pathlib.Path(model), folder).resolve())
        self._slack = slack
        self._device = device
        self._folder = folder
        self._one_rank: dict[tuple, numerics.Measurement] = {}
        recipe = yaml.safe_load((SOURCE / "models" / numerics.GOLDENS.get(self._model, self._model) / "golden/recipe_sgd.yaml").read_text())
        # Its samples are not apart: one rank has the same microbatches then.
        self._loss_of_microbatch = recipe["loss"].get("over") == "microbatch"
        self._names = sorted(self._measure_one_rank(2, samples=2, frozen="[]", precision="f32").gradients)
        self.passed = self.failed = 0
        self.refused: collections.Counter[str] = collections.Counter()

    def _measure(self, strategy, name: str, **recipe) -> numerics.Measurement:
        folder = self._folder / f"{pathlib.Path(self._model).name}.{name}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return numerics.Measurement(self._model, strategy, folder, adamw_steps=6, **recipe)

    def _measure_one_rank(self, microbatch: int, **recipe) -> numerics.Measurement:
        micro = microbatch if self._loss_of_microbatch else 1
        key = (micro, *recipe.values())
        if key not in self._one_rank:
            strategy = RandomStrategy("mesh: {dp: 1}\n", (), 1, recipe["samples"], micro, micro, recipe["frozen"], recipe["precision"])
            self._one_rank[key] = self._measure(strategy, f"one_rank.{len(self._one_rank)}", **recipe)
        return self._one_rank[key]

    def run(self, seed: int):
        strategy = draw(seed, self._names)
        recipe = {"samples": strategy.samples, "frozen": strategy.frozen, "precision": strategy.precision}
        try:
            measured = self._measure(strategy, str(seed), device=self._device, **recipe)
        except numerics.StrategyError as error:
            said = [line for line in error.reason.splitlines() if "error: " in line]
            too_few = any("don't make one batch" in line for line in said)  # samples of the model's data
            if said and (too_few or error.binary == "oriel" and error.returncode in (1, 2)):
                self.refused[re.sub(r"/\S*/|[0-9]+", lambda found: "" if "/" in found[0] else "N", said[0])] += 1
            else:
                self._fail(seed, strategy, f"{error.binary}: {error.returncode}: {error.reason}")
            return
        except subprocess.TimeoutExpired as error:
            self._fail(seed, strategy, str(error))
            return
        try:
            errors = measured.compare(self._measure_one_rank(strategy.microbatch, **recipe))
        except (numerics.StrategyError, subprocess.TimeoutExpired) as error:
            self._fail(seed, strategy, str(error).removeprefix(str(strategy)))
            return
        limits = numerics.LIMITS if strategy.precision == "f32" else numerics.BF16_LIMITS
        beyond = {name: error for name, error in errors.items() if not error <= self._slack * limits[name]}
        if beyond:
            self._fail(seed, strategy, str(beyond))
        else:
            self.passed += 1

    def _fail(self, seed: int, strategy: RandomStrategy, message: str):
        self.failed += 1
        print(f"FAILED {pathlib.Path(self._model).name} seed {seed}: {strategy}{message}\n", flush=True)

    def summary(self) -> str:
        text = f"{pathlib.Path(self._model).name}: {self.passed} as on one rank, {self.failed} failed, {self.refused.total()} refused\n"
        return text + "".join(f"  {count:4} {message[:150]}\n" for message, count in self.refused.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help="one of models/, or a folder")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=600)
    length.add_argument("--count", type=int, metavar="N", help="trials of each model, however long they take")
    parser.add_argument("--seed", type=int, default=0, help="of the first trial; the next ones count from there")
    parser.add_argument("--slack", type=float, default=1, help="times the limits of design section 9: small gradients of models "
                        "that were not chosen for it have more rounding (10)")
    parser.add_argument("--device", default="host", help="that runs the strategies; one rank is the host's (host)")
    parser.add_argument("--folder", type=pathlib.Path, help="where files stay; each trial has a folder of its own")
    options = parser.parse_args()
    for model in options.model or []:
        missing = [file for file in ("model.onnx", "recipe.yaml", "data") if not (pathlib.Path(model) / file).exists()]
        if missing and not is_name(model):
            parser.error(f"--model {model}: no {', '.join(missing)} there, and no model of models/ is called so")
    names = [pathlib.Path(model).name for model in options.model or []]
    if len(set(names)) < len(names):
        parser.error("two models of the same name: their files would be the same, too")
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="oriel_strategies_") as scratch:
        folder = options.folder or pathlib.Path(scratch)
        try:
            trials = [Trials(model, folder, options.slack, options.device) for model in options.model or MODELS]
        except numerics.StrategyError as error:
            print(f"error: on one rank, with batches of 2 and the model's recipe, {error.binary} says:\n{error.reason.rstrip()}", file=sys.stderr)
            return 2
        for seed in itertools.count(options.seed):
            for trial in trials:
                trial.run(seed)
            if seed - options.seed + 1 == options.count or (options.count is None and time.monotonic() > end):
                break
    for trial in trials:
        print(trial.summary(), end="")
    return 1 if any(trial.failed for trial in trials) else 0


if __name__ == "__main__":
    sys.exit(main())
