"""Communication beside computing changes no bit, and takes no more memory than it says."""

import json
import pathlib
import unittest

import numpy
from gpt import Gpt
from oriel_testing import GOLDEN, HAVE_MPI, MODEL, SOURCE, OrielTestCase, losses, read_safetensors

QWEN = SOURCE / "models" / "qwen_vl_tiny"
SMALL = "bucket=16KiB,prefetch=32KiB"
MODULES = """
mesh: {dp: 2, tp: 2}
zero: 1
modules:
  vision: {parameters: ["model.vision_tower.*"], mesh: {dp: 4}}
"""


class OverlapTest(OrielTestCase):
    def compile_with(self, overlap: str, options: list, model=MODEL, recipe=None) -> pathlib.Path:
        plan = self.folder / f"{overlap.partition('=')[0]}_{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", recipe or GOLDEN / "recipe_adamw.yaml", *options,
                    "--overlap", overlap, "-o", plan)
        return plan

    def check(self, world: int, *options, sizes: str = SMALL, comm: str = "in_process", **model) -> list[dict]:
        """Losses, gradients and trained parameters are the same; the descriptions of both plans."""
        data = {} if "model" not in model else {"data": QWEN / "golden" / "data"}
        found, plans = [], []
        for overlap in ("off", sizes):
            plan = self.compile_with(overlap, [*options], **model)
            gradients = self.folder / "gradients.safetensors"
            parameters = self.folder / "parameters.safetensors"
            metrics = self.train(plan, "--steps", 3, "--dump-gradients", gradients, "--dump-parameters", parameters,
                                 world=world, comm=comm, **data)
            found.append((losses(metrics), [line["grad_norm"] for line in metrics], read_safetensors(gradients),
                          read_safetensors(parameters)))
            plans.append(json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout))
        off, on = found
        self.assertEqual(on[:2], off[:2])
        for before, after in zip(off[2:], on[2:]):
            self.assertEqual(sorted(after), sorted(before))
            self.assertGreater(len(before), 0)
            for name, value in before.items():
                numpy.testing.assert_array_equal(after[name], value, err_msg=name)
        return plans

    def waits(self, description: dict) -> dict[str, int]:
        """Waits of each segment."""
        return {segment["name"]: segment["kernels"].get("wait", 0)
                for program in description["programs"] for segment in program["segments"]}

    # Large enough that the times of its collectives count: what one grid waits for leaves first.
    def test_wide_tied_weights(self):
        gpt = Gpt(blocks=4, hidden=256, tied=True)
        model, recipe = self.folder / "gpt.onnx", self.folder / "recipe.yaml"
        model.write_bytes(gpt.model())
        text = gpt.recipe(8, 2).replace("kind: sgd, lr: 1.0e-2", "kind: adamw, lr: 1.0e-3, clip_norm: 1.0")
        self.assertIn("adamw", text)
        recipe.write_text(text)
        for options in (("--mesh", "dp=2", "--zero", "1"), ("--mesh", "dp=2", "--zero", "3"), ("--mesh", "tp=2", "--sp"),
                        ("--mesh", "dp=2", "--zero", "1", "--schedule", "zb-h1"),
                        ("--mesh", "dp=2", "--zero", "3", "--schedule", "interleaved", "--microbatches", "2")):
            for overlap in ("on", SMALL):
                stages = 4 if "interleaved" in options else 2
                self.compile_with(overlap, [*options, "--stages", stages], model=model, recipe=recipe)

    # But for the strategy's text, and the checksums in the header.
    def test_one_rank_has_the_same_bytes(self):
        path, plan = self.folder / "strategy.yaml", self.folder / "plan.oplan"
        found = []
        for text in ("overlap: false", "overlap: true "):
            path.write_text(f"mesh: {{dp: 1}}\n{text}\n")
            self.run_ok("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_adamw.yaml", "--strategy", path, "-o", plan)
            found.append(plan.read_bytes()[32:].replace(text.encode(), b""))
        self.assertEqual(found[0], found[1])

    def test_volume_is_the_same(self):
        for options in (["--mesh", "dp=2", "--zero", 1], ["--mesh", "dp=2,tp=2", "--zero", 3, "--sp"],
                        ["--stages", 2, "--mesh", "dp=2", "--microbatches", 4]):
            found = []
            for overlap in ("off", "on"):
                plan = self.compile_with(overlap, options)
                description = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)
                found.append([program["sent_bytes_per_step"] for program in description["programs"]])
            self.assertEqual(found[1], found[0])

    # docs/overlap.md: what is gathered ahead with a bucket of others, and two buckets of what is computed.
    def test_memory_is_bounded(self):
        for zero, ahead, behind in ((0, 0, 0), (1, 0, 1), (2, 0, 1), (3, 1, 1)):
            arenas = []
            for overlap in ("off", "bucket=32KiB,prefetch=64KiB"):
                plan = self.compile_with(overlap, ["--mesh", "dp=2", "--zero", zero])
                description = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)
                arenas.append(description["programs"][0]["arena_bytes"])
            # The largest parameter takes 64 KiB.
            self.assertLessEqual(arenas[1] - arenas[0], ahead * (64 + 32) * 1024 + behind * 2 * 64 * 1024, zero)

    def test_copies(self):
        plans = self.check(2, "--mesh", "dp=2")
        self.assertEqual(sum(self.waits(plans[0]).values()), 0)
        self.assertGreater(self.waits(plans[1])["backward_last"], 2)

    def test_sharded_states(self):
        self.check(2, "--mesh", "dp=2", "--zero", 1)

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_sharded_states_mpi(self):
        self.check(2, "--mesh", "dp=2", "--zero", 1, comm="mpi")

    def test_sharded_gradients(self):
        plans = self.check(2, "--mesh", "dp=2", "--zero", 2)
        self.assertGreater(self.waits(plans[1])["backward"], 2)

    def test_sharded_parameters(self):
        plans = self.check(4, "--mesh", "dp=2,tp=2", "--zero", 3, "--sp")
        self.assertGreater(self.waits(plans[1])["forward"], 2)

    def test_groups_that_shard(self):
        for zero in (1, 2, 3):
            self.check(4, "--mesh", "dp=4", "--zero", zero, "--hsdp", 2)

    def test_one_microbatch(self):
        recipe = self.recipe("recipe_adamw.yaml")
        plans = self.check(2, "--mesh", "dp=2", "--zero", 1, "--microbatches", 1, recipe=recipe)
        self.assertNotIn("backward", self.waits(plans[1]))

    def test_default_sizes(self):
        self.check(2, "--mesh", "dp=2", "--zero", 3, sizes="on")

    def test_modules(self):
        path = self.folder / "strategy.yaml"
        found = []
        for overlap in ("false", "{bucket: 16 KiB}"):
            path.write_text(MODULES + f"overlap: {overlap}\n")
            plan = self.folder / f"plan_{len(found)}.oplan"
            self.run_ok("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_adamw.yaml", "--strategy", path, "-o", plan)
            found.append(losses(self.train(plan, "--steps", 3, world=4)))
        self.assertEqual(*found)

    def test_pipeline_1f1b(self):
        self.check(4, "--stages", 2, "--mesh", "dp=2", "--zero", 1, "--microbatches", 4)

    def test_pipeline_interleaved(self):
        self.check(4, "--stages", 4, "--schedule", "interleaved", "--mesh", "dp=2", "--microbatches", 4)

    def test_pipeline_zb_h1(self):
        plans = self.check(4, "--stages", 2, "--schedule", "zb-h1", "--mesh", "dp=2", "--zero", 1, "--microbatches", 4)
        self.assertGreater(self.waits(plans[1])["backward_weight_last.0"], 2)

    def test_tied_weights(self):
        model = {"model": QWEN / "model.onnx", "recipe": QWEN / "golden" / "recipe_adamw.yaml"}
        self.check(2, "--mesh", "dp=2", "--zero", 2, **model)
        self.check(4, "--stages", 2, "--mesh", "dp=2", "--zero", 1, **model)
