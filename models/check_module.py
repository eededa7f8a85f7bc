#!/usr/bin/env python3
"""Whether a PyTorch module gets the same gradients in Oriel as in PyTorch.

    models/check_module.py my_model.py:build --work build/check

`build()` returns (module, inputs): inputs are {name: tensor}, by the names of
forward's arguments, the first dimension of each the batch. What forward returns
are logits, [batch, .., classes], or a loss of its own: a number, or one for
each sample, which are added up. One step, of logits on random labels, runs in
Oriel, in PyTorch, and in PyTorch with f64; the exit code is 0 if every
parameter's gradient agrees (‖Δ‖/‖g‖ ≤ 1e-4, or no more than twice what
PyTorch's own f32 differs from f64), 1 if one does not, or where a step fails.

The module runs as it is in evaluation mode: without dropout, and with a batch
norm's running statistics.
"""

import argparse
import copy
import importlib.util
import inspect
import pathlib
import pickle
import sys

import torch
from safetensors.numpy import load_file

import export
import golden
import survey_case
import survey_train

LIMIT = 1e-4
OWN_ROUNDING = 2.0  # times what PyTorch's f32 is off
FILE_LIMIT = 1e-3  # of an output's size, in another library
BIN = pathlib.Path(__file__).resolve().parent.parent / "build" / "dev" / "bin"
RECIPE = """
optimizer: {{kind: sgd, lr: 1.0e-9}}
batch: {{global: {batch}, micro: {batch}}}
steps: 1
"""
RECIPE_OF_LOGITS = """
inputs: {{labels: {{dtype: int64, shape: [micro_batch, {positions}]}}}}
loss: {{logits: logits, labels: labels, shift: false}}
"""
RECIPE_OF_LOSS = """
loss: {{kind: sum, output: loss, over: {over}}}
"""


def by_positions(logits):
    return logits.reshape(logits.shape[0], -1, logits.shape[-1])


class Output(torch.nn.Module):
    """Logits [batch, positions, classes], or a loss, of what a module
    returns."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        # TorchScript's exporter puts a model back into the mode it was in.
        self.train(module.training)

    def forward(self, *args, **inputs):
        output = self.module(*args, **inputs)
        return output if output.ndim < 2 else by_positions(output)


def named_output(module):
    """An Output whose forward has the names of the module's own: the exporter
    can't write what it finds out about sizes of inputs that come by **."""
    own = inspect.signature(module.forward)
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    class NamedOutput(Output):

        def forward(self, *args, **inputs):
            return super().forward(*args, **inputs)

        forward.__signature__ = own.replace(
            parameters=[me, *own.parameters.values()])

    return NamedOutput(module)


class PositionalOutput(Output):
    """The same for TorchScript's exporter, which knows no names."""

    def __init__(self, module, names):
        super().__init__(module)
        self.names = names

    def forward(self, *values):
        return super().forward(**dict(zip(self.names, values)))


class CheckError(Exception):
    """A step that failed, and why."""


