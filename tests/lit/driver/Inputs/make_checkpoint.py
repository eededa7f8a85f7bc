"""make_checkpoint.py PLAN_WEIGHTS FOLDER [--rename OLD=NEW] [--add X]: a checkpoint with a plan's weights.

--rename gives one parameter another name; --add adds a number to every value.
"""

import argparse
import json
import pathlib

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("weights", type=pathlib.Path)
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--rename", default="=")
parser.add_argument("--add", type=float, default=0)
args = parser.parse_args()
old, new = args.rename.split("=")

data = args.weights.read_bytes()
size = int.from_bytes(data[:8], "little")
header = json.loads(data[8 : 8 + size])
tensors = {new if name == old else name: tensor for name, tensor in header.items() if name != "__metadata__"}
values = (np.frombuffer(data[8 + size :], "<f4") + np.float32(args.add)).tobytes()

args.folder.mkdir(parents=True)
text = json.dumps(tensors).encode()
text += b" " * (-len(text) % 8)
(args.folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + values)
parameters = {
    name: {
        "dtype": tensor["dtype"],
        "shape": tensor["shape"],
        "shards": [{"file": "model.safetensors", "name": name, "offsets": [0] * len(tensor["shape"]),
                    "shape": tensor["shape"]}],
    }
    for name, tensor in tensors.items()
}
position = {"epoch": 0, "batch": 0, "seed": 0, "shuffle": True, "samples": 8, "global_batch": 2}
index = {"format": "oriel-checkpoint", "version": 1, "step": 1, "data": position,
         "model": {"name": "another", "fingerprint": ""}, "parameters": parameters, "optimizer_states": {}}
(args.folder / "index.json").write_text(json.dumps(index))
