"""Samples of an image at positions that the model computes: the numbers of those at the same positions as a constant."""

import numpy
import onnx_writer
from oriel_testing import OrielTestCase, read_safetensors, relative_error, write_shard

SAMPLES, CHANNELS, HEIGHT, WIDTH, POINTS = 4, 3, 5, 7, 6
PARTS = 8  # of which positions are made: as whole numbers they are no parameters
RECIPE = """loss: {{kind: sum, output: y, over: batch}}
optimizer: {{kind: sgd, lr: 1.0e-2}}
batch: {{global: {samples}, micro: {micro}}}
steps: 1
"""


def model(positions: numpy.ndarray, computed: bool, samples: int, **attributes) -> bytes:
    graph, random = onnx_writer.Graph(), numpy.random.default_rng(0)
    graph.input("x", numpy.float32, [samples, CHANNELS, HEIGHT, WIDTH])
    weight = graph.initializer("weight", random.standard_normal((CHANNELS, 1, 1)).astype("f4"))
    counts = graph.initializer("counts", random.standard_normal((1, CHANNELS, 1, POINTS)).astype("f4"))
    scaled = graph.node("Mul", ["x", weight], "scaled")
    if computed:
        graph.input("positions", numpy.float32, [samples, 1, POINTS, 2])
        whole = "positions"
    else:
        numbers = graph.initializer("numbers", numpy.repeat(positions[None, None], samples, 0).astype("i8"))
        whole = graph.node("Cast", [numbers], "whole", to=1)  # FLOAT
    parts = graph.node("Cast", [graph.initializer("parts", numpy.array(PARTS, "i8"))], "parts.float", to=1)
    grid = graph.node("Div", [whole, parts], "grid")
    sampled = graph.node("GridSample", [scaled, grid], "sampled", **attributes)
    graph.node("Mul", [sampled, counts], "y")
    graph.output("y", numpy.float32, [samples, CHANNELS, 1, POINTS])
    return graph.model()


class GridSampleTest(OrielTestCase):
    def gradients(self, name: str, computed: bool, ranks: int = 1, **attributes) -> dict[str, numpy.ndarray]:
        random = numpy.random.default_rng(1)
        positions = random.integers(-PARTS - 2, PARTS + 3, (POINTS, 2))  # some beyond the edges
        samples = [{"x": random.standard_normal((CHANNELS, HEIGHT, WIDTH)).astype("f4"), "positions": positions[None].astype("f4")}
                   for _ in range(SAMPLES)]
        folder = self.folder / name
        (folder / "data").mkdir(parents=True)
        write_shard(folder / "data" / "a.tar", samples)
        (folder / "model.onnx").write_bytes(model(positions, computed, SAMPLES, **attributes))
        (folder / "recipe.yaml").write_text(RECIPE.format(samples=SAMPLES, micro=SAMPLES // ranks))
        self.run_ok("oriel", "compile", folder / "model.onnx", "--recipe", folder / "recipe.yaml", "--mesh", f"dp={ranks}",
                    "-o", folder / "plan.oplan")
        self.assertEqual(b"scatter_add" in (folder / "plan.oplan").read_bytes(), computed)  # the derivative of what is gathered
        self.run_ok("oriel-run", folder / "plan.oplan", "-n", ranks, "--data", folder / "data", "--no-shuffle",
                    "--dump-gradients", folder / "gradients.safetensors")
        return read_safetensors(folder / "gradients.safetensors")

    def test_numbers(self):
        for padding in ("zeros", "border"):
            for corners in (0, 1):
                with self.subTest(padding=padding, corners=corners):
                    attributes = {"padding_mode": padding, "align_corners": corners}
                    expected = self.gradients(f"known.{padding}.{corners}", computed=False, **attributes)
                    for ranks in (1, 2):
                        own = self.gradients(f"computed.{padding}.{corners}.{ranks}", computed=True, ranks=ranks, **attributes)
                        for name in ("weight", "counts"):
                            self.assertLess(relative_error(own[name], expected[name]), 1e-5, name)
