#!/usr/bin/env python3
"""Writes the skeletons of this folder: full-size models without weights.

    models/skeletons/build.py                      # all, into this folder
    models/skeletons/build.py llama_2_70b --out /tmp/skeletons

NAME/config.json holds a model's figures (README.md says from where). Needs
what models/export.py needs; a 100 B model takes minutes and 1.2 GB of memory.
"""

import argparse
import json
import pathlib
import sys
import warnings

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import hf
import skeleton


def flatten(tree, prefix=""):
    """{"a": {"b": 1}} as the settings of hf.build, ["a.b=1"]."""
    settings = []
    for key, value in tree.items():
        if isinstance(value, dict):
            settings += flatten(value, f"{prefix}{key}.")
        else:
            settings.append(f"{prefix}{key}={json.dumps(value)}")
    return settings


def build(folder, out):
    config = json.loads((folder / "config.json").read_text())
    (name,) = config.pop("architectures")
    skeleton.export(lambda: hf.build(name, settings=flatten(config)),
                    out / "model.onnx")


def main():
    names = sorted(path.parent.name for path in FOLDER.glob("*/config.json"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        default=FOLDER, help="DIR/NAME/model.onnx is written")
    args = parser.parse_args()
    for name in args.names:
        if name not in names:
            parser.error(f"no skeleton {name}; there are {', '.join(names)}")
    warnings.filterwarnings("ignore", module="torch|transformers|onnxscript")
    for name in args.names or names:
        build(FOLDER / name, args.out / name)


if __name__ == "__main__":
    main()
