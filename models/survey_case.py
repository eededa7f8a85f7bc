"""A case of survey.py: exported, checked by ONNX Runtime, imported, raised."""

import collections
import dataclasses
import re
import subprocess
import traceback

import onnx
import torch
import yaml

import export
import hf

STEPS = 20
OPTIMIZER = {"kind": "adamw", "lr": 1.0e-3, "betas": [0.9, 0.95],
             "weight_decay": 0.05}
LAYER_KEYS = {"decoder": ("text_config", ("num_hidden_layers",)),
              "vision": ("vision_config", ("num_hidden_layers", "depth"))}
MICRO_BATCH = 4
FIXED_BATCH = 2
LOGITS_TOLERANCE = 1e-3
SEED = 0


@dataclasses.dataclass(frozen=True)
class Case:
    """extra: the part that has one more layer ("decoder", "vision"), "padding"
    (an attention mask among the inputs), or ""."""
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
        if self.extra in LAYER_KEYS:
            config = getattr(hf.transformers, self.name).config_class()
            part, keys = LAYER_KEYS[self.extra]
            sub_config = getattr(config, part).to_dict()
            key = next(key for key in keys if key in sub_config)
            settings = [f"{part}.{key}=3"]
        # The TorchScript exporter has no attention with grouped queries.
        attention = "eager" if self.exporter == "torchscript" else None
        model = hf.build(self.name, "tiny", settings, attention=attention,
                         padding=self.extra == "padding")
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
    import onnxruntime  # starts a thread; survey.in_child says why here
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
    """A recipe that trains all of `model` (survey_train.py has PyTorch's)."""
    micro = batch or MICRO_BATCH
    result = {
        "inputs": {"labels": {"dtype": "int64",
                              "shape": ["micro_batch", model.sequence]}},
        "loss": {"kind": "token_cross_entropy", "logits": model.output,
                 "labels": "labels"},
        "optimizer": OPTIMIZER,
        "batch": {"global": micro, "micro": micro},
        "steps": STEPS,
    }
    if batch is None:
        result["model"] = {"bind": {"batch": "micro_batch"}}
    if model.images:
        result["images"] = model.images
    return result


def oriel(bin_dir, *arguments, timeout=120):
    """(stdout, error): the first error line of an oriel binary, "" if none."""
    out, error, _ = oriel_with_warnings(bin_dir, *arguments, timeout=timeout)
    return out, error


def oriel_with_warnings(bin_dir, *arguments, timeout=120):
    """The same, and the lines of what it warns of."""
    command = [str(bin_dir / arguments[0]), *map(str, arguments[1:])]
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return "", f"no end after {timeout} s", []
    said = done.stderr.splitlines()
    warnings = [line for line in said if line.startswith("warning: ")]
    if done.returncode == 0:
        return done.stdout, "", warnings
    lines = [line for line in said if "error: " in line]
    return "", (lines[0].split("error: ", 1)[1] if lines
                else f"exit code {done.returncode}"), warnings


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
