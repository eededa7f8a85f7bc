"""Parameters with a learning rate and a weight decay of their own (docs/recipe.md#groups)."""

import numpy
from oriel_testing import DATA, GOLDEN, MODEL, OrielTestCase, losses, read_safetensors, relative_error, run

RATE = "lr: 1.0e-3"
GROUPS = (f"{RATE}, groups: [{{match: [model.vision_tower.*], lr: 1.0e-4}}, "
          "{match: [model.multi_modal_projector.*], lr: 4.0e-3, weight_decay: 0.5}]")
STRATEGIES = {"two stages": (2, "--stages", 2), "ZeRO 3": (2, "--mesh", "dp=2", "--zero", 3),
              "ZeRO 1 and tp": (4, "--mesh", "dp=2,tp=2", "--zero", 1), "four stages": (4, "--stages", 4)}


class OptimizerGroupsTest(OrielTestCase):
    def recipe_of(self, base: str, groups: str):
        return self.recipe(base, (RATE, groups))

    def plan(self, recipe, *strategy):
        plan = self.folder / "plan.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, *strategy, "-o", plan)
        return plan

    def parameters(self, recipe, *strategy, world: int = 1, steps: int = 1):
        plan, path = self.plan(recipe, *strategy), self.folder / "parameters.safetensors"
        metrics = self.train(plan, "--steps", steps, "--dump-parameters", path, world=world)
        return read_safetensors(path), losses(metrics)

    def test_a_step(self):
        """Each group moves by its rate; the norm of the gradients and so clipping are those of all parameters."""
        base = "recipe_sgd.yaml"
        initial = self.folder / "initial.safetensors"
        self.run_ok("oriel-run", self.plan(self.recipe_of(base, RATE)), "--eval", DATA, "--steps", 0, "--dump-parameters", initial)
        start = read_safetensors(initial)
        one, _ = self.parameters(self.recipe_of(base, RATE))
        groups, _ = self.parameters(self.recipe_of(base, GROUPS.replace(", weight_decay: 0.5", "")))
        factors = {"model.vision_tower.": 0.1, "model.multi_modal_projector.": 4}
        seen = set()
        for name, before in start.items():
            prefix = next((prefix for prefix in factors if name.startswith(prefix)), "")
            moved, alone = (after[name].astype("f8") - before for after in (groups, one))
            if not alone.any():
                continue
            seen.add(prefix)
            rounding = 2.0**-23 * numpy.abs(before).max() * before.size**0.5
            self.assertLessEqual(numpy.linalg.norm(moved - factors.get(prefix, 1) * alone),
                                 1e-5 * numpy.linalg.norm(moved) + 5 * rounding, name)
        self.assertEqual(seen, {"", *factors})

    def test_strategies(self):
        for precision in ("f32", "bf16"):
            recipe = self.recipe("recipe_adamw.yaml", (RATE, GROUPS), ("precision: f32", f"precision: {precision}"))
            expected, expected_losses = self.parameters(recipe, steps=5)
            for name, (world, *strategy) in STRATEGIES.items():
                with self.subTest(f"{name}, {precision}"):
                    got, got_losses = self.parameters(recipe, *strategy, world=world, steps=5)
                    limit = 1e-5 if precision == "f32" else 2e-2
                    for one, other in zip(got_losses, expected_losses, strict=True):
                        self.assertLessEqual(abs(one - other) / abs(other), limit)
                    if precision == "f32":
                        self.assertLessEqual(max(relative_error(got[key], expected[key]) for key in expected
                                                 if numpy.abs(expected[key]).max() > 0.1), 1e-4)

    def test_bad_groups(self):
        for groups, text in (("groups: [{match: [vision.*], lr: 1.0}]", "'optimizer.groups[0].match' pattern 'vision.*' matches no"),
                             ("groups: [{match: ['*'], lr: -1}]", "'optimizer.groups[0].lr' must be above 0"),
                             ("groups: [{match: ['*'], learning_rate: 1}]", "unknown key 'learning_rate' in 'optimizer.groups[0]'")):
            recipe = self.recipe_of("recipe_sgd.yaml", f"{RATE}, {groups}")
            done = run("oriel", "compile", MODEL, "--recipe", recipe, "-o", self.folder / "plan.oplan")
            self.assert_fails(done, text)
