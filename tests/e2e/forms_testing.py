"""Models in two forms that must train alike: by an op, and by what it stands for."""

import numpy
from onnx_writer import Graph
from oriel_testing import OrielTestCase, losses, read_safetensors, relative_error, write_shard

RECIPE = """
model: {{bind: {{batch: micro_batch}}}}
inputs: {{labels: {{dtype: int64, shape: [micro_batch, {tokens}]}}}}
loss: {{logits: logits, labels: labels, shift: false}}
optimizer: {{kind: sgd, lr: 0.1}}
batch: {{global: {batch}, micro: {batch}}}
steps: 2
"""


class FormsTestCase(OrielTestCase):
    """A model's input is x [batch, tokens, width], its logits are y of the same shape; parameters are random, of `shapes`."""
    batch, tokens, width, opset, shapes = 2, 6, 32, 23, {}

    def add_constants(self, graph: Graph) -> None:
        """What both forms read besides x and the parameters."""

    def trained(self, name: str, build) -> tuple[list[float], dict]:
        """Losses of two steps, and the gradients of the first."""
        graph, random = Graph(), numpy.random.default_rng(0)
        shape = [self.tokens, self.width]
        graph.input("x", numpy.float32, ["batch", *shape])
        self.add_constants(graph)
        for weight, weight_shape in self.shapes.items():
            graph.initializer(weight, (random.standard_normal(weight_shape) / 4).astype("f4"))
        build(graph)
        graph.node("Identity", ["y"], "logits")
        graph.output("logits", numpy.float32, ["batch", *shape])
        folder = self.folder / name
        (folder / "data").mkdir(parents=True)
        (folder / "model.onnx").write_bytes(graph.model(self.opset))
        (folder / "recipe.yaml").write_text(RECIPE.format(batch=self.batch, tokens=self.tokens))
        write_shard(folder / "data" / "0.tar", [{"x": random.standard_normal(shape).astype("f4"),
                                                "labels": random.integers(0, self.width, self.tokens)} for _ in range(self.batch)])
        plan = folder / "p.oplan"
        self.run_ok("oriel", "compile", folder / "model.onnx", "--recipe", folder / "recipe.yaml", "-o", plan)
        metrics = self.train(plan, "--no-shuffle", "--dump-gradients", folder / "g.safetensors", data=folder / "data")
        return losses(metrics), read_safetensors(folder / "g.safetensors")

    def compare(self, name: str, build, limit: float = 1e-5) -> None:
        """`build(graph, form)` makes y, for the forms True and False."""
        with self.subTest(name):
            (own, own_gradients), (standard, gradients) = (
                self.trained(f"{name}_{form}", lambda graph, form=form: build(graph, form)) for form in (True, False))
            numpy.testing.assert_allclose(own, standard, rtol=1e-6)
            self.assertEqual(set(own_gradients), set(gradients))
            self.assertGreater(len(gradients), 0)
            for parameter, gradient in gradients.items():
                self.assertGreater(numpy.linalg.norm(gradient), 0, parameter)
                self.assertLess(relative_error(own_gradients[parameter], gradient), limit, parameter)
