"""Dropout and stochastic depth of a model that was exported in training mode: the same elements under every strategy."""

import dataclasses

import numpy
from cuda_test import CudaTestCase
from cut_products_test import TensorParallelTestCase
from gpt import Gpt
from oriel_testing import relative_error

GPT = Gpt(sequence=16, dropout=0.25)
SKIPPED = Gpt(sequence=16, skipped=0.25)
STRATEGIES = (
    (2, ("--mesh", "dp=2", "--zero", "2")),
    (2, ("--mesh", "tp=2", "--remat", "full")),
    (2, ("--mesh", "cp=2")),
    (4, ("--mesh", "tp=2,fsdp=2", "--zero", "3", "--sp")),
    (4, ("--mesh", "dp=2", "--stages", "2", "--schedule", "zb-h1")),
)


class DropoutTest(TensorParallelTestCase):
    def test_strategies(self):
        expected = self.numbers(self.plan(gpt=GPT), 1)
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                self.assert_same(self.numbers(self.plan(*options, gpt=GPT), world), expected, options)

    def test_stochastic_depth(self):
        expected = self.numbers(self.plan(gpt=SKIPPED), 1)
        self.assertNotEqual(expected[0][0], self.numbers(self.plan(gpt=Gpt(sequence=16)), 1, steps=1)[0][0])
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                self.assert_same(self.numbers(self.plan(*options, gpt=SKIPPED), world), expected, options)

    def test_microbatches(self):
        """A sample's elements don't depend on which others are in its microbatch."""
        expected = self.numbers(self.plan(gpt=GPT), 1)
        for micro in (1, 8):
            plan = self.plan(gpt=GPT, change=lambda recipe, micro=micro: recipe.replace("micro: 2", f"micro: {micro}"))
            self.assert_same(self.numbers(plan, 1), expected, micro)

    def test_each_step_drops_others(self):
        """Of a model that does not learn, on one batch: the losses are those of the elements that are left."""
        def still(gpt: Gpt):
            return self.plan(gpt=gpt, change=lambda recipe: recipe.replace("lr: 1.0e-2", "lr: 1.0e-30"))

        plan = still(GPT)
        losses = [self.numbers(plan, 1, steps=3)[0] for _ in range(2)]
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(len(set(losses[0])), 3)
        whole = self.numbers(still(dataclasses.replace(GPT, dropout=0)), 1, steps=1)[0]
        numpy.testing.assert_allclose(losses[0], whole[0], rtol=0.02)
        self.assertNotIn(whole[0], losses[0])

    def test_evaluation_drops_nothing(self):
        def logits(gpt: Gpt):
            plan, file = self.plan(gpt=gpt), self.folder / f"{gpt.dropout}-{gpt.skipped}.npy"
            self.run_ok("oriel-run", plan, "--eval", self.data, "--eval-logits", file)
            return numpy.load(file)

        whole = logits(Gpt(sequence=16))
        for gpt in (GPT, SKIPPED):
            self.assertLess(relative_error(logits(gpt), whole), 1e-6)

    def test_resumed(self):
        plan, checkpoints = self.plan(gpt=GPT), self.folder / "checkpoints"
        whole = self.numbers(plan, 1, steps=4)
        self.train(plan, "--steps", 2, "--save-dir", checkpoints, data=self.data)
        metrics = self.train(plan, "--steps", 4, "--resume", checkpoints, data=self.data)
        self.assertEqual([entry["loss"] for entry in metrics if entry["step"] > 2], list(whole[0][2:]))


class CudaDropoutTest(CudaTestCase, TensorParallelTestCase):
    def test_dropout_emulated(self):
        expected = self.numbers(self.plan(gpt=GPT), 1, steps=1)
        own = self.numbers(self.plan("--device", "cuda", "--mesh", "tp=2", gpt=GPT), 2, steps=1)
        self.assert_same(own, expected, "emulated")
