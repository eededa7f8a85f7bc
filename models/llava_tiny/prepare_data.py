#!/usr/bin/env python3
"""Writes Fashion-MNIST with captions as WebDataset-style tar shards.

    models/llava_tiny/prepare_data.py [--out build/data/llava_tiny]

Needs Debian's python3-numpy and dataset-fashion-mnist, nothing else. A sample
KEY is three members of a shard:

    KEY.pixel_values.npy  float32 (1, 28, 28), normalised to mean 0, deviation 1
    KEY.input_ids.npy     int64 (64,): <bos>, 49 <image>, prompt, caption, <eos>
    KEY.labels.npy        int64 (64,): input_ids where trained on, else -100

Labels stand at the token they label, not shifted. train/ labels the whole
caption and <eos>; eval/ labels the class name only, so that a sample is right
when every labelled token is. The words before the class name are the same for
all classes ("a photo of a ankle boot"), so they tell nothing about it.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import sys
import tarfile

import numpy as np

SEQUENCE_LENGTH = 64
ROWS_PER_IMAGE = 49
IGNORE = -100
MEAN, DEVIATION = 0.2860, 0.3530  # of the training images, scaled to 0..1
EVAL_SAMPLES = 1000
SHARD_SAMPLES = 4000
PROMPTS = ("what is in the image ?", "what is this ?", "describe the image .")
CAPTION = "a photo of a {}"
CLASS_NAMES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal",
               "shirt", "sneaker", "bag", "ankle boot")  # by class number

HERE = pathlib.Path(__file__).resolve().parent
VOCAB_FILE = HERE / "vocab.json"
DATASET = pathlib.Path("/usr/share/datasets/fashion-mnist")


def tokenize(text, vocab):
    """Word-level token ids; an unknown word is a KeyError."""
    return [vocab[word] for word in re.findall(r"\w+|[^\w\s]", text)]


def load_vocab():
    tokens = json.loads(VOCAB_FILE.read_text())["tokens"]
    return {token: index for index, token in enumerate(tokens)}


def encode(class_index, prompt_index, vocab, name_only):
    """(input_ids, labels) of one caption, int64 (64,) each."""
    prompt = tokenize(PROMPTS[prompt_index], vocab)
    before = tokenize(CAPTION.format(""), vocab)
    name = tokenize(CLASS_NAMES[class_index], vocab)
    head = [vocab["<bos>"]] + [vocab["<image>"]] * ROWS_PER_IMAGE + prompt
    ids = head + before + name + [vocab["<eos>"]]
    input_ids = np.full(SEQUENCE_LENGTH, vocab["<pad>"], np.int64)
    input_ids[:len(ids)] = ids
    labels = np.full(SEQUENCE_LENGTH, IGNORE, np.int64)
    start = len(head) + (len(before) if name_only else 0)
    stop = len(ids) - (1 if name_only else 0)
    labels[start:stop] = ids[start:stop]
    return input_ids, labels


def read_idx(path):
    """An idx file (the MNIST format) as a uint8 array."""
    try:
        data = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        sys.exit(f"prepare_data: {path} is missing; install the data set with\n"
                 "  apt-get install dataset-fashion-mnist\n"
                 "or name its folder with --dataset")
    dims = data[3]
    shape = np.frombuffer(data, ">u4", dims, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dims).reshape(shape)


def npy_header(shape, dtype):
    """What np.save writes before the values: the same for every sample."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def add_member(tar, name, payload):
    info = tarfile.TarInfo(name)  # mtime and owner 0: shards are reproducible
    info.size = len(payload)
    tar.addfile(info, io.BytesIO(payload))


