"""Parameters that only outputs use which training does not need."""

import json

import numpy
from onnx_writer import Graph
from oriel_testing import OrielTestCase, write_shard

WORDS, WIDTH, LENGTH, SAMPLES = 12, 8, 4, 4


class UnusedTest(OrielTestCase):
    def test_value_head(self):
        """It is left out of plan and checkpoints; an export keeps it as it was."""
        graph, random = Graph(), numpy.random.default_rng(0)
        graph.input("input_ids", numpy.int64, ["batch", LENGTH])
        shapes = {"table": (WORDS, WIDTH), "head": (WIDTH, WORDS), "value": (WIDTH, 1)}
        weights = {name: random.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
        for name, values in weights.items():
            graph.initializer(name, values)
        graph.node("Gather", ["table", "input_ids"], "x")
        graph.node("MatMul", ["x", "head"], "logits")
        graph.node("MatMul", ["x", "value"], "values")
        graph.output("logits", numpy.float32, ["batch", LENGTH, WORDS])
        graph.output("values", numpy.float32, ["batch", LENGTH, 1])
        model, recipe, data, plan = (self.folder / name for name in ("model.onnx", "recipe.yaml", "data", "p.oplan"))
        model.write_bytes(graph.model())
        recipe.write_text("model: {bind: {batch: micro_batch}}\nloss: {logits: logits, labels: input_ids}\n"
                          "optimizer: {kind: sgd, lr: 0.1}\nbatch: {global: 4, micro: 2}\nsteps: 2\n")
        data.mkdir()
        ids = random.integers(0, WORDS, (SAMPLES, LENGTH))
        write_shard(data / "0.tar", [{"input_ids": row} for row in ids])
        for world, mesh in ((1, "dp=1"), (2, "tp=2"), (2, "fsdp=2")):
            with self.subTest(mesh):
                options = ("--zero", "3") if mesh == "fsdp=2" else ()
                said = self.run_ok("oriel", "compile", model, "--recipe", recipe, "--mesh", mesh, *options, "-o", plan).stderr
                self.assertEqual(said.count("does not depend on the parameter 'value'"), 1, said)
                inspected = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)
                self.assertEqual({each["name"] for each in inspected["parameters"]["tensors"]}, {"table", "head"})
                save = self.folder / mesh
                self.train(plan, "--save-dir", save, world=world, data=data)
                trained = self.folder / f"{mesh}.onnx"
                self.run_ok("oriel", "export", plan, "--checkpoint", save, "--to", "onnx", "-o", trained)
                content = trained.read_bytes()
                self.assertEqual({name: content.count(values.tobytes()) for name, values in weights.items()},
                                 {"table": 0, "head": 0, "value": 1})
