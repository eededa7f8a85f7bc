"""A few random models; tools/dev/random_models/random_models.py runs more of them. Where the Python packages of tools/setup.sh --python are."""

import os
import re
import subprocess
import unittest

from oriel_testing import BIN, ENVIRONMENT, SOURCE, VENV, OrielTestCase

# Behind a run of a strategy, all of its gradients grow by a thousandth.
WRONG_RUN = """#!{python}
import subprocess, sys
import numpy
status = subprocess.run(["{run}", *sys.argv[1:]]).returncode
if status == 0 and "strategy_" in sys.argv[1] and "--dump-gradients" in sys.argv:
    path = sys.argv[sys.argv.index("--dump-gradients") + 1]
    content = open(path, "rb").read()
    start = 8 + int.from_bytes(content[:8], "little")
    values = numpy.frombuffer(content[start:], "f4") * numpy.float32(1.001)
    open(path, "wb").write(content[:start] + values.tobytes())
sys.exit(status)
"""


class RandomModelsTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.python = VENV / "bin" / "python"
        has_onnx = self.python.exists() and subprocess.run([self.python, "-c", "import onnx, numpy, yaml"], capture_output=True).returncode == 0
        if not has_onnx:
            self.skipTest("no onnx for Python: tools/setup.sh --python")

    def run_models(self, binaries, *options):
        script = SOURCE / "tools" / "dev" / "random_models" / "random_models.py"
        return subprocess.run([self.python, script, "--bin", binaries, *options], capture_output=True, text=True, env=ENVIRONMENT, timeout=110)

    def test_some(self):
        result = self.run_models(BIN, "--seed", "3", "--count", "2", "--strategies", "3")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"2 models, .* [1-9][0-9]* as one rank")

    def test_a_wrong_gradient_is_found(self):
        binaries = self.folder / "bin"
        binaries.mkdir()
        (binaries / "oriel").symlink_to(BIN / "oriel")
        wrong = binaries / "oriel-run"
        wrong.write_text(WRONG_RUN.format(python=self.python, run=BIN / "oriel-run"))
        os.chmod(wrong, 0o755)
        result = self.run_models(binaries, "--seed", "3", "--count", "1", "--strategies", "2")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertTrue(re.search(r"MISMATCH: 0\.001", result.stdout), result.stdout)


if __name__ == "__main__":
    unittest.main()
