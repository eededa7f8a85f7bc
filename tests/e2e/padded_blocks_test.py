"""Heads and columns that tensor parallelism does not divide, with `padding`: zeros on the ranks, nowhere else."""

import dataclasses
import json
import unittest

import numpy
from cut_products_test import BATCH, TensorParallelTestCase
from gpt import Gpt
from onnx_writer import Graph
from oriel_testing import losses, read_safetensors, relative_error, run

GPT = Gpt(hidden=48, heads=3, sequence=16)
FUSED = dataclasses.replace(GPT, fused=True, gated=True)
GROUPS = dataclasses.replace(GPT, heads=6, key_heads=2)
STRATEGIES = (
    (2, ("--mesh", "tp=2")),
    (4, ("--mesh", "tp=4", "--sp")),
    (4, ("--mesh", "dp=2,tp=2", "--zero", "3")),
    (4, ("--mesh", "tp=2", "--stages", "2")),
    (4, ("--mesh", "cp=2,tp=2")),
)
# What stands between heads: each with ops of its own.
FORMS = {
    "separate": GPT, "fused": FUSED,
    **{name: dataclasses.replace(GPT, **{name: True}) for name in ("sliced", "stacked", "merged", "position_bias", "alibi", "sinks", "mask_values")},
    "adapters": dataclasses.replace(GPT, adapters=2), "norms over heads": dataclasses.replace(GPT, head_rms_norms=True),
}


def columns_model(gpt: Gpt, columns: int) -> bytes:
    """Of an MLP whose sigmoid makes halves of zeros."""
    graph, random = Graph(), numpy.random.default_rng(0)
    graph.input("input_ids", numpy.int64, ["batch", gpt.sequence])
    shapes = {"table": (gpt.vocabulary, 8), "up": (8, columns), "up_bias": (columns,), "down": (columns, 8), "down_bias": (8,), "head": (8, gpt.vocabulary)}
    for name, shape in shapes.items():
        graph.initializer(name, 0.3 * random.standard_normal(shape).astype("f4"))
    graph.node("Gather", ["table", "input_ids"], "embedded")
    wide = graph.node("Add", [graph.node("MatMul", ["embedded", "up"], "product"), "up_bias"], "wide")
    narrow = graph.node("MatMul", [graph.node("Sigmoid", [wide], "open"), "down"], "narrow")
    hidden = graph.node("Add", ["embedded", graph.node("Add", [narrow, "down_bias"], "biased")], "hidden")
    graph.output(graph.node("MatMul", [hidden, "head"], "logits"), numpy.float32, ["batch", gpt.sequence, gpt.vocabulary])
    return graph.model()


