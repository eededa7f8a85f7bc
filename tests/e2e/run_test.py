"""Runs one test method of a file here: run_test.py golden_test test_logits. Exit code 77: skipped."""

import importlib
import sys
import unittest


def main() -> int:
    module = importlib.import_module(sys.argv[1])
    loader = unittest.TestLoader()
    suite = unittest.TestSuite(
        test
        for case in loader.loadTestsFromModule(module)
        for test in case
        if test.id().rsplit(".", 1)[-1] == sys.argv[2]
    )
    if suite.countTestCases() != 1:
        print(f"{sys.argv[1]} has {suite.countTestCases()} tests named {sys.argv[2]}, expected one")
        return 2
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.skipped:
        return 77
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
