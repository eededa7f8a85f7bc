"""Plans for many ranks: bytes per rank, the plan's size, and training on 64 ranks."""

import json
import pathlib
import unittest

import numpy
import onnx_writer
from oriel_testing import DATA, GOLDEN, HAVE_MPI, MODEL, SOURCE, OrielTestCase, losses, read_safetensors

LLAMA = SOURCE / "models" / "skeletons" / "llama_2_7b"


class StateTest(OrielTestCase):
    """Rajbhandari et al. 2020, "ZeRO", figure 1: 7.5 G parameters on 64 ranks, 16 bytes each."""

    # GB of parameters, gradients and AdamW's state on each rank, for ZeRO-0 to 3. All f32: 4, 4 and two moments of 4.
    EXPECTED = (120, 60.9, 31.4, 1.9)
    # The figure's: parameters and gradients of 2 bytes, and 12 of a master copy and two moments.
    MIXED = (120, 31.4, 16.6, 1.9)
    LAYERS, WIDTHS = 75, (6400, 15625)
    RECIPE = """
model: {bind: {batch: micro_batch}}
inputs: {labels: {dtype: int64, shape: [micro_batch]}}
loss: {logits: logits, labels: labels, shift: false}
init: {seed: 0, rules: [{match: ["*"], normal: {std: 0.02}}]}
optimizer: {kind: adamw, lr: 1.0e-3}
batch: {global: 128, micro: 1}
steps: 1
"""

    def write_model(self):
        """Linear layers with an activation between them, and no weights."""
        graph = onnx_writer.Graph()
        graph.input("x", numpy.float32, ["batch", self.WIDTHS[0]])
        graph.output("logits", numpy.float32, ["batch", self.WIDTHS[self.LAYERS % 2]])
        hidden = "x"
        for layer in range(self.LAYERS):
            last = layer == self.LAYERS - 1
            shape = self.WIDTHS if layer % 2 == 0 else self.WIDTHS[::-1]
            weight = graph.external_initializer(f"layers.{layer}.weight", shape, "model.onnx.data")
            hidden = graph.node("MatMul", [hidden, weight], "logits" if last else f"linear_{layer}")
            if not last:
                hidden = graph.node("Relu", [hidden], f"relu_{layer}")
        path = self.folder / "model.onnx"
        path.write_bytes(graph.model())
        return path

    def check(self, text: str, expected: tuple[float, ...], sizes: tuple[int, int, int], *options) -> None:
        """`sizes`: bytes of a parameter, its gradient and its optimizer state."""
        model, recipe, plan = self.write_model(), self.folder / "recipe.yaml", self.folder / "p.oplan"
        recipe.write_text(text)
        for zero, gigabytes in enumerate(expected):
            self.run_ok("oriel", "compile", model, "--recipe", recipe, "--mesh", "dp=64", "--zero", zero, *options,
                        "-o", plan)
            description = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)
            self.assertEqual(description["parameters"]["total"], 7_500_000_000)
            (program,) = description["programs"]
            kinds = ("parameter", "gradient", "optimizer_state")
            # But for what pieces are rounded up.
            numpy.testing.assert_allclose(program["state_bytes"], sum(program["bytes_by_kind"][kind] for kind in kinds), rtol=1e-4)
            numpy.testing.assert_allclose(program["state_bytes"] / 1e9, gigabytes, rtol=0.02)
            # Of each kind exactly what its ZeRO stage says.
            pieces = [size * 7_500_000_000 // (64 if zero >= stage else 1) for size, stage in zip(sizes, (3, 2, 1))]
            self.assertEqual([program["bytes_by_kind"][kind] for kind in kinds], pieces)
            parts = program["memory"]["parts"]
            held = sum(parts[part] for part in ("parameters", "gradients", "optimizer_state"))
            numpy.testing.assert_allclose(held / 1e9, gigabytes, rtol=0.02)

    def test_bytes_per_rank(self):
        self.check(self.RECIPE, self.EXPECTED, (4, 4, 8))

    def test_bytes_per_rank_in_mixed_precision(self):
        self.check(self.RECIPE + "precision: {compute: bf16, gradients: bf16}\n", self.MIXED, (2, 2, 12),
                   "--fuse-kernels", "off")  # masters are whole

    def test_bytes_per_rank_with_remainders(self):
        """Of a master what the parameter lacks, where both are stored alike: without ZeRO, and with ZeRO-3."""
        model, recipe, plan = self.write_model(), self.folder / "recipe.yaml", self.folder / "p.oplan"
        recipe.write_text(self.RECIPE + "precision: {compute: bf16, gradients: bf16}\n")
        for zero, size, ranks in ((0, 10, 1), (1, 12, 64), (2, 12, 64), (3, 10, 64)):
            self.run_ok("oriel", "compile", model, "--recipe", recipe, "--mesh", "dp=64", "--zero", zero, "-o", plan)
            (program,) = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)["programs"]
            self.assertEqual(program["bytes_by_kind"]["optimizer_state"], size * 7_500_000_000 // ranks)


class DeepModelTest(OrielTestCase):
    """Thousands of layers in seconds, and chains of ops that no recursion follows to their end."""

    RECIPE = ("model: {bind: {batch: micro_batch}}\nloss: {kind: sum, output: loss, over: microbatch}\n"
              "optimizer: {lr: 0.1, clip_norm: 1.0}\nbatch: {global: 4, micro: 2}\nsteps: 2\n")

    def write(self, layers: int, between: int) -> pathlib.Path:
        """Products of one size, `between` pointwise ops behind each."""
        graph = onnx_writer.Graph()
        graph.input("x", numpy.float32, ["batch", 4])
        last = "x"
        for layer in range(layers):
            graph.initializer(f"layer{layer}.weight", 0.9 * numpy.eye(4, dtype="f4"))
            last = graph.node("MatMul", [last, f"layer{layer}.weight"], f"product{layer}")
            for op in range(between):
                last = graph.node("Tanh", [last], f"tanh{layer}_{op}")
        graph.node("ReduceSum", [last], "loss", keepdims=0)
        graph.output("loss", numpy.float32, [])
        model, recipe = self.folder / "deep.onnx", self.folder / "deep.yaml"
        model.write_bytes(graph.model())
        recipe.write_text(self.RECIPE)
        return model

    def compile_deep(self, model: pathlib.Path, *options) -> pathlib.Path:
        plan = self.folder / f"deep_{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", self.folder / "deep.yaml", *options, "-o", plan)
        return plan

    def test_thousands_of_parameters(self):
        # Two thousand took over a minute, and were refused.
        plan = self.compile_deep(self.write(2000, 0), "--mesh", "dp=2")
        random = numpy.random.default_rng(0)
        data = self.write_data("data", [{"x": random.standard_normal(4).astype("f4")} for _ in range(4)])
        self.assertEqual(len(self.train(plan, world=2, data=data)), 2)

    def test_chains_between_weights(self):
        model = self.write(2, 3000)
        for mesh in ("dp=2", "tp=2"):
            self.compile_deep(model, "--mesh", mesh)


