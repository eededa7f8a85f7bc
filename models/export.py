#!/usr/bin/env python3
"""Exports a model to ONNX: one of this folder, or a Hugging Face class.

    models/export.py llava_tiny  # into models/llava_tiny/
    models/export.py llava_30m --out build/models/llava_30m
    models/export.py --hf Qwen3VLForConditionalGeneration --preset tiny \\
        --opset 23 --set text_config.num_hidden_layers=3 --out build/qwen
    models/export.py --hf LlamaForCausalLM --skeleton --out build/llama
    models/export.py --pretrained ~/llava-1.5-7b-hf --out build/llava

The first form writes PyTorch's numbers beside the model. The second takes any
class of transformers that hf.py can call, with random weights: its config's
defaults, or shrunk to train in seconds. The last one takes the weights and the
config that `save_pretrained` has written, or of a model of the hub.

Needs torch, transformers, onnx, onnxscript, safetensors and numpy from PyPI;
nothing is downloaded from a model hub, but what --pretrained names. To add a
model, add a line to MODELS.
"""

import argparse
import contextlib
import dataclasses
import fnmatch
import os
import pathlib
import sys
from collections.abc import Callable

import onnx
import torch

import clip
import exporter_fixes
import hf
import llava
import qwen_vl
import skeleton
import stop_gradient

SEED = 0
# More than this goes to model.onnx.data: a file of protobuf ends at 2 GiB.
LARGEST_FILE = 2**30
EXPORTERS = ("dynamo", "torchscript")


@dataclasses.dataclass(frozen=True)
class Model:
    """One model of this folder.

    build: seed -> hf.Model.
    golden: (hf.Model, folder) -> None, writes PyTorch's numbers; or None.
    exporter, opset: how it is exported if the command line does not say.
    compact: whether the file is stripped of what describes it to people.
    """
    build: Callable
    golden: Callable | None = None
    exporter: str = "dynamo"
    opset: int | None = None
    compact: bool = True


MODELS = {
    "llava_tiny": Model(lambda seed: llava.make(llava.TINY, seed),
                        llava.write_golden, compact=False),
    "llava_deep": Model(lambda seed: llava.make(llava.DEEP, seed)),
    "llava_30m": Model(lambda seed: llava.make(llava.MEDIUM_30M, seed)),
    "qwen_vl_tiny": Model(qwen_vl.build, qwen_vl.write_golden, opset=23),
    "clip_tiny": Model(clip.build, clip.write_golden, "torchscript", opset=17),
}


