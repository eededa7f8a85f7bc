#!/usr/bin/env python3
"""Writes shards to train the example on: make_data.py FOLDER. Needs numpy.

A sample has `features` f32 [6, 4] and `labels` i64 [6]: which fifth of a sine's range the sine of the
features' sum falls into.
"""

import io
import pathlib
import sys
import tarfile

import numpy


def samples(count: int) -> list[dict[str, numpy.ndarray]]:
    generator = numpy.random.default_rng(0)
    features = generator.uniform(-2, 2, (count, 6, 4)).astype("f4")
    labels = numpy.minimum((numpy.sin(features.sum(-1)) + 1) / 2 * 5, 4).astype("i8")
    return [{"features": f, "labels": l} for f, l in zip(features, labels)]


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / "shard.tar", "w", format=tarfile.USTAR_FORMAT) as shard:
        for index, sample in enumerate(samples(256)):
            for name, array in sample.items():
                data = io.BytesIO()
                numpy.save(data, array)
                member = tarfile.TarInfo(f"{index:06d}.{name}.npy")
                member.size = data.tell()
                data.seek(0)
                shard.addfile(member, data)


if __name__ == "__main__":
    main()
