"""A model whose text takes images and sounds: any number of either in each sample, also on two ranks."""

import images_test
import numpy
import onnx_writer
from images_test import PIXELS, POSITIONS, VOCABULARY, WIDTH
from oriel_testing import OrielTestCase, read_safetensors, relative_error, run, write_shard

SAMPLE_RATE = 3  # numbers of a row of sound
# Of each kind: its input, the token in its places, the numbers of a row, most in a sample, and rows (positions) of one.
KINDS = {"image": ("pixel_values", 11, PIXELS, 2, 2), "sound": ("sound_values", 10, SAMPLE_RATE, 1, 3)}
IMAGES = """
images:
  - {input: pixel_values, per_sample: 2, rows_per_image: 2}
  - {input: sound_values, per_sample: 1, rows_per_image: 3}
"""


def parameters() -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(1)
    shapes = {"embed": (VOCABULARY, WIDTH), "image": (PIXELS, WIDTH), "sound": (SAMPLE_RATE, WIDTH),
              "mix": (POSITIONS, POSITIONS), "head": (WIDTH, VOCABULARY)}
    return {name: random.standard_normal(shape).astype("f4") * 0.5 for name, shape in shapes.items()}


def model() -> bytes:
    graph = onnx_writer.Graph()
    graph.input("input_ids", numpy.int64, ["batch", POSITIONS])
    graph.output("logits", numpy.float32, ["batch", POSITIONS, VOCABULARY])
    for name, value in parameters().items():
        graph.initializer(name, value)
    text = graph.node("Gather", ["embed", "input_ids"], "embeddings", axis=0)
    for kind, (values, token, width, _, _) in KINDS.items():
        graph.input(values, numpy.float32, [f"{kind}_rows", width])
        graph.node("MatMul", [values, kind], f"{kind}_projected")
        graph.node("Tanh", [f"{kind}_projected"], f"{kind}_features")
        text = images_test.add_merge_into(graph, text, f"{kind}_features", token, f"{kind}_")
    graph.node("MatMul", ["mix", text], "mixed")
    graph.node("Tanh", ["mixed"], "hidden")
    graph.node("MatMul", ["hidden", "head"], "logits")
    return graph.model()


def sample(counts: dict[str, int], seed: int) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(seed)
    ids = random.integers(0, 10, POSITIONS)
    free = random.permutation(POSITIONS)
    found = {"labels": random.integers(0, VOCABULARY, POSITIONS)}
    for kind, (values, token, width, _, rows) in KINDS.items():
        places, free = numpy.split(free, [counts[kind] * rows])
        ids[places] = token
        found[values] = random.standard_normal((len(places), width)).astype("f4")
    return {"input_ids": ids, **found}


def expected(samples: list[dict[str, numpy.ndarray]]) -> tuple[float, dict[str, numpy.ndarray]]:
    """Loss and gradients in float64, sample by sample, each with its own images and sounds only."""
    weights = {name: value.astype("f8") for name, value in parameters().items()}
    gradients = {name: numpy.zeros_like(value) for name, value in weights.items()}
    loss = 0.0
    for s in samples:
        merged = weights["embed"][s["input_ids"]]
        features = {kind: numpy.tanh(s[values] @ weights[kind]) for kind, (values, *_) in KINDS.items()}
        places = {kind: s["input_ids"] == token for kind, (_, token, *_) in KINDS.items()}
        for kind in KINDS:
            merged[places[kind]] = features[kind]
        hidden = numpy.tanh(weights["mix"] @ merged)
        logits = hidden @ weights["head"]
        softmax = numpy.exp(logits) / numpy.exp(logits).sum(1, keepdims=True)
        rows = numpy.arange(POSITIONS)
        loss -= numpy.log(softmax[rows, s["labels"]]).sum()
        d_logits = softmax
        d_logits[rows, s["labels"]] -= 1
        gradients["head"] += hidden.T @ d_logits
        d_mixed = (d_logits @ weights["head"].T) * (1 - hidden**2)
        gradients["mix"] += d_mixed @ merged.T
        d_merged = weights["mix"].T @ d_mixed
        for kind, (values, *_) in KINDS.items():
            gradients[kind] += s[values].T @ (d_merged[places[kind]] * (1 - features[kind] ** 2))
        text = ~(places["image"] | places["sound"])
        numpy.add.at(gradients["embed"], s["input_ids"][text], d_merged[text])
    count = len(samples) * POSITIONS
    return loss / count, {name: value / count for name, value in gradients.items()}


