"""Strategies against one rank: design section 9, (a) gradients, (b) SGD, (c) AdamW."""

import dataclasses
import itertools
import json
import math
import pathlib
import re

import numpy
from oriel_testing import SOURCE, losses, read_safetensors, relative_error, run

MODELS = ("llava_tiny", "qwen_vl_tiny")
PIPELINE_MODELS = ("llava_tiny", "llava_deep")
# Models that are trained with the recipes and data of another one's golden.
GOLDENS = {"llava_deep": "llava_tiny"}
# (a) 2-norm of the difference of a gradient at step 1 over the gradient's; (b) largest difference of
# a parameter after 5 steps of SGD; (c) largest relative difference of a loss in 20 steps of AdamW.
LIMITS = {"gradient": 1e-5, "parameter": 1e-6, "loss": 1e-5}
# The same in bf16, whose numbers have 8 bits: against one rank in bf16, and of one rank against one in f32.
BF16_LIMITS = {"gradient": 1e-1, "parameter": 1e-4, "loss": 1e-2}
# A gradient below this share of the global norm is zero but for rounding, and is not compared.
ZERO_SHARE = 1e-6
BF16_ZERO_SHARE = 1e-4  # key biases have 2e-5 at most, others 1e-3 at least
MAX_RANKS = 8
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1")


