"""Layers that tensor parallelism can only split together, or with a norm over what is split."""

import json

from cut_products_test import TensorParallelTestCase
from gpt import Gpt

STRATEGIES = (
    (2, ("--mesh", "tp=2")),
    (4, ("--mesh", "tp=4", "--sp")),
    (4, ("--mesh", "dp=2,tp=2", "--zero", "3", "--remat", "full")),
    (4, ("--mesh", "tp=2", "--stages", "2")),
)


class TensorBlocksTest(TensorParallelTestCase):
    def check(self, **form):
        """The numbers of one rank; and no weight of a block whole, as without what is in the way."""
        gpt, plain = Gpt(sequence=16, **form), Gpt(sequence=16)
        expected = self.numbers(self.plan(gpt=gpt), 1)
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                self.assert_same(self.numbers(self.plan(*options, gpt=gpt), world), expected, options)
        whole, halves = ([self.state_bytes(self.plan(*options, gpt=each)) for each in (gpt, plain)]
                         for options in ((), ("--mesh", "tp=2")))
        # What is there besides is small, and may be whole.
        self.assertLessEqual(halves[0] - halves[1], whole[0] - whole[1])

    def test_bias_that_blocks_share(self):
        self.check(position_bias=True)

    def test_tables_of_rows(self):
        """Rows of their products are batch and heads, which the einsum merges."""
        self.check(row_tables=True)

    def test_tables_of_rows_of_merged_heads(self):
        self.check(row_tables=True, merged=True)

    def test_tables_of_a_grid(self):
        """They are columns of an attention, with heads that ranks share."""
        for merged in (False, True):
            with self.subTest(merged=merged):
                gpt = Gpt(sequence=16, grid=2, merged=merged)
                self.assertNotIn(b"softmax", self.plan(gpt=gpt).read_bytes())
                self.check(grid=2, merged=merged)

    def test_sinks(self):
        """They are an attention's, whose heads ranks share; and as the model has them."""
        gpt = Gpt(sequence=16, sinks=True)
        self.assertNotIn(b"softmax", self.plan(gpt=gpt).read_bytes())
        unfused = self.plan("--unfused", "attention", gpt=gpt)
        self.assertIn(b"softmax", unfused.read_bytes())
        expected = self.numbers(unfused, 1)
        self.assert_same(self.numbers(self.plan(gpt=gpt), 1), expected, "unfused")
        self.assert_same(self.numbers(self.plan("--mesh", "cp=2", gpt=gpt), 2), expected, "cp=2")
        self.check(sinks=True)

    def test_experts(self):
        """Each rank has some of them; gates, of which it takes those, are all there on each rank."""
        self.check(experts=4)

    def test_experts_that_are_chosen(self):
        """Each rank has some columns of each."""
        self.check(experts=4, chosen=2)

    def test_adapters(self):
        self.check(adapters=4)

    def test_adapters_behind_norms_over_all_heads(self):
        self.check(adapters=4, head_norms=True)

    def test_adapters_half_as_wide_as_layers(self):
        self.check(adapters=32)

    def test_adapters_of_cut_products(self):
        self.check(adapters=4, fused=True, gated=True)

    def test_adapters_send_nothing_of_their_own(self):
        """What is pending of an adapter joins the sum of its layer, in the forward before the bias is added."""
        with_adapters, plain = (self.sent(gpt) for gpt in (Gpt(sequence=16, adapters=4), Gpt(sequence=16)))
        self.assertEqual(with_adapters, plain)

    def sent(self, gpt: Gpt) -> dict[str, tuple[int, dict]]:
        # Without overlap each collective is in the segment that it comes from.
        plan = self.plan("--mesh", "tp=2", "--overlap", "off", gpt=gpt)
        volume = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"][0]["volume"]
        return {line["segment"]: (line["sent_bytes"], line["counts"]) for line in volume if line["segment"] in ("forward", "backward")}

    def test_norms_over_all_heads(self):
        self.check(head_norms=True)

    def test_weights_of_norms_that_the_strategy_cuts(self):
        """Norms stay whole between layers."""
        gpt, strategy = Gpt(sequence=16), self.folder / "strategy.yaml"
        strategy.write_text("mesh: {tp: 2}\nshardings: [{parameters: '*norm*', tp: 0}]\n")
        expected = self.numbers(self.plan(gpt=gpt), 1)
        plan = self.plan("--strategy", strategy, gpt=gpt)
        self.assert_same(self.numbers(plan, 2), expected, "cut weights")
        self.assertNotRegex(self.run_ok("oriel", "inspect", plan, "--segments").stdout, r"\brsqrt\b")

    def test_a_loss_of_the_model(self):
        """The classes of a cross entropy that the model computes are split, too, and those of a policy's loss."""
        for options in ({"shifted": True}, {}, {"entropy": True}):
            self.check(own_loss=True, **options)
        # Of classes that ranks don't divide there are more on them.
        for shifted in (True, False):
            odd = Gpt(sequence=16, own_loss=True, shifted=shifted, vocabulary=129)
            self.assert_same(self.numbers(self.plan("--mesh", "tp=2", gpt=odd), 2), self.numbers(self.plan(gpt=odd), 1), "129 classes")

    def test_a_loss_of_the_model_in_bf16(self):
        """What widens its logits is in the way neither of more classes nor of one op with their layer."""
        for shifted in (True, False):
            gpt = Gpt(sequence=16, own_loss=True, shifted=shifted, vocabulary=129)
            plan = self.plan("--mesh", "tp=2", "--fuse-loss", gpt=gpt,
                             change=lambda recipe: recipe.replace("precision: f32", "precision: bf16"))
            self.assertIn(b"linear_logsumexp", plan.read_bytes())

    def test_steps_that_do_not_divide(self):
        """A norm of what the ranks do not divide is no error: nobody asked to split it."""
        gpt = Gpt(sequence=16, hidden=63, heads=3, head_norms=True)
        expected = self.numbers(self.plan(gpt=gpt), 1)
        self.assert_same(self.numbers(self.plan("--mesh", "tp=2", gpt=gpt), 2), expected, "odd")
