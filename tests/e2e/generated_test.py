"""Generated kernels (docs/generated_kernels.md): training has the numbers that it has without them, up to the last bits of
approximated functions; and the same bits however it is cut."""

import json
import os
import re
import shutil
import subprocess
import unittest

import numpy
import oriel_testing
from numerics import Strategy
from oriel_testing import BIN, OrielTestCase, losses

STEPS = 3
# Relative; of all parameters together, for a step of AdamW makes much of the last bits of gradients that are almost zero.
LOSS_BOUNDS = {"f32": 1e-6, "bf16": 1e-3}
PARAMETER_BOUNDS = {"f32": 1e-4, "bf16": 2e-3}
EMULATED = BIN / "liboriel_cuda_emulated.so"
PTXAS = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")


class GeneratedTest(OrielTestCase):
    def inspected(self, plan) -> dict:
        return json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)

    def launches(self, plan, kernel: str | None = None) -> int:
        counts = [segment["kernels"] for program in self.inspected(plan)["programs"] for segment in program["segments"]]
        return sum(sum(count.values()) if kernel is None else count.get(kernel, 0) for count in counts)

    def trained(self, name: str, precision: str, strategy: Strategy, *options: str):
        """The plan, the losses, and the parameters."""
        replacements = [] if precision == "f32" else [("precision: f32", f"precision: {precision}")]
        recipe = self.recipe("recipe_adamw.yaml", *replacements)
        plan, parameters = self.folder / f"{name}.oplan", self.folder / f"{name}.safetensors"
        self.run_ok("oriel", "compile", oriel_testing.MODEL, "--recipe", recipe,
                    *strategy.arguments(self.folder), *options, "-o", plan)
        metrics = self.train(plan, "--steps", STEPS, "--dump-parameters", parameters, world=strategy.ranks)
        return plan, losses(metrics), oriel_testing.read_safetensors(parameters)

    def assert_same_bits(self, actual: dict, expected: dict) -> None:
        self.assertEqual(list(actual), list(expected))
        for name, value in expected.items():
            self.assertEqual(actual[name].tobytes(), value.tobytes(), name)

    def check(self, precision: str, strategy: Strategy, *options: str) -> dict:
        """The parameters that it trains with generated kernels."""
        plans, trained, parameters = {}, {}, {}
        for generated in ("off", "on"):
            plans[generated], trained[generated], parameters[generated] = self.trained(
                generated, precision, strategy, "--generated-kernels", generated, *options)
        for actual, expected in zip(trained["on"], trained["off"], strict=True):
            self.assertLess(abs(actual / expected - 1), LOSS_BOUNDS[precision])
        every = {key: numpy.concatenate([value.ravel() for _, value in sorted(found.items())])
                 for key, found in parameters.items()}
        self.assertLess(oriel_testing.relative_error(every["on"], every["off"]), PARAMETER_BOUNDS[precision])
        self.assertEqual(self.launches(plans["off"], "generated"), 0)
        self.assertGreater(self.launches(plans["on"], "generated"), 0)
        self.assertLess(self.launches(plans["on"]), self.launches(plans["off"]))
        text = self.run_ok("oriel", "inspect", plans["on"]).stdout
        launches, ops = map(int, re.search(r"^generated +(\d+) launches in place of (\d+), of", text, re.MULTILINE).groups())
        self.assertEqual(self.launches(plans["off"]) - self.launches(plans["on"]), ops - launches)
        return parameters["on"]

    def test_one_rank(self):
        self.check("f32", Strategy())

    def test_bf16(self):
        self.check("bf16", Strategy())

    def test_data_parallel(self):
        self.check("bf16", Strategy(dp=2, zero=1))

    def test_tensor_parallel(self):
        """Sums that are pending over ranks pass through."""
        self.check("f32", Strategy(tp=2, sp=True), "--overlap", "on")

    def test_remat(self):
        """What is computed again has the same bits, approximated or not."""
        again = self.check("bf16", Strategy(), "--remat", "full")
        *_, once = self.trained("once", "bf16", Strategy(), "--generated-kernels", "on")
        self.assert_same_bits(again, once)

    def test_rows(self):
        """CLIP divides each row by its norm; with data parallelism ranks have some of the rows."""
        clip = oriel_testing.SOURCE / "models" / "clip_tiny"
        recipe = self.folder / "recipe.yaml"
        for ranks, batch in ((1, "micro: 4"), (2, "micro: 2")):
            recipe.write_text((clip / "recipe.yaml").read_text().replace("micro: 4", batch))
            gradients, reductions = {}, {}
            for generated in ("off", "on"):
                plan, dump = self.folder / f"{generated}{ranks}.oplan", self.folder / f"{generated}{ranks}.safetensors"
                self.run_ok("oriel", "compile", clip / "model.onnx", "--recipe", recipe, "--mesh", f"dp={ranks}",
                            "--generated-kernels", generated, "-o", plan)
                self.run_ok("oriel", "verify", plan)
                self.train(plan, "--steps", 1, "--dump-gradients", dump, data=clip / "golden" / "data", world=ranks)
                gradients[generated] = oriel_testing.read_safetensors(dump)
                reductions[generated] = self.launches(plan, "reduce_sum")
            self.assertLess(reductions["on"], reductions["off"])
            norms = {name: numpy.linalg.norm(value) for name, value in gradients["off"].items()}
            # Key biases have no gradient but rounding.
            names = [name for name, norm in norms.items() if norm > 1e-6 * max(norms.values())]
            self.assertGreater(len(names), 0.8 * len(norms))
            for name in names:
                error = oriel_testing.relative_error(gradients["on"][name], gradients["off"][name])
                self.assertLess(error, 1e-5, name)

    @unittest.skipUnless(EMULATED.exists(), "built without CUDA")
    def test_emulated_cuda(self):
        """The emulator runs the plan's PTX."""
        environment = dict(oriel_testing.ENVIRONMENT, ORIEL_CUDA_PLUGIN=str(EMULATED))
        self.addCleanup(setattr, oriel_testing, "ENVIRONMENT", oriel_testing.ENVIRONMENT)
        oriel_testing.ENVIRONMENT = environment
        self.check("bf16", Strategy(), "--device", "cuda")

    @unittest.skipUnless(PTXAS, "no ptxas")
    def test_ptx_assembles_without_spills(self):
        architectures = ("sm_80", "sm_90", "sm_100")
        recipe = self.recipe("recipe_adamw.yaml", ("precision: f32", "precision: bf16"))
        text = self.run_ok("oriel", "compile", oriel_testing.MODEL, "--recipe", recipe, "--generated-kernels", "on",
                           "--device", "cuda:" + ",".join(architectures), "--dump-after", "emit",
                           "--stop-after", "emit").stdout
        images = re.findall(r'target: "(sm_\d+)"\n\s*code: "((?:[^"\\]|\\.)*)"', text)
        self.assertEqual({target for target, _ in images}, set(architectures))
        for index, (target, code) in enumerate(images):
            ptx = self.folder / f"{index}.ptx"
            ptx.write_bytes(code.encode("latin-1").decode("unicode_escape").encode("latin-1"))
            result = subprocess.run([PTXAS, "-v", "-arch", target, ptx, "-o", os.devnull], capture_output=True, text=True,
                                    timeout=100)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("0 bytes spill stores, 0 bytes spill loads", result.stderr)

    def test_other_value(self):
        result = oriel_testing.run("oriel", "compile", oriel_testing.MODEL, "--recipe", self.recipe("recipe_adamw.yaml"),
                                   "--generated-kernels", "yes", "-o", self.folder / "p.oplan")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--generated-kernels: can't use 'yes'; give on or off", result.stderr)