def build(place):
    """The module and its inputs, by FILE.py:FUNCTION."""
    file, _, function = place.rpartition(":")
    if not file or not pathlib.Path(file).is_file():
        raise CheckError(f"'{place}' is no FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location("checked", file)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["checked"] = loaded
    sys.path.insert(0, str(pathlib.Path(file).resolve().parent))
    spec.loader.exec_module(loaded)
    if not hasattr(loaded, function):
        raise CheckError(f"{file} has no function '{function}'")
    built = getattr(loaded, function)()
    if (not isinstance(built, tuple) or len(built) != 2
            or not isinstance(built[0], torch.nn.Module)
            or not isinstance(built[1], dict)):
        raise CheckError(f"{function}() must return a module and its inputs, "
                         "{name of a parameter of forward: tensor}")
    module, inputs = built
    return module.eval(), inputs


def add_noise(module):
    """What is zero hides a wrong gradient, and exporters merge what is
    equal."""
    random = torch.Generator().manual_seed(1)
    seen = set()  # layers that are copies of one begin with equal weights
    with torch.no_grad():
        for parameter in module.parameters():
            value = (parameter.shape, parameter.numpy().tobytes())
            if (parameter.ndim < 2 or parameter.unique().numel() < 2
                    or value in seen):
                parameter += 0.02 * torch.randn(parameter.shape,
                                                generator=random)
            seen.add(value)


def labels_for(module, inputs):
    """Random ones of the module's logits; None where it returns a loss."""
    with torch.no_grad():
        output = module(**inputs)
    if (not isinstance(output, torch.Tensor) or not output.is_floating_point()
            or output.ndim == 1 and len(output) != batch_of(inputs)
            or output.ndim > 1 and output.shape[-1] < 2):
        raise CheckError("forward must return one tensor: logits [batch, .., "
                         "classes], a loss [], or one for each sample [batch]")
    if output.ndim < 2:
        return None
    logits = by_positions(output)
    return torch.randint(0, logits.shape[2], logits.shape[:2],
                         generator=torch.Generator().manual_seed(2))


def batch_of(inputs):
    return len(next(iter(inputs.values())))


def gradients(module, inputs, labels):
    """As survey_train.first_step."""
    module.zero_grad()
    output = module(**inputs)
    if labels is None:
        output.sum().backward()
    else:
        torch.nn.functional.cross_entropy(output.flatten(0, 1),
                                          labels.flatten()).backward()
    return survey_train.gradients_by_names(module)


def as_f64(inputs):
    return {name: value.double() if value.is_floating_point() else value
            for name, value in inputs.items()}


def wide_gradients(model, inputs, labels):
    """In f64, or None where the module can't be copied, or is of f32 alone."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return gradients(copy.deepcopy(model).double(), as_f64(inputs), labels)
    except (RuntimeError, TypeError, ValueError,
            pickle.PickleError) as error:  # a scripted function's
        reason = str(error).partition("\n")[0]
        print("note: the module does not run in f64, so rounding is not "
              f"known: {reason}", file=sys.stderr)
        return None
    finally:
        torch.set_default_dtype(default)


def export_model(args, module, inputs, output):
    """Writes model.onnx, whose output has this name."""
    model = (PositionalOutput(module, list(inputs))
             if args.exporter == "torchscript" else named_output(module))
    try:
        with export.output_to(args.work / "export.log"):
            export.export_onnx(
                model, inputs, output, args.work / "model.onnx",
                args.exporter, args.opset, not args.fixed_batch)
    except export.ExportError as error:
        raise CheckError(f"export: {error}") from error


def run_oriel(args, inputs, labels, per_sample):
    """{name: gradient} of a step of model.onnx. Prints what Oriel warns of."""
    batch = batch_of(inputs)
    bind = "" if args.fixed_batch else "model: {bind: {batch: micro_batch}}"
    values = inputs
    if labels is None:
        # A number may mix the samples of a batch.
        loss = RECIPE_OF_LOSS.format(
            over="microbatch" if per_sample else "batch")
    else:
        loss = RECIPE_OF_LOGITS.format(positions=labels.shape[1])
        values = {**inputs, "labels": labels}
    recipe = args.work / "recipe.yaml"
    recipe.write_text(bind + loss + RECIPE.format(batch=batch))
    golden.write_shards([{name: value[i].numpy()
                          for name, value in values.items()}
                         for i in range(batch)], args.work / "data")
    plan, found = args.work / "plan.oplan", args.work / "gradients.safetensors"
    for command in (
            ("oriel", "compile", args.work / "model.onnx", "--recipe", recipe,
             "-o", plan),
            ("oriel-run", plan, "--data", args.work / "data", "-n", 1,
             "--no-shuffle", "--dump-gradients", found)):
        _, error, warnings = survey_case.oriel_with_warnings(
            args.bin, *command, timeout=args.timeout)
        print(*warnings, sep="\n", end="\n" if warnings else "",
              file=sys.stderr)
        if error:
            raise CheckError(f"{' '.join(map(str, command[:2]))}: {error}")
    return load_file(found)


def file_error(args, model, inputs):
    """How much the output of model.onnx in ONNX Runtime differs from the
    module's, None where there is no ONNX Runtime that runs it."""
    try:
        import onnxruntime
        session = onnxruntime.InferenceSession(args.work / "model.onnx")
        found, = session.run(None, {name: value.numpy()
                                    for name, value in inputs.items()})
    except Exception:  # whatever it says, it is not what is checked
        return None
    with torch.no_grad():
        expected = model(**inputs).numpy()
    size = max(1, abs(expected).max())
    return float(abs(found.reshape(expected.shape) - expected).max() / size)


def check(args):
    """A report as of survey_train.compare_gradients, with PyTorch's own error
    as "own", None where it is not known, and, where a gradient differs,
    file_error's as "file"."""
    module, inputs = build(args.module)
    if args.noise:
        add_noise(module)
    model = Output(module)
    labels = labels_for(module, inputs)
    export_model(args, module, inputs, "loss" if labels is None else "logits")
    with torch.no_grad():
        per_sample = model(**inputs).ndim == 1
    found = run_oriel(args, inputs, labels, per_sample)
    expected = gradients(model, inputs, labels)
    wide = wide_gradients(model, inputs, labels)
    if wide is None:
        own, report = None, survey_train.compare_gradients(
            found, expected, expected)
    else:
        torch_only = {names[0]: gradient
                      for names, gradient in expected.items()}
        own = survey_train.compare_gradients(torch_only, wide, wide)["gradients"]
        report = survey_train.compare_gradients(found, expected, wide)
    differs = (report["gradients"] or 0) > LIMIT
    return {**report, "own": own,
            "file": file_error(args, model, inputs) if differs else None}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", metavar="FILE.py:FUNCTION")
    parser.add_argument("--work", type=pathlib.Path, required=True,
                        help="a folder for what is made")
    parser.add_argument("--bin", type=pathlib.Path, help="oriel's binaries",
                        default=BIN)
    parser.add_argument("--exporter", choices=("dynamo", "torchscript"),
                        default="dynamo")
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--fixed-batch", action="store_true",
                        help="for a module whose code fixes the batch")
    parser.add_argument("--noise", action="store_true",
                        help="add random numbers to vectors, to zeros, which "
                        "hide wrong gradients, and to copies of weights, which "
                        "exporters merge")
    parser.add_argument("--timeout", type=float, default=600,
                        help="seconds of a command")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    try:
        report = check(args)
    except CheckError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if report["gradients"] is None:
        print("error: no parameter has a gradient to compare", file=sys.stderr)
        return 1
    good = report["gradients"] <= LIMIT
    own = report["own"]
    rounding = own is not None and report["gradients"] <= OWN_ROUNDING * own
    known = "" if own is None else (
        f" (PyTorch's f32 is off by {own:.1e} from f64)")
    print(f"{report['compared']} gradients, the largest difference "
          f"{report['gradients']:.1e} at {report['parameter']}{known}; "
          f"{report['zero']} are zero")
    if report["missing"]:
        print(f"not compared: {', '.join(report['missing'])}")
    print("as in PyTorch" if good else
          "within PyTorch's own rounding" if rounding else "DIFFERENT")
    if (report["file"] or 0) > FILE_LIMIT and not (good or rounding):
        print(f"The file is not the module: ONNX Runtime's output of it is off "
              f"by {report['file']:.1e}. The exporter is wrong, not Oriel")
    elif not (good or rounding or args.noise):
        print("Exporters merge weights that begin equal, as norms do: does it "
              "differ with --noise?")
    return 0 if good or rounding else 1


if __name__ == "__main__":
    sys.exit(main())
