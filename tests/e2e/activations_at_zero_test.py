"""Derivatives of activations at exactly 0, where layers begin that are zero at first: those that PyTorch takes."""

import math

import numpy
import onnx_writer
from oriel_testing import OrielTestCase, read_safetensors, write_shard

RECIPE = """
model: {bind: {batch: micro_batch}}
loss: {kind: sum, output: loss}
optimizer: {kind: sgd, lr: 0.1}
batch: {global: 1, micro: 1}
steps: 1
"""
SELU = 1.67326319217681884765625 * 1.05070102214813232421875
# Nodes, one behind the other, with attributes; and the derivative.
CASES = {
    "relu": ([("Relu", {})], 0),
    "leaky_relu": ([("LeakyRelu", {"alpha": 0.1})], 0.1),
    "prelu": ([("PRelu", {})], 0.25),
    "elu": ([("Elu", {"alpha": 0.7})], 0.7),
    "selu": ([("Selu", {})], SELU),
    "celu": ([("Celu", {"alpha": 1.5})], 1),
    "softplus": ([("Softplus", {})], 0.5),
    "mish": ([("Mish", {})], math.tanh(math.log(2))),
    "log_sigmoid": ([("Sigmoid", {}), ("Log", {})], 0.5),
}


class ActivationsAtZeroTest(OrielTestCase):
    def test_derivatives(self):
        graph = onnx_writer.Graph()
        graph.input("x", numpy.float32, ["batch", 2])
        graph.output("loss", numpy.float32, ["batch", 2])
        graph.initializer("slope", numpy.array([0.25], "f4"))
        total = "x"
        for name, (nodes, _) in CASES.items():
            graph.initializer(f"{name}.weight", numpy.zeros(2, "f4"))
            value = graph.node("Mul", ["x", f"{name}.weight"], f"{name}.z")
            for number, (op, attributes) in enumerate(nodes):
                operands = [value, "slope"] if op == "PRelu" else [value]
                value = graph.node(op, operands, f"{name}.{number}", **attributes)
            total = graph.node("Add", [total, value], f"{name}.sum")
        graph.node("Identity", [total], "loss")
        model, recipe = self.folder / "model.onnx", self.folder / "recipe.yaml"
        model.write_bytes(graph.model())
        recipe.write_text(RECIPE)
        data = self.folder / "data"
        data.mkdir()
        write_shard(data / "0.tar", [{"x": numpy.array([2, -2], "f4")}])
        plan = self.compile(recipe, 1, model=model)
        path = self.folder / "gradients.safetensors"
        self.train(plan, "--dump-gradients", path, data=data)
        gradients = read_safetensors(path)
        for name, (_, derivative) in CASES.items():
            expected = numpy.array([2, -2], "f4") * derivative
            numpy.testing.assert_allclose(gradients[f"{name}.weight"], expected, rtol=1e-6, atol=1e-6, err_msg=name)
