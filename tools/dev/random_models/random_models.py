#!/usr/bin/env python3
"""Makes small random ONNX models, trains each on one rank and under random strategies, and compares.

    tools/dev/random_models/random_models.py [--seed N] [--count N | --seconds N] [--strategies N] [--keep DIR] [--whole DIR] [--bin DIR]
    tools/dev/random_models/random_models.py --seed N --reduce K --keep DIR       # the smallest model that still fails under strategy K of seed N

A model (model_kinds.py) and its strategies depend on the seed alone. On one rank, the loss must be that of onnx's reference evaluator in f64, and
gradients must agree with differences of such losses. Under a strategy, losses of two steps and every gradient of the first must be those of one rank.
What fails is kept in a folder of `--keep`, with its command lines. A refusal must be a message; they are counted, for a person to read. The exit
status is 1 if something failed. It needs the Python packages onnx, numpy and PyYAML (tools/setup.sh --python).
"""

import argparse
import collections
import dataclasses
import itertools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import numpy
import onnx

HERE = pathlib.Path(__file__).resolve()
SOURCE = HERE.parents[3]
sys.path[:0] = [str(HERE.parent), str(SOURCE / "tests" / "e2e")]

import reference  # noqa: E402
from model_kinds import RandomModel, random_model  # noqa: E402
from model_parts import Choices  # noqa: E402
from oriel_testing import read_safetensors, relative_error, write_shard  # noqa: E402

SAMPLES = 8  # of a step
STEPS = 2
TIMEOUT = 120
# Relative; the last: of the global norm, below which a gradient is rounding.
LOSS, GRADIENT, ZERO = 1e-5, 2e-5, 1e-6
# Times what the last bits of parameters change, where that is more.
SLACK = 8
# Against f64: of the loss, and of a difference of losses.
REFERENCE_LOSS, REFERENCE_SLOPE = 1e-4, 2e-3
BROKEN = re.compile(r"Assertion|Stack dump|UNREACHABLE|LLVM ERROR|AddressSanitizer|terminate called|(?i:internal)|"
                    r"failed to verify|pass .* failed")
# Parameters that are whole on each rank of `tp: 2`, of all, from which on a model is noted.
WHOLE = 0.25


@dataclasses.dataclass(frozen=True)
class Strategy:
    text: str
    options: tuple[str, ...]
    copies: int
    microbatches: int

    @property
    def micro(self) -> int:
        return SAMPLES // self.microbatches // self.copies


ONE_RANK = Strategy("mesh: {dp: 1}\n", (), 1, 1)


class Failure(Exception):
    def __init__(self, kind: str, message: str):
        super().__init__(f"{kind}: {message}")
        self.kind, self.message = kind, message

    @property
    def signature(self) -> str:
        """What another failure has if it is the same."""
        if self.kind in ("MISMATCH", "SLOPE", "REFERENCE", "HANG"):
            return self.kind
        return f"{self.kind} " + normal(self.message)


def normal(message: str) -> str:
    """Without names and numbers."""
    message = re.sub(r"/\S*/", "", message)
    message = re.sub(r"'[^']*'|\"[^\"]*\"", "'..'", message)
    return re.sub(r"[0-9]+", "N", message)[:220]


