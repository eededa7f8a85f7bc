"""Checkpoints and exports of plans in bf16: the f32 masters are the weights, whatever the plan."""

import json
import pathlib

import numpy
from oriel_testing import DATA, GOLDEN, MODEL, OrielTestCase, losses, read_safetensors

# Masters in pieces, parameters whole; all in pieces; two stages.
STRATEGIES = (("--mesh", "dp=2", "--zero", 1), ("--mesh", "dp=2", "--zero", 3), ("--stages", 2))


class PrecisionCheckpointTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        text = (GOLDEN / "recipe_adamw.yaml").read_text()
        self.assertIn("precision: f32", text)
        self.recipes = {}
        for precision in ("f32", "bf16"):
            self.recipes[precision] = self.folder / f"{precision}.yaml"
            self.recipes[precision].write_text(text.replace("precision: f32", f"precision: {precision}"))

    def compile_with(self, precision: str, *strategy) -> pathlib.Path:
        plan = self.folder / f"{precision}{'_'.join(map(str, strategy))}.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", self.recipes[precision], *strategy, "-o", plan)
        return plan

    def dump(self, plan, checkpoint, world: int) -> bytes:
        """What a plan loads."""
        path = self.folder / "loaded.safetensors"
        self.run_ok("oriel-run", plan, "--eval", DATA, "--steps", 0, "-n", world, "--resume", checkpoint,
                    "--dump-parameters", path)
        return path.read_bytes()

    def test_checkpoint_loads_in_either_precision(self):
        f32, whole = self.compile_with("f32"), self.compile_with("bf16")
        for number, strategy in enumerate(STRATEGIES):
            with self.subTest(strategy):
                narrow, saved = self.compile_with("bf16", *strategy), self.folder / f"bf16_{number}"
                parameters = self.folder / "parameters.safetensors"
                self.train(narrow, "--steps", 3, "--save-dir", saved, "--dump-parameters", parameters, world=2)
                index = json.loads((saved / "step-00000003" / "index.json").read_text())
                self.assertEqual({tensor["dtype"] for tensor in index["parameters"].values()}, {"F32"})
                self.assertEqual({slot for slots in index["optimizer_states"].values() for slot in slots},
                                 {"exp_avg", "exp_avg_sq"})
                for plan in (f32, whole):
                    self.assertTrue(self.dump(plan, saved, 1) == parameters.read_bytes())
                # And back, after steps in f32.
                wide = self.folder / f"f32_{number}"
                self.train(f32, "--steps", 6, "--resume", saved, "--save-dir", wide,
                           "--dump-parameters", parameters)
                self.assertTrue(self.dump(narrow, wide, 2) == parameters.read_bytes())

    def test_resumed_run_has_the_same_bits(self):
        plan, saved = self.compile_with("bf16"), self.folder / "saved"
        expected = losses(self.train(plan, "--steps", 6))
        self.train(plan, "--steps", 3, "--save-dir", saved)
        self.assertEqual(losses(self.train(plan, "--steps", 6, "--resume", saved)), expected[3:])

    def test_export_writes_masters(self):
        plan, saved = self.compile_with("bf16", *STRATEGIES[0]), self.folder / "saved"
        parameters = self.folder / "parameters.safetensors"
        self.train(plan, "--steps", 3, "--save-dir", saved, "--dump-parameters", parameters, world=2)
        exported = self.folder / "exported.safetensors"
        self.run_ok("oriel", "export", plan, "--checkpoint", saved, "--to", "safetensors", "-o", exported)
        masters = read_safetensors(parameters)
        self.assertTrue(exported.read_bytes() == parameters.read_bytes())
        lowest = [numpy.ascontiguousarray(value).view("<u4") & 0xFFFF for value in masters.values()]
        self.assertTrue(any(bits.any() for bits in lowest), "the weights are rounded")
        onnx = self.folder / "exported.onnx"
        self.run_ok("oriel", "export", plan, "--checkpoint", saved, "--to", "onnx", "-o", onnx)
        content = onnx.read_bytes()
        for name, value in masters.items():
            self.assertIn(value.tobytes(), content, name)
