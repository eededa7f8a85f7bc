"""What a user gets wrong: one clear error that names the place and the remedy, nothing written."""

import zlib

import numpy
from oriel_testing import DATA, GOLDEN, MODEL, OrielTestCase, read_shards, run, write_shard


class BadInputTest(OrielTestCase):
    def compile_fails(self, *texts: str, model=MODEL, recipe=GOLDEN / "recipe_sgd.yaml", world=1):
        plan = self.folder / "bad.oplan"
        result = run("oriel", "compile", model, "--recipe", recipe, "--mesh", f"dp={world}", "-o", plan)
        self.assert_fails(result, *texts)
        self.assertFalse(list(self.folder.glob("bad*")), "something was written")

    def strategy_fails(self, text: str, *texts: str, options=()):
        """`text` as a strategy file, beside other options."""
        strategy = self.folder / "strategy.yaml"
        strategy.write_text(text)
        result = run("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_sgd.yaml", "--strategy", strategy,
                     *options, "-o", self.folder / "bad.oplan")
        self.assert_fails(result, *texts)
        self.assertFalse(list(self.folder.glob("bad*")), "something was written")

    def run_fails(self, plan, *texts: str, data=DATA, world: int = 1):
        self.assert_fails(
            run("oriel-run", plan, "--data", data, "-n", world, "--no-shuffle", "--steps", 2), *texts)

    def shards(self, change) -> "pathlib.Path":
        samples = read_shards(DATA, 16)
        change(samples[3])
        data = self.folder / "data"
        data.mkdir()
        write_shard(data / "shard.tar", samples)
        return data

    def test_truncated_onnx(self):
        model = self.folder / "model.onnx"
        model.write_bytes(MODEL.read_bytes()[:100000])
        self.compile_fails("model.onnx", model=model)

    def test_missing_onnx(self):
        self.compile_fails("nowhere.onnx", model=self.folder / "nowhere.onnx")

    def test_unbound_dimension(self):
        result = run("oriel", "import", MODEL)
        self.assert_fails(result, "batch", "--bind")

    def test_unknown_bind(self):
        result = run("oriel", "import", MODEL, "--bind", "bacth=2")
        self.assert_fails(result, "bacth", "batch")

    def test_recipe_typo(self):
        recipe = self.recipe("recipe_sgd.yaml", ("optimizer:", "optimiser:"))
        self.compile_fails("optimiser", "optimizer", "recipe_sgd.yaml:", recipe=recipe)

    def test_recipe_of_another_model(self):
        recipe = self.recipe("recipe_sgd.yaml", ("logits: logits", "logits: scores"))
        self.compile_fails("scores", "logits", recipe=recipe)

    def test_pattern_that_matches_nothing(self):
        recipe = self.recipe("recipe_sgd.yaml", ("frozen: []", 'frozen: ["*vision_towel*"]'))
        self.compile_fails("*vision_towel*", recipe=recipe)

    def test_wrong_shape_in_a_shard(self):
        def change(sample):
            sample["pixel_values"] = numpy.zeros((1, 14, 14), "f4")

        self.run_fails(self.compile(GOLDEN / "recipe_sgd.yaml"), "shard.tar", "000003", "pixel_values",
                       "[1, 14, 14]", "[1, 28, 28]", data=self.shards(change))

    def test_missing_input_in_a_shard(self):
        self.run_fails(self.compile(GOLDEN / "recipe_sgd.yaml"), "shard.tar", "000003", "labels",
                       data=self.shards(lambda sample: sample.pop("labels")))

    def test_folder_without_shards(self):
        self.run_fails(self.compile(GOLDEN / "recipe_sgd.yaml"), ".tar", data=GOLDEN)

    def test_truncated_plan(self):
        plan = self.compile(GOLDEN / "recipe_sgd.yaml")
        plan.write_bytes(plan.read_bytes()[:-1000])
        self.run_fails(plan, "truncated")
        self.assert_fails(run("oriel", "verify", plan), "truncated")

    def test_newer_plan(self):
        plan = self.compile(GOLDEN / "recipe_sgd.yaml")
        content = bytearray(plan.read_bytes())
        # Magic, then format version and minimum reader version, four bytes each; the header's
        # checksum is its last four bytes.
        content[8:16] = b"\x63\0\0\0\x63\0\0\0"
        content[28:32] = zlib.crc32(content[:28]).to_bytes(4, "little")
        plan.write_bytes(content)
        self.run_fails(plan, "newer", "99")

    def test_wrong_number_of_ranks(self):
        self.run_fails(self.compile(GOLDEN / "recipe_sgd.yaml", 2), "-n 3", "2", world=3)

    def test_batch_that_does_not_divide(self):
        self.compile_fails("global batch of 8", "batch.micro", world=3)

    def test_strategy_typo(self):
        self.strategy_fails("mesh: {dp: 2, tpp: 2}", "strategy.yaml:1:15", "tpp", "did you mean 'tp'")

    def test_strategy_with_a_larger_mesh_than_the_world(self):
        self.strategy_fails("mesh: {dp: 4, tp: 2}", "--world 4", "8 ranks", options=("--world", 4))

    def test_strategy_of_another_kind(self):
        self.strategy_fails("", "strategy.yaml", "must be a mapping")
        self.strategy_fails("mesh: [2, 2]", "strategy.yaml:1:7", "'mesh' must be a mapping")
        self.strategy_fails("mesh: {dp: 2\n", "strategy.yaml:")
        self.strategy_fails("\0\x07", "strategy.yaml")

    def test_missing_strategy(self):
        result = run("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_sgd.yaml",
                     "--strategy", self.folder / "nowhere.yaml", "-o", self.folder / "bad.oplan")
        self.assert_fails(result, "can't read the strategy", "nowhere.yaml")

    def test_strategy_with_a_batch_that_does_not_divide(self):
        self.strategy_fails("mesh: {dp: 3}", "global batch of 8", "batch.micro")