def draw_strategy(choices: Choices, number: int, modules: list[str], towers: list[str], of_tokens: bool) -> Strategy:
    def pick(name, *options):
        return choices.pick(f"strategy.{number}.{name}", *options)

    meshes = ("tp=2", "tp=2", "tp=2", "tp=4", "tp=4", "dp=2", "dp=4", "cp=2", "cp=2", "dp=2,tp=2", "dp=2,tp=2", "cp=2,tp=2",
              "dp=2,cp=2", "fsdp=2,tp=2", "dp=2,fsdp=2", "tp=3", "tp=8", "cp=4", "dp=2,cp=2,tp=2", "", "")
    mesh = "tp=2" if number == 0 else pick("mesh", *meshes)
    if "cp" in mesh and not of_tokens and pick("cp_of_others", *[False] * 9, True) is False:
        mesh = mesh.replace("cp=", "tp=")
    sizes = {axis: int(size) for axis, size in (part.split("=") for part in mesh.split(",") if part)}
    stages = 1 if number == 0 else 2 if not mesh else pick("stages", 1, 1, 1, 1, 2) if numpy.prod(list(sizes.values())) <= 4 else 1
    sizes = sizes or {"dp": 1}
    if stages > 1 and len(towers) == 2 and "language" in towers and pick("stage_meshes", False, False, True):
        first, second = pick("stage_mesh", ("dp: 2", "tp: 2"), ("tp: 2", "tp: 4"), ("dp: 1", "tp: 2"), ("dp: 2", "dp: 4"))
        order = [("language", first), (towers[0], second)] if towers[0] in ("dit", "expert") else [("vision", first), ("language", second)]
        text = "stages:\n" + "".join(f"  - {{blocks: {name}, mesh: {{{mesh}}}}}\n" for name, mesh in order)
        copies = min(int(mesh.split(": ")[1]) if "dp" in mesh else 1 for _, mesh in order)
        return Strategy(text + f"schedule: {pick('schedule', '1f1b', 'gpipe', 'zb-h1')}\n", (), copies, 2)
    copies, ranks = sizes.get("dp", 1) * sizes.get("fsdp", 1), int(numpy.prod(list(sizes.values())))
    microbatches = 1 if number == 0 else pick("microbatches", 2, 2, 2, 4) if stages > 1 else pick("microbatches", 1, 1, 1, 2)
    microbatches = min(microbatches, SAMPLES // copies)
    lines = ["mesh: {" + ", ".join(f"{axis}: {size}" for axis, size in sizes.items()) + "}"]
    if copies > 1 or "cp" in sizes:
        lines.append(f"zero: {pick('zero', 1, 2, 3) if 'fsdp' in sizes else pick('zero', 0, 1, 2, 3)}")
    if "tp" in sizes and number and pick("sp", False, True):
        lines.append("sequence_parallel: true")
    if "tp" in sizes and number and pick("padding", False, True):
        lines.append("padding: true")
    if stages > 1:
        schedule = pick("schedule", "1f1b", "gpipe", "zb-h1", "interleaved")
        lines += [f"stages: {4 if schedule == 'interleaved' else 2}", f"schedule: {schedule}"]
        lines += pick("placement", [], [], [], ["placement: dp_outermost"])
    elif number and modules and SAMPLES // microbatches >= ranks > 1 and SAMPLES % ranks == 0 and pick("module", False, False, False, True):
        lines.append(f'modules: {{part: {{parameters: ["{pick("module_is", *modules)}.*"], mesh: {{dp: {ranks}}}}}}}')
    if number:
        lines += pick("remat", [], [], ["remat: full"], ["remat: selective"])
        lines += pick("overlap", [], [], ["overlap: false"], ["overlap: {bucket: 4 KiB, prefetch: 8 KiB}"])
    often_of = {"--fuse-loss": 4, "--generated-kernels=on": 4, "--fuse-kernels=off": 8, "--unfused=attention": 8, "--unfused=experts": 8}
    options = [option for option, often in often_of.items() if number and pick(option, *[False] * (often - 1), True)]
    return Strategy("\n".join(lines) + "\n", tuple(options), copies, microbatches)


def errors_of(measured: dict, expected: dict) -> dict[str, float]:
    """Of gradients that are more than rounding, and of losses, these times GRADIENT / LOSS."""
    norms = {name: float(numpy.linalg.norm(gradient.astype("f8"))) for name, gradient in expected["gradients"].items()}
    least = ZERO * numpy.sqrt(sum(norm**2 for norm in norms.values()))
    errors = {name: relative_error(measured["gradients"][name], gradient) for name, gradient in expected["gradients"].items() if norms[name] > least}
    for step, (own, whole) in enumerate(zip(measured["losses"], expected["losses"], strict=True)):
        errors[f"loss of step {step}"] = abs(own - whole) / max(abs(whole), 1e-2) * GRADIENT / LOSS
    return errors


class Trials:
    """Of one seed, in a folder with the model, its data, and a plan and numbers for each strategy."""

    def __init__(self, binaries: pathlib.Path, folder: pathlib.Path, seed: str, fixed: dict[str, int] | None = None):
        self._bin, self.folder = binaries, folder
        self.choices = Choices(seed, fixed)
        self.commands: list[str] = []
        self.warnings: list[str] = []
        self._one_rank: dict[tuple, dict] = {}
        self.model: RandomModel = random_model(self.choices)
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "data").mkdir(parents=True)
        onnx.save(self.model.graph.model(), folder / "model.onnx")
        self.samples = self._draw_samples(seed)
        write_shard(folder / "data" / "0.tar", self.samples)
        tops = sorted({name.split(".")[0] for name in self.model.graph.used_parameters()})
        self._modules = [top for top in tops if top in ("vision", "expert", "dit", "language")]
        # Those of two layers at least: others have no name in a list of stages.
        self._towers = [top for top in self._modules if any(name.startswith(f"{top}.layers.1.") for name in self.model.graph.used_parameters())]
        self._frozen = self._draw_frozen()

    def _draw_samples(self, seed: str) -> list[dict[str, numpy.ndarray]]:
        rng = numpy.random.default_rng(int(seed))
        samples = []
        for _ in range(STEPS * SAMPLES):
            sample = {i.name: numpy.asarray(i.draw(rng), i.dtype) for i in self.model.graph.inputs.values()}
            if self.model.labels:
                labels = rng.integers(0, self.model.labels, self.model.length)
                sample["labels"] = numpy.where(rng.random(self.model.length) < 0.2, -100, labels)
            samples.append(sample)
        return samples

    def _draw_frozen(self) -> list[str]:
        names = self.model.graph.used_parameters()
        kind = self.choices.pick("frozen", *["none"] * 6, "norms", "module", "first", "biases", "embed")
        patterns = {"none": [], "norms": ["*norm*"], "module": [f"{name}.*" for name in self._modules[-1:]] if len(self._modules) > 1 else [],
                    "first": ["*layers.0.*"], "biases": ["*bias"], "embed": ["*embed.weight"]}[kind]
        return [pattern for pattern in patterns if any(pathlib.PurePath(name).match(pattern) for name in names)]

    def strategy(self, number: int) -> Strategy:
        return draw_strategy(self.choices, number, self._modules, self._towers, self.model.of_tokens)

    def _run(self, binary: str, *arguments) -> str:
        """What it says on stderr."""
        command = [str(self._bin / binary), *map(str, arguments)]
        self.commands.append(shlex.join(command).replace(str(self.folder), "."))
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Failure("HANG", f"{binary} ran for {TIMEOUT} s") from None
        if result.returncode == 0:
            return result.stderr + result.stdout
        errors = [line for line in result.stderr.splitlines() if "error: " in line]
        if result.returncode not in (1, 2) or not errors or BROKEN.search(result.stderr):
            raise Failure("CRASH", f"{binary} {result.returncode}: {(errors or [''])[0]} | {result.stderr[-1500:]}")
        raise Failure("REFUSED" if binary == "oriel" else "DIVERGED" if "not finite" in errors[0] else "RUN", errors[0])

    def recipe(self, strategy: Strategy, name: str) -> pathlib.Path:
        path = self.folder / f"{name}.recipe.yaml"
        frozen = f"parameters: {{frozen: [{', '.join(json.dumps(pattern) for pattern in self._frozen)}]}}\n" if self._frozen else ""
        path.write_text(f"model: {{bind: {{batch: micro_batch}}}}\n{self.model.recipe}{frozen}optimizer: {{kind: sgd, lr: 1.0e-2, clip_norm: 1.0}}\n"
                        f"batch: {{global: {SAMPLES}, micro: {strategy.micro}}}\nsteps: {STEPS}\n")
        return path

    def compile(self, strategy: Strategy, name: str, *options: str, model: str = "model.onnx") -> str:
        (self.folder / f"{name}.yaml").write_text(strategy.text)
        return self._run("oriel", "compile", self.folder / model, "--recipe", self.recipe(strategy, name), "--strategy",
                         self.folder / f"{name}.yaml", *strategy.options, *options, "-o", self.folder / f"{name}.oplan")

    def measure(self, strategy: Strategy, name: str, model: str = "model.onnx") -> dict:
        said = self.compile(strategy, name, model=model)
        self.warnings += [line for line in said.splitlines() if "warning: " in line]
        gradients, metrics = (self.folder / f"{name}.{end}" for end in ("safetensors", "jsonl"))
        self._run("oriel-run", self.folder / f"{name}.oplan", "--data", self.folder / "data", "--no-shuffle", "--threads", 1, "--poison-dead-memory",
                  "--dump-gradients", gradients, "--metrics", metrics)
        return {"gradients": read_safetensors(gradients), "losses": [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]}

    def one_rank(self, microbatches: int) -> dict:
        if microbatches not in self._one_rank:
            strategy = dataclasses.replace(ONE_RANK, microbatches=microbatches)
            self._one_rank[microbatches] = self.measure(strategy, f"one_rank_{microbatches}")
        return self._one_rank[microbatches]

    def check_one_rank(self):
        """Against the reference evaluator."""
        measured = self.one_rank(1)
        if not all(numpy.isfinite(gradient).all() for gradient in measured["gradients"].values()):
            raise Failure("DIVERGED", "error: gradients of one rank are not finite")
        found = reference.compare(self.folder / "model.onnx", self.samples[:SAMPLES], self.model, measured, REFERENCE_SLOPE)
        if found is None:
            return
        loss, slope, where = found
        if not loss <= REFERENCE_LOSS:
            raise Failure("REFERENCE", f"the loss is off by {loss:.2g}")
        if not slope <= REFERENCE_SLOPE:
            rounding = max(self._rounding(1, measured).values())
            if slope <= SLACK * rounding:
                raise Failure("ROUNDING", f"{slope:.2g}, and {rounding:.2g} by the last bits of parameters")
            raise Failure("SLOPE", f"the derivative along a direction is off by {slope:.2g}; {where}")

    def check(self, number: int):
        """Under a strategy, against one rank."""
        strategy = self.strategy(number)
        expected = self.one_rank(strategy.microbatches)
        measured = self.measure(strategy, f"strategy_{number}")
        if measured["gradients"].keys() != expected["gradients"].keys():
            raise Failure("MISMATCH", f"other gradients: {sorted(measured['gradients'].keys() ^ expected['gradients'].keys())}")
        errors = errors_of(measured, expected)
        wrong = [name for name in errors if not errors[name] <= GRADIENT]
        if not wrong:
            return
        rounding = self._rounding(strategy.microbatches, expected)
        wrong = [name for name in wrong if not errors[name] <= SLACK * rounding[name]]
        if not wrong:
            raise Failure("ROUNDING", f"{max(errors.values()):.2g}")
        wrong.sort(key=lambda name: -numpy.nan_to_num(errors[name], nan=numpy.inf))
        raise Failure("MISMATCH", f"{errors[wrong[0]]:.2g} in {len(wrong)} of {len(errors)}: " +
                      ", ".join(f"{name} {errors[name]:.2g}" for name in wrong[:6]))

    def _rounding(self, microbatches: int, expected: dict) -> dict[str, float]:
        """What one rank's numbers change by if those of the model do by their last bit."""
        found: dict[str, float] = collections.defaultdict(float)
        for seed in range(3):
            model, rng = onnx.load(self.folder / "model.onnx"), numpy.random.default_rng(seed)
            for tensor in model.graph.initializer:
                if tensor.data_type == onnx.TensorProto.FLOAT:
                    value = onnx.numpy_helper.to_array(tensor)
                    value = value * (1 + 1.2e-7 * rng.choice([-1, 0, 1], value.shape)).astype("f4")
                    tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
            onnx.save(model, self.folder / "rounded.onnx")
            measured = self.measure(dataclasses.replace(ONE_RANK, microbatches=microbatches), "rounded", "rounded.onnx")
            for name, error in errors_of(measured, expected).items():
                found[name] = max(found[name], error)
        return found

    def parameter_bytes(self, name: str) -> int:
        plan = json.loads(subprocess.run([self._bin / "oriel", "inspect", self.folder / f"{name}.oplan", "--json"],
                                         capture_output=True, text=True, timeout=TIMEOUT, check=True).stdout)
        return plan["programs"][0]["bytes_by_kind"]["parameter"]

    def whole_share(self) -> float:
        """Of parameters, under the first strategy, which is `tp: 2`."""
        return 2 * self.parameter_bytes("strategy_0") / self.parameter_bytes("one_rank_1") - 1


