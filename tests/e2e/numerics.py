"""Strategies against one rank: design section 9, (a) gradients, (b) SGD, (c) AdamW."""

import dataclasses
import itertools
import json
import pathlib
import re

import numpy
from oriel_testing import SOURCE, losses, read_safetensors, relative_error, run

MODELS = ("llava_tiny", "qwen_vl_tiny")
# (a) 2-norm of the difference of a gradient at step 1 over the gradient's; (b) largest difference of
# a parameter after 5 steps of SGD; (c) largest relative difference of a loss in 20 steps of AdamW.
LIMITS = {"gradient": 1e-5, "parameter": 1e-6, "loss": 1e-5}
# A gradient below this share of the global norm is zero but for rounding, and is not compared.
ZERO_SHARE = 1e-6
MAX_RANKS = 8


@dataclasses.dataclass(frozen=True)
class Strategy:
    dp: int = 1
    tp: int = 1
    sp: bool = False
    zero: int = 0
    hsdp: int | None = None

    @property
    def ranks(self) -> int:
        return self.dp * self.tp

    def arguments(self) -> list[str]:
        arguments = ["--mesh", f"dp={self.dp},tp={self.tp}", "--zero", str(self.zero)]
        arguments += ["--sp"] if self.sp else []
        return arguments + (["--hsdp", str(self.hsdp)] if self.hsdp else [])

    def __str__(self) -> str:
        parts = [f"dp={self.dp}", f"tp={self.tp}"] + (["sp"] if self.sp else [])
        parts += [f"zero={self.zero}"] if self.zero else []
        return " ".join(parts + ([f"hsdp={self.hsdp}"] if self.hsdp else []))


def all_strategies() -> list[Strategy]:
    """Every combination of dp and tp in {1, 2, 4}, SP, ZeRO 0 to 3 and HSDP that fits 8 ranks."""
    found = []
    for dp, tp, sp, zero in itertools.product((1, 2, 4), (1, 2, 4), (False, True), range(4)):
        if not 1 < dp * tp <= MAX_RANKS or (sp and tp == 1) or (zero and dp == 1):
            continue
        found.append(Strategy(dp, tp, sp, zero))
        if zero and dp == 4:
            found.append(Strategy(dp, tp, sp, zero, hsdp=2))
    return found


def pairwise(strategies: list[Strategy]) -> list[Strategy]:
    """Few of them in which every pair of settings occurs that occurs in all; greedy."""
    def pairs(strategy):
        values = sorted(dataclasses.asdict(strategy).items())
        return set(itertools.combinations(values, 2))

    missing = set().union(*map(pairs, strategies))
    chosen = []
    while missing:
        best = max(strategies, key=lambda strategy: len(pairs(strategy) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen


class StrategyError(Exception):
    """A strategy does not compile or run; what the binary said."""


class Measurement:
    """The numbers of one model under one strategy. Files go to `folder`."""

    def __init__(self, model: str, strategy: Strategy, folder: pathlib.Path):
        self._golden = SOURCE / "models" / model / "golden"
        self._model = SOURCE / "models" / model / "model.onnx"
        self._strategy = strategy
        self._folder = folder
        gradients, parameters = folder / "gradients.safetensors", folder / "parameters.safetensors"
        self._train("sgd", 5, "--dump-gradients", gradients, "--dump-parameters", parameters)
        self.gradients = read_safetensors(gradients)
        self.parameters = read_safetensors(parameters)
        self.losses = losses(self._train("adamw", 20))

    def _run(self, *arguments) -> None:
        result = run(*arguments, timeout=300)
        if result.returncode != 0:
            raise StrategyError(f"{self._strategy}: {result.stderr[-2000:]}")

    def _train(self, kind: str, steps: int, *arguments) -> list[dict]:
        plan, metrics = self._folder / f"{kind}.oplan", self._folder / f"{kind}.jsonl"
        self._run("oriel", "compile", self._model, "--recipe", self._recipe(kind),
                  *self._strategy.arguments(), "-o", plan)
        self._run("oriel-run", plan, "--data", self._golden / "data", "--no-shuffle", "--steps",
                  steps, "-n", self._strategy.ranks, "--comm", "in_process", "--metrics", metrics,
                  *arguments)
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def _recipe(self, kind: str) -> pathlib.Path:
        """The golden's, with smaller microbatches where a step has too few for all ranks."""
        text = (self._golden / f"recipe_{kind}.yaml").read_text()
        whole, micro = map(int, re.search(r"global: (\d+), micro: (\d+)", text).groups())
        text = text.replace(f"micro: {micro}", f"micro: {min(micro, whole // self._strategy.dp)}")
        path = self._folder / f"recipe_{kind}.yaml"
        path.write_text(text)
        return path

    def compare(self, expected: "Measurement") -> dict[str, float]:
        """The largest differences, by the keys of LIMITS."""
        if set(self.gradients) != set(expected.gradients):
            raise StrategyError(f"{self._strategy}: other gradients than on one rank")
        norms = {name: numpy.linalg.norm(gradient.astype(numpy.float64))
                 for name, gradient in expected.gradients.items()}
        total = numpy.sqrt(sum(norm**2 for norm in norms.values()))
        compared = [name for name, norm in norms.items() if norm >= ZERO_SHARE * total]
        if len(compared) < 0.8 * len(norms):
            raise StrategyError(f"{self._strategy}: only {len(compared)} gradients are not zero")
        return {
            "gradient": max(relative_error(self.gradients[name], expected.gradients[name])
                            for name in compared),
            "parameter": max(float(numpy.abs(self.parameters[name] - value).max())
                             for name, value in expected.parameters.items()),
            "loss": max(abs(actual / wanted - 1)
                        for actual, wanted in zip(self.losses, expected.losses, strict=True)),
        }
