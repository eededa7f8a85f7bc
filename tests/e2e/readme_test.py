"""The README's commands, as they stand there."""

import os
import re
import subprocess

from oriel_testing import BIN, DATA, ENVIRONMENT, GOLDEN, MODEL, SOURCE, OrielTestCase


class ReadmeTest(OrielTestCase):
    def test_commands(self):
        blocks = re.findall(r"```\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL)
        commands = [line for block in blocks for line in block.splitlines() if line.startswith("oriel")]
        self.assertGreaterEqual(len(commands), 3)
        # What the commands name, where a user would have it.
        (self.folder / "model.onnx").symlink_to(MODEL)
        (self.folder / "recipe.yaml").symlink_to(GOLDEN / "recipe_sgd.yaml")
        (self.folder / "shards").symlink_to(DATA)
        environment = dict(ENVIRONMENT, PATH=f"{BIN}{os.pathsep}{ENVIRONMENT['PATH']}")
        for command in commands:
            result = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment,
                                    capture_output=True, text=True, timeout=100)
            self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}")
        self.assertTrue((self.folder / "trained.onnx").exists())

    def test_scripts_exist(self):
        scripts = re.findall(r"^(tools/\S+\.sh)", (SOURCE / "README.md").read_text(), re.MULTILINE)
        self.assertTrue(scripts)
        for script in scripts:
            self.assertTrue(os.access(SOURCE / script, os.X_OK), script)
