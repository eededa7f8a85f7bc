"""What is computed on the rows that a mask chooses, and put back: the numbers of the same on all rows, chosen afterwards."""

import images_test as images
import numpy
import onnx_writer
from oriel_testing import OrielTestCase, read_safetensors, relative_error

PARAMETERS = {"deep": (images.PIXELS, images.WIDTH), "expert": (images.WIDTH, images.WIDTH), "bias": (images.WIDTH,),
              "norm": (images.WIDTH,), "norm_bias": (images.WIDTH,)}


def base() -> onnx_writer.Graph:
    """`merged`, `is_image` (with `column`, of one dimension more) and `joined`, features of another layer."""
    graph = onnx_writer.Graph()
    graph.input("pixel_values", numpy.float32, ["patches", images.PIXELS])
    graph.input("input_ids", numpy.int64, ["batch", images.POSITIONS])
    graph.output("logits", numpy.float32, ["batch", images.POSITIONS, images.VOCABULARY])
    random = numpy.random.default_rng(2)
    values = dict(images.parameters(), **{name: random.standard_normal(shape).astype("f4")
                                          for name, shape in PARAMETERS.items()})
    for name, value in values.items():
        graph.initializer(name, value)
    graph.node("MatMul", ["pixel_values", "vision"], "features")
    images.add_merge(graph, "features")
    graph.node("MatMul", ["pixel_values", "deep"], "joined")
    return graph


def finish(graph: onnx_writer.Graph, hidden: str) -> bytes:
    graph.node("MatMul", ["mix", hidden], "mixed")
    graph.node("Tanh", ["mixed"], "squashed")
    graph.node("MatMul", ["squashed", "head"], "logits")
    return graph.model()


def chosen() -> bytes:
    """merged[is_image] = norm(merged[is_image]) @ expert + bias + joined; what is made of no row is at the others."""
    graph = base()
    graph.node("NonZero", ["is_image"], "chosen_t")
    graph.node("Transpose", ["chosen_t"], "chosen", perm=[1, 0])
    graph.node("GatherND", ["merged", "chosen"], "rows_in")
    graph.node("LayerNormalization", ["rows_in", "norm", "norm_bias"], "normed", axis=-1)
    graph.node("Gemm", ["normed", "expert", "bias"], "product")
    graph.node("Add", ["joined", "product"], "rows_out")
    return finish(graph, graph.node("ScatterND", ["merged", "chosen", "rows_out"], "hidden"))


def of_length_one(graph: onnx_writer.Graph, rows: str) -> str:
    """q / |q| with q = rows * joined; without either, q would be zero and have no direction."""
    graph.node("Mul", [rows, "joined"], "scaled")
    graph.node("Mul", ["scaled", "scaled"], "squares")
    graph.node("ReduceSum", ["squares", "last"], "length2", keepdims=1)
    graph.node("Sqrt", ["length2"], "length")
    return graph.node("Div", ["scaled", "length"], "rows_out")


def chosen_roots() -> bytes:
    """As the newer exporter of PyTorch puts rows back: flattened, by the mask of all elements."""
    graph = base()
    graph.node("NonZero", ["is_image"], "chosen_t")
    graph.node("Transpose", ["chosen_t"], "chosen", perm=[1, 0])
    graph.node("GatherND", ["merged", "chosen"], "rows_in")
    graph.node("Reshape", [of_length_one(graph, "rows_in"), "last"], "rows_flat")
    graph.node("Slice", ["rows_flat", "zero", "count", "zero"], "rows_cut")
    return finish(graph, graph.node("ScatterND", ["merged", "indices", "rows_cut"], "hidden"))


def merged_roots() -> bytes:
    """The same where all rows are features: what is chosen of `merged` is them."""
    graph = base()
    graph.node("Reshape", [of_length_one(graph, "features"), "last"], "rows_flat")
    graph.node("Slice", ["rows_flat", "zero", "count", "zero"], "rows_cut")
    return finish(graph, graph.node("ScatterND", ["embeddings", "indices", "rows_cut"], "hidden"))


