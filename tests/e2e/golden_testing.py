"""A model of models/ against PyTorch's numbers, and several ranks of it against one."""

import json
import pathlib

import numpy
from oriel_testing import SOURCE, OrielTestCase, losses, read_safetensors, relative_error

TOLERANCE = 1e-4
# A gradient below this share of the global norm is zero but for rounding (key biases before a
# softmax), and is not compared.
ZERO_SHARE = 1e-7


class ModelTestCase(OrielTestCase):
    """Trains the model of a folder of models/ with the recipes of its golden."""

    name = "llava_tiny"

    def setUp(self):
        super().setUp()
        self.golden = SOURCE / "models" / self.name / "golden"

    def compile_model(self, recipe: pathlib.Path, world: int = 1) -> pathlib.Path:
        return self.compile(recipe, world, model=SOURCE / "models" / self.name / "model.onnx")

    def train_model(self, plan, *arguments, **options) -> list[dict]:
        return self.train(plan, *arguments, data=self.golden / "data", **options)


class GoldenTestCase(ModelTestCase):
    """Design section 9 against PyTorch; models/llava_tiny/golden/README.md says what is compared."""

    def setUp(self):
        super().setUp()
        self.expected = json.loads((self.golden / "golden.json").read_text())

    def zero_gradients(self) -> set[str]:
        step = self.expected["step1"]
        limit = ZERO_SHARE * step["gradient_norm_f64"]
        return {name for name, norm in step["gradient_norms_f64"].items() if norm < limit}

    def check_logits(self, recipe: pathlib.Path):
        plan = self.compile_model(recipe)
        path = self.folder / "logits.npy"
        self.run_ok("oriel-run", plan, "--eval", self.golden / "data", "--eval-logits", path, "-n", 1)
        logits = numpy.load(path)
        expected = read_safetensors(self.golden / "logits.safetensors")["logits"]
        self.assertLess(numpy.abs(logits[: len(expected)] - expected).max(), TOLERANCE)

    def check_gradients(self, recipe: pathlib.Path):
        plan = self.compile_model(recipe)
        path = self.folder / "gradients.safetensors"
        metrics = self.train_model(plan, "--steps", 1, "--dump-gradients", path)
        gradients = read_safetensors(path)

        step = self.expected["step1"]
        self.assertAlmostEqual(metrics[0]["loss"] / step["loss"], 1, delta=TOLERANCE)
        self.assertAlmostEqual(
            metrics[0]["grad_norm"] / step["gradient_norm"], 1, delta=TOLERANCE)
        self.assertEqual(set(gradients), set(step["gradient_norms"]))
        zero = self.zero_gradients()
        self.assertLess(len(zero), len(gradients) / 10)
        for name, expected in step["gradient_norms"].items():
            if name not in zero:
                norm = numpy.linalg.norm(gradients[name].astype(numpy.float64))
                self.assertAlmostEqual(norm / expected, 1, delta=TOLERANCE, msg=name)
        for name, expected in read_safetensors(self.golden / "gradients.safetensors").items():
            if name in gradients and name not in zero:
                self.assertLess(relative_error(gradients[name], expected), TOLERANCE, name)

    def check_run(self, kind: str, steps: int):
        plan = self.compile_model(self.golden / f"recipe_{kind}.yaml")
        path = self.folder / "parameters.safetensors"
        metrics = self.train_model(plan, "--steps", steps, "--dump-parameters", path)
        numpy.testing.assert_allclose(
            losses(metrics), self.expected[kind]["losses"], rtol=TOLERANCE, atol=0)
        parameters = read_safetensors(path)
        zero = self.zero_gradients()
        for name, expected in read_safetensors(
                self.golden / f"parameters_{kind}.safetensors").items():
            if name not in zero:
                self.assertLess(relative_error(parameters[name], expected), TOLERANCE, name)


class RanksTestCase(ModelTestCase):
    """Several ranks against one: design section 9, (a) gradients, (b) SGD, (c) AdamW."""

    def sgd_run(self, world: int, comm: str):
        """Gradients of step 1 and parameters after 5 steps of SGD."""
        plan = self.compile_model(self.golden / "recipe_sgd.yaml", world)
        gradients = self.folder / f"gradients_{world}_{comm}.safetensors"
        parameters = self.folder / f"parameters_{world}_{comm}.safetensors"
        self.train_model(plan, "--steps", 5, "--dump-gradients", gradients,
                         "--dump-parameters", parameters, world=world, comm=comm)
        return read_safetensors(gradients), read_safetensors(parameters)

    def adamw_losses(self, world: int, comm: str) -> list[float]:
        plan = self.compile_model(self.golden / "recipe_adamw.yaml", world)
        return losses(self.train_model(plan, "--steps", 20, world=world, comm=comm))

    def check(self, world: int, comm: str):
        gradients, parameters = self.sgd_run(world, comm)
        expected_gradients, expected_parameters = self.sgd_run(1, "in_process")
        norms = {name: numpy.linalg.norm(g.astype(float)) for name, g in expected_gradients.items()}
        total = numpy.sqrt(sum(norm**2 for norm in norms.values()))
        self.assertEqual(set(gradients), set(expected_gradients))
        compared = 0
        for name, expected in expected_gradients.items():
            # Rounding in f32 lifts a gradient that is zero to this share.
            if norms[name] < 10 * ZERO_SHARE * total:
                continue
            compared += 1
            self.assertLess(relative_error(gradients[name], expected), 1e-5, name)
        self.assertGreater(compared, 0.9 * len(expected_gradients))
        for name, expected in expected_parameters.items():
            self.assertLess(numpy.abs(parameters[name] - expected).max(), 1e-6, name)
        numpy.testing.assert_allclose(
            self.adamw_losses(world, comm), self.adamw_losses(1, "in_process"), rtol=1e-5, atol=0)
