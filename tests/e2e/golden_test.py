"""One rank against PyTorch's numbers (models/llava_tiny/golden/README.md)."""

import json

import numpy
from oriel_testing import DATA, GOLDEN, OrielTestCase, losses, read_safetensors, relative_error

TOLERANCE = 1e-4
# A gradient below this share of the global norm is zero but for rounding (key biases before a
# softmax), and is not compared.
ZERO_SHARE = 1e-7


class GoldenTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.golden = json.loads((GOLDEN / "golden.json").read_text())

    def zero_gradients(self) -> set[str]:
        step = self.golden["step1"]
        limit = ZERO_SHARE * step["gradient_norm_f64"]
        return {name for name, norm in step["gradient_norms_f64"].items() if norm < limit}

    def test_logits(self):
        plan = self.compile(GOLDEN / "recipe_sgd.yaml")
        path = self.folder / "logits.npy"
        self.run_ok("oriel-run", plan, "--eval", DATA, "--eval-logits", path, "-n", 1)
        logits = numpy.load(path)
        expected = read_safetensors(GOLDEN / "logits.safetensors")["logits"]
        self.assertLess(numpy.abs(logits[: len(expected)] - expected).max(), TOLERANCE)

    def test_gradients(self):
        plan = self.compile(GOLDEN / "recipe_sgd.yaml")
        path = self.folder / "gradients.safetensors"
        metrics = self.train(plan, "--steps", 1, "--dump-gradients", path)
        gradients = read_safetensors(path)

        step = self.golden["step1"]
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
        for name, expected in read_safetensors(GOLDEN / "gradients.safetensors").items():
            if name not in zero:
                self.assertLess(relative_error(gradients[name], expected), TOLERANCE, name)

    def check_run(self, kind: str, steps: int):
        plan = self.compile(GOLDEN / f"recipe_{kind}.yaml")
        path = self.folder / "parameters.safetensors"
        metrics = self.train(plan, "--steps", steps, "--dump-parameters", path)
        numpy.testing.assert_allclose(
            losses(metrics), self.golden[kind]["losses"], rtol=TOLERANCE, atol=0)
        parameters = read_safetensors(path)
        zero = self.zero_gradients()
        for name, expected in read_safetensors(GOLDEN / f"parameters_{kind}.safetensors").items():
            if name not in zero:
                self.assertLess(relative_error(parameters[name], expected), TOLERANCE, name)

    def test_sgd_steps(self):
        self.check_run("sgd", 5)

    def test_adamw_losses(self):
        self.check_run("adamw", 20)
