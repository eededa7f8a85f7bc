"""Mixed precision (docs/precision.md): against f32, and under strategies against one rank."""

import json
import math
import unittest

import numerics
import numpy
from gpt import Gpt
from numerics import BF16_LIMITS, Strategy
from oriel_testing import DATA, HAVE_MPI, MODEL, SOURCE, OrielTestCase, losses, run, write_shard

STRATEGIES = (Strategy(dp=2), Strategy(tp=2, sp=True), Strategy(dp=2, zero=3), Strategy(dp=2, tp=2, zero=1),
              Strategy(grids=2, schedule="1f1b"), Strategy(grids=2, schedule="interleaved", tp=2, sp=True))


class Bf16Test(OrielTestCase):
    def check(self, model: str, strategies=STRATEGIES):
        one_rank = numerics.OneRank(model, self.folder, precision="bf16")
        rows = {"f32": one_rank.compare_precisions()}
        rows.update((str(strategy), one_rank.compare(strategy)[0]) for strategy in strategies)
        for name, errors in rows.items():
            for key, limit in BF16_LIMITS.items():
                self.assertLessEqual(errors[key], limit, f"{name}: {key}")
        self.assertGreater(rows["f32"]["loss"], 0)

    def test_llava_tiny(self):
        self.check("llava_tiny")

    def test_llava_deep(self):
        self.check("llava_deep", STRATEGIES[-2:-1])

    def test_qwen_vl_tiny(self):
        self.check("qwen_vl_tiny")

    def test_clip_tiny(self):
        """The loss is a sum over similarities; the scale of the logits is an f32 parameter."""
        folder = SOURCE / "models" / "clip_tiny"
        recipe = self.folder / "recipe.yaml"
        values = {}
        for precision in ("f32", "bf16"):
            text = (folder / "recipe.yaml").read_text()
            self.assertIn("precision: f32", text)
            recipe.write_text(text.replace("precision: f32", f"precision: {precision}"))
            plan = self.compile(recipe, model=folder / "model.onnx", name=precision)
            values[precision] = losses(self.train(plan, "--steps", 3, data=folder / "golden" / "data"))
        # A step changes it by 50, across 0.
        scale = max(map(abs, values["f32"]))
        for actual, expected in zip(values["bf16"], values["f32"], strict=True):
            self.assertLessEqual(abs(actual - expected) / scale, BF16_LIMITS["loss"])

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_same_bits_on_every_communicator(self):
        recipe = self.recipe("recipe_adamw.yaml", ("precision: f32", "precision: bf16"))
        plan = self.compile(recipe, world=2)
        expected = losses(self.train(plan, "--steps", 3, world=2))
        self.assertEqual(losses(self.train(plan, "--steps", 3, world=2, comm="mpi")), expected)

    def test_narrow_gradients(self):
        """Those of bf16 parameters are kept in bf16: half the bytes, and losses that are not the same."""
        plans, trained = {}, {}
        for gradients in ("f32", "bf16"):
            recipe = self.recipe(
                "recipe_adamw.yaml", ("precision: f32", f"precision: {{compute: bf16, gradients: {gradients}}}"))
            plans[gradients] = self.compile(recipe, name=gradients)
            trained[gradients] = losses(self.train(plans[gradients], "--steps", 5))
        for gradients, plan in plans.items():
            inspected = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)
            tensors = inspected["parameters"]["tensors"]
            self.assertEqual({tensor["dtype"] for tensor in tensors}, {"f32", "bf16"})
            narrow = {"bf16"} if gradients == "bf16" else set()
            expected = sum(math.prod(tensor["shape"]) * (2 if tensor["dtype"] in narrow else 4) for tensor in tensors)
            self.assertEqual(inspected["programs"][0]["bytes_by_kind"]["gradient"], expected)
        self.assertNotEqual(trained["bf16"], trained["f32"])
        for actual, expected in zip(trained["bf16"], trained["f32"], strict=True):
            self.assertLessEqual(abs(actual / expected - 1), BF16_LIMITS["loss"])

    def test_mask_among_the_weights(self):
        """The lowest f32 is below all bf16, and a row of -inf alone would have no softmax."""
        gpt = Gpt(mask_values=True)
        model, recipe = self.folder / "gpt.onnx", self.folder / "recipe.yaml"
        model.write_bytes(gpt.model())
        data, values = self.folder / "data", {}
        data.mkdir()
        ids = numpy.random.default_rng(0).integers(0, gpt.vocabulary, (12, gpt.sequence))
        write_shard(data / "0.tar", [{"input_ids": row, "labels": row} for row in ids])
        for precision in ("f32", "bf16"):
            recipe.write_text(gpt.recipe(4, 2, precision=precision).replace("frozen: []", "frozen: [mask]"))
            for attention in ((), ("--unfused", "attention")):
                plan = self.folder / f"{precision}{len(attention)}.oplan"
                self.run_ok("oriel", "compile", model, "--recipe", recipe, *attention, "-o", plan)
                values[precision, attention] = losses(self.train(plan, "--steps", 3, data=data))
        # The import knows it for a mask: it is frozen anyway, unless it is asked for.
        recipe.write_text(recipe.read_text() + "init: {rules: [{match: [mask], constant: 0}]}\n")
        result = run("oriel", "compile", model, "--recipe", recipe, "-o", self.folder / "mask.oplan")
        self.assert_fails(result, "matches no parameter but 'mask', which is a table")
        for (_, attention), found in values.items():
            for actual, expected in zip(found, values["f32", attention], strict=True):
                self.assertLessEqual(abs(actual / expected - 1), BF16_LIMITS["loss"], values)

    def test_op_that_is_not_there(self):
        recipe = self.recipe("recipe_adamw.yaml",
                             ("precision: f32", "precision: {compute: bf16, ops: {sofmax: f32}}"))
        result = run("oriel", "compile", MODEL, "--recipe", recipe, "-o", self.folder / "p.oplan")
        self.assert_fails(result, "'precision.ops' pattern 'sofmax' matches no op", "did you mean 'softmax'?")
