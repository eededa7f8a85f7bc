"""llava_tiny on several ranks against one, and the same bits every time."""

import unittest

import golden_testing
import numpy
from oriel_testing import HAVE_MPI, MODEL, losses


class DataParallelTest(golden_testing.RanksTestCase):
    name = "llava_tiny"

    def test_two_ranks_in_process(self):
        self.check(2, "in_process")

    def test_four_ranks_in_process(self):
        self.check(4, "in_process")

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_two_ranks_mpi(self):
        self.check(2, "mpi")

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_four_ranks_mpi(self):
        self.check(4, "mpi")

    def test_same_bits_every_run(self):
        self.assertEqual(self.adamw_losses(4, "in_process"), self.adamw_losses(4, "in_process"))

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_same_bits_on_every_communicator(self):
        self.assertEqual(self.adamw_losses(4, "in_process"), self.adamw_losses(4, "mpi"))

    def test_undeclared_images(self):
        """The merge then counts image slots over the batch: each rank gathers it, and hears so."""
        recipe = self.recipe("recipe_sgd.yaml", ("images:", "# images:"))
        runs = []
        for world in (1, 2):
            plan = self.folder / f"undeclared_{world}.oplan"
            result = self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, "--mesh",
                                 f"dp={world}", "-o", plan)
            self.assertEqual("couples the samples of a batch" in result.stderr, world > 1)
            runs.append(losses(self.train_model(plan, "--steps", 5, world=world)))
        numpy.testing.assert_allclose(runs[1], runs[0], rtol=1e-5, atol=0)
