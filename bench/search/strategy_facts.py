"""What a strategy (docs/strategy.md) does on a cluster, as plain facts that rules ask for.

    facts = strategy_facts.read(strategy, cluster, batch, encoder, micro)

README.md lists the facts. Only arithmetic on the file: whether the model divides and fits is the compiler's to say.
"""

import math
import re

AXES = ("dp", "fsdp", "cp", "tp")  # the last one changes fastest over the ranks


class Refused(Exception):
    """The strategy can't be used on the cluster; the text says why."""


def sizes(mesh):
    """{axis: size} with all axes, of a mesh of the file."""
    unknown = set(mesh) - set(AXES)
    if unknown:
        raise Refused(f"unknown mesh axis {sorted(unknown)[0]}")
    return {axis: int(mesh.get(axis, 1)) for axis in AXES}


def ranks(mesh):
    return math.prod(mesh.values())


def stage_list(strategy):
    """One entry of `stages` per stage: what the file says of its blocks (None if the compiler cuts) and its mesh."""
    stages = strategy.get("stages", 1)
    if isinstance(stages, (int, str)):
        count = re.fullmatch(r"(?:auto )?(\d+)", str(stages))
        if not count:
            raise Refused(f"stages: {stages} is no number")
        return [(None, None)] * int(count[1])
    entries = []
    for stage in stages:
        mapping = isinstance(stage, dict)
        entries.append((stage["blocks"] if mapping else stage, stage.get("mesh") if mapping else None))
    return entries


def grids_of(strategy, entries):
    """The meshes of the grids, in the order of their ranks, and the number of stages on each."""
    default = 2 if strategy.get("schedule") == "interleaved" else 1
    interleave = int(strategy.get("interleave", default))
    if len(entries) % interleave:
        raise Refused(f"{len(entries)} stages are not {interleave} for each grid")
    grids = []
    for _, mesh in entries[:len(entries) // interleave]:
        mesh = mesh or strategy.get("mesh")
        if not mesh:
            raise Refused("no mesh")
        grids.append(sizes(mesh))
    return grids, interleave


def within_nodes(groups, per_node):
    """Whether each group of (first rank, last rank) is on one node."""
    return all(first // per_node == last // per_node for first, last in groups)


def blocks_of(item, encoder):
    """How many blocks an item of `stages` names of (the encoder, another tower); a whole tower counts as one.
    Counted over all towers, the encoder has the first `encoder` blocks."""
    tower, first, last = re.fullmatch(r"(?:(?P<tower>\D.*?)(?:\.(?=\d+(?:-\d+)?$)|$))?(?:(\d+)(?:-(\d+))?)?", str(item)).groups()
    count = int(last or first) - int(first) + 1 if first else 1
    if tower:
        return (count, 0) if re.search("vision|visual", tower) else (0, count)
    inside = max(0, min(int(last or first) + 1, encoder) - int(first))
    return inside, count - inside


def encoder_alone(entries, grids, encoder):
    """Whether a grid of several has blocks of the encoder and no others. The encoder's blocks come first."""
    if len(grids) == 1 or not encoder:
        return False
    totals = [[0, 0] for _ in grids]
    for stage, (blocks, _) in enumerate(entries):
        if blocks is None:  # the compiler's cuts are balanced by time
            return False
        for item in blocks if isinstance(blocks, list) else [blocks]:
            counts = blocks_of(item, encoder)
            totals[stage % len(grids)] = [a + b for a, b in zip(totals[stage % len(grids)], counts)]
    return any(vision and not others for vision, others in totals)


def bubble(schedule, grids, interleave, microbatches):
    """The share of idle time of equal stages, docs/strategy.md."""
    idle = grids - 1
    work = {"interleaved": interleave, "zb-h1": 3}.get(schedule, 1) * microbatches
    return idle / (work + idle)


def read(strategy, cluster, batch, encoder=0, micro=None):
    """The facts of `strategy` for `batch` samples a step. `encoder`: blocks of the vision tower. `micro`: the recipe's, used where the
    strategy has no `microbatches`. Raises Refused."""
    entries = stage_list(strategy)
    grids, interleave = grids_of(strategy, entries)
    per_node = cluster["devices_per_node"]
    devices = cluster.get("nodes", 1) * per_node
    world = sum(ranks(mesh) for mesh in grids)
    if world != devices:
        raise Refused(f"the strategy has {world} ranks, the cluster {devices} devices")
    modules = [sizes(module["mesh"]) for module in strategy.get("modules", {}).values() if "mesh" in module]
    zero = int(strategy.get("zero", 0))
    hsdp = strategy.get("hsdp")

    tp_groups, shard_groups, shards = [], [], []
    start = 0
    for grid in grids:
        for mesh in [grid] + [module for module in modules if ranks(module) == ranks(grid)]:
            tp = mesh["tp"]
            sharding = (mesh["fsdp"] if mesh["fsdp"] > 1 else int(hsdp or mesh["dp"])) * mesh["cp"]
            shards.append(sharding)
            tp_groups += [(first, first + tp - 1) for first in range(start, start + ranks(mesh), tp)]
            span = tp * sharding  # an hsdp group is neighbours in dp
            shard_groups += [(first, first + span - 1) for first in range(start, start + ranks(mesh), span)]
        start += ranks(grid)

    meshes = grids + modules
    data = min(mesh["dp"] * mesh["fsdp"] for mesh in meshes)
    if max(shards) == 1:
        zero = 0  # nobody to share with
    if "microbatches" in strategy:
        microbatches = int(strategy["microbatches"])
    elif micro:
        microbatches = batch / (data * micro)
    else:
        raise Refused("neither the strategy's microbatches nor the recipe's micro-batch (--micro) is known")
    per_rank = batch / (data * microbatches)
    if per_rank != int(per_rank) or microbatches != int(microbatches):
        raise Refused(f"a batch of {batch} is not {microbatches:g} microbatches on {data} data-parallel ranks")

    tp, cp = (max(mesh[axis] for mesh in meshes) for axis in ("tp", "cp"))
    schedule = strategy.get("schedule", "1f1b")
    return {
        "ranks": world,
        "tp": tp,
        "cp": cp,
        "pp": len(grids),
        "data": data,
        "model_parallel": tp * cp * len(grids),
        "zero": zero,
        "shards": max(shards) if zero else 1,
        "micro": int(per_rank),
        "microbatches": int(microbatches),
        "schedule": schedule,
        "interleave": interleave,
        "bubble": bubble(schedule, len(grids), interleave, int(microbatches)),
        "sequence_parallel": bool(strategy.get("sequence_parallel", False)),
        "remat": strategy.get("remat", "auto" if "memory" in strategy else "none"),
        "tp_within_node": within_nodes(tp_groups, per_node),
        "shards_within_node": not zero or within_nodes(shard_groups, per_node),
        "encoder_alone": encoder_alone(entries, grids, encoder),
    }
