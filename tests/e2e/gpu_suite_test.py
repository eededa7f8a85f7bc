"""tools/dev/gpu_suite.sh: the folder for machines with a GPU, here on one that has none."""

import json
import os
import subprocess
import tarfile
import unittest

from oriel_testing import BIN, ENVIRONMENT, SOURCE, OrielTestCase

SCRIPT = SOURCE / "tools" / "dev" / "gpu_suite.sh"


@unittest.skipUnless((BIN / "liboriel_cuda.so").exists(), "built without CUDA")
class GpuSuiteTest(OrielTestCase):
    def script(self, script, *arguments, **environment) -> subprocess.CompletedProcess:
        return subprocess.run(["bash", str(script), *map(str, arguments)], capture_output=True, text=True,
                              timeout=280, env=dict(ENVIRONMENT, **environment))

    def test_pack_and_run_without_a_device(self):
        packed = self.folder / "packed"
        result = self.script(SCRIPT, "pack", "--bin", BIN, packed)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"packed [1-9]\d* cases into .*, \d+ MiB")
        self.assertLess(sum(file.stat().st_size for file in packed.iterdir()), 40 << 20)
        self.assertIn("is not empty", self.script(SCRIPT, "pack", "--bin", BIN, packed).stderr)

        # Nothing of this checkout is needed there; and devices, if there are any, are hidden.
        kept = self.folder / "kept"
        result = self.script(packed / "gpu_suite.sh", "run", "--keep", kept, CUDA_VISIBLE_DEVICES="")
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertIn("error: no device", result.stderr)
        self.assertIn("-- ", result.stdout)
        self.assertFalse((packed / "gpu_suite.json").exists())

        # The binaries take their libraries from the folder, the driver's excepted.
        libraries = subprocess.run(["ldd", str(kept / "bin" / "oriel-run")], capture_output=True, text=True,
                                   env=dict(os.environ, LD_LIBRARY_PATH=str(kept / "lib"))).stdout
        for line in libraries.splitlines():
            name, _, path = line.strip().partition(" => ")
            if path and not name.startswith(("libc.", "libm.", "libdl.", "libpthread.", "librt.")):
                self.assertTrue(path.startswith(str(kept)), line)

    @unittest.skipUnless((BIN / "liboriel_cuda_emulated.so").exists(), "built without tests")
    def test_dry_run(self):
        """Every kind of case but those that need a device, on the emulator."""
        packed = self.folder / "packed"
        result = self.script(SCRIPT, "pack", "--bin", BIN, "--dry", packed)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        out = self.folder / "out"
        result = self.script(packed / "gpu_suite.sh", "run", "--dry", "--out", out)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("initial values               4 tests of 1 suites have passed\n", result.stdout)
        self.assertRegex(result.stdout, r"\n5 passed, 0 failed, 0 skipped; ")
        self.assertRegex(result.stdout, r"llava_tiny f32 1 .*losses within .*; parameters behind SGD within .* of the host's\n")
        self.assertRegex(result.stdout, r"llava_tiny f32 dp2 .*losses within .*; parameters behind SGD within .* of one rank's\n")
        report = json.loads((out / "gpu_suite.json").read_text())
        with tarfile.open(out / "gpu_suite_logs.tar.gz") as logs:
            self.assertIn("training_llava_tiny.log", logs.getnames())
        self.assertTrue(report["dry_run"])
        self.assertEqual({case["part"] for case in report["cases"]}, {"tests", "train", "kernels", "bench"})
        self.assertGreater(len(report["kernels"]["kernels"]), 30)
        contestants = report["training"]["llava_tiny"]["cases"]["llava_tiny"]["contestants"]
        self.assertGreater(len(contestants["oriel_timed_products"]["products_us"]), 5)
        for name in ("oriel", "oriel_generated", "oriel_fused_loss", "oriel_timed_products"):
            self.assertGreater(contestants[name]["kernels_ms"], 0)
            self.assertGreater(contestants[name]["tokens_per_second"], 0)

        # One part alone; and a case that fails is counted, as is one that takes too long. One for which no time is left
        # is skipped.
        script = (packed / "gpu_suite.sh").read_text()
        for change, parts, minutes, code, counts in (
                (("loss_bound=1e-", "loss_bound=-1"), "train", "8", 1, "0 passed, 2 failed, 0 skipped"),
                (("kernels) echo 240", "kernels) echo 1"), "kernels", "8", 1, "0 passed, 1 failed, 0 skipped"),
                (("", ""), "kernels", "0.03", 4, "0 passed, 0 failed, 1 skipped"),
                (("", ""), "tests", "0", 4, "0 passed, 0 failed, 1 skipped")):
            self.assertIn(change[0], script)
            (packed / "gpu_suite.sh").write_text(script.replace(*change) if change[0] else script)
            result = self.script(packed / "gpu_suite.sh", "run", "--dry", "--parts", parts, "--minutes", minutes)
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
            self.assertIn(f"\n{counts}; ", result.stdout)
            if parts == "train":  # and is tried in other ways
                self.assertRegex(result.stdout, r"--no-graphs: losses: .*, above -1")
                self.assertRegex(result.stdout, r"--check-nan: losses: .*, above -1")
            report = json.loads((packed / "gpu_suite.json").read_text())
            self.assertEqual(f"{report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped", counts)
        result = self.script(packed / "gpu_suite.sh", "run", "--dry", "--parts", "bench=llava_2bb")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("no model 'llava_2bb' is packed", result.stderr)
        result = self.script(packed / "gpu_suite.sh", "run", "--dry", "--keep", packed)
        self.assertIn("is not empty", result.stderr)

    def test_comparison_of_two_runs(self):
        """`run` compares with this binary."""
        data = SOURCE / "models" / "llava_tiny" / "golden"
        file = data / "gradients.safetensors"
        result = self.run_ok("oriel-compare", file, file, "0")
        self.assertTrue(result.stdout.startswith("0 ("), result.stdout)
        other = data / "parameters_sgd.safetensors"
        self.assertEqual(subprocess.run([str(BIN / "oriel-compare"), str(file), str(other), "1"],
                                        capture_output=True).returncode, 1)
        self.run_ok("oriel-compare", "--elements", "--zero-share", "1e-4", file, file, "0")
        usage = subprocess.run([str(BIN / "oriel-compare"), "--zero-share", "much", str(file), str(file), "0"],
                               capture_output=True, text=True)
        self.assertEqual((usage.returncode, usage.stderr[:6]), (2, "usage:"))


if __name__ == "__main__":
    unittest.main()
