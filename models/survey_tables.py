"""The tables of docs/import_coverage.md from the results of survey.py."""

import collections
import json
import re

BEGIN, END = "<!-- survey: begin -->", "<!-- survey: end -->"
EXPORTERS = ("dynamo", "torchscript")
# Ops whose result's shape depends on values, or that branch on them.
DATA_DEPENDENT = {"Compress", "If", "Loop", "NonZero", "Scan", "SequenceAt",
                  "SplitToSequence", "TopK", "Unique"}
TOLERANCE = 1e-4


def update(doc, work, classes, opsets, padded):
    """Replaces what is between the markers of the file `doc`.

    padded: the (exporter, opset) that also have an export with padding.
    """
    results = {path.parent.name: json.loads(path.read_text())
               for path in sorted(work.glob("*/result.json"))}
    sections = (coverage(results, classes, opsets, padded),
                layers(results, classes, opsets), training(results, classes),
                data_dependent(results, classes, opsets),
                histogram(results, classes, opsets))
    text = doc.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    doc.write_text(before + BEGIN + "\n" + "\n\n".join(sections) + "\n" + END +
                   after)


def short(name):
    return re.sub("ForConditionalGeneration$|Model$", "", name)


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |"
                     for line in lines)


def verdict(trained):
    """What a training that ran to its end shows; "trains" is the aim.

    Two f32 runs may be as far from each other as each is from f64. Where that
    is more than the tolerance, as PyTorch shows, its losses say little.
    """
    if (trained["missing"] or not trained["adapter"] <= TOLERANCE or
            not (trained["gradients"] or 0) <= TOLERANCE):
        return "trains, not as PyTorch"
    if trained["losses"] <= TOLERANCE:
        return "trains"
    return ("trains within rounding"
            if trained["losses"] <= 2 * trained["rounding"]
            else "trains, not as PyTorch")


def training_text(trained):
    """One line for a terminal."""
    if "losses" not in trained:
        return f"imports; training: {trained['stage']} {trained['reason']}"
    missing = trained["missing"]
    worst = (f"gradients {trained['gradients']:.1e} ({trained['parameter']})"
             if trained["compared"] else "no gradients")
    return (f"{verdict(trained)}: {worst}, losses {trained['losses']:.1e}, "
            f"{trained['compared']} parameters" +
            (f", without a counterpart: {', '.join(missing[:4])}"
             if missing else ""))


def coverage(results, classes, opsets, padded):
    """Each case's result, with the reasons below the table."""
    notes = {}

    def note(reason):
        return notes.setdefault(plain(reason), len(notes) + 1)

    def cell(result):
        if result is None:
            return ""
        text = "imports"
        if result["stage"]:
            return f"{result['stage']} ({note(result['reason'])})"
        trained = result.get("trained", {})
        if trained.get("stage"):
            text = f"imports; {trained['stage']} ({note(trained['reason'])})"
        elif "losses" in trained:
            text = verdict(trained)
            text = "**trains**" if text == "trains" else text
        if result["batch"]:
            text += ", fixed batch"
        return text

    columns = {f"{exporter} {opset}": f"{exporter}-{opset}"
               for exporter in EXPORTERS for opset in opsets}
    columns |= {f"{exporter} {opset}, padding": f"{exporter}-{opset}-padding"
                for exporter, opset in padded}
    header = ["class", *columns]
    rows = [[short(name)] + [cell(results.get(f"{name}-{column}"))
                             for column in columns.values()]
            for name in classes]
    wrote = sorted({(key.split("-")[1], int(key.split("-")[2]), r["opset"])
                    for key, r in results.items()
                    if r.get("opset", 0) not in (0, int(key.split("-")[2]))})
    lines = [f"- The {exporter} exporter, asked for opset {asked}, writes "
             f"{written}." for exporter, asked, written in wrote]
    lines += [f"- ({number}) {reason}" for reason, number in notes.items()]
    return "### Exports\n\n" + table(header, rows) + "\n\n" + "\n".join(lines)


