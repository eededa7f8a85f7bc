"""Random initial values: in place of the file's, the same on any ranks, and kept by checkpoint and export."""

import json

import numpy
from oriel_testing import DATA, MODEL, OrielTestCase, read_safetensors, run

INIT = """
init:
  seed: 3
  rules:
    - {match: ["*norm*.weight"], constant: 1.0}
    - {match: ["*bias"], uniform: {low: -0.1, high: 0.1}}
    - {match: ["*"], normal: {mean: 0.0, std: 0.02}}
"""


class InitTest(OrielTestCase):
    def recipe_with(self, init: str, *replacements: tuple[str, str]):
        path = self.recipe("recipe_adamw.yaml", *replacements)
        path.write_text(path.read_text() + init)
        return path

    def initial(self, plan, world: int = 1) -> dict[str, numpy.ndarray]:
        """The parameters before the first step."""
        path = self.folder / f"initial_{plan.stem}.safetensors"
        self.run_ok("oriel-run", plan, "--data", DATA, "-n", world, "--steps", 0, "--dump-parameters", path)
        return read_safetensors(path)

    def test_values_follow_the_rules(self):
        plan = self.compile(self.recipe_with(INIT))
        self.assertFalse(plan.with_suffix(".weights.safetensors").exists())
        self.run_ok("oriel", "verify", plan)
        values = self.initial(plan)
        normals = []
        for name, value in values.items():
            if "norm" in name and name.endswith(".weight"):
                self.assertTrue((value == 1).all(), name)
            elif name.endswith("bias"):
                self.assertTrue((numpy.abs(value) <= 0.1).all() and value.std() > 0.03, name)
            else:
                normals.append(value.ravel())
        normals = numpy.concatenate(normals)
        self.assertGreater(normals.size, 300_000)
        self.assertAlmostEqual(normals.mean(), 0, delta=0.02 * 5 / normals.size**0.5)
        self.assertAlmostEqual(normals.std() / 0.02, 1, delta=5 / normals.size**0.5)
        description = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)
        kinds = {next(iter(tensor["initial"])) for tensor in description["parameters"]["tensors"]}
        self.assertEqual(kinds, {"constant", "uniform", "normal"})
        self.assertIn("starts random: normal, mean 0, std 0.02", self.run_ok("oriel", "inspect", plan).stdout)

    def test_same_values_on_any_ranks(self):
        recipe = self.recipe_with(INIT)
        one = self.initial(self.compile(recipe, 1), 1)
        two = self.initial(self.compile(recipe, 2), 2)
        self.assertEqual(set(one), set(two))
        for name in one:
            self.assertEqual(one[name].tobytes(), two[name].tobytes(), name)

    def test_file_keeps_what_no_rule_matches(self):
        plan = self.compile(self.recipe_with('init: {rules: [{match: ["*vision_tower*"], constant: 0.5}]}'))
        file = read_safetensors(plan.with_suffix(".weights.safetensors"))
        values = self.initial(plan)
        made = {name for name in values if "vision_tower" in name}
        self.assertTrue(made)
        self.assertEqual(set(file), set(values) - made)
        for name, value in values.items():
            expected = numpy.full_like(value, 0.5) if name in made else file[name]
            numpy.testing.assert_array_equal(value, expected)

    def test_resume_has_the_same_bits(self):
        plan = self.compile(self.recipe_with(INIT))
        whole, resumed = self.folder / "whole.safetensors", self.folder / "resumed.safetensors"
        checkpoints = self.folder / "checkpoints"
        self.train(plan, "--steps", 2, "--dump-parameters", whole)
        self.train(plan, "--steps", 1, "--save-dir", checkpoints)
        self.train(plan, "--steps", 2, "--resume", checkpoints, "--dump-parameters", resumed)
        self.assertEqual(whole.read_bytes(), resumed.read_bytes())

    def test_export_writes_frozen_ones_too(self):
        recipe = self.recipe_with(INIT, ("frozen: []", 'frozen: ["*vision_tower*"]'))
        plan = self.compile(recipe)
        checkpoints, parameters = self.folder / "checkpoints", self.folder / "parameters.safetensors"
        self.train(plan, "--steps", 1, "--save-dir", checkpoints, "--dump-parameters", parameters)
        exported = self.folder / "trained.onnx"
        self.run_ok("oriel", "export", plan, "--checkpoint", checkpoints, "--to", "onnx", "-o", exported)
        content, original = exported.read_bytes(), MODEL.read_bytes()
        self.assertEqual(len(content), len(original))
        values = read_safetensors(parameters)
        frozen = [name for name in values if "vision_tower" in name and name.endswith("q_proj.weight")]
        self.assertTrue(frozen)
        for name in frozen + ["lm_head.weight"]:
            self.assertIn(values[name].tobytes(), content, name)
            self.assertNotIn(values[name].tobytes(), original, name)

    def test_errors(self):
        for init, texts in {
            'init: {rules: [{match: ["nothing.*"], constant: 0}]}':
                ("'init.rules[0].match' pattern 'nothing.*' matches no parameter",),
            'init: {rules: [{match: ["*"]}]}': ("must have one of 'constant', 'normal' and 'uniform', not none",),
        }.items():
            result = run("oriel", "compile", MODEL, "--recipe", self.recipe_with(init), "-o", self.folder / "bad.oplan")
            self.assert_fails(result, *texts)
            self.assertFalse((self.folder / "bad.oplan").exists())
