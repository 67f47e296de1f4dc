#!/usr/bin/env bash
# How many lone writes Linux 7.3 merges under mq-deadline depends on the number of processors, but
# only if the disk has a second hardware queue, be it one that nobody uses.
#
# Since 7.2 a lone bio passes no plug. With a scheduler, it is inserted and a worker dispatches it.
# If the disk has one hardware queue, the worker is that of the submitter's processor. It has nice
# -20 and takes the processor as soon as the submitter's call returns, so few bios merge. If the
# disk has more hardware queues, `blk_mq_hctx_next_cpu` names another processor of the queue after
# each 8 runs. A worker there lets the submitter run on, and bios merge until it begins.
#
# null_blk has a second queue, for polled I/O, unless `poll_queues=0`. So `submit_queues=1` alone is
# no disk with one queue. Here one job writes 1024 blocks of 4 KiB in order, with 64 in flight over
# a disk of depth 32. Requests, and the processors whose workers dispatched them:
#
#   1 processor,  poll_queues=0: 811 to 963, of 1    4 processors, poll_queues=0: 706 to 716, of 1
#   1 processor,  poll_queues=1: 691 to 709, of 1    4 processors, poll_queues=1: 62 to 86, of 4
#
# How few remain with 4 processors is QEMU's doing: under `-icount` it runs the processors in turn,
# so a worker elsewhere issues some 150 us after the insertion, while bios are 10 us apart. With
# `-accel tcg,thread=multi` and no `-icount`, on a busy machine of two processors, four turns had
# 115 to 421; with `thread=single`, two had 58 and 61.
#
# Seen with Linux 7.3.4-1~bpo13+1 and fio 3.39-1 of Debian 13 (trixie, trixie-backports),
# 2026-11-28. Boots the kernel in QEMU without KVM, where time passes with instructions; the numbers
# vary as far as shown. Needs apt-get on amd64 as root, QEMU and cpio, and 400 MB in the temporary
# folder. One minute. Fails if this changes.
set -euo pipefail
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/jobs"
for queues in 0 1; do
    cat >"$scratch/jobs/poll$queues.fio" <<JOB
; null_blk: queue_mode=2 submit_queues=1 poll_queues=$queues hw_queue_depth=32 irqmode=2 completion_nsec=1000000
; scheduler: mq-deadline
[j]
filename=/dev/nullb0
direct=1
thread
cpus_allowed=0
ioengine=libaio
iodepth=64
rw=write
bs=4k
size=4m
JOB
done

status=0
# Fails unless a recording of $1 processors with $2 polled queues has $3 to $4 requests, which
# workers of $5 processors dispatched.
expect() {
    local file="$scratch/$1/poll$2.mq-deadline.1" requests workers
    requests="$(grep -c rq_issue "$file")"
    workers="$(sed -n 's/^ *kworker\/\([0-9]*\):.*rq_issue.*/\1/p' "$file" | sort -u | wc -l)"
    echo "processors $1, poll_queues $2: $requests requests, workers of $workers processors"
    if ((requests < $3 || requests > $4 || workers != $5)); then status=1; fi
}
kernel=7.3.4+deb13-cloud-amd64=7.3.4-1~bpo13+1
echo "Linux ${kernel#*=}"
for processors in 1 4; do
    "$(dirname "${BASH_SOURCE[0]}")/../ci/oracle/guest.sh" "$kernel" "$processors" \
        "$scratch/$processors" "$scratch/jobs"
done
expect 1 0 600 1024 1
expect 1 1 600 1024 1
expect 4 0 600 1024 1
expect 4 1 1 200 4
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
