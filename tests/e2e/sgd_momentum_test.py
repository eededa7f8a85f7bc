"""SGD with momentum (docs/recipe.md): its steps, on ranks, in bf16, and from checkpoints."""

import unittest

import numpy
from onnx_writer import Graph
from oriel_testing import DATA, MODEL, OrielTestCase, losses, read_safetensors, relative_error, run

PLAIN, MOMENTUM = "{kind: sgd, lr: 1.0e-3}", "{kind: sgd, lr: 1.0e-3, momentum: 0.9, weight_decay: 0.1}"
STRATEGIES = {"two stages": (2, "--stages", 2), "ZeRO 3": (2, "--mesh", "dp=2", "--zero", 3),
              "ZeRO 1 and tp": (4, "--mesh", "dp=2,tp=2", "--zero", 1)}
RATE, FACTOR, DECAY, SAMPLES, STEPS = 0.5, 0.75, 0.25, 4, 3
RECIPE = f"""model: {{bind: {{batch: micro_batch}}}}
loss: {{kind: sum, output: y}}
optimizer: {{kind: sgd, lr: {RATE}, momentum: {FACTOR}, weight_decay: {DECAY}, nesterov: NESTEROV}}
batch: {{global: {SAMPLES}, micro: {SAMPLES}}}
steps: {STEPS}
"""


class SgdMomentumTest(OrielTestCase):
    def plan(self, recipe, *strategy, model=MODEL):
        plan = self.folder / f"plan_{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", recipe, *strategy, "-o", plan)
        return plan

    def trained(self, recipe, world: int, *strategy) -> dict[str, numpy.ndarray]:
        path = self.folder / "parameters.safetensors"
        self.train(self.plan(recipe, *strategy), "--steps", 5, "--dump-parameters", path, world=world)
        return read_safetensors(path)

    def test_steps(self):
        """Of a product with a matrix, whose gradient is known: the sum of the samples in each column."""
        graph, random = Graph(), numpy.random.default_rng(0)
        weight, samples = (random.standard_normal(shape).astype("f4") for shape in ((5, 3), (STEPS * SAMPLES, 5)))
        graph.input("x", numpy.float32, ["batch", 5])
        graph.initializer("w", weight)
        graph.output(graph.node("MatMul", ["x", "w"], "y"), numpy.float32, ["batch", 3])
        model, recipe, path = (self.folder / name for name in ("model.onnx", "recipe.yaml", "w.safetensors"))
        model.write_bytes(graph.model())
        data = self.write_data("samples", [{"x": sample} for sample in samples])
        for nesterov in (False, True):
            expected, moved = weight.astype("f8"), numpy.zeros((5, 3))
            for step in range(STEPS):
                gradient = samples[step * SAMPLES:][:SAMPLES].astype("f8").sum(0)[:, None] + DECAY * expected
                moved = FACTOR * moved + gradient
                expected = expected - RATE * (gradient + FACTOR * moved if nesterov else moved)
            recipe.write_text(RECIPE.replace("NESTEROV", str(nesterov).lower()))
            self.train(self.plan(recipe, model=model), "--dump-parameters", path, data=data)
            numpy.testing.assert_allclose(read_safetensors(path)["w"], expected, rtol=1e-5)

    def test_strategies(self):
        for precision, bound in (("f32", 1e-4), ("bf16", 3e-2)):
            recipe = self.recipe("recipe_sgd.yaml", (PLAIN, MOMENTUM), ("precision: f32", f"precision: {precision}"))
            expected = self.trained(recipe, 1)
            for name, (world, *strategy) in STRATEGIES.items():
                with self.subTest(name, precision=precision):
                    found = self.trained(recipe, world, *strategy)
                    for key, value in expected.items():
                        if numpy.abs(value).max() > 0.1:  # not what has moved from 0 only
                            self.assertLessEqual(relative_error(found[key], value), bound, key)

    def test_checkpoints_hold_what_moves(self):
        recipe, save = self.recipe("recipe_sgd.yaml", (PLAIN, MOMENTUM)), self.folder / "save"
        one, two = self.plan(recipe), self.plan(recipe, "--mesh", "dp=2", "--zero", 3)
        expected = losses(self.train(one, "--steps", 5))
        self.train(two, "--steps", 3, "--save-dir", save, world=2)
        numpy.testing.assert_allclose(losses(self.train(one, "--steps", 5, "--resume", save))[-2:], expected[-2:], rtol=1e-5)
        # What has moved nothing yet goes on otherwise.
        begun = losses(self.train(one, "--steps", 2, "--init-from", save))
        self.assertFalse(numpy.allclose(begun, expected[-2:], rtol=1e-5))

    def test_checkpoints_of_other_optimizers(self):
        save = self.folder / "save"
        self.train(self.plan(self.recipe("recipe_adamw.yaml")), "--steps", 1, "--save-dir", save)
        plan = self.plan(self.recipe("recipe_sgd.yaml", (PLAIN, MOMENTUM)))
        self.assert_fails(run("oriel-run", plan, "--data", DATA, "--steps", 2, "--resume", save), "has no optimizer state momentum_buffer of ",
                          "as it was saved with another optimizer", "--init-from in place of --resume")


if __name__ == "__main__":
    unittest.main()
