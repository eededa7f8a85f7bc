"""A checkpoint saved under one strategy goes on under another."""

import json

import numpy
from oriel_testing import DATA, GOLDEN, MODEL, OrielTestCase, losses, read_safetensors

STRATEGIES = {
    "whole": (1, []),
    "pieces": (8, ["--mesh", "dp=2,fsdp=2,tp=2", "--zero", "3", "--sp"]),
    "tensor": (4, ["--mesh", "tp=4"]),
    "stages": (8, ["--mesh", "dp=2", "--zero", "1", "--stages", "4", "--microbatches", "4"]),
    "groups": (4, ["--mesh", "dp=4", "--zero", "2", "--hsdp", "2"]),
}


class ReshardTest(OrielTestCase):
    def compile_strategy(self, name: str):
        plan = self.folder / f"{name}.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_adamw.yaml",
                    *STRATEGIES[name][1], "-o", plan)
        return plan

    def oriel_run(self, name: str, *arguments) -> None:
        self.run_ok("oriel-run", self.compile_strategy(name), "--data", DATA, "-n", STRATEGIES[name][0],
                    *arguments, timeout=100)

    def steps(self, name: str, *arguments) -> list[dict]:
        metrics = self.folder / f"{name}_{len(list(self.folder.iterdir()))}.jsonl"
        self.oriel_run(name, "--metrics", metrics, *arguments)
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def exported(self, plan, checkpoint) -> dict[str, numpy.ndarray]:
        path = self.folder / f"exported_{len(list(self.folder.iterdir()))}.safetensors"
        self.run_ok("oriel", "export", plan, "--checkpoint", checkpoint, "--to", "safetensors",
                    "-o", path)
        return read_safetensors(path)

    def test_goes_on_under_every_other(self):
        expected = self.steps("whole", "--steps", 6)
        for saver in ("whole", "pieces", "stages"):
            checkpoints = self.folder / f"saved_{saver}"
            self.steps(saver, "--steps", 3, "--save-dir", checkpoints)
            for loader in STRATEGIES:
                rest = self.steps(loader, "--steps", 6, "--resume", checkpoints)
                self.assertEqual([line["step"] for line in rest], [4, 5, 6])
                numpy.testing.assert_allclose(losses(rest), losses(expected)[3:], rtol=1e-5, atol=0,
                                              err_msg=f"{saver} to {loader}")

    def test_parameters_are_those_that_were_saved(self):
        for saver in ("whole", "pieces", "stages"):
            checkpoints, trained = self.folder / f"saved_{saver}", self.folder / f"{saver}.safetensors"
            self.oriel_run(saver, "--steps", 2, "--save-dir", checkpoints, "--dump-parameters", trained)
            for loader in STRATEGIES:
                loaded = self.folder / f"{saver}_{loader}.safetensors"
                # No step is left.
                self.oriel_run(loader, "--steps", 2, "--resume", checkpoints, "--dump-parameters", loaded)
                self.assertEqual(loaded.read_bytes(), trained.read_bytes(), f"{saver} to {loader}")

    def test_pieces_are_the_parameters_that_were_trained(self):
        for saver in ("pieces", "stages"):
            checkpoints, parameters = self.folder / f"saved_{saver}", self.folder / f"trained_{saver}.safetensors"
            self.oriel_run(saver, "--steps", 2, "--save-dir", checkpoints, "--dump-parameters", parameters)
            trained = read_safetensors(parameters)
            # Whichever plan reads them.
            for name in ("whole", "pieces", "stages"):
                exported = self.exported(self.compile_strategy(name), checkpoints)
                self.assertEqual(set(exported), set(trained))
                for key, value in trained.items():
                    self.assertTrue(numpy.array_equal(exported[key], value), key)
