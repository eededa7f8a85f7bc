"""Skeletons: full-size models as ONNX graphs without their weights.

A skeleton is an ordinary ONNX file whose parameters are external tensors in a
file that does not exist (`model.onnx.data` beside `model.onnx`), as if a model
had been downloaded without its weights. Buffers (rotary tables, position ids)
are inside. Parameters are never filled: a model of 100 B parameters exports in
1.2 GB of memory.

    export(lambda: hf.build("LlamaForCausalLM"), "llama/model.onnx")
"""

import ast
import contextlib
import pathlib

import onnx
import onnx_ir
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import exporter_fixes
import stop_gradient

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
SCOPES = "pkg.torch.onnx.name_scopes"


@contextlib.contextmanager
def fake_parameters():
    """Modules built in this context have parameters without storage.

    Their buffers are real, because the graph holds their values. (Under
    torch.device("meta") both would be empty.)
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    register = torch.nn.Module.register_parameter

    def register_fake(module, name, parameter):
        if parameter is not None and not isinstance(parameter, FakeTensor):
            with mode:
                data = torch.empty(parameter.shape, dtype=parameter.dtype)
            parameter = torch.nn.Parameter(
                data, requires_grad=parameter.requires_grad)
        register(module, name, parameter)

    torch.nn.Module.register_parameter = register_fake
    try:
        yield mode
    finally:
        torch.nn.Module.register_parameter = register


def export(build, path, opset=None):
    """Writes the skeleton of the `hf.Model` that `build()` returns.

    `batch` is symbolic and, in a model that predicts tokens, `sequence` too.
    `opset`: None is the exporter's default.
    """
    # Stack traces would put this machine's paths into the file.
    torch.fx.config.do_not_emit_stack_traces = True
    with fake_parameters() as mode:
        model = build()
    inputs = {name: mode.from_tensor(tensor)
              for name, tensor in model.example_inputs(batch=2).items()}
    # `optimize=False`: see export.py; and folding would want values.
    with stop_gradient.marked():
        program = torch.onnx.export(
            model.module, (), kwargs=inputs, dynamo=True, optimize=False,
            input_names=list(inputs), output_names=[model.output],
            custom_translation_table=exporter_fixes.DYNAMO,
            dynamic_shapes=dynamic_shapes(model),
            opset_version=opset, verbose=False)
    path = pathlib.Path(path)
    make_external(program.model, path.name + ".data")
    proto = onnx_ir.to_proto(program.model)
    strip(proto)
    stop_gradient.define_in(proto)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(proto.SerializeToString(deterministic=True))


def dynamic_shapes(model):
    """For torch.export: what is symbolic in each input of an `hf.Model`."""
    batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence")

    def symbols(dtype, shape):
        has_tokens = model.output == "logits" and not dtype.is_floating_point
        return {0: batch, **{axis: sequence
                             for axis, size in enumerate(shape, 1)
                             if has_tokens and size == model.sequence}}
    return {name: symbols(*described)
            for name, described in model.inputs.items()}


def make_external(model, location):
    """Points each parameter of an onnx_ir.Model into the file `location`."""
    offset = 0
    for name, value in model.graph.initializers.items():
        if value.metadata_props.get(KIND) == "PARAMETER":
            tensor = value.const_value
            value.const_value = onnx_ir.ExternalTensor(
                location, offset, tensor.nbytes, tensor.dtype,
                shape=tensor.shape, name=name)
            offset += tensor.nbytes


def strip(proto):
    """Removes what describes the graph to people and is most of the file.

    What stays is what Oriel reads: what each initializer was in PyTorch, and
    each node's module.
    """
    kinds = {info.name: entry.value for info in proto.graph.value_info
             for entry in info.metadata_props if entry.key == KIND}
    del proto.graph.value_info[:]
    del proto.metadata_props[:]
    proto.ClearField("doc_string")
    proto.graph.ClearField("doc_string")
    for tensor in proto.graph.initializer:
        tensor.ClearField("doc_string")
        del tensor.metadata_props[:]
        if tensor.name in kinds:
            tensor.metadata_props.add(key=KIND, value=kinds[tensor.name])
    for node in proto.graph.node:
        strip_node(node)


def strip_file(path):
    """`strip` for a file with its weights inside."""
    proto = onnx.load(path)
    strip(proto)
    path.write_bytes(proto.SerializeToString(deterministic=True))


def strip_node(node):
    scopes = [entry.value for entry in node.metadata_props
              if entry.key == SCOPES]
    del node.metadata_props[:]
    node.ClearField("doc_string")
    for attribute in node.attribute:
        attribute.ClearField("doc_string")
    if node.op_type == "Constant":
        node.ClearField("name")  # it goes by its output's
    elif scopes:
        # The innermost module and the operation; the others are its prefixes.
        inner = ast.literal_eval(scopes[0])[-2:]
        node.metadata_props.add(key=SCOPES, value=repr(inner))
