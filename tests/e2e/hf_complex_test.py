"""models/hf_complex.py against PyTorch's complex numbers, where PyTorch is installed."""

import subprocess

from oriel_testing import SOURCE, VENV, OrielTestCase

SCRIPT = """
import torch
import hf_complex

torch.manual_seed(0)
x, angles = torch.randn(2, 5, 3, 8), torch.randn(5, 4)

class Rotary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        y = pairs * self.turns[None, :, None]
        z = torch.polar(torch.full_like(angles, 2.0), angles).unsqueeze(1) * pairs
        w = (pairs * 0.5).view(2, 5, 12)[:, 1:] * self.turns[1:, :1].view((4, 1))
        return [torch.view_as_real(each) for each in (y, z, w, y[..., 0])]

module = Rotary()
expected = module(x)
hf_complex.replace_buffers(module)
with hf_complex.RealPairs():
    actual = module(x)
for a, b in zip(actual, expected, strict=True):
    torch.testing.assert_close(a, b)
"""


class HfComplexTest(OrielTestCase):
    def test_pairs_are_complex_numbers(self):
        if not (VENV / "bin" / "python").exists():
            self.skipTest("PyTorch is not installed (tools/setup.sh --python)")
        result = subprocess.run([VENV / "bin" / "python", "-c", SCRIPT], cwd=SOURCE / "models", capture_output=True, text=True, timeout=110)
        self.assertEqual(result.returncode, 0, result.stderr)
