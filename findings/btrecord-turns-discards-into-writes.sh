#!/usr/bin/env bash
# btrecord 1.2.0 records a discard as a write, so btreplay overwrites what was only discarded.
#
# btrecord makes of a trace of blktrace what btreplay plays again. It keeps the sector and the
# length of each request and one bit for its kind: read or not. A discard of 1 GiB is therefore
# played as writes of 1 GiB, on flash the opposite of what the trace did. A flush becomes a write of
# no bytes, FUA is lost. Neither program says so. On a loop device, a replay of this trace changed
# the 8 KiB that the trace discards.
#
# The header that btrecord writes does not count the last bunch of requests (by default up to 8 that
# came within 10 ms). A file whose only bunch is the last, that of a processor with few requests,
# says 0 of 0; btreplay then plays nothing of it, and exits with 0.
#
# Seen with blktrace 1.2.0-5 of Debian 12 (bookworm), 2026-11-28. Needs apt-get and python3. Fails
# if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
unpack_files blktrace blktrace=1.2.0-5

cd "$scratch"
python3 - >sda.blktrace.0 <<'PYTHON'
import struct
import sys

MAGIC = 0x65617407  # version 7 of the format
QUEUED = 1 | 1 << 20 | 1 << 24  # action Q, categories queue and fs
READ, WRITE, FLUSH, DISCARD = 1 << 16, 1 << 17, 1 << 18, 1 << 29
requests = [(READ, 0, 4096), (WRITE, 8, 4096), (WRITE | DISCARD, 16, 8192), (WRITE | FLUSH, 0, 0)]
for number, (kind, sector, length) in enumerate(requests, 1):
    fields = (MAGIC, number, number * 1000, sector, length, QUEUED | kind, 100, 8 << 20, 0, 0, 0)
    sys.stdout.buffer.write(struct.pack("<IIQQIIIIIHH", *fields))
PYTHON
blktrace/usr/sbin/btrecord -d . -D . sda
seen="$(python3 - sda.replay.0 <<'PYTHON'
import struct
import sys

data = open(sys.argv[1], "rb").read()
_, _, bunches, requests = struct.unpack_from("<4Q", data)
print(f"header: {bunches} bunches, {requests} requests")
in_bunch, _ = struct.unpack_from("<2Q", data, 32)
for number in range(in_bunch):
    sector, length, is_read = struct.unpack_from("<3Q", data, 48 + 24 * number)
    print(f"{'read' if is_read else 'write'} of {length} bytes at sector {sector}")
PYTHON
)"
echo "$seen"
expected='header: 0 bunches, 0 requests
read of 4096 bytes at sector 0
write of 4096 bytes at sector 8
write of 8192 bytes at sector 16
write of 0 bytes at sector 0'
if [[ "$seen" != "$expected" ]]; then
    echo "btrecord no longer behaves as described" >&2
    exit 1
fi
