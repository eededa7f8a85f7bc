"""Memory of a rank, as `oriel inspect` says it: the arena against what is in use, and what it is for."""

import json
import pathlib
import subprocess
import sys

import numpy
import onnx_writer
from oriel_testing import ENVIRONMENT, MODEL, SOURCE, OrielTestCase, command, losses, write_shard

MODELS = SOURCE / "models"
SKELETONS = MODELS / "skeletons"
# What splits work over ranks, and what is frozen is the recipe's.
STRATEGIES = {
    "one rank": [],
    "dp": ["--mesh", "dp=2"],
    "tp and sp": ["--mesh", "tp=2", "--sp"],
    "all of zero": ["--mesh", "dp=2", "--zero", 3],
    "zero, tp and sp": ["--mesh", "dp=2,tp=2", "--zero", 2, "--sp"],
    "1f1b": ["--stages", 2, "--schedule", "1f1b", "--microbatches", 4],
    "gpipe": ["--stages", 2, "--schedule", "gpipe", "--microbatches", 4, "--mesh", "tp=2", "--sp"],
    "zb-h1": ["--stages", 2, "--schedule", "zb-h1", "--microbatches", 4],
    "interleaved": ["--stages", 4, "--schedule", "interleaved", "--microbatches", 4],
}
# More in flight than two stages have; several stages on a grid, whose copies take turns.
IN_FLIGHT = {
    **{f"{kind} of 4": ["--stages", 4, "--schedule", kind, "--microbatches", 8] for kind in ("gpipe", "1f1b", "zb-h1")},
    "interleaved, 8 microbatches": ["--stages", 4, "--schedule", "interleaved", "--microbatches", 8],
    "zb-h1, tp and selective": ["--stages", 4, "--schedule", "zb-h1", "--microbatches", 8, "--mesh", "tp=2", "--sp", "--remat", "selective"],
}
PARTS = {"parameters", "gradients", "optimizer_state", "stash", "temporaries", "communication", "other"}

# Of llava_tiny, by ranks: what is in flight, in pieces, or handed over.
POISONED = (
    (1, ["--mesh", "dp=1"]),
    (2, ["--mesh", "dp=2", "--zero", 3]),
    (2, ["--mesh", "dp=2", "--zero", 3, "--remat", "full"]),
    (4, ["--mesh", "dp=2,tp=2", "--zero", 1, "--sp"]),
    (2, ["--stages", 2, "--schedule", "1f1b", "--microbatches", 4]),
    (2, ["--stages", 2, "--schedule", "zb-h1", "--microbatches", 4]),
    (4, ["--stages", 2, "--schedule", "zb-h1", "--microbatches", 4, "--mesh", "tp=2", "--sp", "--remat", "selective"]),
    (2, ["--stages", 4, "--schedule", "interleaved", "--microbatches", 4]),
    (4, ["--stages", 2, "--schedule", "gpipe", "--microbatches", 4, "--mesh", "tp=2", "--sp"]),
)


class MemoryTest(OrielTestCase):
    def inspect(self, folder, *options, recipe=None) -> list[dict]:
        """The programs of the plan of a model."""
        plan = self.folder / "plan.oplan"
        self.run_ok("oriel", "compile", folder / "model.onnx", "--recipe", recipe or folder / "recipe.yaml",
                    *options, "-o", plan)
        return json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"]

    def check(self, programs: list[dict], what: str) -> None:
        for program in programs:
            arena, memory = program["arena_bytes"], program["memory"]
            peak = memory["peak_bytes"]
            self.assertLessEqual(peak, arena, what)
            self.assertLessEqual(arena, 1.05 * peak, f"{what}: {memory}")
            self.assertEqual(set(memory["parts"]), PARTS)
            self.assertEqual(sum(memory["parts"].values()), peak, what)
            held = [holder["bytes"] for holder in memory["largest"]]
            self.assertEqual(held, sorted(held, reverse=True))

    def check_strategies(self, folder, recipe=None, strategies=STRATEGIES) -> None:
        for name, options in strategies.items():
            # CLIP's loss compares the samples with each other.
            if folder.name.startswith("clip") and name not in ("one rank", "tp and sp"):
                continue
            self.check(self.inspect(folder, *options, recipe=recipe), f"{folder.name}, {name}")

    def test_tiny_models(self):
        for name in ("clip_tiny", "llava_tiny", "llava_deep", "qwen_vl_tiny"):
            self.check_strategies(MODELS / name)

    def test_more_in_flight(self):
        for name in ("llava_tiny", "llava_deep"):
            self.check_strategies(MODELS / name, strategies=IN_FLIGHT)

    def test_skeletons(self):
        folders = sorted(path.parent for path in SKELETONS.glob("*/model.onnx"))
        self.assertTrue(folders)
        for folder in folders:
            self.check_strategies(folder)

    def test_frozen_parts(self):
        text = (MODELS / "llava_tiny" / "recipe.yaml").read_text()
        for frozen in ('"model.vision_tower*"', '"model.language_model*", "lm_head*"'):
            recipe = self.folder / "recipe.yaml"
            recipe.write_text(text.replace("frozen: []", f"frozen: [{frozen}]"))
            self.check_strategies(MODELS / "llava_tiny", recipe=recipe)

    def test_dead_memory_holds_nothing(self):
        recipe = self.recipe("recipe_adamw.yaml")
        for ranks, options in POISONED:
            plan = self.folder / "plan.oplan"
            mesh = [] if "--mesh" in options else ["--world", ranks]
            self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, *mesh, *options, "-o", plan)
            runs = [losses(self.train(plan, "--steps", 3, *poison, world=ranks)) for poison in ([], ["--poison-dead-memory"])]
            self.assertEqual(runs[0], runs[1], options)


