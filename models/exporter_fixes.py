"""ATen operators that PyTorch 2.15's ONNX exporters lack or export wrongly.

Hugging Face's causal masks use `diff` and `cumsum` to find sequences that were
packed into one; the patch embedding of Qwen2-VL is a `conv3d` without a bias;
scans of linear recurrences in logarithms (minGRU) are a `logcumsumexp`.
"""

import sys

import torch
from onnxscript import opset18
from torch.onnx import symbolic_helper


def conv3d(tensor, weight, bias=None, stride=(1, 1, 1), padding=(0, 0, 0),
           dilation=(1, 1, 1), groups=1):
    """aten::conv3d for the dynamo exporter, which gives one without a bias
    zeros of shape [channels, 2] for it."""
    inputs = (tensor, weight) if bias is None else (tensor, weight, bias)
    return opset18.Conv(*inputs, strides=list(stride), group=groups,
                        pads=[*padding, *padding], dilations=list(dilation))


def logcumsumexp(tensor, dim):
    """aten::logcumsumexp for the dynamo exporter, which takes the logarithm
    of sums that underflow where a row spans more than f32's exponents. Here
    each of log2(n) steps adds what lies 1, 2, 4, .. in front."""
    size, rank = tensor.shape[dim], len(tensor.shape)
    dim %= rank
    distance = 1
    while distance < size:
        pads = [0] * (2 * rank)
        pads[dim] = distance
        shifted = opset18.Slice(opset18.Pad(tensor, pads, LOWEST), [0], [size],
                                [dim])
        larger = opset18.Max(tensor, shifted)
        total = opset18.Add(opset18.Exp(opset18.Sub(tensor, larger)),
                            opset18.Exp(opset18.Sub(shifted, larger)))
        tensor = opset18.Add(larger, opset18.Log(total))
        distance *= 2
    return tensor


LOWEST = -1e30  # with room for sums
DYNAMO = {torch.ops.aten.conv3d.default: conv3d,
          torch.ops.aten.logcumsumexp.default: logcumsumexp}


@symbolic_helper.parse_args("v", "i", "i", "v", "v")
def diff(g, tensor, n, dim, prepend, append):
    """aten::diff for n = 1, which the TorchScript exporter lacks."""
    if n != 1:
        return symbolic_helper._unimplemented("diff", "n is not 1")
    parts = [part for part in (prepend, tensor, append)
             if not symbolic_helper._is_none(part)]
    joined = g.op("Concat", *parts, axis_i=dim)
    later, earlier = (
        symbolic_helper._slice_helper(g, joined, axes=[dim], starts=[start],
                                      ends=[end])
        for start, end in ((1, sys.maxsize), (0, -1)))
    return g.op("Sub", later, earlier)


@symbolic_helper.parse_args("v", "i", "v")
def cumsum(g, tensor, dim, dtype):
    """aten::cumsum for the TorchScript exporter, which forgets that the sum of
    booleans is an int64."""
    result = None
    if not symbolic_helper._is_none(dtype):
        result = symbolic_helper._get_const(dtype, "i", "dtype")
        result = torch.onnx.JitScalarType(result)
    elif symbolic_helper._is_bool(tensor):
        result = torch.onnx.JitScalarType.INT64
    if result is not None:
        tensor = g.op("Cast", tensor, to_i=result.onnx_type())
    axis = g.op("Constant", value_t=torch.tensor(dim))
    return g.op("CumSum", tensor, axis)


TORCHSCRIPT = {"aten::diff": diff, "aten::cumsum": cumsum}
