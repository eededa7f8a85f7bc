"""Context parallelism: positions are cut over cp, and exchanged for something else where an op needs all of them."""

import dataclasses
import json
import pathlib

import numpy
from gpt import Gpt
from numerics import BF16_LIMITS, LIMITS, OneRank, StrategyFile
from onnx_writer import Graph
from oriel_testing import SOURCE, OrielTestCase, losses, read_safetensors, run, write_shard

# 4 heads with 2 of keys, as both models have: cp: 4 has two ranks for each, and tp: 2 leaves one.
STRATEGIES = {
    "alone": StrategyFile("mesh: {cp: 2}\nzero: 2\n", ranks=2),
    "more ranks than keys": StrategyFile("mesh: {cp: 4}\n", ranks=4, micro=1),
    "with all others": StrategyFile("mesh: {dp: 2, cp: 2, tp: 2}\nsequence_parallel: true\nzero: 1\n", ranks=8, dp=2,
                                    micro=1),
    "parameters in pieces": StrategyFile("mesh: {fsdp: 2, cp: 2}\nzero: 3\nremat: full\n", ranks=4, dp=2, micro=1),
    "copies of groups that shard": StrategyFile("mesh: {dp: 4, cp: 2}\nzero: 3\nhsdp: 2\n", ranks=8, dp=4, micro=1),
    "stages": StrategyFile("mesh: {dp: 2, cp: 2}\nstages: 2\nplacement: dp_outermost\n", ranks=8, dp=2, micro=1),
    "interleaved": StrategyFile("mesh: {cp: 2}\nstages: 4\nschedule: interleaved\nmicrobatches: 4\n", ranks=4),
}
MODULES = {
    "vision by samples": StrategyFile("""
mesh: {dp: 2, cp: 2}
modules:
  vision: {parameters: ["model.vision_tower.*", "model.multi_modal_projector.*"], mesh: {dp: 4}}
zero: 1
""", ranks=4, dp=2, micro=2),
    "stages of other meshes": StrategyFile("""
stages:
  - {blocks: vision, mesh: {dp: 1}}
  - {blocks: language.0-1, mesh: {cp: 4}}
  - {blocks: language.2, mesh: {tp: 2}}
  - {blocks: language.3, mesh: {cp: 2, tp: 2}}
schedule: zb-h1
""", ranks=11, micro=1),
}
GPT = Gpt(sequence=64)
BATCH = 4