class DataParallelWorkTest(OrielTestCase):
    """A rank's work and memory are those of its own samples, however many ranks have others."""

    def simulate(self, model: str, ranks: int) -> dict:
        folder = SOURCE / "models" / model
        recipe = self.folder / f"{model}_{ranks}.yaml"
        text = (folder / "recipe.yaml").read_text()
        batch = next(line for line in text.splitlines() if line.startswith("batch:"))
        recipe.write_text(text.replace(batch, f"batch: {{global: {2 * ranks}, micro: 2}}"))
        result = self.run_ok("oriel", "simulate", folder / "model.onnx", "--recipe", recipe, "--mesh", f"dp={ranks}",
                             "--cluster", f"h100:{max(1, ranks // 8)}", "--remat", "none", "--json")
        (stage,) = json.loads(result.stdout)["stages"]
        return stage

    def test_same_for_2_and_256_ranks(self):
        # Embeddings of positions and tables of angles are the same for all images, as `qwen_vl_tiny` has them.
        for model in ("llava_tiny", "qwen_vl_tiny", "llava_deep"):
            with self.subTest(model):
                few, many = self.simulate(model, 2), self.simulate(model, 256)
                numpy.testing.assert_allclose(many["busy"], few["busy"], rtol=0.02)
                for part in ("temporaries", "stash"):
                    numpy.testing.assert_allclose(many["memory"][part], few["memory"][part], rtol=0.05)


