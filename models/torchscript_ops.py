"""ATen operators that PyTorch's TorchScript exporter lacks or exports wrongly.

Hugging Face's causal masks use both, to find sequences packed into one.
"""

import sys

import torch
from torch.onnx import symbolic_helper


@symbolic_helper.parse_args("v", "i", "i", "v", "v")
def diff(g, tensor, n, dim, prepend, append):
    """torch.diff for n = 1."""
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
    """torch.cumsum; of booleans it is int64, which the exporter forgets."""
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


def register():
    """Tells the TorchScript exporter of this process."""
    for name in ("diff", "cumsum"):
        torch.onnx.register_custom_op_symbolic(f"aten::{name}",
                                               globals()[name], 13)
