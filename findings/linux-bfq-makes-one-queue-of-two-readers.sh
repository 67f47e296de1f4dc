#!/usr/bin/env bash
# On a disk that does not rotate, Linux's bfq makes one queue of two processes of equal priority
# that begin within moments of each other, though they read 1 GiB apart.
#
# bfq joins the queues of processes whose requests are close. It also joins a new queue with the one
# created before it, if that had the same priority and group, before it has seen a sector of
# either. Then the two readers have one budget, and their requests alternate one by one: bfq gives
# neither of them its turn of some 30 requests, and it cannot hold the device for one of them. On a
# rotating disk the queues stay two.
#
# Two jobs read 256 KiB at a time for 3 s, and the disk takes 4 ms for each, one at a time. The runs
# of requests of one job:
#
#   rotational=1     23 runs of 733 requests
#   rotational=0    748 runs of 748 requests
#
# Seen with Linux 7.3.4-1~bpo13+1 and fio 3.39-1 of Debian 13 (trixie, trixie-backports),
# 2026-11-28; 6.12.117 does the same. Boots the kernel in QEMU without KVM, where time passes with
# instructions. Needs apt-get on amd64 as root, QEMU and cpio, and 400 MB in the temporary folder.
# One minute. Fails if this changes.
set -euo pipefail
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/jobs"
for rotational in 0 1; do
    cat >"$scratch/jobs/rotational$rotational.fio" <<JOB
; null_blk: queue_mode=2 submit_queues=1 hw_queue_depth=1 irqmode=2 completion_nsec=4000000 max_sectors=1024 rotational=$rotational
; queue: nr_requests=64 iosched/low_latency=0
; scheduler: bfq
[global]
filename=/dev/nullb0
direct=1
ioengine=psync
runtime=3
time_based
rw=read
bs=256k
size=1g
[a]
[b]
offset=1g
JOB
done

kernel=7.3.4+deb13-cloud-amd64=7.3.4-1~bpo13+1
echo "Linux ${kernel#*=}"
"$(dirname "${BASH_SOURCE[0]}")/../ci/oracle/guest.sh" "$kernel" 1 "$scratch/out" "$scratch/jobs"

# Prints the number of requests in recording $1, and of the runs of one job.
runs() {
    sed -n 's/.*block_rq_issue: [0-9,]* R[A-Z]* [0-9]* ([^)]*) \([0-9]*\) + .*/\1/p' "$1" |
        awk '{ job = $1 >= 2097152; if (NR == 1 || job != last) runs++; last = job } END { print NR, runs }'
}
status=0
for rotational in 1 0; do
    read -r requests runs <<<"$(runs "$scratch/out/rotational$rotational.bfq.1")"
    echo "rotational=$rotational: $requests requests in $runs runs"
    if ((rotational)); then ((runs < 60)) || status=1; else ((runs > 600)) || status=1; fi
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
