"""Vocabularies that tensor parallelism does not divide: padded on the ranks, and nowhere else."""

import json

import numpy
import onnx_writer
from oriel_testing import OrielTestCase, losses, read_safetensors, relative_error, run

WORDS, WIDTH, LENGTH, SAMPLES = 21, 8, 6, 8
SGD = "{kind: sgd, lr: 0.2}"
ADAMW = "{kind: adamw, lr: 1.0e-3, weight_decay: 0.1}"
# Both the table and the output layer of 21 words take 24 rows, of which the last rank has 3 of 6.
RANKS = 4


def write_model(path, tied: bool, capped: bool = False) -> None:
    """A text model with an MLP between its embedding and its output layer, which has a bias if it is not tied. Capped
    logits are 3 tanh(x / 3)."""
    random = numpy.random.default_rng(0)
    graph = onnx_writer.Graph()
    graph.input("input_ids", numpy.int64, ["batch", LENGTH])
    graph.output("logits", numpy.float32, ["batch", LENGTH, WORDS])
    shapes = {"embed": (WORDS, WIDTH), "up": (WIDTH, 16), "down": (16, WIDTH)}
    if not tied:
        shapes |= {"head": (WIDTH, WORDS), "head_bias": (WORDS,)}
    for name, shape in shapes.items():
        graph.initializer(name, (0.3 * random.standard_normal(shape)).astype("f4"))
    graph.node("Gather", ["embed", "input_ids"], "embedded", axis=0)
    graph.node("MatMul", ["embedded", "up"], "wide")
    graph.node("Relu", ["wide"], "active")
    graph.node("MatMul", ["active", "down"], "narrow")
    graph.node("Add", ["embedded", "narrow"], "hidden")
    if tied:
        graph.node("Transpose", ["embed"], "head", perm=[1, 0])
        graph.node("MatMul", ["hidden", "head"], "logits")
    else:
        graph.node("MatMul", ["hidden", "head"], "product")
        graph.node("Add", ["product", "head_bias"], "biased" if capped else "logits")
    if capped:
        graph.initializer("cap", numpy.array(3, "f4"))
        graph.node("Tanh", [graph.node("Div", ["biased", "cap"], "scaled")], "bent")
        graph.node("Mul", ["bent", "cap"], "logits")
    path.write_bytes(graph.model())


class PaddingTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(1)
        self.samples = [{"input_ids": random.integers(-WORDS, WORDS, LENGTH),
                         "labels": random.integers(0, WORDS, LENGTH)} for _ in range(SAMPLES)]
        self.samples[3]["labels"][2:] = -100
        self.data = self.write_data("data", self.samples)
        self.models = {}
        for tied in (False, True):
            self.models[tied] = self.folder / f"model_{tied}.onnx"
            write_model(self.models[tied], tied)
        self.models["capped"] = self.folder / "model_capped.onnx"
        write_model(self.models["capped"], tied=False, capped=True)

    def plan(self, model, optimizer: str, *strategy, init: str = ""):
        recipe = self.folder / "recipe.yaml"
        recipe.write_text(f"inputs: {{labels: {{dtype: int64, shape: [micro_batch, {LENGTH}]}}}}\n"
                          "model: {bind: {batch: micro_batch}}\nloss: {logits: logits, labels: labels}\n"
                          f"optimizer: {optimizer}\nbatch: {{global: 4, micro: 2}}\nsteps: 20\n{init}")
        plan = self.folder / f"plan_{len(list(self.folder.iterdir()))}.oplan"
        result = self.run_ok("oriel", "compile", self.models[model], "--recipe", recipe, *strategy, "-o", plan)
        return plan, result.stderr

    def check_same(self, model):
        """Design section 9: (a) gradients, (b) SGD, (c) AdamW."""
        results = []
        for world, strategy in ((1, []), (RANKS, ["--mesh", "tp=4"]), (RANKS, ["--mesh", "dp=2,tp=2", "--zero", "3"]),
                                (2, ["--mesh", "tp=2", "--sp"])):
            gradients, parameters = self.folder / "g.safetensors", self.folder / "p.safetensors"
            plan, _ = self.plan(model, SGD, *strategy)
            self.train(plan, "--steps", 5, "--dump-gradients", gradients, "--dump-parameters", parameters,
                       data=self.data, world=world)
            adamw, _ = self.plan(model, ADAMW, *strategy)
            metrics = self.train(adamw, data=self.data, world=world)
            results.append((read_safetensors(gradients), read_safetensors(parameters), losses(metrics)))
        (gradients, parameters, expected), *others = results
        self.assertEqual(parameters["embed"].shape, (WORDS, WIDTH))
        for own_gradients, own_parameters, own_losses in others:
            self.assertEqual(own_gradients.keys(), gradients.keys())
            for name, gradient in gradients.items():
                self.assertLessEqual(relative_error(own_gradients[name], gradient), 1e-5, name)
                self.assertEqual(own_parameters[name].shape, parameters[name].shape)
                self.assertLessEqual(float(numpy.abs(own_parameters[name] - parameters[name]).max()), 1e-6, name)
            numpy.testing.assert_allclose(own_losses, expected, rtol=1e-5)

    def test_trains_as_one_rank(self):
        self.check_same(False)

    def test_trains_as_one_rank_tied(self):
        self.check_same(True)

    def test_trains_as_one_rank_behind_other_ops(self):
        self.check_same("capped")

    def test_says_what_is_padded(self):
        plan, said = self.plan(False, SGD, "--mesh", "tp=4")
        for name in ("embed", "head", "head_bias"):
            self.assertIn(f'the vocabulary of {WORDS} of "{name}" is padded to 24', said)
        text = self.run_ok("oriel", "inspect", plan).stdout
        self.assertIn("embed f32[21, 8] padded to [24, 8]", text)
        tensors = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["parameters"]["tensors"]
        self.assertEqual({tensor["name"]: tensor.get("padded_shape") for tensor in tensors},
                         {"embed": [24, WIDTH], "head": [WIDTH, 24], "head_bias": [24], "up": None, "down": None})

    def test_checkpoints_have_no_padding(self):
        """Saved by one rank and gone on with by four, and the other way round."""
        one, _ = self.plan(False, ADAMW)
        four, _ = self.plan(False, ADAMW, "--mesh", "tp=4")
        whole = losses(self.train(one, data=self.data))
        for first, second in (((one, 1), (four, RANKS)), ((four, RANKS), (one, 1))):
            save = self.folder / f"save_{first[1]}"
            begun = self.train(first[0], "--steps", 6, "--save-dir", save, "--save-every", 6,
                               data=self.data, world=first[1])
            ended = self.train(second[0], "--resume", save, data=self.data, world=second[1])
            numpy.testing.assert_allclose(losses(begun) + losses(ended), whole, rtol=1e-5)

    def test_random_values_are_those_of_one_rank(self):
        init = 'init: {seed: 3, rules: [{match: "*", normal: {std: 0.1}}]}\n'
        values = []
        for world, strategy in ((1, []), (RANKS, ["--mesh", "tp=4"])):
            plan, _ = self.plan(False, "{kind: sgd, lr: 1.0e-30}", *strategy, init=init)
            parameters = self.folder / "p.safetensors"
            self.train(plan, "--steps", 1, "--dump-parameters", parameters, data=self.data, world=world)
            values.append(read_safetensors(parameters))
        for name, value in values[0].items():
            self.assertEqual(values[1][name].tobytes(), value.tobytes(), name)

    def test_evaluation_has_true_logits(self):
        outputs = []
        for world, strategy in ((1, []), (RANKS, ["--mesh", "tp=4"])):
            plan, _ = self.plan(False, SGD, *strategy)
            path = self.folder / f"logits_{world}.npy"
            line = json.loads(self.run_ok("oriel-run", plan, "--eval", self.data, "-n", world, "--comm", "in_process",
                                          "--eval-logits", path).stdout)
            outputs.append((line, numpy.load(path)))
        (expected, expected_logits), (line, logits) = outputs
        self.assertEqual(logits.shape, (SAMPLES, LENGTH, WORDS))
        numpy.testing.assert_allclose(logits, expected_logits, atol=1e-5)
        for key in ("token_accuracy", "tokens", "samples"):
            self.assertEqual(line[key], expected[key])
        self.assertAlmostEqual(line["eval_loss"], expected["eval_loss"], delta=1e-5)

    def test_what_is_in_the_padding_is_refused(self):
        plan, _ = self.plan(False, SGD, "--mesh", "tp=4")
        for name, text in (("input_ids", f"index {WORDS} at position"), ("labels", f"index {WORDS} at position")):
            samples = [dict(sample) for sample in self.samples]
            samples[0][name] = samples[0][name].copy()
            samples[0][name][4] = WORDS
            data = self.write_data(f"bad_{name}", samples)
            result = run("oriel-run", plan, "--data", data, "-n", RANKS, "--comm", "in_process", "--no-shuffle")
            self.assert_fails(result, text)