def keep(trials: Trials, folder: pathlib.Path, number: int | None, failure: Failure):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(trials.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.oplan", "*.weights.safetensors"))
    (folder / "README").write_text(f"seed {trials.choices.seed}, strategy {number}\n{failure}\n\n" + "\n".join(trials.commands) + "\n")
    chosen = {name: option for name, option in trials.choices.drawn.items() if option}
    (folder / "choices.json").write_text(json.dumps(chosen, indent=1))


def failure_of(options, seed: str, number: int | None, fixed: dict[str, int], folder: pathlib.Path) -> tuple[Failure | None, Trials | None]:
    """`number`: of a strategy; None: one rank."""
    try:
        trials = Trials(options.bin, folder, seed, fixed)
    except Exception:  # noqa: BLE001: not every set of choices is a model
        return None, None
    try:
        if number is None:
            trials.check_one_rank()
        else:
            trials.check(number)
    except Failure as failure:
        return failure, trials
    return None, trials


def reduce(options, seed: str, number: int | None, folder: pathlib.Path):
    """Sets choices to their first options as long as it fails alike; kept in a folder of its own."""
    first, trials = failure_of(options, seed, number, dict(options.set), folder)
    if first is None:
        print(f"seed {seed}, strategy {number}: does not fail")
        return
    fixed = dict(options.set)
    changed, end = True, time.monotonic() + options.seconds
    while changed:
        changed = False
        names = [name for name, option in trials.choices.drawn.items() if option and fixed.get(name) != 0 and not (
            name.startswith("strategy.") and not name.startswith(f"strategy.{number}."))]
        for name in sorted(names, key=lambda name: (name.count("."), name)):
            if time.monotonic() > end:
                break
            found, smaller = failure_of(options, seed, number, {**fixed, name: 0}, folder)
            if found and found.signature == first.signature:
                fixed[name], trials, changed = 0, smaller, True
    failure, trials = failure_of(options, seed, number, fixed, folder)
    where = options.keep / f"{seed}_{number}"
    shutil.rmtree(where, ignore_errors=True)
    keep(trials, where, number, failure)
    print(f"{where}: {failure}\n{(where / 'choices.json').read_text()}\n{trials.strategy(number) if number is not None else ''}", flush=True)


def run_seed(options, seed: int, folder: pathlib.Path, counts: collections.Counter, refused: collections.Counter):
    try:
        trials = Trials(options.bin, folder, str(seed), dict(options.set))
    except Exception as error:  # noqa: BLE001: a fault of the grammar
        print(f"BAD MODEL {seed}: {type(error).__name__} {str(error)[:300]}", flush=True)
        counts["bad models"] += 1
        return
    counts["models"] += 1
    for number in (None, *range(options.strategies)):
        try:
            if number is None:
                trials.check_one_rank()
            else:
                counts["strategies"] += 1
                trials.check(number)
            counts["one rank as the reference" if number is None else "as one rank"] += 1
        except Failure as failure:
            counts[failure.kind if number is not None else f"one rank: {failure.kind}"] += 1
            if failure.kind == "REFUSED":
                refused[normal(failure.message)] += 1
                if options.refusals:
                    strategy = trials.strategy(number).text.splitlines()[0] if number is not None else "one rank"
                    print(f"REFUSED {seed} {number} {strategy} {failure.message[:700]}", flush=True)
            elif failure.kind not in ("ROUNDING", "DIVERGED"):
                print(f"FAILED seed {seed} ({trials.model.kind}) strategy {number}: {failure}\n" +
                      (f"{trials.strategy(number)}\n" if number is not None else ""), flush=True)
                if options.keep:
                    keep(trials, options.keep / f"{seed}_{number}", number, failure)
            if number is None and failure.kind not in ("SLOPE", "REFERENCE", "ROUNDING"):
                return
            continue
        if options.verbose:
            print(f"ok {seed} {number}", flush=True)
        if number == 0 and (share := trials.whole_share()) > WHOLE:
            counts["more than a quarter whole"] += 1
            print(f"WHOLE seed {seed} ({trials.model.kind}): {share:.0%} of the parameters", flush=True)
            if options.whole:
                options.whole.mkdir(parents=True, exist_ok=True)
                (options.whole / f"{seed}.txt").write_text(f"{share:.0%} whole\n{why_whole(trials)}")


def why_whole(trials: Trials) -> str:
    """Parameters that are whole on each rank of `tp: 2`, the largest first; choices; and what --explain-sharding says of what is not split."""
    said = trials.compile(trials.strategy(0), "strategy_0", "--explain-sharding", "--dump-after=propagate")
    found: dict[str, int] = collections.Counter()
    for line in said.splitlines():
        if (match := re.search(r'oriel.parameter @.*onnx_name = "([^"]*)".* type = tensor<([0-9x]*)x[a-z]', line)) and "use = " not in line:
            found[match[1]] += int(numpy.prod([int(size) for size in match[2].split("x")]))
    total = sum(trials.model.graph.parameters[name].size for name in trials.model.graph.used_parameters())
    lines = [f"  {size / total:6.1%} {name} {trials.model.graph.parameters[name].shape}" for name, size in found.most_common(16)]
    chosen = {name: option for name, option in trials.choices.drawn.items() if option}
    why = dict.fromkeys(line for line in said.splitlines() if "is not split" in line or "warning: " in line)
    return "\n".join([*lines, json.dumps(chosen), *why, ""])


def choice(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    return name, int(number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the first model; the next ones count from there")
    parser.add_argument("--count", type=int, help="models, however long they take")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--strategies", type=int, default=6, help="of each model; the first is tp: 2 (6)")
    parser.add_argument("--keep", type=pathlib.Path, help="where what fails is kept, a folder for each")
    parser.add_argument("--whole", type=pathlib.Path, help="where it is kept why more than a quarter of a model is whole with tp: 2")
    parser.add_argument("--refusals", action="store_true", help="print each refusal")
    parser.add_argument("--set", type=choice, action="append", default=[], metavar="NAME=NUMBER",
                        help="an option of a choice of the model or of a strategy")
    parser.add_argument("--verbose", action="store_true", help="print what is as it should be, too")
    parser.add_argument("--reduce", metavar="K", help="make the model of --seed smaller that fails under strategy K, or on one rank (None)")
    parser.add_argument("--bin", type=pathlib.Path, default=SOURCE / "build" / "dev" / "bin")
    options = parser.parse_args()
    counts, refused = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="oriel_models_") as scratch:
        folder = pathlib.Path(scratch) / "model"
        if options.reduce:
            options.keep = options.keep or pathlib.Path("reduced")
            reduce(options, str(options.seed), None if options.reduce == "None" else int(options.reduce), folder)
            return 1
        end = time.monotonic() + options.seconds
        for seed in itertools.count(options.seed):
            run_seed(options, seed, folder, counts, refused)
            if seed - options.seed + 1 == options.count or (options.count is None and time.monotonic() > end):
                break
    print(f"seeds {options.seed} to {seed}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    for message, count in refused.most_common():
        print(f"  {count:4} {message}")
    return 1 if any(counts[kind] for kind in counts if kind.split(": ")[-1] in ("MISMATCH", "SLOPE", "REFERENCE", "HANG", "CRASH", "RUN")) else 0


if __name__ == "__main__":
    sys.exit(main())
