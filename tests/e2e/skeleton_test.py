"""Models without weights: shapes in the file, values from the recipe."""

import resource

import numpy
import yaml
from oriel_testing import SOURCE, OrielTestCase, losses, read_safetensors, run

SKELETONS = SOURCE / "models" / "skeletons"
SMALL = SKELETONS / "llava_small"
# Of those that are checked in, as `oriel import` says it.
PARAMETERS = {
    "clip_vit_b_32": "151 M in 398 tensors",
    "llama_2_7b": "6.74 G in 291 tensors",
    "llava_1_5_7b": "7.05 G in 668 tensors",
    "llava_small": "111 k in 62 tensors",
}


def bindings(skeleton) -> str:
    """What the recipe of a skeleton binds, as --bind takes it."""
    recipe = yaml.safe_load((skeleton / "recipe.yaml").read_text())
    sizes = {"micro_batch": recipe["batch"]["micro"]}
    return ",".join(f"{name}={sizes.get(size, size)}" for name, size in recipe["model"]["bind"].items())


class SkeletonTest(OrielTestCase):
    def write_images(self, samples: int):
        random = numpy.random.default_rng(0)

        def sample():
            ids = random.integers(1, 200, 24)
            ids[1:17] = 250  # the rows of one image
            return {"pixel_values": random.standard_normal((3, 56, 56)).astype("f4"), "input_ids": ids,
                    "labels": numpy.where(ids == 250, -100, ids)}

        return self.write_data("data", [sample() for _ in range(samples)])

    def test_import_of_all_checked_in(self):
        self.assertEqual({path.parent.name for path in SKELETONS.glob("*/model.onnx")}, set(PARAMETERS))
        for name, parameters in PARAMETERS.items():
            skeleton = SKELETONS / name
            result = self.run_ok("oriel", "import", skeleton / "model.onnx", "--bind", bindings(skeleton))
            self.assertIn(f"parameters: {parameters}", result.stdout)
        # Of the largest process; bench/compile_time.py measures more.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, 2 << 30)

    def test_import_says_what_is_missing(self):
        result = self.run_ok("oriel", "import", SMALL / "model.onnx", "--bind", "batch=1,sequence=24")
        self.assertRegex(result.stdout, r"weights: 62 of 62 parameters have none, because \"\S*model.onnx.data\"")
        self.assertIn("add `init` to the recipe", result.stdout)

    def test_init_must_cover_every_parameter(self):
        text = (SMALL / "recipe.yaml").read_text()
        partial = text.replace('- {match: ["*"], normal', '- {match: ["lm_head*"], normal')
        start, end = text.index("init:"), text.index("optimizer:")
        for name, content, count in (("none", text[:start] + text[end:], 59), ("partial", partial, None)):
            path = self.folder / f"{name}.yaml"
            path.write_text(content)
            self.assertNotEqual(content, text)
            plan = self.folder / f"{name}.oplan"
            result = run("oriel", "compile", SMALL / "model.onnx", "--recipe", path, "-o", plan)
            self.assert_fails(result, "the model has no values for \"", "model.onnx.data\" does not exist",
                              "put that file beside the model", "`init`")
            self.assertEqual(result.stderr.count("error:"), 1, result.stderr)
            if count:
                self.assertIn(f"and {count} other parameters", result.stderr)
            self.assertFalse(plan.exists())

    def test_file_that_is_too_short(self):
        model = self.folder / "model.onnx"
        model.write_bytes((SMALL / "model.onnx").read_bytes())
        (self.folder / "model.onnx.data").write_bytes(b"short")
        result = run("oriel", "compile", model, "--recipe", SMALL / "recipe.yaml", "-o", self.folder / "p.oplan")
        self.assert_fails(result, "beyond the end", "truncated")

    def test_trains_and_exports(self):
        plan = self.compile(SMALL / "recipe.yaml", model=SMALL / "model.onnx")
        self.assertEqual([path.suffix for path in self.folder.iterdir()], [".oplan"])
        data, parameters = self.write_images(8), self.folder / "parameters.safetensors"
        checkpoints, exported = self.folder / "checkpoints", self.folder / "exported" / "model.onnx"
        metrics = self.train(plan, "--steps", 4, "--save-dir", checkpoints, "--dump-parameters", parameters,
                             data=data)
        self.assertLess(abs(metrics[0]["loss"] - numpy.log(256)), 0.2)  # knows nothing yet
        self.run_ok("oriel", "export", plan, "--checkpoint", checkpoints, "--to", "onnx", "-o", exported)
        # The exported model has all of its weights: the same recipe without `init` reads them.
        text = (SMALL / "recipe.yaml").read_text()
        recipe = self.folder / "again.yaml"
        recipe.write_text(text[: text.index("init:")] + text[text.index("optimizer:") :])
        again = self.compile(recipe, model=exported, name="again")
        weights = read_safetensors(again.with_suffix(".weights.safetensors"))
        trained = read_safetensors(parameters)
        self.assertEqual(set(weights), set(trained))
        for name, value in trained.items():
            self.assertEqual(weights[name].tobytes(), value.tobytes(), name)

    def test_same_training_on_two_ranks(self):
        data = self.write_images(8)
        runs = [losses(self.train(self.compile(SMALL / "recipe.yaml", world, model=SMALL / "model.onnx"),
                                  "--steps", 4, data=data, world=world)) for world in (1, 2)]
        numpy.testing.assert_allclose(runs[1], runs[0], rtol=1e-5, atol=0)

    def test_stages_of_a_residual_behind_its_layer(self):
        # GPT-2 adds as layer + residual: views are behind each other through all of its depth.
        run = self.run_ok("oriel", "compile", SOURCE / "bench" / "gpu" / "skeletons" / "gpt2_124m" / "model.onnx", "--recipe",
                          SKELETONS / "gpt2_124m" / "recipe.yaml", "--stages", 4, "--microbatches", 8, "--mesh", "dp=1",
                          "--explain-stages", "--stop-after=stage", "-o", self.folder / "p.oplan")
        self.assertIn("blocks: 'transformer.h' (12 blocks)", run.stdout + run.stderr)

    def test_compile_allocates_no_weights(self):
        recipe = SKELETONS / "llava_1_5_7b" / "recipe.yaml"
        self.compile(recipe, model=SKELETONS / "llava_1_5_7b" / "model.onnx")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        self.assertLess(peak, 1 << 30)  # the weights are 26 GiB
