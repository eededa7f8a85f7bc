"""Several ranks against one: design section 9, (a) gradients, (b) SGD, (c) AdamW."""

import unittest

import numpy
from golden_test import ZERO_SHARE
from oriel_testing import GOLDEN, HAVE_MPI, OrielTestCase, losses, read_safetensors, relative_error


class DataParallelTest(OrielTestCase):
    def sgd_run(self, world: int, comm: str):
        """Gradients of step 1 and parameters after 5 steps of SGD."""
        plan = self.compile(GOLDEN / "recipe_sgd.yaml", world)
        gradients = self.folder / f"gradients_{world}_{comm}.safetensors"
        parameters = self.folder / f"parameters_{world}_{comm}.safetensors"
        self.train(plan, "--steps", 5, "--dump-gradients", gradients,
                   "--dump-parameters", parameters, world=world, comm=comm)
        return read_safetensors(gradients), read_safetensors(parameters)

    def adamw_losses(self, world: int, comm: str) -> list[float]:
        plan = self.compile(GOLDEN / "recipe_adamw.yaml", world)
        return losses(self.train(plan, "--steps", 20, world=world, comm=comm))

    def check(self, world: int, comm: str):
        gradients, parameters = self.sgd_run(world, comm)
        expected_gradients, expected_parameters = self.sgd_run(1, "in_process")
        norms = {name: numpy.linalg.norm(g.astype(float)) for name, g in expected_gradients.items()}
        total = numpy.sqrt(sum(norm**2 for norm in norms.values()))
        self.assertEqual(set(gradients), set(expected_gradients))
        compared = 0
        for name, expected in expected_gradients.items():
            # Rounding in f32 lifts a gradient that is zero to this share.
            if norms[name] < 10 * ZERO_SHARE * total:
                continue
            compared += 1
            self.assertLess(relative_error(gradients[name], expected), 1e-5, name)
        self.assertGreater(compared, 0.9 * len(expected_gradients))
        for name, expected in expected_parameters.items():
            self.assertLess(numpy.abs(parameters[name] - expected).max(), 1e-6, name)
        numpy.testing.assert_allclose(
            self.adamw_losses(world, comm), self.adamw_losses(1, "in_process"), rtol=1e-5, atol=0)

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
