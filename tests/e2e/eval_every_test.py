"""`--eval-every`: evaluation between training steps changes no bit of the training."""

import json

from cuda_test import CudaTestCase
from cut_products_test import TensorParallelTestCase
from gpt import Gpt
from oriel_testing import losses, run

GPT = Gpt(sequence=16, dropout=0.25)
STRATEGIES = (
    (1, ("--remat", "full")),
    (2, ("--mesh", "dp=2", "--zero", "3")),
    (4, ("--mesh", "tp=2,fsdp=2", "--zero", "2", "--sp")),
    (4, ("--mesh", "dp=2", "--stages", "2", "--schedule", "zb-h1")),
    (2, ("--stages", "4", "--schedule", "interleaved", "--interleave", "2")),
)


class EvalEveryTestCase(TensorParallelTestCase):
    def check(self, world: int, *options: str, steps: int = 5, **of_files) -> None:
        plan, parameters = self.plan(*options, gpt=GPT, **of_files), self.folder / "p.safetensors"

        def run_of(*arguments):
            metrics = self.folder / "metrics.jsonl"
            result = self.run_ok("oriel-run", plan, "--data", self.data, "-n", world, "--comm", "in_process", "--steps", steps,
                                 "--metrics", metrics, "--dump-parameters", parameters, *arguments, timeout=170)
            numbers = [json.loads(line) for line in metrics.read_text().splitlines()]
            return losses(numbers), parameters.read_bytes(), len(result.stdout.splitlines())

        *expected, evaluations = run_of()
        self.assertEqual(evaluations, 0)
        for arguments in ((), ("--poison-dead-memory",)):
            *own, evaluations = run_of("--eval", self.data, "--eval-every", 2, *arguments)
            self.assertEqual(evaluations, steps // 2 + 1)
            self.assertEqual(own, expected)


class EvalEveryTest(EvalEveryTestCase):
    def test_strategies(self):
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                self.check(world, *options)

    def test_bf16(self):
        self.check(1, change=lambda recipe: recipe.replace("precision: f32", "precision: bf16"))

    def test_a_line_for_each(self):
        """What evaluating the checkpoint of the step gives."""
        plan, checkpoints = self.plan("--mesh", "dp=2", gpt=GPT), self.folder / "checkpoints"
        result = self.run_ok("oriel-run", plan, "--data", self.data, "--eval", self.data, "--eval-every", 2, "--steps", 5,
                             "--save-dir", checkpoints, "--save-every", 1)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([line["step"] for line in lines], [2, 4, 5])
        for line in lines:
            alone = self.run_ok("oriel-run", plan, "--eval", self.data, "--resume", checkpoints / f"step-{line['step']:08}")
            self.assertEqual(json.loads(alone.stdout), line)

    def test_tensorboard(self):
        """A file for each run: steps and evaluations by their names."""
        plan, board, checkpoints = self.plan(gpt=GPT), self.folder / "board", self.folder / "checkpoints"
        for steps, first in ((4, ()), (6, ("--resume", checkpoints))):
            self.train(plan, "--steps", steps, "--tensorboard", board, "--eval", self.data, "--eval-every", 2,
                       "--save-dir", checkpoints, *first, data=self.data)
        begun, resumed = (path.read_bytes() for path in sorted(board.iterdir(), key=lambda path: path.stat().st_mtime_ns))
        for content, steps, evaluations in ((begun, 4, 2), (resumed, 2, 1)):
            self.assertEqual([content.count(tag) for tag in (b"train/loss", b"train/grad_norm", b"eval/loss", b"eval/token_accuracy")],
                             [steps, steps, evaluations, evaluations])

    def test_timeline_leaves_it_out(self):
        plan, trace = self.plan(gpt=GPT), self.folder / "trace.json"
        self.train(plan, "--steps", 3, "--eval", self.data, "--eval-every", 1, "--trace", trace, data=self.data)
        names = [event["name"] for event in json.loads(trace.read_text())["traceEvents"]]
        self.assertTrue(any("forward" in name for name in names))
        self.assertFalse(any("eval" in name for name in names))

    def test_usage(self):
        for arguments in (("--data", "d"), ("--eval", "d")):
            result = run("oriel-run", "model.oplan", *arguments, "--eval-every", 2)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--eval-every needs", result.stderr)


class CudaEvalEveryTest(CudaTestCase, EvalEveryTestCase):
    def test_emulated(self):
        self.check(2, "--device", "cuda", "--mesh", "tp=2", steps=3)
