"""Models that are stored in f16 or bf16: trained as the same model in f32, and written back as they were stored."""

import json

import numpy
import onnx_writer
from oriel_testing import OrielTestCase, losses, read_safetensors, run

WORDS, WIDTH, LENGTH, SAMPLES = 12, 8, 6, 8
F32, F16, BF16 = numpy.dtype("f4"), numpy.dtype("f2"), numpy.dtype("u2")  # as onnx_writer has bf16


def stored(values: numpy.ndarray, dtype: numpy.dtype) -> numpy.ndarray:
    """f32 values that bf16 and f16 both have, in one of the types."""
    if dtype == BF16:
        return (values.astype("f4").view("u4") >> 16).astype("u2")
    return values.astype(dtype)


def widened(values: numpy.ndarray) -> numpy.ndarray:
    return (values.astype("u4") << 16).view("f4") if values.dtype == BF16 else values.astype("f4")


def weights() -> dict[str, numpy.ndarray]:
    """With 7 bits of fraction: as many as bf16 has."""
    random = numpy.random.default_rng(0)
    shapes = {"embed": (WORDS, WIDTH), "up": (WIDTH, 16), "down": (16, WIDTH), "head": (WIDTH, WORDS)}
    values = {name: (random.integers(-64, 64, shape) / 128).astype("f4") for name, shape in shapes.items()}
    return values | {"scale": numpy.ones(WIDTH, "f4"), "shift": numpy.zeros(WIDTH, "f4")}


def model(dtype: numpy.dtype) -> bytes:
    """An embedding, a norm that computes in f32, an MLP and an output layer; of another type than f32 with the casts that
    exporters write."""
    narrow, wide = onnx_writer.DTYPES[dtype], onnx_writer.DTYPES[F32]
    graph = onnx_writer.Graph()
    graph.input("input_ids", numpy.int64, ["batch", LENGTH])
    graph.output("logits", dtype, ["batch", LENGTH, WORDS])
    for name, values in weights().items():
        graph.initializer(name, stored(values, dtype))
    graph.node("Gather", ["embed", "input_ids"], "embedded", axis=0)
    norm = [graph.node("Cast", [name], f"{name}_wide", to=wide) for name in ("embedded", "scale", "shift")]
    graph.node("LayerNormalization", norm, "normed")
    graph.node("Cast", ["normed"], "rounded", to=narrow)
    graph.node("Relu", [graph.node("MatMul", ["rounded", "up"], "wider")], "active")
    graph.node("Add", ["embedded", graph.node("MatMul", ["active", "down"], "narrower")], "hidden")
    graph.node("MatMul", ["hidden", "head"], "logits")
    return graph.model()


class NarrowModelTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(1)
        self.data = self.write_data("data", [{name: random.integers(0, WORDS, LENGTH) for name in ("input_ids", "labels")}
                                             for _ in range(SAMPLES)])

    def plan(self, dtype: numpy.dtype, precision: str = "f32", lr: str = "1.0e-2"):
        path, recipe = self.folder / f"{dtype}.onnx", self.folder / "recipe.yaml"
        path.write_bytes(model(dtype))
        recipe.write_text(
            "model: {bind: {batch: micro_batch}}\n"
            f"inputs: {{labels: {{dtype: int64, shape: [micro_batch, {LENGTH}]}}}}\n"
            "loss: {logits: logits, labels: labels}\n"
            f"optimizer: {{kind: sgd, lr: {lr}}}\n"
            f"precision: {precision}\nbatch: {{global: {SAMPLES}, micro: 4}}\nsteps: 3\n")
        plan = self.folder / f"{dtype}_{precision}.oplan"
        done = run("oriel", "compile", path, "--recipe", recipe, "-o", plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        if dtype != F32:
            self.assertIn(f"what is {'f16' if dtype == F16 else 'bf16'} in the file (1 cast, 6 parameters) is computed in f32",
                          done.stderr)
        return plan

    def test_trains_as_in_f32(self):
        for precision in ("f32", "bf16"):
            expected = losses(self.train(self.plan(F32, precision), data=self.data))
            self.assertLess(expected[-1], expected[0])
            for dtype in (F16, BF16):
                self.assertEqual(losses(self.train(self.plan(dtype, precision), data=self.data)), expected, (dtype, precision))

    def test_exports_the_stored_type(self):
        for dtype in (F16, BF16):
            with self.subTest(dtype):
                plan, saved = self.plan(dtype), self.folder / f"saved_{dtype}"
                parameters, exported = self.folder / "parameters.safetensors", self.folder / f"trained_{dtype}.onnx"
                self.train(plan, "--save-dir", saved, "--dump-parameters", parameters, data=self.data)
                self.run_ok("oriel", "export", plan, "--checkpoint", saved, "--to", "onnx", "-o", exported)
                # What another plan of the exported file starts from is the trained value, rounded.
                again, loaded = self.folder / "again.oplan", self.folder / "loaded.safetensors"
                self.run_ok("oriel", "compile", exported, "--recipe", self.folder / "recipe.yaml", "-o", again)
                self.run_ok("oriel-run", again, "--eval", self.data, "--steps", 0, "--dump-parameters", loaded)
                trained, read = read_safetensors(parameters), read_safetensors(loaded)
                self.assertEqual(set(read), set(weights()))
                bits = 11 if dtype == F16 else 8
                for name, values in read.items():
                    self.assertTrue((values == widened(stored(values, dtype))).all(), name)
                    self.assertLessEqual(numpy.abs(values - trained[name]).max(),
                                         numpy.abs(trained[name]).max() * 2.0**-bits, name)
                self.assertTrue(any((read[name] != weights()[name]).any() for name in read))
                header = (self.folder / "again.weights.safetensors").read_bytes()
                tensors = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])
                self.assertEqual({tensor["dtype"] for name, tensor in tensors.items() if name != "__metadata__"},
                                 {"F16" if dtype == F16 else "BF16"})

    def test_values_beyond_the_stored_type(self):
        plan, saved = self.plan(F16, lr="1.0e+9"), self.folder / "saved"
        self.train(plan, "--steps", 1, "--save-dir", saved, data=self.data)
        exported = self.folder / "trained.onnx"
        done = run("oriel", "export", plan, "--checkpoint", saved, "--to", "onnx", "-o", exported)
        self.assert_fails(done, "is beyond float16", "export to safetensors")
        self.assertFalse(exported.exists())
        self.run_ok("oriel", "export", plan, "--checkpoint", saved, "--to", "safetensors", "-o", self.folder / "t.safetensors")
