#!/usr/bin/env python3
"""How far the cost model (docs/cost_model.md) is from published measurements of kernels and collectives.

    ninja -C build/dev oriel_cost_model
    python3 bench/cost_model.py --tables DIR [--tool build/dev/bin/oriel_cost_model]

One line per group of cases: their number, the mean and the median of |predicted / measured - 1|, the median of predicted / measured, and the mean
error with one share of the peak for all. Where a file of clusters/efficiency/ was fitted on a part of a table, the line is of the rest.
"""

import argparse
import csv
import gzip
import json
import pathlib
import statistics
import subprocess

V100_MODELS = {"gpt_350M": (1024, 16), "gpt_1_3B": (2048, 32), "gpt_2_6B": (2560, 32), "gpt_6_7B": (4096, 32), "gpt_13B": (5120, 40)}
V100_FITTED = ("gpt_350M", "gpt_2_6B")
SEQUENCE = 2048
# What the best product reaches on SXM4, of what it reaches on PCIe.
A100_SXM_TO_PCIE = 271.2 / 252.9


class Tables:
    def __init__(self, folder, tool):
        self.folder, self.tool = pathlib.Path(folder), tool

    def rows(self, name):
        path = self.folder / name
        with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
            return list(csv.DictReader(file))

    def seconds(self, cluster, cases):
        """Of cases, each a list of lines whose times add up."""
        text = "\n".join(line for case in cases for line in case) + "\n"
        output = subprocess.run([self.tool, cluster], input=text, capture_output=True, text=True, check=True).stdout.split()
        numbers = iter(map(float, output))
        return [sum(next(numbers) for _ in case) for case in cases]


def settings(shape):
    return dict(part.split("=") for part in shape.split(", "))


def print_errors(name, predicted, measured, flops=None):
    errors = [abs(p / m - 1) for p, m in zip(predicted, measured)]
    line = f"{name:58} {len(errors):5} mean {100 * statistics.mean(errors):5.1f} %  median {100 * statistics.median(errors):5.1f} %"
    line += f"  predicted/measured {statistics.median(p / m for p, m in zip(predicted, measured)):.2f}"
    if flops:
        rate = statistics.median(f / m for f, m in zip(flops, measured))
        line += f"  one share {100 * statistics.mean(abs(f / rate / m - 1) for f, m in zip(flops, measured)):5.1f} %"
    print(line)


def simumax_products(tables, gpu, cluster, least, scale):
    groups = {}
    for row in tables.rows("gemm_peaks_and_shapes.csv"):
        if row["kind"] != "measured shape efficiency, op matmul" or row["gpu_type"] != gpu:
            continue
        at = settings(row["shape"])
        rows, columns, depth = int(at["m"]), int(at["n"]), int(at["k"])
        flops = 2.0 * rows * columns * depth
        seconds = flops / (float(row["tflops"]) * 1e12)
        # A sum is read and written.
        written = (4 if at["out_dtype"] == "fp32" else 2) * (2 if at["accumulate"] == "True" else 1)
        if seconds >= least:
            groups.setdefault((rows, columns, depth), []).append(([f"product half 1 {rows} {columns} {depth} {written}"], seconds, flops))
    cases = [case for i, shape in enumerate(sorted(groups)) if i % 3 for case in groups[shape]]
    predicted = [scale * p for p in tables.seconds(cluster, [case[0] for case in cases])]
    print_errors(f"products, {gpu}", predicted, [case[1] for case in cases], [case[2] for case in cases])


