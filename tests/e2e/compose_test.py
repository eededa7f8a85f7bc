"""A model of three files, as vision-language models are downloaded: trained as one, written back as three."""

import numpy
from onnx_writer import Graph
from oriel_testing import OrielTestCase, losses, read_safetensors, run, write_shard

IMAGE, WORDS, WIDTH, LENGTH, ROWS, PATCH, SAMPLES = 15, 16, 8, 8, 3, 6, 4
RECIPE = f"""
model: {{bind: {{batch_size: micro_batch, images: micro_batch, sequence_length: {LENGTH}, past_sequence_length: 0}}}}
inputs: {{labels: {{dtype: int64, shape: [micro_batch, sequence_length]}}}}
images: {{rows_per_image: {ROWS}}}
loss: {{logits: logits, labels: labels, shift: false}}
optimizer: {{kind: sgd, lr: 0.1}}
batch: {{global: 4, micro: 2}}
steps: 2
"""


class ComposeTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.random = numpy.random.default_rng(0)
        shapes = {"projector": (PATCH, WIDTH), "table": (WORDS, WIDTH), "mid": (WIDTH, WIDTH)}
        self.weights = {name: self.random.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
        self.files = []
        vision = Graph()
        vision.input("pixel_values", numpy.float32, ["images", ROWS, PATCH])
        vision.initializer("w", self.weights["projector"])
        vision.node("MatMul", ["pixel_values", "w"], "image_features")
        vision.output("image_features", numpy.float32, ["images", ROWS, WIDTH])
        embed = Graph()
        embed.input("input_ids", numpy.int64, ["batch_size", "sequence_length"])
        embed.initializer("w", self.weights["table"])
        embed.node("Gather", ["w", "input_ids"], "inputs_embeds")
        embed.output("inputs_embeds", numpy.float32, ["batch_size", "sequence_length", WIDTH])
        decoder = Graph()
        decoder.input("inputs_embeds", numpy.float32, ["batch_size", "sequence_length", WIDTH])
        decoder.input("past", numpy.float32, ["batch_size", "past_sequence_length", WIDTH])
        decoder.initializer("mid", self.weights["mid"])
        decoder.initializer("head", self.weights["table"].T.copy())
        decoder.node("MatMul", ["inputs_embeds", "mid"], "product")
        decoder.node("Relu", ["product"], "hidden")
        decoder.node("Concat", ["past", "hidden"], "present", axis=1)
        decoder.node("MatMul", ["present", "head"], "logits")
        total = "past_sequence_length + sequence_length"
        decoder.output("logits", numpy.float32, ["batch_size", total, WORDS])
        decoder.output("present", numpy.float32, ["batch_size", total, WIDTH])
        for name, graph in (("vision_encoder", vision), ("embed_tokens", embed), ("decoder", decoder)):
            self.files.append(self.folder / f"{name}.onnx")
            self.files[-1].write_bytes(graph.model())
        self.model, self.recipe = self.folder / "model.onnx", self.folder / "recipe.yaml"
        self.recipe.write_text(RECIPE)
        self.samples = []
        for _ in range(SAMPLES):
            tokens = self.random.integers(0, IMAGE, LENGTH)
            tokens[2:2 + ROWS] = IMAGE
            self.samples.append({"input_ids": tokens, "labels": self.random.integers(0, WORDS, LENGTH),
                                 "pixel_values": self.random.standard_normal((ROWS, PATCH)).astype("f4")})
        (self.folder / "data").mkdir()
        write_shard(self.folder / "data" / "0.tar", self.samples)

    def loss(self) -> float:
        """Of the weights that the files have."""
        total = 0.0
        for sample in self.samples:
            x = self.weights["table"][sample["input_ids"]].astype("f8")
            x[sample["input_ids"] == IMAGE] = sample["pixel_values"] @ self.weights["projector"]
            logits = numpy.maximum(x @ self.weights["mid"], 0) @ self.weights["table"].T
            total += (numpy.log(numpy.exp(logits).sum(1)) - logits[numpy.arange(LENGTH), sample["labels"]]).sum()
        return total / SAMPLES / LENGTH

    def test_trained_and_written_back(self):
        said = self.run_ok("oriel", "compose", *self.files, "--merge", f"image_features={IMAGE}", "-o", self.model).stdout
        self.assertIn("decoder.head is embed_tokens.w, transposed: tied", said)
        found = {}
        for world, options in ((1, ()), (2, ("--mesh", "dp=2")), (2, ("--mesh", "tp=2")), (2, ("--stages", "2"))):
            plan, save = self.folder / "p.oplan", self.folder / f"save_{len(found)}"
            self.run_ok("oriel", "compile", self.model, "--recipe", self.recipe, *options, "-o", plan)
            metrics = self.train(plan, "--no-shuffle", "--save-dir", save, world=world, data=self.folder / "data")
            found[options] = numpy.array(losses(metrics))
        self.assertLess(abs(found[()][0] / self.loss() - 1), 1e-5)
        for options, values in found.items():
            numpy.testing.assert_allclose(values, found[()], rtol=1e-5, err_msg=str(options))

        trained = self.folder / "trained.safetensors"
        self.run_ok("oriel", "export", plan, "--checkpoint", save, "--to", "safetensors", "-o", trained)
        values = read_safetensors(trained)
        self.assertEqual(set(values), {"vision_encoder.w", "embed_tokens.w", "decoder.mid"})
        out, names = self.folder / "out", ",".join(map(str, self.files))
        self.run_ok("oriel", "export", plan, "--checkpoint", save, "--to", "onnx", "--parts", names, "-o", out)
        for file, new in (("vision_encoder", {"projector": values["vision_encoder.w"]}),
                          ("embed_tokens", {"table": values["embed_tokens.w"]}),
                          ("decoder", {"mid": values["decoder.mid"], "table": values["embed_tokens.w"]})):
            expected = (self.folder / f"{file}.onnx").read_bytes()
            for name, value in new.items():
                old = self.weights[name]
                self.assertFalse(numpy.array_equal(old, value), name)
                if file == "decoder" and name == "table":
                    old, value = old.T, value.T
                expected = expected.replace(old.tobytes(), value.tobytes())
            self.assertEqual((out / f"{file}.onnx").read_bytes(), expected, file)

    def test_adapters_are_merged_into_the_parts(self):
        self.run_ok("oriel", "compose", *self.files, "--merge", f"image_features={IMAGE}", "-o", self.model)
        adapted, plan, save = (self.folder / name for name in ("adapted.onnx", "p.oplan", "save"))
        self.run_ok("oriel", "adapt", self.model, "--rank", 2, "-o", adapted)
        self.recipe.write_text(RECIPE + 'parameters: {trainable: ["*.lora_*"]}\n')
        self.run_ok("oriel", "compile", adapted, "--recipe", self.recipe, "--mesh", "tp=2", "-o", plan)
        self.train(plan, "--save-dir", save, world=2, data=self.folder / "data")
        out, names, trained = self.folder / "out", ",".join(map(str, self.files)), self.folder / "trained.safetensors"
        export = ["oriel", "export", plan, "--checkpoint", save]
        self.run_ok(*export, "--to", "onnx", "--merge-adapters", "--parts", names, "-o", out)
        self.run_ok(*export, "--to", "safetensors", "-o", trained)
        values = read_safetensors(trained)
        for file, name, module in (("vision_encoder", "projector", "vision_encoder.w"), ("decoder", "mid", "decoder.mid")):
            a, b = (values[f"{module}.lora_{kind}.weight"] for kind in "AB")
            self.assertTrue(b.any())
            before, old = (self.folder / f"{file}.onnx").read_bytes(), self.weights[name]
            begin = before.index(old.tobytes())
            merged = numpy.frombuffer((out / f"{file}.onnx").read_bytes()[begin:begin + old.nbytes], "f4").reshape(old.shape)
            numpy.testing.assert_allclose(merged, old + 2 * (b @ a).T, rtol=1e-6, err_msg=name)
        embedding = "embed_tokens.onnx"
        self.assertEqual((out / embedding).read_bytes(), (self.folder / embedding).read_bytes())

    def test_a_part_with_adapters_is_refused(self):
        adapted = self.folder / "adapted.onnx"
        self.run_ok("oriel", "adapt", self.files[2], "-o", adapted)
        result = run("oriel", "compose", *self.files[:2], adapted, "-o", self.folder / "both.onnx")
        self.assert_fails(result, "has adapters: compose the file that it was made of", "oriel adapt")
        self.assertFalse((self.folder / "both.onnx").exists())

    def test_what_is_no_part(self):
        self.run_ok("oriel", "compose", *self.files, "--merge", f"image_features={IMAGE}", "-o", self.model)
        plan, save, out = (self.folder / name for name in ("p.oplan", "save", "out"))
        self.run_ok("oriel", "compile", self.model, "--recipe", self.recipe, "-o", plan)
        self.train(plan, "--save-dir", save, data=self.folder / "data")
        export = ["oriel", "export", plan, "--checkpoint", save]
        other = self.folder / "encoder.onnx"
        other.write_bytes(self.files[0].read_bytes())
        def refuse(where, kind: str, parts: str, text: str) -> None:
            self.assert_fails(run(*export, "-o", where, "--to", kind, "--parts", parts), text)

        refuse(out, "onnx", str(other), f"is no part of {self.model}, whose parts are vision_encoder, embed_tokens, decoder")
        refuse(out, "safetensors", str(self.files[0]), "--to onnx")
        refuse(out, "onnx", f"{self.files[0]},{self.folder / 'lost' / 'decoder.onnx'}", "lost")
        self.assertFalse(out.exists())
        refuse(self.folder, "onnx", str(self.files[0]), "vision_encoder.onnx', which is read")
        # Of the same name and number of weights.
        graph = Graph()
        graph.input("pixel_values", numpy.float32, ["images", ROWS, WIDTH])
        graph.initializer("w", numpy.zeros((WIDTH, PATCH), "f4"))
        graph.node("MatMul", ["pixel_values", "w"], "image_features")
        graph.output("image_features", numpy.float32, ["images", ROWS, PATCH])
        (self.folder / "other").mkdir()
        other = self.folder / "other" / "vision_encoder.onnx"
        other.write_bytes(graph.model())
        refuse(out, "onnx", str(other), "is not the file that")
        refuse(out, "onnx", f"{self.files[0]},{self.files[0]}", "two parts would write")
        self.assertFalse(out.exists())
        self.assertEqual((self.folder / "encoder.onnx").read_bytes(), self.files[0].read_bytes())

    def test_a_data_file_of_two_parts(self):
        """Each would be written over the other."""
        graphs = []
        for source, result in (("x", "h"), ("h", "logits")):
            graph = Graph()
            graph.input(source, numpy.float32, ["batch_size", LENGTH, WIDTH])
            graph.external_initializer("w", (WIDTH, WIDTH), "w.data")
            graph.node("MatMul", [source, "w"], result)
            graph.output(result, numpy.float32, ["batch_size", LENGTH, WIDTH])
            graphs.append(self.folder / f"{source}.onnx")
            graphs[-1].write_bytes(graph.model())
        weights = numpy.eye(WIDTH, dtype="f4").tobytes()
        (self.folder / "w.data").write_bytes(weights)
        self.assert_fails(run("oriel", "compose", *graphs, "-o", self.folder / "w.data"), "w.data', which is read")
        self.assertEqual((self.folder / "w.data").read_bytes(), weights)
        self.run_ok("oriel", "compose", *graphs, "--no-tie", "-o", self.model)
        self.recipe.write_text(
            f"model: {{bind: {{batch_size: micro_batch}}}}\ninputs: {{labels: {{dtype: int64, shape: [micro_batch, {LENGTH}]}}}}\n"
            "loss: {logits: logits, labels: labels, shift: false}\noptimizer: {kind: sgd, lr: 0.1}\n"
            "batch: {global: 4, micro: 2}\nsteps: 2\n")
        write_shard(self.folder / "data" / "0.tar", [
            {"x": self.random.standard_normal((LENGTH, WIDTH)).astype("f4"), "labels": numpy.arange(LENGTH)} for _ in range(4)])
        plan, save, out = (self.folder / name for name in ("p.oplan", "save", "out"))
        self.run_ok("oriel", "compile", self.model, "--recipe", self.recipe, "-o", plan)
        self.train(plan, "--save-dir", save, data=self.folder / "data")
        result = run("oriel", "export", plan, "--checkpoint", save, "--to", "onnx", "-o", out, "--parts", ",".join(map(str, graphs)))
        self.assert_fails(result, "two parts would write", "w.data")
        self.assertFalse(out.exists())
