"""models/check_module.py, where PyTorch is installed."""

import pathlib
import subprocess

from oriel_testing import BIN, VENV, OrielTestCase

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "models" / "check_module.py"
MODELS = """
import copy

import torch
from torch import nn

class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(10, 8), nn.Linear(8, 5)

    def forward(self, ids, scale):
        return self.head(self.table(ids) * scale[:, :, None])

class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.a, self.head = nn.Embedding(10, 8), nn.Linear(6, 8), nn.Linear(8, 5)

    def forward(self, ids, pixels):
        rows = self.a(pixels).view(ids.shape[0], -1, 8)
        return self.head(self.table(ids) + rows.mean(1, keepdim=True))

class Scanned(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        decay = 20 * torch.arange(16.0)[:, None]
        return self.b(0.1 * torch.logcumsumexp(self.a(x) - decay, 1) + 0.1 * torch.logcumsumexp(self.a(x) + decay, 1))

class Rounded(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        h = self.a(x)
        return self.b(h + (h.round() - h).detach())

class Unmarked(Rounded):
    def forward(self, x):
        h = self.a(x)
        with torch.no_grad():
            offset = h.round() - h
        return self.b(h + offset)

class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return self.a(x) @ torch.eye(4, dtype=torch.float32)

class Means(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)

    def forward(self, x):
        places = torch.tensor([[0, 1, 1, 2, 0, 1]]).expand_as(x)
        return torch.zeros_like(x).scatter_reduce(1, places, self.a(x), "mean", include_self=False)

class Copies(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = copy.deepcopy(self.a)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))

def means():
    return Means(), {"x": torch.randn(2, 6)}

class Preferences(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 4)

    def forward(self, x):
        y = self.a(x) + torch.tensor([-200.0, 200, -30, 0])
        pairs = nn.functional.binary_cross_entropy_with_logits(y, torch.full_like(y, 0.5), reduction="none")
        return (pairs - nn.functional.logsigmoid(y) + torch.logaddexp(y, y.flip(1))).sum(1)

def preferences():
    return Preferences(), {"x": torch.randn(2, 6)}

class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Conv1d(6, 8, 3), nn.BatchNorm1d(8), nn.Linear(8, 4)

    def forward(self, x):
        return self.b(nn.functional.dropout(self.norm(self.a(x)), training=self.training).transpose(1, 2))

def dropping():
    return Dropping(), {"x": torch.randn(2, 6, 8)}

def copies():
    return Copies(), {"x": torch.randn(2, 6)}

def mixed():
    return Mixed(), {"x": torch.randn(3, 2, 4)}

def scanned():
    return Scanned(), {"x": torch.randn(3, 16, 4)}

def listed():
    return Words(), (torch.randint(0, 10, (2, 6)), torch.rand(2, 6))

def words():
    return Words(), {"ids": torch.randint(0, 10, (2, 6)), "scale": torch.rand(2, 6)}

def images():
    return Images(), {"ids": torch.randint(0, 10, (4, 5)), "pixels": torch.randn(4, 3, 6)}

def unmarked():
    return Unmarked(), {"x": torch.randn(2, 4)}

def rounded():
    return Rounded(), {"x": torch.randn(3, 2, 4)}

class Loss(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.a, self.outputs = nn.Linear(4, 4), outputs

    def forward(self, x):
        return self.outputs(self.a(x) ** 2)

def loss():
    return Loss(lambda y: y.mean()), {"x": torch.randn(3, 2, 4)}

def losses():
    return Loss(lambda y: y.mean((1, 2))), {"x": torch.randn(3, 2, 4)}

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.scale = nn.Linear(4, 4), nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return self.a(x) * self.scale

def scalar():
    return Scaled(), {"x": torch.randn(3, 2, 4)}

def two():
    return Loss(lambda y: (y, y)), {"x": torch.randn(3, 2, 4)}
"""


class CheckModuleTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        if not (VENV / "bin" / "python").exists():
            self.skipTest("PyTorch is not installed (tools/setup.sh --python)")
        self.file = self.folder / "models.py"
        self.file.write_text(MODELS)

    def check(self, function: str, *options: str) -> subprocess.CompletedProcess:
        command = [VENV / "bin" / "python", SCRIPT, f"{self.file}:{function}", "--work", self.folder / "work", "--bin", BIN, *options]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=110)

    def test_a_module_that_agrees(self):
        result = self.check("words", "--exporter", "torchscript")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"^3 gradients, the largest difference .*\nas in PyTorch\n$")

    def test_nothing_is_dropped(self):
        # TorchScript's exporter leaves a model in the mode that it finds it in.
        result = self.check("dropping", "--exporter", "torchscript", "--noise")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"\nas in PyTorch\n$")

    def test_inputs_whose_sizes_depend(self):
        """The exporter writes an assertion of it."""
        result = self.check("images")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_scan_of_logarithms(self):
        """Over more than the exponents of f32 (models/exporter_fixes.py)."""
        result = self.check("scanned")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_module_of_f32_alone(self):
        result = self.check("mixed", "--exporter", "torchscript")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("note: the module does not run in f64, so rounding is not known: ", result.stderr)

    def test_a_gradient_that_stops(self):
        """What is detached is marked in the export (models/stop_gradient.py)."""
        for exporter in ("dynamo", "torchscript"):
            result = self.check("rounded", "--exporter", exporter)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertRegex(result.stdout, r"\nas in PyTorch\n$")

    def test_a_gradient_that_does_not(self):
        """An export does not say what is computed without gradients."""
        result = self.check("unmarked")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("DIFFERENT", result.stdout)

    def test_a_file_that_is_not_the_module(self):
        """PyTorch 2.15's dynamo exporter forgets that it is a mean."""
        result = self.check("means")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("its constant indices name a place several times", result.stderr)
        self.assertIn("The exporter is wrong, not Oriel", result.stdout)

    def test_layers_that_are_copies(self):
        """The exporter merges their weights, unless they differ."""
        for options, code in (((), 1), (("--noise",), 0)):
            result = self.check("copies", "--exporter", "torchscript", *options)
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)

    def test_logarithms_of_sigmoids(self):
        """As in losses of preferences and of pairs: of logits far from 0."""
        result = self.check("preferences")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_loss_of_its_own(self):
        for function, over in (("loss", "batch"), ("losses", "microbatch")):
            result = self.check(function, "--exporter", "torchscript")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn(f"over: {over}", (self.folder / "work" / "recipe.yaml").read_text())

    def test_outputs_that_it_cannot_train(self):
        result = self.check("two")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: forward must return one tensor: logits", result.stderr)

    def test_what_oriel_warns_of(self):
        result = self.check("scalar", "--exporter", "torchscript")
        self.assertIn('warning: ', result.stderr)
        self.assertIn('"module.scale" is a single number', result.stderr)

    def test_no_function(self):
        result = self.check("nothing")
        self.assertEqual((result.returncode, result.stderr), (1, f"error: {self.file} has no function 'nothing'\n"))

    def test_inputs_without_names(self):
        result = self.check("listed")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: listed() must return a module and its inputs, {name of a parameter of forward: tensor}", result.stderr)
