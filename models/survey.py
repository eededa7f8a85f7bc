#!/usr/bin/env python3
"""Which Hugging Face classes export, import and train: docs/import_coverage.md.

    models/survey.py --work build/survey --train     # everything, hours on a busy machine
    models/survey.py --work build/survey --only Qwen3VLForConditionalGeneration
    models/survey.py --work build/survey --doc docs/import_coverage.md

A case is a class, an exporter and an operator set, at the size "tiny" of
hf_config.py. Each is exported (in a process of its own, with a time limit),
imported and compiled up to `raise`; with --train also trained for 20 steps
beside PyTorch. The exports stay in the work folder and are not made again;
--fresh removes them first. The exports with one more decoder or vision layer
give the ops of a layer by difference.
"""

import argparse
import collections
import dataclasses
import json
import multiprocessing
import pathlib
import re
import shutil
import subprocess
import sys
import time
import traceback
import warnings

import onnx
import onnxruntime
import torch
import yaml

import export
import hf
import survey_tables
import survey_train

CLASSES = (
    "LlavaForConditionalGeneration",
    "LlavaNextForConditionalGeneration",
    "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "SmolVLMForConditionalGeneration",
    "PaliGemmaForConditionalGeneration",
    "InternVLForConditionalGeneration",
    "Gemma3ForConditionalGeneration",
    "AyaVisionForConditionalGeneration",
    "Cohere2VisionForConditionalGeneration",
    "CLIPModel",
    "SiglipModel",
    # These go the generic way, without a thought for them.
    "DeepseekVLForConditionalGeneration",
    "GotOcr2ForConditionalGeneration",
    "JanusForConditionalGeneration",
    "Ovis2ForConditionalGeneration",
    "VideoLlavaForConditionalGeneration",
)
OPSETS = (17, 18, 23)
# Where the ops of a layer are counted; the rest of the graph is the same.
LAYERS_AT = (("dynamo", 18), ("dynamo", 23), ("torchscript", 17))
LAYER_KEYS = {"decoder": ("text_config", ("num_hidden_layers",)),
              "vision": ("vision_config", ("num_hidden_layers", "depth"))}
MICRO_BATCH = 4
FIXED_BATCH = 2
LOGITS_TOLERANCE = 1e-4
SEED = 0


@dataclasses.dataclass(frozen=True)
class Case:
    """extra: the part that has one more layer ("decoder", "vision"), or ""."""
    name: str
    exporter: str
    opset: int
    extra: str = ""

    def __str__(self):
        extra = f"-{self.extra}" if self.extra else ""
        return f"{self.name}-{self.exporter}-{self.opset}{extra}"

    def build(self):
        """The `hf.Model` with its weights."""
        settings = []
        if self.extra:
            config = getattr(hf.transformers, self.name).config_class()
            part, keys = LAYER_KEYS[self.extra]
            sub_config = getattr(config, part).to_dict()
            key = next(key for key in keys if key in sub_config)
            settings = [f"{part}.{key}=3"]
        # The TorchScript exporter has no attention with grouped queries.
        attention = "eager" if self.exporter == "torchscript" else None
        model = hf.build(self.name, "tiny", settings, attention=attention)
        hf.initialize(model.module, SEED)
        return model


