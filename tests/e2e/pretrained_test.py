"""docs/tutorial.md with a tiny model: weights that transformers has saved, trained here, and back; where PyTorch is installed."""

import os
import pathlib
import subprocess

import numpy
from oriel_testing import BIN, VENV, OrielTestCase

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
SAVE = f"""
import sys; sys.path.insert(0, {str(MODELS)!r})
import hf, transformers
made = hf.build("LlavaForConditionalGeneration", "tiny")
hf.initialize(made.module, 3)
model = transformers.LlavaForConditionalGeneration(made.module.config)
model.load_state_dict(made.module.state_dict())
model.save_pretrained("pretrained")
"""
BACK = """
import numpy, safetensors.torch, torch, transformers
model = transformers.AutoModelForImageTextToText.from_pretrained("pretrained")
missing, unexpected = model.load_state_dict(safetensors.torch.load_file("trained.safetensors"), strict=False)
assert not unexpected and all("vision_tower" in name for name in missing), (missing, unexpected)
model.save_pretrained("trained")
model = transformers.LlavaForConditionalGeneration.from_pretrained("trained").eval()
inputs = {name: torch.tensor(numpy.load(f"{name}.npy")) for name in ("pixel_values", "input_ids")}
with torch.no_grad():
    logits = model(**inputs).logits.numpy()
print(abs(logits - numpy.load("logits.npy")).max() / abs(logits).max())
"""


class PretrainedTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        if not (VENV / "bin" / "python").exists():
            self.skipTest(f"no PyTorch in {VENV}")

    def python(self, *arguments) -> str:
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
        result = subprocess.run([VENV / "bin" / "python", *map(str, arguments)], cwd=self.folder, env=environment,
                                capture_output=True, text=True, timeout=150)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_there_and_back(self):
        self.python("-c", SAVE)
        out = self.folder / "out"
        self.python(MODELS / "export.py", "--pretrained", self.folder / "pretrained", "--sequence", 24, "--out", out)
        recipe = out / "recipe.yaml"
        recipe.write_text(recipe.read_text().replace("lr: 1.0e-5", "lr: 1.0e-3").replace("steps: 100", "steps: 3")
                          .replace("warmup_steps: 10", "warmup_steps: 1").replace("global: 16", "global: 4"))
        plan, save = self.folder / "p.oplan", self.folder / "save"
        random = numpy.random.default_rng(0)
        samples = []
        for _ in range(8):
            ids = random.integers(16, 128, 24)
            ids[1:17] = 3
            samples.append({"pixel_values": random.standard_normal((3, 16, 16)).astype("f4"), "input_ids": ids,
                            "labels": numpy.where(numpy.arange(24) < 18, -100, ids)})
        data = self.write_data("data", samples)
        for name in ("pixel_values", "input_ids"):
            numpy.save(self.folder / f"{name}.npy", numpy.stack([sample[name] for sample in samples]))
        self.run_ok("oriel", "compile", out / "model.onnx", "--recipe", recipe, "--mesh", "dp=2", "-o", plan)
        self.run_ok("oriel-run", plan, "--data", data, "--save-dir", save)
        self.run_ok("oriel-run", plan, "--eval", data, "--resume", save, "--steps", 0, "--eval-logits", self.folder / "logits.npy")
        self.run_ok("oriel", "export", plan, "--checkpoint", save, "--to", "safetensors", "-o", self.folder / "trained.safetensors")
        self.assertLess(float(self.python("-c", BACK).split()[-1]), 1e-5)