@contextlib.contextmanager
def output_to(path):
    """Sends stdout and stderr, C++'s too, to a file: the exporters talk a lot,
    and one that fails prints its whole graph."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    try:
        with open(path, "w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, copy in zip((1, 2), saved):
            os.dup2(copy, descriptor)
            os.close(copy)


class ExportError(Exception):
    """An exporter refused; the message is the first line of its reason."""


class FixedBatchError(ExportError):
    """The graph holds for one batch size only."""


def export_onnx(module, inputs, output, path, exporter="dynamo", opset=None,
                dynamic_batch=True):
    """Writes `module` as ONNX by torch.onnx.export.

    inputs: {name: example tensor}; dimension 0 of each is the batch, which is
    symbolic unless `dynamic_batch` is false. `opset`: None is the exporter's
    default. Raises ExportError.

    `optimize=False`: the dynamo exporter's optimizer is meant for inference. It
    merges parameters of equal value (all zero biases become one tensor), folds
    transposes into weights and calls the results val_23. Without it each
    parameter is one initializer, named and laid out as in the module. For the
    same reason the TorchScript exporter is told not to fold constants; it
    merges equal parameters all the same.
    """
    names = {"input_names": list(inputs), "output_names": [output],
             "opset_version": opset, "verbose": False}
    try:
        if exporter == "dynamo":
            # Stack traces would put this machine's paths into the file.
            torch.fx.config.do_not_emit_stack_traces = True
            batch = torch.export.Dim("batch")
            # Attention has other strides where a gradient is wanted, which
            # some passes of the exporter ask for and others do not.
            with torch.no_grad(), stop_gradient.marked():
                program = torch.onnx.export(
                    module, (), kwargs=inputs, dynamo=True, optimize=False,
                    custom_translation_table=exporter_fixes.DYNAMO,
                    dynamic_shapes={name: {0: batch} for name in inputs}
                    if dynamic_batch else None, **names)
            if dynamic_batch and isinstance(
                    program.model.graph.inputs[0].shape[0], int):
                raise FixedBatchError(
                    "the model's code fixes the batch size: export it with a "
                    "fixed one (--batch N, or check_module's --fixed-batch), "
                    "or add an adapter to models/hf_adapters.py")
            program.save(path, external_data=parameter_bytes(module)
                         > LARGEST_FILE)
        else:
            for operator, fix in exporter_fixes.TORCHSCRIPT.items():
                torch.onnx.register_custom_op_symbolic(operator, fix, 13)
            with stop_gradient.marked():
                torch.onnx.export(
                    module, tuple(inputs.values()), path, dynamo=False,
                    do_constant_folding=False,
                    dynamic_axes={name: {0: "batch"}
                                  for name in (*inputs, output)}
                    if dynamic_batch else None, **names)
        stop_gradient.define(path)
    except ExportError:
        raise
    except Exception as error:  # the exporters raise whatever they meet
        raise ExportError(hf.first_cause(error)) from error


def parameter_bytes(module):
    return sum(tensor.numel() * tensor.element_size()
               for tensor in module.state_dict().values())


def fixed_parameters(module):
    """Names of what PyTorch would not train, which ONNX does not say."""
    return [name for name, parameter in module.named_parameters()
            if not parameter.requires_grad]


def in_file(names, path):
    """Those of them that the ONNX file has: others have no effect on what
    was asked for."""
    graph = onnx.load(path, load_external_data=False).graph
    kept = {initializer.name for initializer in graph.initializer}
    return [name for name in names if name in kept]


def recipe_of(model, frozen, fixed_batch):
    """The text of a recipe to begin with. fixed_batch: None if symbolic."""
    names = [name for name, parameter in model.module.named_parameters()]
    no_decay = [pattern for pattern in ("*bias", "*norm*")
                if fnmatch.filter(names, pattern)]
    micro = fixed_batch or 1
    batch = fixed_batch or "micro_batch"
    lines = [] if fixed_batch else ["model: {bind: {batch: micro_batch}}"]
    if model.output == "logits":
        lines += ["inputs:", f"  labels: {{dtype: int64, shape: [{batch}, "
                  f"{model.sequence}]}}  # of the tokens; -100: don't count"]
        loss = "{logits: logits, labels: labels}"
    else:
        loss = f"{{kind: sum, output: {model.output}}}  # or another output"
    if model.images:
        lines.append("images: {" + ", ".join(
            f"{key}: {value}" for key, value in model.images.items()) + "}")
    lines += [f"loss: {loss}",
              f"parameters: {{trainable: ['*'], frozen: {frozen}}}",
              f"optimizer: {{lr: 1.0e-5, no_decay: {no_decay}, clip_norm: 1.0}}",
              "schedule: {kind: cosine, warmup_steps: 10}",
              f"batch: {{global: {16 * micro}, micro: {micro}}}",
              "steps: 100"]
    return "\n".join(lines) + "\n"


def write_recipe(path, text):
    """Unless there is another one."""
    if not path.exists():
        path.write_text(text)
    elif path.read_text() != text:
        print(f"kept {path}, which was there; a new one would be:\n{text}",
              end="")


def export_hf(args):
    """Exports the Hugging Face class of the command line. Returns the names of
    parameters that its code keeps as they are, and a recipe (None: of a
    skeleton)."""
    fixed = []

    def build():
        model = hf.build(args.hf, args.preset, args.set, args.sequence,
                         args.attention, args.padding, args.pretrained,
                         getattr(torch, args.dtype))
        fixed[:] = fixed_parameters(model.module)
        return model

    exporter, path = args.exporter or "dynamo", args.out / "model.onnx"
    try:
        if args.skeleton:
            skeleton.export(build, path, args.opset)
            return in_file(fixed, path), None
        model = build()
        if not args.pretrained:
            hf.initialize(model.module, SEED)
        export_onnx(model.module, model.example_inputs(args.batch or 3),
                    model.output, path, exporter, args.opset,
                    dynamic_batch=args.batch is None)
        fixed[:] = in_file(fixed, path)
        return fixed, recipe_of(model, fixed, args.batch)
    except torch.onnx.errors.OnnxExporterError as error:  # the skeleton's
        raise ExportError(
            f"{args.hf}: the {exporter} exporter says: {hf.first_cause(error)}"
        ) from error
    except ExportError as error:
        raise ExportError(
            f"{args.hf}: the {exporter} exporter says: {error}") from error


def export_own(args):
    """Exports the model of this folder that the command line names. Returns
    as export_hf."""
    own = MODELS[args.model]
    model = own.build(SEED)
    export_onnx(model.module, model.example_inputs(), model.output,
                args.out / "model.onnx", args.exporter or own.exporter,
                args.opset or own.opset)
    if own.compact:
        skeleton.strip_file(args.out / "model.onnx")
    if own.golden and not args.no_golden:
        own.golden(model, args.out / "golden")
    return fixed_parameters(model.module), None


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", nargs="?", choices=sorted(MODELS))
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="output folder (default: models/MODEL)")
    parser.add_argument("--opset", type=int, metavar="N",
                        help="ONNX operator set (default: the exporter's)")
    parser.add_argument("--exporter", choices=EXPORTERS,
                        help="default: dynamo, or the model's own")
    parser.add_argument("--no-golden", action="store_true",
                        help="write the ONNX file only")
    group = parser.add_argument_group("Hugging Face classes")
    group.add_argument("--hf", metavar="CLASS",
                       help="a model class of transformers")
    group.add_argument("--pretrained", metavar="DIR",
                       help="with these weights: a folder, or a name of the hub;\n"
                            "--hf is then the class that its config names")
    group.add_argument("--dtype", default="float32",
                       choices=("float32", "bfloat16", "float16"),
                       help="of pretrained weights in the file")
    group.add_argument("--preset", choices=("tiny", "full"), default="full",
                       help="the config's defaults (full), or shrunk")
    group.add_argument("--set", action="append", default=[],
                       metavar="KEY=VALUE",
                       help="a value of the config, dotted; repeatable")
    group.add_argument("--attention", choices=("sdpa", "eager"),
                       help="as PyTorch's op, or decomposed (default: the\n"
                            "class's own)")
    group.add_argument("--padding", action="store_true",
                       help="with an input attention_mask")
    group.add_argument("--sequence", type=int, metavar="N",
                       help="tokens per sample (default: image rows and a few\n"
                            "words for tiny, at most 2048 for full)")
    group.add_argument("--skeleton", action="store_true",
                       help="without weights, which take no memory then;\n"
                            "batch and sequence are symbolic (skeleton.py)")
    group.add_argument("--batch", type=int, metavar="N",
                       help="a fixed batch size (default: symbolic `batch`)")
    args = parser.parse_args()
    if (args.model is None) == (args.hf is None and args.pretrained is None):
        parser.error("name one of this folder's models, --hf CLASS or "
                     "--pretrained DIR")
    if args.model is None and not args.out:
        parser.error("--hf and --pretrained need --out DIR")
    if args.pretrained and (args.skeleton or args.preset != "full"):
        parser.error("--pretrained has its own size and weights: leave out "
                     "--skeleton and --preset")
    if args.skeleton and (args.batch or args.exporter == "torchscript"):
        parser.error("--skeleton is for a symbolic batch and the dynamo "
                     "exporter")
    args.out = args.out or pathlib.Path(__file__).parent / args.model
    return args


def main():
    args = parse_arguments()
    # Sums over threads would make the golden depend on the machine's cores.
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        if args.pretrained and not args.hf:
            args.hf = hf.class_of(args.pretrained)
        with output_to(args.out / "export.log" if args.hf else os.devnull):
            fixed, recipe = (export_hf if args.hf else export_own)(args)
    except (ExportError, hf.BuildError, hf.SettingError) as error:
        sys.exit(f"error: {error}")
    if recipe:
        write_recipe(args.out / "recipe.yaml", recipe)
    elif fixed:
        print("PyTorch does not train these; say so in the recipe:\n"
              f"parameters: {{trainable: ['*'], frozen: {fixed}}}")


if __name__ == "__main__":
    main()