def whose(error):
    """Who failed: the class's Python ("Hugging Face"), or the exporter.

    What raises last decides, of the frames of transformers and torch.onnx.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    owner = "the exporter"
    for frame in traceback.extract_tb(error.__traceback__):
        path = frame.filename.replace("\\", "/")
        if "/transformers/" in path:
            owner = "Hugging Face"
        elif "/torch/onnx/" in path:
            owner = "the exporter"
    return owner


def export_case(case, folder):
    """Writes model.onnx; returns what happened, as a dict."""
    model = case.build()
    result = {"batch": None, "recipe": recipe(model, None)}
    path = folder / "model.onnx"
    try:
        try:
            export.export_onnx(model.module, model.example_inputs(),
                               model.output, path, case.exporter, case.opset)
        except export.FixedBatchError:
            result |= {"batch": FIXED_BATCH,
                       "recipe": recipe(model, FIXED_BATCH)}
            export.export_onnx(model.module, model.example_inputs(FIXED_BATCH),
                               model.output, path, case.exporter, case.opset,
                               dynamic_batch=False)
    except export.ExportError as error:
        traceback.print_exc()
        return result | {"stage": whose(error), "reason": str(error)}
    result["runtime"] = runtime_error(model, path,
                                      result["batch"] or MICRO_BATCH)
    proto = onnx.load(path)
    result["opset"] = max(o.version for o in proto.opset_import if not o.domain)
    result["ops"] = dict(collections.Counter(op_types(proto.graph)))
    return result | {"stage": ""}


def runtime_error(model, path, batch):
    """Why ONNX Runtime does not give PyTorch's logits for an export, or "".

    It is asked for another batch size than was traced: a trace may have
    fixed it silently.
    """
    inputs = model.example_inputs(batch)
    with torch.no_grad():
        expected = model.module(**inputs).numpy()
    try:
        session = onnxruntime.InferenceSession(path)
        logits, = session.run(None, {name: t.numpy()
                                     for name, t in inputs.items()})
    except Exception as error:
        return f"ONNX Runtime: {hf.first_cause(error)}"
    error = abs(logits - expected).max()
    return "" if error <= LOGITS_TOLERANCE else (
        f"ONNX Runtime's logits differ from PyTorch's by {error:.1e}")


def op_types(graph):
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from op_types(attribute.g)


def recipe(model, batch):
    """A recipe that trains all of `model` (survey_train.py holds PyTorch's)."""
    micro = batch or MICRO_BATCH
    result = {
        "inputs": {"labels": {"dtype": "int64",
                              "shape": ["micro_batch", model.sequence]}},
        "loss": {"kind": "token_cross_entropy", "logits": model.output,
                 "labels": "labels"},
        "optimizer": survey_train.OPTIMIZER,
        "batch": {"global": micro, "micro": micro},
        "steps": survey_train.STEPS,
    }
    if batch is None:
        result["model"] = {"bind": {"batch": "micro_batch"}}
    if model.images:
        result["images"] = model.images
    return result


def in_child(function, arguments, log, timeout):
    """function(*arguments) in a forked process; {"stage", "reason"} if it dies.

    The parent has imported torch and transformers already, so that a case does
    not pay for it.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        with export.output_to(log):
            try:
                sender.send(function(*arguments))
            except Exception as error:
                traceback.print_exc()
                sender.send({"stage": whose(error), "reason":
                             f"{type(error).__name__}: {error}"})

    process = context.Process(target=work)
    process.start()
    sender.close()
    result = {"stage": "the exporter", "reason": f"no end after {timeout} s"}
    if receiver.poll(timeout):
        try:
            result = receiver.recv()
        except EOFError:
            process.join()
            result["reason"] = f"died with exit code {process.exitcode}"
    process.kill()
    process.join()
    return result


def oriel(bin_dir, *arguments, timeout=120):
    """(stdout, error): the first error line of an oriel binary, "" if none."""
    command = [str(bin_dir / arguments[0]), *map(str, arguments[1:])]
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return "", f"no end after {timeout} s"
    if done.returncode == 0:
        return done.stdout, ""
    lines = [line for line in done.stderr.splitlines() if "error: " in line]
    return "", (lines[0].split("error: ", 1)[1] if lines
                else f"exit code {done.returncode}")


def import_case(bin_dir, folder, result):
    """Imports and raises the export of `folder`; what happened, as a dict."""
    model, recipe_path = folder / "model.onnx", folder / "recipe.yaml"
    recipe_path.write_text(yaml.safe_dump(result["recipe"]))
    bind = [] if result["batch"] else ["--bind", f"batch={MICRO_BATCH}"]
    _, error = oriel(bin_dir, "oriel", "import", model, *bind)
    if error:
        return {"stage": "Oriel", "reason": error, "at": "import"}
    text, error = oriel(bin_dir, "oriel", "compile", model, "--recipe",
                        recipe_path, "--stop-after=raise", "--dump-after=raise")
    if error:
        return {"stage": "Oriel", "reason": error, "at": "raise"}
    # An op starts its line or follows its results.
    ops = re.findall(r"^\s*(?:%[^=]* = )?\"?oriel\.(\w+)", text, re.MULTILINE)
    ops = collections.Counter(ops)
    return {"stage": "", "raised": {op: n for op, n in ops.items()
                                    if op not in ("constant", "parameter")}}


def survey_case(case, args):
    """Takes a case as far as it goes; returns and keeps its result."""
    folder = args.work / str(case)
    if args.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    exported = folder / "export.json"
    if exported.exists():
        result = json.loads(exported.read_text())
    else:
        result = in_child(export_case, (case, folder), folder / "export.log",
                          args.timeout)
        exported.write_text(json.dumps(result, indent=1))
    if not result["stage"]:
        result |= import_case(args.bin, folder, result)
        if result["stage"] == "Oriel" and result["runtime"]:
            result |= {"stage": "the exporter", "reason": result["runtime"]}
    kept = folder / "result.json"
    trained = (json.loads(kept.read_text()).get("trained")
               if kept.exists() else None)
    if args.train and not result["stage"] and not case.extra:
        trained = in_child(survey_train.train, (case, folder, args.bin, result),
                           folder / "train.log", args.timeout)
    if trained:
        result["trained"] = trained
    kept.write_text(json.dumps(result, indent=1))
    return result


def cases(args):
    for name in args.only or CLASSES:
        for exporter in args.exporter or export.EXPORTERS:
            for opset in args.opset or OPSETS:
                yield Case(name, exporter, opset)
                if (exporter, opset) in LAYERS_AT and not args.no_layers:
                    for extra in LAYER_KEYS:
                        yield Case(name, exporter, opset, extra)


def say(case, result):
    if result["stage"]:
        text = f"{result['stage']}: {result['reason']}"
    elif "trained" in result:
        text = survey_tables.training_text(result["trained"])
    else:
        text = "imports"
    print(f"{time.strftime('%H:%M:%S')} {case}: {text}"[:400], flush=True)


def parse_arguments():
    source = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True,
                        metavar="DIR", help="exports and results")
    parser.add_argument("--bin", type=pathlib.Path, metavar="DIR",
                        default=source / "build" / "dev" / "bin",
                        help="Oriel's binaries (default: build/dev/bin)")
    parser.add_argument("--only", action="append", metavar="CLASS",
                        help="repeatable (default: all of the survey)")
    parser.add_argument("--exporter", action="append",
                        choices=export.EXPORTERS, help="repeatable")
    parser.add_argument("--opset", action="append", type=int, metavar="N",
                        help="repeatable")
    parser.add_argument("--no-layers", action="store_true",
                        help="don't count the ops of a layer")
    parser.add_argument("--train", action="store_true",
                        help="20 steps beside PyTorch")
    parser.add_argument("--timeout", type=int, default=600, metavar="S",
                        help="for one export or training (default: 600)")
    parser.add_argument("--fresh", action="store_true", help="export again")
    parser.add_argument("--doc", type=pathlib.Path, metavar="FILE",
                        help="write the tables of all results in the work\n"
                             "folder between the markers of this file")
    return parser.parse_args()


def main():
    args = parse_arguments()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    for case in cases(args):
        say(case, survey_case(case, args))
    if args.doc:
        survey_tables.update(args.doc, args.work, CLASSES, OPSETS)


if __name__ == "__main__":
    sys.exit(main())
