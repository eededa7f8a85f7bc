"""Low-rank adapters: added to a model's file, trained alone, and merged into its weights."""

import json

import numpy
from onnx_writer import Graph
from oriel_testing import DATA, GOLDEN, MODEL, OrielTestCase, losses, read_safetensors, relative_error, run, write_safetensors

RANK, ALPHA = 4, 8
# In each a rank has other pieces: of the layers, of the samples, of the adapters' states.
STRATEGIES = {
    "one rank": ("--mesh", "dp=1"),
    "tensor parallel": ("--mesh", "dp=2,tp=2", "--sp"),
    "ZeRO 3": ("--mesh", "dp=2", "--zero", "3"),
    "pipeline": ("--stages", "2", "--schedule", "1f1b"),
}


class AdaptersTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.adapted = self.folder / "adapted.onnx"
        self.recipe_alone = self.recipe("recipe_adamw.yaml", ('trainable: ["*"]', 'trainable: ["*.lora_*"]'))
        self.checkpoints = self.folder / "checkpoints"

    def adapt(self, *options) -> str:
        return self.run_ok("oriel", "adapt", MODEL, "--rank", RANK, "--alpha", ALPHA, *options, "-o", self.adapted).stdout

    def plan(self, model, recipe, *options):
        plan = self.folder / f"plan_{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", recipe, *(options or ("--mesh", "dp=1")), "-o", plan)
        return plan

    def trained(self, *options, steps: int = 3):
        """A plan of the adapted model, after training; its checkpoint is in self.checkpoints."""
        self.adapt(*options)
        plan = self.plan(self.adapted, self.recipe_alone)
        self.train(plan, "--steps", steps, "--save-dir", self.checkpoints, "--save-every", steps)
        return plan

    def evaluated(self, plan, *options) -> float:
        result = self.run_ok("oriel-run", plan, "--eval", DATA, "--steps", 0, "-n", 1, "--eval-logits",
                             self.folder / "logits.npy", *options)
        self.assertIn("loss", result.stdout + result.stderr)
        return numpy.load(self.folder / "logits.npy")

    def export(self, plan, *options):
        return self.run_ok("oriel", "export", plan, "--checkpoint", self.checkpoints, *options)

    def test_trained_by_every_strategy(self):
        self.assertIn("54 adapters of rank 4", self.adapt())
        found, gradients = {}, {}
        for name, options in STRATEGIES.items():
            plan, dump = self.plan(self.adapted, self.recipe_alone, *options), self.folder / f"{name}.safetensors"
            world = {"one rank": 1, "tensor parallel": 4}.get(name, 2)
            found[name] = losses(self.train(plan, "--steps", 5, "--dump-gradients", dump, world=world))
            gradients[name] = read_safetensors(dump)
        expected = gradients["one rank"]
        self.assertEqual(len(expected), 108)
        self.assert_are_of_the_weights(expected)
        for name in STRATEGIES:
            numpy.testing.assert_allclose(found[name], found["one rank"], rtol=1e-5, err_msg=name)
            self.assertEqual(set(gradients[name]), set(expected))
            for parameter, value in expected.items():
                self.assertLess(relative_error(gradients[name][parameter], value), 1e-5, (name, parameter))

    def assert_are_of_the_weights(self, gradients) -> None:
        """At first B is 0, so the gradient of A is 0, and that of B is scale dW Aᵀ."""
        plan, dump = self.plan(MODEL, GOLDEN / "recipe_adamw.yaml"), self.folder / "base.safetensors"
        self.train(plan, "--steps", 1, "--dump-gradients", dump)
        whole = read_safetensors(dump)
        adapted = self.plan(self.adapted, self.recipe_alone)
        initial = read_safetensors(adapted.with_suffix(".weights.safetensors"))
        for name, value in gradients.items():
            module, kind = name.split(".lora_")
            if kind == "A.weight":
                self.assertFalse(value.any(), name)
                continue
            weight, a = whole[f"{module}.weight"], initial[f"{module}.lora_A.weight"]
            self.assertEqual(weight.shape, (value.shape[0], a.shape[1]))
            self.assertLess(relative_error(value, ALPHA / RANK * weight @ a.T), 1e-5, name)

    def test_the_model_computes_what_it_did(self):
        self.adapt()
        base = self.evaluated(self.plan(MODEL, GOLDEN / "recipe_adamw.yaml"))
        adapted = self.evaluated(self.plan(self.adapted, self.recipe_alone))
        numpy.testing.assert_array_equal(adapted, base)

    def test_merged_into_the_weights(self):
        plan = self.trained()
        merged = self.folder / "out" / "merged.onnx"
        self.export(plan, "--to", "onnx", "--merge-adapters", "-o", merged)
        self.assertEqual(merged.stat().st_size, MODEL.stat().st_size)
        expected = self.evaluated(plan, "--resume", self.checkpoints)
        logits = self.evaluated(self.plan(merged, GOLDEN / "recipe_adamw.yaml"))
        base = self.evaluated(self.plan(MODEL, GOLDEN / "recipe_adamw.yaml"))
        self.assertLess(numpy.abs(logits - expected).max(), 2e-5)
        self.assertGreater(numpy.abs(base - expected).max(), 1e-2)

    def test_what_an_earlier_plan_trained_is_merged(self):
        """Weights beside adapters that a first plan trained, too, and the last one did not."""
        self.adapt()
        everything = self.plan(self.adapted, GOLDEN / "recipe_adamw.yaml")
        self.train(everything, "--steps", 2, "--save-dir", self.checkpoints, "--save-every", 2)
        plan = self.plan(self.adapted, self.recipe_alone)
        self.train(plan, "--steps", 4, "--resume", self.checkpoints, "--save-dir", self.checkpoints, "--save-every", 4)
        merged = self.folder / "out" / "merged.onnx"
        self.export(plan, "--to", "onnx", "--merge-adapters", "-o", merged)
        expected = self.evaluated(plan, "--resume", self.checkpoints)
        logits = self.evaluated(self.plan(merged, GOLDEN / "recipe_adamw.yaml"))
        self.assertLess(numpy.abs(logits - expected).max(), 2e-5)

    def test_merged_where_the_base_was_moved(self):
        model = self.folder / "moved.onnx"
        model.write_bytes(MODEL.read_bytes())
        self.run_ok("oriel", "adapt", model, "--targets", "q_proj", "--rank", RANK, "-o", self.adapted)
        plan = self.plan(self.adapted, self.recipe_alone)
        self.train(plan, "--steps", 1, "--save-dir", self.checkpoints)
        elsewhere = model.rename(self.folder / "elsewhere.onnx")
        merge = ["--to", "onnx", "--merge-adapters", "-o", self.folder / "merged.onnx"]
        export = ["oriel", "export", plan, "--checkpoint", self.checkpoints, *merge]
        self.assert_fails(run(*export), "moved.onnx: not there any more", "--base")
        self.assert_fails(run(*export, "--base", self.adapted), "is not the file that was adapted")
        self.run_ok(*export, "--base", elsewhere)
        self.assert_fails(run(*export[:-1], elsewhere, "--base", elsewhere), "which is read")

    def test_written_for_peft(self):
        plan = self.trained("--targets", "q_proj,*.v_proj.weight")
        self.export(plan, "--to", "peft", "-o", self.folder / "peft")
        self.export(plan, "--to", "safetensors", "-o", self.folder / "all.safetensors")
        values = read_safetensors(self.folder / "all.safetensors")
        adapters = {name for name in values if ".lora_" in name}
        written = read_safetensors(self.folder / "peft" / "adapter_model.safetensors")
        self.assertEqual(set(written), {f"base_model.model.{name}" for name in adapters})
        for name in adapters:
            numpy.testing.assert_array_equal(written[f"base_model.model.{name}"], values[name])
        config = json.loads((self.folder / "peft" / "adapter_config.json").read_text())
        self.assertEqual((config["peft_type"], config["r"], config["lora_alpha"]), ("LORA", RANK, ALPHA))
        modules = {name.removesuffix(".lora_A.weight") for name in adapters if name.endswith("lora_A.weight")}
        self.assertEqual(set(config["target_modules"]), modules)
        self.assertEqual({module.split(".")[-1] for module in modules}, {"q_proj", "v_proj"})
        self.export(plan, "--to", "peft", "--rename-modules", "model.=base.", "-o", self.folder / "peft")
        renamed = set(read_safetensors(self.folder / "peft" / "adapter_model.safetensors"))
        result = run("oriel", "export", plan, "--checkpoint", self.checkpoints, "--to", "peft", "--rename-modules", "modle.=", "-o", self.folder / "no")
        self.assert_fails(result, "no module's name begins with 'modle.'")
        self.assertFalse((self.folder / "no").exists())
        self.assertEqual(renamed, {name.replace("base_model.model.model.", "base_model.model.base.") for name in written})
        result = run("oriel", "export", plan, "--checkpoint", self.checkpoints, "--to", "peft", "-o", self.checkpoints)
        self.assert_fails(result, "the checkpoint is there")

    def test_an_adapter_of_peft_to_begin_with(self):
        plan = self.trained("--targets", "q_proj,*.v_proj.weight")
        peft, again = self.folder / "peft", self.folder / "again.onnx"
        self.export(plan, "--to", "peft", "--rename-modules", "model.=base.", "-o", peft)
        adapt = ["oriel", "adapt", MODEL, "--from-peft", peft, "-o", again]
        self.assert_fails(run(*adapt), "are no linear layers of", "--rename-modules")
        self.assertFalse(again.exists())
        adapt += ["--rename-modules", "model.=base."]
        said = self.run_ok(*adapt).stdout
        self.assertIn(f"adapters of rank {RANK}", said)
        # Without training it computes what the trained one does.
        trained = self.evaluated(plan, "--resume", self.checkpoints)
        numpy.testing.assert_array_equal(self.evaluated(self.plan(again, self.recipe_alone)), trained)
        config = json.loads((peft / "adapter_config.json").read_text())
        # rsLoRA scales by alpha / sqrt(rank): the same here for half of it.
        (peft / "adapter_config.json").write_text(json.dumps({**config, "use_rslora": True, "lora_alpha": ALPHA / RANK**0.5}))
        same = self.folder / "same.onnx"
        self.run_ok(*adapt[:-4], "-o", same, *adapt[-2:])
        self.assertEqual(same.read_bytes(), again.read_bytes())
        again.unlink()
        for change, text in (
            ({"use_dora": True}, "'use_dora' is true"),
            ({"init_lora_weights": "pissa"}, "'init_lora_weights' is \"pissa\""),
            ({"rank_pattern": {"q_proj": 2}}, "'rank_pattern' is"),
            ({"r": 2}, "with the rank that adapter_config.json says, 2"),
            ({"r": "two"}, "needs numbers for r and lora_alpha"),
            ({"lora_alpha": 0}, "adapter_config.json: lora_alpha: alpha / rank, the scale"),
            ({"peft_type": "IA3"}, "is not the configuration of an adapter of kind LORA"),
        ):
            (peft / "adapter_config.json").write_text(json.dumps({**config, **change}))
            self.assert_fails(run(*adapt), text)
        (peft / "adapter_config.json").write_text(json.dumps(config))
        self.assert_fails(run(*adapt, "--rank", 4), "--from-peft")
        self.assert_fails(run("oriel", "adapt", MODEL, "--from-peft", "", "-o", again), "give the folder of an adapter")
        meet = ["--rename-modules", "model.vision_tower.encoder.=model.language_model."]
        plain = self.folder / "plain"
        self.export(plan, "--to", "peft", "-o", plain)
        self.assert_fails(run("oriel", "adapt", MODEL, "--from-peft", plain, "-o", again, *meet), "are both")
        self.assert_fails(run(*adapt[:-3], peft / "adapter_config.json", *adapt[-2:]), "which is read")
        weights = peft / "adapter_model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        self.assert_fails(run(*adapt), "adapter_model.safetensors")
        weights.unlink()
        self.assert_fails(run(*adapt), "adapter_model.safetensors")
        self.assertFalse(again.exists())

    def test_an_adapter_of_peft_in_bf16(self):
        plan = self.trained("--targets", "q_proj")
        peft = self.folder / "peft"
        self.export(plan, "--to", "peft", "-o", peft)
        weights = peft / "adapter_model.safetensors"
        # The upper halves of the same numbers, as f32 and as bf16.
        upper = {name: value.view(numpy.uint32) & 0xFFFF0000 for name, value in read_safetensors(weights).items()}
        models = []
        for dtype, values in (("F32", upper), ("BF16", {name: (bits >> 16).astype(numpy.uint16) for name, bits in upper.items()})):
            write_safetensors(weights, values, dtype)
            models.append(self.folder / f"{dtype}.onnx")
            self.run_ok("oriel", "adapt", MODEL, "--from-peft", peft, "-o", models[-1])
        self.assertEqual(models[0].read_bytes(), models[1].read_bytes())

    def test_another_alpha_is_noticed(self):
        plan = self.trained("--targets", "q_proj")
        self.run_ok("oriel", "adapt", MODEL, "--rank", RANK, "--alpha", 3 * ALPHA, "--targets", "q_proj", "-o", self.adapted)
        other = self.plan(self.adapted, self.recipe_alone)
        resumed = self.run_ok("oriel-run", other, "--eval", DATA, "--steps", 0, "-n", 1, "--resume", self.checkpoints)
        self.assertIn("was trained with another model file", resumed.stdout + resumed.stderr)
        exported = self.export(other, "--to", "onnx", "-o", self.folder / "out.onnx")
        self.assertIn("an adapter's alpha", exported.stderr)

    def test_a_head_that_is_tied_to_the_embedding(self):
        graph = Graph()
        graph.input("ids", numpy.int64, ["batch", 4])
        graph.initializer("table.weight", numpy.random.default_rng(0).standard_normal((8, 6)).astype("f4"))
        graph.node("Gather", ["table.weight", "ids"], "x")
        graph.node("Transpose", ["table.weight"], "head", perm=[1, 0])
        graph.node("MatMul", ["x", "head"], "logits")
        graph.output("logits", numpy.float32, ["batch", 4, 8])
        model, recipe = self.folder / "tied.onnx", self.folder / "tied.yaml"
        model.write_bytes(graph.model())
        recipe.write_text("model: {bind: {batch: micro_batch}}\nloss: {logits: logits, labels: ids}\n"
                          'parameters: {trainable: ["*.lora_*"]}\noptimizer: {lr: 0.1}\n'
                          "batch: {global: 2, micro: 2}\nsteps: 1\n")
        adapt = ["oriel", "adapt", model, "--rank", 2, "-o", self.adapted]
        self.assert_fails(run(*adapt), "no linear layers but what gives its output, 'table'")
        said = self.run_ok(*adapt, "--targets", "table")
        self.assertIn("can't be merged", said.stderr)
        plan = self.plan(self.adapted, recipe)
        data = self.write_data("data", [{"ids": numpy.arange(4)}, {"ids": numpy.arange(4) + 1}])
        self.train(plan, "--save-dir", self.checkpoints, data=data)
        export = ["oriel", "export", plan, "--checkpoint", self.checkpoints, "--to", "onnx", "-o", self.folder / "out.onnx"]
        self.assert_fails(run(*export, "--merge-adapters"), "something else reads that weight, too")
        self.assertFalse((self.folder / "out.onnx").exists())
        peft = ["oriel", "export", plan, "--checkpoint", self.checkpoints, "--to", "peft", "-o", self.folder / "peft"]
        self.assert_fails(run(*peft), "something else reads the weight 'table.weight', too")
        self.run_ok(*export)

    def test_an_adapter_that_the_loss_does_not_reach(self):
        graph = Graph()
        graph.input("x", numpy.float32, ["batch", 4, 6])
        random = numpy.random.default_rng(0)
        first = None
        for name, shape in (("first", (6, 6)), ("head", (6, 8)), ("pooler", (6, 6)), ("end", (6, 2))):
            value = random.standard_normal(shape).astype("f4")
            first = value if name == "first" else first
            graph.initializer(f"{name}.weight", value)
        graph.node("MatMul", ["x", "first.weight"], "h")
        graph.node("MatMul", ["h", "head.weight"], "logits")
        graph.node("MatMul", ["h", "pooler.weight"], "pooled")
        graph.node("Relu", ["pooled"], "positive")
        graph.node("MatMul", ["positive", "end.weight"], "class")
        graph.output("logits", numpy.float32, ["batch", 4, 8])
        graph.output("class", numpy.float32, ["batch", 4, 2])
        model, recipe = self.folder / "two.onnx", self.folder / "two.yaml"
        model.write_bytes(graph.model())
        recipe.write_text("model: {bind: {batch: micro_batch}}\ninputs: {labels: {dtype: int64, shape: [micro_batch, 4]}}\n"
                          "loss: {logits: logits, labels: labels, shift: false}\n"
                          'parameters: {trainable: ["*.lora_*"]}\noptimizer: {kind: sgd, lr: 0.1}\n'
                          "batch: {global: 2, micro: 2}\nsteps: 2\n")
        self.run_ok("oriel", "adapt", model, "--rank", 2, "-o", self.adapted)
        plan = self.plan(self.adapted, recipe)
        samples = [{"x": random.standard_normal((4, 6)).astype("f4"), "labels": random.integers(0, 8, 4)} for _ in range(4)]
        self.train(plan, "--save-dir", self.checkpoints, data=self.write_data("data", samples))
        self.export(plan, "--to", "peft", "-o", self.folder / "peft")
        written = read_safetensors(self.folder / "peft" / "adapter_model.safetensors")
        self.assertEqual({name.split(".")[2] for name in written}, {"first"})
        merged = self.folder / "merged.onnx"
        self.export(plan, "--to", "onnx", "--merge-adapters", "-o", merged)
        before, after = model.read_bytes(), merged.read_bytes()
        changed = [i for i, (old, new) in enumerate(zip(before, after)) if old != new]
        begin = before.index(first.tobytes())
        self.assertTrue(changed and all(begin <= i < begin + first.nbytes for i in changed))

    def test_wrong_use(self):
        adapt = ["oriel", "adapt", MODEL, "-o", self.adapted]
        for options, texts in (
            (["--targets", "q_prj"], ["matches no linear layer", "did you mean 'q_proj'?"]),
            (["--targets", "*embed*"], ["which is no weight of a linear layer"]),
            (["--rank", "0"], ["must be from 1 to 65536"]),
            (["--rank", "1000000000000"], ["--rank", "65536"]),
            (["--alpha", "-1"], ["--alpha"]),
            (["--alpha", "nan"], ["--alpha"]),
            (["--alpha", "1e300"], ["the scale"]),
        ):
            self.assert_fails(run(*adapt, *options), *texts)
            self.assertFalse(self.adapted.exists())
        self.adapt()
        again = ["oriel", "adapt", self.adapted, "-o", self.folder / "twice.onnx"]
        self.assert_fails(run(*again), "has adapters already", "model.onnx")
        self.assert_fails(run("oriel", "adapt", self.adapted, "-o", self.adapted), "which is read")
        plan = self.plan(MODEL, GOLDEN / "recipe_adamw.yaml")
        self.train(plan, "--steps", 1, "--save-dir", self.checkpoints)
        export = ["oriel", "export", plan, "--checkpoint", self.checkpoints, "-o", self.folder / "out"]
        self.assert_fails(run(*export, "--to", "peft"), "has no adapters that `oriel adapt` has added")
        self.assert_fails(run(*export, "--to", "onnx", "--merge-adapters"), "has no adapters")
        self.assert_fails(run(*export, "--to", "peft", "--merge-adapters"), "is written --to onnx")
        self.assert_fails(run(*export, "--to", "onnx", "--base", MODEL), "needs --merge-adapters")
        self.assert_fails(run(*export, "--to", "onnx", "--rename-modules", "m.="), "needs --to peft")
        self.assertFalse((self.folder / "out").exists())
        text = self.folder / "model.onnxtxt"
        text.write_text("<ir_version: 10>")
        self.assert_fails(run("oriel", "adapt", text, "-o", self.adapted), "is ONNX text")
