"""Checkpoints: resuming gives the bits of the uninterrupted run; wrong ones are refused."""

import json
import re
import resource
import shutil
import signal
import subprocess
import time

import numpy
from oriel_testing import (DATA, ENVIRONMENT, GOLDEN, MODEL, OrielTestCase, command, losses, rank_environments, read_safetensors,
                           read_shards, run, write_shard)


class ResumeTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.plan = self.compile(GOLDEN / "recipe_adamw.yaml", 2)
        self.checkpoints = self.folder / "checkpoints"

    def rename_parameters(self, *names):
        """In the checkpoints, as of another model: to names of the same length, so that offsets hold."""
        for path in self.checkpoints.glob("step-*/*"):
            content = path.read_bytes()
            for old, new in names:
                content = content.replace(old.encode(), new.encode())
            path.write_bytes(re.sub(rb',\s*"crc32": "\w+"\s*\}$', b"}", content))  # the index' own

    def run_steps(self, *arguments):
        metrics = self.folder / f"metrics_{time.monotonic_ns()}.jsonl"
        self.run_ok("oriel-run", self.plan, "--data", DATA, "-n", 2, "--metrics", metrics, *arguments)
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def test_resumed_run_has_the_same_bits(self):
        # 20 batches an epoch: 30 steps cross its end, where the order of the samples changes.
        whole = self.run_steps("--steps", 30, "--seed", 5)
        self.run_steps("--steps", 17, "--seed", 5, "--save-dir", self.checkpoints, "--save-every", 17)
        rest = self.run_steps("--steps", 30, "--resume", self.checkpoints)
        self.assertEqual(rest[0]["step"], 18)
        self.assertEqual(losses(rest), losses(whole)[17:])
        self.assertEqual([m["grad_norm"] for m in rest], [m["grad_norm"] for m in whole][17:])

    def test_interrupt_saves_a_checkpoint(self):
        process = subprocess.Popen(
            command("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", 1000000,
                    "--metrics", self.folder / "m.jsonl", "--save-dir", self.checkpoints),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            metrics = self.folder / "m.jsonl"
            if metrics.exists() and metrics.read_text().count("\n") >= 3:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, output)
        done = len((self.folder / "m.jsonl").read_text().splitlines())
        rest = self.run_steps("--steps", done + 2, "--resume", self.checkpoints)
        self.assertEqual([m["step"] for m in rest], [done + 1, done + 2])

    def test_checkpoint_of_another_model(self):
        self.run_steps("--steps", 1, "--save-dir", self.checkpoints, "--save-every", 1)
        self.rename_parameters(("lm_head.weight", "my_head.weight"))
        result = run("oriel-run", self.plan, "--data", DATA, "-n", 2, "--resume", self.checkpoints)
        self.assert_fails(result, "lm_head.weight", "another model")

    def test_checkpoint_with_a_missing_file(self):
        self.run_steps("--steps", 1, "--save-dir", self.checkpoints, "--save-every", 1)
        next(self.checkpoints.glob("step-*/model.safetensors")).unlink()
        result = run("oriel-run", self.plan, "--data", DATA, "-n", 2, "--resume", self.checkpoints)
        self.assert_fails(result, "model.safetensors")

    def test_a_plan_that_trains_more(self):
        text = (GOLDEN / "recipe_adamw.yaml").read_text()
        recipe = self.folder / "projector.yaml"
        recipe.write_text(text.replace('trainable: ["*"]', 'trainable: ["*projector*"]'))
        plan = self.compile(recipe, 2, name="projector")
        self.run_ok("oriel-run", plan, "--data", DATA, "-n", 2, "--steps", 1, "--save-dir", self.checkpoints)
        result = run("oriel-run", self.plan, "--data", DATA, "-n", 2, "--resume", self.checkpoints)
        self.assert_fails(result, "was frozen when this was saved", "--init-from")

    def test_begins_with_the_weights_of_a_plan_that_trained_less(self):
        text = (GOLDEN / "recipe_adamw.yaml").read_text()
        recipe, export = self.folder / "projector.yaml", self.folder / "trained.onnx"
        recipe.write_text(text.replace('trainable: ["*"]', 'trainable: ["*projector*"]'))
        projector = self.compile(recipe, 2, name="projector")
        self.run_ok("oriel-run", projector, "--data", DATA, "-n", 2, "--steps", 3, "--save-dir", self.checkpoints)
        said = self.run_ok("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", 2, "--init-from", self.checkpoints,
                           "--metrics", self.folder / "init.jsonl")
        self.assertRegex(said.stdout + said.stderr, r"begins with weights of \S*step-00000003: (\d+) of \1 parameters\n")
        # As of a model that has them.
        self.run_ok("oriel", "export", projector, "--checkpoint", self.checkpoints, "--to", "onnx", "-o", export)
        whole = self.folder / "whole.oplan"
        self.run_ok("oriel", "compile", export, "--recipe", GOLDEN / "recipe_adamw.yaml", "--mesh", "dp=2", "-o", whole)
        self.run_ok("oriel-run", whole, "--data", DATA, "-n", 2, "--steps", 2, "--metrics", self.folder / "whole.jsonl")
        began, expected = ([json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()] for name in ("init", "whole"))
        self.assertEqual(losses(began), losses(expected))
        self.assertEqual([m["step"] for m in began], [1, 2])

    def test_begins_with_weights_that_were_frozen_in_bf16(self):
        text, recipe = (GOLDEN / "recipe_adamw.yaml").read_text(), self.folder / "projector.yaml"
        recipe.write_text(text.replace('trainable: ["*"]', 'trainable: ["*projector*"]').replace("precision: f32", "precision: bf16"))
        projector = self.compile(recipe, 2, name="projector")
        self.run_ok("oriel-run", projector, "--data", DATA, "-n", 2, "--steps", 1, "--save-dir", self.checkpoints)
        said = self.run_ok("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", 1, "--init-from", self.checkpoints).stderr
        saved = (self.checkpoints / "step-00000001" / "model.safetensors").read_bytes()
        header = json.loads(saved[8:8 + int.from_bytes(saved[:8], "little")])
        rounded = sum(entry.get("dtype") == "BF16" for entry in header.values())
        self.assertGreater(rounded, 0)
        self.assertIn(f"warning: the checkpoint has {rounded} of them in fewer bits than the plan: they begin rounded: ", said)

    def test_begins_with_weights_however_they_lie(self):
        self.run_steps("--steps", 2, "--save-dir", self.checkpoints, "--save-every", 2)
        saved = read_safetensors(self.checkpoints / "step-00000002" / "model.safetensors")
        bf16 = self.recipe("recipe_adamw.yaml", ("precision: f32", "precision: bf16"))
        for recipe, world, options in ((bf16, 1, ["dp=1"]), (bf16, 2, ["dp=2", "--zero", 3]), (bf16, 4, ["dp=2", "--zero", 1, "--stages", 2]),
                                       (GOLDEN / "recipe_adamw.yaml", 2, ["tp=2", "--sp"])):
            plan, dump = self.folder / "p.oplan", self.folder / "dump.safetensors"
            self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, "--mesh", *options, "-o", plan)
            begin = ["oriel-run", plan, "-n", world, "--init-from", self.checkpoints, "--dump-parameters"]
            self.run_ok(*begin, dump)
            values = read_safetensors(dump)
            self.assertEqual(set(values), set(saved))
            for name, value in values.items():
                numpy.testing.assert_array_equal(value, saved[name], f"{options} {name}")
        read = self.checkpoints / "step-00000002" / "model.safetensors"
        self.assert_fails(run(*begin, read), "which is read")

    def test_ranks_that_see_other_checkpoints(self):
        self.run_steps("--steps", 1, "--save-dir", self.checkpoints)
        for options, text in ((["--auto-resume"], "--save-dir must be one folder that all ranks see"),
                              (["--auto-resume", "--init-from", self.checkpoints / "step-00000001"], "the checkpoint of rank 1 is not that of rank 0")):
            ranks = []
            for rank, environment in enumerate(rank_environments(2)):
                save = self.folder / f"save{rank}"
                save.mkdir(exist_ok=True)
                if rank == 0 and not (save / "step-00000001").exists():
                    shutil.copytree(self.checkpoints / "step-00000001", save / "step-00000001")
                ranks.append(subprocess.Popen(command("oriel-run", self.plan, "--data", DATA, "--steps", 3, "--save-dir", save, *options),
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment))
            said = "".join(process.communicate(timeout=40)[0] for process in ranks)
            self.assertIn(text, said)
            self.assertEqual([process.returncode for process in ranks], [1, 1], said)

    def test_begins_with_some_weights(self):
        self.run_steps("--steps", 1, "--save-dir", self.checkpoints)
        adapted, recipe = self.folder / "adapted.onnx", self.recipe("recipe_adamw.yaml", ('trainable: ["*"]', 'trainable: ["*.lora_*"]'))
        self.run_ok("oriel", "adapt", MODEL, "--targets", "q_proj", "--rank", 2, "-o", adapted)
        plan = self.folder / "adapted.oplan"
        self.run_ok("oriel", "compile", adapted, "--recipe", recipe, "--mesh", "dp=2", "-o", plan)
        begin = ["oriel-run", plan, "--data", DATA, "-n", 2, "--steps", 1, "--init-from", self.checkpoints]
        said = self.run_ok(*begin, "--metrics", self.folder / "m.jsonl")
        text = said.stdout + said.stderr
        self.assertRegex(text, r"not there, and as the plan begins: \S+lora_A.weight, .* and \d+ more\n")
        self.assertNotIn("was trained with another model file", text)  # as the names say
        # The adapters are zero still: the first batch has the loss of the resumed base.
        rest = self.run_steps("--steps", 2, "--resume", self.checkpoints, "--no-shuffle", "--save-dir", self.folder / "other")
        started = self.run_ok(*begin, "--no-shuffle", "--metrics", self.folder / "m.jsonl")
        first = json.loads((self.folder / "m.jsonl").read_text().splitlines()[0])
        self.assertEqual(first["step"], 1, started.stderr)
        self.assertEqual(first["loss"], rest[0]["loss"])
        self.rename_parameters(*((name, name[::-1]) for name in ("_proj", "norm", "embed", "head", "conv", ".fc", "linear", "weight", "bias")))
        self.assert_fails(run(*begin), "has none of the plan's parameters")

    def test_started_again_and_again(self):
        again = ["--save-dir", self.checkpoints, "--auto-resume", "--seed", 5]
        first = self.run_steps("--steps", 2, *again)
        second = self.run_steps("--steps", 4, *again)
        self.assertEqual([m["step"] for m in first + second], [1, 2, 3, 4])
        self.assertEqual(losses(first + second), losses(self.run_steps("--steps", 4, "--seed", 5)))
        done = self.run_ok("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", 4, *again)
        self.assertIn("nothing to train", done.stdout + done.stderr)
        # Where training begins anew, with other weights.
        other = self.folder / "other"
        begun = self.run_steps("--steps", 1, "--init-from", self.checkpoints, "--save-dir", other, "--auto-resume")
        self.assertEqual([m["step"] for m in begun], [1])
        on = self.run_steps("--steps", 2, "--init-from", self.checkpoints, "--save-dir", other, "--auto-resume")
        self.assertEqual([m["step"] for m in on], [2])
        for arguments in (["--auto-resume"], ["--resume", other, "--auto-resume", "--save-dir", other], ["--resume", other, "--init-from", other]):
            self.assertEqual(run("oriel-run", self.plan, "--data", DATA, "-n", 2, *arguments).returncode, 2)

    def test_goes_back_in_a_folder_of_later_steps(self):
        self.run_steps("--steps", 4, "--save-dir", self.checkpoints, "--save-every", 1)
        for start, warns in ((2, True), (4, False)):
            result = run("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", start + 1, "--save-dir", self.checkpoints,
                         "--resume", self.checkpoints / f"step-{start:08}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual("step-00000004 is of an earlier run" in result.stderr, warns, result.stderr)

    def test_unusable_paths_are_found_before_training(self):
        file = self.folder / "file"
        file.write_text("")
        for option in ("--save-dir", "--dump-parameters", "--dump-gradients", "--eval-logits"):
            result = run("oriel-run", self.plan, "--data", DATA, "--eval", DATA, "-n", 2, "--steps", 1, option, file / "below",
                         "--metrics", self.folder / "m.jsonl")
            self.assert_fails(result, "file")
            self.assertFalse((self.folder / "m.jsonl").exists(), option)

    def test_files_above_the_limit(self):
        """As on a full disk: an error, and nothing half written."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for line in (command("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_adamw.yaml", "-o", self.folder / "new.oplan"),
                     command("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", 1, "--save-dir", self.checkpoints)):
            result = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, preexec_fn=limit, timeout=60)
            self.assert_fails(result, "cannot write: File too large")
        self.assertEqual([path for path in self.folder.rglob("*") if "new" in path.name or "step-" in path.name], [])

    def test_evaluation_is_read_before_training(self):
        """Once: what is wrong with its data would else show after the last step."""
        data, metrics = self.folder / "eval", self.folder / "m.jsonl"
        data.mkdir()
        samples = read_shards(DATA, 8)
        for sample in samples:
            del sample["labels"]
        write_shard(data / "shard.tar", samples)
        result = run("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", 2, "--eval", data, "--metrics", metrics)
        self.assert_fails(result, "eval", "labels")
        self.assertFalse(metrics.exists() and metrics.read_text())

    def test_order_of_another_seed_is_told(self):
        self.run_steps("--steps", 1, "--save-dir", self.checkpoints, "--save-every", 1)
        result = run("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", 2, "--resume", self.checkpoints, "--seed", 77)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"not what the checkpoint was trained on \(seed 77, not \d+\); starting at epoch 1")

    def test_weights_of_another_plan(self):
        """Under a name that differs in its ending alone."""
        recipe = GOLDEN / "recipe_adamw.yaml"
        self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, "-o", self.folder / "m.first")
        other = self.folder / "other.onnx"
        content = bytearray(MODEL.read_bytes())
        weights = (self.folder / "m.weights.safetensors").read_bytes()
        at = content.find(weights[-64:])  # within an initializer
        self.assertGreater(at, 0)
        content[at:at + 4] = numpy.float32(0.125).tobytes()
        other.write_bytes(content)
        self.run_ok("oriel", "compile", other, "--recipe", recipe, "-o", self.folder / "m.second")
        for result in (run("oriel", "verify", self.folder / "m.first"),
                       run("oriel-run", self.folder / "m.first", "--data", DATA, "--steps", 1)):
            self.assert_fails(result, "m.weights.safetensors", "weights of another plan", "compile the plan again")
        self.run_ok("oriel", "verify", self.folder / "m.second")

    def test_damaged_weights(self):
        """Each of two ranks reads a half of the file; both stop, and one tells it."""
        weights = self.plan.with_suffix(".weights.safetensors")
        sound = bytearray(weights.read_bytes())
        for at in (len(sound) // 4, len(sound) - 8):
            damaged = bytearray(sound)
            damaged[at] ^= 1
            weights.write_bytes(damaged)
            result = run("oriel-run", self.plan, "--data", DATA, "-n", 2, "--steps", 1)
            self.assert_fails(result, weights.name, "is damaged", "compile the plan again")
            self.assertEqual(result.stderr.count("error"), 1, result.stderr)
            self.assert_fails(run("oriel", "verify", self.plan), weights.name, "is damaged")
        weights.write_bytes(sound)
        self.run_steps("--steps", 1)

    def test_a_rate_of_zero_is_told(self):
        text = (GOLDEN / "recipe_adamw.yaml").read_text()
        recipe = self.folder / "cosine.yaml"
        recipe.write_text(text.replace("{kind: constant}", "{kind: cosine, total_steps: 2}"))
        plan = self.compile(recipe, 2)
        for steps, warns in ((2, False), (5, True)):
            result = run("oriel-run", plan, "--data", DATA, "-n", 2, "--steps", steps)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual("from step 2 on the learning rate is 0" in result.stderr, warns, result.stderr)
