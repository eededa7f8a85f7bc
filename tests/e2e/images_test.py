"""Several images per sample, and samples without: each sample as if it were alone."""

import numpy
import onnx_writer
from oriel_testing import OrielTestCase, read_safetensors, relative_error, run, write_shard

POSITIONS, VOCABULARY, WIDTH, PIXELS = 10, 12, 6, 5
IMAGE_TOKEN, ROWS = 11, 2  # two rows of pixels, and two positions, for an image

RECIPE = """
model: {{bind: {{batch: micro_batch, patches: {patches}}}}}
inputs: {{labels: {{dtype: int64, shape: [micro_batch, 10]}}}}
images: {{per_sample: 2, rows_per_image: 2}}
loss: {{logits: logits, labels: labels, shift: false}}
optimizer: {{kind: sgd, lr: 0.1}}
batch: {{global: {batch}, micro: {micro}}}
steps: 1
"""


def parameters() -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(1)
    shapes = {"embed": (VOCABULARY, WIDTH), "vision": (PIXELS, WIDTH), "mix": (POSITIONS, POSITIONS),
              "head": (WIDTH, VOCABULARY)}
    return {name: random.standard_normal(shape).astype("f4") * 0.5 for name, shape in shapes.items()}


def add_merge(graph: onnx_writer.Graph, features: str) -> str:
    """The embeddings of `input_ids`, with rows of `features` in the places of the image tokens."""
    graph.node("Gather", ["embed", "input_ids"], "embeddings", axis=0)
    return add_merge_into(graph, "embeddings", features, IMAGE_TOKEN)


def add_merge_into(graph: onnx_writer.Graph, text: str, features: str, token: int, prefix: str = "") -> str:
    """Rows of `features` in the places of `token`; names begin with `prefix`."""
    name = f"{prefix}{{}}".format
    for constant, value in {"token": token, "zero": [0], "last": [-1]}.items():
        graph.initializer(name(constant), numpy.array(value, "i8"))
    graph.node("Equal", ["input_ids", name("token")], name("is_image"))
    graph.node("Unsqueeze", [name("is_image"), name("last")], name("column"))
    graph.node("Shape", [text], name("full"))
    graph.node("Expand", [name("column"), name("full")], name("mask"))
    graph.node("NonZero", [name("mask")], name("positions"))
    graph.node("Transpose", [name("positions")], name("indices"), perm=[1, 0])
    graph.node("Reshape", [features, name("last")], name("flat"))
    graph.node("Shape", [name("indices")], name("extent"))
    graph.node("Gather", [name("extent"), name("zero")], name("count"), axis=0)
    graph.node("Slice", [name("flat"), name("zero"), name("count"), name("zero")], name("rows"))
    return graph.node("ScatterND", [text, name("indices"), name("rows")], name("merged"))


def model() -> bytes:
    """Rows of pixels become image features, which take the places of the image tokens; `mix` joins positions."""
    graph = onnx_writer.Graph()
    graph.input("pixel_values", numpy.float32, ["patches", PIXELS])
    graph.input("input_ids", numpy.int64, ["batch", POSITIONS])
    graph.output("logits", numpy.float32, ["batch", POSITIONS, VOCABULARY])
    for name, value in parameters().items():
        graph.initializer(name, value)
    graph.node("MatMul", ["pixel_values", "vision"], "projected")
    add_merge(graph, graph.node("Tanh", ["projected"], "features"))
    graph.node("MatMul", ["mix", "merged"], "mixed")
    graph.node("Tanh", ["mixed"], "hidden")
    graph.node("MatMul", ["hidden", "head"], "logits")
    return graph.model()


def sample(images: int, seed: int) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(seed)
    ids = random.integers(0, IMAGE_TOKEN, POSITIONS)
    slots = numpy.sort(random.choice(POSITIONS, images * ROWS, replace=False))
    ids[slots] = IMAGE_TOKEN
    labels = numpy.where(random.random(POSITIONS) < 0.3, -100, random.integers(0, VOCABULARY, POSITIONS))
    pixels = random.standard_normal((images * ROWS, PIXELS)).astype("f4")
    return {"input_ids": ids, "labels": labels, "pixel_values": pixels}


