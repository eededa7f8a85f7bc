#!/usr/bin/env python3
"""Writes ONNX's node tests, which its Python package generates, in the layout of ONNX's own data:

    write_cases.py FOLDER    FOLDER/NAME/model.onnx, FOLDER/NAME/test_data_set_0/{input,output}_N.pb

Needs the package onnx (tools/setup.sh installs it in a virtualenv for this).
"""
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")  # the cases divide by zero on purpose

import numpy as np
import onnx
from onnx.backend.test.case import node


def to_proto(value, info):
    if isinstance(value, onnx.TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return onnx.numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return onnx.numpy_helper.from_optional(value, info.name)
    return onnx.numpy_helper.from_array(np.asarray(value), info.name)


def write(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        graph = case.model.graph
        for name, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for j, (value, info) in enumerate(zip(values, infos)):
                (data / f"{name}_{j}.pb").write_bytes(to_proto(value, info).SerializeToString())


def main():
    folder = pathlib.Path(sys.argv[1])
    np.random.seed(0)
    cases = node.collect_testcases()
    for case in cases:
        write(case, folder / case.name)
    print(f"{len(cases)} cases in {folder}")


if __name__ == "__main__":
    main()