class PlanSizeTest(OrielTestCase):
    def compile_llama(self, dp: int, fsdp: int, tp: int):
        """Llama 2 7B with ZeRO-3 and sequence parallelism, two microbatches a step."""
        text = (LLAMA / "recipe.yaml").read_text()
        for old, new in (("global: 1024", f"global: {2 * dp * fsdp}"), ("sequence: 4096", "sequence: 2048")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        recipe, plan = self.folder / "recipe.yaml", self.folder / f"p{dp * fsdp * tp}.oplan"
        recipe.write_text(text)
        # Smaller pieces would need fewer buckets.
        self.run_ok("oriel", "compile", LLAMA / "model.onnx", "--recipe", recipe, "--overlap", "off",
                    "--mesh", f"dp={dp},fsdp={fsdp},tp={tp}", "--zero", 3, "--sp", "-o", plan)
        return plan

    def test_same_for_8_and_512_ranks(self):
        plans = [self.compile_llama(2, 2, 2), self.compile_llama(16, 4, 8)]
        sizes = [plan.stat().st_size for plan in plans]
        # Numbers of the grid and of smaller pieces take a byte more or less.
        numpy.testing.assert_allclose(sizes[1], sizes[0], rtol=0.01)
        few, many = (json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout) for plan in plans)
        self.assertEqual([few["world"], many["world"]], [8, 512])
        for one, other in zip(few["programs"], many["programs"], strict=True):
            for key in ("buffers_by_kind", "instructions_per_step"):
                self.assertEqual(one[key], other[key])
            for a, b in zip(one["segments"], other["segments"], strict=True):
                self.assertEqual(a["kernels"], b["kernels"], a["name"])
                self.assertEqual([(each["kind"], each["axes"], each["count"]) for each in a["collectives_by_kind"]],
                                 [(each["kind"], each["axes"], each["count"]) for each in b["collectives_by_kind"]])


class RanksTest(OrielTestCase):
    def compile_tiny(self, mesh: str, *options, batch: str):
        recipe = self.recipe("recipe_adamw.yaml", ("{global: 8, micro: 2}", batch))
        plan = self.folder / "p.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, "--mesh", mesh, *options, "-o", plan)
        return plan

    def test_64_ranks(self):
        runs = []
        for mesh, options, world in (("dp=1", [], 1), ("dp=8,fsdp=2,tp=4", ["--zero", 3, "--sp"], 64)):
            plan = self.compile_tiny(mesh, *options, batch="{global: 16, micro: 1}")
            runs.append(losses(self.train(plan, "--steps", 3, world=world)))
        numpy.testing.assert_allclose(runs[1], runs[0], rtol=1e-5, atol=0)

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_8_ranks_have_the_same_bits_on_every_communicator(self):
        plan = self.compile_tiny("dp=2,fsdp=2,tp=2", "--zero", 3, "--sp", batch="{global: 8, micro: 1}")
        results = []
        for comm in ("in_process", "mpi"):
            file = self.folder / f"{comm}.safetensors"
            metrics = self.train(plan, "--steps", 3, "--dump-parameters", file, world=8, comm=comm)
            results.append((losses(metrics), {name: value.tobytes() for name, value in read_safetensors(file).items()}))
        self.assertEqual(*results)