def v100_layers(tables):
    products, batched = [], []
    for row in tables.rows("op_profile_v100_aceso.csv.gz"):
        if row["model"] not in V100_MODELS or row["model"] in V100_FITTED or row["tp_algorithm"] != "0":
            continue
        hidden, heads = V100_MODELS[row["model"]]
        ranks, batch = int(row["tp"]), int(row["mbs_seqs"])
        rows = batch * SEQUENCE
        wide = {"enc-attention-qkv": 3 * hidden, "enc-MLP-GEMM-1": 4 * hidden}.get(row["op"])
        deep = {"enc-attention-dense": hidden, "enc-MLP-GEMM-2": 4 * hidden}.get(row["op"])
        if wide or deep:
            m, n, k = (rows, wide // ranks, hidden) if wide else (rows, hidden, deep // ranks)
            lines = {
                "fwd_us": [f"product half 1 {m} {n} {k} 2"],
                "bwd_us": [f"product half 1 {m} {k} {n} 2", f"product half 1 {k} {n} {m} 2"],
            }
            # Times with an all-reduce in them are left out: backward of what is cut by columns, forward by rows.
            for key in ("fwd_us", "bwd_us"):
                clean = ranks == 1 or (key == "fwd_us" and row["op"] == "enc-MLP-GEMM-1") or (key == "bwd_us" and deep)
                seconds = float(row[key]) * 1e-6
                if clean and seconds > 4e-4:
                    products.append((lines[key], seconds, len(lines[key]) * 2.0 * m * n * k))
        elif row["op"] in ("enc-attention-score", "enc-attention-context") and ranks == 1:
            count, depth = batch * heads, hidden // heads
            score = f"product half {count} {SEQUENCE} {SEQUENCE} {depth} 2"
            query = f"product half {count} {SEQUENCE} {depth} {SEQUENCE} 2"
            key = f"product half {count} {depth} {SEQUENCE} {SEQUENCE} 2"
            forward, backward = ([score], [query, key]) if "score" in row["op"] else ([query], [score, key])
            batched.append((forward + backward, (float(row["fwd_us"]) + float(row["bwd_us"])) * 1e-6, None))
    predicted = tables.seconds("v100", [case[0] for case in products])
    print_errors("products, V100", predicted, [case[1] for case in products], [case[2] for case in products])
    predicted = tables.seconds("v100", [case[0] for case in batched])
    print_errors("products of unfused attention, forward + backward, V100", predicted, [case[1] for case in batched])


def attention(tables):
    groups = {}
    for row in tables.rows("attention_kernels.csv"):
        backward = row["direction"] != "fwd"
        batch, heads, length, depth = (int(row[key]) for key in ("batch", "heads", "seq_len", "head_dim"))
        causal = row["causal"] == "1"
        flops = 4.0 * batch * heads * length**2 * depth * (0.5 if causal else 1) * (3.5 if backward else 1)
        shape = f"{batch} {heads} {length} {length} {depth} {depth} {'causal' if causal else 'full'}"
        lines = [f"attention forward {shape}"] + ([f"attention backward {shape}"] if backward else [])
        name = f"attention, {row['gpu_type']}, {row['implementation']}, {row['direction']}"
        groups.setdefault((name, "a100-80" if "A100" in name else "h100"), []).append((lines, flops / float(row["tflops"]) / 1e12))
    for row in tables.rows("gemm_peaks_and_shapes.csv"):
        if "op sdp_" not in row["kind"] or row["gpu_type"] != "B200-SXM" or "qkv_contiguous=False" in row["shape"]:
            continue
        at = settings(row["shape"])
        batch, heads, length, depth, value = (int(at[key]) for key in ("batch", "head_num", "seq_len", "qk_head_dim", "v_head_dim"))
        direction = "backward" if "sdp_bwd" in row["kind"] else "forward"
        # The table's TFLOP/s count all keys.
        flops = 2.0 * batch * heads * length**2 * (depth + value) * (2.5 if direction == "backward" else 1)
        line = f"attention {direction} {batch} {heads} {length} {length} {depth} {value} causal"
        groups.setdefault((f"attention, B200, {direction}", "b200"), []).append(([line], flops / float(row["tflops"]) / 1e12))
    for (name, cluster), cases in groups.items():
        held = [case for i, case in enumerate(cases) if i % 3]
        print_errors(name, tables.seconds(cluster, [case[0] for case in held]), [case[1] for case in held])


def memory(tables):
    groups = {}
    for row in tables.rows("liger_kernels.csv"):
        if row["metric"] != "speed" or row["provider"] != "liger" or row["mode"] not in ("forward", "backward"):
            continue
        per_element = {("layer_norm", "forward"): 8, ("rms_norm", "forward"): 4, ("relu_squared", "forward"): 4, ("relu_squared", "backward"): 6}
        key = (row["kernel"], row["mode"])
        cluster = {"NVIDIA A100-SXM4-80GB": "a100-80", "NVIDIA H100 80GB HBM3": "h100"}.get(row["gpu"])
        if key not in per_element or not cluster:
            continue
        size = json.loads(row["config"])["M"] * float(row["x_value"]) * per_element[key]
        if size > 5e7:  # smaller ones are mostly launch
            groups.setdefault(cluster, []).append(([f"bytes {size}"], float(row["y_p50"]) * 1e-3))
    for cluster, cases in groups.items():
        print_errors(f"memory over 50 MB, {cluster}", tables.seconds(cluster, [case[0] for case in cases]), [case[1] for case in cases])


def collectives(tables):
    groups = {}
    nodes = {
        "H100-SXM-80GB NVLink/NVSwitch, 8 GPUs (sample log of the README)": "h100",
        "H200-SXM 8 GPUs, NVLink 4 + NVLS (all_reduce_bench.py)": "h200",
        "A100-SXM 8 GPUs, NVLink 3 (nccl-tests)": "a100-80",
        "H100-SXM, 64 GPUs, InfiniBand NDR 400G x8 per node (SHARP manifest named in the example)": "h100:8",
        "H100-SXM-80GB, 2x AWS p5.48xlarge (16 GPUs, EFA 3200Gbps per node)": "h100:2",
    }
    for row in tables.rows("nccl_collectives.csv"):
        if row["collective"] != "all_reduce" or row["hardware"] not in nodes or not row["size_bytes"]:
            continue
        ranks = int(float(row["n_ranks"]))
        sent = 2 * float(row["size_bytes"]) * (ranks - 1) / ranks
        seconds = float(row["time_us"]) * 1e-6 if row["time_us"] else sent / (float(row["busbw_gbs"]) * 1e9)
        if sent > 4e6:
            line = f"all_reduce {sent} " + " ".join(map(str, range(ranks)))
            groups.setdefault((f"all-reduce over 4 MB, {ranks} of {nodes[row['hardware']]}", nodes[row["hardware"]]), []).append(([line], seconds))
    for row in tables.rows("collectives_v100_aceso.csv.gz"):
        ranks, size = int(row["n_gpus"]), float(row["data_size_mb"]) * 2**20
        if row["collective"] == "all_reduce" and size > 4e6:
            line = f"all_reduce {2 * size * (ranks - 1) / ranks} " + " ".join(map(str, range(ranks)))
            groups.setdefault((f"all-reduce over 4 MB, {ranks} of v100", "v100"), []).append(([line], float(row["time_ms"]) * 1e-3))
    for row in tables.rows("network_p2p_and_specs.csv"):
        if row["direction"] != "send/recv" or "V100" not in row["link"]:
            continue
        size = float(row["size"].split()[0]) * 2**20
        inside = "NVLink" in row["link"]
        key = ("transfer, two V100 of one node", "v100") if inside else ("transfer, V100 of two nodes", "v100:2")
        groups.setdefault(key, []).append(([f"transfer {size} 0 {1 if inside else 8}"], size / 2**30 / float(row["bandwidth_gbs"])))
    for (name, cluster), cases in groups.items():
        print_errors(name, tables.seconds(cluster, [case[0] for case in cases]), [case[1] for case in cases])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", required=True, help="folder of the published tables")
    parser.add_argument("--tool", default="build/dev/bin/oriel_cost_model")
    arguments = parser.parse_args()
    tables = Tables(arguments.tables, arguments.tool)
    simumax_products(tables, "A100-PCIe-80GB", "a100-80", 0, A100_SXM_TO_PCIE)
    simumax_products(tables, "B200-SXM", "b200", 1e-4, 1)
    v100_layers(tables)
    attention(tables)
    memory(tables)
    collectives(tables)


if __name__ == "__main__":
    main()
