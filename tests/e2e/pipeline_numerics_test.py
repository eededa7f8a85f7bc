"""A sample of the pipelines of docs/numerics.md, in which every pair of settings of a strategy occurs."""

import unittest

import numerics
from oriel_testing import HAVE_MPI, SOURCE, OrielTestCase, losses, read_safetensors


class PipelineNumericsTest(OrielTestCase):
    def check(self, model: str, strategies: list):
        one_rank = numerics.OneRank(model, self.folder)
        for strategy in strategies:
            errors, _ = one_rank.compare(strategy)
            for name, limit in numerics.LIMITS.items():
                self.assertLessEqual(errors[name], limit, f"{strategy}: {name}")

    def check_sample(self, model: str):
        strategies = numerics.pairwise(numerics.all_pipelines(model))
        self.assertGreater(len(strategies), 12)
        self.check(model, strategies)

    def test_llava_tiny(self):
        self.check_sample("llava_tiny")

    def test_llava_deep(self):
        self.check_sample("llava_deep")

    # The embedding of the first stage is the output layer of the last; two vision blocks feed
    # decoder blocks of later stages.
    def test_qwen_vl_tiny(self):
        self.check_sample("qwen_vl_tiny")

    # A value that goes from one to a later one of them is needed again in the backward.
    def test_three_stages_on_a_grid(self):
        self.check("qwen_vl_tiny", [numerics.StrategyFile("mesh: {}\nstages: 6\ninterleave: 3\n", ranks=2)])

    def test_a_mesh_per_stage(self):
        self.check("llava_tiny", list(numerics.STAGE_MESHES.values()))


class CommunicatorsTest(OrielTestCase):
    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_8_ranks_have_the_same_bits_on_every_communicator(self):
        plan = self.folder / "p.oplan"
        self.run_ok("oriel", "compile", SOURCE / "models" / "llava_deep" / "model.onnx", "--recipe",
                    self.recipe("recipe_adamw.yaml"), "--mesh", "dp=2", "--zero", 1, "--stages", 8,
                    "--schedule", "interleaved", "--microbatches", 4, "-o", plan)
        results = []
        for comm in ("in_process", "mpi"):
            file = self.folder / f"{comm}.safetensors"
            metrics = self.train(plan, "--steps", 3, "--dump-parameters", file, world=8, comm=comm)
            results.append((losses(metrics), {name: value.tobytes() for name, value in read_safetensors(file).items()}))
        self.assertEqual(*results)
