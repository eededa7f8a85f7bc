"""Runs a command and prints the most memory that it had, in bytes, as the last line.

A process of its own, and without numpy, because a child's peak is at least what its parent had when it was made.
"""

import os
import sys

process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
print(usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
