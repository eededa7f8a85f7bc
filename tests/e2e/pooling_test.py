"""Maxima of windows: of equal elements the first has the gradient, as PyTorch's pooling gives it."""

import itertools

import numpy
import onnx_writer
from oriel_testing import OrielTestCase, read_safetensors, write_shard

SAMPLES, CHANNELS, SIZE = 4, 2, 7
RECIPE = """loss: {{kind: sum, output: y, over: batch}}
optimizer: {{kind: sgd, lr: 1.0e-2}}
parameters: {{frozen: [weights]}}
batch: {{global: {samples}, micro: {micro}}}
steps: 1
"""
# Kernel, stride and padding of both dimensions: apart, side by side with a rest, overlapping.
WINDOWS = [(1, 2, 0), (2, 2, 0), (3, 2, 1), (3, 1, 1), (SIZE, SIZE, 0)]


def first_largest(image: numpy.ndarray, kernel: int, stride: int, pad: int):
    """The place of each window's first largest element, in row-major order."""
    padded = numpy.pad(image, pad, constant_values=-numpy.inf)
    count = (padded.shape[0] - kernel) // stride + 1
    places = numpy.zeros((count, count, 2), int)
    for i, j in itertools.product(range(count), repeat=2):
        window = padded[i * stride:i * stride + kernel, j * stride:j * stride + kernel]
        row, column = numpy.unravel_index(numpy.argmax(window), window.shape)
        places[i, j] = i * stride + row - pad, j * stride + column - pad
    return places


class PoolingTest(OrielTestCase):
    def check(self, name: str, op: str, window: tuple[int, int, int], ranks: int, **attributes):
        random = numpy.random.default_rng(0)
        images = random.integers(0, 2, (SAMPLES, CHANNELS, SIZE, SIZE)).astype("f4")  # mostly equal
        places = [[first_largest(image, *window) for image in sample] for sample in images]
        count = len(places[0][0])
        weights = random.standard_normal((CHANNELS, count, count)).astype("f4")
        expected = numpy.zeros((CHANNELS, SIZE, SIZE), "f4")
        for sample, channel, i, j in itertools.product(range(SAMPLES), range(CHANNELS), range(count), range(count)):
            expected[channel][tuple(places[sample][channel][i, j])] += weights[channel, i, j]

        graph, folder = onnx_writer.Graph(), self.folder / f"{name}.{ranks}"
        graph.input("x", numpy.float32, [SAMPLES, CHANNELS, SIZE, SIZE])
        image = graph.node("Add", ["x", graph.initializer("offset", numpy.zeros((CHANNELS, SIZE, SIZE), "f4"))], "image")
        pooled = graph.node(op, [image], "pooled", **attributes)
        graph.node("Mul", [pooled, graph.initializer("weights", weights)], "y")
        graph.output("y", numpy.float32, [SAMPLES, CHANNELS, count, count])
        (folder / "data").mkdir(parents=True)
        write_shard(folder / "data" / "a.tar", [{"x": image} for image in images])
        (folder / "model.onnx").write_bytes(graph.model())
        (folder / "recipe.yaml").write_text(RECIPE.format(samples=SAMPLES, micro=SAMPLES // ranks))
        self.run_ok("oriel", "compile", folder / "model.onnx", "--recipe", folder / "recipe.yaml", "--mesh", f"dp={ranks}",
                    "-o", folder / "plan.oplan")
        self.run_ok("oriel-run", folder / "plan.oplan", "-n", ranks, "--data", folder / "data", "--no-shuffle",
                    "--dump-gradients", folder / "gradients.safetensors")
        gradient = read_safetensors(folder / "gradients.safetensors")["offset"]
        numpy.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)

    def test_windows(self):
        for kernel, stride, pad in WINDOWS:
            with self.subTest(kernel=kernel, stride=stride, pad=pad):
                self.check(f"window.{kernel}.{stride}", "MaxPool", (kernel, stride, pad), ranks=1, kernel_shape=[kernel] * 2,
                           strides=[stride] * 2, pads=[pad] * 4)

    def test_whole_image(self):
        for ranks in (1, 2):
            self.check("whole", "GlobalMaxPool", (SIZE, SIZE, 0), ranks)
