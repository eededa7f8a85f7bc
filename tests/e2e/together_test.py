"""Everything at once against PyTorch's numbers: stages, tensor and sequence parallelism, ZeRO,
activation checkpointing, overlap and interleaved microbatches on eight ranks."""

import unittest

import golden_testing
from oriel_testing import HAVE_MPI

# Two grids of dp 2 x tp 2 ranks, each with a stage of vision blocks and one of language blocks. Communication runs beside
# computing unless a strategy says otherwise.
STRATEGY = """
mesh: {dp: 2, tp: 2}
sequence_parallel: true
zero: ZERO
stages: [vision.0-1, "vision.2-3", "language.0-1", "language.2-3"]
schedule: interleaved
microbatches: 4
remat: REMAT
"""
RANKS = 8


class TogetherTest(golden_testing.GoldenTestCase):
    zero = 3
    remat = "full"
    comm = "in_process"

    def compile_model(self, recipe, world=1):
        strategy = self.folder / "strategy.yaml"
        strategy.write_text(STRATEGY.replace("ZERO", str(self.zero)).replace("REMAT", self.remat))
        plan = self.folder / f"{recipe.stem}.oplan"
        self.run_ok("oriel", "compile", golden_testing.SOURCE / "models" / self.name / "model.onnx",
                    "--recipe", recipe, "--strategy", strategy, "-o", plan)
        return plan

    def train_model(self, plan, *arguments, **options):
        return super().train_model(plan, *arguments, world=RANKS, comm=self.comm, **options)

    def test_gradients(self):
        self.check_gradients(self.golden / "recipe_sgd.yaml")

    def test_sgd_steps(self):
        self.check_run("sgd", 5)

    def test_adamw_losses(self):
        self.check_run("adamw", 20)

    def test_sharded_states_and_selective_checkpointing(self):
        self.zero, self.remat = 1, "selective"
        self.check_run("adamw", 20)

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_mpi(self):
        self.comm = "mpi"
        self.check_run("sgd", 5)
