#!/usr/bin/env python3
"""Times the training step of ONNX Runtime's training artifacts on an ONNX file: step_time's second baseline.

    bench/step_time_ort.py --model models/llava_tiny/model.onnx --threads 2

Needs the virtualenv with onnxruntime-training (tools/setup.sh --ort-training), which can't share one with onnxruntime. The
artifacts are generated from the file as it is, with the token cross-entropy, gradient clipping by global norm and AdamW.
A step is train_step (forward, loss, backward), the optimizer's step and lazy_reset_grad. Batches are those of the
golden shards, in order. Prints one JSON object; keys as in step_time_torch.py.
"""

import argparse
import importlib.metadata
import json
import logging
import pathlib
import resource
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnxruntime.training import api, artifacts, onnxblock

import golden_batches

WARMUP_STEPS = 3
LEARNING_RATE, BETAS, EPS, WEIGHT_DECAY, CLIP_NORM = 1e-3, (0.9, 0.95), 1e-8, 0.05, 1.0
IGNORE = -100


class TokenCrossEntropy(onnxblock.Block):
    """Position i predicts the label of position i + 1; the mean over labels that count."""

    def build(self, logits):
        graph = self.base.graph
        batch, sequence = next(o for o in graph.output if o.name == logits).type.tensor_type.shape.dim[:2]
        labels = onnx.helper.make_tensor_value_info("labels", onnx.TensorProto.INT64, None)
        labels.type.tensor_type.shape.dim.extend([batch, sequence])
        graph.input.append(labels)

        def constant(name, values):
            graph.initializer.append(onnx.numpy_helper.from_array(np.array(values, np.int64), f"loss.{name}"))
            return f"loss.{name}"

        first, one = constant("zero", [0]), constant("one", [1])
        last, end, axis = constant("last", [-1]), constant("end", [2**31 - 1]), constant("axis", [1])
        make = onnx.helper.make_node
        graph.node.extend([
            make("Slice", [logits, first, last, axis], ["loss.scores"], name="loss.scores"),
            make("Slice", ["labels", one, end, axis], ["loss.targets"], name="loss.targets"),
            # Classes are dimension 1.
            make("Transpose", ["loss.scores"], ["loss.classes"], name="loss.classes", perm=[0, 2, 1]),
            make("SoftmaxCrossEntropyLoss", ["loss.classes", "loss.targets"], ["loss.value", "loss.log_prob"],
                 name="loss.value", reduction="mean", ignore_index=IGNORE),
        ])
        return "loss.value"


def load_trainable(path):
    """The model with what ONNX Runtime 1.19's gradients ask for. Its values are the same.

    CastLike has no gradient there: it becomes the Cast that it stands for. LayerNormalization's reads
    the mean and inverse deviation, which are optional outputs that exporters leave out.
    """
    model = onnx.load(path)
    graph = onnx.shape_inference.infer_shapes(model).graph
    types = {v.name: v.type.tensor_type.elem_type for v in [*graph.value_info, *graph.input]}
    types.update((t.name, t.data_type) for t in graph.initializer)
    for index, node in enumerate(model.graph.node):
        if node.op_type == "CastLike":
            node.attribute.append(onnx.helper.make_attribute("to", types[node.input[1]]))
            node.op_type = "Cast"
            del node.input[1:]
        elif node.op_type == "LayerNormalization" and len(node.output) == 1:
            node.output.extend([f"mean.{index}", f"inverse_deviation.{index}"])
    return model


def make_artifacts(model_path, folder):
    model = load_trainable(model_path)
    # PyTorch's exporter says which initializers are parameters, and which are buffers (the rotary table).
    parameters = {t.name for t in [*model.graph.value_info, *model.graph.initializer] for entry in t.metadata_props
                  if entry.key.endswith("InputSpec.kind") and entry.value == "PARAMETER"}
    trainable = [t.name for t in model.graph.initializer if t.name in parameters]
    artifacts.generate_artifacts(
        model, requires_grad=trainable, loss=TokenCrossEntropy(),
        optimizer=onnxblock.optim.AdamW(betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY,
                                        clip_grad=onnxblock.optim.ClipGradNorm(CLIP_NORM)),
        artifact_directory=folder)
    # The order of decay and update is PyTorch's in mode 0; the block always writes mode 1. The IR version is that of
    # the onnx package, which may be newer than what this runtime reads.
    path = folder / "optimizer_model.onnx"
    optimizer = onnx.load(path)
    optimizer.ir_version = model.ir_version
    for node in optimizer.graph.node:
        for attribute in node.attribute:
            if attribute.name == "adam_mode":
                attribute.i = 0
    onnx.save(optimizer, path)
    return len(trainable)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True, type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)

    batches = golden_batches.read(args.batch)
    names = [i.name for i in onnx.load(args.model, load_external_data=False).graph.input] + ["labels"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        parameters = make_artifacts(args.model, folder)
        state = api.CheckpointState.load_checkpoint(folder / "checkpoint")
        module = api.Module(folder / "training_model.onnx", state, folder / "eval_model.onnx", session_options=options)
        optimizer = api.Optimizer(folder / "optimizer_model.onnx", module)
    optimizer.set_learning_rate(LEARNING_RATE)
    module.train()

    def step(index):
        batch = batches[index % len(batches)]
        loss = module(*(batch[name] for name in names))
        optimizer.step()
        module.lazy_reset_grad()
        return float(loss)

    start = time.perf_counter()
    losses = [step(i) for i in range(WARMUP_STEPS)]
    warmup = time.perf_counter() - start
    times = []
    for i in range(WARMUP_STEPS, WARMUP_STEPS + args.steps):
        start = time.perf_counter()
        losses.append(step(i))
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({
        "model": str(args.model), "threads": args.threads, "batch": args.batch, "steps": args.steps,
        "onnxruntime_training": importlib.metadata.version("onnxruntime-training"), "parameter_tensors": parameters,
        "step_ms": statistics.median(times), "step_ms_min": min(times),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "warmup_s": warmup, "losses": losses}))


if __name__ == "__main__":
    sys.exit(main())
