"""Parameters with a learning rate and a weight decay of their own (docs/recipe.md#groups)."""

import numpy
from oriel_testing import DATA, GOLDEN, MODEL, OrielTestCase, read_safetensors, relative_error, run

RATE = "lr: 1.0e-3"
GROUPS = (f"{RATE}, groups: [{{match: [model.vision_tower.*], lr: 1.0e-4}}, "
          "{match: [model.multi_modal_projector.*], lr: 4.0e-3, weight_decay: 0.5}]")
FACTORS = {"model.vision_tower.": 0.1, "model.multi_modal_projector.": 4}
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
        return read_safetensors(path), metrics[-1]["grad_norm"]

    def initial(self, recipe):
        path = self.folder / "initial.safetensors"
        self.run_ok("oriel-run", self.plan(recipe), "--eval", DATA, "--steps", 0, "--dump-parameters", path)
        return read_safetensors(path)

    def test_a_step(self):
        """Each group moves by its rate; the norm of the gradients and so clipping are those of all parameters."""
        clipped = f"{RATE}, clip_norm: 0.05"
        groups = GROUPS.replace(RATE, clipped, 1).replace(", weight_decay: 0.5", "")
        start = self.initial(self.recipe_of("recipe_sgd.yaml", RATE))
        one, one_norm = self.parameters(self.recipe_of("recipe_sgd.yaml", clipped))
        several, norm = self.parameters(self.recipe_of("recipe_sgd.yaml", groups))
        self.assertGreater(norm, 0.1)
        self.assertEqual(norm, one_norm)
        seen = set()
        for name, before in start.items():
            prefix = next((prefix for prefix in FACTORS if name.startswith(prefix)), "")
            moved, alone = (after[name].astype("f8") - before for after in (several, one))
            if not alone.any():
                continue
            seen.add(prefix)
            rounding = 2.0**-23 * numpy.abs(before).max() * before.size**0.5
            self.assertLessEqual(numpy.linalg.norm(moved - FACTORS.get(prefix, 1) * alone),
                                 1e-5 * numpy.linalg.norm(moved) + 5 * rounding, name)
        self.assertEqual(seen, {"", *FACTORS})

    def test_strategies(self):
        """Parameters after five steps; in bf16, how far each group has moved."""
        for precision in ("f32", "bf16"):
            recipe = self.recipe("recipe_adamw.yaml", (RATE, GROUPS), ("precision: f32", f"precision: {precision}"))
            start, (expected, _) = self.initial(recipe), self.parameters(recipe, steps=5)
            for name, (world, *strategy) in STRATEGIES.items():
                with self.subTest(f"{name}, {precision}"):
                    got, _ = self.parameters(recipe, *strategy, world=world, steps=5)
                    if precision == "f32":
                        errors = [relative_error(got[key], expected[key]) for key in expected
                                  if numpy.abs(expected[key]).max() > 0.1]
                        self.assertLessEqual(numpy.max(errors), 1e-4)  # NaN if one is
                        continue
                    for prefix in ("model.language_model.", *FACTORS):
                        far = [sum(numpy.square(after[key].astype("f8") - start[key]).sum() for key in start
                                   if key.startswith(prefix)) ** 0.5 for after in (got, expected)]
                        self.assertAlmostEqual(far[0] / far[1], 1, delta=0.05, msg=prefix)

    def test_groups_that_decide_nothing(self):
        groups = f"{RATE}, groups: [{{match: ['*'], lr: 1.0}}, {{match: ['model.vision_tower.*'], lr: 1.0}}]"
        done = self.run_ok("oriel", "compile", MODEL, "--recipe", self.recipe_of("recipe_sgd.yaml", groups), "-o",
                           self.folder / "plan.oplan")
        self.assertIn("the recipe's 'optimizer.groups[1]' decides for no parameter", done.stderr)
        self.assertNotIn("groups[0]", done.stderr)

    def test_bad_groups(self):
        for groups, text in (("groups: [{match: [vision.*], lr: 1.0}]", "'optimizer.groups[0].match' pattern 'vision.*' matches no"),
                             ("groups: [{match: ['*'], lr: -1}]", "'optimizer.groups[0].lr' must be above 0"),
                             ("groups: [{match: ['*'], learning_rate: 1}]", "unknown key 'learning_rate' in 'optimizer.groups[0]'")):
            recipe = self.recipe_of("recipe_sgd.yaml", f"{RATE}, {groups}")
            done = run("oriel", "compile", MODEL, "--recipe", recipe, "-o", self.folder / "plan.oplan")
            self.assert_fails(done, text)
