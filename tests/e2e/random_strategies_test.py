"""A few random strategies; tools/dev/random_strategies.py runs more of them."""

import subprocess
import sys
import unittest

from oriel_testing import ENVIRONMENT, SOURCE


class RandomStrategiesTest(unittest.TestCase):
    def test_llava_deep(self):
        script = SOURCE / "tools" / "dev" / "random_strategies.py"
        result = subprocess.run([sys.executable, script, "--model", "llava_deep", "--count", "12"], capture_output=True, text=True,
                                env=ENVIRONMENT, timeout=350)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"llava_deep: [1-9][0-9]* as on one rank, 0 failed")