def added(by_element: bool) -> bytes:
    """merged[is_image] += joined, or the same of all elements, one behind the other."""
    graph = base()
    if by_element:
        graph.node("GatherND", ["merged", "indices"], "elements_in")
        graph.node("Reshape", ["joined", "last"], "joined_flat")
        graph.node("Add", ["elements_in", "joined_flat"], "elements_out")
        graph.node("Slice", ["elements_out", "zero", "count", "zero"], "cut")
        return finish(graph, graph.node("ScatterND", ["merged", "indices", "cut"], "hidden"))
    graph.node("NonZero", ["is_image"], "chosen_t")
    graph.node("Transpose", ["chosen_t"], "chosen", perm=[1, 0])
    graph.node("GatherND", ["merged", "chosen"], "rows_in")
    graph.node("Add", ["rows_in", "joined"], "rows_out")
    return finish(graph, graph.node("ScatterND", ["merged", "chosen", "rows_out"], "hidden"))


def everywhere() -> bytes:
    graph = base()
    graph.node("Sub", ["merged", "merged"], "nothing")
    graph.node("Reshape", ["joined", "last"], "joined_flat")
    graph.node("Slice", ["joined_flat", "zero", "count", "zero"], "joined_rows")
    graph.node("ScatterND", ["nothing", "indices", "joined_rows"], "spread")
    graph.node("LayerNormalization", ["merged", "norm", "norm_bias"], "normed", axis=-1)
    graph.node("MatMul", ["normed", "expert"], "product")
    graph.node("Add", ["product", "bias"], "biased")
    graph.node("Add", ["spread", "biased"], "all")
    return finish(graph, graph.node("Where", ["mask", "all", "merged"], "hidden"))


class MaskedRowsTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.data = self.write_images("data", [2, 0, 1, 2])

    def write_images(self, name: str, counts: list[int]):
        return self.write_data(name, [images.sample(count, seed) for seed, count in enumerate(counts)])

    def gradients(self, model: bytes, name: str, dp: int = 1, tp: int = 1):
        path, recipe = self.folder / f"{name}.onnx", self.folder / "recipe.yaml"
        path.write_bytes(model)
        recipe.write_text(images.RECIPE.format(patches=2 * 2 * images.ROWS, batch=4, micro=2))
        plan = self.compile(recipe, dp, model=path, name=name, options=["--mesh", f"tp={tp}"])
        dump = self.folder / f"{name}.safetensors"
        self.train(plan, "--dump-gradients", dump, data=self.data, world=dp * tp)
        return read_safetensors(dump)

    def check(self, **mesh: int):
        expected = self.gradients(everywhere(), "everywhere")
        self.assertEqual(set(expected), set(images.parameters()) | set(PARAMETERS))
        self.compare(self.gradients(chosen(), "chosen", **mesh), expected)

    def compare(self, actual, expected):
        for name, value in expected.items():
            self.assertGreater(numpy.linalg.norm(value), 0, name)
            self.assertLess(relative_error(actual[name], value), 1e-5, name)

    def test_one_rank(self):
        self.check()

    def test_data_parallel(self):
        self.check(dp=2)

    def test_tensor_parallel(self):
        self.check(tp=2)

    def test_element_by_element(self):
        self.data = self.write_images("full", [2, 2, 2, 2])
        expected = self.gradients(added(by_element=False), "rows")
        for mesh in ({}, {"dp": 2}, {"tp": 2}):
            self.compare_used(self.gradients(added(by_element=True), "elements", **mesh), expected)

    def compare_used(self, actual, expected):
        """Of those that have a gradient."""
        used = {name: value for name, value in expected.items() if numpy.linalg.norm(value) > 0}
        self.assertIn("deep", used)
        self.compare(actual, used)

    def test_derivatives_of_what_nobody_chose(self):
        """Roots and quotients of the other rows are infinite for some numbers, and no row has those. (The zeros of absent
        images have no direction either.)"""
        self.data = self.write_images("full", [2, 2, 2, 2])
        self.compare(self.gradients(chosen_roots(), "chosen"), self.gradients(merged_roots(), "merged"))
