"""The way back: trained weights in the ONNX file, all else untouched."""

import json
import os
import pathlib
import subprocess
import tempfile

import numpy
from oriel_testing import DATA, GOLDEN, MODEL, VENV, OrielTestCase, read_safetensors, read_shards, run, write_safetensors


RUN_ONNX = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
inputs = dict(numpy.load(sys.argv[2]))
numpy.save(sys.argv[3], session.run(["logits"], inputs)[0])
"""


def varint(number: int) -> bytes:
    """Protobuf's encoding of a whole number."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def split_checkpoint(folder: pathlib.Path) -> int:
    """Cuts the parameters as two ranks would store them; says how many are in pieces then."""
    index = json.loads((folder / "index.json").read_text())
    files, cut = [{}, {}], 0
    for number, (name, value) in enumerate(read_safetensors(folder / "model.safetensors").items()):
        dim = number % value.ndim
        pieces = numpy.split(value, 2, dim) if value.shape[dim] % 2 == 0 else [value]
        cut += len(pieces) == 2
        shards = index["parameters"][name]["shards"] = []
        for rank, piece in enumerate(pieces):
            files[rank][name] = piece
            offsets = [rank * size if d == dim else 0 for d, size in enumerate(piece.shape)]
            shards.append({"file": f"model-rank{rank:05}.safetensors", "name": name, "offsets": offsets,
                           "shape": piece.shape})
    for rank, tensors in enumerate(files):
        write_safetensors(folder / f"model-rank{rank:05}.safetensors", tensors)
    (folder / "model.safetensors").unlink()
    del index["crc32"]  # of the index as it was
    (folder / "index.json").write_text(json.dumps(index))
    return cut


class ExportTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        self.plan = self.compile(GOLDEN / "recipe_adamw.yaml", 1)
        self.checkpoints = self.folder / "checkpoints"
        self.parameters = self.folder / "parameters.safetensors"
        self.train(self.plan, "--steps", 3, "--save-dir", self.checkpoints, "--save-every", 3,
                   "--dump-parameters", self.parameters)

    def export(self, kind: str, name: str) -> pathlib.Path:
        path = self.folder / name
        self.run_ok("oriel", "export", self.plan, "--checkpoint", self.checkpoints, "--to", kind, "-o", path)
        return path

    def test_only_weights_change(self):
        trained = self.export("onnx", "trained.onnx").read_bytes()
        original = MODEL.read_bytes()
        # The original with each initializer's raw data overwritten, byte for byte. In the encoding of
        # a TensorProto the raw data (field 9) follow the name (field 8).
        expected, changed = bytearray(original), 0
        initial = read_safetensors(self.plan.with_suffix(".weights.safetensors"))
        for name, value in read_safetensors(self.parameters).items():
            head = name.encode() + b"\x4a" + varint(value.nbytes)
            self.assertEqual(original.count(head), 1, name)
            begin = original.index(head) + len(head)
            self.assertEqual(original[begin : begin + value.nbytes], initial[name].tobytes(), name)
            expected[begin : begin + value.nbytes] = value.tobytes()
            changed += value.tobytes() != initial[name].tobytes()
        self.assertGreater(changed, 50)
        self.assertTrue(trained == bytes(expected), "bytes beside the weights differ")

    def test_what_an_earlier_plan_trained(self):
        """A plan that freezes most goes on: the checkpoint has what the plan before it trained."""
        recipe = self.folder / "phase2.yaml"
        text = (GOLDEN / "recipe_adamw.yaml").read_text()
        recipe.write_text(text.replace('trainable: ["*"]', 'trainable: ["*projector*"]'))
        plan, parameters = self.compile(recipe, 1), self.folder / "phase2.safetensors"
        self.train(plan, "--steps", 4, "--resume", self.checkpoints, "--save-dir", self.checkpoints,
                   "--dump-parameters", parameters)
        path = self.folder / "phase2.onnx"
        self.run_ok("oriel", "export", plan, "--checkpoint", self.checkpoints, "--to", "onnx", "-o", path)
        exported, original, earlier = path.read_bytes(), MODEL.read_bytes(), read_safetensors(self.parameters)
        kept = 0
        for name, value in read_safetensors(parameters).items():
            head = name.encode() + b"\x4a" + varint(value.nbytes)
            begin = exported.index(head) + len(head)
            self.assertEqual(exported[begin : begin + value.nbytes], value.tobytes(), name)
            is_initial = original[begin : begin + value.nbytes] == value.tobytes()
            kept += not is_initial and value.tobytes() == earlier[name].tobytes()
        self.assertGreater(kept, 40)

    def test_inputs_are_not_overwritten(self):
        model = self.folder / "model.onnx"
        model.write_bytes(MODEL.read_bytes())
        for path in (self.plan, model):
            before = path.read_bytes()
            result = run("oriel", "export", self.plan, "--checkpoint", self.checkpoints, "--to", "onnx",
                         "--model", model, "-o", path)
            self.assert_fails(result, "which is read; give another path")
            self.assertEqual(path.read_bytes(), before)
        (shard,) = self.checkpoints.glob("step-*/model*.safetensors")
        for path in (shard, self.plan.with_suffix(".weights.safetensors")):
            result = run("oriel", "export", self.plan, "--checkpoint", self.checkpoints, "--to", "safetensors", "-o", path)
            self.assert_fails(result, "which is read; give another path")
            for option in ("--dump-parameters", "--dump-gradients"):
                result = run("oriel-run", self.plan, "--data", DATA, "-n", 1, "--steps", 4, "--resume", self.checkpoints, option, path)
                self.assert_fails(result, "which is read; give another path")

    def test_links_are_followed(self):
        """A model is a file of its own: not what a pipe can take."""
        for kind in ("onnx", "safetensors"):
            link, disk = self.folder / f"link.{kind}", self.folder / f"disk.{kind}"
            link.symlink_to(disk.name)
            self.export(kind, link.name)
            self.assertTrue(link.is_symlink())
            self.assertEqual(disk.read_bytes(), self.export(kind, f"again.{kind}").read_bytes())
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        result = run("oriel", "export", self.plan, "--checkpoint", self.checkpoints, "--to", "onnx", "-o", pipe)
        self.assert_fails(result, "it is no file")
        self.assertTrue(pipe.is_fifo())

    def test_onnxruntime_gives_our_logits(self):
        python = VENV / "bin" / "python"
        if not python.exists() or subprocess.run([python, "-c", "import onnxruntime"]).returncode:
            self.skipTest("no onnxruntime: tools/setup.sh --python installs it")
        trained = self.export("onnx", "trained.onnx")
        path = self.folder / "logits.npy"
        self.run_ok("oriel-run", self.plan, "--eval", DATA, "--resume", self.checkpoints, "--steps", 0,
                    "--eval-logits", path, "-n", 1)
        samples = read_shards(DATA, 8)
        inputs = self.folder / "inputs.npz"
        numpy.savez(inputs,
                    pixel_values=numpy.stack([s["pixel_values"] for s in samples]).astype("f4"),
                    input_ids=numpy.stack([s["input_ids"] for s in samples]))
        output = self.folder / "ort.npy"
        subprocess.run([python, "-c", RUN_ONNX, trained, inputs, output], check=True)
        difference = numpy.abs(numpy.load(path)[:8] - numpy.load(output)).max()
        self.assertLess(difference, 1e-4)

    def test_export_to_safetensors(self):
        exported = read_safetensors(self.export("safetensors", "trained.safetensors"))
        expected = read_safetensors(self.parameters)
        self.assertEqual(set(exported), set(expected))
        for name, value in expected.items():
            numpy.testing.assert_array_equal(exported[name], value)

    def test_pieces_are_joined(self):
        whole = [self.export(kind, "whole").read_bytes() for kind in ("onnx", "safetensors")]
        cut = split_checkpoint(next(self.checkpoints.glob("step-*")))
        self.assertGreater(cut, 50)
        joined = [self.export(kind, "joined").read_bytes() for kind in ("onnx", "safetensors")]
        self.assertTrue(joined == whole, "bytes differ")