class ImageKindsTest(OrielTestCase):
    def compile_for(self, batch: int, micro: int, images: str = IMAGES, mesh: str = "dp=1"):
        model_path, recipe = self.folder / "model.onnx", self.folder / "recipe.yaml"
        model_path.write_bytes(model())
        text = images_test.RECIPE.format(patches=0, batch=batch, micro=micro).replace(
            "images: {per_sample: 2, rows_per_image: 2}", images)
        rows = ", ".join(f"{kind}_rows: {micro * most * rows}" for kind, (*_, most, rows) in KINDS.items())
        recipe.write_text(text.replace("patches: 0", rows))
        plan = self.folder / "model.oplan"
        return plan, run("oriel", "compile", model_path, "--recipe", recipe, "--mesh", mesh, "-o", plan)

    def check(self, counts: list[tuple[int, int]], micro: int, mesh: str = "dp=1", world: int = 1):
        samples = [sample(dict(zip(KINDS, both)), seed) for seed, both in enumerate(counts)]
        plan, result = self.compile_for(len(samples), micro, mesh=mesh)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("the merge of image features", result.stderr)
        loss, gradients = self.gradients(plan, samples, world)
        expected_loss, expected_gradients = expected(samples)
        self.assertAlmostEqual(loss / expected_loss, 1, delta=1e-5)
        self.assertEqual(set(gradients), set(expected_gradients))
        for name, value in expected_gradients.items():
            self.assertLess(relative_error(gradients[name], value), 1e-5, name)

    def gradients(self, plan, samples: list[dict[str, numpy.ndarray]], world: int):
        data, path = self.data(samples), self.folder / "gradients.safetensors"
        return self.train(plan, "--dump-gradients", path, data=data, world=world)[0]["loss"], read_safetensors(path)

    def data(self, samples: list[dict[str, numpy.ndarray]]):
        folder = self.folder / "data"
        folder.mkdir()
        write_shard(folder / "0.tar", samples)
        return folder

    def test_any_number_of_both(self):
        self.check([(1, 1), (0, 0), (2, 1), (2, 0)], micro=4)

    def test_microbatches_with_one_kind_only(self):
        self.check([(1, 0), (2, 0), (0, 1), (0, 1)], micro=2)

    def test_two_ranks(self):
        self.check([(1, 1), (0, 0), (2, 1), (2, 0)], micro=2, mesh="dp=2", world=2)

    def test_two_ranks_that_split_features(self):
        self.check([(1, 1), (0, 1)], micro=2, mesh="tp=2", world=2)

    def test_inspect_says_what_counts_what(self):
        plan, _ = self.compile_for(2, 2)
        text = self.run_ok("oriel", "inspect", plan).stdout
        for kind in ("pixel_values", "sound_values"):
            self.assertIn(f"{kind}_count i64[2] per microbatch, how many images there are", text)

    def test_sounds_that_do_not_fit_the_text(self):
        samples = [sample({"image": 2, "sound": 1}, 0), sample({"image": 1, "sound": 0}, 1)]
        samples[1]["sound_values"] = numpy.zeros((3, SAMPLE_RATE), "f4")
        plan, _ = self.compile_for(2, 2)
        result = run("oriel-run", plan, "--data", self.data(samples), "-n", 1, "--no-shuffle")
        self.assert_fails(result, "sample 1 of the microbatch has 0 image positions, but it brought 1 image of 3")

    def test_one_declaration_for_two_kinds(self):
        _, result = self.compile_for(2, 2, "images: {per_sample: 2, rows_per_image: 2}")
        self.assert_fails(result, "takes 3 rows for each of the 2 samples", "declares 4", "by themselves (a list)")

    def test_one_kind_declared(self):
        _, result = self.compile_for(2, 2, "images: {input: sound_values, rows_per_image: 3}")
        self.assert_fails(result, "none of the inputs that the recipe's `images` declares is behind it",
                          "'pixel_values' has no first dimension of 2 samples", "declare them under `images`")
