#!/usr/bin/env bash
# fio-btrace2fio of fio 3.33 makes random writes without syncs of a log that is written in order.
#
# The program turns a trace of blktrace into a job file. A flush is a write of no bytes at sector 0
# for it. So the write behind a flush does not begin where the last one ended: none of a hundred
# writes in order, each followed by a flush, counts as sequential, half of the blocks have no bytes,
# and the job has no `fsync`. The job, which fio accepts, writes 4 KiB at random places and never
# syncs: on a disk, the opposite of the load that was traced. The same writes without flushes become
# a sequential job, but so do writes with FUA, whose flag is lost.
#
# Seen with fio 3.33-3 of Debian 12 (bookworm), 2026-11-28, with this trace and with those that
# blktrace 1.2.0-5 takes of `pwrite` and `fdatasync` on Linux 6.12.117-1~deb12u1 and 7.3.4-1~bpo13+1
# of Debian. Needs apt-get and python3. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/fio.bash"

# Prints the job that becomes of 100 writes in order, by one process. $1 is 1 if a flush follows
# each write.
job_of_trace() {
    python3 - "$1" >"$scratch/trace" <<'PYTHON'
import struct
import sys

MAGIC = 0x65617407  # version 7 of the format
WRITE, FLUSH, FILE_SYSTEM = 1 << 17, 1 << 18, 1 << 24
QUEUED, ISSUED, COMPLETED = 1 | 1 << 20, 7 | 1 << 22, 8 | 1 << 23
number = 0
kinds = [(WRITE, 4096), (WRITE | FLUSH, 0)][: 1 + int(sys.argv[1])]
for write in range(100):
    for kind, length in kinds:
        for event in (QUEUED, ISSUED, COMPLETED):
            number += 1
            sector = write * 8 if length else 0
            action = event | kind | FILE_SYSTEM
            fields = (MAGIC, number, number * 5_000_000, sector, length, action, 100, 8 << 20, 0, 0, 0)
            sys.stdout.buffer.write(struct.pack("<IIQQIIIIIHH", *fields))
PYTHON
    program fio-btrace2fio -d disk -f "$scratch/trace" | grep -E '^(rw|percentage_random|bssplit|f.*sync)='
}

in_order="$(job_of_trace 0)"
synced="$(job_of_trace 1)"
printf '%s\n' 'writes in order:' "$in_order" 'the same, each followed by a flush:' "$synced"
if [[ "$in_order" != $'rw=randwrite\npercentage_random=0,0,0\nbssplit=4096/' ||
    "$synced" != $'rw=randwrite\npercentage_random=0,100,0\nbssplit=4096/50:0/' ]]; then
    echo "fio-btrace2fio no longer behaves as described" >&2
    exit 1
fi
