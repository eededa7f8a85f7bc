#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets from the repository's real files: OUT/TARGET/NAME.

    collect_seeds.py OUT --write-seeds BIN [--oriel BIN]

With --oriel (a built compiler) plans are compiled too; without it the plan's fuzzer starts from one that was made by hand.
"""

import argparse
import io
import json
import pathlib
import re
import struct
import subprocess
import tarfile

import numpy

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def write(folder: pathlib.Path, name: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def npy(array: numpy.ndarray) -> bytes:
    out = io.BytesIO()
    numpy.save(out, array)
    return out.getvalue()


def arrays() -> dict[str, numpy.ndarray]:
    result = {f"{dtype}": numpy.arange(6).reshape(2, 3).astype(dtype)
              for dtype in ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "bool")}
    result["scalar"] = numpy.float32(1)
    result["empty"] = numpy.zeros((0, 3), "f4")
    result["fortran"] = numpy.asfortranarray(numpy.zeros((2, 3), "f4"))
    result["structured"] = numpy.zeros(2, dtype=[("a", "f4"), ("b", "i8")])
    return result


def tar(members: dict[str, bytes], form: int, extras: bool = False) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, kind in (("folder", tarfile.DIRTYPE), ("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
            if extras:
                info = tarfile.TarInfo(name)
                info.type = kind
                info.linkname = "000.a.npy"
                archive.addfile(info)
        end = archive.offset
    return out.getvalue()[: end + 1024]  # the two blocks of zeros that end a tar, without the padding behind them


def collect_shards(out: pathlib.Path, shards: list[pathlib.Path]) -> None:
    made = {name: npy(array) for name, array in arrays().items()}
    for name, content in made.items():
        write(out / "npy", name, content)
    members = {f"000.{name}.npy": made[name] for name in ("f4", "i8")}
    members["001.f4.npy"] = made["f4"]
    for name, form in (("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
        write(out / "tar_shards", name, tar(members, form))
        long = {f"{'folder/' * 30}000.f4.npy": made["f4"]}
        if form != tarfile.USTAR_FORMAT:
            write(out / "tar_shards", f"{name}_long", tar(long, form, extras=True))
    write(out / "tar_shards", "ustar_extras", tar(members, tarfile.USTAR_FORMAT, extras=True))
    for shard in shards:
        with tarfile.open(shard) as archive:
            first = {m.name: archive.extractfile(m).read() for m in archive.getmembers()[:4]}
        for name, content in first.items():
            write(out / "npy", f"{shard.stem}_{name}", content)
        write(out / "tar_shards", shard.stem, tar(first, tarfile.USTAR_FORMAT))


def safetensors(tensors: dict[str, tuple[str, list[int], bytes]], metadata: dict[str, str] | None = None) -> bytes:
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def collect_checkpoints(out: pathlib.Path, files: list[pathlib.Path]) -> None:
    sizes = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I8": 1, "U8": 1, "BOOL": 1}
    write(out / "safetensors", "all_types",
          safetensors({t: (t, [2, 1], bytes(2 * n)) for t, n in sizes.items()}, {"format": "pt"}))
    parameters = {}
    for file in files:
        content = file.read_bytes()
        (size,) = struct.unpack("<Q", content[:8])
        header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
        header.pop("__metadata__", None)
        small = sorted(header, key=lambda name: header[name]["data_offsets"][1] - header[name]["data_offsets"][0])[:3]
        kept = {name: (header[name]["dtype"], header[name]["shape"], data[slice(*header[name]["data_offsets"])])
                for name in small}
        write(out / "safetensors", file.stem, safetensors(kept))
        parameters.update({name: header[name] for name in small})

    def entry(name: str, file: str, split: bool) -> dict:
        shape = parameters[name]["shape"]
        shards = [{"file": file, "name": name, "offsets": [0] * len(shape), "shape": shape}]
        if split and shape and shape[0] % 2 == 0:
            half = [shape[0] // 2, *shape[1:]]
            shards = [{"file": f"{i}.{file}", "name": name, "offsets": [i * half[0]] + [0] * (len(shape) - 1),
                       "shape": half} for i in range(2)]
        return {"dtype": "F32", "shape": shape, "shards": shards}

    for split in (False, True):
        index = {
            "format": "oriel-checkpoint", "version": 1, "step": 5,
            "data": {"epoch": 0, "batch": 5, "seed": 0, "shuffle": True, "samples": 64, "global_batch": 8},
            "model": {"name": "llava_tiny", "fingerprint": "0123456789abcdef"},
            "parameters": {name: entry(name, "model.safetensors", split) for name in parameters},
            "optimizer_states": {name: {slot: entry(name, "optimizer.safetensors", split)
                                        for slot in ("exp_avg", "exp_avg_sq")} for name in parameters},
        }
        write(out / "checkpoint_index", f"split_{split}.json", json.dumps(index, indent=1).encode())


def collect_yaml(out: pathlib.Path, target: str) -> None:
    """Recipes and strategies: what one reader takes the other refuses, and that is worth a try too."""
    for path in [*ROOT.glob("models/**/*.yaml"), *HERE.glob("seeds/*.yaml")]:
        write(out / target, f"{path.parent.name}_{path.name}", path.read_bytes())
    for page in ROOT.glob("docs/*.md"):
        for i, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)):
            write(out / target, f"{page.stem}_{i}.yaml", block.encode())


def collect_messages(out: pathlib.Path, write_seeds: str, oriel: str | None) -> None:
    sources = ["--graphs", HERE / "seeds/graphs.txt", "--models", HERE / "seeds/functions.txt",
               "--models", HERE / "seeds/trainable.txt"]
    for model in sorted(ROOT.glob("models/*/*.onnx")):
        sources += ["--onnx", model]
    subprocess.run([write_seeds, out, *sources], check=True)
    if oriel is None:
        return
    work = out / "work"
    work.mkdir(exist_ok=True)
    model = work / "trainable.onnx"
    model.write_bytes((out / "onnx/trainable_0").read_bytes())
    plans = []
    for world in (1, 2):
        plan = work / f"world_{world}.oplan"
        subprocess.run([oriel, "compile", model, "--recipe", HERE / "seeds/trainable.yaml", "--mesh", f"dp={world}",
                        "-o", plan], check=True, stdout=subprocess.DEVNULL)
        plans += ["--plan", plan]
    subprocess.run([write_seeds, out, *plans], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--write-seeds", required=True)
    parser.add_argument("--oriel")
    args = parser.parse_args()
    collect_messages(args.out, args.write_seeds, args.oriel)
    golden = sorted(ROOT.glob("models/*/golden"))
    collect_shards(args.out, [shard for folder in golden for shard in sorted(folder.glob("data/*.tar"))])
    collect_checkpoints(args.out, [file for folder in golden for file in sorted(folder.glob("*.safetensors"))])
    collect_yaml(args.out, "recipe")
    collect_yaml(args.out, "strategy")


if __name__ == "__main__":
    main()
