"""Plans for CUDA, run by the plugin whose driver and libraries are emulated: the numbers are those of the host."""

import json
import pathlib
import re
import signal
import subprocess
import time
import unittest

import numpy
from golden_testing import GoldenTestCase
from numerics import BF16_LIMITS, LIMITS, OneRank, Strategy
from oriel_testing import (BIN, DATA, ENVIRONMENT, GOLDEN, HAVE_MPI, MODEL, SOURCE, OrielTestCase, command, losses,
                           rank_environments, read_safetensors, run)

PLUGIN = BIN / "liboriel_cuda_emulated.so"
QWEN = SOURCE / "models" / "qwen_vl_tiny"


class CudaTestCase(OrielTestCase):
    """The runner takes the emulated plugin for the CUDA backend."""

    def setUp(self):
        super().setUp()
        if not PLUGIN.exists():
            self.skipTest("built without CUDA")
        self.set_environment("ORIEL_CUDA_PLUGIN", str(PLUGIN))

    def set_environment(self, name: str, value: str) -> None:
        before = ENVIRONMENT.get(name)
        ENVIRONMENT[name] = value
        self.addCleanup(lambda: ENVIRONMENT.pop(name) if before is None else ENVIRONMENT.update({name: before}))


class CudaGoldenTest(CudaTestCase, GoldenTestCase):
    """Design section 9 against PyTorch."""

    def compile_model(self, recipe, world: int = 1):
        return self.compile(recipe, world, model=SOURCE / "models" / self.name / "model.onnx", options=("--device", "cuda"))

    def train(self, *arguments, **options):
        return super().train(*arguments, **{"timeout": 170, **options})

    def test_gradients(self):
        self.check_gradients(self.golden / "recipe_sgd.yaml")

    def test_sgd_steps(self):
        self.check_run("sgd", 5)


class CudaStrategiesTest(CudaTestCase):
    """Strategies on devices against one rank on the host: design section 9, (a), (b) and (c) with fewer steps,
    for a thread of a block is a fiber here."""

    def check(self, *strategies, precision: str = "f32", limits=LIMITS, **options):
        one_rank = OneRank("qwen_vl_tiny", self.folder, precision=precision, adamw_steps=5)
        for strategy in strategies:
            errors, _ = one_rank.compare(strategy, device="cuda", **options)
            for key, limit in limits.items():
                self.assertLessEqual(errors[key], limit, f"{strategy}: {key}")

    def test_one_rank(self):
        self.check(Strategy())

    def test_one_rank_in_bf16(self):
        self.check(Strategy(), precision="bf16", limits=BF16_LIMITS)

    def test_nccl(self):
        self.check(Strategy(dp=2, zero=1), Strategy(tp=2, sp=True), Strategy(dp=2, tp=2, zero=3))

    def test_pipelines(self):
        self.check(Strategy(grids=2, schedule="1f1b"), Strategy(grids=2, schedule="interleaved", tp=2, sp=True))

    def test_staged(self):
        self.set_environment("ORIEL_DEVICE_COMM", "staged")
        self.check(Strategy(dp=2, tp=2, zero=3))

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_staged_mpi(self):
        self.check(Strategy(dp=2, zero=3), comm="mpi")


class CudaRunTest(CudaTestCase):
    """What a device adds to a run."""

    def compile_qwen(self, device: str, *options):
        plan = self.folder / f"{device}.oplan"
        self.run_ok("oriel", "compile", QWEN / "model.onnx", "--recipe", QWEN / "golden" / "recipe_adamw.yaml",
                    "--device", device, *options, "-o", plan)
        return plan

    def train(self, *arguments, **options):
        return super().train(*arguments, data=QWEN / "golden" / "data", **options)

    # The emulator runs what no event orders in an order drawn by the seed: a wait that is missing changes values.
    def test_same_bits_in_any_order(self):
        plan = self.compile_qwen("cuda", "--mesh", "dp=2,tp=2", "--zero", "3")
        found = []
        for seed in range(3):
            self.set_environment("ORIEL_CUDA_EMULATOR_SEED", str(seed))
            path = self.folder / f"{seed}.safetensors"
            found.append((losses(self.train(plan, "--steps", 2, "--dump-parameters", path, world=4)), read_safetensors(path)))
        for other in found[1:]:
            self.assertEqual(other[0], found[0][0])
            for name, value in found[0][1].items():
                numpy.testing.assert_array_equal(other[1][name], value, err_msg=name)

    def test_checkpoint_goes_on_on_the_host(self):
        host, device = (self.compile_qwen(name, "--mesh", "dp=2", "--zero", "1") for name in ("host", "cuda"))
        whole = losses(self.train(host, "--steps", 4, world=2))
        checkpoints = self.folder / "checkpoints"
        begun = self.train(device, "--steps", 2, "--save-dir", checkpoints, "--save-every", 2, world=2)
        ended = self.train(host, "--steps", 4, "--resume", checkpoints, world=2)
        numpy.testing.assert_allclose(losses(begun) + losses(ended), whole, rtol=LIMITS["loss"], atol=0)

    def test_evaluation(self):
        found = []
        for name in ("host", "cuda"):
            path = self.folder / f"{name}.npy"
            self.run_ok("oriel-run", self.compile_qwen(name), "--eval", QWEN / "golden" / "data", "--eval-logits", path, "-n", 1)
            found.append(numpy.load(path))
        self.assertGreater(numpy.abs(found[0]).max(), 0)
        numpy.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-4)


    def test_a_process_for_each_rank(self):
        plan = self.compile(GOLDEN / "recipe_adamw.yaml", 2, options=("--device", "cuda"))
        metrics = self.folder / "metrics.jsonl"
        job = subprocess.Popen(command("oriel-run", plan, "--data", DATA, "--steps", 1000000, "--metrics", metrics), env=ENVIRONMENT,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.kill)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (metrics.exists() and metrics.read_text().count("\n") >= 2):
            time.sleep(0.05)
        ranks = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        self.assertEqual(len(ranks), 2)
        job.send_signal(signal.SIGINT)
        _, errors = job.communicate(timeout=40)
        self.assertEqual(job.returncode, 130, errors)


