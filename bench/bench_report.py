"""What the reports of benchmarks have in common (bench/results/README.md)."""

import datetime
import json
import os
import platform


def machine():
    """When and where a report was made; its first entries."""
    return {"date": datetime.date.today().isoformat(), "cpu": platform.processor() or platform.machine(),
            "cores": len(os.sched_getaffinity(0))}


def write(report, out):
    """Prints the report, and writes it to the path `out` unless that is None."""
    text = json.dumps(report, indent=2) + "\n"
    print(text, end="")
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
