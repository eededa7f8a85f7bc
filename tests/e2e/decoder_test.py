"""A decoder as ONNX (bench/search/decoder_onnx.py) and in the `oriel` dialect (bench/simulator/decoder.py) is the same model."""

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from oriel_testing import BIN, SOURCE

sys.path.insert(0, str(SOURCE / "bench" / "search"))
sys.path.insert(0, str(SOURCE / "bench" / "simulator"))

import decoder  # noqa: E402
import decoder_onnx  # noqa: E402

GPT = decoder.Decoder(layers=4, hidden=1024, heads=8, kv_heads=8, ffn=4096, vocab=8192, sequence=512, batch=8)
LLAMA = {"norm": "rms", "positions": "rope", "mlp": "swiglu", "biases": False, "tied": False, "kv_heads": 4}
RECIPE = """inputs: {labels: {dtype: int64, shape: [micro_batch, 512]}}
loss: {logits: logits, labels: labels}
optimizer: {kind: adamw, lr: 1.0e-4}
precision: bf16
batch: {global: 64, micro: 2}
steps: 1
"""
STRATEGIES = ("mesh: {dp: 4}\nzero: 3\nremat: full\n", "mesh: {dp: 4, tp: 2}\nsequence_parallel: true\n",
              "mesh: {dp: 4}\nstages: 2\nremat: selective\n")


class Decoders(unittest.TestCase):
    def simulate(self, folder: pathlib.Path, model: str, recipe: str, strategy: str) -> dict:
        (folder / "recipe.yaml").write_text(recipe)
        (folder / "strategy.yaml").write_text(strategy)
        done = subprocess.run([BIN / "oriel", "simulate", folder / model, "--recipe", folder / "recipe.yaml", "--strategy",
                               folder / "strategy.yaml", "--cluster", "h100", "--json"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, **changed) -> None:
        figures = dataclasses.replace(GPT, **changed)
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "model.mlir").write_text(decoder.module_text(figures))
            (folder / "model.onnxtxt").write_text(decoder_onnx.model_text(figures))
            for strategy in STRATEGIES:
                expected = self.simulate(folder, "model.mlir", RECIPE, strategy)
                found = self.simulate(folder, "model.onnxtxt", "model: {bind: {batch: micro_batch}}\n" + RECIPE, strategy)
                for key in ("step_seconds", "peak_memory", "mfu"):
                    self.assertAlmostEqual(found[key] / expected[key], 1, delta=1e-3, msg=f"{key} of {changed}, {strategy}")

    def test_gpt(self):
        self.check()

    def test_llama(self):
        self.check(**LLAMA)

    def test_scores_and_dropout(self):
        self.check(fused_attention=False, dropout=True)

    def test_no_positions_and_squared_relu(self):
        self.check(positions="none", mlp="squared_relu", biases=False)


if __name__ == "__main__":
    unittest.main()
