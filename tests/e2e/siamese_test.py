"""Models that run their layers on several inputs: an answer that is preferred, and one that is rejected."""

import json
import re
import unittest

import numpy
from onnx_writer import Graph
from oriel_testing import OrielTestCase, relative_error, write_shard

WORDS, WIDTH, POSITIONS, LAYERS = 12, 8, 4, 4
RECIPE = """
model: {bind: {batch: micro_batch}}
loss: {kind: sum, output: loss, over: microbatch}
optimizer: {kind: sgd, lr: 0.1}
batch: {global: 4, micro: %d}
steps: 1
"""


class SiameseTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.build({"preferred": POSITIONS, "rejected": POSITIONS})

    def build(self, lengths: dict[str, int]) -> None:
        """By answer its positions."""
        random, graph = numpy.random.default_rng(0), Graph()

        def weight(name: str, *shape: int) -> str:
            graph.initializer(name, (random.standard_normal(shape) / shape[0] ** 0.5).astype("f4"))
            return name

        weights = [(weight(f"layers.{i}.up", WIDTH, 2 * WIDTH), weight(f"layers.{i}.down", 2 * WIDTH, WIDTH)) for i in range(LAYERS)]
        weight("embed", WORDS, WIDTH)
        weight("head", WIDTH, WORDS)

        def log_probability(answer: str) -> str:
            def node(op, inputs, name, **attributes):
                return graph.node(op, inputs, f"{answer}.{name}", **attributes)

            graph.input(answer, numpy.int64, ["batch", lengths[answer]])
            x = node("Gather", ["embed", answer], "x", axis=0)
            for i, (up, down) in enumerate(weights):
                h = node("Tanh", [node("MatMul", [x, up], f"{i}.up")], f"{i}.tanh")
                x = node("Add", [x, node("MatMul", [h, down], f"{i}.down")], f"{i}.x")
            logs = node("LogSoftmax", [node("MatMul", [x, "head"], "logits")], "logs", axis=-1)
            labels = node("Unsqueeze", [answer, "last"], "labels")
            chosen = node("GatherElements", [logs, labels], "chosen", axis=2)
            return node("ReduceSum", [chosen, "positions"], "sum", keepdims=0)

        graph.initializer("last", numpy.array([2]))
        graph.initializer("positions", numpy.array([1, 2]))
        better = graph.node("Sub", [log_probability("preferred"), log_probability("rejected")], "better")
        graph.node("ReduceMean", [graph.node("Softplus", [graph.node("Neg", [better], "worse")], "losses")], "loss", keepdims=0)
        graph.output("loss", numpy.float32, [])
        self.model = self.folder / "model.onnx"
        self.model.write_bytes(graph.model())
        self.data = self.folder / "data"
        self.data.mkdir(exist_ok=True)
        write_shard(self.data / "0.tar", [{name: random.integers(0, WORDS, length) for name, length in lengths.items()}
                                          for _ in range(4)])

    def plan(self, *options, micro: int = 4):
        recipe, plan = self.folder / "recipe.yaml", self.folder / "plan.oplan"
        recipe.write_text(RECIPE % micro)
        self.said = self.run_ok("oriel", "compile", self.model, "--recipe", recipe, *options, "-o", plan).stderr
        return plan

    def test_trains_as_one_rank(self):
        for micro, micro_of_rank, world, *options in (
                (4, 4, 2, "--mesh", "tp=2"), (4, 4, 2, "--mesh", "cp=2"), (4, 4, 4, "--mesh", "cp=2,tp=2"),
                (4, 4, 2, "--stages", "2"), (2, 2, 2, "--stages", "2"), (2, 2, 4, "--stages", "2", "--mesh", "tp=2", "--remat", "full"),
                (4, 4, 1, "--remat", "full")):
            with self.subTest(options=options, micro=micro):
                expected = self.trained_gradients(self.plan(micro=micro), self.data)
                found = self.trained_gradients(self.plan(*options, micro=micro_of_rank), self.data, world)
                self.assertNotIn("warning", self.said)  # of what is whole on each rank
                self.assertEqual(found.keys(), expected.keys())
                for name, gradient in expected.items():
                    self.assertLessEqual(relative_error(found[name], gradient), 1e-5, name)

    def test_stages_have_layers_of_both(self):
        """Not one of them each: every stage would have all layers."""
        each = 2 * 2 * WIDTH * WIDTH * 4  # bytes of a layer
        whole = LAYERS * each + 2 * WORDS * WIDTH * 4
        for rejected in (POSITIONS, POSITIONS - 1):
            with self.subTest(rejected=rejected):
                self.build({"preferred": POSITIONS, "rejected": rejected})
                expected = self.trained_gradients(self.plan(), self.data)
                plan = self.plan("--stages", "2", "--explain-stages")
                self.assertEqual(len(re.findall(r"stage: part layers\.\d+:", self.said)), LAYERS, self.said)
                for program in json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"]:
                    self.assertLess(program["memory"]["parts"]["parameters"], whole - each)
                found = self.trained_gradients(plan, self.data, 2)
                for name, gradient in expected.items():
                    self.assertLessEqual(relative_error(found[name], gradient), 1e-5, name)

    def test_a_folded_simulation_is_of_both(self):
        recipe = self.folder / "recipe.yaml"
        recipe.write_text(RECIPE % 2)
        simulate = ("oriel", "simulate", self.model, "--recipe", recipe, "--cluster", "h100:2", "--stages", 2, "--json")
        folded, whole = (json.loads(self.run_ok(*simulate, *more).stdout) for more in ((), ("--whole",)))
        self.assertAlmostEqual(folded["step_seconds"] / whole["step_seconds"], 1, delta=2e-3)
        for one, other in zip(folded["stages"], whole["stages"]):
            self.assertAlmostEqual(one["busy"] / other["busy"], 1, delta=1e-2)
            self.assertAlmostEqual(one["memory"]["total"] / other["memory"]["total"], 1, delta=5e-2)


if __name__ == "__main__":
    unittest.main()
