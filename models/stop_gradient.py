"""Where a gradient stops, in ONNX.

The format can't say that PyTorch's `detach` ends a gradient: exporters leave it
out. Here it becomes a node `ai.oriel::StopGradient`, which Oriel trains as
PyTorch does, and which is a function in the file, the identity: other tools run
it as that.

    with stop_gradient.marked():          # what the model detaches
        torch.onnx.export(..)             # dynamo=True or False
    stop_gradient.define(path)            # adds the function

Code of PyTorch's own that detaches (spectral norms) is left as it is, and what is
computed within `torch.no_grad()` is trained through.
"""

import contextlib
import sys

import onnx
import torch

DOMAIN, NAME = "ai.oriel", "StopGradient"
_detach = torch.Tensor.detach


class _Stop(torch.autograd.Function):
    """For the TorchScript exporter."""

    @staticmethod
    def forward(_, tensor):
        return tensor.clone()

    @staticmethod
    def backward(_, gradient):
        return None

    @staticmethod
    def symbolic(g, tensor):
        return g.op(f"{DOMAIN}::{NAME}", tensor).setType(tensor.type())


def stop_gradient(tensor):
    """`tensor.detach()`, which both exporters write down."""
    if not torch.onnx.is_in_onnx_export():
        return _detach(tensor)
    if torch.jit.is_tracing():
        return _Stop.apply(tensor)
    return torch.onnx.ops.symbolic(f"{DOMAIN}::{NAME}", (tensor,),
                                   dtype=tensor.dtype, shape=tensor.shape,
                                   version=1)


@contextlib.contextmanager
def marked():
    """Exports within it write down what the model detaches."""
    def detach(tensor):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        own = caller == "torch" or caller.startswith("torch.")
        return _detach(tensor) if own else stop_gradient(tensor)

    torch.Tensor.detach = detach
    try:
        yield
    finally:
        torch.Tensor.detach = _detach


def define(path):
    """Adds the function to a file whose nodes call it."""
    model = onnx.load(path, load_external_data=False)
    if define_in(model):
        onnx.save(model, path)


def define_in(model):
    """Whether it had to be added."""
    called = any(node.domain == DOMAIN and node.op_type == NAME
                 for graph in _graphs(model.graph) for node in graph.node)
    there = any((function.domain, function.name) == (DOMAIN, NAME)
                for function in model.functions)
    if not called or there:
        return False
    if all(opset.domain != DOMAIN for opset in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    version = next(opset.version for opset in model.opset_import
                   if opset.domain in ("", "ai.onnx"))
    model.functions.append(onnx.helper.make_function(
        DOMAIN, NAME, ["x"], ["y"],
        [onnx.helper.make_node("Identity", ["x"], ["y"])],
        [onnx.helper.make_opsetid("", version)]))
    return True


def _graphs(graph):
    """The graph and those within its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _graphs(inner)
