"""docs/examples/snake: an op and a pass from outside of the repository, against an installed Oriel."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import numpy
from oriel_testing import (ENVIRONMENT, HAVE_MPI, SOURCE, OrielTestCase, losses, read_safetensors,
                           read_shards, relative_error)

EXAMPLE = SOURCE / "docs" / "examples" / "snake"
FOLDER = pathlib.Path(os.environ.get("ORIEL_PLUGIN_FOLDER", "."))
PREFIX = FOLDER / "prefix"
COMPILER = FOLDER / "build" / "acme_compiler.so"
KERNELS = FOLDER / "build" / "acme_kernels.so"
MODEL = EXAMPLE / "model.onnxtxt"
RAISE = "--passes-after=raise:func.func(acme-raise-snake)"


def run(*arguments, cwd=None) -> subprocess.CompletedProcess:
    """A command line as a user of the installation has it."""
    # Also this Python, which has numpy.
    path = [str(PREFIX / "bin"), str(pathlib.Path(sys.executable).parent), ENVIRONMENT["PATH"]]
    environment = dict(ENVIRONMENT, PATH=os.pathsep.join(path))
    return subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True,
                          timeout=100, env=environment, cwd=cwd)


def initial_weights(plan: pathlib.Path) -> dict[str, numpy.ndarray]:
    weights = read_safetensors(plan.with_suffix(".weights.safetensors"))
    return {name: value.astype(numpy.float64) for name, value in weights.items()}


def loss(weights: dict[str, numpy.ndarray], features: numpy.ndarray, labels: numpy.ndarray) -> float:
    """The model of model.onnxtxt, in f64: mean cross-entropy of the tokens."""
    def snake(x, alpha):
        return x + numpy.sin(alpha * x) ** 2 / alpha

    y = snake(features @ weights["w1"], weights["alpha1"])
    logits = snake(y @ weights["w2"], weights["alpha2"]) @ weights["w3"]
    logits -= logits.max(-1, keepdims=True)
    log_likelihood = logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))
    return -numpy.take_along_axis(log_likelihood, labels[..., None], -1).mean()


class PluginTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        subprocess.run([sys.executable, EXAMPLE / "make_data.py", self.data], check=True)

    def ok(self, *arguments, **options) -> str:
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def refused(self, *arguments, texts=()) -> None:
        result = run(*arguments)
        self.assert_fails(result, *texts)
        self.assertEqual((result.stdout + result.stderr).count("error: "), 1, result.stderr)

    def compile_command(self, plan: pathlib.Path, *arguments, plugin=COMPILER, world: int = 1):
        return ("oriel", "compile", MODEL, "--recipe", EXAMPLE / "recipe.yaml", "--load-plugin", plugin,
                "--mesh", f"dp={world}", "-o", plan, *arguments)

    def compile_plan(self, *arguments, world: int = 1) -> pathlib.Path:
        plan = self.folder / f"snake_{world}.oplan"
        self.ok(*self.compile_command(plan, *arguments, world=world))
        return plan

    def run_command(self, plan: pathlib.Path, *arguments, plugin=KERNELS):
        return ("oriel-run", plan, "--load-plugin", plugin, "--data", self.data, "--no-shuffle", *arguments)

    def train_plan(self, plan: pathlib.Path, *arguments) -> dict[str, numpy.ndarray]:
        parameters = self.folder / "parameters.safetensors"
        self.ok(*self.run_command(plan, "--dump-parameters", parameters, *arguments))
        return read_safetensors(parameters)

    # --- What it does

    def test_both_forms_become_the_op(self):
        plan = self.folder / "snake.oplan"
        ir = self.ok(*self.compile_command(plan, RAISE, "--stop-after=raise"))
        self.assertEqual(ir.count("acme.snake"), 2, ir)
        self.assertNotIn("oriel.sin", ir)
        without = self.ok(*self.compile_command(plan, "--stop-after=raise"))
        self.assertEqual(without.count("acme.snake"), 1, without)
        summary = self.ok("oriel", "import", MODEL, "--bind", "batch=4", "--load-plugin", COMPILER)
        self.assertRegex(summary, r"\b1  acme.snake\n")

    def check_gradients(self, plan: pathlib.Path):
        path = self.folder / "gradients.safetensors"
        metrics = self.folder / "metrics.jsonl"
        self.ok(*self.run_command(plan, "--steps", 1, "--dump-gradients", path, "--metrics", metrics))
        samples = read_shards(self.data, 8)
        features = numpy.stack([s["features"] for s in samples]).astype(numpy.float64)
        labels = numpy.stack([s["labels"] for s in samples])
        weights = initial_weights(plan)
        first = float(re.search(r'"loss": ?([0-9.e-]+)', metrics.read_text()).group(1))
        self.assertAlmostEqual(first / loss(weights, features, labels), 1, delta=1e-6)
        gradients = read_safetensors(path)
        self.assertEqual(set(gradients), {"w1", "alpha1", "w2", "alpha2", "w3"})
        for name, gradient in gradients.items():
            expected = numpy.zeros_like(weights[name])
            for index in numpy.ndindex(expected.shape):
                value, losses_around = weights[name][index], []
                for sign in (1, -1):
                    weights[name][index] = value + sign * 1e-5
                    losses_around.append(loss(weights, features, labels))
                weights[name][index] = value
                expected[index] = (losses_around[0] - losses_around[1]) / 2e-5
            self.assertLess(relative_error(gradient, expected), 1e-5, name)

    def test_gradients_are_finite_differences(self):
        self.check_gradients(self.compile_plan(RAISE))
        self.check_gradients(self.compile_plan())

    def test_two_ranks_train_like_one(self):
        one = self.train_plan(self.compile_plan(RAISE), "--steps", 20)
        two = self.train_plan(self.compile_plan(RAISE, world=2), "--steps", 20, "-n", 2)
        initial = initial_weights(self.folder / "snake_2.oplan")
        for name, value in one.items():
            self.assertLess(numpy.abs(two[name] - value).max(), 1e-5, name)
            self.assertGreater(numpy.abs(value - initial[name]).max(), 1e-2, name)

    def test_the_rules_split_it(self):
        """By samples, and by channels."""
        one = self.train_plan(self.compile_plan(RAISE), "--steps", 5)
        for mesh in ("dp=2", "tp=2"):
            plan = self.folder / "split.oplan"
            command = [mesh if word == "dp=1" else word for word in self.compile_command(plan, RAISE)]
            said = self.ok(*command, "--dump-after=partition")
            # Between w2 and w3 lie columns that tp cuts; before w2 all are needed.
            expected = {"dp=2": {"4x6x8"}, "tp=2": {"4x6x8", "4x6x4"}}[mesh]
            found = re.findall(r"acme\.snake .* : \(tensor<([0-9x]+)xf32>", said)
            self.assertEqual(set(found), expected, said)
            two = self.train_plan(plan, "--steps", 5, "-n", 2)
            for name, value in one.items():
                self.assertLess(numpy.abs(two[name] - value).max(), 1e-5, (mesh, name))

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_ranks_of_mpi_load_it(self):
        plan = self.compile_plan(RAISE, world=2)
        threads = self.train_plan(plan, "--steps", 3, "-n", 2)
        processes = self.train_plan(plan, "--steps", 3, "-n", 2, "--comm", "mpi")
        for name, value in threads.items():
            numpy.testing.assert_array_equal(processes[name], value, name)

    def test_passes_in_oriel_opt(self):
        ir = self.folder / "imported.mlir"
        self.ok("oriel", "import", MODEL, "--bind", "batch=4", "--load-plugin", COMPILER, "-o", ir)
        raised = self.ok("oriel-opt", ir, f"--load-plugin={COMPILER}",
                         "--pass-pipeline=builtin.module(func.func(acme-raise-snake))")
        self.assertEqual(raised.count("acme.snake"), 2, raised)
        flag = self.ok("oriel-opt", ir, "--load-plugin", COMPILER, "--acme-raise-snake")
        self.assertEqual(flag, raised)

    def test_ops_are_checked_by_value(self):
        check = ("oriel-opt", EXAMPLE / "cases.mlir", "--load-plugin", COMPILER, "--oriel-check-ops", "-o", self.folder / "out.mlir")
        result = run(*check, "--load-plugin", KERNELS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"the derivative is as by finite differences, within \d\.\de-1\d")
        self.assertRegex(result.stderr, r"pieces make the whole: acme\.snake \(cut in \d ways\), acme\.snake_grad \(cut in \d ways\)")
        self.refused(*check, texts=["acme.snake: no kernel is named", "--load-plugin FILE.so"])
        self.refused("oriel-opt", EXAMPLE / "cases.mlir", "--load-plugin", EXAMPLE / "README.md", texts=["no plugin of Oriel"])

    def test_readme_commands(self):
        blocks = re.findall(r"```\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
        commands = "".join(blocks).replace("\\\n", "").splitlines()
        # Those before build the plugins; this test's fixture has.
        commands = [command for command in commands if not command.startswith("cmake")]
        self.assertGreaterEqual(len(commands), 4)
        work = self.folder / "snake"
        shutil.copytree(EXAMPLE, work)
        (work / "build").symlink_to(FOLDER / "build")
        for command in commands:
            self.ok("bash", "-c", command, cwd=work)
        self.assertTrue((work / "trained.safetensors").exists())

    # --- What is refused

    def test_missing_kernel(self):
        plan = self.compile_plan(RAISE, world=2)
        for comm in ["in_process"] + ["mpi"] * HAVE_MPI:
            self.refused("oriel-run", plan, "--data", self.data, "-n", 2, "--comm", comm,
                         texts=["snake_2.oplan: the plan needs the kernels acme.snake, acme.snake_grad",
                                "--load-plugin FILE.so"])
        self.ok("oriel", "verify", plan)  # which needs no kernels

    def test_op_without_its_plugin(self):
        self.refused("oriel", "import", MODEL, "--bind", "batch=4", texts=["com.acme", "Snake", "--load-plugin"])

    def compiler_refuses(self, plugin: pathlib.Path, *texts: str):
        plan = self.folder / "refused.oplan"
        self.refused(*self.compile_command(plan, plugin=plugin), texts=[plugin.name, *texts])
        self.assertFalse(plan.exists())

    def run_refuses(self, plugin: pathlib.Path, *texts: str):
        self.refused(*self.run_command(self.compile_plan(), plugin=plugin), texts=[plugin.name, *texts])

    def library(self, name: str, code: str) -> pathlib.Path:
        """A library in C."""
        source, path = self.folder / f"{name}.c", self.folder / f"{name}.so"
        source.write_text(code)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
        return path

    def marker(self, kind: str) -> str:
        """The text that makes a library a plugin."""
        plugin = {"compiler": COMPILER, "kernels": KERNELS}[kind]
        return re.search(rb"ORIEL-PLUGIN:[ -~]+", plugin.read_bytes()).group().decode()

    def test_not_a_plugin(self):
        for refuses in (self.compiler_refuses, self.run_refuses):
            refuses(self.folder / "nowhere.so", "No such file")
            refuses(EXAMPLE / "README.md", "no plugin of Oriel")
            refuses(self.library("plain", "int answer(void) { return 42; }"), "no plugin of Oriel")
        self.run_refuses(COMPILER, "a plugin of the compiler")
        self.compiler_refuses(KERNELS, "a plugin of the kernels")
        code = f'const char marker[] = "{self.marker("kernels")}";'
        self.run_refuses(self.library("no_entry", code), "lacks the function OrielRegisterKernels")

    def test_another_version(self):
        for kind, plugin, refuses in (("compiler", COMPILER, self.compiler_refuses),
                                      ("kernels", KERNELS, self.run_refuses)):
            ours = self.marker(kind)
            other = re.sub(r":[^:]+-", ":0.0.9-", ours)
            self.assertEqual(len(other), len(ours))
            old = self.folder / f"old_{kind}.so"
            old.write_bytes(plugin.read_bytes().replace(ours.encode(), other.encode()))
            refuses(old, "was built against Oriel 0.0.9-", "build the plugin again")

    def test_unresolved_symbol(self):
        code = f'''const char marker[] = "{self.marker("kernels")}";
            void acme_lost(void);
            void OrielRegisterKernels(void* registry) {{ acme_lost(); }}'''
        self.run_refuses(self.library("lost", code), "undefined symbol: acme_lost")

    def test_two_plugins_of_one_dialect(self):
        self.refused(*self.compile_command(self.folder / "p.oplan", "--load-plugin", COMPILER),
                     texts=["loaded already"])
        copy = self.folder / "copy.so"
        shutil.copy(COMPILER, copy)
        self.refused(*self.compile_command(self.folder / "p.oplan", "--load-plugin", copy),
                     texts=["copy.so", "acme", "another plugin"])

    def test_passes_after_typos(self):
        plan = self.folder / "p.oplan"
        for request, *texts in (("raise", "PHASE:PIPELINE"), ("rise:cse", "'rise'", "raise"),
                                ("emit:cse", "leaves a plan"), ("raise:acme-rase", "acme-rase"),
                                ("raise:cse(", "cse("),
                                ("raise:acme-raise-snake", "PHASE:func.func(PASS)")):
            self.refused(*self.compile_command(plan, f"--passes-after={request}"), texts=texts)
        self.assertFalse(plan.exists())
