"""Memory of a rank, as `oriel inspect` says it: the arena against what is in use, and what it is for."""

import json

from oriel_testing import MODEL, SOURCE, OrielTestCase, losses

MODELS = SOURCE / "models"
SKELETONS = MODELS / "skeletons"
# What splits work over ranks, and what is frozen is the recipe's.
STRATEGIES = {
    "one rank": [],
    "dp": ["--mesh", "dp=2"],
    "tp and sp": ["--mesh", "tp=2", "--sp"],
    "all of zero": ["--mesh", "dp=2", "--zero", 3],
    "zero, tp and sp": ["--mesh", "dp=2,tp=2", "--zero", 2, "--sp"],
}
PARTS = {"parameters", "gradients", "optimizer_state", "stash", "temporaries", "communication", "other"}

# Of llava_tiny, by ranks: what is in flight, in pieces, or handed over.
POISONED = (
    (1, []),
    (2, ["--mesh", "dp=2", "--zero", 3]),
    (4, ["--mesh", "dp=2,tp=2", "--zero", 1, "--sp"]),
    (2, ["--stages", 2, "--schedule", "1f1b", "--microbatches", 4]),
    (2, ["--stages", 2, "--schedule", "zb-h1", "--microbatches", 4]),
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

    def check_strategies(self, folder, recipe=None) -> None:
        for name, options in STRATEGIES.items():
            # CLIP's loss compares the samples with each other.
            if folder.name.startswith("clip") and "dp=2" in " ".join(map(str, options)):
                continue
            self.check(self.inspect(folder, *options, recipe=recipe), f"{folder.name}, {name}")

    def test_tiny_models(self):
        for name in ("clip_tiny", "llava_tiny", "llava_deep", "qwen_vl_tiny"):
            self.check_strategies(MODELS / name)

    def test_skeletons(self):
        for folder in sorted(path.parent for path in SKELETONS.glob("*/model.onnx")):
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
