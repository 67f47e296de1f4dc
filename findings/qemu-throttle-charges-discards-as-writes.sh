#!/usr/bin/env bash
# QEMU 7.2 with a limit of 10 MiB/s makes a write of 4 KiB wait 10 s after a discard of 100 MiB.
#
# The block driver `throttle` takes a discard, and a write of zeroes, for as many bytes of data as
# its range is long. A discard carries none, and the disk below ends it in a moment. It does not
# wait itself, since the limit allows a burst, but the requests behind it pay: `fstrim` in a guest,
# or `mkfs`, which discards the disk first, can stop all writes for minutes. Linux's own limit,
# `io.max` of a cgroup, lets a discard pass, and charges zeroes (see
# linux-io-max-charges-zeroes-as-writes.sh).
#
#   write of 4 KiB                                 0.0 s
#   the same, after a discard of 100 MiB           9.9 s
#   the same, after zeroes of 100 MiB              9.9 s
#
# Seen with qemu-io 7.2.22 of Debian 12 (bookworm), 2026-11-29. Needs apt-get on amd64. Half a
# minute. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
unpack_programs qemu-utils=1:7.2+dfsg-7+deb12u18+b3
truncate -s 1G "$scratch/disk"

# Prints the tenths of a second that a write of 4 KiB takes after the command $1 of qemu-io.
waited() {
    local before
    before="$(date +%s%N)"
    program qemu-io --object throttle-group,id=group,limits.bps-total=10485760 -c "$1" -c 'write 0 4k' --image-opts \
        "driver=throttle,throttle-group=group,discard=unmap,file.driver=file,file.filename=$scratch/disk,file.discard=unmap" \
        >"$scratch/out"
    echo $((($(date +%s%N) - before) / 100000000))
}

status=0
# Fails unless a write waits for $1 to $2 tenths of a second after the command $3.
expect() {
    local tenths
    tenths="$(waited "$3")"
    echo "write of 4 KiB after '$3': $((tenths / 10)).$((tenths % 10)) s"
    if ((tenths < $1 || tenths > $2)); then status=1; fi
}
expect 0 20 'flush'
expect 90 130 'discard 0 100m'
expect 90 130 'write -z 0 100m'
((status == 0)) || echo "QEMU no longer behaves as described" >&2
exit "$status"
