"""Complex numbers, of which ONNX has no tensors, as pairs of real ones.

    with hf_complex.RealPairs():  # and replace_buffers(module) once
        outputs = module(...)

What `torch.polar` and `torch.view_as_complex` make is a `Pairs`. It knows what
rotary embeddings take: products, indexing of the other dimensions, and
reshaping.
"""

import torch
from torch.overrides import TorchFunctionMode


class Pairs:
    """A complex tensor as the real tensor `pairs` [.., 2]: real, imaginary."""

    def __init__(self, pairs):
        self.pairs = pairs
        self.device = pairs.device
        self.shape = pairs.shape[:-1]
        self.ndim = pairs.ndim - 1

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.view_as_real:
            return args[0].pairs
        if function in (torch.Tensor.mul, torch.Tensor.__mul__):
            return args[1] * args[0]
        return NotImplemented

    def __mul__(self, other):
        if isinstance(other, torch.Tensor) and other.is_complex():
            other = Pairs(torch.view_as_real(other))
        if not isinstance(other, Pairs):
            scale = other
            if isinstance(scale, torch.Tensor):
                scale = scale.unsqueeze(-1)
            return Pairs(self.pairs * scale)
        (real, imaginary), (real2, imaginary2) = (
            pairs.pairs.unbind(-1) for pairs in (self, other))
        return Pairs(torch.stack(
            (real * real2 - imaginary * imaginary2,
             real * imaginary2 + imaginary * real2), -1))

    __rmul__ = __mul__

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in index:
            index = (*index, slice(None))
        return Pairs(self.pairs[index])

    def view(self, *shape):
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = shape[0]
        return Pairs(self.pairs.view(*shape, 2))

    def unsqueeze(self, dim):
        return Pairs(self.pairs.unsqueeze(dim if dim >= 0 else dim - 1))

    def to(self, *arguments, **options):
        return Pairs(self.pairs.to(*arguments, **options))


class RealPairs(TorchFunctionMode):
    """The context; see above."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.view_as_complex:
            return Pairs(args[0])
        if function is torch.polar:
            size, angle = args
            return Pairs(torch.stack(
                (size * angle.cos(), size * angle.sin()), -1))
        return function(*args, **(kwargs or {}))


def replace_buffers(module):
    """Complex buffers of the module and of its parts become `Pairs`."""
    for part in module.modules():
        for name, buffer in list(part.named_buffers(recurse=False)):
            if buffer.is_complex():
                delattr(part, name)
                setattr(part, name, Pairs(torch.view_as_real(buffer)))
