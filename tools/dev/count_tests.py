#!/usr/bin/env python3
"""Counts the tests of a CTest run and of the lit run inside it, from their XML.

Prints three numbers: passed, failed, skipped. Names what failed and, with the reason, what was skipped on stderr.
"""

import argparse
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

# What CTest writes for a test that asked to be skipped. Any other test that did not run is a failure.
SKIP_MESSAGES = ("SKIP_REGULAR_EXPRESSION_MATCHED", "SKIP_RETURN_CODE", "Disabled")


def outcome(case: ElementTree.Element) -> tuple[str, str]:
    """("passed" | "failed" | "skipped", reason) of one JUnit test case."""
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed", ""
    skip = case.find("skipped")
    if skip is None and case.get("status", "run") == "run":
        return "passed", ""
    message = (skip.get("message") or "") if skip is not None else ""
    # lit has no status attribute; its skips are always asked for.
    if case.get("status") is None or case.get("status") == "disabled" or message.startswith(SKIP_MESSAGES):
        return "skipped", message
    return "failed", message or "did not run"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ctest_xml", type=pathlib.Path)
    parser.add_argument("--lit-xml", type=pathlib.Path)
    args = parser.parse_args()

    lit_ran = args.lit_xml is not None and args.lit_xml.exists()
    cases = []
    for case in ElementTree.parse(args.ctest_xml).getroot().iter("testcase"):
        if case.get("name") == "lit" and lit_ran:
            continue  # counted one by one below
        cases.append((case.get("name"), case))
    if lit_ran:
        for case in ElementTree.parse(args.lit_xml).getroot().iter("testcase"):
            cases.append((f"{case.get('classname')}/{case.get('name')}", case))

    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, case in cases:
        kind, reason = outcome(case)
        counts[kind] += 1
        if kind != "passed":
            print(f"{kind}: {name}{': ' + reason if reason else ''}", file=sys.stderr)
    print(counts["passed"], counts["failed"], counts["skipped"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