def write_split(folder, split, images, classes, vocab, name_only):
    """Writes shards of one split, in the data set's order."""
    folder.mkdir(parents=True)
    captions = {}
    for c in range(len(CLASS_NAMES)):
        for p in range(len(PROMPTS)):
            captions[c, p] = [array.tobytes() for array in
                              encode(c, p, vocab, name_only)]
    pixels_header = npy_header((1, 28, 28), np.float32)
    ids_header = npy_header((SEQUENCE_LENGTH,), np.int64)
    for first in range(0, len(images), SHARD_SAMPLES):
        last = min(first + SHARD_SAMPLES, len(images))
        pixels = images[first:last].astype(np.float32) / 255.0
        pixels = (pixels - np.float32(MEAN)) / np.float32(DEVIATION)
        shard = folder / f"{split}-{first // SHARD_SAMPLES:05d}.tar"
        with tarfile.open(shard, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(first, last):
                key = f"{split}-{i:06d}"
                ids, labels = captions[int(classes[i]), i % len(PROMPTS)]
                add_member(tar, f"{key}.pixel_values.npy",
                           pixels_header + pixels[i - first].tobytes())
                add_member(tar, f"{key}.input_ids.npy", ids_header + ids)
                add_member(tar, f"{key}.labels.npy", ids_header + labels)


def check(out, train_samples):
    """Reads every shard back; exits with a message where one is wrong."""
    for split, expected in (("train", train_samples), ("eval", EVAL_SAMPLES)):
        count = {}
        for shard in sorted((out / split).glob("*.tar")):
            with tarfile.open(shard) as tar:
                for member in tar:
                    kind = member.name.split(".", 1)[1]
                    array = np.load(io.BytesIO(tar.extractfile(member).read()))
                    right = {"pixel_values.npy": ((1, 28, 28), np.float32),
                             "input_ids.npy": ((SEQUENCE_LENGTH,), np.int64),
                             "labels.npy": ((SEQUENCE_LENGTH,), np.int64)}[kind]
                    if (array.shape, array.dtype) != right:
                        sys.exit(f"prepare_data: {shard}: {member.name} is "
                                 f"{array.dtype}{array.shape}")
                    count[kind] = count.get(kind, 0) + 1
        if len(count) != 3 or set(count.values()) != {expected}:
            sys.exit(f"prepare_data: {out / split}: expected {expected} "
                     f"samples, found {count}")
        print(f"{split}: {expected} samples are well formed")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path,
                        default=HERE.parents[1] / "build/data/llava_tiny")
    parser.add_argument("--dataset", type=pathlib.Path, default=DATASET)
    parser.add_argument("--limit", type=int, metavar="N", default=60000,
                        help="training samples to write (default: all 60,000)")
    parser.add_argument("--check", action="store_true",
                        help="read the shards back and check them")
    args = parser.parse_args()

    source = hashlib.sha256(pathlib.Path(__file__).read_bytes()
                            + VOCAB_FILE.read_bytes()).hexdigest()
    wanted = {"source": source, "limit": args.limit}
    stamp = args.out / "stamp.json"
    if stamp.exists() and json.loads(stamp.read_text()) == wanted:
        print(f"{args.out} is up to date")
    else:
        build(args, wanted, stamp)
    if args.check:
        check(args.out, args.limit)


def build(args, wanted, stamp):
    """Writes both splits beside `--out`, then moves them in; the stamp last."""
    arrays = {name: read_idx(args.dataset / f"{name}-ubyte.gz") for name in (
        "train-images-idx3", "train-labels-idx1",
        "t10k-images-idx3", "t10k-labels-idx1")}
    if not 0 < args.limit <= len(arrays["train-images-idx3"]):
        sys.exit("prepare_data: --limit must be from 1 to "
                 f"{len(arrays['train-images-idx3'])}")
    vocab = load_vocab()
    args.out.mkdir(parents=True, exist_ok=True)
    scratch = args.out / f"tmp-{os.getpid()}"
    try:
        for split, prefix, count in (("train", "train", args.limit),
                                     ("eval", "t10k", EVAL_SAMPLES)):
            write_split(scratch / split, split,
                        arrays[f"{prefix}-images-idx3"][:count],
                        arrays[f"{prefix}-labels-idx1"][:count],
                        vocab, name_only=split == "eval")
        stamp.unlink(missing_ok=True)
        for split in ("train", "eval"):
            shutil.rmtree(args.out / split, ignore_errors=True)
            (scratch / split).rename(args.out / split)
        (scratch / "stamp.json").write_text(json.dumps(wanted) + "\n")
        (scratch / "stamp.json").rename(stamp)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{args.out}: {args.limit} training and {EVAL_SAMPLES} held-out "
          "samples")


if __name__ == "__main__":
    main()
