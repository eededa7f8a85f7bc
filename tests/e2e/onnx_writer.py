"""Writes small ONNX models without the onnx package: protobuf's encoding of what the tests need.

    graph = Graph()
    graph.input("x", numpy.float32, ["batch", 4])
    graph.initializer("w", numpy.ones((4, 3), "f4"))
    graph.node("MatMul", ["x", "w"], "y")
    graph.output("y", numpy.float32, ["batch", 3])
    path.write_bytes(graph.model())

Field numbers: onnx.proto of ONNX 1.14.
"""

import numpy

# bf16 by its bits: numpy has none.
DTYPES = {numpy.dtype("f4"): 1, numpy.dtype("i4"): 6, numpy.dtype("i8"): 7, numpy.dtype("?"): 9, numpy.dtype("f2"): 10,
          numpy.dtype("u2"): 16}


def varint(number: int) -> bytes:
    number &= 2**64 - 1  # negative numbers take ten bytes
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number: int, value) -> bytes:
    """One field: a number, or length-delimited bytes or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name: str, value) -> bytes:
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)  # INT
    if isinstance(value, float):
        return field(1, name) + varint(2 << 3 | 5) + numpy.float32(value).tobytes() + field(20, 1)  # FLOAT
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)  # STRING
    if isinstance(value, Graph):
        return field(1, name) + field(6, value.content()) + field(20, 5)  # GRAPH
    return field(1, name) + b"".join(field(8, item) for item in value) + field(20, 7)  # INTS


def value_info(name: str, dtype, shape: list) -> bytes:
    dims = b"".join(field(1, field(1, dim) if isinstance(dim, int) else field(2, dim)) for dim in shape)
    tensor = field(1, DTYPES[numpy.dtype(dtype)]) + field(2, dims)
    return field(1, name) + field(2, field(1, tensor))


class Graph:
    def __init__(self):
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.domains = set()

    def input(self, name: str, dtype, shape: list) -> None:
        self.inputs.append(value_info(name, dtype, shape))

    def output(self, name: str, dtype, shape: list) -> None:
        self.outputs.append(value_info(name, dtype, shape))

    def initializer(self, name: str, value: numpy.ndarray) -> str:
        dims = b"".join(field(1, dim) for dim in value.shape)
        self.initializers.append(
            dims + field(2, DTYPES[value.dtype]) + field(8, name) + field(9, value.tobytes()))
        return name

    def external_initializer(self, name: str, shape: tuple[int, ...], file: str) -> str:
        """f32 values at the start of a file beside the model; it need not be there."""
        place = {"location": file, "offset": 0, "length": 4 * int(numpy.prod(shape))}
        entries = (field(1, key) + field(2, str(value)) for key, value in place.items())
        self.initializers.append(
            b"".join(field(1, dim) for dim in shape) + field(2, DTYPES[numpy.dtype("f4")]) + field(8, name)
            + b"".join(field(13, entry) for entry in entries) + field(14, 1))  # EXTERNAL
        return name

    def node(self, op: str, inputs: list[str], output: str, **attributes) -> str:
        return self.node_of_several(op, inputs, [output], **attributes)[0]

    def node_of_several(self, op: str, inputs: list[str], outputs: list[str], **attributes) -> list[str]:
        """A node of several outputs, with the first one's name; `op` may have a domain, "com.microsoft.Gelu"."""
        content = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
        domain, _, name = op.rpartition(".")
        content += field(3, outputs[0]) + field(4, name) + (field(7, domain) if domain else b"")
        self.domains.add(domain)
        content += b"".join(field(5, attribute(name, value)) for name, value in attributes.items())
        self.nodes.append(content)
        return outputs

    def content(self) -> bytes:
        graph = b"".join(field(1, node) for node in self.nodes) + field(2, "g")
        graph += b"".join(field(5, tensor) for tensor in self.initializers)
        graph += b"".join(field(11, value) for value in self.inputs)
        return graph + b"".join(field(12, value) for value in self.outputs)

    def model(self, opset: int = 20) -> bytes:
        others = b"".join(field(8, field(1, domain) + field(2, 1)) for domain in sorted(self.domains - {""}))
        return field(1, 9) + field(7, self.content()) + field(8, field(2, opset)) + others
