"""What a frozen encoder saves: its gradients, its optimizer state and its stash, and nothing else; for several sizes."""

import json

import numpy
import onnx_writer
from oriel_testing import SOURCE, OrielTestCase

LLAVA = SOURCE / "models" / "skeletons" / "llava_1_5_7b"
PATCHES, TEXT, CLASSES = 576, 1472, 32000


class FrozenMemoryTest(OrielTestCase):
    RECIPE = f"""
model: {{bind: {{batch: micro_batch}}}}
inputs: {{labels: {{dtype: int64, shape: [micro_batch, {PATCHES + TEXT}]}}}}
loss: {{logits: logits, labels: labels}}
parameters: {{trainable: ["*"], frozen: []}}
init: {{seed: 0, rules: [{{match: ["*"], normal: {{std: 0.02}}}}]}}
optimizer: {{kind: adamw, lr: 1.0e-3}}
batch: {{global: 2, micro: 1}}
steps: 1
"""

    def write_model(self, encoder: tuple[int, int], decoder: tuple[int, int]):
        """Two towers of so many residual blocks of a width, with a projector between them."""
        graph = onnx_writer.Graph()

        def linear(x: str, name: str, rows: int, columns: int, out: str = "") -> str:
            weight = graph.external_initializer(f"{name}.weight", (rows, columns), "model.onnx.data")
            return graph.node("MatMul", [x, weight], out or f"{name}.out")

        def tower(x: str, name: str, layers: int, width: int) -> str:
            for layer in range(layers):
                block = f"{name}.layers.{layer}"
                inner = graph.node("Relu", [linear(x, f"{block}.up", width, 4 * width)], f"{block}.relu")
                x = graph.node("Add", [x, linear(inner, f"{block}.down", 4 * width, width)], f"{block}.sum")
            return x

        graph.input("patches", numpy.float32, ["batch", PATCHES, encoder[1]])
        graph.input("text", numpy.float32, ["batch", TEXT, decoder[1]])
        graph.output("logits", numpy.float32, ["batch", PATCHES + TEXT, CLASSES])
        images = linear(tower("patches", "encoder", *encoder), "projector", encoder[1], decoder[1])
        sequence = graph.node("Concat", [images, "text"], "sequence", axis=1)
        linear(tower(sequence, "decoder", *decoder), "head", decoder[1], CLASSES, "logits")
        (self.folder / "model.onnx").write_bytes(graph.model())
        return self.folder / "model.onnx"

    def describe(self, model, text: str, *options) -> dict:
        recipe, plan = self.folder / "recipe.yaml", self.folder / "p.oplan"
        recipe.write_text(text)
        self.run_ok("oriel", "compile", model, "--recipe", recipe, *options, "-o", plan)
        return json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)

    def check(self, model, text: str, frozen: str, stages: str, sizes: tuple[int, int] = (4, 8), options=()) -> None:
        """`frozen` is the encoder's parameters, `stages` cuts behind it. `sizes`: of a gradient and an optimizer state."""
        self.assertIn("frozen: []", text)
        all_train = self.describe(model, text, *options)
        encoder_frozen = self.describe(model, text.replace("frozen: []", f"frozen: [\"{frozen}\"]"), *options)
        size = encoder_frozen["parameters"]["frozen"]
        before, after = (plan["programs"][0] for plan in (all_train, encoder_frozen))
        parts = [program["memory"]["parts"] for program in (before, after)]
        saved = {part: parts[0][part] - parts[1][part] for part in parts[0]}
        # What the encoder keeps where it is a stage of its own, and everything trains.
        staged = self.describe(model, text, *options, "--stages", stages, "--microbatches", 2)["programs"][0]
        stash = staged["memory"]["stash"]
        self.assertEqual([each["segment"] for each in stash], ["forward.0"])
        expected = {"gradients": sizes[0] * size, "optimizer_state": sizes[1] * size,
                    "stash": stash[0]["bytes_per_microbatch"]}
        for part, saving in expected.items():
            numpy.testing.assert_allclose(saved[part], saving, rtol=0.01, err_msg=part)
        arenas = before["arena_bytes"], after["arena_bytes"]
        numpy.testing.assert_allclose(arenas[0] - arenas[1], sum(expected.values()), rtol=0.01)
        print(f"{size / 1e9:.2f} G of {all_train['parameters']['total'] / 1e9:.2f} G: {arenas[0] / 1e9:.1f} GB, saves "
              + ", ".join(f"{saving / 1e9:.2f} of {part}" for part, saving in expected.items())
              + f": {1 - arenas[1] / arenas[0]:.1%}; of parameters, gradients and states "
              f"{1 - after['state_bytes'] / before['state_bytes']:.1%}")

    def check_ratio(self, encoder: tuple[int, int], decoder: tuple[int, int]) -> None:
        model = self.write_model(encoder, decoder)
        self.check(model, self.RECIPE, "encoder.*", "encoder,decoder")
        mixed = self.RECIPE + "precision: {compute: bf16, gradients: bf16}\n"
        self.check(model, mixed, "encoder.*", "encoder,decoder", (2, 10))
        # As published: with masters that are whole.
        self.check(model, mixed, "encoder.*", "encoder,decoder", (2, 12), ("--fuse-kernels", "off"))

    def test_0_3_to_7(self):
        self.check_ratio((36, 1024), (52, 4096))

    def test_2_to_2(self):
        self.check_ratio((38, 2560), (38, 2560))

    def test_6_to_7(self):
        self.check_ratio((45, 4096), (52, 4096))

    def test_llava_1_5_7b(self):
        text = (LLAVA / "recipe.yaml").read_text().replace('frozen: ["model.vision_tower.*"]', "frozen: []")
        text = text.replace("global: 128", "global: 2")
        self.check(LLAVA / "model.onnx", text, "model.vision_tower.*", "vision,language")
