"""llava_tiny on several ranks against one, and the same bits every time."""

import unittest

import golden_testing
from oriel_testing import HAVE_MPI


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
