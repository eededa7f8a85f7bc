"""Linear attention behind a short convolution of queries, keys and values together: over tensor-parallel ranks by heads, also of
keys and queries that all heads share."""

import unittest

import numpy
from cut_products_test import GPT, TensorParallelTestCase
from onnx_writer import Graph

HEADS, KEY, VALUE, WIDTH, KERNEL = 4, 4, 8, 16, 4


class Layer:
    """Nodes of a model that has one such layer."""

    def __init__(self, taps: bool, key_heads: int = HEADS):
        self.graph, self.random, self.taps = Graph(), numpy.random.default_rng(2), taps
        self.key_heads = key_heads
        self.sections = (key_heads * KEY, key_heads * KEY, HEADS * VALUE)

    def parameter(self, name: str, *shape: int, scale: float = 0.4) -> str:
        return self.graph.initializer(name, (scale * self.random.standard_normal(shape)).astype("f4"))

    def integers(self, name: str, *values: int) -> str:
        return self.graph.initializer(name, numpy.array(values))

    def node(self, kind: str, *operands: str, name: str = "", **attributes) -> str:
        return self.graph.node(kind, list(operands), name or f"{kind}_{self.random.integers(1 << 30)}", **attributes)

    def product(self, value: str, name: str, rows: int, columns: int) -> str:
        return self.node("MatMul", value, self.parameter(f"{name}.weight", rows, columns))

    def silu(self, value: str) -> str:
        return self.node("Mul", value, self.node("Sigmoid", value))

    def convolved(self, value: str) -> str:
        """[batch, tokens, channels], each of the last positions of its channel."""
        channels = sum(self.sections)
        weight, bias = self.parameter("conv.weight", channels, 1, KERNEL), self.parameter("conv.bias", channels)
        value = self.node("Transpose", value, perm=[0, 2, 1])
        if self.taps:
            value = self.node("Conv", value, weight, bias, group=channels, pads=[KERNEL - 1, KERNEL - 1])
            value = self.node("Slice", value, self.integers("zero", 0), self.integers("tokens", GPT.sequence), self.integers("last", 2))
        else:
            value = self.node("Pad", value, self.integers("padding", 0, 0, KERNEL - 1, 0, 0, 0))
            value = self.node("Conv", value, weight, bias, group=channels)
        return self.node("Transpose", self.silu(value), perm=[0, 2, 1])

    def heads(self, value: str, count: int, size: int) -> str:
        value = self.node("Reshape", value, self.integers(f"heads_of_{value}", 0, 0, count, size))
        return self.node("Transpose", value, perm=[0, 2, 1, 3])

    def model(self) -> bytes:
        graph = self.graph
        graph.input("input_ids", numpy.int64, ["batch", GPT.sequence])
        x = self.node("Gather", self.parameter("embedding.weight", GPT.vocabulary, WIDTH), "input_ids")
        parts = [self.product(x, name, WIDTH, size) for name, size in zip("qkv", self.sections)]
        joined = self.convolved(self.node("Concat", *parts, axis=2))
        q, k, v = (graph.initializer(f"{name}_end", numpy.array([end])) for name, end in zip("qkv", numpy.cumsum(self.sections)))
        begin, axis = self.integers("begin", 0), self.integers("columns", 2)
        queries, keys, values = (self.node("Slice", joined, *ends, axis) for ends in ((begin, q), (q, k), (k, v)))
        queries, keys = (self.heads(value, self.key_heads, KEY) for value in (queries, keys))
        keys, values = self.node("Transpose", keys, perm=[0, 1, 3, 2]), self.heads(values, HEADS, VALUE)
        scores = self.node("MatMul", queries, keys)
        before = graph.initializer("before", numpy.tril(numpy.ones((GPT.sequence, GPT.sequence), "f4")))
        found = self.node("MatMul", self.node("Mul", scores, before), values)
        found = self.node("Add", found, self.node("MatMul", queries, self.node("MatMul", keys, values)))
        # Each head of each position is a row; all heads together, where they share their keys.
        row = VALUE if self.key_heads == HEADS else HEADS * VALUE
        rows = self.integers("rows", -1, row)
        found = self.node("Reshape", self.node("Transpose", found, perm=[0, 2, 1, 3]), rows)
        scale = graph.initializer("norm.weight", numpy.linspace(0.5, 1.5, row, dtype="f4"))
        normed = self.node("RMSNormalization", found, scale, axis=-1, epsilon=1e-6)
        gate = self.node("Reshape", self.product(x, "gate", WIDTH, HEADS * VALUE), rows)
        gated = self.node("Mul", normed, self.silu(gate))
        merged = self.node("Reshape", gated, self.integers("merged", -1, GPT.sequence, HEADS * VALUE))
        y = self.node("Add", x, self.product(merged, "out", HEADS * VALUE, WIDTH))
        self.graph.node("MatMul", [y, self.parameter("head.weight", WIDTH, GPT.vocabulary)], "logits")
        graph.output("logits", numpy.float32, ["batch", GPT.sequence, GPT.vocabulary])
        return graph.model(23)


class CutConvolutionsTest(TensorParallelTestCase):
    def test_trains_as_one_rank(self):
        for taps, key_heads in ((True, HEADS), (False, HEADS), (True, 1)):
            model = Layer(taps, key_heads).model()
            expected = self.numbers(self.whole(model=model), 1)
            self.assertIn("conv.weight", expected[1])
            for world, options in ((2, ("--mesh", "tp=2")), (4, ("--mesh", "tp=4", "--sp")), (4, ("--mesh", "dp=2,tp=2", "--zero", "3"))):
                with self.subTest(taps=taps, key_heads=key_heads, options=options):
                    self.assert_same(self.numbers(self.plan(*options, model=model), world), expected, options)

    def test_all_of_it_is_split(self):
        for key_heads in (HEADS, 1):
            model = Layer(True, key_heads).model()
            result = self.run_ok("oriel", "compile", *self.files(model=model), "--mesh", "tp=4", "-o", self.folder / "p.oplan")
            self.assertNotIn("is not split", result.stderr)
            self.assertLess(self.state_bytes(self.folder / "p.oplan"), 0.4 * self.state_bytes(self.whole(model=model)))


if __name__ == "__main__":
    unittest.main()
