"""What a class computes from constants alone, computed while it is traced.

Hugging Face describes images by small tensors (sizes, grids, masks), takes them
apart in Python, and makes indices, positions and loops of them. In training
they are constants, but a tracer hides the values of tensors. Within
`KnownValues()` a tensor made from numbers has a value, and so has what follows
from such tensors alone; it enters the graph as a constant where it meets the
batch.
"""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

_FACTORIES = {torch.arange, torch.as_tensor, torch.eye, torch.full,
              torch.linspace, torch.ones, torch.tensor, torch.zeros}


class Known(torch.Tensor):
    """A tensor with a value, outside of the graph."""
    __torch_function__ = torch._C._disabled_torch_function_impl


class KnownValues(TorchFunctionMode):
    """The context; see above."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        leaves = pytree.tree_leaves((args, kwargs or {}))
        known = any(isinstance(leaf, Known) for leaf in leaves)
        traced = any(isinstance(leaf, torch.Tensor | torch.SymInt) and
                     not isinstance(leaf, Known) for leaf in leaves)
        if function is torch.Tensor.__getitem__:
            args = args[0], _without_masks(args[1])
        args, kwargs = pytree.tree_map(_plain, (args, kwargs or {}))
        if traced or not (known or function in _FACTORIES):
            if leaves and isinstance(leaves[0], Known) and _writes(function):
                raise NotImplementedError("a constant is given values of the "
                                          f"batch by {function.__name__}")
            return function(*args, **kwargs)
        kwargs.pop("device", None)
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            result = function(*args, **kwargs)
        return pytree.tree_map_only(torch.Tensor,
                                    lambda tensor: tensor.as_subclass(Known),
                                    result)


def _plain(value):
    """`value` for a function that is to know nothing of `Known`."""
    if isinstance(value, slice):
        return slice(*map(_number, (value.start, value.stop, value.step)))
    if isinstance(value, Known):
        return value.as_subclass(torch.Tensor)
    return value


def _without_masks(index):
    """Known masks as the positions that they select, whose number is known."""
    index = list(index) if isinstance(index, tuple) else [index]
    for i in reversed(range(len(index))):
        if isinstance(index[i], Known) and index[i].dtype == torch.bool:
            with _disable_current_modes():
                index[i:i + 1] = _plain(index[i]).nonzero(as_tuple=True)
    return tuple(index)


def _number(value):
    if not isinstance(value, Known):
        return value
    with _disable_current_modes():
        return _plain(value).item()


def _writes(function):
    name = function.__name__
    return name == "__setitem__" or name.endswith("_") and name[-2] != "_"
