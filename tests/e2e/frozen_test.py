"""Frozen parameters: no gradient, no state, no backward below the first trainable op."""

import json

import numpy
from oriel_testing import MODEL, GOLDEN, OrielTestCase, read_safetensors


class FrozenTest(OrielTestCase):
    def dump(self, frozen: str):
        recipe = self.recipe("recipe_adamw.yaml", ("frozen: []", f"frozen: {frozen}"))
        plan = self.compile(recipe)
        description = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)
        initial = read_safetensors(plan.with_suffix(".weights.safetensors"))
        gradients = self.folder / "gradients.safetensors"
        parameters = self.folder / "parameters.safetensors"
        self.train(plan, "--steps", 2, "--dump-gradients", gradients, "--dump-parameters", parameters)
        return description, initial, read_safetensors(gradients), read_safetensors(parameters)

    def test_frozen_vision_has_no_gradient_nor_state(self):
        description, initial, gradients, parameters = self.dump('["*vision_tower*"]')
        frozen = {name for name in initial if "vision_tower" in name}
        self.assertTrue(frozen)
        self.assertFalse(frozen & set(gradients))
        for name in frozen:
            numpy.testing.assert_array_equal(parameters[name], initial[name])
        # Gradients, and two moments each, of what trains; nothing else.
        trained = sum(initial[name].nbytes for name in gradients)
        memory = description["programs"][0]["bytes_by_kind"]
        self.assertAlmostEqual(memory["gradient"] / trained, 1, delta=0.05)
        self.assertAlmostEqual(memory["optimizer_state"] / (2 * trained), 1, delta=0.05)
        ir = self.run_ok("oriel", "compile", MODEL, "--recipe", self.folder / "recipe_adamw.yaml", "-o",
                         self.folder / "p.oplan", "--dump-after=train", "--stop-after=train").stdout
        backward = ir[ir.index("@backward") : ir.index("@update")]
        self.assertNotIn("conv_weight_grad", backward)
        self.assertNotIn("layer_norm_grad", backward)
        self.assertIn("rms_norm_grad", backward)

    def test_frozen_language_still_reaches_the_projector(self):
        _, initial, gradients, parameters = self.dump('["*language_model*", "lm_head*", "*vision_tower*"]')
        self.assertTrue(gradients)
        for name in gradients:
            self.assertIn("projector", name)
            self.assertGreater(numpy.abs(gradients[name]).max(), 0)
            self.assertGreater(numpy.abs(parameters[name] - initial[name]).max(), 0)