def expected(samples: list[dict[str, numpy.ndarray]]) -> tuple[float, dict[str, numpy.ndarray]]:
    """Loss and gradients in float64, sample by sample, each with its own images only."""
    weights = {name: value.astype(numpy.float64) for name, value in parameters().items()}
    gradients = {name: numpy.zeros_like(value) for name, value in weights.items()}
    loss = 0.0
    count = sum(int((s["labels"] != -100).sum()) for s in samples)
    for s in samples:
        ids, pixels, used = s["input_ids"], s["pixel_values"].astype(numpy.float64), s["labels"] != -100
        features = numpy.tanh(pixels @ weights["vision"])
        merged = weights["embed"][ids]
        merged[ids == IMAGE_TOKEN] = features
        hidden = numpy.tanh(weights["mix"] @ merged)
        logits = hidden @ weights["head"]
        shifted = numpy.exp(logits - logits.max(1, keepdims=True))
        softmax = shifted / shifted.sum(1, keepdims=True)
        rows = numpy.nonzero(used)[0]
        loss -= numpy.log(softmax[rows, s["labels"][rows]]).sum()
        d_logits = numpy.where(used[:, None], softmax, 0)
        d_logits[rows, s["labels"][rows]] -= 1
        gradients["head"] += hidden.T @ d_logits
        d_mixed = (d_logits @ weights["head"].T) * (1 - hidden**2)
        gradients["mix"] += d_mixed @ merged.T
        d_merged = weights["mix"].T @ d_mixed
        text = ids != IMAGE_TOKEN
        numpy.add.at(gradients["embed"], ids[text], d_merged[text])
        gradients["vision"] += pixels.T @ (d_merged[~text] * (1 - features**2))
    return loss / count, {name: value / count for name, value in gradients.items()}


class ImagesTest(OrielTestCase):
    def compile_for(self, batch: int, micro: int, world: int = 1):
        model_path, recipe = self.folder / "model.onnx", self.folder / "recipe.yaml"
        model_path.write_bytes(model())
        recipe.write_text(RECIPE.format(patches=micro * 2 * ROWS, batch=batch, micro=micro))
        return self.compile(recipe, world, model=model_path, name=f"plan_{micro}")

    def data(self, samples: list[dict[str, numpy.ndarray]], name: str = "data"):
        folder = self.folder / name
        folder.mkdir()
        write_shard(folder / "0.tar", samples)
        return folder

    def gradients(self, plan, data, world: int = 1):
        path = self.folder / "gradients.safetensors"
        metrics = self.train(plan, "--dump-gradients", path, data=data, world=world)
        return metrics[0]["loss"], read_safetensors(path)

    def check(self, images: list[int], micro: int, world: int = 1, drop_empty: bool = False):
        samples = [sample(count, seed) for seed, count in enumerate(images)]
        stored = [{name: value for name, value in s.items() if value.size or not drop_empty} for s in samples]
        plan = self.compile_for(len(samples), micro, world)
        loss, gradients = self.gradients(plan, self.data(stored), world)
        expected_loss, expected_gradients = expected(samples)
        self.assertAlmostEqual(loss / expected_loss, 1, delta=1e-5)
        self.assertEqual(set(gradients), set(expected_gradients))
        for name, value in expected_gradients.items():
            self.assertLess(relative_error(gradients[name], value), 1e-5, name)

    def test_any_number_of_images(self):
        self.check([1, 0, 2, 1], micro=4)

    def test_no_member_is_no_image(self):
        self.check([0, 2, 0, 1], micro=2, drop_empty=True)

    def test_batch_without_any_image(self):
        self.check([0, 0], micro=2)

    def test_two_ranks(self):
        self.check([2, 0, 1, 2], micro=2, world=2)

    def test_images_that_do_not_fit_the_text(self):
        samples = [sample(count, seed) for seed, count in enumerate([1, 2, 1, 0])]
        samples[2]["pixel_values"] = numpy.zeros((2 * ROWS, PIXELS), "f4")
        plan = self.compile_for(4, 4)
        for arguments in (["--data"], ["--eval"]):
            result = run("oriel-run", plan, *arguments, self.data(samples, arguments[0]), "-n", 1, "--no-shuffle")
            self.assert_fails(result, "sample 2 of the microbatch has 2 image positions, but it brought 2 images of 2 "
                              "positions each", "2: ", "sample 000002")

    def test_wrong_shapes(self):
        plan = self.compile_for(1, 1)
        for index, shape in enumerate([(3 * ROWS, PIXELS), (ROWS + 1, PIXELS), (ROWS, PIXELS + 1)]):
            bad = dict(sample(1, 0), pixel_values=numpy.zeros(shape, "f4"))
            result = run("oriel-run", plan, "--data", self.data([bad], f"bad{index}"), "-n", 1)
            self.assert_fails(result, "sample 000000", "the plan expects up to 2 images of 2 rows [5]")

    def test_batch_that_holds_no_whole_images(self):
        model_path, recipe = self.folder / "model.onnx", self.folder / "recipe.yaml"
        model_path.write_bytes(model())
        recipe.write_text(RECIPE.format(patches=6, batch=4, micro=4))
        plan = self.folder / "p.oplan"
        result = run("oriel", "compile", model_path, "--recipe", recipe, "-o", plan)
        self.assert_fails(result, "images")
        self.assertFalse(plan.exists())

    def test_inspect_says_what_is_an_image(self):
        text = self.run_ok("oriel", "inspect", self.compile_for(4, 4)).stdout
        self.assertIn("pixel_values f32[16, 5] per microbatch, up to 2 images per sample", text)
        self.assertIn("image_count i64[4] per microbatch, how many images there are", text)
