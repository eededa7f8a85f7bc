#!/usr/bin/env python3
"""Makes what the GPU benchmark needs of this machine: plans, data, figures.

    bench/gpu/pack.py --oriel build/dev/bin/oriel --out FOLDER gpt2_124m llava_2b llava_7b

FOLDER/NAME.oplan is for CUDA, one rank, bf16 with gradients in bf16 and f32 masters, and starts from
random values that are made there, so there are no weights; FOLDER/NAME_generated.oplan is the same with
pointwise ops compiled, FOLDER/NAME_fused_loss.oplan one that never holds all logits. FOLDER/NAME.data holds samples of no meaning,
FOLDER/NAME.config.json the model's figures. Says what each plan needs of the device's memory.
"""

import argparse
import io
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tarfile

import yaml

import cases

SKELETONS = pathlib.Path(__file__).resolve().parents[2] / "models" / "skeletons"
# What models/skeletons/build.py --out has made of those whose graphs are not checked in there.
OWN_SKELETONS = pathlib.Path(__file__).resolve().parent / "skeletons"
STEPS = 100000  # no run comes to the end of it
# By the end of a plan's name, the compiler's options for it.
VARIANTS = {"": [], "_generated": ["--generated-kernels", "on"], "_fused_loss": ["--fuse-loss"]}


def write_recipe(case: cases.Case, path: pathlib.Path, device: str):
    recipe = yaml.safe_load((SKELETONS / case.skeleton / "recipe.yaml").read_text())
    recipe["model"]["bind"]["sequence"] = case.sequence
    recipe["batch"] = {"global": case.batch, "micro": case.batch}
    recipe["precision"] = {"compute": "bf16", "gradients": "bf16"}
    recipe["optimizer"]["lr"] = case.learning_rate
    recipe["schedule"] = {"kind": "constant"}
    recipe["steps"] = STEPS
    # All of the model is trained: PyTorch's baseline does the same.
    recipe.pop("parameters", None)
    path.write_text(yaml.safe_dump(recipe))


def npy(kind: str, shape: tuple[int, ...], data: bytes) -> bytes:
    """An array file (NumPy's format 1.0)."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def sample(figures: cases.Figures, sequence: int, rng: random.Random) -> dict[str, bytes]:
    """{input: array file}. Pixels are small whole numbers, that a file of some samples stays small."""
    decoder, encoder = figures.decoder, figures.encoder
    below = min(decoder.vocab, figures.image_token or decoder.vocab)
    ids = [rng.randrange(below) for _ in range(sequence)]
    if encoder is None:
        return {"input_ids": npy("<i4", (sequence,), struct.pack(f"<{sequence}i", *ids))}
    labels = [-100] * encoder.rows + ids[encoder.rows:]
    ids[:encoder.rows] = [figures.image_token] * encoder.rows
    pixels = bytes(byte & 3 for byte in rng.randbytes(3 * encoder.image**2))
    return {"pixel_values": npy("|u1", (3, encoder.image, encoder.image), pixels),
            "input_ids": npy("<i4", (sequence,), struct.pack(f"<{sequence}i", *ids)),
            "labels": npy("<i4", (sequence,), struct.pack(f"<{sequence}i", *labels))}


def write_data(case: cases.Case, figures: cases.Figures, folder: pathlib.Path):
    """Two batches."""
    folder.mkdir()
    rng = random.Random(0)
    with tarfile.open(folder / "shard-000000.tar", "w") as tar:
        for number in range(2 * case.batch):
            for name, data in sample(figures, case.sequence, rng).items():
                member = tarfile.TarInfo(f"{number:06d}.{name}.npy")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def compile_plan(oriel: pathlib.Path, model: pathlib.Path, recipe: pathlib.Path, plan: pathlib.Path, options: list) -> int:
    """Bytes of the plan's arena."""
    subprocess.run([oriel, "compile", model, "--recipe", recipe, *options, "-o", plan], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([oriel, "verify", plan], check=True, stdout=subprocess.DEVNULL)
    inspected = subprocess.run([oriel, "inspect", plan, "--json"], check=True, capture_output=True, text=True)
    return json.loads(inspected.stdout)["programs"][0]["arena_bytes"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="+", choices=sorted(cases.CASES), metavar="CASE",
                        help=f"of {', '.join(cases.CASES)}")
    parser.add_argument("--oriel", type=pathlib.Path, required=True, help="the compiler")
    parser.add_argument("--device", default="cuda", help="that plans are for")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.cases:
        case = cases.CASES[name]
        skeleton = SKELETONS / case.skeleton
        model = skeleton / "model.onnx"
        if not model.exists():
            model = OWN_SKELETONS / case.skeleton / "model.onnx"
        recipe = args.out / f"{name}.recipe.yaml"
        write_recipe(case, recipe, args.device)
        arenas = {}
        for ending, options in VARIANTS.items():
            plan = args.out / f"{name}{ending}.oplan"
            arenas[" ".join(options) or "by itself"] = compile_plan(args.oriel, model, recipe, plan,
                                                                    ["--device", args.device, *options])
        shutil.copy(skeleton / "config.json", args.out / f"{name}.config.json")
        write_data(case, cases.read_figures(skeleton / "config.json"), args.out / f"{name}.data")
        gib = ", ".join(f"{arena / 2**30:.1f} GiB ({options})" for options, arena in arenas.items())
        print(f"{name}: batch {case.batch} of {case.sequence} tokens, arenas of {gib}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
