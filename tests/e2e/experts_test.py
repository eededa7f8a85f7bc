"""Mixtures of experts of which each token computes those that it chooses."""

from cut_products_test import TensorParallelTestCase
from gpt import Gpt

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
        plan, of_all = self.plan(gpt=GPT), self.plan("--unfused", "experts", gpt=GPT)
        self.assertIn(b"expert_linear", plan.read_bytes())
        self.assertNotIn(b"expert_linear", of_all.read_bytes())
        self.assert_same(self.numbers(plan, 1), self.numbers(of_all, 1), "one rank")

    def test_strategies(self):
        expected = self.numbers(self.plan(gpt=GPT), 1)
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                plan = self.plan(*options, gpt=GPT)
                self.assertIn(b"expert_linear", plan.read_bytes())
                self.assert_same(self.numbers(plan, world), expected, options)

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