def plain(reason):
    """A reason without what differs from one export to the next."""
    reason = re.sub(r"\S*/(model\.onnx)", r"\1", reason)
    reason = re.sub(r" ?\(opset \d+\)| opset version \d+", "", reason)
    return re.sub(r"\s+", " ", reason)[:300].replace("|", "\\|")


def layers(results, classes, opsets):
    """Ops per layer after `raise`: three layers less two."""
    rows = []
    for name in classes:
        exports = collections.defaultdict(list)  # those with the same counts
        for exporter in EXPORTERS:
            for opset in opsets:
                key = f"{name}-{exporter}-{opset}"
                cells = [cell for part in ("decoder", "vision")
                         for cell in layer_cells(layer_ops(results, key, part))]
                exports[tuple(cells)].append(f"{exporter} {opset}")
        rows += [[short(name), ", ".join(where), *cells]
                 for cells, where in exports.items() if any(cells)]
    return "### Ops of a layer after `raise`\n\n" + table(
        ["class", "export", "decoder", "ops", "vision", "ops"], rows)


def layer_ops(results, key, part):
    two, three = results.get(key, {}), results.get(f"{key}-{part}", {})
    if "raised" not in two or "raised" not in three:
        return None
    more = collections.Counter(three["raised"])
    more.subtract(two["raised"])
    return {op: n for op, n in more.items() if n}


def layer_cells(count):
    if count is None:
        return "", ""
    ops = sorted(count.items(), key=lambda item: (-item[1], item[0]))
    return sum(count.values()), ", ".join(f"{op} {n}" for op, n in ops)


def training(results, classes):
    """For each class the largest errors over its exports."""
    rows = []
    for name in classes:
        runs = [result["trained"] for key, result in results.items()
                if key.split("-")[0] == name and
                "losses" in result.get("trained", {})]
        if runs:
            largest = {field: max(run[field] for run in runs)
                       for field in ("adapter", "gradients", "losses",
                                     "rounding", "compared", "zero")}
            rows.append([short(name), len(runs),
                         *(f"{largest[field]:.1e}" for field in
                           ("adapter", "gradients", "losses", "rounding")),
                         largest["compared"], largest["zero"]])
    return "### Training beside PyTorch\n\n" + table(
        ["class", "exports", "adapter, Δ of a logit",
         "gradients, ‖Δ‖/‖g‖", "losses, relative",
         "PyTorch's losses, f32 to f64", "parameters", "zero gradients"], rows)


def first_export(results, name, opsets):
    """The (exporter, opset) and result of the first export that there is."""
    for exporter in EXPORTERS:
        for opset in opsets[1:]:
            result = results.get(f"{name}-{exporter}-{opset}", {})
            if "ops" in result:
                return f"{exporter} {opset}", result
    return "", None


def data_dependent(results, classes, opsets):
    rows = []
    for name in classes:
        cells = [short(name)]
        for exporter in EXPORTERS:
            found = collections.Counter()
            for opset in opsets:
                ops = results.get(f"{name}-{exporter}-{opset}",
                                  {}).get("ops", {})
                found |= collections.Counter(
                    {op: n for op, n in ops.items() if op in DATA_DEPENDENT})
            cells.append(", ".join(f"{op} {n}"
                                   for op, n in sorted(found.items())) or "–")
        rows.append(cells)
    return ("### Data-dependent ops in the exports\n\n" +
            table(["class", *EXPORTERS], rows))


def histogram(results, classes, opsets):
    columns = {name: first_export(results, name, opsets) for name in classes}
    columns = {name: (export, result["ops"])
               for name, (export, result) in columns.items() if result}
    used = sorted({op for _, ops in columns.values() for op in ops})
    header = ["op"] + [f"{short(name)}<br>{export}"
                       for name, (export, _) in columns.items()]
    rows = [[f"`{op}`"] + [ops.get(op, "") for _, ops in columns.values()]
            for op in used]
    return "### ONNX ops by architecture\n\n" + table(header, rows)
