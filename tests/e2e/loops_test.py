"""Loops that exports have unrolled, over rows of a matrix and over samples of a batch, and one over blocks that a Scan holds."""

import json

from cuda_test import CudaTestCase
from cut_products_test import BATCH, TensorParallelTestCase
from gpt import Gpt

DELTA_RULE = Gpt(sequence=16, chunk=4)
PACKED = Gpt(sequence=16, packed=BATCH)
SCANNED = Gpt(sequence=16, scanned=True)
STRATEGIES = (
    (2, ("--mesh", "dp=2", "--zero", "2")),
    (2, ("--mesh", "fsdp=2", "--zero", "3", "--remat", "full")),
    (2, ("--mesh", "tp=2")),
    (4, ("--mesh", "dp=2,tp=2", "--generated-kernels", "on")),
    (4, ("--mesh", "tp=2", "--stages", "2", "--schedule", "zb-h1")),
)


class DeltaRuleTest(TensorParallelTestCase):
    def assert_is_raised(self, plan):
        """The loop over rows of a chunk, and the one over chunks."""
        for kernel in (b"triangular_solve", b"delta_scan"):
            self.assertIn(kernel, plan.read_bytes())

    def test_strategies(self):
        plan = self.plan(gpt=DELTA_RULE)
        self.assert_is_raised(plan)
        expected = self.numbers(plan, 1)
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                plan = self.plan(*options, gpt=DELTA_RULE)
                self.assert_is_raised(plan)
                self.assert_same(self.numbers(plan, world), expected, options)

    def test_chunks_of_another_size(self):
        """The same recurrence: what the rows of a larger chunk know of each other is in the state of smaller ones."""
        own, expected = (self.numbers(self.plan(gpt=Gpt(sequence=16, chunk=chunk)), 1) for chunk in (8, 4))
        self.assert_same(own, expected, "chunks")


class PackedTest(TensorParallelTestCase):
    def plan_of(self, micro: int, *options: str):
        return self.plan(*options, gpt=PACKED, change=lambda recipe: recipe.replace("micro: 2", f"micro: {micro}"))

    def test_is_a_batch(self):
        """On as many samples, what a batch dimension gives; ranks share the samples, with nothing to gather."""
        expected = self.numbers(self.plan(gpt=Gpt(sequence=16)), 1)
        self.assert_same(self.numbers(self.plan_of(BATCH), 1), expected, "one rank")
        plan = self.plan_of(BATCH // 2, "--mesh", "dp=2")
        self.assert_same(self.numbers(plan, 2), expected, "dp")
        segments = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"][0]["segments"]
        self.assertEqual([segment["collectives"] for segment in segments if segment["name"] == "forward"], [0])
        self.assert_same(self.numbers(self.plan_of(BATCH, "--mesh", "tp=2"), 2), expected, "tp")


class ScannedBlocksTest(TensorParallelTestCase):
    def test_scanned_blocks(self):
        """Blocks whose weights are rows of one parameter: each rank has those of its stage, and its part of each."""
        one = self.plan(gpt=SCANNED)
        expected = self.numbers(one, 1)
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                plan = self.plan(*options, gpt=SCANNED)
                self.assert_same(self.numbers(plan, world), expected, options)
                if options != STRATEGIES[0][1]:  # with ZeRO-2 parameters are whole
                    self.assertLess(self.state_bytes(plan), 0.6 * self.state_bytes(one))


class CudaDeltaRuleTest(CudaTestCase, TensorParallelTestCase):
    def test_emulated(self):
        expected = self.numbers(self.plan(gpt=DELTA_RULE), 1, steps=1)
        own = self.numbers(self.plan("--device", "cuda", "--mesh", "tp=2", gpt=DELTA_RULE), 2, steps=1)
        self.assert_same(own, expected, "emulated")
