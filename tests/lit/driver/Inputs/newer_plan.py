"""newer_plan.py IN OUT: the same plan, as if a reader of version 999 were needed."""

import struct
import sys
import zlib

source, target = sys.argv[1:]
data = open(source, "rb").read()
header = data[:8] + struct.pack("<II", 999, 999) + data[16:28]
open(target, "wb").write(header + struct.pack("<I", zlib.crc32(header)) + data[32:])
