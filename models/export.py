#!/usr/bin/env python3
"""Exports a model of this folder to ONNX, with PyTorch's numbers beside it.

    models/export.py llava_tiny   # writes models/llava_tiny/{model.onnx,golden/}
    models/export.py llava_30m --out build/models/llava_30m

Needs torch, transformers, onnx, onnxscript, safetensors and numpy from PyPI;
nothing is downloaded from a model hub. To add a model, add a line to MODELS.
"""

import argparse
import dataclasses
import pathlib
from collections.abc import Callable

import torch

import golden
import llava

SEED = 0


@dataclasses.dataclass(frozen=True)
class Model:
    """One exportable model.

    build: seed -> module whose forward takes the graph's inputs by name and
      returns its one output.
    example_inputs: () -> {input name: tensor}; dimension 0 is the batch.
    output: the output's name in the graph.
    golden: (module, folder) -> None, writes PyTorch's numbers; or None.
    """
    build: Callable
    example_inputs: Callable
    output: str
    golden: Callable | None = None


MODELS = {
    "llava_tiny": Model(build=lambda seed: llava.build(llava.TINY, seed),
                        example_inputs=llava.example_inputs,
                        output="logits",
                        golden=golden.write),
    "llava_30m": Model(build=lambda seed: llava.build(llava.MEDIUM_30M, seed),
                       example_inputs=llava.example_inputs,
                       output="logits"),
}


def export_onnx(model, module, path):
    """Writes `module` as ONNX by torch.onnx.export, the dynamo one.

    `optimize=False`: the exporter's optimizer is meant for inference. It merges
    parameters of equal value (all zero biases become one tensor), folds
    transposes into weights and calls the results val_23. Without it each
    parameter is one initializer, named and laid out as in the module.
    """
    inputs = model.example_inputs()
    batch = torch.export.Dim("batch")
    # Stack traces would put this machine's paths into the file.
    torch.fx.config.do_not_emit_stack_traces = True
    program = torch.onnx.export(
        module, (), kwargs=inputs, dynamo=True, optimize=False,
        input_names=list(inputs), output_names=[model.output],
        dynamic_shapes={name: {0: batch} for name in inputs})
    path.parent.mkdir(parents=True, exist_ok=True)
    program.save(path, external_data=False)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="output folder (default: models/MODEL)")
    parser.add_argument("--no-golden", action="store_true",
                        help="write the ONNX file only")
    args = parser.parse_args()

    # Sums over threads would make the golden depend on the machine's cores.
    torch.set_num_threads(1)
    model = MODELS[args.model]
    out = args.out or pathlib.Path(__file__).parent / args.model
    module = model.build(SEED)
    export_onnx(model, module, out / "model.onnx")
    if model.golden and not args.no_golden:
        model.golden(module, out / "golden")


if __name__ == "__main__":
    main()
