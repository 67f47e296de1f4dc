#!/usr/bin/env bash
# On Linux, a limit of 100 reads a second lets ten pass at once, and no more within 0.1 s.
#
# A limit `riops` in `io.max` of a cgroup is kept as a number of reads for each tenth of a second.
# The first ones pass as fast as the disk reads, and one waits for the next tenth. So the rate is
# right, but a reader that is limited to 100 or 1000 IOPS sees the latencies of the disk itself, and
# in between those of a disk that stalls. The median says nothing of the limit.
#
# Here the disk takes 0.1 ms, and fio reads at depth 1 for 3 s. Reads in all, those that last less
# than 1 ms, and those that last more than 50 ms:
#
#   riops=100     301    271   30
#   riops=1000   3001   2971   30
#
# Seen with Linux 6.12.117-1 and 7.3.4-1~bpo13+1, and fio 3.39-1 of Debian 13 (trixie,
# trixie-backports), 2026-11-29. Boots each in QEMU without KVM, where time passes with
# instructions, some 20 seconds per kernel. Needs apt-get on amd64, and 600 MB in the temporary
# folder. Fails if this changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
source "$(dirname "${BASH_SOURCE[0]}")/kernels.bash"

unpack_trixie fio=3.39-1
copy_program usr/bin/fio
QEMU_DEVICES=(-icount 'shift=0,sleep=off')

cat >"$guest/init" <<'INIT'
#!/bin/busybox sh
. /prepare
mount -t cgroup2 cgroup /sys/fs/cgroup
[ -s /configfs.ko ] && insmod /configfs.ko
insmod /null_blk.ko nr_devices=1 gb=1 queue_mode=2 irqmode=2 completion_nsec=100000 submit_queues=1
echo +io >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/limited
echo 0 >/sys/fs/cgroup/limited/cgroup.procs
for limit in 100 1000; do
    echo "$(cat /sys/block/nullb0/dev) riops=$limit" >/sys/fs/cgroup/limited/io.max
    fio --name=job --filename=/dev/nullb0 --ioengine=psync --direct=1 --rw=randread --bs=4k --runtime=3 --time_based \
        --write_lat_log=/tmp/log --output=/tmp/out || echo "seen: failed"
    lasted="$(awk -F, '{ all++; long += $2 > 50000000; short += $2 < 1000000 } END { print all, short, long }' /tmp/log_clat.1.log)"
    echo "seen: riops=$limit: $lasted"
done
poweroff -f
INIT
chmod +x "$guest/init"

status=0
for kernel in "${TRIXIE_KERNELS[@]}"; do
    boot_with_null_blk "$kernel" riops=1000
    echo "Linux $kernel"
    while read -r limit reads short long; do
        echo "$limit $reads reads, $short of less than 1 ms, $long of more than 50 ms"
        case "$limit" in
        riops=100:) ((reads < 320 && short > 250 && long >= 25)) || status=1 ;;
        *) ((reads < 3200 && short > 2900 && long >= 25)) || status=1 ;;
        esac
    done <<<"$seen"
done
((status == 0)) || echo "Linux no longer behaves as described" >&2
exit "$status"
