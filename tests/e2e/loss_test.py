"""Losses beside the shifted cross entropy: the sum of an output, and labels that the model reads itself."""

import io
import json
import tarfile

import numpy
import onnx_writer
from golden_testing import GoldenTestCase
from oriel_testing import OrielTestCase, read_safetensors, relative_error, run, write_shard


class SumLossTest(GoldenTestCase):
    """CLIP's similarities mix the samples of a batch; PyTorch's numbers are of one batch."""

    name = "clip_tiny"

    def setUp(self):
        super().setUp()
        self.clip_recipe = self.golden.parent / "recipe.yaml"

    def test_sum_of_clip_logits(self):
        self.check_logits(self.clip_recipe)

    def test_sum_gradients(self):
        # One element, and an exporter that does not say what it was: a constant (docs/import.md).
        step = self.expected["step1"]
        scale = step["gradient_norms"].pop("logit_scale")
        step["gradient_norm"] = (step["gradient_norm"] ** 2 - scale**2) ** 0.5
        self.check_gradients(self.clip_recipe)

    def test_eval_without_labels(self):
        plan = self.compile_model(self.clip_recipe)
        result = self.run_ok("oriel-run", plan, "--eval", self.golden / "data", "-n", 1)
        line = json.loads(result.stdout)
        self.assertAlmostEqual(line["eval_loss"], self.expected["step1"]["loss"], delta=1e-2)
        self.assertEqual([line["token_accuracy"], line["exact_match"], line["tokens"]], [None] * 3)
        self.assertEqual(line["samples"], 4)
        odd = self.folder / "odd"
        odd.mkdir()
        pixels = numpy.zeros((3, 16, 16), "f4")
        write_shard(odd / "0.tar", [{"pixel_values": pixels, "input_ids": numpy.zeros(16, "i8")}] * 5)
        self.assert_fails(run("oriel-run", plan, "--eval", odd, "-n", 1), "whole batches of 4 samples; the data has 5")

    def test_sum_takes_one_microbatch(self):
        result = self.compile_clip("{global: 4, micro: 2}", self.folder / "p.oplan")
        self.assert_fails(result, "the sum of the output 'logits_per_image'", "one microbatch")
        self.assertFalse((self.folder / "p.oplan").exists())

    def test_sum_over_ranks(self):
        """Each rank has some rows of the similarities; the other's samples are in them."""
        gradients = []
        for name, batch, strategy, ranks in (
                ("one", "{global: 4, micro: 4}", [], 1),
                ("two", "{global: 4, micro: 2}", ["--mesh", "dp=2"], 2),
                ("four", "{global: 4, micro: 2}", ["--mesh", "dp=2,tp=2", "--zero", "1", "--sp"], 4)):
            plan, dump = self.folder / f"{name}.oplan", self.folder / f"{name}.safetensors"
            result = self.compile_clip(batch, plan, *strategy)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.train_model(plan, "--steps", 1, "--dump-gradients", dump, world=ranks)
            gradients.append(read_safetensors(dump))
        norms = {key: numpy.linalg.norm(value) for key, value in gradients[0].items()}
        # Key biases have no gradient but rounding.
        keys = [key for key, norm in norms.items() if norm > 1e-6 * max(norms.values())]
        self.assertGreater(len(keys), 0.8 * len(norms))
        for other in gradients[1:]:
            for key in keys:
                self.assertLess(relative_error(other[key], gradients[0][key]), 1e-5, key)

    def test_sum_over_each_microbatch(self):
        """Two microbatches of two samples give the mean of what the two halves of the data give, each a step of its own."""
        with tarfile.open(self.golden / "data" / "golden-00000.tar") as shard:
            arrays = {member.name: numpy.load(io.BytesIO(shard.extractfile(member).read())) for member in shard}
        samples = [{name: arrays[f"golden-000{i}.{name}.npy"] for name in ("pixel_values", "input_ids")} for i in range(4)]

        def step(name, samples, batch, *strategy, world=1, replace=("", "")):
            plan, dump, data = (self.folder / f"{name}{end}" for end in (".oplan", ".safetensors", ""))
            data.mkdir()
            write_shard(data / "0.tar", samples)
            result = self.compile_clip(batch, plan, *strategy, replace=replace)
            self.assertEqual(result.returncode, 0, result.stderr)
            (metrics,) = self.train(plan, "--steps", 1, "--dump-gradients", dump, data=data, world=world)
            return metrics["loss"], read_safetensors(dump)

        halves = [step(f"half{i}", samples[2 * i : 2 * i + 2], "{global: 2, micro: 2}") for i in range(2)]
        over = ("output: logits_per_image", "output: logits_per_image, over: microbatch")
        for name, strategy, ranks in (("alone", [], 1), ("stages", ["--mesh", "tp=1", "--stages", "2"], 2)):
            loss, gradients = step(name, samples, "{global: 4, micro: 2}", *strategy, world=ranks, replace=over)
            self.assertAlmostEqual(loss, (halves[0][0] + halves[1][0]) / 2, delta=1e-4 * abs(loss))
            expected = {key: (value + halves[1][1][key]) / 2 for key, value in halves[0][1].items()}
            norms = {key: numpy.linalg.norm(value) for key, value in expected.items()}
            keys = [key for key, norm in norms.items() if norm > 1e-6 * max(norms.values())]
            self.assertGreater(len(keys), 0.8 * len(norms))
            for key in keys:
                self.assertLess(relative_error(gradients[key], expected[key]), 1e-4, key)

    def compile_clip(self, batch: str, plan, *arguments, replace=("", "")):
        recipe = self.folder / "recipe.yaml"
        recipe.write_text(self.clip_recipe.read_text().replace("{global: 4, micro: 4}", batch).replace(*replace))
        return run("oriel", "compile", self.golden.parent / "model.onnx", "--recipe", recipe,
                   *arguments, "-o", plan)