class CudaFailureTest(CudaTestCase):
    """Each ends with one error that says what to do."""

    def train(self, plan, *options) -> subprocess.CompletedProcess:
        return run("oriel-run", plan, "--data", DATA, "--save-dir", self.folder / "checkpoints", *options)

    def compile_llava(self, device: str = "cuda", world: int = 1) -> pathlib.Path:
        return self.compile(GOLDEN / "recipe_adamw.yaml", world, options=("--device", device))

    def test_plan_for_another_architecture(self):
        result = self.train(self.compile_llava("cuda:sm_100"))
        self.assert_fails(result, "the plan is for cuda:sm_100, but device 0 is sm_90", "compile it again")

    def test_too_little_memory(self):
        self.set_environment("ORIEL_CUDA_EMULATOR_MEMORY", str(4 << 20))
        result = self.train(self.compile_llava())
        self.assert_fails(result, "of the device's memory, of which 4.0 MiB are free", "MiB of optimizer_state")
        self.assertFalse((self.folder / "checkpoints").exists())

    # Enough for the plan's arena, not for the scratch of its kernels.
    def test_too_little_memory_beside_the_plan(self):
        plan = self.compile_llava()
        arena = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"][0]["arena_bytes"]
        self.set_environment("ORIEL_CUDA_EMULATOR_MEMORY", str(arena + 4096))
        self.assert_fails(self.train(plan), "of scratch memory for kernels", "free when this rank began", "MiB of optimizer_state")
        self.assertFalse((self.folder / "checkpoints").exists())

    # Enough for launches one by one, not for their graphs.
    def test_too_little_memory_for_graphs(self):
        plan = self.compile_llava()
        arena = json.loads(self.run_ok("oriel", "inspect", plan, "--json").stdout)["programs"][0]["arena_bytes"]
        self.set_environment("ORIEL_CUDA_EMULATOR_MEMORY", str(arena + 4096))
        scratch = int(re.search(r"(\d+) bytes of scratch memory", self.train(plan).stderr).group(1))
        self.set_environment("ORIEL_CUDA_EMULATOR_MEMORY", str(arena + scratch + (64 << 10)))
        self.assertEqual(self.train(plan, "--steps", 2, "--no-graphs").returncode, 0)
        result = self.train(plan, "--steps", 2)
        self.assert_fails(result, "cuGraphInstantiate: CUDA_ERROR_OUT_OF_MEMORY", "free when this rank began", "MiB of optimizer_state")

    def test_nan_is_named(self):
        weight = list(read_safetensors(self.compile_llava().with_suffix(".weights.safetensors")).values())[-1]
        content, model = MODEL.read_bytes(), self.folder / "nan.onnx"
        self.assertEqual(content.count(weight.tobytes()), 1)
        model.write_bytes(content.replace(weight.tobytes(), numpy.full_like(weight, numpy.nan).tobytes()))
        plan = self.compile(GOLDEN / "recipe_adamw.yaml", model=model, options=("--device", "cuda"))
        self.assert_fails(self.train(plan, "--check-nan"), "is the first with a NaN", "from onnx node")
        self.assert_fails(self.train(plan, "--steps", 1), "of step 1 is not finite", "--check-nan names", "--allow-nan")
        result = self.train(plan, "--steps", 1, "--allow-nan")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("is not finite; --check-nan names", result.stderr)

    def test_killed_rank_ends_the_other(self):
        plan, metrics = self.compile_llava(world=2), self.folder / "metrics.jsonl"
        ranks = []
        for environment in rank_environments(2):
            ranks.append(subprocess.Popen(
                command("oriel-run", plan, "--data", DATA, "--steps", 1000000, "--metrics", metrics), env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            self.addCleanup(ranks[-1].kill)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (metrics.exists() and metrics.read_text().count("\n") >= 2):
            time.sleep(0.05)
        ranks[1].kill()
        _, errors = ranks[0].communicate(timeout=20)
        ranks[1].communicate()
        self.assertEqual(ranks[0].returncode, 1)
        self.assertIn("rank 1 (at 127.0.0.1) was lost", errors)


if __name__ == "__main__":
    unittest.main()
