"""Weights that hold query, key and value, or gate and up: parts of them on the ranks, whole in files."""

import dataclasses
import json
import unittest

import numpy
from gpt import Gpt
from onnx_writer import Graph
from oriel_testing import OrielTestCase, losses, read_safetensors, relative_error, write_shard

BATCH = 8
GPT = Gpt(gated=True, fused=True, sequence=16)
STRATEGIES = (
    (1, ()),
    (2, ("--mesh", "dp=2", "--zero", "3")),
    (2, ("--mesh", "tp=2")),
    (4, ("--mesh", "tp=4", "--sp")),
    (4, ("--mesh", "dp=2,tp=2", "--zero", "1")),
    (4, ("--mesh", "dp=2,tp=2", "--zero", "3", "--sp")),
    (4, ("--mesh", "tp=2", "--stages", "2")),
)
CUT = {f"blocks.{block}.{name}" for block in range(GPT.blocks)
       for name in ("attention.qkv.weight", "attention.qkv.bias", "gate_up.weight", "gate_up.bias")}


class TensorParallelTestCase(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        self.data.mkdir()
        random = numpy.random.default_rng(1)
        ids, labels = (random.integers(0, GPT.vocabulary, (BATCH, GPT.sequence)) for _ in range(2))
        write_shard(self.data / "0.tar", [{"input_ids": i, "labels": l} for i, l in zip(ids, labels)])

    def files(self, gpt: Gpt = GPT, change=lambda recipe: recipe, model: bytes | None = None):
        """Arguments of `oriel compile`: the model and its recipe."""
        number = len(list(self.folder.iterdir()))
        path, recipe = (self.folder / f"{number}{end}" for end in (".onnx", ".yaml"))
        path.write_bytes(model or gpt.model())
        recipe.write_text(change(gpt.recipe(BATCH, 2)))
        return path, "--recipe", recipe

    def plan(self, *options: str, **of_files):
        files = self.files(**of_files)
        plan = files[0].with_suffix(".oplan")
        self.run_ok("oriel", "compile", *files, *options, "-o", plan)
        self.run_ok("oriel", "verify", plan)
        return plan

    def whole(self, **options):
        """The plan of one rank in which no weight is cut."""
        strategy = self.folder / "whole.yaml"
        strategy.write_text('mesh: {dp: 1}\nshardings: [{parameters: "*", tp: none}]\n')
        return self.plan("--strategy", str(strategy), **options)

    def numbers(self, plan, world: int, *, steps: int = 3):
        gradients, parameters = self.folder / "g.safetensors", self.folder / "p.safetensors"
        metrics = self.train(plan, "--steps", steps, "--dump-gradients", gradients, "--dump-parameters", parameters,
                             world=world, data=self.data)
        return losses(metrics), read_safetensors(gradients), read_safetensors(parameters)

    def assert_same(self, own, expected, case):
        numpy.testing.assert_allclose(own[0], expected[0], rtol=1e-5)
        for mine, others in zip(own[1:], expected[1:]):
            self.assertEqual(mine.keys(), others.keys())
        largest = max(numpy.abs(gradient).max() for gradient in expected[1].values())
        for name, gradient in expected[1].items():
            if numpy.abs(gradient).max() < 1e-6 * largest:  # of a bias of keys: zero but for rounding
                self.assertLess(numpy.abs(own[1][name]).max(), 1e-6 * largest, (case, name))
            else:
                self.assertLess(relative_error(own[1][name], gradient), 1e-5, (case, name))
            self.assertLess(float(numpy.abs(own[2][name] - expected[2][name]).max()), 1e-6, (case, name))

    def state_bytes(self, plan) -> int:
        """Parameters and what else a rank keeps between steps."""
        return json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"][0]["state_bytes"]


class CutProductsTest(TensorParallelTestCase):
    def check(self, gpt: Gpt):
        expected = self.numbers(self.whole(gpt=gpt), 1)
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                self.assert_same(self.numbers(self.plan(*options, gpt=gpt), world), expected, options)

    def test_trains_as_one_rank(self):
        self.check(GPT)

    def test_slices_of_weights(self):
        sliced = dataclasses.replace(GPT, sliced=True)
        self.check(sliced)
        self.assertEqual(*(self.state_bytes(self.plan("--mesh", "tp=2", gpt=gpt)) for gpt in (sliced, GPT)))

    def test_stacked_weights(self):
        stacked = dataclasses.replace(GPT, stacked=True)
        self.check(stacked)
        self.assertEqual(*(self.state_bytes(self.plan("--mesh", "tp=2", gpt=gpt)) for gpt in (stacked, GPT)))

    def test_joined_bias(self):
        joined = dataclasses.replace(GPT, joined_bias=True)
        self.check(joined)
        self.assertIn("attention.qkv.weight[", self.run_ok("oriel", "inspect", self.plan("--mesh", "tp=2", gpt=joined), "--json").stdout)

    def test_heads_merged_with_the_batch(self):
        merged = dataclasses.replace(GPT, merged=True)
        self.check(merged)
        for gpt in (merged, GPT):
            ir = self.run_ok("oriel", "compile", *self.files(gpt), "--stop-after=raise").stdout
            self.assertEqual((ir.count("oriel.attention "), ir.count("oriel.transpose ")), (GPT.blocks, 0))
        self.assertEqual(*(self.state_bytes(self.plan("--mesh", "tp=2", gpt=gpt)) for gpt in (merged, GPT)))

    def test_bias_of_each_head(self):
        """A constant of which each rank takes that of its heads."""
        gpt = dataclasses.replace(GPT, alibi=True)
        expected = self.numbers(self.whole(gpt=gpt), 1)
        plan = self.plan("--mesh", "tp=2", gpt=gpt)
        self.assert_same(self.numbers(plan, 2), expected, "alibi")
        self.assertEqual(self.state_bytes(plan), self.state_bytes(self.plan("--mesh", "tp=2")))

    def test_heads_that_do_not_divide(self):
        """Attention stays whole, the MLP does not; a warning says so once."""
        gpt = dataclasses.replace(GPT, hidden=48, heads=3)
        expected = self.numbers(self.whole(gpt=gpt), 1)
        plan = self.folder / "odd.oplan"
        result = self.run_ok("oriel", "compile", *self.files(gpt), "--mesh", "tp=2", "-o", plan)
        self.assertEqual(result.stderr.count("does not divide the 3 elements or heads"), 1, result.stderr)
        self.assertIn("each rank computes all of it, and so in 1 more of such blocks", result.stderr)
        self.assert_same(self.numbers(plan, 2), expected, "odd heads")

    def halves(self, end) -> bytes:
        """A model whose last product is sliced into halves, of which `end` makes "logits" of one or both."""
        graph, random = Graph(), numpy.random.default_rng(0)
        graph.input("input_ids", numpy.int64, ["batch", GPT.sequence])
        for name, shape in (("table", (GPT.vocabulary, 8)), ("weight", (8, 2 * GPT.vocabulary))):
            graph.initializer(name, random.standard_normal(shape).astype("f4"))
        for name, value in (("zero", 0), ("half", GPT.vocabulary), ("end", 2 * GPT.vocabulary), ("last", -1)):
            graph.initializer(name, numpy.array([value], "i8"))
        graph.node("Gather", ["table", "input_ids"], "embedded")
        graph.node("MatMul", ["embedded", "weight"], "product")
        graph.node("Slice", ["product", "zero", "half", "last"], "first")
        graph.node("Slice", ["product", "half", "end", "last"], "second")
        for name in end(graph):
            graph.output(name, numpy.float32, ["batch", GPT.sequence, GPT.vocabulary])
        return graph.model()

    def test_columns_without_influence(self):
        """Half of a product is another output than that of the loss: the weight stays whole, and all of it decays."""
        def two_outputs(graph):
            return graph.node("Neg", ["first"], "logits"), graph.node("Neg", ["second"], "other")

        decays = lambda recipe: recipe.replace("{kind: sgd, lr: 1.0e-2}", "{kind: adamw, lr: 0.1, weight_decay: 0.5}")
        model = self.halves(two_outputs)
        expected = self.numbers(self.whole(change=decays, model=model), 1)
        own = self.numbers(self.plan("--mesh", "tp=2", change=decays, model=model), 2)
        for name, value in expected[2].items():
            numpy.testing.assert_allclose(own[2][name], value, rtol=1e-4, atol=1e-5)

    def test_columns_without_gradient(self):
        """The loss depends on half of a product only by whether it is finite: the weight stays whole."""
        def gated(graph):
            signs = graph.node("Cast", [graph.node("IsInf", ["second"], "infinite")], "signs", to=1)  # FLOAT
            return [graph.node("Add", ["first", signs], "logits")]

        model = self.halves(gated)
        expected = self.numbers(self.whole(model=model), 1)
        for world, options in ((1, ()), (2, ("--mesh", "tp=2"))):
            plan = self.plan(*options, model=model)
            self.assertNotIn("part_of", self.run_ok("oriel", "inspect", plan, "--json").stdout)
            self.assert_same(self.numbers(plan, world), expected, options)

    def test_in_bf16(self):
        bf16 = lambda recipe: recipe.replace("precision: f32", "precision: bf16").replace("1.0e-2", "1.0e-3")
        one, two = self.plan(change=bf16), self.plan("--mesh", "tp=2", "--zero", "0", change=bf16)
        numpy.testing.assert_allclose(self.numbers(two, 2)[0], self.numbers(one, 1)[0], rtol=1e-2)
        save = self.folder / "save"
        self.train(two, "--steps", 2, "--save-dir", save, world=2, data=self.data)
        whole = self.train(two, "--steps", 3, world=2, data=self.data)
        ended = self.train(one, "--steps", 3, "--resume", save, data=self.data)
        numpy.testing.assert_allclose(losses(ended)[-1:], losses(whole)[-1:], rtol=1e-2)

    def test_ranks_send_and_hold_what_they_would_of_single_weights(self):
        """Against the same model with a weight for each part."""
        reports = []
        for gpt in (GPT, dataclasses.replace(GPT, fused=False)):
            plan = self.plan("--mesh", "tp=2", "--sp", gpt=gpt)
            reports.append(json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"][0])
        for key in ("sent_bytes_per_step", "state_bytes"):
            self.assertGreater(reports[0][key], 0)
            self.assertEqual(reports[0][key], reports[1][key])

    def test_parts_are_listed(self):
        plan = self.plan("--mesh", "tp=2")
        tensors = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["parameters"]["tensors"]
        parts = {tensor["name"]: tensor["part_of"] for tensor in tensors if "part_of" in tensor}
        self.assertEqual({part["tensor"] for part in parts.values()}, CUT)
        self.assertEqual(parts["blocks.0.attention.qkv.weight[:, 64:128]"],
                         {"tensor": "blocks.0.attention.qkv.weight", "shape": [64, 192], "start": [0, 64]})
        whole = json.loads(self.run_ok("oriel", "inspect", self.whole(), "--json").stdout)["parameters"]
        self.assertNotIn("part_of", json.dumps(whole))

    def test_checkpoints_are_of_whole_weights(self):
        """Saved by one rank and gone on with by others, and the other way round; exported, they are the parameters."""
        adamw = lambda recipe: recipe.replace("{kind: sgd, lr: 1.0e-2}", "{kind: adamw, lr: 1.0e-3}")
        plans = [(self.whole(change=adamw), 1)] + [(self.plan(*options, change=adamw), world) for world, options in
                 ((1, ()), (4, ("--mesh", "dp=2,tp=2", "--zero", "3")), (4, ("--mesh", "tp=2", "--stages", "2")))]
        expected = losses(self.train(plans[0][0], "--steps", 6, data=self.data))
        for (first, first_world), (second, second_world) in zip(plans, plans[1:] + plans[:1]):
            save, parameters = self.folder / f"save{first.stem}", self.folder / "saved.safetensors"
            begun = self.train(first, "--steps", 3, "--save-dir", save, "--save-every", 3, "--dump-parameters",
                               parameters, world=first_world, data=self.data)
            ended = self.train(second, "--steps", 6, "--resume", save, world=second_world, data=self.data)
            numpy.testing.assert_allclose(losses(begun) + losses(ended), expected, rtol=1e-5)
            exported = self.folder / "exported.safetensors"
            self.run_ok("oriel", "export", second, "--checkpoint", save, "--to", "safetensors", "-o", exported)
            dumped = read_safetensors(parameters)
            for name, value in read_safetensors(exported).items():
                self.assertEqual(value.tobytes(), dumped[name].tobytes(), name)
            model = self.folder / "exported.onnx"
            self.run_ok("oriel", "export", second, "--checkpoint", save, "--to", "onnx", "-o", model)
            again = self.folder / "again.oplan"
            recipe = second.with_suffix(".yaml")
            self.run_ok("oriel", "compile", model, "--recipe", recipe, "-o", again)
            for name, value in read_safetensors(again.with_suffix(".weights.safetensors")).items():
                self.assertEqual(value.tobytes(), dumped[name].tobytes(), name)

    def test_recipes_and_strategies_name_whole_weights(self):
        rules = 'init: {seed: 3, rules: [{match: "*.qkv.weight", normal: {std: 0.1}}]}\n'
        change = lambda recipe: recipe.replace('frozen: []', 'frozen: ["*.gate_up.weight"]') + rules
        expected = self.numbers(self.whole(change=change), 1)
        self.assertNotIn("blocks.0.gate_up.weight", expected[1])
        self.assert_same(self.numbers(self.plan("--mesh", "tp=2", change=change), 2), expected, "rules")
        strategy = self.folder / "strategy.yaml"
        strategy.write_text('mesh: {tp: 2}\nshardings:\n  - {parameters: "*.qkv.*", tp: none}\n')
        plan = self.plan("--strategy", str(strategy), change=change)
        text = self.run_ok("oriel", "inspect", plan, "--json").stdout
        self.assertIn("gate_up.weight[:, 0:256]", text)
        self.assertNotIn("qkv.weight[", text)
        self.assert_same(self.numbers(plan, 2), expected, "whole")


if __name__ == "__main__":
    unittest.main()