class LabelsTest(OrielTestCase):
    def test_labels_of_the_model(self):
        """input_ids as labels gives what a copy of them as labels gives; also where the last batch is filled up."""
        model = self.tiny_model()
        random = numpy.random.default_rng(1)
        data = self.made_data([random.integers(0, 9, 6) for _ in range(5)])
        results = []
        for labels in ("labels", "input_ids"):
            recipe = self.folder / f"{labels}.yaml"
            inputs = "inputs: {labels: {dtype: int64, shape: [micro_batch, 6]}}\n" if labels == "labels" else ""
            recipe.write_text(inputs + "model: {bind: {batch: micro_batch}}\noptimizer: {kind: sgd, lr: 0.1}\n"
                              "batch: {global: 2, micro: 2}\nsteps: 2\n"
                              f"loss: {{logits: logits, labels: {labels}}}\n")
            plan = self.compile(recipe, model=model, name=labels)
            parameters = self.folder / f"{labels}.safetensors"
            metrics = self.train(plan, "--dump-parameters", parameters, data=data)
            evaluation = json.loads(self.run_ok("oriel-run", plan, "--eval", data, "-n", 1).stdout)
            results.append(([line["loss"] for line in metrics], evaluation, read_safetensors(parameters)))
        (losses, evaluation, parameters), (own_losses, own_evaluation, own_parameters) = results
        self.assertEqual(own_losses, losses)
        self.assertEqual(own_evaluation, evaluation)
        self.assertEqual(evaluation["tokens"], 25)
        for name, value in parameters.items():
            self.assertEqual(own_parameters[name].tobytes(), value.tobytes())

    def test_no_label_counts(self):
        """A first step without a label that counts has a loss and gradients of 0, as in PyTorch's sum over max(1, count)."""
        model, data = self.tiny_model(), self.made_data([numpy.arange(6)] * 2, [numpy.full(6, -100)] * 2)
        dump = self.folder / "gradients.safetensors"
        (line,) = self.train(self.tiny_plan(model), "--steps", 1, "--dump-gradients", dump, data=data)
        self.assertEqual((line["loss"], line["grad_norm"]), (0, 0))
        for name, value in read_safetensors(dump).items():
            self.assertFalse(value.any(), name)

    def test_logits_of_flattened_rows(self):
        """[samples x positions, classes], as some exports have them: the same file of logits but for its shape."""
        data, logits = self.made_data([numpy.arange(i, i + 6) % 9 for i in range(5)]), []
        for flat in (False, True):
            path = self.folder / f"logits_{flat}.npy"
            model = self.tiny_model(flat)
            self.run_ok("oriel-run", self.tiny_plan(model), "--eval", data, "-n", 1, "--eval-logits", path)
            logits.append(numpy.load(path))
        # The reshaped ones are a view of what a product wrote.
        self.run_ok("oriel-run", self.tiny_plan(model), "--eval", data, "-n", 1, "--eval-logits", path, "--poison-dead-memory")
        numpy.testing.assert_array_equal(numpy.load(path), logits[1])
        self.assertEqual([array.shape for array in logits], [(5, 6, 9), (30, 9)])
        numpy.testing.assert_array_equal(logits[0].reshape(30, 9), logits[1])

    def tiny_model(self, flat: bool = False):
        random = numpy.random.default_rng(0)
        graph = onnx_writer.Graph()
        graph.input("input_ids", numpy.int64, ["batch", 6])
        graph.output("logits", numpy.float32, ["rows", 9] if flat else ["batch", 6, 9])
        for name, shape in (("embed", (9, 4)), ("head", (4, 9))):
            graph.initializer(name, random.standard_normal(shape).astype("f4"))
        graph.node("Gather", ["embed", "input_ids"], "hidden", axis=0)
        graph.node("MatMul", ["hidden", "head"], "scores" if flat else "logits")
        if flat:
            graph.initializer("shape", numpy.array([-1, 9]))
            graph.node("Reshape", ["scores", "shape"], "logits")
        model = self.folder / f"model_{flat}.onnx"
        model.write_bytes(graph.model())
        return model

    def tiny_plan(self, model):
        recipe = self.folder / "tiny.yaml"
        recipe.write_text("inputs: {labels: {dtype: int64, shape: [micro_batch, 6]}}\nmodel: {bind: {batch: micro_batch}}\n"
                          "optimizer: {kind: sgd, lr: 0.1, clip_norm: 1.0}\nbatch: {global: 2, micro: 2}\nsteps: 2\n"
                          "loss: {logits: logits, labels: labels}\n")
        return self.compile(recipe, model=model, name=model.stem)

    def made_data(self, ids, labels=None):
        data = self.folder / "data"
        data.mkdir()
        write_shard(data / "0.tar", [{"input_ids": row, "labels": label} for row, label in zip(ids, labels or ids)])
        return data

    def test_sum_of_one_number(self):
        """A model that ends in its own loss gives what the sum of its elements gives."""
        data, results = self.made_data([numpy.arange(i, i + 6) % 9 for i in range(2)]), []
        for rank in (0, 3):
            graph = onnx_writer.Graph()
            graph.input("input_ids", numpy.int64, ["batch", 6])
            graph.output("own_loss", numpy.float32, [1] * rank)
            random = numpy.random.default_rng(0)
            graph.initializer("embed", random.standard_normal((9, 4)).astype("f4"))
            graph.node("Gather", ["embed", "input_ids"], "hidden", axis=0)
            graph.node("Mul", ["hidden", "hidden"], "squares")
            graph.initializer("axes", numpy.array([0, 1, 2]))
            graph.node("ReduceMean", ["squares", "axes"], "own_loss", keepdims=int(rank > 0))
            model, recipe = self.folder / f"sum_{rank}.onnx", self.folder / "sum.yaml"
            model.write_bytes(graph.model())
            recipe.write_text("loss: {kind: sum, output: own_loss}\nmodel: {bind: {batch: micro_batch}}\n"
                              "optimizer: {kind: sgd, lr: 0.1}\nbatch: {global: 2, micro: 2}\nsteps: 3\n")
            plan = self.compile(recipe, model=model, name=model.stem)
            results.append([line["loss"] for line in self.train(plan, data=data)])
        self.assertEqual(results[0], results[1])
        self.assertLess(results[0][2], results[0][0])