class ContextParallelTest(OrielTestCase):
    def check(self, model: str, strategies: dict[str, StrategyFile], precision: str = "f32") -> None:
        one = OneRank(model, self.made("measured"), precision=precision, adamw_steps=5)
        for name, strategy in strategies.items():
            with self.subTest(name):
                found, _ = one.compare(strategy)
                for key, limit in (LIMITS if precision == "f32" else BF16_LIMITS).items():
                    self.assertLessEqual(found[key], limit, (name, key))

    def made(self, name: str) -> pathlib.Path:
        folder = self.folder / name
        folder.mkdir()
        return folder

    def test_llava_tiny(self):
        self.check("llava_tiny", {**STRATEGIES, **MODULES})

    def test_qwen_vl_tiny(self):
        """A vision tower whose attention is by windows, and positions of three axes among the inputs."""
        self.check("qwen_vl_tiny", {name: STRATEGIES[name] for name in ("more ranks than keys", "with all others")})

    def test_in_bf16(self):
        self.check("llava_tiny", {"alone": STRATEGIES["alone"]}, precision="bf16")

    def test_same_bits_on_every_communicator(self):
        one = OneRank("llava_tiny", self.made("measured"), adamw_steps=2)
        strategy = STRATEGIES["more ranks than keys"]
        expected = one.measure(strategy)
        self.assertEqual(one.measure(strategy, comm="mpi").losses, expected.losses)

    def test_evaluation(self):
        random, data, outputs = numpy.random.default_rng(0), self.made("data"), []
        ids = random.integers(0, GPT.vocabulary, (BATCH, GPT.sequence))
        write_shard(data / "0.tar", [{"input_ids": i, "labels": i} for i in ids])
        for world, mesh in ((1, "dp=1"), (4, "cp=2,tp=2"), (4, "dp=2,tp=2")):
            plan, path = self.gpt_plan(mesh), self.folder / f"{mesh}.npy"
            line = json.loads(self.run_ok("oriel-run", plan, "--eval", data, "-n", world, "--comm", "in_process",
                                          "--eval-logits", path).stdout)
            outputs.append((line, numpy.load(path)))
        (expected, expected_logits), *others = outputs
        for line, logits in others:
            numpy.testing.assert_allclose(logits, expected_logits, atol=1e-5)
            for key in ("token_accuracy", "exact_match", "tokens", "samples"):
                self.assertEqual(line[key], expected[key])
            self.assertAlmostEqual(line["eval_loss"], expected["eval_loss"], delta=1e-5)

    def gpt_plan(self, mesh: str, *options: str, micro: int = 1, gpt: Gpt = GPT) -> pathlib.Path:
        name = mesh.replace(",", "_") + "".join(options)
        model, recipe, plan = (self.folder / f"{name}{end}" for end in (".onnx", ".yaml", ".oplan"))
        model.write_bytes(gpt.model())
        recipe.write_text(gpt.recipe(BATCH, micro))
        self.run_ok("oriel", "compile", model, "--recipe", recipe, "--mesh", mesh, *options, "-o", plan)
        return plan

    def test_a_rank_keeps_its_positions(self):
        """Of what is kept for the backward a rank has 1/cp, but for the labels."""
        def stash(plan):
            (program,) = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"]
            return program["bytes_by_kind"]["stash"]

        labels = 8 * BATCH * GPT.sequence
        one, four = (stash(self.gpt_plan(mesh)) for mesh in ("dp=1", "cp=4"))
        self.assertLess(four, one / 4 + labels)

    def test_checkpoints_fit_any_other_mesh(self):
        random = numpy.random.default_rng(0)
        data, save = self.made("data"), self.folder / "save"
        ids = random.integers(0, GPT.vocabulary, (BATCH, GPT.sequence))
        write_shard(data / "0.tar", [{"input_ids": i, "labels": i} for i in ids])
        four, two = self.gpt_plan("cp=4", "--zero", "3"), self.gpt_plan("dp=2", "--zero", "1")
        self.train(four, "--steps", 2, "--save-dir", save, world=4, data=data)
        expected = losses(self.train(four, "--steps", 4, world=4, data=data))
        ended = losses(self.train(two, "--steps", 4, "--resume", save, world=2, data=data))
        numpy.testing.assert_allclose(ended[-2:], expected[-2:], rtol=1e-5)

    def test_what_does_not_divide(self):
        model, recipe = SOURCE / "models" / "llava_tiny", self.folder / "recipe.yaml"
        recipe.write_text((model / "recipe.yaml").read_text().replace("micro: 4", "micro: 1"))
        compiling = ("oriel", "compile", model / "model.onnx", "--recipe", recipe, "-o", self.folder / "p.oplan")
        self.assert_fails(run(*compiling, "--mesh", "cp=3"), "cp = 3 does not divide the 64 positions of the loss",
                          'choose another cp, or another length of the sequence, which is that of "input_ids" (dimension 1)')
        self.assertFalse((self.folder / "p.oplan").exists())
        warned = self.run_ok(*compiling, "--mesh", "cp=2,tp=4").stderr
        self.assertEqual(warned.count("2 ranks each compute the same of it"), 1, warned)

    def test_a_loss_with_its_layer(self):
        """One op, whose positions are cut."""
        model, recipe = self.folder / "model.onnx", self.folder / "recipe.yaml"
        model.write_bytes(GPT.model())
        recipe.write_text(GPT.recipe(BATCH, 2))
        warned = self.run_ok("oriel", "compile", model, "--recipe", recipe, "--mesh", "cp=2", "--fuse-loss", "-o", self.folder / "p.oplan").stderr
        self.assertNotIn("has no positions", warned)

    def test_a_loss_of_the_model(self):
        """Positions are those of the tokens; with one sample on a data-parallel rank, rows of logits are, too."""
        meshes = ((1, "dp=1"), (2, "cp=2"), (4, "cp=4"), (4, "dp=2,cp=2"), (4, "cp=2,tp=2"), (4, "cp=2", "--stages", "2"))
        self.check_own_loss(meshes, (1, 2), own_loss=True)
        # Attention that is not causal, and chunks of positions.
        self.check_own_loss(((1, "dp=1"), (2, "cp=2")), (1,), own_loss=True, alibi=True)
        self.check_own_loss(((1, "dp=1"), (2, "cp=2")), (1,), own_loss=True, chunk=16)
        # A cross entropy of one position less, which is as one of all.
        self.check_own_loss(meshes, (1, 2), own_loss=True, shifted=True)

    def check_own_loss(self, meshes, micros, **options) -> None:
        random, data, gpt = numpy.random.default_rng(0), self.made("_".join(("data", *options))), dataclasses.replace(GPT, **options)
        ids = random.integers(0, GPT.vocabulary, (BATCH, GPT.sequence))
        write_shard(data / "0.tar", [{"input_ids": i, "labels": i} for i in ids])
        expected = None
        for world, mesh, *words in meshes:
            for micro in micros:
                with self.subTest(mesh=mesh, words=words, micro=micro, **options):
                    plan = self.gpt_plan(mesh, *words, micro=micro, gpt=gpt)
                    dumped = self.folder / "gradients.safetensors"
                    self.train(plan, "--steps", 1, "--dump-gradients", dumped, world=world, data=data)
                    found = read_safetensors(dumped)
                    expected = expected or found
                    norms = {name: numpy.linalg.norm(gradient) for name, gradient in expected.items()}
                    least = 1e-7 * numpy.linalg.norm(list(norms.values()))  # biases of keys have none
                    for name in (name for name, norm in norms.items() if norm > least):
                        self.assertLessEqual(numpy.linalg.norm(found[name] - expected[name]), 1e-5 * norms[name], name)

    def test_what_has_no_positions(self):
        """A convolution needs its neighbours, too, but rows of an image are no positions."""
        model, recipe = self.folder / "model.onnx", self.folder / "recipe.yaml"
        graph = Graph()
        graph.input("x", numpy.float32, ["batch", 3, 8, 8])
        graph.node("Conv", ["x", graph.initializer("w", numpy.ones((4, 3, 3, 3), "f4"))], "features", pads=[1, 1, 1, 1])
        graph.node("ReduceMean", ["features"], "y", keepdims=0)
        graph.output("y", numpy.float32, [])
        model.write_bytes(graph.model())
        recipe.write_text("model: {bind: {batch: micro_batch}}\nloss: {kind: sum, output: y, over: microbatch}\n"
                          "batch: {global: 2, micro: 2}\noptimizer: {kind: sgd, lr: 1.0}\nsteps: 1\n")
        self.assert_fails(run("oriel", "compile", model, "--recipe", recipe, "--mesh", "cp=2", "-o", self.folder / "p.oplan"),
                          "leave cp out")
