"""Parameters and optimizer states in pieces over the ranks: files know the whole tensors only."""

import json
import pathlib
import unittest

import numpy
from oriel_testing import DATA, GOLDEN, HAVE_MPI, MODEL, OrielTestCase, losses, run

# Tensor parallelism with sequences and all of storage in pieces; two that don't change the math.
PIECES = ("--mesh", "dp=2,tp=2", "--zero", 3, "--sp")
REPLICATED, ZERO_3 = ("--mesh", "dp=4"), ("--mesh", "dp=4", "--zero", 3)


class ShardedStorageTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.checkpoints = self.folder / "checkpoints"
        self.plan = self.compile_with(*PIECES)

    def compile_with(self, *strategy) -> pathlib.Path:
        plan = self.folder / f"{'_'.join(map(str, strategy))}.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_adamw.yaml", *strategy,
                    "-o", plan)
        return plan

    def test_checkpoint_loads_under_any_strategy(self):
        expected = self.folder / "expected.safetensors"
        self.train(self.plan, "--steps", 3, "--save-dir", self.checkpoints, "--dump-parameters", expected,
                   world=4)
        files = {path.name for path in (self.checkpoints / "step-00000003").iterdir()}
        self.assertEqual(files, {"index.json"} | {f"{kind}-rank0000{rank}.safetensors" for rank in range(4)
                                                  for kind in ("model", "optimizer")})
        rest = []
        for strategy in (REPLICATED, ZERO_3):
            plan, loaded = self.compile_with(*strategy), self.folder / "loaded.safetensors"
            self.run_ok("oriel-run", plan, "--eval", DATA, "--steps", 0, "-n", 4, "--resume",
                        self.checkpoints, "--dump-parameters", loaded)
            self.assertTrue(loaded.read_bytes() == expected.read_bytes(), f"{strategy}: other parameters")
            # The states show in what training makes of them.
            again = self.folder / f"again_{len(rest)}"
            rest.append(losses(self.train(plan, "--steps", 6, "--resume", self.checkpoints, "--save-dir",
                                          again, world=4)))
            exported = self.folder / f"exported_{len(rest)}.safetensors"
            self.run_ok("oriel", "export", plan, "--checkpoint", again, "--to", "safetensors", "-o", exported)
        self.assertEqual(rest[0], rest[1])
        self.assertEqual((self.folder / "exported_1.safetensors").read_bytes(),
                         (self.folder / "exported_2.safetensors").read_bytes())
        whole = losses(self.train(self.plan, "--steps", 6, world=4))
        numpy.testing.assert_allclose(rest[0], whole[3:], rtol=1e-5)

    def check_six(self, ranks: int, zero: int, *more) -> None:
        """No parameter of this model has a multiple of six elements along a dimension, but most of two."""
        recipe = self.folder / "recipe.yaml"
        text = (GOLDEN / "recipe_adamw.yaml").read_text()
        self.assertIn("global: 8, micro: 2", text)
        recipe.write_text(text.replace("global: 8, micro: 2", "global: 12, micro: 2"))
        bytes_of, trained = {}, {}
        for level in (0, zero):
            plan = self.folder / f"six_{level}.oplan"
            self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, "--mesh", "dp=6", "--zero", level, *more, "-o", plan)
            programs = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)["programs"]
            bytes_of[level] = max(program["arena_bytes"] for program in programs)
            trained[level] = losses(self.train(plan, "--steps", 4, world=ranks))
        self.assertLess(bytes_of[zero], 0.9 * bytes_of[0])
        numpy.testing.assert_allclose(trained[zero], trained[0], rtol=1e-6)

    def test_a_part_of_the_ranks_shares_what_all_do_not_divide(self):
        self.check_six(6, 3)

    def test_a_part_of_the_ranks_of_each_stage_shares(self):
        self.check_six(12, 1, "--stages", 2)

    def test_evaluation_counts_copies_once(self):
        reports, logits = [], []
        for plan, ranks in ((self.compile_with("--mesh", "dp=1"), 1), (self.plan, 4)):
            path = self.folder / f"logits_{ranks}.npy"
            result = self.run_ok("oriel-run", plan, "--eval", DATA, "--steps", 0, "-n", ranks,
                                 "--eval-logits", path)
            reports.append(json.loads(result.stdout))
            logits.append(numpy.load(path))
        whole, pieces = reports
        self.assertAlmostEqual(pieces.pop("eval_loss"), whole.pop("eval_loss"), delta=1e-5)
        self.assertEqual(pieces, whole)
        numpy.testing.assert_allclose(logits[1], logits[0], atol=1e-4)

    @unittest.skipUnless(HAVE_MPI, "no MPI")
    def test_processes_save_what_threads_save(self):
        for comm in ("in_process", "mpi"):
            self.train(self.plan, "--steps", 1, "--save-dir", self.folder / comm, world=4, comm=comm)
        threads, processes = (self.folder / comm / "step-00000001" for comm in ("in_process", "mpi"))
        for path in threads.iterdir():
            self.assertTrue(path.read_bytes() == (processes / path.name).read_bytes(), path.name)

    def test_file_of_a_rank_is_missing(self):
        self.train(self.plan, "--steps", 1, "--save-dir", self.checkpoints, world=4)
        (self.checkpoints / "step-00000001" / "optimizer-rank00003.safetensors").unlink()
        result = run("oriel-run", self.plan, "--data", DATA, "-n", 4, "--resume", self.checkpoints)
        self.assert_fails(result, "incomplete or damaged checkpoint", "optimizer-rank00003.safetensors")