@dataclasses.dataclass(frozen=True)
class Strategy:
    dp: int = 1
    tp: int = 1
    sp: bool = False
    zero: int = 0
    hsdp: int | None = None
    grids: int = 1  # of dp x tp ranks, one behind the other
    schedule: str | None = None  # of several grids

    @property
    def ranks(self) -> int:
        return self.grids * self.dp * self.tp

    @property
    def stages(self) -> int:
        return self.grids * (2 if self.schedule == "interleaved" else 1)

    def arguments(self, folder: pathlib.Path) -> list[str]:
        arguments = ["--mesh", f"dp={self.dp},tp={self.tp}", "--zero", str(self.zero)]
        arguments += ["--sp"] if self.sp else []
        arguments += ["--hsdp", str(self.hsdp)] if self.hsdp else []
        if self.schedule:
            arguments += ["--stages", str(self.stages), "--schedule", self.schedule]
        return arguments

    def batch(self, whole: int, micro: int) -> tuple[int, int]:
        """Samples of a step and of a microbatch, from those of the golden. Grids behind each other
        get as many microbatches as there can be, interleaved ones a multiple of their number."""
        if not self.schedule:
            return whole, min(micro, whole // self.dp)
        multiple = math.lcm(4, self.grids * self.dp) if self.schedule == "interleaved" else whole
        return -(-whole // multiple) * multiple, 1

    def __str__(self) -> str:
        parts = [f"dp={self.dp}", f"tp={self.tp}"] + (["sp"] if self.sp else [])
        parts += [f"zero={self.zero}"] if self.zero else []
        parts += [f"hsdp={self.hsdp}"] if self.hsdp else []
        return " ".join(parts + ([f"stages={self.stages}", self.schedule] if self.schedule else []))


@dataclasses.dataclass(frozen=True)
class StrategyFile:
    """A strategy that takes a file. `dp`: the least of a mesh."""

    text: str
    ranks: int
    dp: int = 1
    micro: int | None = None  # samples of a microbatch on one of `dp`; None: as the golden says

    def arguments(self, folder: pathlib.Path) -> list[str]:
        path = folder / "strategy.yaml"
        path.write_text(self.text)
        return ["--strategy", str(path)]

    def batch(self, whole: int, micro: int) -> tuple[int, int]:
        return whole, min(self.micro or micro, whole // self.dp)

    def __str__(self) -> str:
        return self.text


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


def all_pipelines(model: str) -> list[Strategy]:
    """Every combination of one to four grids, schedule, dp and tp in {1, 2}, SP and ZeRO 0, 1 and 3
    that fits 8 ranks and has a block for each stage."""
    blocks = {"llava_tiny": 8, "llava_deep": 12, "qwen_vl_tiny": 6}[model]
    found = []
    for grids, schedule, dp, tp, sp, zero in itertools.product(
            (1, 2, 3, 4), (None, *SCHEDULES), (1, 2), (1, 2), (False, True), (0, 1, 3)):
        if (grids == 1) != (schedule is None) or (sp and tp == 1) or (zero and dp == 1):
            continue
        strategy = Strategy(dp, tp, sp, zero, grids=grids, schedule=schedule)
        if 1 < strategy.ranks <= MAX_RANKS and strategy.stages <= blocks:
            found.append(strategy)
    return found


# Stages with a mesh each, of llava_tiny: four blocks in each tower.
STAGE_MESHES = {
    "vision dp=4, language tp=4": StrategyFile("""
stages:
  - {blocks: vision, mesh: {dp: 4}}
  - {blocks: language, mesh: {tp: 4}}
""", ranks=8, micro=4),
    "vision dp=1, language dp=2 tp=2 sp": StrategyFile("""
stages:
  - {blocks: vision, mesh: {dp: 1}}
  - {blocks: language, mesh: {dp: 2, tp: 2}}
sequence_parallel: true
""", ranks=5, micro=2),
    "vision and language 0-1 dp=2, language 2-3 tp=2": StrategyFile("""
stages:
  - {blocks: [vision, language.0-1], mesh: {dp: 2}}
  - {blocks: language.2-3, mesh: {tp: 2}}
""", ranks=4, micro=2),
    "vision dp=2, language 0-1 tp=2, language 2-3 dp=2 tp=2, zero=1": StrategyFile("""
stages:
  - {blocks: vision, mesh: {dp: 2}}
  - {blocks: language.0-1, mesh: {tp: 2}}
  - {blocks: language.2-3, mesh: {dp: 2, tp: 2}}
schedule: zb-h1
zero: 1
""", ranks=8, micro=2),
    "vision fsdp=4, language dp=2, zero=3": StrategyFile("""
stages:
  - {blocks: vision, mesh: {fsdp: 4}}
  - {blocks: language, mesh: {dp: 2}}
schedule: gpipe
zero: 3
""", ranks=6, dp=2),
}


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
    """A strategy does not compile or run, or gives something else; what the binary said, if one did."""

    def __init__(self, strategy, reason: str, binary: str | None = None, returncode: int = 0):
        super().__init__(f"{strategy}: {reason}")
        self.reason = reason
        self.binary = binary
        self.returncode = returncode


class Measurement:
    """The numbers of one model under one strategy. A step has `samples` (None: as many as the strategy
    wants); `frozen` and `precision` are as in a recipe, `device` and `comm` options of the binaries.
    Files go to `folder`."""

    def __init__(self, model: str, strategy, folder: pathlib.Path, samples: int | None = None,
                 frozen: str = "[]", precision: str = "f32", device: str = "host", comm: str = "in_process",
                 adamw_steps: int = 20):
        self._golden = SOURCE / "models" / GOLDENS.get(model, model) / "golden"
        self._model = SOURCE / "models" / model / "model.onnx"
        self._strategy = strategy
        self._folder = folder
        self._frozen = frozen
        self._precision = precision
        self._device = device
        self._comm = comm
        recipe = (self._golden / "recipe_sgd.yaml").read_text()
        self._batch = re.search(r"global: (\d+), micro: (\d+)", recipe)
        self.samples, self._micro = strategy.batch(*map(int, self._batch.groups()))
        self.samples = samples or self.samples
        gradients, parameters = folder / "gradients.safetensors", folder / "parameters.safetensors"
        self._train("sgd", 5, "--dump-gradients", gradients, "--dump-parameters", parameters)
        self.gradients = read_safetensors(gradients)
        self.parameters = read_safetensors(parameters)
        self.losses = losses(self._train("adamw", adamw_steps))
        self.plan = folder / "adamw.oplan"

    def _run(self, binary: str, *arguments) -> None:
        result = run(binary, *arguments, timeout=300)
        if result.returncode != 0:
            raise StrategyError(self._strategy, result.stderr[-2000:], binary, result.returncode)

    def _train(self, kind: str, steps: int, *arguments) -> list[dict]:
        plan, metrics = self._folder / f"{kind}.oplan", self._folder / f"{kind}.jsonl"
        self._run("oriel", "compile", self._model, "--recipe", self._recipe(kind),
                  *self._strategy.arguments(self._folder), "--device", self._device, "-o", plan)
        self._run("oriel-run", plan, "--data", self._golden / "data", "--no-shuffle", "--steps",
                  steps, "-n", self._strategy.ranks, "--comm", self._comm, "--metrics", metrics,
                  *arguments)
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def _recipe(self, kind: str) -> pathlib.Path:
        """The golden's, with other microbatches where the strategy wants them."""
        text = (self._golden / f"recipe_{kind}.yaml").read_text()
        text = text.replace(self._batch.group(), f"global: {self.samples}, micro: {self._micro}")
        text = re.sub(r"^precision: .*\n", "", text, flags=re.MULTILINE) + f"precision: {self._precision}\n"
        path = self._folder / f"recipe_{kind}.yaml"
        path.write_text(text.replace("frozen: []", f"frozen: {self._frozen}"))
        return path

    def compare(self, expected: "Measurement") -> dict[str, float]:
        """The largest differences, by the keys of LIMITS."""
        if set(self.gradients) != set(expected.gradients):
            raise StrategyError(self._strategy, "other gradients than on one rank")
        norms = {name: numpy.linalg.norm(gradient.astype(numpy.float64))
                 for name, gradient in expected.gradients.items()}
        total = numpy.sqrt(sum(norm**2 for norm in norms.values()))
        if not numpy.isfinite(total):
            raise StrategyError(self._strategy, "one rank has gradients that are no numbers to compare with")
        share = ZERO_SHARE if self._precision == "f32" else BF16_ZERO_SHARE
        compared = [name for name, norm in norms.items() if norm >= share * total]
        if len(compared) < 0.8 * len(norms):
            raise StrategyError(self._strategy, f"only {len(compared)} gradients are not zero")
        # Not Python's max, which forgets a NaN.
        return {
            "gradient": float(numpy.max([relative_error(self.gradients[name], expected.gradients[name])
                                         for name in compared])),
            "parameter": float(numpy.max([numpy.abs(self.parameters[name] - value).max()
                                          for name, value in expected.parameters.items()])),
            "loss": float(numpy.max([abs(actual - wanted) / (abs(wanted) or 1)
                                     for actual, wanted in zip(self.losses, expected.losses, strict=True)])),
        }


class OneRank:
    """Strategies of one model against one rank, which is measured once for each size of a step.
    Files go to folders of their own in `folder`."""

    def __init__(self, model: str, folder: pathlib.Path, frozen: str = "[]", precision: str = "f32",
                 adamw_steps: int = 20):
        self._model = model
        self._folder = folder
        self._frozen = frozen
        self._precision = precision
        self._adamw_steps = adamw_steps
        self._measured: dict[int, Measurement] = {}

    def measure(self, strategy, samples: int | None = None, precision: str | None = None, **options) -> Measurement:
        folder = self._folder / str(len(list(self._folder.iterdir())))
        folder.mkdir()
        return Measurement(self._model, strategy, folder, samples, self._frozen, precision or self._precision,
                           adamw_steps=self._adamw_steps, **options)

    def compare_precisions(self) -> dict[str, float]:
        """One rank against one rank in f32."""
        measured = self.measure(Strategy())
        self._measured[measured.samples] = measured
        return measured.compare(self.measure(Strategy(), precision="f32"))

    def compare(self, strategy, **options) -> tuple[dict[str, float], Measurement]:
        """The differences, by the keys of LIMITS, and what was measured; with the options of Measurement."""
        measured = self.measure(strategy, **options)
        samples = measured.samples
        if samples not in self._measured:
            self._measured[samples] = self.measure(Strategy(), samples)
        return measured.compare(self._measured[samples]), measured
