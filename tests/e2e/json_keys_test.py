"""Each key that --json prints is in docs/json.md, in the section of its command."""

import json
import re

from oriel_testing import GOLDEN, MODEL, SOURCE, OrielTestCase

# Their own keys are names: of kernels, of axes, of collectives, of kinds.
NAMES = {"kernels", "axes", "mesh", "module_meshes", "counts", "bytes_by_kind", "buffers_by_kind", "copies_by_kind", "parts"}


def keys_of(value) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(keys_of(each) for key, each in value.items() if key not in NAMES))


class JsonKeysTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        page = (SOURCE / "docs" / "json.md").read_text()
        sections = re.split(r"^## (\w+)$", page, flags=re.MULTILINE)[1:]
        self.documented = {name: set(re.findall(r"`([a-z0-9_]+)`", text))
                           for name, text in zip(sections[::2], sections[1::2], strict=True)}
        # Simulations show memory as plans do, and searches what simulations do.
        self.documented["simulate"] |= self.documented["inspect"]
        self.documented["plan"] |= self.documented["simulate"]

    def printed(self, command: str, *arguments):
        printed = json.loads(self.run_ok("oriel", command, *arguments, "--json").stdout)
        self.assertEqual(keys_of(printed) - self.documented[command], set())
        return printed

    def test_inspect(self):
        for options in (("tp=2", "--overlap", "bucket=16KiB"),
                        ("dp=2", "--stages", "2", "--schedule", "1f1b", "--microbatches", "2", "--placement", "dp_outermost")):
            plan = self.folder / "plan.oplan"
            self.run_ok("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_adamw.yaml", "--mesh", *options, "-o", plan)
            printed = self.printed("inspect", plan)
            self.printed("inspect", plan, "--schedule")
        for key in ("channels", "placement_block"):
            self.assertIn(key, printed)

    def test_simulate_and_plan(self):
        recipe = ("--recipe", GOLDEN / "recipe_sgd.yaml")
        self.printed("simulate", MODEL, *recipe, "--cluster", "h100", "--stages", "2", "--kernels", "--straggler", "0=2")
        found = self.printed("plan", MODEL, *recipe, "--world", "2")
        self.assertIsNotNone(found["machine"])

    def test_doctor(self):
        self.printed("doctor")