class PaddedBlocksTest(TensorParallelTestCase):
    def padded(self, plan) -> dict[str, list[int]]:
        tensors = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["parameters"]["tensors"]
        return {tensor["name"]: tensor["padded_shape"] for tensor in tensors if "padded_shape" in tensor}

    def test_trains_as_one_rank(self):
        for name, gpt in FORMS.items():
            expected = self.numbers(self.whole(gpt=gpt), 1)
            for world, options in STRATEGIES if gpt in (GPT, FUSED) else STRATEGIES[:1]:
                with self.subTest(form=name, options=options):
                    plan = self.plan(*options, "--padding", gpt=gpt)
                    self.assertTrue(self.padded(plan))
                    self.assert_same(self.numbers(plan, world), expected, name)

    def test_groups_that_ranks_share(self):
        """Three queries for each of two keys over four ranks: a zero behind each three."""
        expected = self.numbers(self.whole(gpt=GROUPS), 1)
        for world, options in ((4, ("--mesh", "tp=4")), (4, ("--mesh", "tp=4", "--sp")), (8, ("--mesh", "dp=2,tp=4", "--zero", "3"))):
            with self.subTest(options=options):
                plan = self.plan(*options, "--padding", gpt=GROUPS)
                self.assertEqual(self.padded(plan)["blocks.0.attention.q.weight"], [48, 64])
                self.assertNotIn("blocks.0.attention.k.weight", self.padded(plan))
                self.assert_same(self.numbers(plan, world), expected, options)

    def test_stages_with_ranks_of_their_own(self):
        """Five heads are divided by two and three ranks where there are six; three by two and four where there are four."""
        for heads, second, padded in ((5, 3, 60), (3, 4, 64)):
            gpt = dataclasses.replace(GPT, heads=heads, hidden=50 if heads == 5 else 48)
            strategy = self.folder / f"stages_{heads}.yaml"
            strategy.write_text(f"padding: true\nstages:\n  - {{blocks: blocks.0, mesh: {{tp: 2}}}}\n  - {{blocks: blocks.1, mesh: {{tp: {second}}}}}\n")
            plan = self.plan("--strategy", strategy, gpt=gpt)
            for block in range(2):
                self.assertEqual(self.padded(plan)[f"blocks.{block}.attention.q.weight"], [gpt.hidden, padded])
            self.assert_same(self.numbers(plan, 2 + second), self.numbers(self.whole(gpt=gpt), 1), heads)

    def test_stages_that_share_keys(self):
        """Two heads of keys over two and four ranks; not over one and four, where a rank of the first would have both."""
        text = "padding: true\nstages:\n  - {{blocks: blocks.0, mesh: {{tp: {}}}}}\n  - {{blocks: blocks.1, mesh: {{tp: 4}}}}\n"
        strategy = self.folder / "stages.yaml"
        strategy.write_text(text.format(2))
        plan = self.plan("--strategy", strategy, gpt=GROUPS)
        self.assertEqual(self.padded(plan)["blocks.0.attention.q.weight"], [48, 64])
        self.assert_same(self.numbers(plan, 6), self.numbers(self.whole(gpt=GROUPS), 1), "shared keys")
        strategy.write_text(text.format(1))
        result = run("oriel", "compile", *self.files(gpt=GROUPS), "--strategy", strategy, "-o", self.folder / "none.oplan")
        self.assert_fails(result, "is not padded: ranks of other stages share it in other ways", "tp = 4 does not divide the 6 elements or heads")

    def test_in_bf16(self):
        """Also norms over all heads, whose weights stay f32."""
        bf16 = lambda recipe: recipe.replace("precision: f32", "precision: bf16").replace("1.0e-2", "1.0e-3")
        for gpt, ranks in ((FUSED, 2), (FORMS["norms over heads"], 2), (GROUPS, 4)):
            one, many = self.plan(gpt=gpt, change=bf16), self.plan("--mesh", f"tp={ranks}", "--padding", gpt=gpt, change=bf16)
            (own, gradients, _), (expected, others, _) = self.numbers(many, ranks), self.numbers(one, 1)
            numpy.testing.assert_allclose(own, expected, rtol=2e-3)
            largest = max(numpy.abs(gradient).max() for gradient in others.values())
            for name, gradient in others.items():
                if numpy.abs(gradient).max() > 1e-2 * largest:
                    self.assertLess(relative_error(gradients[name], gradient), 3e-2, (ranks, name))

    def test_halves_of_what_is_added(self):
        model = columns_model(GPT, 10)
        expected = self.numbers(self.whole(model=model), 1)
        plan = self.plan("--mesh", "tp=4", "--padding", model=model)
        self.assertEqual(self.padded(plan), {"up": [8, 12], "up_bias": [12], "down": [12, 8]})
        self.assert_same(self.numbers(plan, 4), expected, "sigmoid")

    def test_of_what_divides_nothing_changes(self):
        files = self.files(gpt=Gpt())
        for end in ("", "--padding"):
            self.run_ok("oriel", "compile", *files, "--mesh", "tp=2", *end.split(), "-o", self.folder / f"plan{end}.oplan")
        self.assertEqual(self.padded(self.folder / "plan--padding.oplan"), {})
        self.assertEqual(*(json.loads(self.run_ok("oriel", "inspect", self.folder / f"plan{end}.oplan", "--json").stdout)["programs"]
                           for end in ("", "--padding")))

    def test_ranks_have_half(self):
        """Of four heads, where three are whole else."""
        sizes = [self.state_bytes(self.plan("--mesh", "tp=2", *padding, gpt=FUSED)) for padding in ((), ("--padding",))]
        self.assertLess(sizes[1], 0.9 * sizes[0])

    def test_zeros_are_not_the_models_work(self):
        """What a step's operations of the model are, of the devices' peak, and those that run."""
        files = self.files(gpt=GPT)
        work = []
        for options in (("--mesh", "dp=2"), ("--mesh", "tp=2", "--padding")):
            found = json.loads(self.run_ok("oriel", "simulate", *files, "--cluster", "h100", *options, "--json").stdout)
            work.append([found[key] * found["step_seconds"] for key in ("mfu", "hfu")])
        (one, _), (two, with_zeros) = work
        self.assertAlmostEqual(two / one, 1, places=6)
        self.assertGreater(with_zeros / one, 1.02)

    def test_checkpoints_have_no_padding(self):
        """Saved by one rank and gone on with by two, and the other way round; also of parts of weights."""
        adamw = lambda recipe: recipe.replace("{kind: sgd, lr: 1.0e-2}", "{kind: adamw, lr: 1.0e-3, weight_decay: 0.1}")
        for gpt, ranks in ((FUSED, 2), (GROUPS, 4)):
            one, many = self.plan(gpt=gpt, change=adamw), self.plan("--mesh", f"tp={ranks}", "--padding", gpt=gpt, change=adamw)
            whole = losses(self.train(one, "--steps", 6, data=self.data))
            for number, (first, second) in enumerate((((one, 1), (many, ranks)), ((many, ranks), (one, 1)))):
                save = self.folder / f"save_{ranks}_{number}"
                begun = self.train(first[0], "--steps", 3, "--save-dir", save, "--save-every", 3, data=self.data, world=first[1])
                ended = self.train(second[0], "--steps", 6, "--resume", save, data=self.data, world=second[1])
                numpy.testing.assert_allclose(losses(begun) + losses(ended), whole, rtol=1e-5)

    def test_random_values_are_those_of_one_rank(self):
        still = lambda recipe: recipe.replace("{kind: sgd, lr: 1.0e-2}", "{kind: sgd, lr: 1.0e-30}") + 'init: {seed: 3, rules: [{match: "*", normal: {std: 0.1}}]}\n'
        for gpt, ranks in ((FUSED, 2), (GROUPS, 4)):
            values = []
            for world, options in ((1, ()), (ranks, ("--mesh", f"tp={ranks}", "--padding"))):
                parameters = self.folder / "p.safetensors"
                self.train(self.plan(*options, gpt=gpt, change=still), "--steps", 1, "--dump-parameters", parameters, world=world, data=self.data)
                values.append(read_safetensors(parameters))
            for name, value in values[0].items():
                self.assertEqual(values[1][name].tobytes(), value.tobytes(), name)

    def test_evaluation_has_logits_of_one_rank(self):
        logits = []
        for world, options in ((1, ()), (2, ("--mesh", "tp=2", "--padding"))):
            path = self.folder / f"logits_{world}.npy"
            self.run_ok("oriel-run", self.plan(*options, gpt=FUSED), "--eval", self.data, "-n", world, "--comm", "in_process", "--eval-logits", path)
            logits.append(numpy.load(path))
        self.assertEqual(logits[0].shape[0], BATCH)
        numpy.testing.assert_allclose(*logits, atol=1e-5)

    def test_searches_add_zeros_where_tp_does_not_divide(self):
        files = self.files(gpt=GPT)
        for fix, is_refused in (((), False), (("--fix", "padding=off"), True)):
            text = self.run_ok("oriel", "plan", *files, "--cluster", "h100", "--world", 2, *fix).stdout
            self.assertEqual("of these can't be compiled; the first: " in text, is_refused, text)
            self.assertEqual("have zeros added by `padding: true`" in text, is_refused, text)
        for gpt, is_padded in ((GPT, True), (Gpt(sequence=16), False)):
            options = (*self.files(gpt=gpt), "--cluster", "h100", "--world", 2, "--fix", "tp=2", "--json")
            found = json.loads(self.run_ok("oriel", "plan", *options).stdout)
            self.assertEqual("padding" in found["strategies"][0]["strategy"], is_padded)

    def test_without_it_an_error_says_what_would_help(self):
        files = self.files(gpt=GPT)
        self.assert_fails(run("oriel", "compile", *files, "--mesh", "tp=2", "-o", self.folder / "none.oplan"), "have zeros added by `padding: true`")


if __name__ == "__main__":
    unittest.main()
