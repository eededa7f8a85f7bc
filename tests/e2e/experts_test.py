"""Mixtures of experts of which each token computes those that it chooses."""

import dataclasses

from cuda_test import CudaTestCase
from cut_products_test import TensorParallelTestCase
from gpt import Gpt
from oriel_testing import relative_error

GPT = Gpt(sequence=16, experts=8, chosen=2)
STRATEGIES = (
    (2, ("--mesh", "dp=2", "--zero", "2")),
    (2, ("--mesh", "fsdp=2", "--zero", "3", "--remat", "full")),
    (2, ("--mesh", "tp=2")),
    (2, ("--mesh", "cp=2")),
    (4, ("--mesh", "tp=4", "--sp")),
    (4, ("--mesh", "dp=2,tp=2", "--generated-kernels", "on")),
    (4, ("--mesh", "tp=2", "--stages", "2", "--schedule", "zb-h1")),
)


class ExpertsTest(TensorParallelTestCase):
    def test_numbers_of_all_experts(self):
        for gates in ("scattered", "masked", "inputs"):
            with self.subTest(gates=gates):
                gpt = dataclasses.replace(GPT, gates=gates)
                plan, of_all = self.plan(gpt=gpt), self.plan("--unfused", "experts", gpt=gpt)
                self.assertIn(b"expert_linear", plan.read_bytes())
                self.assertNotIn(b"expert_linear", of_all.read_bytes())
                self.assert_same(self.numbers(plan, 1), self.numbers(of_all, 1), gates)

    def test_strategies(self):
        expected = self.numbers(self.plan(gpt=GPT), 1)
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                plan = self.plan(*options, gpt=GPT)
                self.assertIn(b"expert_linear", plan.read_bytes())
                self.assert_same(self.numbers(plan, world), expected, options)

    def test_rows_of_samples_and_positions(self):
        """Of two samples in one row of tokens, positions are apart: each rank of cp has its own."""
        for gates in ("scattered", "masked", "inputs"):
            gpt = dataclasses.replace(GPT, gates=gates, flat_rows=True)
            expected = self.numbers(self.plan(gpt=gpt), 1)
            for world, options in (2, ("--mesh", "cp=2")), (4, ("--mesh", "cp=2,tp=2", "--sp")):
                with self.subTest(gates=gates, options=options):
                    plan = self.folder / "flat.oplan"
                    warned = self.run_ok("oriel", "compile", *self.files(gpt=gpt), *options, "-o", plan).stderr
                    self.assertNotIn("has no positions", warned)
                    self.assertIn(b"expert_linear", plan.read_bytes())
                    self.assert_same(self.numbers(plan, world), expected, (gates, options))

    def test_ranks_with_different_experts(self):
        """Where the strategy says so: a rank gives zeros for what tokens choose of the others."""
        expected = self.numbers(self.plan(gpt=GPT), 1)
        strategy = self.folder / "experts.yaml"
        strategy.write_text(
            """mesh: {dp: 2, tp: 2}
shardings:
  - {parameters: "blocks.*.up.weight", tp: 0}
  - {parameters: "blocks.*.down.weight", tp: 0}
""")
        self.assert_same(self.numbers(self.plan("--strategy", str(strategy), gpt=GPT), 4), expected, "experts")

    def test_most_experts_are_chosen(self):
        """Products with all of them are fewer, and larger."""
        plan = self.plan(gpt=Gpt(sequence=16, experts=4, chosen=3))
        self.assertNotIn(b"expert_linear", plan.read_bytes())
        self.assertEqual(len(self.numbers(plan, 1)[0]), 3)


class CudaExpertsTest(CudaTestCase, TensorParallelTestCase):
    """On emulated devices."""

    def assert_same_experts(self, own, expected, limit: float):
        of_experts = [name for name in expected[1] if name.endswith((".up.weight", ".down.weight"))]
        self.assertEqual(len(of_experts), 2 * GPT.blocks)
        for name in of_experts:
            self.assertLess(relative_error(own[1][name], expected[1][name]), limit, name)

    def test_plain_arithmetic(self):
        own = self.numbers(self.plan("--device", "cuda", "--mesh", "tp=2", gpt=GPT), 2, steps=1)
        self.assert_same_experts(own, self.numbers(self.plan(gpt=GPT), 1, steps=1), 1e-5)

    def test_tensor_cores(self):
        """bf16, in which another device chooses others of experts with nearly equal gates."""
        def in_bf16(recipe: str) -> str:
            return recipe.replace("precision: f32", "precision: bf16")

        own, of_all = (self.numbers(self.plan("--device", "cuda", *options, gpt=GPT, change=in_bf16), 1, steps=1)
                       for options in ((), ("--unfused", "experts")))
        self.assert_same_experts(own, of_all, 1e-2)
