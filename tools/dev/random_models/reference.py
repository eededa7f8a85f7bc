"""Losses of a model, and derivatives along directions, by onnx's reference evaluator in f64."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

STEP = 1e-5


class GatherElements(OpRun):
    """Also of an index that is smaller in other dimensions of one element, which the evaluator's own refuses."""

    op_domain = ""

    def _run(self, data, indices, axis=0):
        return (numpy.take_along_axis(data, indices, axis),)


def in_f64(path) -> onnx.ModelProto:
    model = onnx.load(path)
    for tensor in list(model.graph.initializer):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype("f8"), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype("f8")))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
        if node.op_type in ("LayerNormalization", "RMSNormalization"):
            node.attribute.append(helper.make_attribute("stash_type", TensorProto.DOUBLE))
    return model


def token_loss(logits: numpy.ndarray, labels: numpy.ndarray, shift: bool) -> float:
    if shift:
        logits, labels = logits[:, :-1], labels[:, 1:]
    most = logits.max(-1, keepdims=True)
    logs = logits - most - numpy.log(numpy.exp(logits - most).sum(-1, keepdims=True))
    counts = labels != -100
    picked = numpy.take_along_axis(logs, numpy.where(counts, labels, 0)[..., None], -1)[..., 0]
    return float(-(picked * counts).sum() / max(counts.sum(), 1))


class Loss:
    """Of values of parameters."""

    def __init__(self, path, samples: list[dict], random):
        model = in_f64(path)
        names = [value.name for value in model.graph.input]
        kept = [tensor for tensor in model.graph.initializer if tensor.name not in random.graph.parameters]
        parameters = [tensor for tensor in model.graph.initializer if tensor.name in random.graph.parameters]
        model.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in parameters)
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        self.values = {tensor.name: numpy_helper.to_array(tensor) for tensor in parameters}
        self._evaluator = ReferenceEvaluator(model, new_ops=[GatherElements])
        self._inputs = {name: numpy.stack([sample[name] for sample in samples]) for name in names}
        self._inputs = {name: value.astype("f8") if value.dtype == numpy.float32 else value for name, value in self._inputs.items()}
        self._labels = numpy.stack([sample["labels"] for sample in samples]) if random.labels else None
        self._shift = random.shift

    def __call__(self, values: dict) -> float:
        out = self._evaluator.run(None, {**self._inputs, **values})[0]
        return float(out) if self._labels is None else token_loss(out, self._labels, self._shift)


def slope(loss: Loss, directions: dict) -> float:
    ends = [loss({name: value + sign * STEP * directions.get(name, 0) for name, value in loss.values.items()}) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * STEP)


def compare(path, samples: list[dict], random, measured: dict, much: float):
    """Relative errors of the loss, and of the derivative along a direction that each gradient is in; and, where that is above `much`, parameters that it is
    wrong for. None: the evaluator can't."""
    try:
        loss = Loss(path, samples, random)
        expected = loss(loss.values)
    except Exception:  # noqa: BLE001: whatever the evaluator lacks
        return None
    if not numpy.isfinite(expected):  # its logarithm of a softmax is that of 0
        return None
    rng = numpy.random.default_rng(0)
    norms = {name: numpy.linalg.norm(gradient.astype("f8")) for name, gradient in measured["gradients"].items()}
    most = max(norms.values())
    directions = {}
    for name, gradient in measured["gradients"].items():
        noise = rng.standard_normal(gradient.shape)
        unit = gradient.astype("f8") / (norms[name] or 1) + noise / (numpy.linalg.norm(noise) or 1)
        directions[name] = unit / max(norms[name], 1e-2 * most, 1e-12) * most / 3

    def error(names) -> float:
        wanted = slope(loss, {name: directions[name] for name in names})
        own = sum(float((measured["gradients"][name].astype("f8") * directions[name]).sum()) for name in names)
        return abs(own - wanted) / max(abs(wanted), 1e-3 * most)

    off = abs(measured["losses"][0] - expected) / max(abs(expected), 1e-2)
    total = error(list(directions))
    where = ""
    if total > much:
        each = {name: error([name]) for name in directions}
        where = ", ".join(f"{name} {each[name]:.2g}" for name in sorted(each, key=each.get, reverse=True)[:5])
        total = max(each.values())  # if each is right, the direction of all goes over a kink, or to other experts
    return off, total, where
