#!/usr/bin/env bash
# On a disk that takes one command at a time, Linux's bfq forgets the priorities of all but two
# processes, and `nr_requests` brings them back.
#
# A scheduler of blk-mq gets twice as many tags as the hardware queue has commands. For a disk of
# depth 1, as behind many USB bridges and card readers, that is 2. A third process that reads
# synchronously waits for a tag, where bfq does not see it; the waits for tags know no weights.
#
# Here three jobs of ioprio 0, 4 and 7 (weights 80, 40 and 10) read 256 KiB at a time for 3 s, and
# the disk takes 4 ms for each. By weights, they get 61.5, 30.8 and 7.7 % of the requests.
#
#   as the disk comes (nr_requests 2)   40 or 41, 33 or 34, and 26 or 27 %
#   nr_requests=64                      61, 32 and 7 %
#
# Seen with Linux 6.12.117+deb13-cloud-amd64 and fio 3.39-1 of Debian 13 (trixie), 2026-11-28. Boots
# the kernel in QEMU without KVM, where time passes with instructions. Needs apt-get on amd64 as
# root, QEMU and cpio, and 400 MB in the temporary folder. One minute. Fails if this changes.
set -euo pipefail
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/jobs"
for tags in 2 64; do
    cat >"$scratch/jobs/tags$tags.fio" <<JOB
; null_blk: queue_mode=2 submit_queues=1 hw_queue_depth=1 irqmode=2 completion_nsec=4000000 max_sectors=1024 rotational=1
; queue: nr_requests=$tags iosched/low_latency=0
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
[high]
prio=0
[middle]
prio=4
offset=1g
[low]
prio=7
offset=2g
JOB
done
# The first job leaves the attribute as it comes.
sed -i 's/nr_requests=2 //' "$scratch/jobs/tags2.fio"

kernel=6.12.117+deb13-cloud-amd64
"$(dirname "${BASH_SOURCE[0]}")/../ci/oracle/guest.sh" "$kernel" 1 "$scratch/out" "$scratch/jobs"

# Prints the shares of the three jobs in recording $1, in percent. A job has the sectors of 1 GiB.
shares() {
    sed -n 's/.*block_rq_issue: [0-9,]* R[A-Z]* [0-9]* ([^)]*) \([0-9]*\) + .*/\1/p' "$1" |
        awk '{ n[int($1 / 2097152)]++; all++ } END { for (j = 0; j < 3; j++) printf "%d ", n[j] * 100 / all + 0.5 }'
}
status=0
for tags in 2 64; do
    read -r high middle low <<<"$(shares "$scratch/out/tags$tags.bfq.1")"
    echo "Linux $kernel, nr_requests $tags: $high, $middle and $low %"
    case "$tags" in
    2) ((high < 50 && low > 20)) || status=1 ;;
    64) ((high > 55 && low < 12)) || status=1 ;;
    esac
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
