"""Towers that share what tensor parallelism cuts: scales of a condition, joined branches, pieces that others take whole, chosen rows."""

import json
import unittest

import numpy
from onnx_writer import Graph
from oriel_testing import OrielTestCase, relative_error, write_shard

WIDTH, POSITIONS, CONDITION, LAYERS, CHOSEN = 16, 8, 12, 2, 4
RECIPE = """
model: {bind: {batch: micro_batch}}
loss: {kind: sum, output: loss, over: microbatch}
optimizer: {kind: sgd, lr: 0.1}
batch: {global: 2, micro: 2}
steps: 1
"""
STRATEGIES = (
    (2, ("--mesh", "tp=2")), (2, ("--mesh", "tp=2", "--sp")), (4, ("--mesh", "tp=4")), (2, ("--mesh", "tp=2", "--remat", "full")),
    (4, ("--mesh", "tp=2", "--stages", "2")),
)


class SharedTowersTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.random = numpy.random.default_rng(0)
        self.graph = Graph()
        self.whole = 0  # elements of parameters that no rank needs to have in pieces

    def weight(self, name: str, *shape: int) -> str:
        values = self.random.standard_normal(shape) / shape[0] ** 0.5
        return self.graph.initializer(name, values.astype("f4"))

    def product(self, x: str, name: str, columns: int, rows: int = WIDTH) -> str:
        return self.graph.node("MatMul", [x, self.weight(name, rows, columns)], f"{name}.y")

    def tanh(self, x: str) -> str:
        return self.graph.node("Tanh", [x], f"{x}.tanh")

    def norm(self, x: str, name: str) -> str:
        self.whole += WIDTH
        return self.graph.node("LayerNormalization", [x, self.graph.initializer(name, numpy.ones(WIDTH, "f4"))], f"{name}.y", axis=-1)

    def add(self, x: str, y: str) -> str:
        return self.graph.node("Add", [x, y], f"{y}.sum")

    # Blocks, each of a residual stream x.

    def scaled(self, x: str, layer: str) -> str:
        """Scales and shifts that a small network of the condition gives each layer (Peebles & Xie 2023)."""
        both = self.product("condition.scales", f"{layer}.scales", 2 * WIDTH)
        scale, shift = (self.graph.node("Slice", [both, str(start), str(end), "last"], f"{layer}.{name}")
                        for name, start, end in (("scale", 0, WIDTH), ("shift", WIDTH, 2 * WIDTH)))
        scale, shift = (self.graph.node("Unsqueeze", [value, "positions"], f"{value}.of_positions") for value in (scale, shift))
        return self.add(self.graph.node("Mul", [self.norm(x, f"{layer}.norm"), scale], f"{layer}.scaled"), shift)

    def joined(self, x: str, layer: str) -> str:
        """Two branches with one output layer (Dehghani et al. 2023)."""
        y = self.scaled(x, layer)
        first = self.tanh(self.product(y, f"{layer}.first", WIDTH))
        second = self.graph.node("Sigmoid", [self.product(y, f"{layer}.second", 2 * WIDTH)], f"{layer}.sigmoid")
        both = self.graph.node("Concat", [first, second], f"{layer}.both", axis=-1)
        return self.add(x, self.product(both, f"{layer}.down", WIDTH, rows=3 * WIDTH))

    def taken(self, x: str, other: str, layer: str) -> tuple[str, str]:
        """A layer whose pieces another tower takes whole, by a layer of its own (Shukor et al. 2025)."""
        hidden = self.tanh(self.product(self.norm(x, f"{layer}.norm"), f"{layer}.up", WIDTH))
        columns = self.tanh(self.product(hidden, f"{layer}.columns", 2 * WIDTH))
        x = self.add(x, self.product(hidden, f"{layer}.down", WIDTH))
        return x, self.add(other, self.product(columns, f"{layer}.other", WIDTH, rows=2 * WIDTH))

    def chosen(self, x: str, layer: str) -> str:
        """Some rows through layers, and back to their places."""
        def index(columns: int) -> str:
            shape = self.graph.initializer(f"{layer}.{columns}", numpy.array([1, 1, columns]))
            return self.graph.node("Expand", ["index", shape], f"{layer}.of_{columns}")

        hidden = self.product(self.norm(x, f"{layer}.norm"), f"{layer}.up", 2 * WIDTH)
        rows = self.tanh(self.graph.node("GatherElements", [hidden, index(2 * WIDTH)], f"{layer}.rows", axis=1))
        made = self.product(rows, f"{layer}.down", WIDTH, rows=2 * WIDTH)
        return self.graph.node("ScatterElements", [x, index(WIDTH), made], f"{layer}.x", axis=1)

    def build(self) -> None:
        graph = self.graph
        shapes = {"x": [POSITIONS, WIDTH], "other": [POSITIONS, WIDTH], "condition": [CONDITION], "target": [POSITIONS, WIDTH]}
        for name, shape in shapes.items():
            graph.input(name, numpy.float32, ["batch", *shape])
        graph.input("index", numpy.int64, ["batch", CHOSEN, 1])
        for value in (0, WIDTH, 2 * WIDTH):
            graph.initializer(str(value), numpy.array([value]))
        graph.initializer("last", numpy.array([1]))
        graph.initializer("positions", numpy.array([1]))
        hidden = self.tanh(self.product("condition", "condition.first", WIDTH, rows=CONDITION))
        graph.node("Tanh", [self.product(hidden, "condition.second", WIDTH)], "condition.scales")
        self.whole += CONDITION * WIDTH  # of its two products one, for the scales' sake
        x, other = "x", "other"
        for i in range(LAYERS):
            x = self.joined(x, f"layers.{i}.joined")
            x, other = self.taken(x, other, f"layers.{i}.taken")
            x = self.chosen(x, f"layers.{i}.chosen")
        error = graph.node("Sub", [self.add(x, other), "target"], "error")
        graph.node("ReduceMean", [graph.node("Mul", [error, error], "squares")], "loss", keepdims=0)
        graph.output("loss", numpy.float32, [])
        self.model, self.data = self.folder / "model.onnx", self.folder / "data"
        self.model.write_bytes(graph.model())
        self.data.mkdir()
        samples = [{name: self.random.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
                   | {"index": self.random.permutation(POSITIONS)[:CHOSEN, None]} for _ in range(2)]
        write_shard(self.data / "0.tar", samples)

    def plan(self, *options):
        recipe, plan = self.folder / "recipe.yaml", self.folder / "plan.oplan"
        recipe.write_text(RECIPE)
        self.said = self.run_ok("oriel", "compile", self.model, "--recipe", recipe, *options, "-o", plan).stderr
        return plan

    def parameters(self, plan) -> int:
        """Elements on a rank."""
        programs = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"]
        return programs[0]["memory"]["parts"]["parameters"] // 4

    def test_trains_as_one_rank(self):
        self.build()
        plan = self.plan()
        expected, whole = self.trained_gradients(plan, self.data), self.parameters(plan)
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                found = self.trained_gradients(self.plan(*options), self.data, world)
                self.assertNotIn("warning", self.said)
                self.assertEqual(found.keys(), expected.keys())
                for name, gradient in expected.items():
                    self.assertLessEqual(relative_error(found[name], gradient), 1e-5, name)
        self.assertLessEqual(self.parameters(self.plan("--mesh", "tp=2")), self.whole + (whole - self.whole) // 2)


if __name__ == "__main__":
    unittest.main()
