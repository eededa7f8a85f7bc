"""Plans for CUDA, run by the plugin whose driver and libraries are emulated: the numbers are those of the host."""

import unittest

import numpy
from golden_testing import GoldenTestCase
from numerics import BF16_LIMITS, LIMITS, OneRank, Strategy
from oriel_testing import BIN, ENVIRONMENT, HAVE_MPI, SOURCE, OrielTestCase, losses, read_safetensors

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


if __name__ == "__main__":
    unittest.main()