class ProcessMemoryTest(OrielTestCase):
    """Linear layers, wide or narrow: the same plan but for the size of the arena."""

    LAYERS, WIDE, NARROW = 12, 1600, 16
    RECIPE = """
model: {bind: {batch: micro_batch}}
inputs: {labels: {dtype: int64, shape: [micro_batch]}}
loss: {logits: logits, labels: labels, shift: false}
INIT
optimizer: {kind: adamw, lr: 1.0e-3}
batch: {global: 32, micro: 8}
steps: 2
"""
    INIT = "init: {seed: 0, rules: [{match: ['*'], normal: {std: 0.02}}]}"

    def run_wide(self, width: int, made: bool, options) -> tuple[int, int]:
        """Bytes of all ranks' arenas, and of the process at most."""
        folder = self.folder / f"{width}"
        folder.mkdir(exist_ok=True)
        graph = onnx_writer.Graph()
        graph.input("x", numpy.float32, ["batch", 16])
        graph.output("logits", numpy.float32, ["batch", 16])
        sizes, hidden = [16, *[width] * self.LAYERS, 16], "x"
        with open(folder / "model.onnx.data", "wb") as weights:
            for layer, shape in enumerate(zip(sizes, sizes[1:])):
                last = layer == self.LAYERS
                weight = graph.external_initializer(f"layers.{layer}.weight", shape, "model.onnx.data")
                if not made:
                    numpy.full(shape, 0.01 / shape[0], "f4").tofile(weights)
                hidden = graph.node("MatMul", [hidden, weight], "logits" if last else f"linear_{layer}")
                if not last:
                    hidden = graph.node("Relu", [hidden], f"relu_{layer}")
        (folder / "model.onnx").write_bytes(graph.model())
        if made:
            (folder / "model.onnx.data").unlink()
        (folder / "recipe.yaml").write_text(self.RECIPE.replace("INIT", self.INIT if made else ""))
        data, plan = folder / "data", folder / "plan.oplan"
        data.mkdir(exist_ok=True)
        write_shard(data / "0.tar", [{"x": numpy.full(16, 0.1, "f4"), "labels": numpy.array(i % 16)} for i in range(64)])
        self.run_ok("oriel", "compile", folder / "model.onnx", "--recipe", folder / "recipe.yaml", *options, "-o", plan)
        description = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)
        arenas = sum(program["arena_bytes"] * program["rank_count"] for program in description["programs"])
        train = command("oriel-run", plan, "--data", data, "--threads", 1, "-n", description["world"])
        result = subprocess.run([sys.executable, "-S", "-E", str(pathlib.Path(__file__).with_name("peak_of.py")), *train],
                                capture_output=True, text=True, env=ENVIRONMENT, timeout=100)
        self.assertEqual(result.returncode, 0, result.stderr)
        return arenas, int(result.stdout.splitlines()[-1])

    def check(self, made: bool, *options) -> None:
        wide, narrow = self.run_wide(self.WIDE, made, options), self.run_wide(self.NARROW, made, options)
        arena, process = wide[0] - narrow[0], wide[1] - narrow[1]
        self.assertGreater(arena, 300e6)
        self.assertLess(abs(process / arena - 1), 0.03, f"arenas {arena}, process {process}")

    def test_values_from_a_file(self):
        self.check(False)

    def test_values_that_are_made(self):
        self.check(True)

    def test_two_ranks(self):
        self.check(False, "--mesh", "dp=2", "--zero", 1)

    def test_two_stages(self):
        self.check(True, "--stages", 2, "--microbatches", 4)
